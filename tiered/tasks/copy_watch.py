"""Detection of stalled copies.

A copy that has moved no byte for `tier.stalled.copy.ms` is stalled until it moves again or ends;
its deadline ends it in any case. Field report: a copy that neither returned nor failed, several
times a week, until the local disk was full (Aiven, issue 820): the gauge is what an alert is on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from storage.environment.clock import Clock
from storage.environment.timer import Timer, TimerHandle


class _Watched:
    __slots__ = ("handle", "is_stalled", "moved_bytes", "since_ms")

    def __init__(self, since_ms: float) -> None:
        self.handle: TimerHandle | None = None
        self.is_stalled = False
        self.moved_bytes = 0
        self.since_ms = since_ms


class CopyWatch:
    """See the module.

    Attributes:
        stalls: Times a copy became stalled, since the start.
    """

    __slots__ = ("_clock", "_copies", "_progress", "_timer", "stalls")

    def __init__(
        self, clock: Clock, timer: Timer, progress: Callable[[UUID], int] | None = None
    ) -> None:
        """Watch nothing yet; `progress` gives the bytes a copy has moved, None: unknown."""
        self._clock = clock
        self._timer = timer
        self._progress = progress
        self._copies: dict[UUID, _Watched] = {}
        self.stalls = 0

    @property
    def stalled(self) -> int:
        """Copies that are stalled now."""
        return sum(1 for copy in self._copies.values() if copy.is_stalled)

    @contextmanager
    def watching(self, segment_id: UUID, stalled_ms: float) -> Iterator[None]:
        """Watch one copy while the block runs."""
        copy = self._copies[segment_id] = _Watched(self._clock.monotonic_ms())
        # Progress is checked from the beginning: when it stops is the moment that counts.
        self._arm(segment_id, copy, stalled_ms / 4 if self._progress else stalled_ms, stalled_ms)
        try:
            yield
        finally:
            del self._copies[segment_id]
            if copy.handle is not None:
                copy.handle.cancel()

    def _arm(self, segment_id: UUID, copy: _Watched, delay_ms: float, stalled_ms: float) -> None:
        copy.handle = self._timer.call_later_ms(
            delay_ms, lambda: self._check(segment_id, copy, stalled_ms)
        )

    def _check(self, segment_id: UUID, copy: _Watched, stalled_ms: float) -> None:
        now_ms = self._clock.monotonic_ms()
        moved = 0 if self._progress is None else self._progress(segment_id)
        if moved != copy.moved_bytes:
            copy.moved_bytes = moved
            copy.since_ms = now_ms
            copy.is_stalled = False
        elif not copy.is_stalled and now_ms - copy.since_ms >= stalled_ms:
            copy.is_stalled = True
            self.stalls += 1
        # In quarters, so that it is noticed at most a quarter late.
        self._arm(segment_id, copy, max(stalled_ms / 4, 1.0), stalled_ms)
