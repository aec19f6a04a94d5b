"""Keeps one tier process running while there is use for it.

                      start, or the first call
    STOPPED ───────────────────────────────────> STARTING ──answers──> RUNNING
       ^                                          ^    │                  │
       │                                  backoff │    │ ends             │ ends, hangs
       │ reaped                                   │    v                  v
    STOPPING <──────────────── stop ───────────── LOST <──────────────────┘
       ^                                               (stop is possible from STARTING
       └────────────────────────────────────────────── and RUNNING as well)

What was under way when the process ends fails with TierProcessError and is not tried again here: a
copy may have uploaded a part of what it was to, and the caller knows what that means.

A call while there is no process waits for the start that is under way, or for the next one if
it is near: it takes a third of a second, and failing at once would make of a restart failed
copies, whose objects have to be deleted, and empty fetches. If that start fails, so do all that
wait. Readers have time limits of their own, which end their waiting sooner.

There never are two processes: the next one is started when the last one is reaped. A stop is not
held up by one that the kernel does not end, since it waits for a disk that hangs: it is left
behind, killed, and ends without another step when the disk answers.
"""

import asyncio
import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from storage.environment.clock import Clock
from storage.environment.timer import Timer, TimerHandle
from tiered.errors import TierProcessError
from tiered.worker.process import Processes
from tiered.worker.session import Session

LOGGER = logging.getLogger(__name__)

BACKOFF_MS: Final = 100.0
BACKOFF_MAX_MS: Final = 30_000.0
"""Between the end of a process that could not start and the next start: doubled each time."""

SERVED_BACKOFF_MAX_MS: Final = 1_000.0
"""After one that has served. It may be killed again and again, by memory that is short or by a
person; each time most of what is asked of the next one succeeds, and a start is cheap."""

STABLE_MS: Final = 60_000.0
"""A process that has run so long begins with the smallest backoff again."""

LEFT_AFTER_MS: Final = 6_000.0
"""How long a stop waits for the process to be gone: twice as long as it takes to be killed."""

NEAR_MS: Final = 5_000.0
"""A start further away than this is not waited for."""


class WorkerState(StrEnum):
    """See the module."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    LOST = "lost"
    STOPPING = "stopping"


_STEPS: Final = frozenset(
    {
        (WorkerState.STOPPED, WorkerState.STARTING),
        (WorkerState.STARTING, WorkerState.RUNNING),
        (WorkerState.STARTING, WorkerState.LOST),
        (WorkerState.RUNNING, WorkerState.LOST),
        (WorkerState.LOST, WorkerState.STARTING),
        (WorkerState.STARTING, WorkerState.STOPPING),
        (WorkerState.RUNNING, WorkerState.STOPPING),
        (WorkerState.LOST, WorkerState.STOPPING),
        (WorkerState.STOPPING, WorkerState.STOPPED),
    }
)


class Supervisor:
    """See the module. Lives on the loop's thread.

    Args:
        processes: Where they come from.
        hello: Fields of the first message to each: settings, level of the log.
        timer, clock: Of the broker.
    """

    def __init__(
        self, processes: Processes, hello: Mapping[str, Any], *, timer: Timer, clock: Clock
    ) -> None:
        self._processes = processes
        self._hello = hello
        self._timer = timer
        self._clock = clock
        self._backoff_ms = BACKOFF_MS
        self._due_ms = 0.0
        self._restarting: TimerHandle | None = None
        self._waiters: set[asyncio.Future[Session]] = set()
        self._stopped: asyncio.Future[None] | None = None
        self._session: Session | None = None
        self.state = WorkerState.STOPPED
        self.starts = 0
        self.losses = 0
        self.problem = "it has not been started"

    @property
    def restarts(self) -> int:
        """Starts after the first."""
        return max(self.starts - 1, 0)

    @property
    def current(self) -> Session | None:
        """The newest process, if it has not ended."""
        session = self._session
        return session if session is not None and session.ended is None else None

    def _step(self, state: WorkerState) -> None:
        if (self.state, state) not in _STEPS:
            raise AssertionError(f"the tier process may not go from {self.state} to {state}")
        self.state = state

    # -- start -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process unless it is started; its end is not reported but repaired."""
        if self.state is WorkerState.STOPPED:
            self._begin()

    def _begin(self) -> None:
        self._step(WorkerState.STARTING)
        self._restarting = None
        self.starts += 1
        try:
            started = self._processes.start()
        except OSError as error:
            self._session = None
            self._lose(f"it cannot be started: {error}")
            return
        self._session = Session(
            started,
            self._hello,
            timer=self._timer,
            clock=self._clock,
            on_serving=self._serving,
            on_ended=self._ended,
            on_reaped=self._reaped,
        )
        self._session.open()

    def _serving(self, session: Session) -> None:
        self._step(WorkerState.RUNNING)
        LOGGER.info("tier process running pid=%d starts=%d", session.pid, self.starts)
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(session)

    def _ended(self, session: Session, reason: str) -> None:
        since_ms = session.serving_since_ms
        if since_ms is not None:
            stable = self._clock.monotonic_ms() - since_ms >= STABLE_MS
            limit_ms = BACKOFF_MS if stable else SERVED_BACKOFF_MAX_MS
            self._backoff_ms = min(self._backoff_ms, limit_ms)
        if self.state in (WorkerState.STARTING, WorkerState.RUNNING):
            self._lose(reason)

    def _lose(self, reason: str) -> None:
        self._step(WorkerState.LOST)
        self.losses += 1
        self.problem = reason
        delay_ms = self._backoff_ms
        self._backoff_ms = min(delay_ms * 2, BACKOFF_MAX_MS)
        self._due_ms = self._clock.monotonic_ms() + delay_ms
        LOGGER.error("tier process lost reason=%s restart_in_ms=%d", reason, delay_ms)
        self._fail_waiters()
        self._restarting = self._timer.call_later_ms(delay_ms, self._restart)

    def _restart(self) -> None:
        """The time has come; if the last process is still there, its end is waited for."""
        self._restarting = None
        if self.state is WorkerState.LOST and (self._session is None or self._session.reaped):
            self._begin()

    def _reaped(self, session: Session) -> None:
        LOGGER.info("tier process exited pid=%d exit_status=%s", session.pid, session.exit_status)
        if session is not self._session:
            # It was left behind.
            return
        if self.state is WorkerState.STOPPING:
            self._finish()
        elif self._restarting is None:
            self._restart()

    def _fail_waiters(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(self._error())

    def _error(self) -> TierProcessError:
        return TierProcessError(f"the tier process is {self.state}: {self.problem}")

    # -- use -------------------------------------------------------------------------------------

    async def session(self) -> Session:
        """The running process; see the module for what a call waits for.

        Raises:
            TierProcessError: There is none, and soon will not be.
        """
        if self.state is WorkerState.RUNNING and self._session is not None:
            return self._session
        if self.state is WorkerState.STOPPED:
            self._begin()
            if self._session is None:
                # The start that this caller would wait for has failed already.
                raise self._error()
        if self.state is WorkerState.STOPPING or (
            self.state is WorkerState.LOST and self._due_ms - self._clock.monotonic_ms() > NEAR_MS
        ):
            raise self._error()
        waiter: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)

    # -- stop ------------------------------------------------------------------------------------

    async def stop(self, drain_ms: float) -> None:
        """End the process: calls under way may end within `drain_ms`, then are cancelled.

        Returns when it is gone, or LEFT_AFTER_MS after it was told to go. May be started again.
        """
        if self.state is WorkerState.STOPPED:
            return
        if self.state is WorkerState.STOPPING:
            assert self._stopped is not None
            await asyncio.shield(self._stopped)
            return
        running = self.state is WorkerState.RUNNING
        self._step(WorkerState.STOPPING)
        self.problem = "the broker stops"
        self._stopped = asyncio.get_running_loop().create_future()
        if self._restarting is not None:
            self._restarting.cancel()
            self._restarting = None
        self._fail_waiters()
        session = self._session
        if session is None or session.reaped:
            self._finish()
            return
        if running:
            await self._drain(session, drain_ms)
            session.close()
        else:
            session.end("the broker stops")
        leave = self._timer.call_later_ms(LEFT_AFTER_MS, lambda: self._leave(session))
        try:
            await asyncio.shield(self._stopped)
        finally:
            leave.cancel()

    def _leave(self, session: Session) -> None:
        if session.reaped:
            return
        LOGGER.error(
            "tier process is killed and does not end, as while a disk or a network file system "
            "hangs: the stop goes on without it pid=%d",
            session.pid,
        )
        self._finish()

    async def _drain(self, session: Session, drain_ms: float) -> None:
        idle = asyncio.ensure_future(session.drained())
        out_of_time = asyncio.Event()
        handle = self._timer.call_later_ms(drain_ms, out_of_time.set)
        late = asyncio.ensure_future(out_of_time.wait())
        try:
            await asyncio.wait((idle, late), return_when=asyncio.FIRST_COMPLETED)
        finally:
            handle.cancel()
            late.cancel()
            idle.cancel()

    def _finish(self) -> None:
        self._step(WorkerState.STOPPED)
        self._session = None
        self._backoff_ms = BACKOFF_MS
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)
