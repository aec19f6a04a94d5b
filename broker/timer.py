"""One shared timer for everything that waits on time.

The event loop keeps its own heap, so a handle costs about a microsecond and cancelling is a flag.
Parts of the broker ask for a `Timer` rather than for the loop: tests hand in one that is moved by
hand.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol


class TimerHandle(Protocol):
    """A callback that has been scheduled."""

    def cancel(self) -> None:
        """Never call the callback; harmless when it has run already."""
        ...


class Timer(Protocol):
    """Calls back once, later, on the loop's thread."""

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> TimerHandle:
        """Run `callback` after `delay_ms` milliseconds (0 or less: in the loop's next turn)."""
        ...


class LoopTimer:
    """The running event loop as a `Timer`."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> TimerHandle:
        """Run `callback` after `delay_ms` milliseconds."""
        return self._loop.call_later(max(delay_ms, 0.0) / 1000.0, callback)
