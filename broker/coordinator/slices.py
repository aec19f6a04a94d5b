"""Long work on the event loop, in slices of time.

Whoever has much to do counts what was done; every so often the clock is read, and when the slice is
used up the loop runs whatever else is ready:

    if slices.is_due():
        await slices.pause()
"""

import asyncio
from typing import Final

from storage.environment.clock import Clock

SLICE_MS: Final = 1.0
"""Work before other tasks and sockets run."""

WORK_PER_LOOK: Final = 25
"""Units of work, of some microseconds each, between two looks at the clock."""


class Slices:
    """Says when to pause."""

    __slots__ = ("_clock", "_end_ms", "_left", "_slice_ms", "_work_per_look")

    def __init__(
        self, clock: Clock, *, slice_ms: float = SLICE_MS, work_per_look: int = WORK_PER_LOOK
    ) -> None:
        self._clock = clock
        self._slice_ms = slice_ms
        self._work_per_look = self._left = work_per_look
        self._end_ms = clock.monotonic_ms() + slice_ms

    def is_due(self, work: int = 1) -> bool:
        """Count `work` units; True when the slice is used up."""
        self._left -= work
        if self._left > 0:
            return False
        self._left = self._work_per_look
        return self._clock.monotonic_ms() >= self._end_ms

    async def pause(self) -> None:
        """Let the loop run whatever is ready, then begin a new slice."""
        await asyncio.sleep(0)
        self._end_ms = self._clock.monotonic_ms() + self._slice_ms
