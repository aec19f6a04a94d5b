"""A timer that fires when the test moves its clock."""

import heapq
import itertools
from collections.abc import Callable

from tests.fakes.clock import ManualClock


class _Handle:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualTimer:
    """`broker.runtime.timer.Timer` on a `ManualClock`: `advance` runs callbacks in time order."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self._heap: list[tuple[float, int, _Handle]] = []
        self._order = itertools.count()

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> _Handle:
        handle = _Handle(callback)
        due = self.clock.monotonic_ms() + max(delay_ms, 0.0)
        heapq.heappush(self._heap, (due, next(self._order), handle))
        return handle

    def advance(self, ms: float) -> None:
        """Move the clock by `ms`, stopping at each callback that falls due on the way."""
        target = self.clock.monotonic_ms() + ms
        while self._heap and self._heap[0][0] <= target:
            due, _, handle = heapq.heappop(self._heap)
            self.clock.advance(max(due - self.clock.monotonic_ms(), 0.0))
            callback, handle.callback = handle.callback, None
            if callback is not None:
                callback()
        self.clock.advance(target - self.clock.monotonic_ms())

    @property
    def pending(self) -> int:
        """Callbacks that are still to run."""
        return sum(1 for _, _, handle in self._heap if handle.callback is not None)
