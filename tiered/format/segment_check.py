"""Check of a closed segment before its copy: each batch, and the indexes against them.

The log comes in pieces of any length, in order, so that the pass that uploads is the pass that
checks; a batch may lie across pieces, and then its header and the sum so far are all that is kept:

    piece     |------------------|------------------|-----------
    batches   |--|---|------|--------------|-----|---------|----

Of each batch: magic, a length that leads to the next one and at last to the very end of the file,
CRC-32C, offsets ascending and within the segment's, the leader epoch that the metadata gives for
them. Of the offset index: each entry names the start of a batch and its last offset. Of the time
index: each entry names the last offset of a batch that has that time, no batch before has a later
one, and the greatest of all is the metadata's. Of the transaction index: each entry names a marker
of that producer.

Whether the records inside a batch are well formed was checked when it was produced.
"""

from collections.abc import Mapping
from typing import Final, NoReturn

from protocol.records.batch import (
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    crc32c,
)
from tiered.errors import CorruptSegmentError
from tiered.format.side_file_check import (
    check_leader_epochs,
    check_producer_snapshot,
    offset_index_entries,
    time_index_entries,
    transaction_index_entries,
)
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import SegmentFiles, SideFile

_NEVER: Final = 1 << 63

_COUNT: Final = 12
"""Where a header has the number of its records."""

_unpack = HEADER.unpack_from


class SegmentCheck:
    """The check of one segment: `feed` all of its log, then `finish`.

    Attributes:
        records: In the batches so far, as their headers say; without those of control batches.
    """

    __slots__ = (
        "_abort_at",
        "_aborts",
        "_batch_position",
        "_crc",
        "_end_offset",
        "_epoch",
        "_epoch_at",
        "_epoch_end",
        "_epochs",
        "_epochs_known_from",
        "_expected_crc",
        "_files",
        "_header",
        "_left",
        "_metadata",
        "_newest",
        "_next_abort",
        "_next_index_position",
        "_next_offset",
        "_next_time_offset",
        "_offset_at",
        "_offsets",
        "_position",
        "_size",
        "_time_at",
        "_times",
        "records",
    )

    def __init__(
        self,
        metadata: RemoteLogSegmentMetadata,
        files: SegmentFiles,
        parts: Mapping[SideFile, bytes],
    ) -> None:
        """Check the side files by themselves.

        Args:
            metadata: As it will be published.
            files: Where the files are, for the errors.
            parts: The side files' contents; TRANSACTION may be missing.

        Raises:
            CorruptSegmentError: One of them cannot be right.
        """
        self._metadata = metadata
        self._files = files
        self._offsets = offset_index_entries(
            parts[SideFile.OFFSET], files.offset_index, metadata.start_offset
        )
        self._times = time_index_entries(
            parts[SideFile.TIMESTAMP], files.time_index, metadata.start_offset
        )
        self._aborts = transaction_index_entries(
            parts.get(SideFile.TRANSACTION, b""), files.transaction_index or "", metadata
        )
        check_producer_snapshot(parts[SideFile.PRODUCER_SNAPSHOT], files.producer_snapshot)
        self._epochs_known_from = check_leader_epochs(parts[SideFile.LEADER_EPOCH], metadata)
        self._offset_at = self._time_at = self._abort_at = -1
        self._next_index_position = self._next_time_offset = self._next_abort = _NEVER
        self._advance_offsets()
        self._advance_times()
        self._advance_aborts()
        self._epochs = metadata.segment_leader_epochs
        self._epoch_at = -1
        self._epoch = -1
        self._epoch_end = -1
        self._next_offset = metadata.start_offset
        self._end_offset = metadata.end_offset
        self._size = metadata.segment_size_bytes
        self._newest = NO_TIMESTAMP
        self.records = 0
        # Of the piece to come.
        self._position = 0
        # Of the batch that lies across pieces: header bytes so far, or what is left of its body.
        self._header = b""
        self._batch_position = 0
        self._left = 0
        self._crc = 0
        self._expected_crc = 0

    def feed(self, data: memoryview) -> None:
        """Take the next bytes of the log; they are not kept.

        Raises:
            CorruptSegmentError: Something in them, or in an index about them, is not right.
        """
        size = len(data)
        at = 0
        if self._left or self._header:
            at = self._continue(data)
        start = self._position
        while size - at >= HEADER_SIZE:
            position = start + at
            end = at + self._batch(position, _unpack(data, at))
            if end > size:
                self._batch_position = position
                self._crc = crc32c(data[at + CRC_START :])
                self._left = end - size
                at = size
                break
            if crc32c(data[at + CRC_START : end]) != self._expected_crc:
                self._fail(position, "the batch fails its CRC")
            at = end
        if at < size:
            self._header = bytes(data[at:])
            self._batch_position = start + at
        self._position = start + size

    def _continue(self, data: memoryview) -> int:
        """Go on with the batch that began in an earlier piece; where the next one begins."""
        at = 0
        if self._header:
            at = min(HEADER_SIZE - len(self._header), len(data))
            self._header += data[:at]
            if len(self._header) < HEADER_SIZE:
                return at
            batch_size = self._batch(self._batch_position, _unpack(self._header))
            self._crc = crc32c(self._header[CRC_START:])
            self._left = batch_size - HEADER_SIZE
            self._header = b""
        end = min(at + self._left, len(data))
        self._crc = crc32c(data[at:end], self._crc)
        self._left -= end - at
        if self._left == 0 and self._crc != self._expected_crc:
            self._fail(self._batch_position, "the batch fails its CRC")
        return end

    def _batch(self, position: int, header: tuple[int, ...]) -> int:
        """Check a header; the batch's size."""
        base_offset, length, epoch, magic, crc, attributes, delta, _, time, producer_id = header[
            :10
        ]
        size = length + LOG_OVERHEAD
        if magic != MAGIC:
            self._fail(position, f"a batch of magic {magic}")
        if size < HEADER_SIZE or position + size > self._size:
            self._fail(position, f"a batch of {size} bytes in a log of {self._size}")
        last = base_offset + delta
        if base_offset < self._next_offset or delta < 0 or last > self._end_offset:
            self._fail(
                position,
                f"a batch of offsets {base_offset} .. {last} after {self._next_offset - 1}"
                f" in a segment to {self._end_offset}",
            )
        self._next_offset = last + 1
        while base_offset >= self._epoch_end:
            self._advance_epoch()
        if (epoch != self._epoch and not self._is_before_epochs(base_offset, epoch)) or (
            last >= self._epoch_end
        ):
            self._fail(position, f"leader epoch {epoch} at offset {base_offset}: {self._epochs}")
        if position >= self._next_index_position:
            self._compare_offset_entry(position, last)
        if time > self._newest:
            self._newest = time
        if last >= self._next_time_offset:
            self._compare_time_entry(base_offset, last, time)
        if last >= self._next_abort:
            self._compare_abort(base_offset, producer_id, attributes)
        if not attributes & CONTROL_BIT:
            self.records += max(header[_COUNT], 0)
        self._expected_crc = crc
        return size

    def finish(self) -> None:
        """All of the log was fed.

        Raises:
            CorruptSegmentError: It ends within a batch, or an index says more than there is.
        """
        if self._left or self._header or self._position != self._size or self._size == 0:
            whole = self._batch_position if self._left or self._header else self._position
            self._fail(whole, f"the log ends at {self._position} of {self._size}, within a batch")
        if self._next_index_position != _NEVER:
            self._fail_offset_entry("it lies beyond the log")
        if self._next_time_offset != _NEVER:
            self._fail_time_entry("it lies beyond the log")
        if self._next_abort != _NEVER:
            self._fail_abort("it has no marker in the log")
        expected = self._metadata.max_timestamp_ms
        if self._newest not in (expected, NO_TIMESTAMP):
            # The log knows its greatest timestamp from there.
            raise CorruptSegmentError(
                self._files.time_index,
                -1,
                f"the greatest timestamp should be {expected} and is {self._newest}",
                rebuildable=True,
            )

    # -- the indexes -------------------------------------------------------------------------

    def _compare_offset_entry(self, position: int, last_offset: int) -> None:
        offset, named = self._offsets[self._offset_at]
        if named != position:
            self._fail_offset_entry(f"no batch begins at {named}")
        if offset != last_offset:
            self._fail_offset_entry(f"the batch at {named} ends with {last_offset}, not {offset}")
        self._advance_offsets()

    def _advance_offsets(self) -> None:
        self._offset_at += 1
        more = self._offset_at < len(self._offsets)
        self._next_index_position = self._offsets[self._offset_at][1] if more else _NEVER

    def _fail_offset_entry(self, problem: str) -> NoReturn:
        raise CorruptSegmentError(
            self._files.offset_index, self._offset_at * 8, problem, rebuildable=True
        )

    def _compare_time_entry(self, base_offset: int, last_offset: int, time: int) -> None:
        timestamp, offset = self._times[self._time_at]
        if offset != last_offset or timestamp != time or timestamp != self._newest:
            self._fail_time_entry(
                f"the batch of {base_offset} .. {last_offset} has time {time}, the greatest so far"
                f" is {self._newest}: not {timestamp} at {offset}"
            )
        self._advance_times()

    def _advance_times(self) -> None:
        self._time_at += 1
        more = self._time_at < len(self._times)
        self._next_time_offset = self._times[self._time_at][1] if more else _NEVER

    def _fail_time_entry(self, problem: str) -> NoReturn:
        raise CorruptSegmentError(
            self._files.time_index, self._time_at * 12, problem, rebuildable=True
        )

    def _compare_abort(self, base_offset: int, producer_id: int, attributes: int) -> None:
        entry = self._aborts[self._abort_at]
        if (
            entry.last_offset < base_offset
            or entry.producer_id != producer_id
            or not attributes & CONTROL_BIT
        ):
            self._fail_abort(f"no marker of producer {entry.producer_id} at {entry.last_offset}")
        self._advance_aborts()

    def _advance_aborts(self) -> None:
        self._abort_at += 1
        more = self._abort_at < len(self._aborts)
        self._next_abort = self._aborts[self._abort_at].last_offset if more else _NEVER

    def _fail_abort(self, problem: str) -> NoReturn:
        path = self._files.transaction_index or ""
        raise CorruptSegmentError(path, self._abort_at * 34, problem, rebuildable=False)

    # ----------------------------------------------------------------------------------------

    def _advance_epoch(self) -> None:
        self._epoch_at += 1
        self._epoch = self._epochs[self._epoch_at].epoch
        at_end = self._epoch_at + 1 == len(self._epochs)
        self._epoch_end = _NEVER if at_end else self._epochs[self._epoch_at + 1].offset

    def _is_before_epochs(self, base_offset: int, epoch: int) -> bool:
        """Records that DeleteRecords took, whose epochs the leader no longer knows."""
        return base_offset < self._epochs_known_from and epoch <= self._epochs[0].epoch

    def _fail(self, position: int, problem: str) -> NoReturn:
        raise CorruptSegmentError(self._files.log, position, problem[:500], rebuildable=False)
