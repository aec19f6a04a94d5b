"""One segment: a `.log` file, its three indexes, and what is known of it without reading.

Positions are bytes from the start of the file, always batch boundaries. The file is opened when it
is needed and may be closed by the pool (`Filesystem.open_files`) at any time; indexes likewise.

A segment is made of four classes, each on the one before it:

    SegmentFiles      names, stages, descriptors, removal
    IndexedSegment    where a batch is, by offset or by time; indexes that are rebuilt
    ReadableSegment   reads, and whether the file is whole
    Segment           appends, seals, cuts

Source: Kafka, LogSegment.java.
"""

from storage.environment.filesystem import Buffer, Filesystem
from storage.errors import CorruptFileError, DiskError
from storage.index.batch_scan import read_batch_header
from storage.index.sparse_index import IndexWrite
from storage.index.time_index import NO_TIMESTAMP
from storage.segment.batch_append import BatchAppend
from storage.segment.readable_segment import ReadableSegment
from storage.types.log_files import RELATIVE_OFFSET_MAX


class Segment(ReadableSegment):
    """A part of a log: the batches from `base_offset` up to the next segment's.

    Attributes:
        created_ms: When it was made, for rolling segments without timestamps.
        is_cut: Its file was found to be shorter than what was appended: no more is.
        needs_roll: An index may be full (`segment.index.bytes`), or it is cut: ask `is_full`.
        roll_jitter_ms: Taken off `segment.ms`, so that partitions do not roll together.
        written_back: Up to here a writeback was begun, or none is needed.
    """

    __slots__ = (
        "_bytes_since_index_entry",
        "created_ms",
        "is_cut",
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
            index_interval_bytes=index_interval_bytes,
            index_max_bytes=index_max_bytes,
            size=size,
            has_transaction_index=has_transaction_index,
            stage=stage,
        )
        self.written_back = size
        self.is_cut = False
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        # The indexes of one that was there are not read yet. With room for a single time a new one
        # is full from the beginning: it takes one batch.
        self.needs_roll = size > 0 or self.time_index.is_full
        self._bytes_since_index_entry = 0

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

    def find_cut(self) -> bool:
        """Whether the file of the active segment was cut; asked when it was short for a slice.

        What came next would follow zeros: it is rolled by the next append, and after that it is as
        any closed segment that was cut. A slice from before the log was truncated is no sign.

        Raises:
            DiskError: The disk refused.
        """
        file = self.open_file()
        if file.size() >= self.size:
            file.is_short = False
            return False
        self.is_cut = self.needs_roll = self.may_be_cut = True
        self.forget_whole_end()
        return True

    def is_full(self) -> bool:
        """Whether it must be rolled for want of room in an index, or is cut; see `needs_roll`."""
        if self.is_cut:
            return True
        try:
            self.needs_roll = self.offset_index.is_full or self.time_index.is_full
        except CorruptFileError as error:
            self.rebuild_indexes(error)
            self.needs_roll = self.offset_index.is_full or self.time_index.is_full
        return self.needs_roll

    def can_hold(self, last_offset: int) -> bool:
        """Whether an offset's distance from the base offset fits an index entry."""
        return 0 <= last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

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
        # Not where the first that is gone began: of a compacted log the batch before may end lower.
        return self._read_end()[1]

    def cut(self, position: int, next_offset: int) -> None:
        """Make `position` the end of the log; the batch before it ends below `next_offset`."""
        self.forget_positions()
        self.forget_whole_end()
        file = self.open_file()
        file.truncate(position)
        # Or after a crash the old batches could stand where new ones were written.
        file.sync()
        self.size = position
        self._bytes_since_index_entry = 0

        def cut_indexes() -> None:
            self.offset_index.truncate_to(next_offset)
            self.time_index.truncate_to(next_offset)
            for index in (self.offset_index, self.time_index):
                try:
                    index.save()
                except DiskError as error:
                    if error.is_disk_failure:
                        raise
                    # Written from its beginning with the next entries: till then a start scans.

        self._with_rebuild(cut_indexes)
        self.transaction_index.truncate_to(next_offset)
        self._max_timestamp = None if position else NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        if position == 0:
            self.known_first_timestamp = None
