"""Interface of log compaction: the job of a run, and how cleaned segments replace the old ones.

CleansLogs.clean(log)     the broker's thread, one a run
CleaningJob           paths, offsets, settings: all there is to know
do(job, put)          writes `.cleaned` files: here (`storage.cleaner.cleaner`), or in a process
put(base, replaced)   for each: prepare and sync here, rename where the log is owned
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from storage.errors import DiskError, StorageError
from storage.log.retention import SegmentFacts
from storage.types.owner import OnOwner, in_this_thread
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    # Not at run time: a process that only cleans needs none of it.
    from config.topic import TopicConfig
    from storage.producers.state import ProducerStateManager
    from storage.segment.segment import Segment

PutInPlace = Callable[[int, Sequence[int]], None]
"""Called with the base offset of a finished `.cleaned` segment, and with those of the segments it
stands for."""


def never() -> None:
    """Check whether a run is to stop, where runs are never stopped."""


class CleaningAbortedError(StorageError):
    """The partition is being deleted, truncated or shut down; nothing was changed."""


class CleaningFailedError(StorageError):
    """The process that did the run has ended; the log is as before, and is to be tried again."""


class CleanableSegment(SegmentFacts, Protocol):
    """A segment, as the cleaner reads it."""

    @property
    def first_timestamp(self) -> int:
        """Max timestamp of the first batch, ms; -1 without one."""
        ...


class ReplacesSegments(Protocol):
    """What the cleaner asks of a log when it has written a segment."""

    def prepare(self, base_offset: int) -> "Segment":
        """Give the finished `.cleaned` segment the suffix `.swap`, on disk.

        Raises:
            DiskError: The disk refused.
        """
        ...

    def put(self, segment: "Segment", replaced: Sequence[int]) -> None:
        """Let a prepared segment take the place of others.

        Args:
            segment: From `prepare`.
            replaced: Base offsets of all segments it stands for, ascending.

        Raises:
            DiskError: The disk refused.
        """
        ...

    def sync(self) -> None:
        """Have the names of a replacement on disk; DiskError when the disk refuses."""
        ...

    def undo(self, segment: "Segment") -> None:
        """Remove a prepared segment that is not to be put in place."""
        ...

    def undo_after(self, error: DiskError, segment: "Segment") -> None:
        """Remove a segment that could not be put in place because of `error`."""
        ...


class CleanableLog(Protocol):
    """What the cleaner needs of a log."""

    topic_partition: TopicPartition
    directory: str
    config: "TopicConfig"
    log_start_offset: int
    recovery_point: int
    producer_state: "ProducerStateManager"

    @property
    def log_end_offset(self) -> int:
        """Offset the next record will get."""
        ...

    @property
    def last_stable_offset(self) -> int:
        """First offset that may still belong to an open transaction, or is not replicated."""
        ...

    @property
    def indexed_end_offset(self) -> int:
        """The aborted transactions that begin below are all in the files of their indexes."""
        ...

    def segment_facts(self) -> Sequence[CleanableSegment]:
        """All segments, ascending; the last one is the active segment."""
        ...

    @property
    def replacement(self) -> ReplacesSegments:
        """Puts compacted segments in place of others."""
        ...


class SegmentSize(NamedTuple):
    """A segment as a run sees it."""

    base_offset: int
    size: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """All that a run has to know; it may be another process's to do.

    Attributes:
        directory: Of the partition.
        segments: All of the log's when it began, ascending; the last one is the active segment.
        first_dirty_offset: Where the last run ended.
        first_uncleanable_offset: Base offset of a segment; nothing at or above it is touched.
        now_ms: Wall clock, for delete horizons.
        segment_bytes: Most bytes of a segment that is written.
        segment_index_bytes: Most bytes of its offset index.
        index_interval_bytes: Between two of its entries.
        delete_retention_ms: How long tombstones and useless markers stay.
        last_records: See `ProducerStateManager.last_records`. One that has become out of date keeps
            a batch too many.
    """

    directory: str
    segments: tuple[SegmentSize, ...]
    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int
    last_records: dict[int, tuple[int, int]]

    @classmethod
    def of(
        cls,
        log: CleanableLog,
        *,
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        now_ms: int,
    ) -> "CleaningJob":
        """The next run over a log, as things are now."""
        config = log.config
        return cls(
            log.directory,
            tuple(SegmentSize(one.base_offset, one.size) for one in log.segment_facts()),
            first_dirty_offset,
            first_uncleanable_offset,
            now_ms,
            config.internal_segment_bytes or config.segment_bytes,
            config.segment_index_bytes,
            config.index_interval_bytes,
            config.delete_retention_ms,
            log.producer_state.last_records(),
        )


@dataclass(slots=True)
class CleanerStats:
    """What one run did. Bytes are those of `.log` files."""

    start_offset: int = 0
    end_offset: int = 0
    map_records_read: int = 0
    records_read: int = 0
    records_kept: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_without_key: int = 0
    map_fill: float = 0.0


class CleansLogs(ABC):
    """What compacts logs: here, or in another process."""

    def clean(
        self,
        log: CleanableLog,
        *,
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        now_ms: int,
        check_done: Callable[[], None] = never,
        on_owner: OnOwner = in_this_thread,
    ) -> CleanerStats:
        """Compact a log.

        Args:
            log: The log; its cleanup policy contains `compact`.
            first_dirty_offset: Where the last run ended.
            first_uncleanable_offset: Base offset of a segment; nothing at or above it is touched.
            now_ms: Wall clock, for delete horizons.
            check_done: Called often; raises CleaningAbortedError to stop.
            on_owner: Where the log may be changed.

        Returns:
            What was done; `end_offset` is the next run's first dirty offset.

        Raises:
            CleaningAbortedError: `check_done` said so. Groups already replaced stay replaced.
                Where the log was deleted under the run, another error may come instead.
            CorruptFileError: A segment does not parse.
            DecodeError: Records do not parse, or are beyond what the cleaner unpacks.
            CleaningFailedError: A process that did the work has ended; the log is as before.
            DiskError: The disk refused.
        """
        job = CleaningJob.of(
            log,
            first_dirty_offset=first_dirty_offset,
            first_uncleanable_offset=first_uncleanable_offset,
            now_ms=now_ms,
        )
        return self.do(
            job,
            lambda base_offset, replaced: replace_segments(
                log, base_offset, replaced, check_done, on_owner
            ),
            check_done,
        )

    @abstractmethod
    def do(
        self, job: CleaningJob, put_in_place: PutInPlace, check_done: Callable[[], None] = never
    ) -> CleanerStats:
        """Do a run.

        Args:
            job: What is to be done.
            put_in_place: Called with each finished segment; the next is written afterwards.
            check_done: As for `clean`.

        Raises:
            StorageError, DecodeError: As `clean`.
        """


def replace_segments(
    log: CleanableLog,
    base_offset: int,
    replaced: Sequence[int],
    check_done: Callable[[], None],
    on_owner: OnOwner,
) -> None:
    """Put a finished segment in place of those it was made from; only renames are the owner's.

    Raises:
        CleaningAbortedError: `check_done` said so; the log is as before.
        DiskError: The disk refused. Where it `is_disk_failure` the next start puts it right, else
            the log is as before.
    """
    segment = log.replacement.prepare(base_offset)

    def put() -> None:
        # Checked again where the log is changed: it may have been deleted a moment ago.
        check_done()
        log.replacement.put(segment, replaced)

    try:
        on_owner(put)
    except CleaningAbortedError:
        log.replacement.undo(segment)
        raise
    except DiskError as error:
        log.replacement.undo_after(error, segment)
        raise
    log.replacement.sync()
