"""Write speed of a log directory, which decides whether the log's owner or a thread writes.

    UNPROVEN ──8 writes in time──> QUICK ──it held the owner up──> SLOW
                                     ^                              │
                                     └──no late write for a while───┘  1 s, doubled at each relapse
                                                                       up to a minute

    QUICK              small batches are written where they are appended: a copy into the page
                       cache takes microseconds, a hop to a thread ten times as long
    UNPROVEN, SLOW     every batch is left to the directory's thread: the owner, which serves all
                       the other directories as well, never waits for this one

A produced batch above `large_batch_bytes` is left to the thread in any case: copying it takes so
long that the hop is cheap, and the owner receives the next one meanwhile. What a follower has
fetched is written where it is, up to FETCHED_BYTES_MAX: the fetcher receives nothing meanwhile, so
that a hop only costs. Once such a copy takes longer than 2 ms (fresh pages are dear at times) they
are left to the thread for a second.

A write is late when it takes more than 5 ms beyond what its bytes take at 100 MB/s, time that its
thread waited for a processor left out; the owner is held up when late writes cost it 25 ms within a
second.

That is late on a disk of 2 MB/s: the write that uses the last of the dirty pages up takes seconds.
So every second a thread measures how the disk takes 4 MiB (`watch`), and a directory where more is
on its way to the disk than it takes in 8 s is slow before it shows; unless that is less than 16 MiB
or a quarter of what may be written before the kernel throttles (`storage.environment.dirty_pages`),
1 GiB at the most: a busy disk takes those 4 MiB late, too.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.segment.segment import Segment

NEVER: Final = 1 << 62
LATE_MS: Final = 5.0
LATE_S: Final = LATE_MS / 1000
BYTES_PER_MS: Final = 100_000
HELD_UP_MS: Final = 25.0
HELD_UP_WITHIN_MS: Final = 1000.0
PROOF_WRITES: Final = 8
CALM_MIN_MS: Final = 1000.0
CALM_MAX_MS: Final = 60_000.0

WATCHED_BYTES: Final = 4 * 1024 * 1024
WATCHED_EVERY_MAX: Final = 64 * 1024 * 1024
"""After so many bytes the disk is watched again, unless it is being watched: after what it takes in
a second. Starting the write-back of pages costs the calling thread some 0.2 ms a MiB."""

BACKLOG_MIN_BYTES: Final = 16 * 1024 * 1024
BACKLOG_MS: Final = 8_000.0
"""What may be on its way to the disk before the directory counts as slow."""

ROOM_SHARE: Final = 4
ROOM_BYTES_MAX: Final = 1024 * 1024 * 1024
"""Of the room for dirty pages a directory may use a quarter, and no more than this."""

LARGE_BATCH_BYTES: Final = 256 * 1024
"""Above this the copy into the page cache costs several times the hop to the thread."""

FETCHED_BYTES_MAX: Final = 2 * 1024 * 1024
"""Of one write of fetched batches that the owner makes: half a millisecond, as a rule."""

COPY_MAX_MS: Final = 2.0
COPY_MAX_S: Final = COPY_MAX_MS / 1000
COPIES_BEHIND_MS: Final = 1000.0

QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes that may wait for a directory's thread; above, clients get a retriable error."""

CONGESTED_BYTES: Final = 16 * 1024 * 1024
"""From here on, connections that write to the directory are read no further."""


class DirectoryPace:
    """See the module. Belongs to the thread that owns the directory's logs.

    Attributes:
        has_writer: There is a thread that batches can be left to.
        inline_bytes_max: Batches up to this size are written by the appending thread; -1: none.
        now_ms, now_s: Monotonic time.
        queued_bytes: Waiting for the thread, over all logs of the directory.
        queued_bytes_peak: The most there ever were.
        refused: Batches refused with a retriable error.
        late_writes: Writes that were late, of any thread.
        relapses: How often the directory became slow.
        written: Bytes written so far, by any thread.
        watch_at: When `written` reaches it, `watch` is to be called.
        watch: Measures how fast the disk takes what was written to a segment; calls `watched`.
    """

    __slots__ = (
        "_allowed_bytes",
        "_calm_ms",
        "_calm_since_ms",
        "_copies_behind_until_ms",
        "_cpu_wait_ms",
        "_cpu_waited_ms",
        "_disk_bytes",
        "_held_up_ms",
        "_held_up_since_ms",
        "_in_time",
        "_large_batch_bytes",
        "_taken",
        "has_writer",
        "inline_bytes_max",
        "late_writes",
        "now_ms",
        "now_s",
        "queued_bytes",
        "queued_bytes_max",
        "queued_bytes_peak",
        "refused",
        "relapses",
        "watch",
        "watch_at",
        "written",
    )

    def __init__(
        self,
        now_ms: Callable[[], float],
        now_s: Callable[[], float],
        *,
        has_writer: bool = True,
        large_batch_bytes: int = LARGE_BATCH_BYTES,
        queued_bytes_max: int = QUEUED_BYTES_MAX,
        cpu_wait_ms: Callable[[], float] | None = None,
    ) -> None:
        """Unproven; without a writer everything is written by the appending thread.

        `cpu_wait_ms`: how long the owner's thread has waited for a processor so far.
        """
        self.now_ms = now_ms
        self.now_s = now_s
        self._cpu_wait_ms = cpu_wait_ms or _no_time
        self._cpu_waited_ms = 0.0
        self._copies_behind_until_ms = 0.0
        self.written = 0
        self.watch_at = NEVER
        self.watch: Callable[[Segment], None] = _do_not_watch
        self._taken = 0
        self._allowed_bytes = float(BACKLOG_MIN_BYTES)
        self._disk_bytes = 0.0
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
        """Small batches are written by the appending thread."""
        return self.inline_bytes_max >= 0

    @property
    def fetched_inline_bytes_max(self) -> int:
        """Likewise as `inline_bytes_max`, of what a follower has fetched."""
        inline = self.inline_bytes_max
        if 0 <= inline < FETCHED_BYTES_MAX and self.now_ms() >= self._copies_behind_until_ms:
            return FETCHED_BYTES_MAX
        return inline

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
        """A write by the owner took more than LATE_MS, or a large one more than COPY_MAX_MS."""
        before_ms = self._cpu_waited_ms
        self.sample_cpu_wait()
        took_ms -= self._cpu_waited_ms - before_ms
        now_ms = self.now_ms()
        if size > self._large_batch_bytes and took_ms > COPY_MAX_MS:
            self._copies_behind_until_ms = now_ms + COPIES_BEHIND_MS
        late_ms = took_ms - size / BYTES_PER_MS
        if late_ms <= LATE_MS:
            return
        self.late_writes += 1
        if now_ms - self._held_up_since_ms > HELD_UP_WITHIN_MS:
            self._held_up_since_ms = now_ms
            self._held_up_ms = 0.0
        self._held_up_ms += late_ms
        if self._held_up_ms >= HELD_UP_MS and self.has_writer and self.is_quick:
            self._become_slow(now_ms)

    def sample_cpu_wait(self) -> None:
        """Often enough that what the owner waited for a processor is known of the last moments."""
        self._cpu_waited_ms = self._cpu_wait_ms()

    # -- how the disk takes it ---------------------------------------------------------------

    def watch_from(self, watch: Callable[["Segment"], None], room: int | None = None) -> None:
        """Have `watch` called with a segment after every WATCHED_BYTES; `room`: see `watched`."""
        self.watch = watch
        self._allowed_bytes = max(BACKLOG_MIN_BYTES, _share_of(room))
        self.watch_at = self.written + WATCHED_BYTES

    @property
    def backlog(self) -> int:
        """Bytes that the disk may not have taken yet."""
        return self.written - self._taken

    def watching(self) -> None:
        """It is being watched, so `watch` was called in vain: is too much on its way?"""
        self.watch_at = self.written + WATCHED_BYTES
        if self.backlog > self._allowed_bytes and self.is_quick and self.has_writer:
            now_ms = self.now_ms()
            self.relapses += 1
            self.inline_bytes_max = -1
            self._in_time = 0
            self._calm_ms = max(self._calm_ms, CALM_MIN_MS)
            self._calm_since_ms = now_ms

    def watched(self, written: int, size: int, took_ms: float, room: int | None = None) -> None:
        """The disk has taken `size` bytes in `took_ms`, `written` at the least in all.

        `room`: what may be written before the kernel makes writers wait; None: unknown.
        """
        self._taken = max(self._taken, written)
        # One that is busy for a moment is no slow one.
        self._disk_bytes = max(size / max(took_ms, 0.1) * BACKLOG_MS, 0.8 * self._disk_bytes)
        self._allowed_bytes = max(BACKLOG_MIN_BYTES, self._disk_bytes, _share_of(room))
        in_a_second = int(max(self._disk_bytes, BACKLOG_MIN_BYTES) / BACKLOG_MS * 1000)
        self.watch_at = self.written + min(max(in_a_second, WATCHED_BYTES), WATCHED_EVERY_MAX)

    # -- how writes take ---------------------------------------------------------------------

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
        if self.watch_at != NEVER and self.backlog > self._allowed_bytes / 2:
            return
        if self._in_time >= PROOF_WRITES and now_ms - self._calm_since_ms >= self._calm_ms:
            self.inline_bytes_max = self._large_batch_bytes
            self._calm_since_ms = now_ms


def _share_of(room: int | None) -> float:
    return 0.0 if room is None else min(room / ROOM_SHARE, ROOM_BYTES_MAX)


def _no_time() -> float:
    return 0.0


def _do_not_watch(_segment: "Segment") -> None:
    return


# `float()` is 0.0, without a call of ours.
INLINE: Final = DirectoryPace(float, float, has_writer=False)
"""Of logs without a writer thread: recovery, tools."""
