"""One piece of work, however many wait for it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.fakes.clock import ManualClock
from tests.unit.tiered.fetch.remote_history import settle
from tiered.cache import flight as flight_module
from tiered.cache.fair_queue import FairQueue
from tiered.cache.flight import Flight, Flights
from tiered.errors import QueueFullError, StoreUnavailableError, TierProcessError

A, B = ("a", ""), ("b", "")


class _World:
    def __init__(self, *, running: int = 2, waiting: int = 2, finish: bool = True) -> None:
        clock = ManualClock()
        self.queue = FairQueue(running, waiting)
        self.flights: Flights[str, str] = Flights(
            "things", self.queue, clock, finish_abandoned=finish
        )
        self.gate = asyncio.Event()
        self.works: list[str] = []
        self.checks: list[str] = []
        self.found: str | None = None
        self.error: Exception | None = None
        self.cancelled = 0
        self.told: list[str] = []

    def _work(self, key: str) -> Callable[[], Coroutine[Any, Any, str]]:
        async def work() -> str:
            self.works.append(key)
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            if self.error is not None:
                raise self.error
            return key.upper()

        return work

    async def _check(self) -> str | None:
        self.checks.append("check")
        await asyncio.sleep(0)
        if self.found == "raise":
            raise StoreUnavailableError("check")
        return self.found

    def demand(
        self, key: str, client: tuple[str, str] = A, *, check: bool = False, name: str = ""
    ) -> tuple[Flight[str, str], Callable[[], None]]:
        def waiter() -> None:
            self.told.append(name or key)

        flight = self.flights.demand(
            key,
            waiter,
            client,
            check=self._check if check else None,
            work=self._work(key),
            expected_bytes=7,
        )
        return flight, waiter

    def prefetch(self, key: str, *, check: bool = False) -> bool:
        return self.flights.prefetch(
            key, A, check=self._check if check else None, work=self._work(key)
        )


async def test_many_wait_and_all_are_told_once() -> None:
    world = _World()
    flight, _ = world.demand("k", name="1")
    again, _ = world.demand("k", B, name="2")
    assert again is flight
    await settle()
    world.gate.set()
    await settle()
    assert world.works == ["k"]
    assert world.told == ["1", "2"]
    assert flight.result == "K"
    assert len(world.flights) == world.queue.running == 0
    assert (world.flights.begun, world.flights.joined) == (1, 1)


async def test_an_error_is_everybodys_and_is_not_kept() -> None:
    world = _World()
    world.error = StoreUnavailableError("503")
    world.gate.set()
    flight, _ = world.demand("k")
    await settle()
    assert flight.error is world.error
    world.error = None
    flight, _ = world.demand("k")
    await settle()
    assert flight.result == "K"


async def test_what_the_check_finds_needs_no_work() -> None:
    world = _World(running=0, waiting=0)
    world.found = "here"
    flight, _ = world.demand("k", check=True)
    await settle()
    assert flight.result == "here"
    assert world.works == []


async def test_what_it_does_not_find_is_worked_for() -> None:
    world = _World()
    world.gate.set()
    flight, _ = world.demand("k", check=True)
    await settle()
    assert flight.result == "K"
    assert world.checks == ["check"]


async def test_a_check_may_fail() -> None:
    world = _World()
    world.found = "raise"
    flight, _ = world.demand("k", check=True)
    await settle()
    assert isinstance(flight.error, StoreUnavailableError)
    assert world.works == []


async def test_no_room_is_told_without_a_call() -> None:
    world = _World(running=0, waiting=0)
    flight, _ = world.demand("k")
    assert flight.landed
    assert isinstance(flight.error, QueueFullError)
    assert world.told == []
    assert not world.prefetch("k")


async def test_no_room_after_a_check_is_told_by_a_call() -> None:
    world = _World(running=0, waiting=0)
    flight, _ = world.demand("k", check=True)
    await settle()
    assert isinstance(flight.error, QueueFullError)
    assert world.told == ["k"]


async def test_who_gives_way_to_others_is_told() -> None:
    world = _World(running=0, waiting=2)
    world.demand("1")
    pushed, _ = world.demand("2")
    world.demand("3", B)
    assert isinstance(pushed.error, QueueFullError)
    assert world.told == ["2"]


async def test_the_last_to_leave_forgets_what_waits() -> None:
    world = _World(running=0)
    flight, first = world.demand("k", name="1")
    _, second = world.demand("k", name="2")
    flight.leave(first)
    assert len(world.flights) == 1
    flight.leave(second)
    assert len(world.flights) == world.queue.waiting == 0
    flight.leave(second)


@pytest.mark.parametrize("finish", [True, False])
async def test_the_last_to_leave_stops_work_by_policy(finish: bool) -> None:
    world = _World(finish=finish)
    flight, waiter = world.demand("k")
    await settle()
    flight.leave(waiter)
    await settle()
    assert world.cancelled == (0 if finish else 1)
    assert world.flights.cancelled_bytes == (0 if finish else 7)
    assert world.queue.running == (1 if finish else 0)
    world.gate.set()
    await settle()
    assert world.told == []
    assert world.queue.running == 0


async def test_work_that_never_took_its_first_step_gives_its_place_back() -> None:
    world = _World(finish=False)
    flight, waiter = world.demand("k")
    flight.leave(waiter)
    await settle()
    assert world.works == []
    assert world.queue.running == 0


async def test_a_new_one_may_begin_while_the_old_one_is_being_stopped() -> None:
    world = _World(finish=False)
    flight, waiter = world.demand("k")
    await settle()
    flight.leave(waiter)
    again, _ = world.demand("k")
    assert again is not flight
    world.gate.set()
    await settle()
    assert again.result == "K"
    assert world.told == ["k"]


async def test_kept_work_goes_on_though_nobody_waits() -> None:
    world = _World(running=1, finish=False)
    world.demand("first")
    flight, waiter = world.demand("k")
    flight.leave(waiter, keep=True)
    world.gate.set()
    await settle()
    assert "k" in world.works


async def test_who_joins_a_prefetch_is_served_as_a_reader() -> None:
    world = _World(running=1)
    world.demand("now")
    assert world.prefetch("ahead")
    assert world.prefetch("ahead"), "under way already"
    world.demand("later")
    world.demand("ahead", B)
    assert len(world.queue._prefetches) == 0
    world.gate.set()
    await settle()
    assert world.told == ["now", "later", "ahead"]


async def test_a_listener_is_told_and_holds_nothing_up() -> None:
    world = _World()
    flight, waiter = world.demand("k")
    flight.listen(lambda: world.told.append("listener"))
    world.gate.set()
    await settle()
    assert world.told == ["k", "listener"]
    flight.leave(waiter)


async def test_a_waiter_that_fails_does_not_harm_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = _World()

    def fails() -> None:
        raise ValueError("waiter")

    flight, _ = world.demand("k")
    flight.join(fails, A)
    flight.join(lambda: world.told.append("last"), A)
    world.gate.set()
    await settle()
    assert world.told == ["k", "last"]
    assert "remote log reader failed after its download" in caplog.text


async def test_closing_stops_everything_and_tells_nobody() -> None:
    world = _World(running=1)
    world.demand("1")
    world.demand("2")
    world.demand("3", check=True)
    await settle()
    world.flights.close()
    await settle()
    assert world.told == []
    assert world.cancelled == 1
    assert world.queue.running == world.queue.waiting == len(world.flights) == 0


async def test_work_that_is_ended_from_outside_is_an_error() -> None:
    world = _World()
    flight, _ = world.demand("k")
    await settle()
    (task,) = [t for t in asyncio.all_tasks() if "_run_work" in repr(t)]
    task.cancel()
    await settle()
    assert isinstance(flight.error, TierProcessError)


async def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_module, "FLIGHTS_MAX", 1)
    world = _World()
    world.demand("1")
    flight, _ = world.demand("2")
    assert isinstance(flight.error, QueueFullError)
    assert not world.prefetch("3")
    assert world.queue.dropped_prefetches == 1
    world.flights.close()
