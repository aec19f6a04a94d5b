"""Log cleaner manager: chooses the log that is compacted next, and the range of offsets.

Of the compacted logs, the one with the greatest part that is dirty, if that part is above
`min.cleanable.dirty.ratio` or `max.compaction.lag.ms` demands it:

    |------- clean -------|------ dirty, cleanable ------|-- uncleanable --|
                    checkpoint                    first uncleanable offset

    dirty ratio = cleanable bytes / (clean bytes + cleanable bytes)

Uncleanable: the active segment, what lies beyond the last stable offset, segments with records
younger than `min.compaction.lag.ms`, and what is not on disk: a power cut would take a key's last
record, and the one before it, which was there for long, would be gone from the segment that
compaction has synced. The same goes for what a transaction has written whose marker is not on disk:
after a power cut it is open again, and may be aborted. Nor is touched what an aborted transaction
has written of which no file says so: its marker is in the log, and for the entry of the transaction
index there was no room.

State of a partition here:

    idle ──take_dirtiest──> cleaning ──done──> idle
                              │  └──abandon──> aborting ──(run notices)──> gone
                              │                   └──(not in time)──> abandoned ──done──> gone
                              └──damage──> uncleanable, until the partition goes or a restart
    idle ──try_pause──> paused ──resume──> idle
    cleaning ──abort_and_pause──> aborting ──(run notices)──> paused

Deletion needs no consent. A run that does not stop (its thread hangs in a call of a slow disk) is
abandoned: whatever it does later is refused or without effect, another topic may have the name at
once. Only two things wait for it: the removal of the directory it may still write to, and the first
compaction of the new log, whose files would have the same names.

Source: Kafka, LogCleanerManager.java, LogToClean.java; KIP-354.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from storage.cleaner.cleaning import CleanableLog, CleanableSegment, CleaningAbortedError
from storage.types.topic_partition import TopicPartition

POSTPONED_MS: Final = 15_000
POSTPONED_MAX_MS: Final = 3_600_000
"""How long a log is left alone after a run that failed: doubled each time."""


@dataclass(frozen=True, slots=True)
class LogToClean:
    """One log and the range that could be cleaned now.

    Attributes:
        first_dirty_offset: Where the last run ended, or the log starts.
        first_uncleanable_offset: Base offset of the first segment to leave alone.
        compaction_delay_ms: By how much `max.compaction.lag.ms` is overrun, 0 if it is not.
    """

    log: CleanableLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int

    @property
    def total_bytes(self) -> int:
        """Clean and cleanable bytes."""
        return self.clean_bytes + self.cleanable_bytes

    @property
    def dirty_ratio(self) -> float:
        """Part of the log that is dirty and cleanable, 0 .. 1."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        """Dirty enough, or overdue."""
        if self.cleanable_bytes == 0:
            return False
        return (
            self.compaction_delay_ms > 0
            or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio
        )


def measure(log: CleanableLog, checkpoint: int | None, now_ms: int) -> LogToClean:
    """Find the range of a log that could be cleaned now.

    Args:
        log: The log.
        checkpoint: Where the last run ended; None: never cleaned. One that does not lie within the
            log counts as the log start.
        now_ms: Wall clock.
    """
    start = log.log_start_offset
    segments = log.segment_facts()
    first_dirty = start if checkpoint is None else checkpoint
    if not start <= first_dirty <= log.log_end_offset:
        first_dirty = start
    closed = segments[:-1]
    # A segment counts from its base offset; one that the dirty range begins in counts as clean.
    recovery_point = log.recovery_point
    bound = min(log.last_stable_offset, recovery_point, segments[-1].base_offset)
    # Read after what is stable: what was aborted below that is in a file or counted here, and what
    # was ended is on disk or counted.
    bound = min(bound, log.indexed_end_offset)
    ends = log.producer_state.unflushed_ends
    unflushed = None if ends is None else ends.first_offset(recovery_point)
    if unflushed is not None:
        bound = min(bound, unflushed)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in _closed_from(segments, first_dirty):
            if segment.largest_timestamp > now_ms - lag_ms:
                bound = min(bound, segment.base_offset)
                break
    bound = max(first_dirty, bound)
    uncleanable = next(
        (segment.base_offset for segment in _closed_from(segments, bound)), segments[-1].base_offset
    )
    clean_bytes = cleanable_bytes = 0
    floor = _floor(segments, min(first_dirty, uncleanable))
    for segment in closed:
        if segment.base_offset >= uncleanable:
            break
        if segment.base_offset >= floor:
            cleanable_bytes += segment.size
        if segment.base_offset < first_dirty:
            clean_bytes += segment.size
    return LogToClean(
        log,
        first_dirty,
        uncleanable,
        clean_bytes,
        cleanable_bytes,
        _compaction_delay_ms(log, _closed_from(segments, first_dirty), now_ms),
    )


def _closed_from(segments: Sequence[CleanableSegment], offset: int) -> list[CleanableSegment]:
    """Closed segments from the one that holds `offset` on; none if that is the active one."""
    kept: list[CleanableSegment] = []
    if offset >= segments[-1].base_offset:
        return kept
    for segment in segments[:-1]:
        if segment.base_offset <= offset:
            kept.clear()
        kept.append(segment)
    return kept


def _floor(segments: Iterable[CleanableSegment], offset: int) -> int:
    """Base offset of the segment that holds `offset`."""
    return max((s.base_offset for s in segments if s.base_offset <= offset), default=0)


def _compaction_delay_ms(log: CleanableLog, dirty: Iterable[CleanableSegment], now_ms: int) -> int:
    deadline = now_ms - max(log.config.max_compaction_lag_ms, 0)
    if deadline <= 0:
        return 0
    stamps = [segment.first_timestamp for segment in dirty]
    earliest = min((stamp for stamp in stamps if stamp > 0), default=now_ms)
    return max(deadline - earliest, 0)


class LogCleanerManager:
    """Chooses logs for the cleaner and keeps it off those that are being changed.

    Thread-safe.

    Attributes:
        max_dirty_ratio: Of the dirtiest log at the last choice, 0 .. 1.
        uncleanable: Partitions excluded because of damage, and why.
    """

    def __init__(self) -> None:
        self.max_dirty_ratio = 0.0
        self.uncleanable: dict[TopicPartition, str] = {}
        self._lock = threading.Condition()
        self._cleaning: dict[TopicPartition, CleanableLog] = {}
        self._aborting: set[TopicPartition] = set()
        # At most one per thread that cleans.
        self._abandoned: list[CleanableLog] = []
        self._paused: dict[TopicPartition, int] = {}
        # Whose last runs have failed: how many, and until when it is left alone.
        self._postponed: dict[TopicPartition, tuple[int, int]] = {}

    def take_dirtiest(
        self,
        logs: Iterable[CleanableLog],
        checkpoints: Mapping[TopicPartition, int],
        now_ms: int,
    ) -> LogToClean | None:
        """Choose the dirtiest log that is due and mark it as being cleaned; None: nothing to do."""
        with self._lock:
            candidates = [
                measure(log, checkpoints.get(log.topic_partition), now_ms)
                for log in logs
                if "compact" in log.config.cleanup_policy
                and self._is_idle(log.topic_partition)
                and self._postponed.get(log.topic_partition, (0, now_ms))[1] <= now_ms
            ]
            self.max_dirty_ratio = max((c.dirty_ratio for c in candidates), default=0.0)
            due = [candidate for candidate in candidates if candidate.is_due]
            if not due:
                return None
            dirtiest = max(due, key=lambda candidate: candidate.dirty_ratio)
            self._cleaning[dirtiest.log.topic_partition] = dirtiest.log
            return dirtiest

    def take(self, log: CleanableLog) -> bool:
        """Mark a log as a run's, for another purpose than compaction; False: not now.

        Also one that compaction leaves out because of damage. `done` ends it.
        """
        topic_partition = log.topic_partition
        with self._lock:
            if not self._is_unused(topic_partition):
                return False
            self._cleaning[topic_partition] = log
            return True

    def _is_idle(self, topic_partition: TopicPartition) -> bool:
        return topic_partition not in self.uncleanable and self._is_unused(topic_partition)

    def _is_unused(self, topic_partition: TopicPartition) -> bool:
        return (
            topic_partition not in self._cleaning
            and topic_partition not in self._paused
            and all(log.topic_partition != topic_partition for log in self._abandoned)
        )

    def is_aborted(self, log: CleanableLog) -> bool:
        """Whether a run over this log, which has not said `done` yet, is to have no effect."""
        topic_partition = log.topic_partition
        return topic_partition in self._aborting or self._cleaning.get(topic_partition) is not log

    def check_done(self, log: CleanableLog) -> None:
        """Called by a run, often.

        Raises:
            CleaningAbortedError: The log is deleted, or the broker stops.
        """
        if self.is_aborted(log):
            raise CleaningAbortedError(f"compaction of {log.topic_partition} was stopped")

    def done(self, log: CleanableLog) -> None:
        """The run is over, one way or another."""
        topic_partition = log.topic_partition
        with self._lock:
            if self._cleaning.get(topic_partition) is log:
                del self._cleaning[topic_partition]
                self._aborting.discard(topic_partition)
                self._lock.notify_all()
            else:
                self._abandoned = [other for other in self._abandoned if other is not log]

    def postpone(self, topic_partition: TopicPartition, now_ms: int) -> int:
        """A run has failed through no fault of the log: leave it alone for a while, in ms."""
        with self._lock:
            failures = self._postponed.get(topic_partition, (0, 0))[0]
            delay_ms = min(POSTPONED_MS << min(failures, 16), POSTPONED_MAX_MS)
            self._postponed[topic_partition] = (failures + 1, now_ms + delay_ms)
            return delay_ms

    def succeeded(self, topic_partition: TopicPartition) -> None:
        """A run has come to its end."""
        with self._lock:
            self._postponed.pop(topic_partition, None)

    def mark_uncleanable(self, topic_partition: TopicPartition, reason: str) -> None:
        """Never compact a damaged partition again."""
        with self._lock:
            self.uncleanable[topic_partition] = reason

    def is_sound(self, topic_partition: TopicPartition) -> None:
        """The damage has been mended: it may be compacted again."""
        with self._lock:
            self.uncleanable.pop(topic_partition, None)

    def abandon(self, partitions: Iterable[TopicPartition], timeout_s: float = 1.0) -> None:
        """Their logs are about to be deleted: stop their runs, or go on without their consent.

        Blocks for `timeout_s` at most, for all of them: not for the event loop. Afterwards no run
        changes anything that counts, whether it has noticed or not.
        """
        with self._lock:
            running = {tp for tp in partitions if tp in self._cleaning}
            if not running:
                return
            self._aborting.update(running)
            self._lock.wait_for(lambda: running.isdisjoint(self._cleaning), timeout_s)
            for topic_partition in running:
                log = self._cleaning.pop(topic_partition, None)
                self._aborting.discard(topic_partition)
                if log is not None:
                    self._abandoned.append(log)

    def holds(self, directory: str) -> bool:
        """Whether an abandoned run may still write to this directory of a deleted log."""
        with self._lock:
            return any(log.directory == directory for log in self._abandoned)

    @property
    def abandoned_count(self) -> int:
        """Runs over deleted logs that have not noticed yet."""
        return len(self._abandoned)

    def try_pause(self, topic_partition: TopicPartition) -> bool:
        """Let no run begin until `resume`, unless one is under way: then False, and nothing."""
        with self._lock:
            if topic_partition in self._cleaning:
                return False
            self._paused[topic_partition] = self._paused.get(topic_partition, 0) + 1
            return True

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """Let no run begin until `resume`; one that is under way is stopped, and waited for.

        The log is about to be truncated, so that no run may put segments in place meanwhile. Not
        for the event loop.
        """
        with self._lock:
            self._paused[topic_partition] = self._paused.get(topic_partition, 0) + 1
            if topic_partition in self._cleaning:
                self._aborting.add(topic_partition)
                self._lock.wait_for(lambda: topic_partition not in self._cleaning)

    def resume(self, topic_partition: TopicPartition) -> None:
        """Undo one `try_pause` or `abort_and_pause`."""
        with self._lock:
            left = self._paused.get(topic_partition, 0) - 1
            if left > 0:
                self._paused[topic_partition] = left
            else:
                self._paused.pop(topic_partition, None)

    def abort_all(self) -> None:
        """Stop every run soon and start no other on those partitions; does not wait."""
        with self._lock:
            self._aborting.update(self._cleaning)

    def forget(self, topic_partition: TopicPartition) -> None:
        """The partition is gone."""
        with self._lock:
            self.uncleanable.pop(topic_partition, None)
            self._paused.pop(topic_partition, None)
            self._postponed.pop(topic_partition, None)
