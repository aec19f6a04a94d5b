"""Log compaction: keep, for every key, at least its last record.

One run over one log, from the start to the first uncleanable offset:

    |-- clean --|---------- dirty ----------|-- uncleanable --|
    0       first dirty offset     first uncleanable       active segment

1. Read the dirty part into an offset map, key -> latest offset, until its end or until the map is
   full. Data of aborted transactions does not count.
2. Rewrite all segments up to there, in groups that fit one segment each. A record goes when
     - the map has a later offset for its key, or
     - it is a tombstone (null value) and its batch's delete horizon has passed, or
     - its transaction was aborted.
   A batch is dropped when empty, unless it holds the last sequence or epoch of a producer that is
   still known, or is the last one of the range: then an empty batch stays.
3. Put each new segment in place of its group (`replace`).

Tombstones and useless markers must outlive a reader that began before them. The first run that
would be free to drop them sets their batch's delete horizon to now + `delete.retention.ms`; a
run after the horizon drops them (KIP-534).

Offsets never change. Runs in a thread beside the log's: it reads files of closed segments, writes
new files and syncs them; the log changes in one step that its owner makes, of renames only.

Source: Kafka, Cleaner.java, LogCleaner.java; KIP-354, KIP-534.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from posixpath import join
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from protocol.errors import DecodeError
from protocol.records.batch import (
    LOG_OVERHEAD,
    BatchHeader,
    checked_header,
    crc_matches,
    read_header,
)
from protocol.records.builder import rebuild_batch
from protocol.records.control import ControlType, parse_control_type
from protocol.records.record import Record, iterate_records
from storage.batch_scan import scan_headers
from storage.cleaned_segment import CleanedSegment
from storage.cleaner_transactions import CleanedTransactions
from storage.errors import CorruptFileError, StorageError
from storage.filesystem import Filesystem
from storage.log_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    log_file_name,
)
from storage.offset_map import BYTES_PER_ENTRY, OffsetMap
from storage.owner import OnOwner, in_this_thread
from storage.retention import SegmentFacts
from storage.topic_partition import TopicPartition
from storage.transaction_index import AbortedTxn, TransactionIndex

if TYPE_CHECKING:
    # Not at run time: a process that only cleans needs none of it.
    from config.topic import TopicConfig
    from storage.producer_state import ProducerStateManager
    from storage.segment import Segment

_log = logging.getLogger(__name__)

DEDUPE_BUFFER_LOAD_FACTOR: Final = 0.9
"""Default of `log.cleaner.io.buffer.load.factor`: how full the offset map may get."""

READ_BYTES: Final = 512 * 1024
"""Default of `log.cleaner.io.buffer.size`; a larger batch is read alone."""

DECOMPRESSED_SIZE_MAX: Final = 256 << 20
"""Largest batch the cleaner unpacks, in bytes; above it the partition is uncleanable.

Far above what honest producers reach with `max.message.bytes` of 1 MiB, far below what would take
a broker down.
"""

_RELATIVE_OFFSET_MAX: Final = 2**31 - 1


class CleaningAbortedError(StorageError):
    """The partition is being deleted, truncated or shut down; nothing was changed."""


class CleaningFailedError(StorageError):
    """The process that did the run has ended; the log is as before, and is to be tried again."""


class CleanableSegment(SegmentFacts, Protocol):
    """What the cleaner asks of a segment."""

    @property
    def first_timestamp(self) -> int:
        """Max timestamp of the first batch, ms; -1 without one."""
        ...


class CleanableLog(Protocol):
    """What the cleaner needs of a log."""

    topic_partition: TopicPartition
    directory: str
    config: "TopicConfig"
    log_start_offset: int
    producer_state: "ProducerStateManager"

    @property
    def log_end_offset(self) -> int:
        """Offset the next record will get."""
        ...

    @property
    def last_stable_offset(self) -> int:
        """First offset that may still belong to an open transaction, or is not replicated."""
        ...

    def segment_facts(self) -> Sequence[CleanableSegment]:
        """All segments, ascending; the last one is the active segment."""
        ...

    def prepare_replacement(self, base_offset: int) -> "Segment":
        """Give the finished `.cleaned` segment the suffix `.swap`, on disk.

        Raises:
            DiskError: The disk refused.
        """
        ...

    def put_replacement(self, segment: "Segment", replaced: Sequence[int]) -> None:
        """Let a prepared segment take the place of others.

        Args:
            segment: From `prepare_replacement`.
            replaced: Base offsets of all segments it stands for, ascending.

        Raises:
            DiskError: The disk refused.
        """
        ...

    def sync_replacement(self) -> None:
        """Have the names of a replacement on disk; DiskError when the disk refuses."""
        ...

    def undo_replacement(self, segment: "Segment") -> None:
        """Remove a prepared segment that is not wanted any more."""
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


def _never() -> None:
    pass


def _unthrottled(_size: int, _check_done: Callable[[], None]) -> None:
    pass


class CleansLogs(Protocol):
    """What compacts logs: here, or in another process."""

    def clean(
        self,
        log: CleanableLog,
        *,
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        now_ms: int,
        check_done: Callable[[], None],
        on_owner: OnOwner,
    ) -> CleanerStats:
        """As `Cleaner.clean`."""
        ...


class Cleaner:
    """Compacts one log at a time.

    Args:
        filesystem: Where the segments are.
        dedupe_buffer_bytes: Memory of the offset map (`log.cleaner.dedupe.buffer.size` / threads).
        load_factor: `log.cleaner.io.buffer.load.factor`.
        read_bytes: `log.cleaner.io.buffer.size`.
        throttle: Called with the size of each batch read, and with what raises when the run is to
            stop: sleeps to hold the rate, and lets other threads of the interpreter run (see
            `storage.throttle`).
    """

    def __init__(
        self,
        filesystem: Filesystem,
        *,
        dedupe_buffer_bytes: int,
        load_factor: float = DEDUPE_BUFFER_LOAD_FACTOR,
        read_bytes: int = READ_BYTES,
        throttle: Callable[[int, Callable[[], None]], None] = _unthrottled,
    ) -> None:
        self._filesystem = filesystem
        self._map_bytes = dedupe_buffer_bytes
        self._load_factor = load_factor
        self._read_bytes = read_bytes
        self._throttle = throttle

    def clean(
        self,
        log: CleanableLog,
        *,
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        now_ms: int,
        check_done: Callable[[], None] = _never,
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
            DecodeError: Records do not parse, or are beyond `DECOMPRESSED_SIZE_MAX`.
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
            lambda base_offset, replaced: replace(log, base_offset, replaced, check_done, on_owner),
            check_done,
        )

    def do(
        self,
        job: CleaningJob,
        put_in_place: Callable[[int, Sequence[int]], None],
        check_done: Callable[[], None] = _never,
    ) -> CleanerStats:
        """Do a run.

        Args:
            job: What is to be done.
            put_in_place: Called with the base offset of each finished `.cleaned` segment and those
                of the segments it stands for.
            check_done: As for `clean`.

        Raises:
            StorageError, DecodeError: As `clean`.
        """
        run = _Run(self, job, put_in_place, check_done)
        with closing(run):
            return run.run()

    # Shared with _Run, which holds the state of one run.

    def new_map(self, records_count: int) -> tuple[OffsetMap, int]:
        """An offset map for so many records, and how many keys to put into it at most."""
        # Every key a different one: more slots than that are never needed. Hashes touch all of a
        # map's pages, so a map that is too large costs its whole size.
        wanted = int(records_count / self._load_factor * BYTES_PER_ENTRY) + 1024
        offset_map = OffsetMap(min(self._map_bytes, wanted))
        return offset_map, max(int(offset_map.slots * self._load_factor) - 1, 1)

    def read_batches(
        self, path: str, size: int, check_done: Callable[[], None]
    ) -> Iterator[tuple[BatchHeader, memoryview]]:
        """(header, bytes) of the batches of a `.log` file, up to `size`. Bytes are kept alive."""
        with closing(self._filesystem.open(path, readonly=True)) as file:
            position = 0
            wanted = self._read_bytes
            while position < size:
                wanted = min(wanted, size - position)
                data = file.read_at(wanted, position)
                if len(data) < wanted:
                    raise CorruptFileError(f"{path} ends before {position + wanted}")
                view = memoryview(data)
                at = 0
                needed = self._read_bytes
                while len(data) - at > LOG_OVERHEAD:
                    batch_size = int.from_bytes(data[at + 8 : at + 12], "big") + LOG_OVERHEAD
                    if at + batch_size > len(data):
                        needed = max(batch_size, needed)
                        break
                    header = _checked(view, at, f"{path} at {position + at}")
                    self._throttle(batch_size, check_done)
                    yield header, view[at : at + batch_size]
                    at += batch_size
                if at == 0 and wanted >= min(needed, size - position):
                    raise CorruptFileError(f"{path} ends within a batch at {position}")
                position += at
                wanted = needed


def _checked(view: memoryview, at: int, place: str) -> BatchHeader:
    """The header at `at`. A damaged batch must not get a fresh checksum from us."""
    try:
        header = checked_header(view, at)
    except DecodeError as error:
        raise CorruptFileError(f"{place}: {error}") from error
    if not crc_matches(view, at, header):
        raise CorruptFileError(f"{place}: record batch fails its CRC")
    return header


class _Run:
    """One run over one log."""

    def __init__(
        self,
        cleaner: Cleaner,
        job: CleaningJob,
        put_in_place: Callable[[int, Sequence[int]], None],
        check_done: Callable[[], None],
    ) -> None:
        self._cleaner = cleaner
        self._filesystem = cleaner._filesystem
        self._job = job
        self._put_in_place = put_in_place
        self._now_ms = job.now_ms
        self._upper_bound = job.first_uncleanable_offset
        self._check_done = check_done
        self._stats = CleanerStats()
        self._transactions = CleanedTransactions()
        self._aborted: list[AbortedTxn] = []
        self._map = OffsetMap(0)

    def run(self) -> CleanerStats:
        job = self._job
        segments = job.segments
        self._aborted = self._read_aborted(segments)
        self._transactions.add_aborted(self._aborted)
        self._build_map(segments, job.first_dirty_offset)
        end_offset = self._map.latest_offset + 1
        self._stats.start_offset = job.first_dirty_offset
        self._stats.end_offset = max(end_offset, job.first_dirty_offset)
        groups = group_segments(
            [s for s in segments[:-1] if s.base_offset < end_offset],
            segments,
            size_max=job.segment_bytes,
            index_size_max=job.segment_index_bytes,
            index_sizes=self._index_size,
            first_uncleanable_offset=self._upper_bound,
        )
        for group in groups:
            self._clean_group(group)
        self._stats.map_fill = len(self._map) / self._map.slots
        return self._stats

    def close(self) -> None:
        """Give the map's memory back."""
        self._map.close()

    def _path(self, base_offset: int, kind: str) -> str:
        return join(self._job.directory, log_file_name(base_offset, kind))

    def _index_size(self, segment: SegmentSize) -> int:
        path = self._path(segment.base_offset, OFFSET_INDEX_SUFFIX)
        return self._filesystem.file_size(path) if self._filesystem.exists(path) else 0

    # -- the map -----------------------------------------------------------------------------

    def _build_map(self, segments: Sequence[SegmentSize], start: int) -> None:
        end = self._upper_bound
        dirty = [
            (segment, min(following.base_offset, end))
            for segment, following in pairwise(segments)
            if following.base_offset > start and segment.base_offset < end
        ]
        self._map.close()
        self._map, keys_max = self._cleaner.new_map(
            sum(self._count_records(segment, start) for segment, _ in dirty)
        )
        transactions = CleanedTransactions()
        transactions.add_aborted(
            txn for txn in self._aborted if txn.last_offset >= start and txn.first_offset < end
        )
        for segment, segment_end in dirty:
            if self._map_segment(segment, start, keys_max, transactions):
                return
            # Offsets may be missing at the end of a compacted segment.
            self._map.latest_offset = max(self._map.latest_offset, segment_end - 1)

    def _count_records(self, segment: SegmentSize, start: int) -> int:
        """Data records of a segment in batches that reach `start`, by the batches' headers."""
        path = self._path(segment.base_offset, LOG_SUFFIX)
        with closing(self._filesystem.open(path, readonly=True)) as file:
            return sum(
                max(header.records_count, 0)
                for _, header in scan_headers(file, 0, segment.size)
                if header.last_offset >= start and not header.is_control
            )

    def _map_segment(
        self,
        segment: SegmentSize,
        start: int,
        keys_max: int,
        transactions: CleanedTransactions,
    ) -> bool:
        """Read one segment into the map; True when the map is full."""
        offset_map = self._map
        path = self._path(segment.base_offset, LOG_SUFFIX)
        for header, batch in self._cleaner.read_batches(path, segment.size, self._check_done):
            if header.last_offset < start:
                # Transactions that began there are known by the index; data ones may be committed.
                continue
            self._check_done()
            if header.is_control:
                transactions.on_control_batch(header, _control_type(header, batch))
            elif not transactions.on_data_batch(header):
                for record in iterate_records(batch, max_size=DECOMPRESSED_SIZE_MAX):
                    self._stats.map_records_read += 1
                    if record.key is not None and record.offset >= start:
                        if len(offset_map) >= keys_max:
                            # All before it are in: go on from here in the next run.
                            offset_map.latest_offset = max(
                                offset_map.latest_offset, record.offset - 1
                            )
                            return True
                        offset_map.put(record.key, record.offset)
            offset_map.latest_offset = header.last_offset
        return False

    def _read_aborted(self, segments: Sequence[SegmentSize]) -> list[AbortedTxn]:
        """All aborted transactions of the log, the active segment's too: markers come late."""
        found: list[AbortedTxn] = []
        for segment in segments:
            path = self._path(segment.base_offset, TRANSACTION_INDEX_SUFFIX)
            found.extend(TransactionIndex(path, self._filesystem).entries())
        return found

    # -- the segments ------------------------------------------------------------------------

    def _clean_group(self, group: Sequence[SegmentSize]) -> None:
        base_offset = group[0].base_offset
        replaced = [segment.base_offset for segment in group]
        cleaned = CleanedSegment(
            self._job.directory, base_offset, self._filesystem, self._job.index_interval_bytes
        )
        try:
            self._transactions.keep_aborted = cleaned.append_aborted
            last_records = self._job.last_records
            for segment in group:
                path = self._path(segment.base_offset, LOG_SUFFIX)
                for header, batch in self._cleaner.read_batches(
                    path, segment.size, self._check_done
                ):
                    self._check_done()
                    self._stats.bytes_read += len(batch)
                    kept = self._filter(header, batch, last_records)
                    if kept is not None:
                        cleaned.append(*kept)
            cleaned.finish()
            self._check_done()
        except BaseException:
            cleaned.discard()
            raise
        self._stats.bytes_written += cleaned.size
        self._put_in_place(base_offset, replaced)

    def _filter(
        self, header: BatchHeader, batch: memoryview, last_records: dict[int, tuple[int, int]]
    ) -> tuple[BatchHeader, bytearray | memoryview] | None:
        """What stays of a batch: it, another in its place, or None."""
        horizon = header.delete_horizon_ms
        marker_is_useless = False
        if header.is_control:
            control_type = _control_type(header, batch)
            marker_is_useless = self._transactions.on_control_batch(header, control_type)
            discard = marker_is_useless and horizon is not None and horizon <= self._now_ms
        else:
            discard = self._transactions.on_data_batch(header)
        keep_empty = (
            self._is_last_of_producer(header, last_records)
            or header.next_offset == self._upper_bound
        )
        if discard:
            self._stats.records_read += max(header.records_count, 0)
            return self._emptied(header) if keep_empty else None
        records = list(iterate_records(batch, max_size=DECOMPRESSED_SIZE_MAX))
        if header.is_control:
            retained = records
        else:
            retained = [record for record in records if self._keeps(record, horizon)]
        self._stats.records_read += len(records)
        self._stats.records_kept += len(retained)
        if not retained:
            return self._emptied(header) if keep_empty else None
        sets_horizon = horizon is None and (
            marker_is_useless or any(record.value is None for record in retained)
        )
        if len(retained) == len(records) and not sets_horizon:
            return header, batch
        if sets_horizon:
            horizon = self._now_ms + self._job.delete_retention_ms
        rebuilt = rebuild_batch(header, retained, delete_horizon_ms=horizon)
        return read_header(rebuilt), rebuilt

    def _keeps(self, record: Record, horizon: int | None) -> bool:
        if record.offset > self._map.latest_offset:
            return True
        if record.key is None:
            self._stats.records_without_key += 1
            return False
        if record.offset < self._map.get(record.key):
            return False
        return record.value is not None or horizon is None or self._now_ms < horizon

    def _emptied(self, header: BatchHeader) -> tuple[BatchHeader, bytearray]:
        rebuilt = rebuild_batch(header, ())
        return read_header(rebuilt), rebuilt

    def _is_last_of_producer(
        self, header: BatchHeader, last_records: dict[int, tuple[int, int]]
    ) -> bool:
        if header.producer_id < 0 or header.producer_id not in last_records:
            return False
        last_data_offset, epoch = last_records[header.producer_id]
        if last_data_offset >= 0:
            return header.last_offset == last_data_offset
        # Only a marker is known of the producer: it holds the epoch that fences older ones.
        return header.is_control and header.producer_epoch == epoch


def replace(
    log: CleanableLog,
    base_offset: int,
    replaced: Sequence[int],
    check_done: Callable[[], None],
    on_owner: OnOwner,
) -> None:
    """Put a finished segment in place of those it was made from; only renames are the owner's.

    Raises:
        CleaningAbortedError: `check_done` said so; the log is as before.
        DiskError: The disk refused; the next start puts it right.
    """
    segment = log.prepare_replacement(base_offset)

    def put() -> None:
        # Asked once more where the log is changed: it may have been deleted a moment ago.
        check_done()
        log.put_replacement(segment, replaced)

    try:
        on_owner(put)
    except CleaningAbortedError:
        log.undo_replacement(segment)
        raise
    log.sync_replacement()


def _control_type(header: BatchHeader, batch: memoryview) -> int | None:
    """Type of the marker in a control batch, None when compaction has taken the record."""
    if header.records_count <= 0:
        return None
    for record in iterate_records(batch, max_size=64 * 1024):
        return int(parse_control_type(record.key))
    return int(ControlType.UNKNOWN)


def _next_base_offset(segment: SegmentSize, segments: Sequence[SegmentSize]) -> int:
    return next(s.base_offset for s in segments if s.base_offset > segment.base_offset)


def group_segments(
    cleanable: Sequence[SegmentSize],
    segments: Sequence[SegmentSize],
    *,
    size_max: int,
    index_size_max: int,
    index_sizes: Callable[[SegmentSize], int],
    first_uncleanable_offset: int,
) -> list[list[SegmentSize]]:
    """Split the segments to be cleaned into runs whose remains fit one segment each.

    Compaction makes segments small; putting neighbours together keeps their number down. A group
    is bounded by log size, index size, and the range of relative offsets.

    Args:
        cleanable: Segments to be cleaned, ascending.
        segments: All of the log's: a segment ends where the next begins.
        size_max: `segment.bytes`.
        index_size_max: `segment.index.bytes`.
        index_sizes: Size of a segment's offset index file, in bytes.
        first_uncleanable_offset: Where the last one ends at most.
    """
    groups: list[list[SegmentSize]] = []
    size = index_size = 0
    for segment in cleanable:
        end = min(_next_base_offset(segment, segments), max(first_uncleanable_offset, 0))
        segment_index_size = index_sizes(segment)
        fits = (
            bool(groups)
            and size + segment.size <= size_max
            and index_size + segment_index_size <= index_size_max
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= _RELATIVE_OFFSET_MAX)
        )
        if fits:
            groups[-1].append(segment)
            size += segment.size
            index_size += segment_index_size
        else:
            groups.append([segment])
            size, index_size = segment.size, segment_index_size
    return groups
