"""Order, sharing, failure and bounds of writes."""

import asyncio

import pytest

from broker.controller.store import local_store
from broker.controller.store.metadata_store import Put, StoreUnavailableError, key_absent
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.timer import ManualTimer


async def test_refused_commit_fails_all_that_shared_it() -> None:
    """And only those: the next ones are carried out."""
    store = MemoryStore()
    store.faults = [Fault.REFUSED]
    results = await asyncio.gather(
        *(store.txn(then=[Put(f"k{i}", b"")]) for i in range(3)), return_exceptions=True
    )
    assert all(isinstance(result, StoreUnavailableError) for result in results)
    assert (await store.range("")).items == ()
    assert (await store.txn(then=[Put("a", b"")])).revision == 2


async def test_later_transactions_see_earlier_ones_of_the_same_commit() -> None:
    """Of two that create the same key one wins, although neither was durable when they ran."""
    store = MemoryStore()
    results = await asyncio.gather(
        *(store.txn([key_absent("a")], [Put("a", str(i).encode())]) for i in range(5))
    )
    assert [result.succeeded for result in results] == [True, False, False, False, False]
    assert store.commits == 1


async def test_nothing_is_visible_before_it_is_durable() -> None:
    """A reader must not act on what a power cut could take back."""
    store = MemoryStore()
    store.gate.clear()
    watch = store.watch("")
    writing = asyncio.ensure_future(store.txn(then=[Put("a", b"1")]))
    reading = asyncio.ensure_future(anext(watch))
    for _ in range(10):
        await asyncio.sleep(0)
    assert await store.get("a") is None
    assert not reading.done()
    assert not writing.done()
    store.gate.set()
    await writing
    assert [event.key for event in (await reading).events] == ["a"]
    await watch.aclose()


async def test_waiting_transactions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is refused at once instead of waiting for ever."""
    monkeypatch.setattr(local_store, "PENDING_COMMANDS_MAX", 3)
    store = MemoryStore()
    store.gate.clear()
    first = asyncio.ensure_future(store.txn(then=[Put("first", b"")]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting = [asyncio.ensure_future(store.txn(then=[Put(f"k{i}", b"")])) for i in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailableError, match="wait"):
        await store.txn(then=[Put("one more", b"")])
    store.gate.set()
    await asyncio.gather(first, *waiting)
    assert len((await store.range("")).items) == 4


async def test_lease_whose_end_cannot_be_stored_ends_later() -> None:
    """The deletion is tried again until it is durable."""
    timer = ManualTimer()
    store = MemoryStore(timer)
    lease = await store.grant_lease(1000)
    await store.txn(then=[Put("a", b"x", lease)])
    store.faults = [Fault.REFUSED]
    timer.advance(1001)
    for _ in range(10):
        await asyncio.sleep(0)
    assert await store.get("a") is not None
    timer.advance(1001)
    for _ in range(10):
        await asyncio.sleep(0)
    assert await store.get("a") is None


async def test_no_lease_ends_because_the_process_stood_still() -> None:
    """Stopped, or asleep with its machine: no renewal could arrive. It gets its time again."""
    timer = ManualTimer()
    store = MemoryStore(timer, clock=timer.clock)
    lease = await store.grant_lease(1_000)
    await store.txn(then=[Put("a", b"x", lease)])
    timer.clock.advance(1_000 + local_store.STOOD_STILL_MS + 1)
    timer.advance(0)
    assert store.lease_count == 1
    assert await store.keep_lease_alive(lease) == 1_000
    timer.advance(999)
    assert await store.get("a") is not None
    timer.clock.advance(local_store.STOOD_STILL_MS)
    timer.advance(1)
    for _ in range(10):
        await asyncio.sleep(0)
    assert await store.get("a") is None
    assert store.lease_count == 0


async def test_close_waits_for_what_was_begun() -> None:
    """What has been accepted is carried out."""
    store = MemoryStore()
    store.gate.clear()
    writing = asyncio.ensure_future(store.txn(then=[Put("a", b"1")]))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(store.aclose())
    await asyncio.sleep(0)
    store.gate.set()
    await closing
    assert (await writing).revision == 2
    assert "a" in store.disk.items


@pytest.mark.parametrize("ttl_ms", [0, -1])
async def test_lease_needs_time(ttl_ms: int) -> None:
    """A lease that has ended before it began is a mistake of ours."""
    with pytest.raises(ValueError, match="lease"):
        await MemoryStore().grant_lease(ttl_ms)
