"""Deadlines of awaits, on the timer that is passed in, so that tests move the time.

    async with Deadline(timer, 30_000, "publishing a copy"):
        await metadata.add(segment)

When the time has passed, what is awaited is cancelled and StoreTimeoutError is raised. The block
must end when it is cancelled; whatever implements `Tier` or the metadata promises that.

Source: CPython, asyncio/timeouts.py, whose counting of cancellations this follows.
"""

import asyncio
from types import TracebackType
from typing import Final

from storage.environment.timer import Timer, TimerHandle
from tiered.errors import StoreTimeoutError

METADATA_DEADLINE_MS: Final = 30_000
"""For one event to be published: appended, flushed and read back."""

BYTES_PER_CALL: Final = 64 * 1024 * 1024
"""A store's call gets its total deadline once per so many started bytes (StoreDeadlines)."""


def call_deadline_ms(call_timeout_ms: int, calls: int, size: int = 0) -> int:
    """For something that makes `calls` calls to the store, one of which moves `size` bytes."""
    return call_timeout_ms * (calls + -(-size // BYTES_PER_CALL))


class Deadline:
    """See the module. Used once."""

    __slots__ = ("_cancelling", "_delay_ms", "_expired", "_handle", "_task", "_timer", "_what")

    def __init__(self, timer: Timer, delay_ms: float, what: str) -> None:
        """Begin to count at `async with`; `what` is for the error's text."""
        self._timer = timer
        self._delay_ms = delay_ms
        self._what = what
        self._expired = False
        self._handle: TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0

    async def __aenter__(self) -> "Deadline":
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()
        self._handle = self._timer.call_later_ms(self._delay_ms, self._expire)
        return self

    def _expire(self) -> None:
        assert self._task is not None
        self._expired = True
        self._task.cancel()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._handle is not None
        assert self._task is not None
        self._handle.cancel()
        if not self._expired:
            return
        # Another caller may have cancelled the task too: then that is what it ends with.
        if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise StoreTimeoutError(
                f"{self._what}: not finished after {self._delay_ms:.0f} ms"
            ) from error


class CallDeadlines:
    """Deadlines of work that makes a known number of calls to the object store.

    Attributes:
        call_timeout_ms: Of one call, its retries included.
    """

    __slots__ = ("_timer", "call_timeout_ms")

    def __init__(self, timer: Timer, call_timeout_ms: int) -> None:
        self._timer = timer
        self.call_timeout_ms = call_timeout_ms

    def of(self, calls: int, what: str, *, size: int = 0, extra_ms: int = 0) -> Deadline:
        """The deadline of `calls` calls, one of which moves `size` bytes, and `extra_ms` beside."""
        delay_ms = call_deadline_ms(self.call_timeout_ms, calls, size) + extra_ms
        return Deadline(self._timer, delay_ms, what)


async def sleep_ms(timer: Timer, delay_ms: float) -> None:
    """Wait; cancellable."""
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    handle = timer.call_later_ms(delay_ms, wake)
    try:
        await woken
    finally:
        handle.cancel()
