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

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from posixpath import join
from typing import Final

from typing_extensions import override

from protocol.records.batch import BatchHeader
from storage.cleaner.batch_filter import BatchFilter, control_type_of
from storage.cleaner.checked_batches import read_checked_batches
from storage.cleaner.cleaned_segment import CleanedSegment
from storage.cleaner.cleaning import (
    CleanerStats,
    CleaningJob,
    CleansLogs,
    PutInPlace,
    SegmentSize,
    never,
)
from storage.cleaner.compiled_offset_map import CompiledOffsetMap
from storage.cleaner.dirty_part import DirtyPart
from storage.cleaner.offset_map import BYTES_PER_ENTRY, RECENT_SHARE, OffsetMap
from storage.cleaner.segment_groups import group_segments
from storage.cleaner.transactions import CleanedTransactions
from storage.environment.filesystem import Filesystem
from storage.index.batch_scan import scan_headers
from storage.index.transaction_index import AbortedTxn, TransactionIndex
from storage.records.walks import compiled_walks
from storage.types.log_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    log_file_name,
)

DEDUPE_BUFFER_LOAD_FACTOR: Final = 0.9
"""Default of `log.cleaner.io.buffer.load.factor`: how full the offset map may get."""

READ_BYTES: Final = 512 * 1024
"""Default of `log.cleaner.io.buffer.size`; a larger batch is read alone."""


def _unthrottled(_size: int, _check_done: Callable[[], None]) -> None:
    pass


class Cleaner(CleansLogs):
    """Compacts one log at a time.

    Args:
        filesystem: Where the segments are.
        dedupe_buffer_bytes: Memory of the offset map (`log.cleaner.dedupe.buffer.size` / threads).
        load_factor: `log.cleaner.io.buffer.load.factor`.
        read_bytes: `log.cleaner.io.buffer.size`.
        throttle: Called with the size of each batch read, and with what raises when the run is to
            stop: sleeps to hold the rate, and lets other threads of the interpreter run (see
            `storage.environment.throttle`).
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

    @override
    def do(
        self, job: CleaningJob, put_in_place: PutInPlace, check_done: Callable[[], None] = never
    ) -> CleanerStats:
        run = _Run(self, job, put_in_place, check_done)
        with closing(run):
            return run.run()

    # Shared with _Run, which holds the state of one run.

    def new_map(self, records_count: int) -> tuple[OffsetMap, int]:
        """An offset map for so many records, and how many keys to put into it at most."""
        # Every key a different one: more slots than that are never needed. Hashes touch all of a
        # map's pages, so a map that is too large costs its whole size.
        wanted = int(records_count / self._load_factor * BYTES_PER_ENTRY) + 1024
        size = min(self._map_bytes, wanted)
        walks = compiled_walks()
        offset_map = (
            OffsetMap(size, self._map_bytes // RECENT_SHARE)
            if walks is None
            else CompiledOffsetMap(walks, size)
        )
        return offset_map, max(int(offset_map.slots * self._load_factor) - 1, 1)


class _Run:
    """One run over one log."""

    def __init__(
        self,
        cleaner: Cleaner,
        job: CleaningJob,
        put_in_place: PutInPlace,
        check_done: Callable[[], None],
    ) -> None:
        self._cleaner = cleaner
        self._filesystem = cleaner._filesystem
        self._job = job
        self._put_in_place = put_in_place
        self._upper_bound = job.first_uncleanable_offset
        self._check_done = check_done
        self._stats = CleanerStats()
        self._transactions = CleanedTransactions()
        self._aborted: list[AbortedTxn] = []
        self._dirty = DirtyPart(OffsetMap(0), 0, 0, self._stats)

    def run(self) -> CleanerStats:
        job = self._job
        segments = job.segments
        self._aborted = self._read_aborted(segments)
        self._transactions.add_aborted(self._aborted)
        self._read_dirty(segments, job.first_dirty_offset)
        offset_map = self._dirty.map
        end_offset = offset_map.latest_offset + 1
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
        batches = BatchFilter(job, self._dirty, self._transactions, self._stats)
        for group in groups:
            self._clean_group(group, batches)
        self._stats.map_fill = len(offset_map) / offset_map.slots
        return self._stats

    def close(self) -> None:
        """Give the map's memory back."""
        self._dirty.map.close()

    def _path(self, base_offset: int, kind: str) -> str:
        return join(self._job.directory, log_file_name(base_offset, kind))

    def _read_batches(self, path: str, size: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """The batches of a segment, at the rate that is allowed."""
        throttle = self._cleaner._throttle
        check_done = self._check_done
        for header, batch in read_checked_batches(
            self._filesystem, path, size, self._cleaner._read_bytes
        ):
            throttle(len(batch), check_done)
            check_done()
            yield header, batch

    def _index_size(self, segment: SegmentSize) -> int:
        path = self._path(segment.base_offset, OFFSET_INDEX_SUFFIX)
        return self._filesystem.file_size(path) if self._filesystem.exists(path) else 0

    # -- the dirty part ----------------------------------------------------------------------

    def _read_dirty(self, segments: Sequence[SegmentSize], start: int) -> None:
        end = self._upper_bound
        dirty = [
            (segment, min(following.base_offset, end))
            for segment, following in pairwise(segments)
            if following.base_offset > start and segment.base_offset < end
        ]
        self.close()
        offset_map, keys_max = self._cleaner.new_map(
            sum(self._count_records(segment, start) for segment, _ in dirty)
        )
        self._dirty = DirtyPart(offset_map, keys_max, start, self._stats)
        transactions = CleanedTransactions()
        transactions.add_aborted(
            txn for txn in self._aborted if txn.last_offset >= start and txn.first_offset < end
        )
        for segment, segment_end in dirty:
            if self._map_segment(segment, transactions):
                break
            # Offsets may be missing at the end of a compacted segment.
            offset_map.latest_offset = max(offset_map.latest_offset, segment_end - 1)
        self._dirty.finish()

    def _count_records(self, segment: SegmentSize, start: int) -> int:
        """Data records of a segment in batches that reach `start`, by the batches' headers."""
        path = self._path(segment.base_offset, LOG_SUFFIX)
        with closing(self._filesystem.open(path, readonly=True)) as file:
            return sum(
                max(header.records_count, 0)
                for _, header in scan_headers(file, 0, segment.size)
                if header.last_offset >= start and not header.is_control
            )

    def _map_segment(self, segment: SegmentSize, transactions: CleanedTransactions) -> bool:
        """Read one segment into the map; True when the map is full."""
        dirty = self._dirty
        path = self._path(segment.base_offset, LOG_SUFFIX)
        for header, batch in self._read_batches(path, segment.size):
            if header.last_offset < dirty.start:
                # Transactions that began there are known by the index; data ones may be committed.
                continue
            if header.is_control:
                transactions.on_control_batch(header, control_type_of(header, batch))
            elif not transactions.on_data_batch(header) and dirty.add(header, batch):
                return True
            dirty.map.latest_offset = header.last_offset
        return False

    def _read_aborted(self, segments: Sequence[SegmentSize]) -> list[AbortedTxn]:
        """All aborted transactions of the log, the active segment's too: markers come late."""
        found: list[AbortedTxn] = []
        for segment in segments:
            path = self._path(segment.base_offset, TRANSACTION_INDEX_SUFFIX)
            found.extend(TransactionIndex(path, self._filesystem).entries())
        return found

    # -- the segments ------------------------------------------------------------------------

    def _clean_group(self, group: Sequence[SegmentSize], batches: BatchFilter) -> None:
        base_offset = group[0].base_offset
        replaced = [segment.base_offset for segment in group]
        cleaned = CleanedSegment(
            self._job.directory, base_offset, self._filesystem, self._job.index_interval_bytes
        )
        try:
            self._transactions.keep_aborted = cleaned.append_aborted
            for segment in group:
                path = self._path(segment.base_offset, LOG_SUFFIX)
                for header, batch in self._read_batches(path, segment.size):
                    self._stats.bytes_read += len(batch)
                    kept = batches.filter(header, batch)
                    if kept is not None:
                        cleaned.append(*kept)
            cleaned.finish()
            self._check_done()
        except BaseException:
            cleaned.discard()
            raise
        self._stats.bytes_written += cleaned.size
        self._put_in_place(base_offset, replaced)
