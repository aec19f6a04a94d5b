"""A segment's look-ups: where a batch begins, by offset or by time, from two sparse indexes.

An index has no checksum. Every entry taken from one is compared with the batch that it names; when
that is not there, both indexes are rebuilt from the log and the question is asked again.

Source: Kafka, LogSegment.java.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeVar

from typing_extensions import override

from protocol.records.batch import LOG_OVERHEAD, BatchHeader
from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError
from storage.index.batch_scan import read_batch_header, scan_headers
from storage.index.reads import WAITING, Reads
from storage.index.time_index import NO_TIMESTAMP
from storage.segment.index_builder import IndexBuilder
from storage.segment.segment_files import SegmentFiles
from storage.types.log_files import CLEANED_SUFFIX, RELATIVE_OFFSET_MAX

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

HINTS_MAX: Final = 32
"""Readers per segment whose next position is remembered, and as many of those before them."""


class IndexedSegment(SegmentFiles):
    """The files of a segment, and where in them a batch is.

    Attributes:
        index_interval_bytes: `index.interval.bytes`.
        known_first_timestamp: Max timestamp of the first batch; None while it is not known.
    """

    __slots__ = (
        "_hints",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_older_hints",
        "index_interval_bytes",
        "known_first_timestamp",
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
        has_transaction_index: bool = False,
        stage: str = "",
    ) -> None:
        """Describe a segment; touches no file. Arguments as for `Segment`."""
        super().__init__(
            directory,
            base_offset,
            filesystem,
            index_max_bytes=index_max_bytes,
            size=size,
            has_transaction_index=has_transaction_index,
            stage=stage,
        )
        self.index_interval_bytes = index_interval_bytes
        self._hints: dict[int, int] | None = None
        self._older_hints: dict[int, int] | None = None
        # None: not known yet, to be read from the log.
        self.known_first_timestamp: int | None = None
        self._max_timestamp: int | None = NO_TIMESTAMP if size == 0 else None
        self._max_timestamp_offset = base_offset

    @override
    def close(self) -> None:
        """See `SegmentFiles`; what was remembered of readers goes as well."""
        super().close()
        self._hints = self._older_hints = None

    def know_max_timestamp(self, timestamp: int, offset: int) -> None:
        """The greatest timestamp of its batches, and the last offset of the first batch with it."""
        self._max_timestamp = timestamp
        self._max_timestamp_offset = offset

    def forget_positions(self) -> None:
        """Drop the positions that were remembered for readers: batches have moved."""
        self._hints = self._older_hints = None

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
        try:
            return self._indexed_start(offset, reads)
        except CorruptFileError as error:
            self._rebuild(error, reads)
        return self._indexed_start(offset, reads)

    def _indexed_start(self, offset: int, reads: Reads) -> int:
        """Where the index says that a batch begins, at or before that of `offset`.

        Raises:
            CorruptFileError: None begins there, or one above the entry's offset.
        """
        entry_offset, position = self.offset_index.lookup(offset, reads)
        if position:
            # Whatever the entry says: the batch must not begin after the offset.
            self._expect_batch(position, min(entry_offset, offset), reads)
        return position

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
        """The result of `look_up`; of a second one, with new indexes, where those are wrong.

        Look-ups of each Fetch do this themselves: a function that is made for each is garbage.
        """
        try:
            return look_up()
        except CorruptFileError as error:
            self._rebuild(error, reads)
        return look_up()

    def _rebuild(self, reason: Exception, reads: Reads) -> None:
        """Rebuild the index files here, or have a thread do it where `reads` do not wait."""
        if reads is WAITING:
            self.rebuild_indexes(reason)
        else:
            self._rebuild_beside(reason, reads)

    def _twin(self) -> "IndexedSegment":
        """Another object for the same files, that a thread works on."""
        return IndexedSegment(
            self.directory,
            self.base_offset,
            self._filesystem,
            index_interval_bytes=self.index_interval_bytes,
            index_max_bytes=self.offset_index.max_bytes,
            size=self.size,
            stage=self.stage,
        )

    def _rebuild_beside(self, reason: Exception, reads: Reads) -> None:
        """Have a thread rebuild the index files; it works on a segment of its own.

        What is appended meanwhile has its entries in memory, beyond those that the files get.
        """
        twin = self._twin()

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
        builder = self.build_indexes()
        for position, header in self.scan():
            builder.add(
                position,
                header.batch_length + LOG_OVERHEAD,
                header.base_offset + header.last_offset_delta,
                header.max_timestamp,
            )
        self.finish_indexes(builder)
        self.offset_index.save()
        self.time_index.save()

    def build_indexes(self) -> IndexBuilder:
        """Empty both indexes, to be filled from the batches; `finish_indexes` ends that."""
        self.forget_positions()
        return IndexBuilder(self.offset_index, self.time_index, self.index_interval_bytes)

    def finish_indexes(self, builder: IndexBuilder) -> None:
        """The builder has been given every batch: final entry, and the greatest timestamp."""
        builder.finish()
        self.know_max_timestamp(builder.timestamp, builder.timestamp_offset)

    def rebuild_beside(self) -> "IndexedSegment":
        """Rebuild both indexes in files beside those in use, and sync them; for a thread.

        This segment, closed for appends, is not touched, and may be read meanwhile.

        Returns:
            What `take_indexes` takes.

        Raises:
            StorageError: The log cannot be read, or the files not be written.
        """
        twin = self._twin()
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

    def take_indexes(self, rebuilt: "IndexedSegment") -> None:
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
