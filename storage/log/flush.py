"""Log flush: what is synced, when it is due, and the recovery point that follows.

See `storage.segment.flush` for the ticket that does the work beside the loop.
"""

from collections.abc import Callable
from typing import Final

from storage.errors import DiskError
from storage.log.state import LogState
from storage.producers.snapshot import snapshot_name
from storage.segment.flush import FlushTicket, SideFile

FLUSH_MESSAGES_UNLIMITED: Final = (1 << 63) - 1
"""`flush.messages`, if it is not set."""


class LogFlushes(LogState):
    """Flushes of a log, and its recovery point."""

    __slots__ = ()

    def _take_snapshot(self, offset: int) -> None:
        if self.producer_state.take_snapshot(offset):
            self._note_snapshot(offset)

    def _note_snapshot(self, offset: int) -> None:
        self._directory_changed = True
        if self._unsynced_snapshots is None:
            self._unsynced_snapshots = []
        self._unsynced_snapshots.append(offset)

    @property
    def needs_flush(self) -> bool:
        """`flush.messages` is reached: acknowledge only what a flush has covered."""
        return self.log_end_offset - self.recovery_point >= self._flush_messages

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
        for segment in tuple(self._segments)[1:]:
            if segment.base_offset > self.recovery_point:
                tick()
                self.flush(segment.base_offset)
        tick()
        self.flush()

    def flush_target(self) -> int | None:
        """The offset up to which a flush is due now; None if none is.

        All of the log by `flush.messages` or `flush.ms`. What was rolled is always due: the sooner
        it is on disk, the less is scanned after a crash.
        """
        if self.log_end_offset <= self.recovery_point:
            return None
        if self.needs_flush or self._clock.now_ms() - self.last_flush_ms >= self.config.flush_ms:
            return self.log_end_offset
        rolled = self.active_base_offset
        return rolled if rolled > self.recovery_point else None

    def begin_flush(self, up_to: int | None = None) -> FlushTicket | None:
        """Gather what must be synced for everything below `up_to` (default: all) to be durable.

        Returns:
            The flush, whose `run` may be called in a thread; None if there is nothing to do. It is
            over when `finish_flush` or `abandon_flush` is called.
        """
        end_offset = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        return self._make_ticket(end_offset) if end_offset > self.recovery_point else None

    def _make_ticket(self, end_offset: int) -> FlushTicket:
        segments = {
            segment.base_offset: segment
            for segment in self._segments.from_offset(self.recovery_point)
            if segment.base_offset < end_offset
        }
        # What was sealed when all its records had been flushed: its indexes have not.
        sealed, self._sealed = self._sealed, None
        for segment in sealed or ():
            if self._segments.floor(segment.base_offset) is segment:
                segments[segment.base_offset] = segment
        side_files: list[SideFile] = []
        active = self._segments.active
        for segment in segments.values():
            if segment is not active:
                side_files += (segment.offset_index, segment.time_index)
            side_files.append(segment.transaction_index)
        snapshots = [at for at in self._unsynced_snapshots or () if at <= end_offset]
        paths = [f"{self.directory}/{snapshot_name(at)}" for at in snapshots]
        directories = []
        if self.leader_epochs.sync_with_flush:
            # Before the recovery point passes the records of its latest epoch.
            paths.append(self.leader_epochs.path)
            self.leader_epochs.sync_with_flush = False
            self._directory_changed = True
        if self._directory_changed:
            directories.append(self.directory)
            self._directory_changed = False
        if self._is_new_directory:
            directories.append(self.directory.rpartition("/")[0] or ".")
            self._is_new_directory = False
        return FlushTicket(
            self._filesystem,
            end_offset,
            self._generation,
            segments=list(segments.values()),
            side_files=side_files,
            small_files=paths,
            directories=directories,
        )

    def finish_flush(self, ticket: FlushTicket) -> None:
        """The ticket's `run` has returned: move the recovery point."""
        if ticket.generation != self._generation:
            return
        self.last_flush_ms = self._clock.now_ms()
        if ticket.end_offset > self.recovery_point:
            self.recovery_point = ticket.end_offset
        if self._unsynced_snapshots:
            self._unsynced_snapshots = [
                at for at in self._unsynced_snapshots if at > ticket.end_offset
            ] or None

    def abandon_flush(self, ticket: FlushTicket) -> None:
        """The ticket's `run` has raised: what it was to sync is left to the next flush."""
        parent = self.directory.rpartition("/")[0] or "."
        self._directory_changed |= self.directory in ticket.directories
        self._is_new_directory |= parent in ticket.directories
        sealed = [segment for segment in ticket.segments if segment is not self._segments.active]
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
                self.fail(error)
            raise
        self.finish_flush(ticket)
