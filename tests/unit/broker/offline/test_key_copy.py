"""Copying of keys: whole in the end, whatever answers are lost on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.store.metadata_store import (
    Delete,
    Put,
    StoreUnavailableError,
    value_equals,
)
from broker.offline.key_copy import (
    BYTES_MAX,
    KEYS_MAX,
    TargetChangedError,
    make_equal,
    packs,
)
from tests.effort import examples
from tests.fakes.broker.metadata_store import Fault, MemoryStore

GUARD = [value_equals("mark", b"m")]


async def target_with(**keys: bytes) -> MemoryStore:
    store = MemoryStore()
    await store.txn(then=[Put("mark", b"m"), *(Put(key, value) for key, value in keys.items())])
    return store


async def copy(store: MemoryStore, wanted: dict[str, bytes]) -> int:
    return await make_equal(store, wanted, guard=GUARD, is_ours=lambda key: key != "mark")


async def contents(store: MemoryStore) -> dict[str, bytes]:
    return {item.key: item.value for item in (await store.range("")).items}


async def test_only_what_differs_is_written() -> None:
    store = await target_with(a=b"1", b=b"old", gone=b"x")
    assert await copy(store, {"a": b"1", "b": b"2", "c": b"3"}) == 3
    assert await contents(store) == {"a": b"1", "b": b"2", "c": b"3", "mark": b"m"}
    commits = store.commits
    assert await copy(store, {"a": b"1", "b": b"2", "c": b"3"}) == 0
    assert store.commits == commits


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_ANSWER])
async def test_an_unknown_outcome_is_read_and_not_guessed(fault: Fault) -> None:
    store = await target_with()
    store.faults.append(fault)
    wanted = {f"k{number:03}": b"v" for number in range(250)}
    await copy(store, wanted)
    assert await contents(store) == wanted | {"mark": b"m"}


async def test_a_refusal_ends_it_and_the_next_call_goes_on() -> None:
    store = await target_with()
    store.faults += [None, Fault.REFUSED]
    wanted = {f"k{number:03}": b"v" for number in range(250)}
    with pytest.raises(StoreUnavailableError):
        await copy(store, wanted)
    assert len(await contents(store)) == 1 + KEYS_MAX
    assert await copy(store, wanted) == 150


async def test_without_its_guard_nothing_is_written() -> None:
    store = MemoryStore()
    with pytest.raises(TargetChangedError):
        await copy(store, {"a": b"1"})
    assert await contents(store) == {}


@examples(50)
@given(st.lists(st.integers(0, BYTES_MAX + 9), max_size=8), st.integers(0, 3 * KEYS_MAX))
def test_packs_keep_order_and_bounds(sizes: list[int], deletes: int) -> None:
    everything: list[Put | Delete] = [Put(f"k{n}", bytes(size)) for n, size in enumerate(sizes)]
    everything += [Delete(f"d{n}") for n in range(deletes)]
    packed = list(packs(everything))
    assert [one for pack in packed for one in pack] == everything
    for pack in packed:
        assert 1 <= len(pack) <= KEYS_MAX
        values = [len(one.value) for one in pack if isinstance(one, Put)]
        assert len(pack) == 1 or sum(values) <= BYTES_MAX
