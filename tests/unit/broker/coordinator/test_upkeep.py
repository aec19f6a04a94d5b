"""Periodic work: one run at a time, and never a reason for no other."""

import asyncio

import pytest

from broker.coordinator.upkeep import Upkeep
from tests.fakes.timer import ManualTimer


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_runs_every_interval_until_it_is_stopped() -> None:
    timer = ManualTimer()
    upkeep = Upkeep(timer)
    runs: list[str] = []

    async def work(name: str) -> None:
        runs.append(name)

    upkeep.every(100, "a", lambda: work("a"))
    upkeep.every(150, "b", lambda: work("b"))
    for _ in range(6):
        timer.advance(50)
        await settle()
    assert runs == ["a", "b", "a", "a", "b"] or runs == ["a", "b", "a", "b", "a"]
    await upkeep.stop()
    assert timer.pending == 0
    timer.advance(1_000)
    await settle()
    assert len(runs) == 5


async def test_runs_do_not_pile_up() -> None:
    """The next one waits for the one before, which a stop cancels."""
    timer = ManualTimer()
    upkeep = Upkeep(timer)
    ends: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled")

    upkeep.every(100, "slow", slow)
    for _ in range(5):
        timer.advance(100)
        await settle()
    await upkeep.stop()
    assert ends == ["cancelled"]


async def test_a_run_that_fails_is_followed_by_the_next(caplog: pytest.LogCaptureFixture) -> None:
    timer = ManualTimer()
    upkeep = Upkeep(timer)

    async def fail() -> None:
        raise RuntimeError("bug")

    upkeep.every(100, "failing", fail)
    for _ in range(2):
        timer.advance(100)
        await settle()
    assert caplog.text.count("periodic task failed name=failing") == 2
    await upkeep.stop()
