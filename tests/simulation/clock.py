"""The clocks of one simulated machine: off by some time, and a little fast or slow."""

from tests.simulation.loop import SimLoop

WALL_START_MS = 1_767_225_600_000
"""2026-01-01."""


class SimClock:
    """`storage.environment.clock.Clock` on virtual time; `drift` 0.01 is one percent fast."""

    def __init__(self, loop: SimLoop, *, offset_ms: float = 0.0, drift: float = 0.0) -> None:
        self._loop = loop
        self._offset_ms = offset_ms
        self.rate = 1.0 + drift
        self._rate = 1000.0 * self.rate
        self._start_s = loop.now_s

    def now_ms(self) -> int:
        elapsed_ms = (self._loop.now_s - self._start_s) * self._rate
        return int(WALL_START_MS + self._offset_ms + elapsed_ms)

    def monotonic_ms(self) -> float:
        return self._loop.now_s * self._rate

    def monotonic_s(self) -> float:
        return self.monotonic_ms() / 1000
