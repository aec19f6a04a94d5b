"""Time slices for long work on the event loop.

The work counts its units; every so often the clock is read, and when the slice is used up it yields
to the event loop:

    if slices.is_due():
        await slices.pause()
"""

import asyncio
from typing import Final

from storage.environment.clock import Clock

SLICE_MS: Final = 1.0
"""Length of a slice, after which other tasks and sockets run."""

WORK_PER_CHECK: Final = 25
"""Units of work, of some microseconds each, between two readings of the clock."""


class Slices:
    """The current slice, and when it is used up."""

    __slots__ = ("_clock", "_end_ms", "_left", "_slice_ms", "_work_per_check")

    def __init__(
        self, clock: Clock, *, slice_ms: float = SLICE_MS, work_per_check: int = WORK_PER_CHECK
    ) -> None:
        self._clock = clock
        self._slice_ms = slice_ms
        self._work_per_check = self._left = work_per_check
        self._end_ms = clock.monotonic_ms() + slice_ms

    def is_due(self, work: int = 1) -> bool:
        """Count `work` units; True when the slice is used up."""
        self._left -= work
        if self._left > 0:
            return False
        self._left = self._work_per_check
        return self._clock.monotonic_ms() >= self._end_ms

    async def pause(self) -> None:
        """Yield to the event loop, then begin a new slice."""
        await asyncio.sleep(0)
        self._end_ms = self._clock.monotonic_ms() + self._slice_ms
