"""One segment: a `.log` file, its three indexes, and what is known of it without reading.

Positions are bytes from the start of the file, always batch boundaries. The file is opened when it
is needed and may be closed by the pool (`Filesystem.open_files`) at any time; indexes likewise.

An index has no checksum. Every entry taken from one is compared with the batch that it names; when
that is not there, both indexes are rebuilt from the log and the question is asked again.

Source: Kafka, LogSegment.java.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeVar

from typing_extensions import override

from protocol.errors import DecodeError
from protocol.records.batch import LOG_OVERHEAD, BatchHeader
from protocol.records.record import find_max_timestamp, find_timestamp
from storage.environment.filesystem import Buffer, Filesystem
from storage.errors import CorruptFileError
from storage.index.batch_scan import read_batch_header, scan_headers
from storage.index.reads import WAITING, Reads
from storage.index.sparse_index import IndexWrite
from storage.segment.segment_files import SegmentFiles
from storage.types.file_slice import FileSlice
from storage.types.log_files import (
    CLEANED_SUFFIX,
    RELATIVE_OFFSET_MAX,
)

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

NO_TIMESTAMP: Final = -1

HINTS_MAX: Final = 32
"""Readers per segment whose next position is remembered, and as many of those before them."""


class TimestampOffset(NamedTuple):
    """A record found by time. `leader_epoch` is that of its batch, -1 if unknown."""

    timestamp: int
    offset: int
    leader_epoch: int = -1


class BatchAppend:
    """What the indexes need to know of one batch that is appended."""

    __slots__ = ("last_offset", "max_timestamp", "size")

    def __init__(self, size: int, last_offset: int, max_timestamp: int) -> None:
        self.size = size
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp


def max_timestamp_of(batches: list[BatchAppend]) -> int:
    """The largest timestamp of one batch at least, ms."""
    largest = batches[0].max_timestamp
    for batch in batches:
        if batch.max_timestamp > largest:
            largest = batch.max_timestamp
    return largest


class Segment(SegmentFiles):
    """A part of a log: the batches from `base_offset` up to the next segment's.

    Attributes:
        index_interval_bytes: `index.interval.bytes`.
        created_ms: When it was made, for rolling segments without timestamps.
        may_be_cut: Its file was there before and may have been cut; see `whole_end`.
        needs_roll: An index may be full (`segment.index.bytes`): ask `has_full_index`.
        roll_jitter_ms: Taken off `segment.ms`, so that partitions do not roll together.
        written_back: Up to here a writeback was begun, or none is needed.
    """

    __slots__ = (
        "_bytes_since_index_entry",
        "_hints",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_older_hints",
        "_whole_end",
        "_whole_next_offset",
        "created_ms",
        "index_interval_bytes",
        "known_first_timestamp",
        "may_be_cut",
        "needs_roll",
        "roll_jitter_ms",
        "written_back",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        filesystem: Filesystem,
        *,
        index_interval_bytes: int,
        index_max_bytes: int,
        size: int = 0,
        created_ms: int = 0,
        roll_jitter_ms: int = 0,
        has_transaction_index: bool = False,
        stage: str = "",
    ) -> None:
        """Describe a segment; touches no file. `create` makes one.

        Args:
            directory: Of the partition.
            base_offset: See the class.
            filesystem: Where it is.
            index_interval_bytes: `index.interval.bytes`.
            index_max_bytes: `segment.index.bytes`.
            size: Of the `.log` file there is. Its indexes are expected to be there unless it is 0.
            created_ms: See the class.
            roll_jitter_ms: See the class.
            has_transaction_index: There is a `.txnindex` file.
            stage: See `log_files`.
        """
        super().__init__(
            directory,
            base_offset,
            filesystem,
            index_max_bytes=index_max_bytes,
            size=size,
            has_transaction_index=has_transaction_index,
            stage=stage,
        )
        self.written_back = size
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.index_interval_bytes = index_interval_bytes
        is_new = size == 0
        # The indexes of one that was there are not read yet. With room for a single time a new one
        # is full from the beginning: it takes one batch.
        self.needs_roll = not is_new or self.time_index.is_full
        self._bytes_since_index_entry = 0
        self._hints: dict[int, int] | None = None
        self._older_hints: dict[int, int] | None = None
        # None: not known yet, to be read from the log.
        self.known_first_timestamp: int | None = None
        self.may_be_cut = not is_new
        self._whole_end = -1
        self._whole_next_offset = base_offset
        self._max_timestamp: int | None = NO_TIMESTAMP if is_new else None
        self._max_timestamp_offset = base_offset

    @classmethod
    def create(
        cls,
        directory: str,
        base_offset: int,
        filesystem: Filesystem,
        *,
        index_interval_bytes: int,
        index_max_bytes: int,
        created_ms: int,
        roll_jitter_ms: int = 0,
        preallocate_bytes: int = 0,
        stage: str = "",
    ) -> "Segment":
        """Make the empty `.log` file of a new segment; one that is there already is emptied.

        Raises:
            DiskError: The disk refused.
        """
        segment = cls(
            directory,
            base_offset,
            filesystem,
            index_interval_bytes=index_interval_bytes,
            index_max_bytes=index_max_bytes,
            created_ms=created_ms,
            roll_jitter_ms=roll_jitter_ms,
            stage=stage,
        )
        segment.create_file(preallocate_bytes)
        return segment

    @override
    def close(self) -> None:
        """See `SegmentFiles`; what was remembered of readers goes as well."""
        super().close()
        self._hints = self._older_hints = None

    def seal(self) -> bool:
        """Nothing more is appended: final time index entry, indexes saved, preallocation cut off.

        Not synced: see `storage.segment.flush`.

        Returns:
            Whether an index file changed.
        """
        writes = self.begin_seal()
        for write in writes:
            write.run()
        self.finish_seal(writes)
        self.trim()
        return bool(writes)

    def begin_seal(self) -> list[IndexWrite]:
        """Add the final time index entry; what is to be written of the indexes."""

        def begin() -> list[IndexWrite]:
            if self.size > 0:
                self.time_index.maybe_append(
                    self.max_timestamp, self._max_timestamp_offset, save=False
                )
            return self.begin_save()

        return self._with_rebuild(begin)

    def begin_save(self) -> list[IndexWrite]:
        """What is to be written for the indexes to be in their files."""
        writes = (self.offset_index.begin_save(), self.time_index.begin_save())
        return [write for write in writes if write is not None]

    def finish_seal(self, writes: list[IndexWrite]) -> None:
        """What `begin_seal` or `begin_save` gave has been written."""
        for write in writes:
            self.offset_index.finish_save(write)
            self.time_index.finish_save(write)

    def undo_append(self) -> None:
        """A write has failed: the segment is as before it.

        Raises:
            DiskError: The disk refused; what is there could be taken for log after a crash.
        """
        # Only where the write itself had worked do these know of it; they are read again.
        self._max_timestamp = None if self.size else NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        if not self.size:
            self.known_first_timestamp = None
        self.trim()

    # -- appending ---------------------------------------------------------------------------

    def append(self, records: Buffer, size: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch, which must fit (`can_hold`), to the page cache.

        Args:
            records: The whole batch.
            size: Its bytes.
            last_offset: Of the batch, absolute and inclusive.
            max_timestamp: Of the batch, ms.

        Raises:
            DiskError: The disk refused; the segment is as before.
        """
        file = self.file
        if file is None:
            file = self.open_file()
        position = self.size
        file.write_at(records, position)
        self.used = True
        if self._max_timestamp is None or max_timestamp > self._max_timestamp:
            self._raise_max_timestamp(max_timestamp, last_offset)
        if position == 0:
            self.known_first_timestamp = max_timestamp
        pending = self._bytes_since_index_entry
        if pending > self.index_interval_bytes:
            self._add_index_entries(last_offset, position, True)
            pending = 0
        self._bytes_since_index_entry = pending + size
        self.size = position + size

    def append_batches(self, records: Buffer, batches: list[BatchAppend]) -> None:
        """Write several batches at once; else as `append`."""
        self.open_file().write_at(records, self.size)
        self.take_in(batches)

    def take_in(self, batches: list[BatchAppend], *, save: bool = True) -> None:
        """Batches have been written at the end of the file: they belong to the segment now.

        Args:
            batches: In their order.
            save: Write index entries out if they have become many. Without it no call goes to the
                disk, if the segment `is_warm`.
        """
        position = self.size
        for batch in batches:
            if position == 0:
                self.known_first_timestamp = batch.max_timestamp
            if batch.max_timestamp > self.max_timestamp:
                self._raise_max_timestamp(batch.max_timestamp, batch.last_offset)
            if self._bytes_since_index_entry > self.index_interval_bytes:
                self._add_index_entries(batch.last_offset, position, save)
                self._bytes_since_index_entry = 0
            self._bytes_since_index_entry += batch.size
            position += batch.size
        self.size = position

    @property
    def is_warm(self) -> bool:
        """Whether appending needs nothing that has to be read first."""
        return (
            self._max_timestamp is not None
            and (self.known_first_timestamp is not None or self.size == 0)
            and self.offset_index.is_known
            and self.time_index.is_known
        )

    @property
    def has_long_tail(self) -> bool:
        """Many index entries are not in their files: `begin_save` is due."""
        return self.offset_index.has_long_tail or self.time_index.has_long_tail

    def warmed_copy(self) -> "Segment":
        """Another object for the same files that has read what `is_warm` asks for.

        For a thread: this object is left as it is, so its owner may use it meanwhile. To be given
        to `take_warmth`. Should the indexes be damaged they are rebuilt.

        Raises:
            DiskError: The disk refused.
        """
        copy = Segment(
            self.directory,
            self.base_offset,
            self._filesystem,
            index_interval_bytes=self.index_interval_bytes,
            index_max_bytes=0,
            size=self.size,
            stage=self.stage,
        )
        try:
            _ = copy.first_timestamp, copy.max_timestamp
            copy._with_rebuild(copy._learn_indexes)
        finally:
            copy.close()
        return copy

    def _learn_indexes(self) -> None:
        self.offset_index.learn()
        self.time_index.learn()

    def take_warmth(self, copy: "Segment") -> None:
        """Learn from a copy what it has read; what is known here already stays."""
        if self.known_first_timestamp is None:
            self.known_first_timestamp = copy.first_timestamp if self.size else None
        if self._max_timestamp is None:
            self._max_timestamp = copy.max_timestamp
            self._max_timestamp_offset = copy._max_timestamp_offset
        self.offset_index.learn_from(copy.offset_index)
        self.time_index.learn_from(copy.time_index)

    def know_max_timestamp(self, timestamp: int, offset: int) -> None:
        """The greatest timestamp of its batches, and the last offset of the first batch with it."""
        self._max_timestamp = timestamp
        self._max_timestamp_offset = offset

    def forget_positions(self) -> None:
        """Drop the positions that were remembered for readers: batches have moved."""
        self._hints = self._older_hints = None

    def _raise_max_timestamp(self, timestamp: int, offset: int) -> None:
        if timestamp > self.max_timestamp:
            self._max_timestamp = timestamp
            self._max_timestamp_offset = offset

    def _add_index_entries(self, last_offset: int, position: int, save: bool) -> None:
        try:
            self.offset_index.append(last_offset, position, save=save)
            self.time_index.maybe_append(self.max_timestamp, self._max_timestamp_offset, save=save)
            self.needs_roll = self.offset_index.is_full or self.time_index.is_full
        except CorruptFileError as error:
            self.rebuild_indexes(error)

    def set_index_max_bytes(self, max_bytes: int) -> None:
        """A new `segment.index.bytes`."""
        self.offset_index.set_max_bytes(max_bytes)
        self.time_index.set_max_bytes(max_bytes)
        self.needs_roll = True

    def has_full_index(self) -> bool:
        """Whether it must be rolled for want of room in an index; `needs_roll` says so then."""
        try:
            self.needs_roll = self.offset_index.is_full or self.time_index.is_full
        except CorruptFileError as error:
            self.rebuild_indexes(error)
            self.needs_roll = self.offset_index.is_full or self.time_index.is_full
        return self.needs_roll

    def can_hold(self, last_offset: int) -> bool:
        """Whether an offset's distance from the base offset fits an index entry."""
        return 0 <= last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

    # -- looking up --------------------------------------------------------------------------

    def remember(self, offset: int, position: int) -> None:
        """Note that the batch of `offset` begins at `position`: a reader will ask for it next."""
        # The loop and threads run this at once. So nothing is removed from a dict that another
        # thread may read: a full one becomes the older one, and each step is a single bytecode.
        hints = self._hints
        if hints is None:
            hints = self._hints = {}
        elif len(hints) >= HINTS_MAX and offset not in hints:
            self._older_hints = hints
            hints = self._hints = {}
        hints[offset] = position

    def position_of(self, offset: int, reads: Reads = WAITING) -> int:
        """Where the first batch begins that reaches `offset`; the end of the log if none does."""
        hints = self._hints
        if hints is not None:
            position = hints.get(offset, -1)
            if position >= 0:
                return position
            hints = self._older_hints
            if hints is not None:
                position = hints.get(offset, -1)
                if position >= 0:
                    return position
        if offset <= self.base_offset:
            return 0
        for position, header in self.scan(self._start_for(offset, reads), reads):
            if header.base_offset + header.last_offset_delta >= offset:
                return position
        return self.size

    def scan(self, position: int = 0, reads: Reads = WAITING) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of the batches from `position` on."""
        return scan_headers(reads.of(self.open_file(reads)), position, self.size)

    def _start_for(self, offset: int, reads: Reads) -> int:
        """A batch boundary at or before the batch of `offset`."""

        def look_up() -> int:
            entry_offset, position = self.offset_index.lookup(offset, reads)
            if position:
                self._expect_batch(position, entry_offset, reads)
                # Whatever the entry says: the batch must not begin after the offset.
                if self._header_at(position, reads).base_offset > offset:
                    raise CorruptFileError(f"{self.offset_index.path} names a later batch")
            return position

        return self._with_rebuild(look_up, reads)

    def _header_at(self, position: int, reads: Reads = WAITING) -> BatchHeader:
        header = read_batch_header(reads.of(self.open_file(reads)), position, self.size)
        if header is None:
            raise CorruptFileError(f"no batch at {position} of {self.path}")
        return header

    def _expect_batch(self, position: int, offset: int, reads: Reads = WAITING) -> None:
        """Raise CorruptFileError unless a batch begins at `position` and not above `offset`."""
        base_offset = self._header_at(position, reads).base_offset
        if not self.base_offset <= base_offset <= offset:
            raise CorruptFileError(f"{self.offset_index.path} names offset {offset}, not there")

    def _with_rebuild(self, look_up: Callable[[], _T], reads: Reads = WAITING) -> _T:
        try:
            return look_up()
        except CorruptFileError as error:
            if reads is WAITING:
                self.rebuild_indexes(error)
            else:
                self._rebuild_beside(error, reads)
        return look_up()

    def _rebuild_beside(self, reason: Exception, reads: Reads) -> None:
        """Have a thread rebuild the index files; it works on a segment of its own.

        What is appended meanwhile has its entries in memory, beyond those that the files get.
        """
        twin = Segment(
            self.directory,
            self.base_offset,
            self._filesystem,
            index_interval_bytes=self.index_interval_bytes,
            index_max_bytes=self.offset_index.max_bytes,
            size=self.size,
            stage=self.stage,
        )

        def rebuild() -> None:
            try:
                twin.rebuild_indexes(reason)
            finally:
                twin.close()

        key = (self, "indexes")
        reads.call(key, rebuild)
        for index in (self.offset_index, self.time_index):
            index.reload()
            reads.forget(index)
        reads.forget(key)

    def rebuild_indexes(self, reason: Exception | None = None) -> None:
        """Rebuild the offset and the time index from the batch headers."""
        if reason is not None:
            _log.warning("rebuilding the indexes of segment %s: %s", self.path, reason)
        builder = IndexBuilder(self)
        for position, header in self.scan():
            builder.add(
                position,
                header.batch_length + LOG_OVERHEAD,
                header.base_offset + header.last_offset_delta,
                header.max_timestamp,
            )
        builder.finish()
        self.offset_index.save()
        self.time_index.save()

    def rebuild_beside(self) -> "Segment":
        """Rebuild both indexes in files beside those in use, and sync them; for a thread.

        This segment, closed for appends, is not touched, and may be read meanwhile.

        Returns:
            What `take_indexes` takes.

        Raises:
            StorageError: The log cannot be read, or the files not be written.
        """
        twin = Segment(
            self.directory,
            self.base_offset,
            self._filesystem,
            index_interval_bytes=self.index_interval_bytes,
            index_max_bytes=self.offset_index.max_bytes,
            size=self.size,
        )
        # A start after a crash removes them.
        twin.offset_index.stage = twin.time_index.stage = CLEANED_SUFFIX
        try:
            twin.rebuild_indexes()
            twin.trim()
            twin.offset_index.sync()
            twin.time_index.sync()
        finally:
            twin.close()
        return twin

    def take_indexes(self, rebuilt: "Segment") -> None:
        """Put what `rebuild_beside` made in the place of the indexes; by the owner of the log.

        Nothing happens if the segment has left the log meanwhile.

        Raises:
            DiskError: The disk refused; the next look-up finds the old file or the new one.
        """
        indexes = (
            (self.offset_index, rebuilt.offset_index),
            (self.time_index, rebuilt.time_index),
        )
        is_here = self.directory == rebuilt.directory and not self.stage
        for present, made in indexes:
            if is_here:
                self._filesystem.rename(made.path, present.path)
                present.reload()
            else:
                self._filesystem.unlink(made.path, missing_ok=True)
        if is_here:
            self._max_timestamp = rebuilt._max_timestamp
            self._max_timestamp_offset = rebuilt._max_timestamp_offset

    # -- reading -----------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        end_position: int,
        min_one_batch: bool,
        reads: Reads = WAITING,
    ) -> FileSlice | None:
        """The batches from that of `offset` on, whole ones, up to `end_position`.

        Returns:
            None when no batch before `end_position` reaches `offset`. Empty when the first one is
            larger than `max_bytes` and `min_one_batch` is false.

        Raises:
            WouldBlockError: `reads` do not wait, and the disk would have to be waited for.
        """
        if self.file is None:
            # The slice keeps it open until the client has taken it, however slow that is.
            self.open_file(reads, spare=True)
        position = self.position_of(offset, reads)
        length = end_position - position
        if length <= 0:
            return None
        self.remember(offset, position)
        if length > max_bytes:
            end = self._whole_batches(position, position + max_bytes, min_one_batch, reads)
            length = end - position
        file = self.file
        if file is None:
            file = self.open_file(reads, spare=True)
        self.used = True
        return FileSlice(file, position, length)

    def _whole_batches(self, position: int, limit: int, min_one_batch: bool, reads: Reads) -> int:
        """A batch boundary not much below `limit`; at least after the first batch, if asked."""

        def look_up() -> int:
            entry_offset, found = self.offset_index.last_entry_up_to(limit, reads)
            if found > position:
                header = self._header_at(found, reads)
                if header.base_offset > entry_offset:
                    raise CorruptFileError(f"{self.offset_index.path} names a later batch")
                self.remember(header.base_offset, found)
            return found

        end = self._with_rebuild(look_up, reads)
        if end > position:
            return end
        end = position
        for at, header in self.scan(position, reads):
            end = at
            size = header.batch_length + LOG_OVERHEAD
            if at + size > limit:
                if at > position:
                    self.remember(header.base_offset, at)
                elif min_one_batch:
                    end = at + size
                break
            end = at + size
        return end

    def whole_end(
        self,
        reads: Reads = WAITING,
        following: int | None = None,
        is_meant: Callable[[], bool] | None = None,
    ) -> int:
        """Where the last whole batch of a closed segment ends; looked up once.

        It is `size`, unless somebody has cut the file within a batch. `may_be_cut` stays true
        where anything is missing, be it whole batches, and the log has it.

        Args:
            reads: Whether it may wait for the disk.
            following: Base offset of the next segment, where every offset below it was in this
                one; None: compaction may have taken some.
            is_meant: Asked where this one ends earlier: whether compaction has taken some all the
                same. Reads files, and touches nothing else.

        Raises:
            WouldBlockError: As `read`.
        """
        if self._whole_end < 0:
            end, next_offset = 0, self.base_offset
            if self.size:
                end = self._start_for(self.base_offset + RELATIVE_OFFSET_MAX, reads)
            for position, header in self.scan(end, reads):
                end = position + header.batch_length + LOG_OVERHEAD
                next_offset = header.next_offset
            ends_early = following is not None and next_offset < following
            if ends_early and end == self.size and is_meant is not None:
                ends_early = not reads.call((self, "gaps"), is_meant)
            self._whole_end, self._whole_next_offset = end, next_offset
            self.may_be_cut = end != self.size or ends_early
            if self.may_be_cut:
                _log.error(
                    "segment has been cut, what is missing cannot be read here path=%s "
                    "whole_bytes=%d bytes=%d next_offset=%d",
                    self.path,
                    end,
                    self.size,
                    next_offset,
                )
        return self._whole_end

    @property
    def whole_next_offset(self) -> int:
        """The offset after the last whole batch, as of `whole_end`."""
        return self._whole_next_offset

    def next_offset(self) -> int:
        """The offset after the last whole batch in the file; the base offset if there is none."""
        return self._read_end()[1]

    def find_end(self) -> int | None:
        """As `next_offset`; None when bytes follow that are no batch."""
        end, next_offset = self._read_end()
        return next_offset if end == self.size else None

    def _read_end(self) -> tuple[int, int]:
        """(position, offset) after the last whole batch."""
        if self.size == 0:
            return 0, self.base_offset

        def look_up() -> int:
            entry_offset, position = self.offset_index.last_entry
            if position:
                self._expect_batch(position, entry_offset)
            return position

        end = self._with_rebuild(look_up)
        next_offset = self.base_offset
        for position, header in self.scan(end):
            end = position + header.batch_length + LOG_OVERHEAD
            next_offset = header.base_offset + header.last_offset_delta + 1
        return end, next_offset

    def upper_bound_offset(self, position: int, reads: Reads = WAITING) -> int | None:
        """An offset at or above all records before `position`, from the index; None: not known."""
        entry = self._with_rebuild(
            lambda: self.offset_index.first_entry_from(position, reads), reads
        )
        return None if entry is None else entry[0] + 1

    # -- time --------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """Greatest max timestamp of its batches, ms; -1 if none has one."""
        if self._max_timestamp is None:
            self._load_max_timestamp()
        assert self._max_timestamp is not None
        return self._max_timestamp

    @property
    def largest_timestamp(self) -> int:
        """As `max_timestamp`; without one, the file's last modification: what retention goes by."""
        return self.find_largest_timestamp(WAITING)

    def find_largest_timestamp(self, reads: Reads) -> int:
        """As `largest_timestamp`; WouldBlockError where `reads` do not wait."""
        if self._max_timestamp is None:
            self._load_max_timestamp(reads)
        timestamp = self.max_timestamp
        if timestamp >= 0:
            return timestamp
        return reads.call((self, "mtime"), partial(self._filesystem.mtime_ms, self.path))

    @property
    def first_timestamp(self) -> int:
        """Max timestamp of the first batch, -1 without one: what `segment.ms` counts from."""
        if self.known_first_timestamp is None:
            header = read_batch_header(self.open_file(), 0, self.size) if self.size else None
            if header is None:
                return NO_TIMESTAMP
            self.known_first_timestamp = header.max_timestamp
        return self.known_first_timestamp

    def _load_max_timestamp(self, reads: Reads = WAITING) -> None:
        def look_up() -> tuple[int, int, int]:
            timestamp, offset = self.time_index.find_last_entry(reads)
            if timestamp < 0:
                return timestamp, offset, 0
            return timestamp, offset, self._position_of_entry(timestamp, offset, reads)

        # What came after the last entry is not in the index, also when entries are missing.
        timestamp, offset, position = self._with_rebuild(look_up, reads)
        for _, header in self.scan(position, reads):
            if header.max_timestamp > timestamp:
                timestamp = header.max_timestamp
                offset = header.base_offset + header.last_offset_delta
        self._max_timestamp = timestamp
        self._max_timestamp_offset = offset

    def _position_of_entry(self, timestamp: int, offset: int, reads: Reads = WAITING) -> int:
        """Where the batch of a time index entry begins; CorruptFileError if it is not there."""
        if not 0 <= offset - self.base_offset <= RELATIVE_OFFSET_MAX:
            raise CorruptFileError(f"{self.time_index.path} names offset {offset}")
        position = self.position_of(offset, reads)
        header = self._header_at(position, reads)
        if header.last_offset != offset or header.max_timestamp != timestamp:
            raise CorruptFileError(f"{self.time_index.path} names time {timestamp}, not there")
        return position

    def find_timestamp(
        self, timestamp: int, *, start_offset: int, end_position: int, max_size: int
    ) -> TimestampOffset | None:
        """The first record at or above `start_offset` whose time is at least `timestamp`.

        Args:
            timestamp: Milliseconds since 1970 UTC.
            start_offset: Records below do not count.
            end_position: Batches from here on do not count.
            max_size: Most bytes a batch may decompress to; of a larger one the header must do.
        """

        def look_up() -> int:
            entry = self.time_index.lookup_before(timestamp)
            return 0 if entry is None else self._position_of_entry(*entry)

        start = max(self._with_rebuild(look_up), self.position_of(start_offset))
        file = self.open_file()
        for position, header in scan_headers(file, start, end_position):
            if header.max_timestamp < timestamp:
                continue
            batch = memoryview(file.read_at(header.batch_length + LOG_OVERHEAD, position))
            try:
                found = find_timestamp(
                    batch, timestamp, max_size=max_size, start_offset=start_offset
                )
            except DecodeError:
                found = (header.max_timestamp, max(header.base_offset, start_offset))
            if found is not None:
                return TimestampOffset(found[0], found[1], header.leader_epoch)
        return None

    def find_max_timestamp(self, *, max_size: int) -> TimestampOffset | None:
        """The first record that has the segment's greatest timestamp, None without timestamps."""
        if self.max_timestamp < 0:
            return None
        position = self.position_of(self._max_timestamp_offset)
        header = self._header_at(position)
        size = header.batch_length + LOG_OVERHEAD
        batch = memoryview(self.open_file().read_at(size, position))
        try:
            found = find_max_timestamp(batch, max_size=max_size)
        except DecodeError:
            found = None
        timestamp, offset = found or (header.max_timestamp, header.last_offset)
        return TimestampOffset(timestamp, offset, header.leader_epoch)

    # -- cutting -----------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Remove the batch that holds `offset` and all after it, from the file and the indexes.

        Returns:
            The offset after the last batch that is left.

        Raises:
            DiskError: The disk refused.
        """
        position = self.position_of(offset)
        header = read_batch_header(self.open_file(), position, self.size)
        if header is None:
            # Of one that was cut a part of a batch may be left: nothing is to follow on that.
            position, next_offset = self._read_end()
        else:
            next_offset = header.base_offset
        if position == 0:
            next_offset = self.base_offset
        self.cut(position, next_offset)
        return next_offset

    def cut(self, position: int, next_offset: int) -> None:
        """Make `position` the end of the log; the batch before it ends below `next_offset`."""
        self._hints = self._older_hints = None
        self._whole_end = -1
        file = self.open_file()
        file.truncate(position)
        # Or after a crash the old batches could stand where new ones were written.
        file.sync()
        self.size = position
        self._bytes_since_index_entry = 0

        def cut_indexes() -> None:
            self.offset_index.truncate_to(next_offset)
            self.time_index.truncate_to(next_offset)
            self.offset_index.save()
            self.time_index.save()

        self._with_rebuild(cut_indexes)
        self.transaction_index.truncate_to(next_offset)
        self._max_timestamp = None if position else NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        if position == 0:
            self.known_first_timestamp = None


class IndexBuilder:
    """Fills the indexes of a segment from its batches, by the rule that appending follows."""

    __slots__ = ("_last_entry_end", "_segment", "_timestamp", "_timestamp_offset", "interval")

    def __init__(self, segment: Segment) -> None:
        """Empty both indexes."""
        self._segment = segment
        self.interval = segment.index_interval_bytes
        self._last_entry_end = 0
        self._timestamp = NO_TIMESTAMP
        self._timestamp_offset = segment.base_offset
        segment.offset_index.reset()
        segment.time_index.reset()
        segment.forget_positions()

    def add(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Add the next batch; arguments as for `Segment.append`."""
        if max_timestamp > self._timestamp:
            self._timestamp = max_timestamp
            self._timestamp_offset = last_offset
        if position - self._last_entry_end > self.interval:
            self._segment.offset_index.append(last_offset, position)
            self._segment.time_index.maybe_append(self._timestamp, self._timestamp_offset)
            self._last_entry_end = position

    def finish(self) -> None:
        """Write the final time index entry and note the greatest timestamp."""
        segment = self._segment
        segment.time_index.maybe_append(self._timestamp, self._timestamp_offset)
        segment.know_max_timestamp(self._timestamp, self._timestamp_offset)
