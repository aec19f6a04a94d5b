"""The store's history is bounded, by the controller alone."""

import asyncio

import pytest

from broker.controller.store.metadata_store import CompactedError, Put
from broker.controller.store_compaction import EVERY_MS, KEPT_REVISIONS, StoreCompaction
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.timer import ManualTimer


class World:
    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.store = MemoryStore(self.timer)
        self.is_controller = True
        self.revision = 0
        self.compaction = StoreCompaction(
            self.store,
            self.timer,
            is_controller=lambda: self.is_controller,
            revision=lambda: self.revision,
        )

    async def hour(self) -> None:
        self.timer.advance(EVERY_MS)
        for _ in range(5):
            await asyncio.sleep(0)

    async def fill(self, revisions: int) -> None:
        for number in range(revisions):
            await self.store.txn(then=[Put("k", b"%d" % number)])
        self.revision = KEPT_REVISIONS + self.store.revision


async def is_forgotten(store: MemoryStore, revision: int) -> bool:
    try:
        await store.range("", revision=revision)
    except CompactedError:
        return True
    return False


async def test_all_but_the_newest_revisions_are_forgotten_every_hour() -> None:
    """Here the store is at the oldest one that is kept."""
    world = World()
    await world.fill(5)
    await world.hour()
    assert await is_forgotten(world.store, world.store.revision - 1)
    assert not await is_forgotten(world.store, world.store.revision)
    await world.fill(2)
    await world.hour()
    assert await is_forgotten(world.store, world.store.revision - 1)
    world.compaction.close()
    assert world.timer.pending == 0


async def test_nothing_is_forgotten_of_a_short_history_or_by_another_broker() -> None:
    world = World()
    await world.fill(5)
    world.revision = KEPT_REVISIONS
    await world.hour()
    world.revision = KEPT_REVISIONS + world.store.revision
    world.is_controller = False
    await world.hour()
    assert not await is_forgotten(world.store, 2)
    world.compaction.close()


async def test_what_another_has_compacted_already_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    await world.fill(5)
    await world.store.compact(world.store.revision)
    await world.hour()
    assert not caplog.records
    await world.store.aclose()
    await world.hour()
    assert "not compacted" in caplog.text
    world.compaction.close()
