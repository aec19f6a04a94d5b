"""Periodic task of one partition, run in a pool.

    waiting (a timer) ──due──> queued ──> running ──done──> waiting(interval, or what it returns)
        ^                                    └──failed────> waiting(backoff)
        └──nothing to do: the check costs no asyncio task

While there is nothing to do, a partition costs one timer per interval and no asyncio task: a broker
may lead thousands.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from config.tier import TierConfig
from storage.environment.environment import Environment
from storage.environment.timer import Timer, TimerHandle
from storage.errors import StorageError
from tiered.backoff import Backoff
from tiered.errors import TieredError
from tiered.tasks.task_pool import Job, TaskPool

_log = logging.getLogger(__name__)


class PeriodicTask:
    """See the module.

    Attributes:
        name: For log lines, e.g. `copy of t-0`.
        last_error: What the last run failed with; None: it worked.
    """

    __slots__ = (
        "_again",
        "_backoff",
        "_handle",
        "_interval_ms",
        "_is_due",
        "_is_interrupted",
        "_job",
        "_on_ended",
        "_pool",
        "_stopped",
        "_timer",
        "_work",
        "last_error",
        "name",
    )

    def __init__(
        self,
        name: str,
        *,
        timer: Timer,
        pool: TaskPool,
        backoff: Backoff,
        interval_ms: Callable[[], float],
        is_due: Callable[[], bool],
        work: Callable[[], Awaitable[float | None]],
        on_ended: Callable[[], None],
    ) -> None:
        """Does nothing before `start`.

        Args:
            name: See the class.
            timer: Time.
            pool: Where it runs.
            backoff: After failures; reset by success.
            interval_ms: From the end of one run to the next check.
            is_due: Whether there is anything to do; cheap; on the loop.
            work: Does it; returns when to check again in ms (0: at once), None: after the interval.
            on_ended: Called when a run has ended after `stop`.
        """
        self.name = name
        self._timer = timer
        self._pool = pool
        self._backoff = backoff
        self._interval_ms = interval_ms
        self._is_due = is_due
        self._work = work
        self._on_ended = on_ended
        self._handle: TimerHandle | None = None
        self._job: Job | None = None
        self._stopped = True
        self._is_interrupted = False
        self._again: float | None = None
        self.last_error: BaseException | None = None

    @property
    def is_busy(self) -> bool:
        """It is queued or runs (also for a while after `stop`)."""
        return self._job is not None

    @property
    def failures(self) -> int:
        """Runs that failed since one worked."""
        return self._backoff.failures

    def start(self) -> None:
        """Check at once, then at each interval."""
        self._stopped = False
        if self._job is None:
            self._check()

    def kick(self) -> None:
        """Something has changed: check now, unless it runs already; failures are forgotten."""
        if self._stopped or self._job is not None:
            return
        self._backoff.reset()
        self._check()

    def interrupt(self) -> None:
        """Cancel the present run, if there is one: it is not wanted now. That is no failure."""
        if self._job is not None and not self._stopped:
            self._is_interrupted = True
            self._job.cancel()

    def stop(self) -> None:
        """No further run; the present one is cancelled and `on_ended` follows if there was one."""
        self._stopped = True
        self._disarm()
        if self._job is not None:
            self._job.cancel()

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self, delay_ms: float) -> None:
        self._disarm()
        self._handle = self._timer.call_later_ms(delay_ms, self._check)

    def _check(self) -> None:
        self._disarm()
        try:
            due = self._is_due()
        except Exception as error:  # noqa: BLE001 - nothing else would check again
            self._failed(error)
            return
        if not due:
            self._arm(self._interval_ms())
            return
        # The name is set after submit returns, which may not call `done` before that.
        self._job = self._pool.submit(self._run, self._ended)

    async def _run(self) -> None:
        self._again = None
        self._again = await self._work()

    def _ended(self, error: BaseException | None) -> None:
        self._job = None
        interrupted, self._is_interrupted = self._is_interrupted, False
        if self._stopped:
            self._on_ended()
        elif error is None or (interrupted and isinstance(error, asyncio.CancelledError)):
            self.last_error = None
            self._backoff.reset()
            again = self._interval_ms() if self._again is None else self._again
            self._arm(again)
        else:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        delay_ms = self._backoff.next_ms()
        self.last_error = error
        if isinstance(error, (TieredError, StorageError, asyncio.CancelledError)):
            _log.warning("%s failed, retrying in %.0f ms: %s", self.name, delay_ms, error)
        else:
            _log.error("%s failed, retrying in %.0f ms", self.name, delay_ms, exc_info=error)
        self._arm(delay_ms)


class PeriodicTasks:
    """Makes periodic tasks whose interval and backoff are those of the settings."""

    __slots__ = ("_environment", "_on_ended", "_settings")

    def __init__(
        self,
        environment: Environment,
        settings: Callable[[], TierConfig],
        on_ended: Callable[[], None],
    ) -> None:
        """`settings` gives the present ones; `on_ended`: a run has ended after a `stop`."""
        self._environment = environment
        self._settings = settings
        self._on_ended = on_ended

    def make(
        self,
        name: str,
        pool: TaskPool,
        *,
        is_due: Callable[[], bool],
        work: Callable[[], Awaitable[float | None]],
        interval_ms: Callable[[], float] | None = None,
    ) -> PeriodicTask:
        """A task to start; `interval_ms`: None is `remote.log.manager.task.interval.ms`."""
        settings = self._settings()
        return PeriodicTask(
            name,
            timer=self._environment.timer,
            pool=pool,
            backoff=Backoff(
                self._environment.randomness,
                first_ms=settings.remote_log_manager_task_retry_backoff_ms,
                max_ms=settings.remote_log_manager_task_retry_backoff_max_ms,
                jitter=settings.remote_log_manager_task_retry_jitter,
            ),
            interval_ms=interval_ms
            or (lambda: float(self._settings().remote_log_manager_task_interval_ms)),
            is_due=is_due,
            work=work,
            on_ended=self._on_ended,
        )
