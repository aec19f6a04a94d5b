"""Sockets that are readable at the same moment."""

from collections import deque
from collections.abc import Callable

import pytest

from broker.network.read_budget import BUDGET_MS, CHECK_MASK, ReadBudget
from tests.fakes.clock import ManualClock


class World:
    """Connections that take a millisecond each, and iterations by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.soon: deque[Callable[[], None]] = deque()
        self.budget = ReadBudget(self.soon.append, self.clock)
        self.read: list[int] = []
        self.deferred: list[int] = []
        self.broken: int | None = None

    def readable(self, number: int) -> None:
        world = self

        class Socket:
            def defer_read(self) -> None:
                world.deferred.append(number)

            def read_deferred(self) -> None:
                if number == world.broken:
                    raise MemoryError
                world.take(number)

        if self.budget.has_budget_for(Socket()):
            self.take(number)

    def take(self, number: int) -> None:
        self.read.append(number)
        self.clock.advance(1.0)

    def next_iteration(self) -> None:
        for _ in range(len(self.soon)):
            self.soon.popleft()()


def test_few_cost_the_loop_nothing() -> None:
    world = World()
    for number in range(CHECK_MASK):
        world.readable(number)
    assert world.read == list(range(CHECK_MASK))
    assert not world.soon


def test_many_are_read_in_order_and_newcomers_in_between() -> None:
    world = World()
    count = 20 * (CHECK_MASK + 1)
    for number in range(count):
        world.readable(number)
    first = len(world.read)
    assert world.read == list(range(first))
    assert first < count
    assert world.deferred == list(range(first, count))
    world.next_iteration()
    read = len(world.read)
    assert first < read < count
    world.readable(-1)
    assert world.read[-1] == -1
    for _ in range(count):
        world.next_iteration()
    assert [number for number in world.read if number >= 0] == list(range(count))
    assert not world.soon


def test_each_iteration_ends_soon_after_its_time() -> None:
    world = World()
    for number in range(1_000):
        world.readable(number)
    before = world.clock.monotonic_ms()
    world.next_iteration()
    assert world.clock.monotonic_ms() - before <= BUDGET_MS + CHECK_MASK + 1


def test_one_that_fails_does_not_keep_the_others_from_being_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    count = 20 * (CHECK_MASK + 1)
    for number in range(count):
        world.readable(number)
    world.broken = world.deferred[0]
    for _ in range(count):
        world.next_iteration()
    assert world.read == [number for number in range(count) if number != world.broken]
    assert not world.soon
    assert "MemoryError" in caplog.text
