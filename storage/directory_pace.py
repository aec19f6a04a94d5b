"""How quickly a log directory takes writes, and so who writes: the log's owner, or a thread.

    UNPROVEN ──8 writes in time──> QUICK ──it held the owner up──> SLOW
                                     ^                              │
                                     └──no late write for a while───┘  1 s, doubled at each relapse
                                                                       up to a minute

    QUICK              small batches are written where they are appended: a copy into the page
                       cache takes microseconds, a hop to a thread ten times as long
    UNPROVEN, SLOW     every batch is left to the directory's thread: the owner, who serves all
                       the other directories as well, never waits for this one

A batch above `large_batch_bytes` is left to the thread in any case: copying it takes so long that
the hop is cheap, and the owner receives the next one meanwhile.

A write is late when it takes more than 5 ms beyond what its bytes take at 100 MB/s; the owner is
held up when late writes cost it 25 ms within a second.
"""

from collections.abc import Callable
from typing import Final

NEVER: Final = 1 << 62
LATE_MS: Final = 5.0
BYTES_PER_MS: Final = 100_000
HELD_UP_MS: Final = 25.0
HELD_UP_WITHIN_MS: Final = 1000.0
PROOF_WRITES: Final = 8
CALM_MIN_MS: Final = 1000.0
CALM_MAX_MS: Final = 60_000.0

LARGE_BATCH_BYTES: Final = 256 * 1024
"""Above this the copy into the page cache costs several times the hop to the thread."""

QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes that may wait for a directory's thread; clients above that are told to try again."""

CONGESTED_BYTES: Final = 16 * 1024 * 1024
"""From here on, connections that write to the directory are read no further."""


class DirectoryPace:
    """See the module. Belongs to the thread that owns the directory's logs.

    Attributes:
        has_writer: There is a thread that batches can be left to.
        inline_bytes_max: Batches up to this size are written by who appends; -1: none.
        now_ms: Monotonic time.
        queued_bytes: Waiting for the thread, over all logs of the directory.
        queued_bytes_peak: The most there ever were.
        refused: Batches that were told to come again.
        late_writes: Writes that were late, by whomever.
        relapses: How often the directory became slow.
    """

    __slots__ = (
        "_calm_ms",
        "_calm_since_ms",
        "_held_up_ms",
        "_held_up_since_ms",
        "_in_time",
        "_large_batch_bytes",
        "has_writer",
        "inline_bytes_max",
        "late_writes",
        "now_ms",
        "queued_bytes",
        "queued_bytes_max",
        "queued_bytes_peak",
        "refused",
        "relapses",
    )

    def __init__(
        self,
        now_ms: Callable[[], float],
        *,
        has_writer: bool = True,
        large_batch_bytes: int = LARGE_BATCH_BYTES,
        queued_bytes_max: int = QUEUED_BYTES_MAX,
    ) -> None:
        """Unproven; without a writer everything is written by who appends."""
        self.now_ms = now_ms
        self.has_writer = has_writer
        self.inline_bytes_max = -1 if has_writer else NEVER
        self.queued_bytes = 0
        self.queued_bytes_max = queued_bytes_max
        self.queued_bytes_peak = 0
        self.refused = 0
        self.late_writes = 0
        self.relapses = 0
        self._large_batch_bytes = large_batch_bytes
        self._in_time = 0
        self._calm_ms = 0.0
        self._calm_since_ms = now_ms()
        self._held_up_ms = 0.0
        self._held_up_since_ms = -HELD_UP_WITHIN_MS

    @property
    def is_quick(self) -> bool:
        """Small batches are written by who appends them."""
        return self.inline_bytes_max >= 0

    @property
    def is_congested(self) -> bool:
        """So much waits for the thread that clients should be read no further."""
        return self.queued_bytes >= CONGESTED_BYTES

    def has_room(self, size: int) -> bool:
        """Whether `size` more bytes may wait; one batch always may."""
        if not self.queued_bytes or self.queued_bytes + size <= self.queued_bytes_max:
            return True
        self.refused += 1
        return False

    def queue(self, size: int) -> None:
        """`size` bytes wait for the thread; negative: they do no longer."""
        self.queued_bytes += size
        if self.queued_bytes > self.queued_bytes_peak:
            self.queued_bytes_peak = self.queued_bytes

    def wrote_inline(self, took_ms: float, size: int) -> None:
        """A write by the owner took more than LATE_MS."""
        late_ms = took_ms - size / BYTES_PER_MS
        if late_ms <= LATE_MS:
            return
        self.late_writes += 1
        now_ms = self.now_ms()
        if now_ms - self._held_up_since_ms > HELD_UP_WITHIN_MS:
            self._held_up_since_ms = now_ms
            self._held_up_ms = 0.0
        self._held_up_ms += late_ms
        if self._held_up_ms >= HELD_UP_MS and self.has_writer and self.is_quick:
            self._become_slow(now_ms)

    def _become_slow(self, now_ms: float) -> None:
        self.relapses += 1
        self.inline_bytes_max = -1
        self._in_time = 0
        calm_for_ms = now_ms - self._calm_since_ms
        if self._calm_ms and calm_for_ms < 2 * CALM_MAX_MS:
            self._calm_ms = min(2 * self._calm_ms, CALM_MAX_MS)
        else:
            self._calm_ms = CALM_MIN_MS
        self._calm_since_ms = now_ms

    def wrote_behind(self, took_ms: float, size: int) -> None:
        """The thread has written `size` bytes, and needed `took_ms`."""
        late = took_ms - size / BYTES_PER_MS > LATE_MS
        if late:
            self.late_writes += 1
        if self.is_quick:
            return
        now_ms = self.now_ms()
        if late:
            self._in_time = 0
            self._calm_since_ms = now_ms
            return
        self._in_time += 1
        if self._in_time >= PROOF_WRITES and now_ms - self._calm_since_ms >= self._calm_ms:
            self.inline_bytes_max = self._large_batch_bytes
            self._calm_since_ms = now_ms


def _no_time() -> float:
    return 0.0


INLINE: Final = DirectoryPace(_no_time, has_writer=False)
"""Of logs that nobody has given a thread: recovery, tools."""
