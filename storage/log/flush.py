"""Log flush: what is synced, when it is due, and the recovery point that follows.

See `storage.segment.flush` for the ticket that does the work beside the loop.
"""

from collections.abc import Callable
from typing import Final

from config.topic import TopicConfig
from storage.errors import DiskError
from storage.log.state import LogState
from storage.producers.snapshot import snapshot_name
from storage.segment.flush import FlushTicket, SideFile
from storage.segment.segment import Segment

FLUSH_MESSAGES_UNLIMITED: Final = (1 << 63) - 1
"""Default of `flush.messages`."""


class LogFlusher:
    """Makes a log durable, and moves its recovery point.

    Owns what is not synced yet beside the segments' batches: names in the directory, indexes of
    sealed segments, producer snapshots. The other parts report such changes here. On the owner's
    thread; `flush` and `flush_all` block for the disk, and may be called by the thread that opens
    the log.

    Attributes:
        directory_changed: Names in the directory have changed since it was last synced.
        is_new_directory: Its own name was not synced yet.
        last_flush_ms: When the last flush was, on the monotonic clock, for `flush.ms`.
    """

    __slots__ = (
        "_flush_messages",
        "_sealed",
        "_state",
        "_unsynced_snapshots",
        "directory_changed",
        "is_new_directory",
        "last_flush_ms",
    )

    def __init__(self, state: LogState) -> None:
        self._state = state
        self.last_flush_ms = state.clock.monotonic_ms()
        self.directory_changed = True
        self.is_new_directory = True
        self._sealed: list[Segment] | None = None
        self._unsynced_snapshots: list[int] | None = None
        self.configure(state.config)

    def configure(self, config: TopicConfig) -> None:
        """The topic's settings have changed."""
        self._flush_messages = config.flush_messages

    # -- what other parts report -------------------------------------------------------------

    def take_snapshot(self, offset: int) -> None:
        """Write the producers as of `offset`; they are synced with the next flush.

        Raises:
            DiskError: The disk refused.
        """
        if self._state.producer_state.take_snapshot(offset):
            self.note_snapshot(offset)

    def note_snapshot(self, offset: int) -> None:
        """A producer snapshot was written."""
        self.directory_changed = True
        if self._unsynced_snapshots is None:
            self._unsynced_snapshots = []
        self._unsynced_snapshots.append(offset)

    def note_sealed(self, segment: Segment) -> None:
        """A segment was closed for appends: its indexes are to be synced."""
        self.directory_changed = True
        if self._sealed is None:
            self._sealed = []
        self._sealed.append(segment)

    def forget_above(self, end_offset: int) -> None:
        """The log was truncated to `end_offset`: snapshots above are gone."""
        if self._unsynced_snapshots:
            self._unsynced_snapshots = [at for at in self._unsynced_snapshots if at <= end_offset]

    # -- flushing ----------------------------------------------------------------------------

    @property
    def needs_flush(self) -> bool:
        """`flush.messages` is reached: acknowledge only what a flush has covered."""
        state = self._state
        return state.log_end_offset - state.recovery_point >= self._flush_messages

    @property
    def has_flush_limit(self) -> bool:
        """`flush.messages` is set: so many records may be acknowledged unflushed, and no more."""
        return self._flush_messages < FLUSH_MESSAGES_UNLIMITED

    def flush_all(self, tick: Callable[[], None]) -> None:
        """Flush a log that was recovered, a segment at a time; blocks.

        However many segments lie above the recovery point, few files are open at once.

        Args:
            tick: Called before each; what it raises ends the flush, the recovery point keeps what
                has been reached.

        Raises:
            DiskError: As `flush`.
        """
        for segment in tuple(self._state.segments)[1:]:
            if segment.base_offset > self._state.recovery_point:
                tick()
                self.flush(segment.base_offset)
        tick()
        self.flush()

    def flush_target(self) -> int | None:
        """The offset up to which a flush is due now; None if none is.

        All of the log by `flush.messages` or `flush.ms`. What was rolled is always due: the sooner
        it is on disk, the less is scanned after a crash.
        """
        state = self._state
        if state.log_end_offset <= state.recovery_point:
            return None
        waited_ms = state.clock.monotonic_ms() - self.last_flush_ms
        if self.needs_flush or waited_ms >= state.config.flush_ms:
            return state.log_end_offset
        rolled = state.active_base_offset
        return rolled if rolled > state.recovery_point else None

    def begin_flush(self, up_to: int | None = None) -> FlushTicket | None:
        """Gather what must be synced for everything below `up_to` (default: all) to be durable.

        Returns:
            The flush, whose `run` may be called in a thread; None if there is nothing to do. It is
            over when `finish_flush` or `abandon_flush` is called.
        """
        state = self._state
        end_offset = state.log_end_offset if up_to is None else min(up_to, state.log_end_offset)
        return self.make_ticket(end_offset) if end_offset > state.recovery_point else None

    def make_ticket(self, end_offset: int) -> FlushTicket:
        """The flush of everything below `end_offset`, also if no record of it is unflushed."""
        state = self._state
        segments = {
            segment.base_offset: segment
            for segment in state.segments.from_offset(state.recovery_point)
            if segment.base_offset < end_offset
        }
        # What was sealed when all its records had been flushed: its indexes have not.
        sealed, self._sealed = self._sealed, None
        for segment in sealed or ():
            if state.segments.floor(segment.base_offset) is segment:
                segments[segment.base_offset] = segment
        side_files: list[SideFile] = []
        active = state.segments.active
        for segment in segments.values():
            if segment is not active:
                side_files += (segment.offset_index, segment.time_index)
            side_files.append(segment.transaction_index)
        snapshots = [at for at in self._unsynced_snapshots or () if at <= end_offset]
        paths = [f"{state.directory}/{snapshot_name(at)}" for at in snapshots]
        directories = []
        epochs = state.leader_epochs.to_be_written()
        if epochs is not None or state.leader_epochs.sync_with_flush:
            # Before the recovery point passes the records of its latest epoch.
            paths.append(state.leader_epochs.path)
            state.leader_epochs.sync_with_flush = False
            self.directory_changed = True
        if self.directory_changed:
            directories.append(state.directory)
            self.directory_changed = False
        if self.is_new_directory:
            directories.append(state.directory.rpartition("/")[0] or ".")
            self.is_new_directory = False
        return FlushTicket(
            state.filesystem,
            end_offset,
            state.generation,
            segments=list(segments.values()),
            side_files=side_files,
            small_files=paths,
            directories=directories,
            epochs=epochs,
        )

    def finish_flush(self, ticket: FlushTicket) -> None:
        """The ticket's `run` has returned: move the recovery point."""
        state = self._state
        if ticket.epochs is not None:
            ticket.epochs.ended(failed=False)
        if ticket.generation != state.generation:
            return
        self.last_flush_ms = state.clock.monotonic_ms()
        if ticket.end_offset > state.recovery_point:
            state.recovery_point = ticket.end_offset
            ends = state.producer_state.unflushed_ends
            if ends is not None:
                ends.let_go(ticket.end_offset)
        if self._unsynced_snapshots:
            self._unsynced_snapshots = [
                at for at in self._unsynced_snapshots if at > ticket.end_offset
            ] or None

    def abandon_flush(self, ticket: FlushTicket) -> None:
        """The ticket's `run` has raised: what it was to sync is left to the next flush."""
        state = self._state
        parent = state.directory.rpartition("/")[0] or "."
        if ticket.epochs is not None:
            ticket.epochs.ended(failed=True)
        self.directory_changed |= state.directory in ticket.directories
        self.is_new_directory |= parent in ticket.directories
        state.leader_epochs.sync_with_flush |= state.leader_epochs.path in ticket.small_files
        sealed = [segment for segment in ticket.segments if segment is not state.segments.active]
        if sealed:
            self._sealed = [*sealed, *(self._sealed or ())]

    def flush(self, up_to: int | None = None) -> None:
        """Make everything below `up_to` (default: all) durable before returning; blocks.

        Raises:
            DiskError: The disk refused. Where it `is_disk_failure` the log is out of service from
                now on, since the kernel may have dropped what it could not write.
        """
        ticket = self.begin_flush(up_to)
        if ticket is None:
            return
        try:
            ticket.run()
        except DiskError as error:
            self.abandon_flush(ticket)
            if error.is_disk_failure:
                self._state.fail(error)
            raise
        self.finish_flush(ticket)
