"""Segment recovery after an unclean stop: truncation before the first batch that is not whole.

    read 8 MiB ─> for each batch: length, magic, CRC-32C, offsets ─> indexes, epochs, producers
                        └─ first bad one: the segment ends before it

A sum covers a batch from byte 21 on. The bytes before it are judged by what surrounds them:

    base offset    lies above the batch before. Compaction leaves gaps, and the topic may have got
                   another `cleanup.policy` since: a jump is a damage only where the next batch lies
                   below it again. (One of the last batch is for `LogLoader` to judge)
    batch length   a wrong one makes the sum wrong
    leader epoch   the checkpoint knows it. Batches are asked where there is no checkpoint, and for
                   epochs that the cluster knows and the checkpoint does not: one that began with
                   an unclean start is in it for certain after a flush only. A batch of an earlier
                   epoch than the checkpoint's, above the recovery point of a replica, is one that
                   the log was cut of, and that came back when the power went: the log ends there

A segment whose first batch is sound, but cannot lie under the segment's name, was given that name
by an operator or another program: it is left as it is.

Runs in any thread; reading and summing release the interpreter lock.

Source: Kafka, LogSegment.java (recover).
"""

import logging
from collections.abc import Callable
from typing import Final

from protocol.errors import DecodeError
from protocol.records.batch import (
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc32c,
    crc_matches,
)
from protocol.records.control import parse_end_transaction_marker
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.index.transaction_index import AbortedTxn
from storage.producers.state import ProducerStateManager
from storage.segment.segment import Segment
from storage.types.log_files import RELATIVE_OFFSET_MAX

_log = logging.getLogger(__name__)

CHUNK_BYTES: Final = 8 * 1024 * 1024
"""Read at once; a larger batch gets a buffer of its own size."""

_unpack = HEADER.unpack_from


class SuspectBatchError(Exception):
    """A batch is sound by its sum, and cannot be the log's: its offset or its epoch is another."""

    def __init__(self, segment: Segment, position: int) -> None:
        super().__init__(f"the batch at {position} of {segment.path} is not the log's")
        self.segment = segment
        self.position = position


class MisplacedSegmentError(Exception):
    """A segment's first batch is sound and cannot lie under the segment's name."""

    def __init__(self, segment: Segment, base_offset: int) -> None:
        super().__init__(f"{segment.path} begins with offset {base_offset}")
        self.segment = segment


class SegmentRecovery:
    """Scans the segments of one log, in order.

    Attributes:
        next_offset: Offset after the last good batch of the last segment scanned.
        jumped_at: Where the last batch of that segment begins, if its offset leaves a gap to the
            batch before; None if it follows on it.
        jumped_from: The offset after the batch before, where `jumped_at` is not None.
        has_gaps: Sound batches with a gap before them were found, and others after them.
    """

    __slots__ = (
        "_buffer",
        "_cut_from",
        "_epochs_known",
        "_last_known_epoch",
        "_leader_epochs",
        "_learnt",
        "_on_bytes",
        "_producer_state",
        "_rewrites",
        "has_gaps",
        "jumped_at",
        "jumped_from",
        "next_offset",
    )

    def __init__(
        self,
        producer_state: ProducerStateManager,
        leader_epochs: LeaderEpochCache,
        *,
        last_known_epoch: int | None = None,
        cut_from: int | None = None,
        rewrites: bool = False,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        """Args are those of the log.

        Args:
            producer_state: Covers everything before the first segment to be scanned.
            leader_epochs: As read from its checkpoint; empty if that is missing.
            last_known_epoch: The cluster has begun no later one in this log; None: that is not
                known.
            cut_from: The log may have been cut at this offset or above, and what it was cut of
                have come back; None: it was not cut, or its checkpoint does not tell.
            rewrites: Write each good batch again where it is, and sync the segment.
            on_bytes: Called with the number of bytes after each read, and with 0 before each
                segment. What it raises ends the scan.
        """
        self._producer_state = producer_state
        self._leader_epochs = leader_epochs
        self._epochs_known = leader_epochs.latest_epoch is not None
        self._cut_from = cut_from
        self._last_known_epoch = last_known_epoch
        self._rewrites = rewrites
        # Epochs that the checkpoint lacks, from the batches: (epoch, start offset).
        self._learnt: list[tuple[int, int]] = []
        self._on_bytes = on_bytes
        self._buffer = bytearray()
        self.next_offset = -1
        self.has_gaps = False
        self.jumped_at: int | None = None
        self.jumped_from = 0

    def recover(self, segment: Segment, before_cut: Callable[[int], None]) -> None:
        """Rebuild the segment's indexes and cut it after its last good batch.

        Args:
            segment: The next one.
            before_cut: Called when it must be cut, with the offset after its last good batch, to
                remove what comes after it first: or a crash in between would leave a log that
                seems whole.

        Raises:
            DiskError: The disk refused.
            MisplacedSegmentError: Not a batch of it can be under this name; nothing was changed.
            SuspectBatchError: The log must be cut before a batch that was taken for good already,
                and everything read again.
        """
        file_size = segment.open_file().size()
        if self._on_bytes is not None:
            self._on_bytes(0)
        segment.size = file_size
        segment.transaction_index.reset()
        end, next_offset = self._scan(segment, file_size)
        if end < file_size:
            _log.warning(
                "truncating segment %s from %d to %d bytes, log end offset %d",
                segment.path,
                file_size,
                end,
                next_offset,
            )
            before_cut(next_offset)
            file = segment.open_file()
            file.truncate(end)
            file.sync()
            segment.size = end
        if self._rewrites:
            segment.open_file().sync()
        segment.offset_index.save()
        segment.time_index.save()
        # The recovery point may be the log's end already: then no flush comes before it is trusted.
        segment.transaction_index.sync()
        self.next_offset = next_offset

    def _scan(self, segment: Segment, file_size: int) -> tuple[int, int]:
        """(end of the good part, offset after it)."""
        file = segment.open_file()
        builder = segment.build_indexes()
        position = 0
        base_of_segment = expected = segment.base_offset
        last_of_segment = base_of_segment + RELATIVE_OFFSET_MAX
        next_offset = base_of_segment
        jumped_at: int | None = None
        jumped_from = 0
        last_epoch = -1
        view = self._view(min(CHUNK_BYTES, file_size))
        try:
            while position < file_size:
                filled = file.read_into(view[: file_size - position], position)
                at = 0
                needed = HEADER_SIZE
                while filled - at >= HEADER_SIZE:
                    fields = _unpack(view, at)
                    (
                        base_offset,
                        length,
                        leader_epoch,
                        magic,
                        crc,
                        _,
                        last_offset_delta,
                        _,
                        max_timestamp,
                        producer_id,
                        _,
                        _,
                        _,
                    ) = fields
                    needed = length + LOG_OVERHEAD
                    end = at + needed
                    if magic != MAGIC or needed < HEADER_SIZE:
                        return position + at, next_offset
                    if end > filled:
                        break
                    if crc32c(view[at + CRC_START : end]) != crc:
                        return position + at, next_offset
                    last_offset = base_offset + last_offset_delta
                    if last_offset_delta < 0:
                        return position + at, next_offset
                    if not base_of_segment <= base_offset <= last_offset <= last_of_segment:
                        if position + at == 0:
                            raise MisplacedSegmentError(segment, base_offset)
                        return position + at, next_offset
                    if base_offset < expected:
                        if jumped_at is not None and jumped_from <= base_offset:
                            raise SuspectBatchError(segment, jumped_at)
                        return position + at, next_offset
                    if self._is_former(leader_epoch, base_offset):
                        raise SuspectBatchError(segment, position + at)
                    if jumped_at is not None:
                        self.has_gaps = True
                        jumped_at = None
                    if base_offset != expected:
                        jumped_at, jumped_from = position + at, expected
                    if leader_epoch != last_epoch:
                        last_epoch = leader_epoch
                        self._see_epoch(last_epoch, base_offset)
                    builder.add(position + at, needed, last_offset, max_timestamp)
                    if producer_id >= 0:
                        self._replay(segment, fields, view[at:end])
                    if self._rewrites:
                        file.write_at(view[at:end], position + at)
                    expected = next_offset = last_offset + 1
                    at = end
                if at == 0:
                    if filled < HEADER_SIZE or position + needed > file_size:
                        return position, next_offset
                    view = self._view(needed)
                position += at
                if self._on_bytes is not None:
                    self._on_bytes(at)
            return position, next_offset
        finally:
            self.jumped_at, self.jumped_from = jumped_at, jumped_from
            segment.finish_indexes(builder)
            self._producer_state.map_end_offset = max(
                next_offset, self._producer_state.map_end_offset
            )

    def _view(self, size: int) -> memoryview:
        if len(self._buffer) < size:
            # A new one: the old may be in use by a view that cannot be resized under.
            self._buffer = bytearray(size)
        return memoryview(self._buffer)

    def _is_former(self, epoch: int, base_offset: int) -> bool:
        """Whether the log has been cut of the batch: a later epoch has begun there since."""
        if self._cut_from is None or base_offset < self._cut_from:
            return False
        return epoch < (self._leader_epochs.epoch_for_offset(base_offset) or 0)

    def _see_epoch(self, epoch: int, start_offset: int) -> None:
        latest = self._leader_epochs.latest_epoch
        if not self._epochs_known:
            if epoch >= 0 and (latest is None or epoch > latest):
                self._leader_epochs.assign(epoch, start_offset)
            return
        if self._last_known_epoch is None:
            return
        # An epoch that is followed by an earlier one was none: no sum covers the field.
        while self._learnt and self._learnt[-1][0] > epoch:
            self._learnt.pop()
        if (latest or 0) < epoch <= self._last_known_epoch and (
            not self._learnt or self._learnt[-1][0] < epoch
        ):
            self._learnt.append((epoch, start_offset))

    def write_found_epochs(self) -> None:
        """Add the epochs that the scan found in batches to the checkpoint.

        Raises:
            DiskError: The disk refused.
        """
        for epoch, start_offset in self._learnt:
            self._leader_epochs.assign(epoch, start_offset)
        self._learnt.clear()

    def _replay(self, segment: Segment, fields: tuple[int, ...], batch: memoryview) -> None:
        replay_batch(self._producer_state, segment, BatchHeader._make(fields), batch)


def begins_after_gap(segment: Segment) -> bool:
    """Whether a sound batch of the segment, its first or another, has a gap before it.

    Of an unchecked segment: only sound batches count, up to the first that is not.
    """
    expected = segment.base_offset
    file = segment.open_file()
    for position, header in segment.scan():
        size = header.batch_length + LOG_OVERHEAD
        batch = memoryview(file.read_at(size, position))
        if header.base_offset < expected or not crc_matches(batch, 0, header):
            return False
        if header.base_offset > expected:
            return True
        expected = header.next_offset
    return False


def read_marker(header: BatchHeader, batch: memoryview) -> tuple[int, int] | None:
    """(control type, coordinator epoch) of a transaction's end marker, None for other batches."""
    if not header.attributes & CONTROL_BIT:
        return None
    return read_control(batch)


def read_control(batch: memoryview) -> tuple[int, int] | None:
    """`read_marker` of a batch that is a control batch."""
    try:
        marker = parse_end_transaction_marker(batch)
    except DecodeError:
        return None
    return None if marker is None else (int(marker.control_type), marker.coordinator_epoch)


def replay_batch(
    producer_state: ProducerStateManager,
    segment: Segment | None,
    header: BatchHeader,
    batch: memoryview,
) -> None:
    """Give a batch of the log to the producer state.

    Args:
        producer_state: Covers everything before the batch.
        segment: Whose transaction index gets the transaction that the batch aborts; None if that
            index is there already.
        header: Of the batch.
        batch: The batch; only needed of control batches.
    """
    completed = producer_state.replay(header, read_marker(header, batch))
    if completed is None:
        return
    last_stable_offset = producer_state.complete_transaction(completed)
    if completed.is_aborted and segment is not None:
        segment.transaction_index.append(
            AbortedTxn(
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                last_stable_offset,
            )
        )
