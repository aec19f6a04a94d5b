"""Log reads: by offset, by timestamp, and aborted transactions.

Nothing here touches the bytes of a batch, except to look up a time within one.
"""

from storage.errors import OffsetNotLocalError, OffsetOutOfRangeError, StorageError
from storage.index.reads import WAITING, Reads
from storage.log.state import LogState
from storage.log.wholeness import Wholeness
from storage.segment.readable_segment import TimestampOffset
from storage.segment.segment import Segment
from storage.types.file_slice import FileSlice


class LogReader:
    """Reads one log: by offset, by time, and its aborted transactions.

    Owns nothing. `read` and `aborted_transactions` are called on the owner's thread for each Fetch;
    the look-ups by time read from the disk, and run in a thread beside it.

    Attributes:
        wholeness: Of its closed segments.
    """

    __slots__ = ("_state", "wholeness")

    def __init__(self, state: LogState) -> None:
        self._state = state
        self.wholeness = Wholeness(state)

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        end_offset: int,
        min_one_batch: bool,
        reads: Reads = WAITING,
    ) -> FileSlice | None:
        """Where the batches are that hold `offset` and what follows.

        Args:
            offset: First offset wanted; the first batch may begin before it.
            max_bytes: Most bytes, whole batches.
            end_offset: Exclusive: high watermark or last stable offset.
            min_one_batch: Give the first batch even if it is larger than `max_bytes` (KIP-74).
            reads: Whether it may wait for the disk: on the loop it may not.

        Returns:
            A slice of one segment, beginning and ending with whole batches. None when nothing is
            there below `end_offset` yet. Of length 0 when the first batch is too large.

        Raises:
            OffsetOutOfRangeError: Below the log start or above the log end.
            OffsetNotLocalError: Below the local log start: remote storage has it.
            CutSegmentError: It was in what is missing of a closed segment's file; or in the active
                segment, whose file is cut, until the next append closes it.
            DiskError: The file could not be opened, or the log is out of service.
            WouldBlockError: `reads` do not wait, and what is needed is not in memory.
        """
        state = self._state
        if state.failure is not None:
            state.check_failure()
        if not state.log_start_offset <= offset <= state.log_end_offset:
            raise OffsetOutOfRangeError(offset, state.log_start_offset, state.log_end_offset)
        segments = state.segments
        last = len(segments) - 1
        at = last if offset >= segments[last].base_offset else segments.index_of(offset)
        if at < 0:
            raise OffsetNotLocalError(offset, segments[0].base_offset, state.log_end_offset)
        while at <= last:
            segment = segments[at]
            if segment.file is not None and segment.file.is_short:
                if at < last:
                    segment.take_size()
                elif offset < end_offset and segment.find_cut():
                    raise self.wholeness.cut(segment, offset, state.log_end_offset)
            if end_offset >= segments.end_of(at, state.log_end_offset):
                end_position = segment.size
                if at == last:
                    # A reader at the end comes back for what is appended next.
                    segment.remember(state.log_end_offset, end_position)
            else:
                end_position = segment.position_of(end_offset, reads)
                segment.remember(end_offset, end_position)
            if at < last and segment.may_be_cut:
                end_position = min(
                    end_position, self.wholeness.end_of(segment, segments[at + 1], reads)
                )
            if offset < end_offset:
                found = segment.read(
                    offset,
                    max_bytes=max_bytes,
                    end_position=end_position,
                    min_one_batch=min_one_batch,
                    reads=reads,
                )
                if found is not None:
                    if at < last and end_offset > segments[at + 1].base_offset:
                        found.is_cut = True
                    return found
                if at < last and segment.may_be_cut:
                    # With the next segment it would be a gap that nobody hears of.
                    raise self.wholeness.cut(segment, offset, segments[at + 1].base_offset)
            if end_offset <= segments.end_of(at, state.log_end_offset):
                return None
            at += 1
        return None

    def is_at_end(self, offset: int) -> bool:
        """Whether a reader at `offset` has all there is, and comes back for what is appended next.

        False of a log that is out of service: `read` says why.
        """
        state = self._state
        if offset != state.log_end_offset or state.failure is not None:
            return False
        active = state.segments.active
        active.remember(offset, active.size)
        return True

    def aborted_transactions(
        self, start: int, end: int | FileSlice, reads: Reads = WAITING
    ) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that overlap [start, end).

        Args:
            start: Offset that was fetched.
            end: Exclusive; or the slice that `read` gave for `start` and what is stable.
            reads: As in `read`.

        Raises:
            WouldBlockError: As `read`.
        """
        if not isinstance(end, int):
            # What is open holds back all that was aborted since: without this bound a reader at
            # the last stable offset gets them again and again.
            end = min(self._end_of_slice(start, end, reads), self._state.last_stable_offset)
        found: list[tuple[int, int]] = []
        for segment in self._state.segments.from_offset(start):
            transactions, complete = segment.transaction_index.collect(start, end, reads)
            found += [(txn.producer_id, txn.first_offset) for txn in transactions]
            if complete:
                break
        return found

    def _end_of_slice(self, start: int, records: FileSlice, reads: Reads) -> int:
        """An offset that the slice does not go beyond; a little too great is harmless."""
        state = self._state
        at = max(state.segments.index_of(start), 0)
        if at < len(state.segments) - 1:
            segment = state.segments[at]
            if segment.file is records.file:
                bound = segment.upper_bound_offset(records.position + records.length, reads)
                return bound if bound is not None else state.segments[at + 1].base_offset
        return state.log_end_offset

    def offset_for_timestamp(
        self, timestamp_ms: int, end_offset: int | None = None
    ) -> TimestampOffset | None:
        """The first record whose time is at least `timestamp_ms`, if below `end_offset`, else None.

        Reads from the disk; may be called in a thread. It works on the segments there are when it
        begins: the owner of the log may roll and delete some meanwhile, and then it starts over.

        Raises:
            CutSegmentError: It may be in what is missing of a closed segment's file.
            StorageError: The disk refused, or what is there cannot be read.
        """
        state = self._state
        end = state.log_end_offset if end_offset is None else min(end_offset, state.log_end_offset)
        size_max = 2 * state.config.max_message_bytes
        segments = tuple(state.segments)
        ends = [*(segment.base_offset for segment in segments[1:]), state.log_end_offset]
        for at, (segment, segment_end) in enumerate(zip(segments, ends, strict=True)):
            if segment.base_offset >= end:
                break
            if segment_end <= state.log_start_offset:
                continue
            following = segments[at + 1] if at + 1 < len(segments) else None
            found = None
            try:
                if segment.max_timestamp >= timestamp_ms:
                    is_last = end < segment_end
                    found = segment.find_timestamp(
                        timestamp_ms,
                        start_offset=max(state.log_start_offset, segment.base_offset),
                        end_position=segment.position_of(end) if is_last else segment.size,
                        max_size=size_max,
                    )
                if found is None and following is not None:
                    self.wholeness.check_at_time(segment, following, timestamp_ms, end)
            except StorageError:
                if not any(map(self._has_left, segments[at : at + 2])):
                    raise
                return self.offset_for_timestamp(timestamp_ms, end_offset)
            if found is not None:
                return found if found.offset < end else None
        return None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp of the log (KIP-734); None without any."""
        newest: Segment | None = None
        segment: Segment | None = None
        try:
            for segment in tuple(self._state.segments):
                if newest is None or segment.max_timestamp > newest.max_timestamp:
                    newest = segment
            if newest is None:
                return None
            segment = newest
            return newest.find_max_timestamp(max_size=2 * self._state.config.max_message_bytes)
        except StorageError:
            if segment is None or not self._has_left(segment):
                raise
            return self.max_timestamp_offset()

    def _has_left(self, segment: Segment) -> bool:
        """Whether retention or compaction took a segment away: its files have other names by now.

        An error of it then says nothing of the disk: the look-up starts over.
        """
        return self._state.segments.floor(segment.base_offset) is not segment

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch: see `LeaderEpochCache.end_offset_for`."""
        state = self._state
        found, end = state.leader_epochs.end_offset_for(epoch, state.log_end_offset)
        # An epoch may have begun whose first batch is queued: nothing is there to be read yet.
        return found, min(end, state.log_end_offset)
