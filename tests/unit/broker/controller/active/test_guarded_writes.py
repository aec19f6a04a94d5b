"""Writes in a controller epoch: none after it, none of unknown outcome."""

import asyncio
from collections.abc import Sequence

import pytest
from typing_extensions import override

from broker.controller.active.guarded_writes import GuardedWrites
from broker.controller.images.controller_history import WRITES_KEY
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.store.metadata_store import (
    Compare,
    Delete,
    Operation,
    Put,
    StoreFullError,
    StoreUnavailableError,
    TxnResult,
    key_absent,
)
from broker.controller.store.store_writer import (
    OPERATIONS_MAX,
    NotControllerError,
    StoreWriter,
    Unit,
)
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.timer import ManualTimer


async def elected(store: MemoryStore, value: bytes = b"1") -> int:
    await store.txn(then=[Delete(CONTROLLER_KEY)])
    return (await store.txn(then=[Put(CONTROLLER_KEY, value)])).revision


def writes(store: MemoryStore, epoch: int, deposed: list[int], node_id: int = 1) -> GuardedWrites:
    return GuardedWrites(
        store, node_id=node_id, epoch=epoch, timer=ManualTimer(), on_deposed=deposed.append
    )


async def test_writes_until_another_is_elected() -> None:
    """Then nothing is made, and it is said once."""
    store, deposed = MemoryStore(), list[int]()
    epoch = await elected(store)
    guarded = writes(store, epoch, deposed)
    assert (await guarded.txn(then=[Put("a", b"1")])).succeeded
    await elected(store, b"2")
    for _ in range(2):
        with pytest.raises(NotControllerError):
            await guarded.txn(then=[Put("a", b"2")])
    item = await store.get("a")
    assert item is not None
    assert item.value == b"1"
    assert deposed == [epoch]


async def test_a_comparison_that_fails_is_no_deposition() -> None:
    store, deposed = MemoryStore(), list[int]()
    guarded = writes(store, await elected(store), deposed)
    await guarded.txn(then=[Put("a", b"1")])
    result = await guarded.txn([key_absent("a")], [Put("a", b"2")])
    assert not result.succeeded
    assert result.responses == ()
    assert deposed == []


async def test_a_lost_answer_is_found_out() -> None:
    """Made: reported as made."""
    store, deposed = MemoryStore(), list[int]()
    guarded = writes(store, await elected(store), deposed)
    await guarded.txn(then=[Put("a", b"1")])
    store.faults = [Fault.LOST_ANSWER]
    assert (await guarded.txn(then=[Put("b", b"1")])).succeeded


async def test_the_last_word_of_the_controller_before_is_no_deposition() -> None:
    """Its settling of an unknown outcome may still come: the next attempt goes through."""
    store, deposed = MemoryStore(), list[int]()
    guarded = writes(store, await elected(store), deposed)
    await guarded.txn(then=[Put("a", b"1")])
    await store.txn(then=[Put(WRITES_KEY, b"settling of an earlier one")])
    with pytest.raises(StoreUnavailableError):
        await guarded.txn(then=[Put("a", b"2")])
    assert (await guarded.txn(then=[Put("a", b"3")])).succeeded
    assert deposed == []


async def test_full_transactions_have_room_for_both_guards() -> None:
    store = MemoryStore()
    guarded = writes(store, await elected(store), [])
    keys = [f"k{i}" for i in range(2 * OPERATIONS_MAX)]
    units = [Unit((key_absent(key),), (Put(key, b""),)) for key in keys]
    outcome = await StoreWriter(guarded).commit(units)
    assert outcome.errors == [None] * len(units)
    again = await StoreWriter(guarded).commit(units[:OPERATIONS_MAX])
    assert None not in again.errors


async def test_the_end_of_the_epoch_ends_the_wait_for_a_store_that_is_away() -> None:
    """So a broker can stop; the next controller acts on what it finds."""
    store = MemoryStore()
    guarded = writes(store, await elected(store), [])
    await guarded.txn(then=[Put("a", b"1")])
    store.faults = [Fault.LOST_REQUEST, *[Fault.REFUSED] * 100]
    writing = asyncio.ensure_future(guarded.txn(then=[Put("a", b"2")]))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not writing.done()
    guarded.end()
    with pytest.raises(NotControllerError):
        await writing


class FullStore(MemoryStore):
    """Has no room while `is_full` says so."""

    is_full = False

    @override
    async def txn(
        self,
        compare: Sequence[Compare] = (),
        then: Sequence[Operation] = (),
        otherwise: Sequence[Operation] = (),
    ) -> TxnResult:
        if self.is_full:
            raise StoreFullError("etcd a:1: mvcc: database space exceeded")
        return await super().txn(compare, then, otherwise)


async def test_a_store_without_room_is_told_until_it_takes_a_change() -> None:
    """And no longer than the epoch: the next controller finds out for itself."""
    store, told = FullStore(), list[str]()
    guarded = GuardedWrites(
        store,
        node_id=1,
        epoch=await elected(store),
        timer=ManualTimer(),
        on_deposed=lambda _epoch: None,
        on_full=told.append,
    )
    for _ in range(2):
        store.is_full = True
        with pytest.raises(StoreFullError):
            await guarded.txn(then=[Put("a", b"1")])
        assert told == ["etcd a:1: mvcc: database space exceeded"]
        store.is_full = False
        await guarded.txn(then=[Put("a", b"1")])
        assert told.pop() == ""
        told.clear()
    guarded.end()
    assert told == [""]
