"""What a log has for its directory's thread: one ticket at a time, whatever part it is of.

begin ──> producers are to be read again (`storage.log.rollback`)
├──> segments have left the log (`storage.log.deletion`)
└──> batches or a roll are queued (`storage.log.write_behind`)
"""

from storage.log.deletion import SegmentDeletion
from storage.log.directory_pace import DirectoryPace
from storage.log.rollback import ProducerRollback
from storage.log.state import LogState
from storage.log.write_behind import WriteBehind
from storage.log.write_ticket import BackTicket, RetireTicket, WriteTicket


class LogDiskWork:
    """Hands out the disk's part of a log's work, and takes what came of it.

    Owns no state: each ticket belongs to the part that made it. The partition calls `begin` and
    `finish` on the owner's thread and has the ticket run in the directory's. Truncation and rolling
    call `write_queued`, which does the same here and now.
    """

    __slots__ = ("_behind", "_deletion", "_rollback", "_state")

    def __init__(
        self,
        state: LogState,
        behind: WriteBehind,
        rollback: ProducerRollback,
        deletion: SegmentDeletion,
    ) -> None:
        self._state = state
        self._behind = behind
        self._rollback = rollback
        self._deletion = deletion

    def leave_to(self, pace: DirectoryPace) -> None:
        """Queue what the directory's `pace` says: who appends calls `begin` afterwards."""
        assert self._state.write_queue is None, self._state
        self._state.pace = pace

    @property
    def is_under_way(self) -> bool:
        """A ticket of a rollback or of the write queue is out."""
        queue = self._state.write_queue
        return self._rollback.is_under_way or (queue is not None and queue.under_way)

    @property
    def is_rolling_back(self) -> bool:
        """A write has found no room, and `begin` has something to do about it."""
        return self._rollback.is_due

    def begin(self) -> WriteTicket | None:
        """What a thread should do next for the log; None: nothing, or it is at it.

        The ticket goes to `finish` when it has been run.
        """
        if self._rollback.is_due and not self._rollback.is_under_way:
            return self._rollback.begin()
        if self._deletion.is_due and not self._deletion.is_under_way:
            return self._deletion.begin()
        return self._behind.begin()

    def finish(self, ticket: WriteTicket, error: BaseException | None = None) -> bool:
        """A ticket's `run` has returned, or raised `error`.

        After an error nothing that is queued is written. Where the disk has failed the log is out
        of service. Where there was no room, or no descriptor, it takes no records until a further
        ticket has brought its producers back to its end.

        Returns:
            Whether the log end offset has moved.
        """
        if isinstance(ticket, BackTicket):
            self._rollback.finish(ticket, error)
            return False
        if isinstance(ticket, RetireTicket):
            self._deletion.finish(ticket, error)
            return False
        return self._behind.finish(ticket, error)

    def drop_queued(self) -> int:
        """As `WriteBehind.drop_queued`."""
        return self._behind.drop_queued()

    def write_queued(self) -> None:
        """Write all that is queued here and now; blocks. No ticket may be out.

        Raises:
            DiskError: The disk refused; the log is out of service.
        """
        queue = self._state.write_queue
        assert queue is None or not queue.under_way, self._state
        while (ticket := self.begin()) is not None:
            try:
                ticket.run()
            except BaseException as error:
                self.finish(ticket, error)
                raise
            self.finish(ticket)
