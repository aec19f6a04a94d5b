"""Periodic work of a coordinator: expiry, pruning, snapshots.

start ──interval──> run ──interval──> run, or nothing while the run before is not over ...
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine

from broker.runtime.timer import Timer, TimerHandle

logger = logging.getLogger(__name__)


class Upkeep:
    """Periodic coroutines, each with at most one run at a time."""

    __slots__ = ("_tasks", "_timer", "_timers")

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._timers: dict[str, TimerHandle] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def every(
        self, interval_ms: float, name: str, work: Callable[[], Coroutine[None, None, None]]
    ) -> None:
        """Run `work` every `interval_ms`, for the first time after one interval."""

        def begin() -> None:
            task = self._tasks.get(name)
            if task is None or task.done():
                self._tasks[name] = asyncio.get_running_loop().create_task(_run(name, work))
            self._timers[name] = self._timer.call_later_ms(interval_ms, begin)

        self._timers[name] = self._timer.call_later_ms(interval_ms, begin)

    async def stop(self) -> None:
        """Cancel all of them, and runs that are under way."""
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
    try:
        await work()
    except Exception:
        # The next run starts over.
        logger.exception("periodic task failed name=%s", name)
