"""A lease is kept while the loop beats, and counted from before each renewal was sent."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker.controller.store.metadata_store import (
    LeaseNotFoundError,
    StoreClosedError,
    StoreError,
    StoreUnavailableError,
)
from broker.membership.lease_keeper import Beat, LeaseKeeper, valid_until
from broker.membership.validity import Validity
from broker.runtime.pauses import pause
from tests.fakes.timer import ManualTimer

TTL_MS = 3_000
INTERVAL_MS = 500


class World:
    """A keeper, its store, its owner."""

    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.clock = self.timer.clock
        self.validity = Validity()
        self.beat = Beat(0.0)
        self.renewals: list[int] = []
        self.questions = 0
        self.answer: int | StoreError = TTL_MS
        self.answer_takes_ms = 0.0
        self.losses: list[int] = []
        self.lates: list[tuple[int, float]] = []
        self.keeper = LeaseKeeper(
            self.validity,
            self.beat,
            self,
            clock=self.clock,
            interval_ms=INTERVAL_MS,
            stall_max_ms=4_000,
            deaf_after_ms=TTL_MS,
        )
        self.task = asyncio.ensure_future(
            self.keeper.run(self.renew, self.ask, lambda ms: pause(self.timer, ms))
        )

    async def renew(self, lease: int) -> int:
        self.renewals.append(lease)
        self.clock.advance(self.answer_takes_ms)
        if isinstance(self.answer, StoreError):
            raise self.answer
        return self.answer

    async def ask(self) -> None:
        self.questions += 1
        if isinstance(self.answer, StoreError):
            raise self.answer

    def lost(self, lease: int) -> None:
        self.losses.append(lease)

    def late(self, lease: int, until_ms: float) -> None:
        self.lates.append((lease, until_ms))

    def hold(self, lease: int) -> None:
        until_ms = valid_until(self.clock.monotonic_ms(), TTL_MS)
        self.keeper.keep(lease, self.validity.grant(until_ms))

    async def round(self) -> None:
        """One interval."""
        await self.turns()
        self.timer.advance(INTERVAL_MS)
        await self.turns()

    async def turns(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    world.task.cancel()
    await asyncio.wait([world.task])


async def test_a_lease_is_good_from_before_its_renewal_was_sent(world: World) -> None:
    world.hold(7)
    world.answer_takes_ms = 300
    await world.round()
    assert world.renewals == [7]
    assert world.keeper.renewed_ms == INTERVAL_MS
    assert world.validity.until_ms == INTERVAL_MS + TTL_MS * 0.97 - 100


async def test_nothing_is_renewed_without_a_lease(world: World) -> None:
    await world.round()
    world.hold(7)
    world.keeper.release()
    await world.round()
    assert world.renewals == []


async def test_an_answer_that_does_not_come_moves_nothing(world: World) -> None:
    """The validity passes by itself; the next round tries again."""
    world.hold(7)
    before_ms = world.validity.until_ms
    world.answer = StoreUnavailableError("away")
    await world.round()
    assert (world.validity.until_ms, world.keeper.failures) == (before_ms, 1)
    world.answer = TTL_MS
    await world.round()
    assert world.validity.until_ms > before_ms
    assert world.lates == []


async def test_a_late_renewal_brings_nothing_back_by_itself(world: World) -> None:
    """Others may have acted meanwhile: the live key must be put again first."""
    world.hold(7)
    before_ms = world.validity.until_ms
    world.answer_takes_ms = 2_500
    await world.round()
    assert world.validity.until_ms == before_ms
    assert world.lates == [(7, valid_until(INTERVAL_MS, TTL_MS))]


async def test_who_hears_nothing_for_a_session_renews_no_more(world: World) -> None:
    """The store may hear it: its lease would live on, and its partitions stand still."""
    world.hold(7)
    world.answer = StoreUnavailableError("no answer")
    for _ in range(20):
        world.beat.at_ms = world.clock.monotonic_ms()
        await world.round()
    assert len(world.renewals) == TTL_MS // INTERVAL_MS
    assert world.questions == 20 - TTL_MS // INTERVAL_MS
    assert world.keeper.failures == 20
    world.answer = TTL_MS
    await world.round()
    assert len(world.renewals) == TTL_MS // INTERVAL_MS + 1
    assert [lease for lease, _ in world.lates] == [7]
    await world.round()
    assert world.questions == 20 - TTL_MS // INTERVAL_MS + 1


async def test_a_lease_that_has_ended_is_lost_once(world: World) -> None:
    world.hold(7)
    world.answer = LeaseNotFoundError("gone")
    await world.round()
    assert world.validity.until_ms < 0
    await world.round()
    assert (world.losses, world.renewals) == ([7], [7])


async def test_a_data_loop_that_stands_still_loses_its_lease(world: World) -> None:
    """But not for a stall that is short; and it is renewed again with the next beat."""
    world.hold(7)
    for _ in range(8):
        await world.round()
    assert len(world.renewals) == 8
    await world.round()
    assert (len(world.renewals), world.keeper.stalls) == (8, 1)
    world.beat.at_ms = world.clock.monotonic_ms()
    await world.round()
    assert len(world.renewals) == 9


async def test_an_answer_for_a_lease_that_was_given_up_extends_nothing(world: World) -> None:
    world.hold(7)

    async def renew(lease: int) -> int:
        world.keeper.release()
        world.validity.end()
        return TTL_MS

    world.task.cancel()
    world.task = asyncio.ensure_future(
        world.keeper.run(renew, world.ask, lambda ms: pause(world.timer, ms))
    )
    await world.round()
    assert world.validity.until_ms < 0
    assert world.lates == []


async def test_it_ends_with_the_store(world: World) -> None:
    world.hold(7)
    world.answer = StoreClosedError("closed")
    await world.round()
    assert world.task.done()
    assert world.task.exception() is None


async def test_how_long_the_store_is_silent(world: World) -> None:
    """Counted from before the newest renewal that was answered; nothing is kept, nothing counts."""
    assert world.keeper.silent_ms == 0
    world.hold(1)
    await world.round()
    assert world.keeper.silent_ms == 0
    world.answer = StoreUnavailableError("away")
    for _ in range(3):
        await world.round()
    assert world.keeper.silent_ms == 3 * INTERVAL_MS
    world.answer = TTL_MS
    await world.round()
    assert world.keeper.silent_ms == 0
    world.keeper.release()
    await world.round()
    assert world.keeper.silent_ms == 0
