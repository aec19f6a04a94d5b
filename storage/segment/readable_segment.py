"""A segment's reads: batches from an offset on, records by time, and where the log in it ends."""

import logging
from collections.abc import Callable
from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import LOG_OVERHEAD
from protocol.records.record import find_max_timestamp, find_timestamp
from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError
from storage.index.batch_scan import scan_headers
from storage.index.reads import WAITING, Reads
from storage.segment.indexed_segment import IndexedSegment
from storage.types.file_slice import FileSlice
from storage.types.log_files import RELATIVE_OFFSET_MAX

_log = logging.getLogger(__name__)


class TimestampOffset(NamedTuple):
    """A record found by time. `leader_epoch` is that of its batch, -1 if unknown."""

    timestamp: int
    offset: int
    leader_epoch: int = -1


class ReadableSegment(IndexedSegment):
    """A segment that is read, and knows whether its file is whole.

    Attributes:
        may_be_cut: Its file was there before and may have been cut; see `whole_end`.
    """

    __slots__ = ("_whole_end", "_whole_next_offset", "may_be_cut")

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
            index_interval_bytes=index_interval_bytes,
            index_max_bytes=index_max_bytes,
            size=size,
            has_transaction_index=has_transaction_index,
            stage=stage,
        )
        self.may_be_cut = size > 0
        self._whole_end = -1
        self._whole_next_offset = base_offset

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
            larger than `max_bytes` and `min_one_batch` is false. `is_cut` if there are more bytes
            than `max_bytes`.

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
        is_cut = length > max_bytes
        if is_cut:
            end = self._whole_batches(position, position + max_bytes, min_one_batch, reads)
            length = end - position
        file = self.file
        if file is None:
            file = self.open_file(reads, spare=True)
        self.used = True
        found = FileSlice(file, position, length)
        found.is_cut = is_cut
        return found

    def _whole_batches(self, position: int, limit: int, min_one_batch: bool, reads: Reads) -> int:
        """A batch boundary not much below `limit`; at least after the first batch, if asked."""
        try:
            end = self._indexed_boundary(position, limit, reads)
        except CorruptFileError as error:
            self._rebuild(error, reads)
            end = self._indexed_boundary(position, limit, reads)
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

    def _indexed_boundary(self, position: int, limit: int, reads: Reads) -> int:
        """The last boundary at or below `limit` that the index knows; checked if above `position`.

        Raises:
            CorruptFileError: No batch of the entry's begins there.
        """
        entry_offset, found = self.offset_index.last_entry_up_to(limit, reads)
        if found > position:
            header = self._header_at(found, reads)
            if header.base_offset > entry_offset:
                raise CorruptFileError(f"{self.offset_index.path} names a later batch")
            self.remember(header.base_offset, found)
        return found

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

    def take_size(self) -> None:
        """Take the file as it is now, as a start does: it was cut while it was open.

        Of a closed segment: what is appended next depends on the size.

        Raises:
            DiskError: The disk refused.
        """
        file = self.open_file()
        self.size = min(self.size, file.size())
        file.is_short = False
        self.may_be_cut = True
        self.forget_whole_end()
        self.forget_positions()

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

    def forget_whole_end(self) -> None:
        """The log in it ends elsewhere now: `whole_end` looks again."""
        self._whole_end = -1

    # -- by time -----------------------------------------------------------------------------

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
