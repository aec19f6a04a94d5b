"""Throttle: holds background work to a rate, and yields the interpreter to the event loop.

The cleaner shares the interpreter with the loop: while it computes, the loop waits.
A short sleep after every slice of work lets the loop in at once, and with
`log.cleaner.io.max.bytes.per.second` the sleeps are as long as the rate demands. Long ones are
slept in pieces, between which the work may be aborted: a batch of 1 MB at 1 kB/s is a sleep of
a quarter of an hour, and the deletion of a topic cannot wait for that.
"""

from collections.abc import Callable
from typing import Final

from storage.environment.clock import Clock

BREATH_MS: Final = 0.5
"""Least pause after a slice: long enough for the loop to take the interpreter."""

SLICE_BYTES: Final = 64 * 1024
"""Work between two pauses: some milliseconds of it at most."""

PIECE_MS: Final = 100.0
"""Longest sleep before the rate, and whether the work was aborted, are checked again."""

_WINDOW_MS: Final = 1_000.0


def _never() -> None:
    pass


class Throttle:
    """Called with the bytes of each piece of work; sleeps now and then.

    Args:
        clock: For the rate.
        sleep_ms: Blocks the calling thread.
        bytes_per_second: At most; infinity or 0: no rate, only pauses.
        breath_ms: Least pause after a slice; 0 in a process without an event loop.
    """

    def __init__(
        self,
        clock: Clock,
        sleep_ms: Callable[[float], None],
        bytes_per_second: float = 0.0,
        *,
        breath_ms: float = BREATH_MS,
    ) -> None:
        self._breath_ms = breath_ms
        self._clock = clock
        self._sleep_ms = sleep_ms
        self._rate = 0.0
        self.set_rate(bytes_per_second)
        self._has_new_rate = False
        self._since_pause = 0
        self._window_start_ms = clock.monotonic_ms()
        self._in_window = 0

    def set_rate(self, bytes_per_second: float) -> None:
        """Another rate for what is done from now on; may be called in any thread."""
        rate = bytes_per_second if 0 < bytes_per_second < 1e15 else 0.0
        if rate != self._rate:
            self._rate = rate
            # What counts belongs to the threads that work.
            self._has_new_rate = True

    def __call__(self, size: int, check_done: Callable[[], None] = _never) -> None:
        """So many bytes were read or written.

        Args:
            size: Bytes.
            check_done: Called before every piece of a long sleep; what it raises ends the sleep.
        """
        if self._has_new_rate:
            self._begin_window()
        self._since_pause += size
        self._in_window += size
        if self._since_pause < SLICE_BYTES:
            return
        self._since_pause = 0
        left_ms = max(self._owed_ms(), self._breath_ms)
        while left_ms > PIECE_MS:
            check_done()
            self._sleep_ms(PIECE_MS)
            # By the clock too: the rate may have been raised meanwhile.
            left_ms = min(left_ms - PIECE_MS, self._owed_ms())
        if left_ms > 0:
            self._sleep_ms(left_ms)

    def _owed_ms(self) -> float:
        """How far ahead of the rate the work is."""
        if self._has_new_rate:
            self._begin_window()
        if not self._rate:
            return 0.0
        elapsed_ms = self._clock.monotonic_ms() - self._window_start_ms
        owed_ms = self._in_window / self._rate * 1_000.0 - elapsed_ms
        if elapsed_ms > _WINDOW_MS and owed_ms <= 0:
            # What was not used in a quiet second is not saved up.
            self._window_start_ms += elapsed_ms
            self._in_window = 0
        return owed_ms

    def _begin_window(self) -> None:
        """Of what was done at another rate, or at none, nothing is owed: it could be days."""
        self._has_new_rate = False
        self._window_start_ms = self._clock.monotonic_ms()
        self._in_window = 0
