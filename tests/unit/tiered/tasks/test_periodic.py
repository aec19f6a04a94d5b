"""Looking costs no task; failures back off; a stop ends the run."""

import asyncio
from collections.abc import Callable

import pytest

from config.tier import TierConfig
from storage.environment.randomness import SeededRandomness
from tests.fakes.environment import FakeEnvironment
from tests.fakes.timer import ManualTimer
from tiered.backoff import Backoff
from tiered.errors import StoreUnavailableError
from tiered.tasks.periodic import PeriodicTask, PeriodicTasks
from tiered.tasks.task_pool import TaskPool


class Rig:
    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.pool = TaskPool("test", 1)
        self.due = False
        self.looks = 0
        self.runs = 0
        self.stops = 0
        self.answer: float | None = None
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.task = PeriodicTask(
            "test",
            timer=self.timer,
            pool=self.pool,
            backoff=Backoff(SeededRandomness(1), first_ms=500, max_ms=2000, jitter=0.0),
            interval_ms=lambda: 30_000,
            is_due=self._is_due,
            work=self._work,
            on_ended=self._on_ended,
        )

    def _is_due(self) -> bool:
        self.looks += 1
        return self.due

    async def _work(self) -> float | None:
        self.runs += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.answer

    def _on_ended(self) -> None:
        self.stops += 1

    async def advance(self, ms: float) -> None:
        self.timer.advance(ms)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_looks_every_interval_without_a_task() -> None:
    rig = Rig()
    rig.task.start()
    for _ in range(3):
        await rig.advance(30_000)
    assert (rig.looks, rig.runs, rig.timer.pending) == (4, 0, 1)


async def test_runs_when_due_and_again_as_it_asks() -> None:
    rig = Rig()
    rig.due, rig.answer = True, 10.0
    rig.task.start()
    await rig.advance(0)
    assert rig.runs == 1
    rig.answer = None
    await rig.advance(10)
    assert rig.runs == 2
    await rig.advance(29_999)
    assert rig.runs == 2
    await rig.advance(1)
    assert rig.runs == 3


async def test_failures_back_off_and_success_resets() -> None:
    rig = Rig()
    rig.due, rig.error = True, StoreUnavailableError("down")
    rig.task.start()
    await rig.advance(0)
    for wait, runs in ((500, 2), (1000, 3), (2000, 4), (2000, 5)):
        await rig.advance(wait - 1)
        assert rig.runs == runs - 1
        await rig.advance(1)
        assert rig.runs == runs
    assert rig.task.last_error is rig.error
    rig.error = None
    rig.task.kick()
    await rig.advance(0)
    assert (rig.runs, rig.task.failures) == (6, 0)
    assert rig.task.last_error is None


async def test_an_interrupted_run_is_no_failure() -> None:
    rig = Rig()
    rig.due = True
    rig.gate.clear()
    rig.task.interrupt()
    rig.task.start()
    await rig.advance(0)
    rig.task.interrupt()
    await rig.advance(0)
    assert (rig.task.is_busy, rig.task.failures, rig.task.last_error) == (False, 0, None)
    rig.gate.set()
    await rig.advance(29_999)
    assert rig.runs == 1
    await rig.advance(1)
    assert rig.runs == 2


async def test_stop_cancels_and_says_so_when_it_has_ended() -> None:
    rig = Rig()
    rig.due = True
    rig.gate.clear()
    rig.task.start()
    await rig.advance(0)
    assert rig.task.is_busy
    rig.task.kick()
    rig.task.stop()
    assert rig.stops == 0
    await rig.advance(0)
    assert (rig.stops, rig.task.is_busy, rig.timer.pending) == (1, False, 0)
    rig.task.kick()
    await rig.advance(100_000)
    assert rig.runs == 1


@pytest.mark.parametrize("error", [StoreUnavailableError("metadata"), KeyError("a mistake")])
async def test_a_look_that_fails_is_a_failure(error: Exception) -> None:
    """Whatever it is: the task goes on."""
    rig = Rig()

    def fails() -> bool:
        raise error

    rig.task._is_due = fails
    rig.task.start()
    assert rig.task.failures == 1
    assert rig.timer.pending == 1


async def test_made_tasks_follow_the_settings_of_the_moment() -> None:
    """The interval is read at each round; a task of another interval has its own."""
    environment = FakeEnvironment()
    settings = TierConfig(remote_log_manager_task_interval_ms=1000)
    looks: list[str] = []
    tasks = PeriodicTasks(environment, lambda: settings, on_ended=lambda: None)

    def look(name: str) -> Callable[[], bool]:
        def is_due() -> bool:
            looks.append(name)
            return False

        return is_due

    async def work() -> None:
        raise AssertionError("nothing is due")

    pool = TaskPool("test", 1)
    tasks.make("a", pool, is_due=look("a"), work=work).start()
    tasks.make("b", pool, is_due=look("b"), work=work, interval_ms=lambda: 5000.0).start()
    environment.timer.advance(0)
    looks.clear()
    environment.timer.advance(2000)
    assert looks == ["a", "a"]
    settings = TierConfig(remote_log_manager_task_interval_ms=10_000)
    environment.timer.advance(1000)
    looks.clear()
    environment.timer.advance(9000)
    assert "b" in looks
    assert "a" not in looks
