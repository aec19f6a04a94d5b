"""Partitions that are tried again later: a heap, and one timer for the earliest of them."""

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.replication.fetcher.followed_partition import FollowedPartition

if TYPE_CHECKING:
    from broker.runtime.timer import Timer, TimerHandle
    from storage.environment.clock import Clock


class Delays:
    """See the module. Bounded by the partitions there are: each waits once at a time."""

    __slots__ = ("_clock", "_due", "_heap", "_number", "_timer", "_timer_due_ms", "_wheel")

    def __init__(
        self, timer: "Timer", clock: "Clock", due: Callable[[list[FollowedPartition]], None]
    ) -> None:
        """`due`: called with those whose time has come, in order."""
        self._wheel = timer
        self._clock = clock
        self._due = due
        self._heap: list[tuple[float, int, FollowedPartition]] = []
        self._number = 0
        self._timer: TimerHandle | None = None
        self._timer_due_ms = 0.0

    def __len__(self) -> int:
        """Partitions that wait."""
        return len(self._heap)

    def add(self, followed: FollowedPartition, delay_ms: float) -> None:
        """Call `due` with it after `delay_ms`."""
        now_ms = self._clock.monotonic_ms()
        self._number += 1
        heapq.heappush(self._heap, (now_ms + delay_ms, self._number, followed))
        self._arm(now_ms)

    def _arm(self, now_ms: float) -> None:
        if not self._heap:
            return
        due_ms = self._heap[0][0]
        if self._timer is not None:
            if self._timer_due_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer_due_ms = due_ms
        self._timer = self._wheel.call_later_ms(max(due_ms - now_ms, 0.0), self._fire)

    def _fire(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        due: list[FollowedPartition] = []
        while self._heap and self._heap[0][0] <= now_ms:
            due.append(heapq.heappop(self._heap)[2])
        self._arm(now_ms)
        if due:
            self._due(due)

    def close(self) -> None:
        """Forget all."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
