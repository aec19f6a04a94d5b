"""When a line about a lasting condition is logged: at once, and again after a while.

What fails is tried again all the time, by clients and by the broker itself; one line says as much
as a thousand.
"""

from typing import Final

from storage.environment.clock import Clock

AGAIN_MS: Final = 10_000.0
"""Default interval."""


class RepeatedLine:
    """The pace of one such line. On one thread, or with a line too many now and then."""

    __slots__ = ("_clock", "_due_ms", "_interval_ms")

    def __init__(self, clock: Clock, interval_ms: float = AGAIN_MS) -> None:
        """The first is due at once. `interval_ms`: between two."""
        self._clock = clock
        self._interval_ms = interval_ms
        self._due_ms = float("-inf")

    def is_due(self) -> bool:
        """Whether it is to be logged now; then it is not due for the interval."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._due_ms:
            return False
        self._due_ms = now_ms + self._interval_ms
        return True
