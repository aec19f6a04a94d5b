"""Failed log directories reach the store, however long it is away; else the broker fails."""

import asyncio
from uuid import UUID

import pytest

from broker.controller.images.broker_records import (
    BrokerRegistration,
    FailedDirectories,
    broker_key,
    decode_failed,
    encode_registration,
    offline_key,
)
from broker.controller.store.metadata_store import Put
from broker.membership.failed_directories import FailedDirectoryReports
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.timer import ManualTimer

A, B = UUID(int=1001), UUID(int=1002)
TIMEOUT_MS = 1_000


class World:
    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.store = MemoryStore(self.timer)
        self.failures: list[str] = []
        self.reports = FailedDirectoryReports(
            self.store,
            1,
            clock=self.timer.clock,
            timer=self.timer,
            timeout_ms=TIMEOUT_MS,
            fail=self.failures.append,
        )

    async def register(self) -> int:
        value = encode_registration(BrokerRegistration(UUID(int=9), {}))
        return (await self.store.txn(then=[Put(broker_key(1), value)])).revision

    async def said(self) -> FailedDirectories | None:
        item = await self.store.get(offline_key(1))
        return None if item is None else decode_failed(item.key, item.value)

    async def pass_ms(self, ms: float) -> None:
        for _ in range(int(ms / 50)):
            for _ in range(10):
                await asyncio.sleep(0)
            self.timer.advance(50)
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.fixture
async def world() -> World:
    return World()


async def test_failures_are_reported_with_the_epoch_of_this_life(world: World) -> None:
    """Also those from before the registration, and each once."""
    world.reports.add(A)
    await world.pass_ms(100)
    assert await world.said() is None
    epoch = await world.register()
    world.reports.begin(epoch)
    await world.pass_ms(100)
    assert await world.said() == FailedDirectories(epoch, (A,))
    world.reports.add(B)
    world.reports.add(A)
    await world.pass_ms(100)
    assert await world.said() == FailedDirectories(epoch, (A, B))
    assert world.reports.unreported == 0
    await world.reports.aclose()


async def test_a_store_that_is_away_is_asked_again(world: World) -> None:
    world.reports.begin(await world.register())
    world.store.faults.extend([Fault.REFUSED, Fault.LOST_ANSWER])
    world.reports.add(A)
    await world.pass_ms(700)
    said = await world.said()
    assert said is not None
    assert said.directories == (A,)
    assert world.failures == []


async def test_a_failure_that_nobody_hears_of_ends_the_broker(world: World) -> None:
    world.reports.begin(await world.register())
    world.store.faults.extend([Fault.REFUSED] * 20)
    world.reports.add(A)
    await world.pass_ms(2 * TIMEOUT_MS)
    assert len(world.failures) == 1
    assert "log.dir.failure.timeout.ms" in world.failures[0]


async def test_a_later_life_is_not_spoken_for(world: World) -> None:
    epoch = await world.register()
    await world.register()
    world.reports.begin(epoch)
    world.reports.add(A)
    await world.pass_ms(300)
    assert await world.said() is None
    assert world.failures == []


async def test_directories_without_room_come_and_go(world: World) -> None:
    """They end no broker, however long the store is away."""
    epoch = await world.register()
    world.reports.begin(epoch)
    world.store.faults.extend([Fault.REFUSED] * 8)
    world.reports.set_full((B,))
    await world.pass_ms(2 * TIMEOUT_MS)
    assert await world.said() == FailedDirectories(epoch, (), (B,))
    world.reports.set_full(())
    await world.pass_ms(200)
    assert await world.said() == FailedDirectories(epoch, ())
    assert world.failures == []
