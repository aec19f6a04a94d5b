"""Slices of time: when others have their turn."""

import asyncio

from broker.coordinator.slices import Slices
from tests.fakes.clock import ManualClock


async def test_due_when_the_time_is_used_up() -> None:
    clock = ManualClock()
    slices = Slices(clock, slice_ms=2.0, work_per_check=1)
    assert not slices.is_due()
    clock.advance(1.9)
    assert not slices.is_due()
    clock.advance(0.1)
    assert slices.is_due()
    clock.advance(5)
    await slices.pause()
    assert not slices.is_due()


def test_the_clock_is_read_now_and_then() -> None:
    clock = ManualClock()
    slices = Slices(clock, slice_ms=1.0, work_per_check=10)
    clock.advance(5)
    assert [slices.is_due() for _ in range(20)] == ([False] * 9 + [True]) * 2
    assert slices.is_due(100), "one large piece of work"


async def test_a_pause_lets_others_run() -> None:
    ran: list[int] = []
    asyncio.get_running_loop().call_soon(ran.append, 1)
    await Slices(ManualClock()).pause()
    assert ran == [1]
