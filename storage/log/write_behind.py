"""Write-behind: offsets are assigned at once, a thread writes, and the log end offset follows.

See `storage.log.write_queue` for the two ends of such a log, `storage.log.write_ticket` for what
the thread does, `storage.log.directory_pace` for when it does it.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from storage.environment.filesystem import Buffer
from storage.errors import DirectoryBusyError, DiskError
from storage.log.directory_pace import DirectoryPace
from storage.log.flush import LogFlushes
from storage.log.recovery import replay
from storage.log.write_queue import BorrowedMemory, QueuedWrite, WriteQueue
from storage.log.write_ticket import (
    AppendTicket,
    BackTicket,
    RetireTicket,
    RollTicket,
    WarmTicket,
    WriteTicket,
)
from storage.producers.capture import ProducerCapture
from storage.producers.state import ProducerStateManager
from storage.segment.segment import BatchAppend, Segment
from storage.segment.segments import Segments
from storage.types.log_files import DELETED_SUFFIX

GATHERED_BYTES_MAX: Final = 2 * 1024 * 1024
GATHERED_WRITES_MAX: Final = 512
"""What one call writes at most, unless a single batch is larger: a kernel without preemption keeps
the processor until the call is over."""


class LogWriteBehind(LogFlushes):
    """Writes of a log that a thread carries out."""

    __slots__ = ()

    def leave_writes_to(self, pace: DirectoryPace) -> None:
        """Queue what the directory's `pace` says; after appends the caller calls `begin_write`."""
        assert self.write_queue is None, self
        self._pace = pace

    # -- queueing ----------------------------------------------------------------------------

    def _queue_write(
        self,
        records: memoryview,
        first_offset: int,
        batches: list[BatchAppend],
        memory: BorrowedMemory | None,
    ) -> QueuedWrite:
        """Take in patched batches that get offsets from `first_offset` on."""
        queue = self.write_queue
        if queue is None:
            queue = self.write_queue = WriteQueue(self.log_end_offset, self._segments.active)
        max_timestamp = max(batch.max_timestamp for batch in batches)
        rolls = self._must_roll_queued(queue, len(records), batches[-1].last_offset, max_timestamp)
        release = None if memory is None else memory.keep(records)
        kept: Buffer = records if release is not None else bytes(records)
        write = QueuedWrite(kept, first_offset, batches, release)
        if rolls:
            self._begin_segment_with(write)
        elif not queue.writes and queue.tail_size and not queue.tail.is_warm:
            # Whether it begins a segment is seen when the tail has been read.
            write.capture = self.producer_state.capture(write.first_offset)
        self._pace.queue(write.size)
        queue.add(write)
        return write

    def _begin_segment_with(self, write: QueuedWrite) -> None:
        # The producers have to be those of now: what is appended from here on is not below it.
        write.capture = self.producer_state.capture(write.first_offset)
        write.segment = self._new_segment(write.first_offset)

    def _must_roll_queued(
        self, queue: WriteQueue, size: int, last_offset: int, max_timestamp: int
    ) -> bool:
        """As `LogAppends._maybe_roll`, of the log as it will be.

        What is not read yet counts as no reason: `_settle_first` checks again. What is queued for
        an index is not counted either: it may get a little longer than the settings say.
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
            waited_ms = self._clock.now_ms() - tail.created_ms
        return (
            queue.tail_size > self._segment_bytes - size
            or waited_ms > self._segment_ms - tail.roll_jitter_ms
            or not tail.can_hold(last_offset)
            or (tail.needs_roll and tail.size > 0 and tail.is_warm and tail.has_full_index())
        )

    def _settle_first(self, queue: WriteQueue) -> None:
        """The active segment has been read: the write that waited for it may begin a new one."""
        first = queue.writes[0]
        if first.segment is not None:
            return
        here = WriteQueue(self.log_end_offset, self._segments.active)
        max_timestamp = max(batch.max_timestamp for batch in first.batches)
        last_offset = first.batches[-1].last_offset
        if self._must_roll_queued(here, first.size, last_offset, max_timestamp):
            first.segment = self._new_segment(first.first_offset)
            queue.first_begins_segment()
        elif first.capture is not None:
            self.producer_state.drop_capture(first.capture)
            first.capture = None

    def _check_room(self, size: int) -> None:
        if not self._pace.has_room(size):
            raise DirectoryBusyError(
                f"{self._pace.queued_bytes} bytes wait to be written to the disk of "
                f"{self.directory}"
            )

    def queue_roll(self) -> None:
        """Have a thread close the active segment, behind what is queued; nothing if it is empty.

        The caller then calls `begin_write`. For a log without a writer thread this is `roll`.
        """
        queue = self.write_queue
        if queue is None:
            queue = WriteQueue(self.log_end_offset, self._segments.active)
        if queue.tail_size == 0:
            return
        self.write_queue = queue
        write = QueuedWrite(b"", queue.next_offset, [], None)
        self._begin_segment_with(write)
        queue.add(write)

    # -- writing -----------------------------------------------------------------------------

    @property
    def is_writing(self) -> bool:
        """A ticket is out: a thread is at it, or about to be."""
        return self._back_under_way or (self.write_queue is not None and self.write_queue.under_way)

    def begin_write(self) -> WriteTicket | None:
        """What a thread should do next for what is queued; None: nothing, or it is at it.

        The ticket goes to `finish_write` when it has been run.
        """
        queue = self.write_queue
        if self._going_back and not self._back_under_way and self.failure is None:
            self._back_under_way = True
            return self._begin_back()
        if self.is_retiring and not self._retire_under_way:
            return self._begin_retire(self._leaving or [])
        if queue is None or queue.under_way:
            return None
        if self.failure is not None:
            self.drop_queued()
            return None
        segment = self._segments.active
        first = queue.writes[0]
        ticket: WriteTicket
        if not segment.is_warm:
            ticket = WarmTicket(self._generation, segment)
        elif first.segment is not None:
            ticket = self._begin_roll(first.segment, first.capture)
        else:
            ticket = self._begin_append(queue, segment)
        queue.under_way = True
        return ticket

    def _begin_append(self, queue: WriteQueue, segment: Segment) -> AppendTicket:
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
            self._generation,
            self._filesystem,
            segment,
            writes,
            index_writes=segment.begin_save() if segment.has_long_tail else [],
            epochs_path=self.leader_epochs.path,
        )

    def finish_write(self, ticket: WriteTicket, error: BaseException | None = None) -> bool:
        """A ticket's `run` has returned, or raised `error`.

        After an error nothing that is queued is written. Where the disk has failed the log is out
        of service. Where there was no room, or no descriptor, it takes no records until a further
        ticket has brought its producers back to its end.

        Returns:
            Whether the log end offset has moved.
        """
        if isinstance(ticket, BackTicket):
            self._finish_back(ticket, error)
            return False
        if isinstance(ticket, RetireTicket):
            self._finish_retire(ticket, error)
            return False
        queue = self.write_queue
        assert queue is not None, self
        assert ticket.generation == self._generation, self
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
            self._finish_roll(ticket)
            first = queue.writes[0]
            first.segment = first.capture = None
            if not first.batches:
                queue.writes.popleft()
        elif isinstance(ticket, AppendTicket):
            self._finish_append(queue, ticket)
        if not queue.writes:
            self.write_queue = None
        return isinstance(ticket, AppendTicket)

    def _finish_append(self, queue: WriteQueue, ticket: AppendTicket) -> None:
        segment = ticket.segment
        segment.finish_seal(ticket.index_writes)
        for write in ticket.writes:
            segment.take_in(write.batches, save=False)
            if write.aborted:
                self._directory_changed = True
            queue.writes.popleft()
            self._pace.queue(-write.size)
            write.let_go()
        self.log_end_offset = ticket.writes[-1].end_offset
        pace = self._pace
        pace.written += ticket.size
        if pace.written >= pace.watch_at:
            pace.watch(segment)
        if ticket.index_failure is not None:
            # Readers get it from memory. Nothing is written behind it before it is on disk.
            segment.transaction_index.keep(ticket.unindexed)
            self.refuse_appends(ticket.index_failure)

    def _write_failed(self, ticket: WriteTicket, error: BaseException) -> None:
        worst: BaseException = error
        if isinstance(ticket, AppendTicket) and ticket.trim_failure is not None:
            worst = ticket.trim_failure
        for one in (error, worst):
            self._fail_with(one)
        self.drop_queued()
        if self.failure is None:
            assert isinstance(error, DiskError)
            self._going_back = True
            self._refusal_after, self.refusal = self.refusal, error.to_keep()

    def _fail_with(self, error: BaseException) -> None:
        """Out of service, unless there is only no room for now."""
        if not isinstance(error, DiskError):
            self.fail(DiskError(f"cannot write ({error!r})", self.directory))
        elif error.is_disk_failure:
            self.fail(error)

    # -- going back --------------------------------------------------------------------------

    @override
    def refuse_appends(self, error: DiskError) -> None:
        """See `LogState`."""
        if self._going_back:
            self._refusal_after = error.to_keep()
        else:
            super().refuse_appends(error)

    @override
    def accept_appends(self) -> bool:
        """See `LogState`."""
        if self._going_back:
            self._refusal_after = None
            return False
        return super().accept_appends()

    @property
    def is_going_back(self) -> bool:
        """A write has found no room, and `begin_write` has something to do about it."""
        return self._going_back and self.failure is None

    def _begin_back(self) -> BackTicket:
        end = self.log_end_offset
        log_start = self.log_start_offset
        now_ms = self._clock.now_ms()
        segments = Segments()
        for segment in self._segments:
            segments.add(segment)
        fresh = self.producer_state.empty_copy()

        def read() -> ProducerStateManager:
            fresh.truncate_and_reload(log_start, end, now_ms)
            if fresh.map_end_offset < end:
                replay(segments, fresh, fresh.map_end_offset, end)
            fresh.map_end_offset = end
            return fresh

        return BackTicket(self._generation, self._segments.active, read)

    def _finish_back(self, ticket: BackTicket, error: BaseException | None) -> None:
        self._back_under_way = False
        if error is not None or ticket.state is None:
            # Without the producers nothing can be checked.
            self.fail(DiskError(f"cannot read the producers ({error})", self.directory))
        else:
            self.producer_state.hand_over(ticket.state)
            self.producer_state = ticket.state
            self.producer_state.on_high_watermark_updated(self.high_watermark)
            self.leader_epochs.forget_from_end(self.log_end_offset)
            latest = self.leader_epochs.latest_epoch
            self._latest_leader_epoch = -1 if latest is None else latest
        self._going_back = False
        if self.failure is None:
            self.refusal, self._refusal_after = self._refusal_after, None

    # -- retiring ----------------------------------------------------------------------------

    @property
    def is_retiring(self) -> bool:
        """Segments have left the log, and `begin_write` has something to do about their files."""
        return bool(self._leaving) and not self._retire_refused and self.failure is None

    def _begin_retire(self, segments: list[Segment]) -> RetireTicket:
        self._leaving = None
        self._retire_under_way = True
        renames: list[tuple[str, str]] = []
        for segment in segments:
            renames += segment.renames(DELETED_SUFFIX)
            renames.append(self.producer_state.forget_snapshot(segment.base_offset))
        return RetireTicket(self._generation, self._filesystem, segments, renames)

    def _finish_retire(self, ticket: RetireTicket, error: BaseException | None) -> None:
        self._retire_under_way = False
        if error is not None:
            self._fail_with(error)
        elif ticket.refusal is not None:
            # Retention tries again. A start in between finds them in the log, and they go again.
            self._leaving = [*ticket.segments, *(self._leaving or ())]
            self._retire_refused = True
        else:
            for segment in ticket.segments:
                segment.finish_rename(DELETED_SUFFIX)
                self._note_deleted(segment)

    def _note_deleted(self, segment: Segment) -> None:
        """Its files have the suffix `.deleted`: they are removed in a while."""
        self._directory_changed = True
        if self._deleted is None:
            self._deleted = deque()
        due = self._clock.monotonic_ms() + self.config.file_delete_delay_ms
        self._deleted.append((due, segment))

    def drop_queued(self) -> int:
        """Forget what is queued and not yet with the thread; how many batches.

        The producers and leader epochs of the log go further than its end afterwards.
        """
        queue = self.write_queue
        if queue is None:
            return 0
        assert not queue.under_way, self
        self.write_queue = None
        for write in queue.writes:
            self._pace.queue(-write.size)
            if write.capture is not None:
                self.producer_state.drop_capture(write.capture)
            write.let_go()
        return sum(len(write.batches) for write in queue.writes)

    def write_queued(self) -> None:
        """Write all that is queued here and now; blocks. No ticket may be out.

        Raises:
            DiskError: The disk refused; the log is out of service.
        """
        assert self.write_queue is None or not self.write_queue.under_way, self
        while (ticket := self.begin_write()) is not None:
            try:
                ticket.run()
            except BaseException as error:
                self.finish_write(ticket, error)
                raise
            self.finish_write(ticket)

    # -- rolling -----------------------------------------------------------------------------

    def _begin_roll(self, new: Segment, capture: ProducerCapture | None) -> RollTicket:
        old = self._segments.active
        return RollTicket(
            self._generation,
            old,
            new,
            index_writes=old.begin_seal(),
            capture=capture,
            preallocate_bytes=self._segment_bytes if self.config.preallocate else 0,
        )

    def _finish_roll(self, ticket: RollTicket) -> None:
        old = ticket.old
        old.finish_seal(ticket.index_writes)
        self._directory_changed = True
        self._segments.add(ticket.new)
        if self._sealed is None:
            self._sealed = []
        self._sealed.append(old)
        if ticket.capture is not None:
            self.producer_state.finish_capture(ticket.capture)
            self._note_snapshot(ticket.capture.offset)


class OwnedMemory:
    """Memory without another user: it is kept by keeping a view of it."""

    __slots__ = ()

    def keep(self, _records: memoryview) -> Callable[[], None]:
        """It stays."""
        return _nothing


def _nothing() -> None:
    return


OWNED: Final = OwnedMemory()
