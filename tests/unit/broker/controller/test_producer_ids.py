"""Producer ids are given once, by whoever and whatever happens."""

import asyncio

import pytest

from broker.controller.images.metadata_records import PRODUCER_IDS_KEY, encode_next_producer_id
from broker.controller.producer_ids import (
    PRODUCER_ID_BLOCK_SIZE,
    PRODUCER_ID_END,
    ProducerIdBlocks,
    ProducerIds,
)
from broker.controller.store.metadata_store import Put, StoreUnavailableError
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from tests.fakes.broker.metadata_store import Fault, MemoryStore


async def test_ids_come_in_order_and_a_block_is_durable_before_its_first() -> None:
    """The next process begins after the block, however little of it was used."""
    store = MemoryStore()
    ids = ProducerIds(ProducerIdBlocks(store))
    assert ids.try_next() is None
    assert [await ids.next() for _ in range(3)] == [0, 1, 2]
    assert ids.try_next() == 3
    after_crash = ProducerIds(ProducerIdBlocks(MemoryStore(disk=store.disk)))
    assert await after_crash.next() == PRODUCER_ID_BLOCK_SIZE


async def test_brokers_that_share_a_store_never_share_an_id() -> None:
    """Compare-and-set decides who gets which block."""
    store = MemoryStore()
    blocks = [ProducerIdBlocks(store) for _ in range(5)]
    ranges = await asyncio.gather(*(b.allocate(1000) for b in blocks for _ in range(4)))
    assert sorted(r.start for r in ranges) == list(range(0, 20_000, 1000))


async def test_waiting_clients_share_one_fetch() -> None:
    """A thousand producers that start at once cost one or two transactions."""
    store = MemoryStore()
    ids = ProducerIds(ProducerIdBlocks(store))
    taken = await asyncio.gather(*(ids.next() for _ in range(1500)))
    await ids.aclose()
    assert sorted(taken) == list(range(1500))
    assert store.commits == 2


async def test_next_block_is_fetched_before_it_is_needed() -> None:
    """Nobody waits in the middle of a steady stream of producers."""
    store = MemoryStore()
    ids = ProducerIds(ProducerIdBlocks(store))
    await ids.next()
    for _ in range(1, PRODUCER_ID_BLOCK_SIZE - 50):
        assert ids.try_next() is not None
    await ids.aclose()
    assert [ids.try_next() for _ in range(60)] == list(range(950, 1010))
    assert store.commits == 2


async def test_lost_answer_loses_ids_but_repeats_none() -> None:
    """The block was stored, the answer was not heard: it is skipped."""
    store = MemoryStore()
    ids = ProducerIds(ProducerIdBlocks(store))
    store.faults = [Fault.LOST_ANSWER]
    with pytest.raises(StoreUnavailableError):
        await ids.next()
    again = ProducerIds(ProducerIdBlocks(MemoryStore(disk=store.disk)))
    assert await again.next() == PRODUCER_ID_BLOCK_SIZE


async def test_failure_is_told_to_all_who_wait_and_then_forgotten() -> None:
    """The next client tries again."""
    store = MemoryStore()
    ids = ProducerIds(ProducerIdBlocks(store))
    store.faults = [Fault.REFUSED]
    results = await asyncio.gather(*(ids.next() for _ in range(3)), return_exceptions=True)
    assert all(isinstance(result, StoreUnavailableError) for result in results)
    assert await ids.next() == 0


async def test_client_that_leaves_does_not_take_the_block_from_others() -> None:
    store = MemoryStore()
    store.gate.clear()
    ids = ProducerIds(ProducerIdBlocks(store))
    leaving, staying = asyncio.ensure_future(ids.next()), asyncio.ensure_future(ids.next())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    leaving.cancel()
    store.gate.set()
    assert await staying == 0
    await ids.aclose()


async def test_waiting_clients_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is told to come back."""
    monkeypatch.setattr("broker.controller.producer_ids.WAITERS_MAX", 1)
    store = MemoryStore()
    store.gate.clear()
    ids = ProducerIds(ProducerIdBlocks(store))
    first = asyncio.ensure_future(ids.next())
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as caught:
        await ids.next()
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    store.gate.set()
    assert await first == 0
    await ids.aclose()


async def test_ids_end_with_63_bits() -> None:
    """Then there are none, rather than negative ones."""
    store = MemoryStore()
    last = encode_next_producer_id(PRODUCER_ID_END - 10)
    await store.txn(then=[Put(PRODUCER_IDS_KEY, last)])
    blocks = ProducerIdBlocks(store)
    with pytest.raises(ApiError):
        await blocks.allocate(11)
    assert await blocks.allocate(10) == range(PRODUCER_ID_END - 10, PRODUCER_ID_END)


async def test_block_of_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="0 producer ids"):
        await ProducerIdBlocks(MemoryStore()).allocate(0)


async def test_a_block_is_there_before_the_first_producer_and_is_taken_once() -> None:
    """A producer that comes while the store is away gets an id."""
    store = MemoryStore()
    ids = ProducerIds(ProducerIdBlocks(store))
    ids.prefetch()
    ids.prefetch()
    await ids.aclose()
    ids.prefetch()
    assert ids.try_next() == 0
    assert store.commits == 1


async def test_a_block_that_could_not_be_had_is_fetched_by_the_first_producer() -> None:
    store = MemoryStore()
    store.faults = [Fault.LOST_REQUEST]
    ids = ProducerIds(ProducerIdBlocks(store))
    ids.prefetch()
    await ids.aclose()
    assert ids.try_next() is None
    assert await ids.next() == 0
