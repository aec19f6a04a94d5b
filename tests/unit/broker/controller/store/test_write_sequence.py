"""Every outcome becomes known: nothing is sent twice, nothing fails that comes to pass later."""

import asyncio

import pytest

from broker.controller.store.metadata_store import (
    Get,
    GetResponse,
    OutcomeUnknownError,
    Put,
    StoreUnavailableError,
    key_absent,
)
from broker.controller.store.store_writer import OPERATIONS_MAX
from broker.controller.store.write_sequence import (
    SETTLE_AGAIN_MS,
    WriterReplacedError,
    WriteSequence,
)
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.timer import ManualTimer

KEY = "controller-writes"


def sequence(store: MemoryStore, writer: str = "w1") -> tuple[WriteSequence, ManualTimer]:
    timer = ManualTimer()
    return WriteSequence(store, KEY, writer, timer), timer


async def value(store: MemoryStore, key: str) -> bytes | None:
    item = await store.get(key)
    return item.value if item else None


async def test_a_transaction_is_as_it_was_asked_for() -> None:
    """With its own comparisons, lists and responses; the sequence's key is not shown."""
    store = MemoryStore()
    writes, _ = sequence(store)
    first = await writes.txn([key_absent("a")], [Put("a", b"1"), Get("a")], [Get("a")])
    second = await writes.txn([key_absent("a")], [Put("a", b"2")], [Get("a")])
    assert first.succeeded
    assert len(first.responses) == 2
    assert not second.succeeded
    (response,) = second.responses
    assert isinstance(response, GetResponse)
    assert [item.value for item in response.items] == [b"1"]
    assert (await writes.txn(then=[Put("a", b"3")])).succeeded


async def test_lists_have_room_for_the_sequences_own() -> None:
    store = MemoryStore()
    writes, _ = sequence(store)
    compare = [key_absent(f"k{i}") for i in range(OPERATIONS_MAX)]
    then = [Put(f"k{i}", b"") for i in range(OPERATIONS_MAX)]
    assert (await writes.txn(compare, then, [Get("k0")] * OPERATIONS_MAX)).succeeded


async def test_a_lost_answer_is_found_out() -> None:
    store = MemoryStore()
    writes, _ = sequence(store)
    store.faults = [Fault.LOST_ANSWER]
    result = await writes.txn(then=[Put("a", b"1")])
    item = await store.get("a")
    assert item is not None
    assert (result.succeeded, result.revision) == (True, item.mod_revision)
    assert item.version == 1
    assert (await writes.txn(then=[Put("b", b"1")])).succeeded


async def test_a_lost_request_can_no_longer_be_made() -> None:
    """It may lie in a queue of the store: it is excluded before it counts as failed."""
    store = MemoryStore()
    writes, _ = sequence(store)
    await writes.txn(then=[Put("a", b"1")])
    before = await store.get(KEY)
    store.faults = [Fault.LOST_REQUEST]
    with pytest.raises(StoreUnavailableError) as caught:
        await writes.txn(then=[Put("a", b"2")])
    assert not isinstance(caught.value, OutcomeUnknownError)
    after = await store.get(KEY)
    assert before is not None
    assert after is not None
    assert after.mod_revision > before.mod_revision
    assert await value(store, "a") == b"1"
    assert (await writes.txn(then=[Put("a", b"3")])).succeeded


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize(
    "settling",
    [
        [Fault.REFUSED],
        [Fault.LOST_REQUEST],
        [Fault.LOST_ANSWER],
        [Fault.REFUSED, Fault.LOST_ANSWER, Fault.REFUSED],
    ],
)
async def test_settling_goes_on_until_there_is_an_answer(
    made: bool, settling: list[Fault | None]
) -> None:
    """Its own answers may be lost as well."""
    store = MemoryStore()
    writes, timer = sequence(store)
    store.faults = [Fault.LOST_ANSWER if made else Fault.LOST_REQUEST]
    if not made:
        store.faults += settling
    task = asyncio.ensure_future(writes.txn(then=[Put("a", b"1")]))
    for _ in range(200):
        await asyncio.sleep(0)
        timer.advance(SETTLE_AGAIN_MS)
    if made:
        assert (await task).succeeded
    else:
        with pytest.raises(StoreUnavailableError):
            await task
    assert await value(store, "a") == (b"1" if made else None)
    store.faults.clear()
    assert (await writes.txn(then=[Put("b", b"1")])).succeeded


async def test_a_writer_that_was_replaced_changes_nothing() -> None:
    """Neither at once nor when its outcome is found out."""
    store = MemoryStore()
    old, _ = sequence(store, "old")
    new, _ = sequence(store, "new")
    await old.txn(then=[Put("a", b"1")])
    await new.txn(then=[Put("a", b"2")])
    with pytest.raises(WriterReplacedError):
        await old.txn(then=[Put("a", b"3")])
    assert await value(store, "a") == b"2"


async def test_a_writer_that_is_replaced_while_it_settles() -> None:
    store = MemoryStore()
    old, timer = sequence(store, "old")
    new, _ = sequence(store, "new")
    await old.txn(then=[Put("a", b"1")])
    store.faults = [Fault.LOST_REQUEST, Fault.REFUSED]
    task = asyncio.ensure_future(old.txn(then=[Put("a", b"3")]))
    for _ in range(20):
        await asyncio.sleep(0)
    await new.txn(then=[Put("a", b"2")])
    timer.advance(SETTLE_AGAIN_MS)
    with pytest.raises(WriterReplacedError):
        await task
    assert await value(store, "a") == b"2"


async def test_transactions_go_one_after_the_other() -> None:
    store = MemoryStore()
    writes, _ = sequence(store)
    results = await asyncio.gather(*(writes.txn(then=[Put(f"k{i}", b"")]) for i in range(20)))
    assert all(result.succeeded for result in results)
    assert len({result.revision for result in results}) == 20
