"""Writes that are left to a thread: offsets are assigned at once, the log ends where it is written.

See `storage.log.write_queue` for the two ends of such a log, `storage.log.write_ticket` for what
the thread does, `storage.log.directory_pace` for when it does it.
"""

from collections.abc import Callable
from typing import Final

from storage.environment.filesystem import Buffer
from storage.errors import DirectoryBusyError, DiskError
from storage.log.flush import LogFlusher
from storage.log.roll import SegmentRoller
from storage.log.segment_factory import SegmentFactory
from storage.log.state import LogState
from storage.log.write_queue import BorrowedMemory, QueuedWrite, WriteQueue
from storage.log.write_ticket import AppendTicket, RollTicket, WarmTicket, WriteTicket
from storage.segment.batch_append import BatchAppend, max_timestamp_of
from storage.segment.segment import Segment

GATHERED_BYTES_MAX: Final = 2 * 1024 * 1024
GATHERED_WRITES_MAX: Final = 512
"""What one call writes at most, unless a single batch is larger: a kernel without preemption keeps
the processor until the call is over."""


class WriteBehind:
    """Queues writes and rolls of one log, and has them done ticket by ticket.

    Owns the state's `write_queue`: it alone creates, fills and ends it. The writer and retention
    queue; `LogDiskWork` asks for tickets. All on the owner's thread; a ticket's `run` is what runs
    beside it.
    """

    __slots__ = ("_flusher", "_roller", "_segments", "_state")

    def __init__(
        self,
        state: LogState,
        segments: SegmentFactory,
        flusher: LogFlusher,
        roller: SegmentRoller,
    ) -> None:
        self._state = state
        self._segments = segments
        self._flusher = flusher
        self._roller = roller

    # -- queueing ----------------------------------------------------------------------------

    def queue(
        self,
        records: memoryview,
        first_offset: int,
        batches: list[BatchAppend],
        memory: BorrowedMemory | None,
    ) -> QueuedWrite:
        """Queue patched batches that have the offsets from `first_offset` on.

        `memory`: where they lie, if they may stay there until they are written; else they are
        copied.
        """
        state = self._state
        queue = state.write_queue
        if queue is None:
            queue = state.write_queue = WriteQueue(state.log_end_offset, state.segments.active)
        max_timestamp = max_timestamp_of(batches)
        rolls = self._roller.must_roll_queued(
            queue, len(records), batches[-1].last_offset, max_timestamp
        )
        release = None if memory is None else memory.keep(records)
        kept: Buffer = records if release is not None else bytes(records)
        write = QueuedWrite(kept, first_offset, batches, release)
        if rolls:
            self._begin_segment_with(write, queue.next_offset)
        elif not queue.writes and queue.tail_size and not queue.tail.is_warm:
            # Whether it begins a segment is seen when the tail has been read.
            write.capture = state.producer_state.capture(self._base_of(write, queue.next_offset))
        state.pace.queue(write.size)
        queue.add(write)
        return write

    def _base_of(self, write: QueuedWrite, end_offset: int) -> int:
        return self._roller.base_offset_at(end_offset, write.first_offset, write.end_offset - 1)

    def _begin_segment_with(self, write: QueuedWrite, end_offset: int) -> None:
        base_offset = self._base_of(write, end_offset)
        # The producers have to be those of now: what is appended from here on is not below it.
        write.capture = self._state.producer_state.capture(base_offset)
        write.segment = self._segments.new(base_offset)

    def _settle_first(self, queue: WriteQueue) -> None:
        """The active segment has been read: the write that waited for it may begin a new one."""
        state = self._state
        first = queue.writes[0]
        if first.segment is not None:
            return
        here = WriteQueue(state.log_end_offset, state.segments.active)
        max_timestamp = max_timestamp_of(first.batches)
        last_offset = first.batches[-1].last_offset
        if self._roller.must_roll_queued(here, first.size, last_offset, max_timestamp):
            first.segment = self._segments.new(self._base_of(first, state.log_end_offset))
            queue.first_begins_segment()
        elif first.capture is not None:
            state.producer_state.drop_capture(first.capture)
            first.capture = None

    def check_room(self, size: int) -> None:
        """Raise DirectoryBusyError if `size` more bytes may not wait for the directory's disk."""
        state = self._state
        if not state.pace.has_room(size):
            raise DirectoryBusyError(
                f"{state.pace.queued_bytes} bytes wait to be written to the disk of "
                f"{state.directory}"
            )

    def queue_roll(self) -> None:
        """Queue the closing of the active segment, behind what waits; nothing if it is empty.

        The caller then asks `LogDiskWork.begin`.
        """
        state = self._state
        queue = state.write_queue
        if queue is None:
            queue = WriteQueue(state.log_end_offset, state.segments.active)
        if queue.tail_size == 0:
            return
        state.write_queue = queue
        write = QueuedWrite(b"", queue.next_offset, [], None)
        self._begin_segment_with(write, queue.next_offset)
        queue.add(write)

    # -- writing -----------------------------------------------------------------------------

    def begin(self) -> WriteTicket | None:
        """The next write, roll or read for what is queued; None: nothing, or a thread is at it."""
        state = self._state
        queue = state.write_queue
        if queue is None or queue.under_way:
            return None
        if state.failure is not None:
            self.drop_queued()
            return None
        segment = state.segments.active
        first = queue.writes[0]
        ticket: WriteTicket
        if not segment.is_warm:
            ticket = WarmTicket(state.generation, segment)
        elif first.segment is not None:
            ticket = self._roller.begin(first.segment, first.capture)
        else:
            ticket = self._begin_append(queue, segment)
        queue.under_way = True
        return ticket

    def _begin_append(self, queue: WriteQueue, segment: Segment) -> AppendTicket:
        state = self._state
        writes: list[QueuedWrite] = []
        size = 0
        for write in queue.writes:
            if writes and (
                write.segment is not None
                or write.epochs is not None
                or size + write.size > GATHERED_BYTES_MAX
                or len(writes) == GATHERED_WRITES_MAX
            ):
                break
            writes.append(write)
            size += write.size
        return AppendTicket(
            state.generation,
            state.filesystem,
            segment,
            writes,
            index_writes=segment.begin_save() if segment.has_long_tail else [],
            epochs_path=state.leader_epochs.path,
        )

    def finish(self, ticket: WriteTicket, error: BaseException | None) -> bool:
        """As `LogDiskWork.finish`, of a ticket from `begin`."""
        state = self._state
        queue = state.write_queue
        assert queue is not None, state
        assert ticket.generation == state.generation, state
        queue.under_way = False
        if error is not None:
            self._write_failed(ticket, error)
            return False
        if isinstance(ticket, WarmTicket):
            assert ticket.copy is not None
            ticket.segment.take_warmth(ticket.copy)
            queue.tail_warmed()
            self._settle_first(queue)
            return False
        if isinstance(ticket, RollTicket):
            self._roller.finish(ticket)
            first = queue.writes[0]
            first.segment = first.capture = None
            if not first.batches:
                queue.writes.popleft()
        elif isinstance(ticket, AppendTicket):
            self._finish_append(queue, ticket)
        if not queue.writes:
            state.write_queue = None
        return isinstance(ticket, AppendTicket)

    def _finish_append(self, queue: WriteQueue, ticket: AppendTicket) -> None:
        state = self._state
        segment = ticket.segment
        segment.finish_seal(ticket.index_writes)
        for write in ticket.writes:
            segment.take_in(write.batches, save=False)
            if write.aborted:
                self._flusher.directory_changed = True
            queue.writes.popleft()
            state.pace.queue(-write.size)
            write.let_go()
        state.log_end_offset = ticket.writes[-1].end_offset
        pace = state.pace
        pace.written += ticket.size
        if pace.written >= pace.watch_at:
            pace.watch(segment)
        if ticket.index_failure is not None:
            # Readers get it from memory. Nothing is written behind it before it is on disk.
            segment.transaction_index.keep(ticket.unindexed)
            state.refuse_appends(ticket.index_failure)

    def _write_failed(self, ticket: WriteTicket, error: BaseException) -> None:
        state = self._state
        worst: BaseException = error
        if isinstance(ticket, AppendTicket) and ticket.trim_failure is not None:
            worst = ticket.trim_failure
        for one in (error, worst):
            state.fail_with(one)
        self.drop_queued()
        if state.failure is None:
            assert isinstance(error, DiskError)
            state.begin_rollback(error)

    def drop_queued(self) -> int:
        """Drop what is queued, which no thread may be writing; how many batches.

        The producers and leader epochs of the log go further than its end afterwards.
        """
        state = self._state
        queue = state.write_queue
        if queue is None:
            return 0
        assert not queue.under_way, self._state
        state.write_queue = None
        for write in queue.writes:
            state.pace.queue(-write.size)
            if write.capture is not None:
                state.producer_state.drop_capture(write.capture)
            write.let_go()
        return sum(len(write.batches) for write in queue.writes)


class OwnedMemory:
    """Memory with a single user: a view of it keeps it."""

    __slots__ = ()

    def keep(self, _records: memoryview) -> Callable[[], None]:
        """The view is enough."""
        return _nothing


def _nothing() -> None:
    return


OWNED: Final = OwnedMemory()
