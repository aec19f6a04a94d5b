"""Truncating a log: everything from an offset on is removed, or everything.

Wherever a crash stops it, the next start finds a log without a gap.

Source: Kafka, UnifiedLog.java (truncateTo, truncateFullyAndStartAt).
"""

from collections.abc import Sequence
from typing import NamedTuple

from storage.errors import DiskError
from storage.log.deletion import SegmentDeletion
from storage.log.disk_work import LogDiskWork
from storage.log.flush import LogFlusher
from storage.log.recovery.replay import replay
from storage.log.segment_factory import SegmentFactory
from storage.log.state import LogState
from storage.segment.segment import Segment


class StateBelow(NamedTuple):
    """What a log has to know of records that are not here.

    Attributes:
        next_offset: The first offset behind them.
        epochs: (epoch, start offset) of all below it.
        snapshot: The producer snapshot as of it, as a file.
    """

    next_offset: int
    epochs: Sequence[tuple[int, int]]
    snapshot: bytes


class LogTruncation:
    """Removes the end of one log, with what the other parts know of it.

    Owns nothing. Called by the log's owner while no ticket is out and nothing is appended.
    """

    __slots__ = ("_deletion", "_disk_work", "_factory", "_flusher", "_state")

    def __init__(
        self,
        state: LogState,
        factory: SegmentFactory,
        flusher: LogFlusher,
        deletion: SegmentDeletion,
        disk_work: LogDiskWork,
    ) -> None:
        self._state = state
        self._factory = factory
        self._flusher = flusher
        self._deletion = deletion
        self._disk_work = disk_work

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on. Blocks for the disk.

        A batch that holds `offset` goes whole, so the log may end before it. The recovery point
        moves down with the log: its checkpoint must be written before the next append.

        Returns:
            Whether anything was removed.

        Raises:
            DiskError: The disk refused; the log is out of service. Not where there is no room for
                what goes with the log: that is written later.
        """
        state = self._state
        assert offset >= 0, offset
        state.check_failure()
        self._disk_work.write_queued()
        if offset >= state.log_end_offset:
            state.leader_epochs.truncate_from_end(state.log_end_offset)
            state.load_latest_epoch()
            return False
        if offset < state.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            self._truncate_to(offset)
        except DiskError as error:
            # It ends nowhere: a second attempt would find the end where it is to be, with the
            # producers and the epochs of what was there.
            state.fail(error)
            raise
        return True

    def _truncate_to(self, offset: int) -> None:
        state = self._state
        state.generation += 1
        at = state.segments.index_of(offset)
        # From the end, and on disk before the last is cut: wherever this stops, there is no gap.
        later = list(state.segments)[at + 1 :]
        for segment in reversed(later):
            self._remove_now(segment)
        if later:
            state.filesystem.sync_directory(state.directory)
        end = state.segments.active.truncate_to(offset)
        self._end_at(end)
        state.producer_state.truncate_and_reload(state.log_start_offset, end, state.clock.now_ms())
        if state.producer_state.map_end_offset < end:
            replay(
                state.segments,
                state.producer_state,
                state.producer_state.map_end_offset,
                end,
            )
        state.producer_state.map_end_offset = end
        # The transactions of the snapshot and behind it are read as if none were committed yet.
        state.producer_state.on_high_watermark_updated(state.high_watermark)
        try:
            self._flusher.take_snapshot(end)
        except DiskError as error:
            if error.is_disk_failure:
                raise
            # A start reads the batches instead.

    def _end_at(self, end: int) -> None:
        state = self._state
        state.log_end_offset = end
        state.recovery_point = min(state.recovery_point, end)
        state.log_start_offset = min(state.log_start_offset, end)
        state.durable_log_start_offset = min(state.durable_log_start_offset, end)
        if state.gaps_until is not None:
            state.gaps_until = min(state.gaps_until, end)
        # What follows gets the same offsets, and was not copied.
        state.highest_remote_offset = min(state.highest_remote_offset, end - 1)
        state.durable_remote_offset = min(state.durable_remote_offset, end - 1)
        state.leader_epochs.truncate_from_end(end)
        state.load_latest_epoch()
        self._flusher.forget_above(end)
        if state.high_watermark > end:
            state.update_high_watermark(end)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`. Blocks for the disk.

        Raises:
            DiskError: The disk refused; the log is out of service.
        """
        self._state.check_failure()
        try:
            self._start_at(offset)
        except DiskError as error:
            self._state.fail(error)
            raise

    def _start_at(self, offset: int) -> None:
        state = self._state
        self._disk_work.drop_queued()
        state.generation += 1
        self._deletion.remove_leaving()
        for segment in reversed(list(state.segments)):
            self._remove_files(segment)
        first = self._factory.create(offset)
        # Not before: a log without a segment is none, for all who look at logs without a lock.
        state.segments.clear()
        state.segments.add(first)
        self._flusher.directory_changed = True
        # With its snapshots: one that came back would name producers and open transactions of
        # records that are gone, as of an offset of the new log.
        state.producer_state.truncate_fully_and_start_at(offset)
        state.filesystem.sync_directory(state.directory)
        state.log_start_offset = offset
        state.durable_log_start_offset = min(state.durable_log_start_offset, offset)
        state.leader_epochs.clear()
        self._end_at(offset)
        state.high_watermark = offset
        state.recovery_point = offset

    def start_behind(self, below: StateBelow, *, log_start_offset: int, now_ms: int) -> None:
        """Remove everything; the log goes on behind records that are elsewhere.

        Blocks for the disk.

        That it begins there is the last that is written: a log that is found to begin behind its
        log start has the epochs and the producers of what lies before. Wherever a crash stops it
        earlier, the next start finds an empty log that begins before `below.next_offset`.

        Args:
            below: What lies before.
            log_start_offset: Of the log from now on, at most `below.next_offset`.
            now_ms: Wall clock; producers that are silent too long are left out.

        Raises:
            CorruptFileError: The snapshot is none; the log is empty.
            DiskError: The disk refused; the log may be empty.
        """
        state, end = self._state, below.next_offset
        log_start_offset = min(log_start_offset, end)
        self.truncate_fully_and_start_at(min(log_start_offset, max(end - 1, 0)))
        state.leader_epochs.replace(below.epochs)
        state.leader_epochs.truncate_from_end(end)
        state.leader_epochs.truncate_from_start(log_start_offset)
        state.producer_state.restore(end, below.snapshot, now_ms)
        first = state.segments[0]
        if first.base_offset != end:
            first.delete_files()
            try:
                following = self._factory.create(end)
            except DiskError as error:
                # A log without a segment is none.
                state.fail(error)
                raise
            state.segments.remove(first)
            state.segments.add(following)
            self._flusher.directory_changed = True
            state.filesystem.sync_directory(state.directory)
        state.log_end_offset = state.recovery_point = end
        state.log_start_offset = log_start_offset
        state.update_high_watermark(end)
        state.durable_log_start_offset = min(state.durable_log_start_offset, log_start_offset)
        state.durable_remote_offset = end - 1
        state.load_latest_epoch()

    def _remove_now(self, segment: Segment) -> None:
        self._state.segments.remove(segment)
        self._remove_files(segment)

    def _remove_files(self, segment: Segment) -> None:
        segment.delete_files()
        self._state.producer_state.snapshots.delete(segment.base_offset)
