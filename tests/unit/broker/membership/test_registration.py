"""Registration: once in a life of the process, and never beside another that lives."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from broker.controller.images.broker_records import (
    BrokerEndpoint,
    BrokerRegistration,
    broker_key,
    live_key,
)
from broker.controller.store.metadata_store import LeaseNotFoundError, Put
from broker.membership.registration import DuplicateBrokerError, ExpelledError, Registrar
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.timer import ManualTimer

SESSION_MS = 3_000
MINE = BrokerRegistration(
    UUID(int=1), {"PLAINTEXT": BrokerEndpoint("here", 9092)}, directories=(UUID(int=10),)
)
NEXT = replace(MINE, incarnation=UUID(int=2))
OTHERS = replace(MINE, incarnation=UUID(int=3), directories=(UUID(int=11),))


class World:
    """A store whose leases end on the test's clock."""

    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.store = MemoryStore(self.timer)
        self.registrar = self.registrar_after()

    async def register(self, registration: BrokerRegistration) -> int:
        """What has registered is over for certain, as far as the next process can see."""
        lease = await self.store.grant_lease(SESSION_MS)
        epoch = await self.registrar.register(registration, lease)
        self.registrar = self.registrar_after(epoch)
        return epoch

    def registrar_after(self, *past: int) -> Registrar:
        return Registrar(
            self.store,
            1,
            clock=self.timer.clock,
            timer=self.timer,
            session_ms=SESSION_MS,
            past=past,
        )

    async def waits(self, directories: tuple[UUID, ...]) -> int:
        await self.registrar.wait_for_other(directories)
        return 0

    async def over_time(self, task: "asyncio.Task[int]", keep: int = 0) -> None:
        """Move the clock until the task is done; `keep`: a lease that is renewed all the time."""
        for _ in range(1_000):
            await asyncio.sleep(0)
            if task.done():
                return
            if keep:
                await self.store.keep_lease_alive(keep)
            self.timer.advance(50)
        raise AssertionError("it did not end")


async def test_the_revision_of_the_registration_is_the_epoch() -> None:
    world = World()
    epoch = await world.register(MINE)
    registered, live = await world.store.get(broker_key(1)), await world.store.get(live_key(1))
    assert registered is not None
    assert live is not None
    assert (registered.mod_revision, live.mod_revision) == (epoch, epoch)
    assert (registered.lease, live.lease != 0) == (0, True)


async def test_a_past_life_on_these_directories_is_ended_at_once() -> None:
    """Before anything is loaded: what it led gets other leaders meanwhile."""
    world = World()
    first = await world.register(MINE)
    await world.registrar.end_past_life(NEXT)
    assert await world.store.get(live_key(1)) is None
    assert await world.register(NEXT) > first


async def test_a_past_life_is_ended_by_the_registration_too() -> None:
    """One that registers again between the look and the registration: a process that had hung."""
    world = World()
    first = await world.register(MINE)
    assert await world.register(NEXT) > first


async def test_another_broker_that_lives_is_left_alone() -> None:
    world = World()
    await world.register(OTHERS)
    await world.registrar.end_past_life(MINE)
    item = await world.store.get(live_key(1))
    assert item is not None
    task = asyncio.ensure_future(world.register(MINE))
    await world.over_time(task, keep=item.lease)
    with pytest.raises(DuplicateBrokerError, match="PLAINTEXT://here:9092, with other directories"):
        await task
    assert await world.store.get(live_key(1)) == item


async def test_a_copy_of_the_directories_of_a_broker_that_lives_is_refused() -> None:
    """Its ids are the same, and it is another directory that this process has locked."""
    world = World()
    epoch = await world.register(MINE)
    world.registrar = world.registrar_after(epoch - 1)
    live = await world.store.get(live_key(1))
    assert live is not None
    await world.registrar.end_past_life(NEXT)
    task = asyncio.ensure_future(world.register(NEXT))
    await world.over_time(task, keep=live.lease)
    with pytest.raises(DuplicateBrokerError, match="directories that these are a copy of"):
        await task
    task = asyncio.ensure_future(world.waits(NEXT.directories))
    await world.over_time(task, keep=live.lease)
    with pytest.raises(DuplicateBrokerError, match="directories that these are a copy of"):
        await task
    assert await world.store.get(live_key(1)) == live


async def test_a_copy_takes_the_place_of_a_broker_whose_session_has_ended() -> None:
    """A volume that was moved to another machine, say."""
    world = World()
    epoch = await world.register(MINE)
    world.registrar = world.registrar_after()
    task = asyncio.ensure_future(world.register(NEXT))
    await world.over_time(task)
    assert await task > epoch


@pytest.mark.parametrize("late_ms", [3_000 + 1_000 + 500, 2_000 + 3_000 + 1_000 + 500])
async def test_a_lease_that_gets_its_whole_time_again_is_waited_for(late_ms: int) -> None:
    """Etcd gives it to a dead broker's lease, and its election timeout, when it starts with it."""
    world = World()
    first = await world.register(OTHERS)
    item = await world.store.get(live_key(1))
    assert item is not None
    tasks = [
        asyncio.ensure_future(world.waits(MINE.directories)),
        asyncio.ensure_future(world.register(MINE)),
    ]
    for _ in range(late_ms // 50):
        await asyncio.sleep(0)
        await world.store.keep_lease_alive(item.lease)
        world.timer.advance(50)
    await world.store.revoke_lease(item.lease)
    for task in tasks:
        await world.over_time(task)
    assert await tasks[0] == 0
    assert await tasks[1] > first


async def test_another_broker_that_has_died_gives_way() -> None:
    """Its disk was replaced, say: its session is waited for."""
    world = World()
    first = await world.register(OTHERS)
    task = asyncio.ensure_future(world.register(MINE))
    await world.over_time(task)
    assert await task > first


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST])
async def test_a_registration_of_unknown_outcome_is_made_once(fault: Fault) -> None:
    world = World()
    lease = await world.store.grant_lease(60_000)
    world.store.faults = [fault]
    task = asyncio.ensure_future(world.registrar.register(MINE, lease))
    await world.over_time(task)
    item = await world.store.get(broker_key(1))
    assert item is not None
    assert (item.mod_revision, item.version) == (await task, 1)


async def test_a_lease_that_ended_meanwhile_registers_nobody() -> None:
    world = World()
    lease = await world.store.grant_lease(SESSION_MS)
    await world.store.revoke_lease(lease)
    with pytest.raises(LeaseNotFoundError):
        await world.registrar.register(MINE, lease)
    assert await world.store.get(broker_key(1)) is None


async def test_coming_back_keeps_the_epoch() -> None:
    world = World()
    epoch = await world.register(MINE)
    lease = await world.store.grant_lease(SESSION_MS)
    revision = await world.registrar.come_back(MINE, epoch, lease)
    registered, live = await world.store.get(broker_key(1)), await world.store.get(live_key(1))
    assert registered is not None
    assert live is not None
    assert (registered.mod_revision, live.mod_revision, live.lease) == (epoch, revision, lease)


async def test_who_was_replaced_does_not_come_back() -> None:
    world = World()
    epoch = await world.register(MINE)
    await world.register(NEXT)
    before = await world.store.get(live_key(1))
    with pytest.raises(ExpelledError):
        await world.registrar.come_back(MINE, epoch, await world.store.grant_lease(SESSION_MS))
    assert await world.store.get(live_key(1)) == before


async def test_a_registration_that_was_taken_away_is_not_brought_back() -> None:
    world = World()
    epoch = await world.register(MINE)
    await world.store.txn(then=[Put(broker_key(1), b"{}")])
    with pytest.raises(ExpelledError):
        await world.registrar.come_back(MINE, epoch, await world.store.grant_lease(SESSION_MS))


async def test_a_start_waits_for_another_broker_and_touches_nothing() -> None:
    """Until its session ends, or in vain; its own past is no other."""
    world = World()
    await world.registrar.wait_for_other(())
    await world.register(OTHERS)
    item = await world.store.get(live_key(1))
    assert item is not None
    await world.registrar.wait_for_other(OTHERS.directories)
    for keep in (item.lease, 0):
        waiting = asyncio.ensure_future(world.waits(MINE.directories))
        await world.over_time(waiting, keep)
        if keep:
            with pytest.raises(DuplicateBrokerError):
                await waiting
        else:
            assert await waiting == 0
