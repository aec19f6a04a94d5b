"""Rolling a log: when the active segment is closed, and how the next one begins.

A segment begins where the one before it ends, also where the first batch that a follower writes to
it does not: its leader's log was compacted. So a gap lies within a segment, before its first batch,
and one between two segments is what a power cut has taken (`storage.log.recovery.loader`).

Source: Kafka, UnifiedLog.java (maybeRoll, roll), LogSegment.java (shouldRoll).
"""

from config.topic import TopicConfig
from storage.log.flush import LogFlusher
from storage.log.segment_factory import SegmentFactory
from storage.log.state import LogState
from storage.log.write_queue import WriteQueue
from storage.log.write_ticket import RollTicket
from storage.producers.capture import ProducerCapture
from storage.segment.segment import Segment
from storage.types.log_files import RELATIVE_OFFSET_MAX


class SegmentRoller:
    """Closes the active segment of a log and begins the next.

    Owns the limits that say when. Called by the writer, which rolls before it writes, and by the
    write queue, whose rolls a thread runs: `begin` and `finish` on the owner's thread, the ticket
    in between in any.

    Attributes:
        segment_bytes: `segment.bytes`.
        segment_ms: `segment.ms`.
    """

    __slots__ = ("_flusher", "_segments", "_state", "segment_bytes", "segment_ms")

    def __init__(self, state: LogState, segments: SegmentFactory, flusher: LogFlusher) -> None:
        self._state = state
        self._segments = segments
        self._flusher = flusher
        self.configure(state.config)

    def configure(self, config: TopicConfig) -> None:
        """The topic's settings have changed."""
        self.segment_bytes = config.segment_bytes
        self.segment_ms = config.segment_ms

    def must_roll(self, segment: Segment, size: int, last_offset: int, max_timestamp: int) -> bool:
        """Whether the active segment is too full, or too old, for a batch.

        Args:
            segment: The active one; it is warm.
            size: Bytes of the batch, or of several.
            last_offset: Of the last batch.
            max_timestamp: The greatest of the batches.
        """
        if segment.size == 0:
            waited_ms = 0
        elif segment.first_timestamp >= 0:
            waited_ms = max_timestamp - segment.first_timestamp
        else:
            waited_ms = self._state.clock.now_ms() - segment.created_ms
        return (
            segment.size > self.segment_bytes - size
            or waited_ms > self.segment_ms - segment.roll_jitter_ms
            or (segment.needs_roll and segment.size > 0 and segment.is_full())
            or not segment.can_hold(last_offset)
        )

    def maybe_roll(
        self, segment: Segment, size: int, first_offset: int, last_offset: int, max_timestamp: int
    ) -> Segment:
        """The segment to append to: the active one, or a new one if that is full or old; blocks."""
        if self.must_roll(segment, size, last_offset, max_timestamp):
            end_offset = self._state.log_end_offset
            return self.roll_to(self.base_offset_at(end_offset, first_offset, last_offset))
        return segment

    def base_offset_at(self, end_offset: int, first_offset: int, last_offset: int) -> int:
        """The base offset of a segment that begins with batches of [first_offset, last_offset].

        `end_offset`: where the segment before it ends. The new one begins there, unless an index
        entry could not hold the distance; then a gap between the two is known to be meant, in this
        life by `gaps_until`, after it by its length.
        """
        if last_offset - end_offset <= RELATIVE_OFFSET_MAX:
            return end_offset
        state = self._state
        if state.gaps_until is not None:
            state.gaps_until = max(state.gaps_until, first_offset)
        return first_offset

    def must_roll_queued(
        self, queue: WriteQueue, size: int, last_offset: int, max_timestamp: int
    ) -> bool:
        """As `must_roll`, of the log as it will be once the queue is written.

        What was not read of the tail yet is no reason: it is asked again when that is known. What
        is queued for an index is not counted either: it may get a little longer than the settings
        say.
        """
        tail = queue.tail
        if queue.tail_size == 0:
            return False
        first_timestamp = queue.tail_first_timestamp
        if first_timestamp is None:
            waited_ms = 0
        elif first_timestamp >= 0:
            waited_ms = max_timestamp - first_timestamp
        else:
            waited_ms = self._state.clock.now_ms() - tail.created_ms
        return (
            queue.tail_size > self.segment_bytes - size
            or waited_ms > self.segment_ms - tail.roll_jitter_ms
            or not tail.can_hold(last_offset)
            or (tail.needs_roll and tail.size > 0 and tail.is_warm and tail.is_full())
        )

    def roll_to(self, base_offset: int) -> Segment:
        """Close the active segment and begin one at `base_offset`; blocks. The active segment then.

        Raises:
            DiskError: The disk refused; the old segment stays active.
        """
        state = self._state
        old = state.segments.active
        if old.base_offset >= base_offset:
            # An empty segment at this very offset: nothing to close.
            assert old.size == 0, (old, base_offset)
            return old
        ticket = self.begin(
            self._segments.new(base_offset), state.producer_state.capture(base_offset)
        )
        try:
            ticket.run()
        except BaseException:
            if ticket.capture is not None:
                state.producer_state.drop_capture(ticket.capture)
            raise
        self.finish(ticket)
        return ticket.new

    def begin(self, new: Segment, capture: ProducerCapture | None) -> RollTicket:
        """What a thread has to do to close the active segment and make the files of `new`.

        `capture`: the producers below its base offset; None if their snapshot is there.
        """
        state = self._state
        old = state.segments.active
        return RollTicket(
            state.generation,
            old,
            new,
            index_writes=old.begin_seal(),
            capture=capture,
            preallocate_bytes=self.segment_bytes if state.config.preallocate else 0,
        )

    def finish(self, ticket: RollTicket) -> None:
        """The ticket's `run` has returned: its new segment is the active one."""
        old = ticket.old
        old.finish_seal(ticket.index_writes)
        self._state.segments.add(ticket.new)
        self._flusher.note_sealed(old)
        if ticket.capture is not None:
            self._state.producer_state.finish_capture(ticket.capture)
            self._flusher.note_snapshot(ticket.capture.offset)
