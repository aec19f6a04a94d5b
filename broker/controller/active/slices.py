"""Work in slices: planning shares the loop with the data plane, and lets it turn."""

import asyncio
from typing import Final

from storage.environment.clock import Clock

SLICE_MS: Final = 2.0
"""How long planning may hold the loop."""


class Slices:
    """One piece of work; `turn` is awaited between its steps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = clock.monotonic_ms() + SLICE_MS

    @property
    def is_over(self) -> bool:
        """Whether this slice has been used up."""
        return self._clock.monotonic_ms() >= self._until

    async def turn(self) -> None:
        """Let the loop turn when the slice has been used up."""
        if self.is_over:
            await asyncio.sleep(0)
            self._until = self._clock.monotonic_ms() + SLICE_MS
