"""Lag of the event loop: the one number that shows whether the broker keeps up."""

from bisect import bisect_left
from typing import Final

from broker.runtime.timer import Timer, TimerHandle
from storage.environment.clock import Clock

PERIOD_MS: Final = 100.0
BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
TIMER_RESOLUTION_MS: Final = 5.0
"""A timer may be this late by design; it is not counted as lag."""


class LoopLag:
    """Measures the lag: sets a timer every 100 ms and records how late it fires."""

    __slots__ = ("_clock", "_due_ms", "_handle", "_timer", "counts", "max_ms", "total_s")

    def __init__(self, timer: Timer, clock: Clock) -> None:
        self._timer = timer
        self._clock = clock
        self._due_ms = 0.0
        self._handle: TimerHandle | None = None
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0
        self.max_ms = 0.0

    def start(self) -> None:
        """Measure from now on."""
        self._due_ms = self._clock.monotonic_ms() + PERIOD_MS
        self._handle = self._timer.call_later_ms(PERIOD_MS, self._tick)

    def _tick(self) -> None:
        late_ms = max(self._clock.monotonic_ms() - self._due_ms - TIMER_RESOLUTION_MS, 0.0)
        self.counts[bisect_left(BOUNDS_S, late_ms / 1000)] += 1
        self.total_s += late_ms / 1000
        self.max_ms = max(self.max_ms, late_ms)
        self.start()

    def stop(self) -> None:
        """Stop measuring."""
        if self._handle is not None:
            self._handle.cancel()
