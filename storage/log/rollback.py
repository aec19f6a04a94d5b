"""Taking back offsets: after a queued write that found no room, the producers are read again.

    a queued write found no room ──> ticket: read the producers as of the log's end <──┐
                                         ├──> they replace those in memory             │
                                         └──> no descriptor for that: a further ticket ┘

The producers' state and the leader epochs had counted what was queued (`storage.log.write_behind`).
Until both are back at the log's end the log takes no records (`LogState.is_rolling_back`), so that
nothing is answered from them. The epochs' file, for which there may be no room either, follows
before the next batch. A leader then begins its epoch again, where the log ends (`Partition`).
"""

from storage.errors import DiskError
from storage.log.recovery.replay import replay
from storage.log.state import LogState
from storage.log.write_ticket import BackTicket
from storage.producers.state import ProducerStateManager
from storage.segment.segments import Segments


class ProducerRollback:
    """Brings the producers of a log back to its end.

    Owns nothing but whether its ticket is out. `LogDiskWork` calls `begin` and `finish` on the
    owner's thread, and a thread runs the ticket in between.
    """

    __slots__ = ("_state", "is_under_way")

    def __init__(self, state: LogState) -> None:
        self._state = state
        self.is_under_way = False

    @property
    def is_due(self) -> bool:
        """A write has found no room, and the log is not out of service for other reasons."""
        return self._state.is_rolling_back and self._state.failure is None

    def begin(self) -> BackTicket:
        """The reading, for a thread; to be given to `finish`."""
        self.is_under_way = True
        state = self._state
        end = state.log_end_offset
        log_start = state.log_start_offset
        now_ms = state.clock.now_ms()
        segments = Segments()
        for segment in state.segments:
            segments.add(segment)
        fresh = state.producer_state.empty_copy()

        def read() -> ProducerStateManager:
            fresh.truncate_and_reload(log_start, end, now_ms)
            if fresh.map_end_offset < end:
                replay(segments, fresh, fresh.map_end_offset, end)
            fresh.map_end_offset = end
            return fresh

        return BackTicket(state.generation, state.segments.active, read)

    def finish(self, ticket: BackTicket, error: BaseException | None) -> None:
        """The ticket's `run` has returned, or raised `error`.

        Where that says something of the disk the log is out of service. For want of a descriptor,
        or of room, it goes on taking no records, and a further ticket is due: not at once.
        """
        self.is_under_way = False
        state = self._state
        if isinstance(error, DiskError) and not error.is_disk_failure:
            return
        if error is not None or ticket.state is None:
            # Without the producers nothing can be checked.
            state.fail(DiskError(f"cannot read the producers ({error})", state.directory))
        else:
            state.producer_state.hand_over(ticket.state)
            state.producer_state = ticket.state
            state.producer_state.on_high_watermark_updated(state.high_watermark)
            state.leader_epochs.forget_from_end(state.log_end_offset)
            state.load_latest_epoch()
        state.end_rollback()
