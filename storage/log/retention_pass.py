"""Applying retention to a log: the oldest segments leave it, the active one is rolled first.

`storage.log.retention` decides, `storage.log.deletion` deletes.

Source: Kafka, UnifiedLog.java (deleteOldSegments).
"""

from storage.errors import DiskError
from storage.index.reads import WAITING, Reads
from storage.log.append import LogWriter
from storage.log.deletion import SegmentDeletion
from storage.log.disk_work import LogDiskWork
from storage.log.retention import plan_retention
from storage.log.state import LogState
from storage.log.write_behind import WriteBehind
from storage.segment.segment import Segment


class _Facts:
    """A segment as retention sees it."""

    __slots__ = ("_reads", "_segment", "base_offset", "size")

    def __init__(self, segment: Segment, reads: Reads) -> None:
        self._segment = segment
        self._reads = reads
        self.base_offset = segment.base_offset
        self.size = segment.size

    @property
    def largest_timestamp(self) -> int:
        return self._segment.find_largest_timestamp(self._reads)


class LogRetention:
    """Deletes old segments of one log.

    Owns nothing. Called on the owner's thread at each `log.retention.check.interval.ms`.
    """

    __slots__ = ("_behind", "_deletion", "_disk_work", "_state", "_writer")

    def __init__(
        self,
        state: LogState,
        writer: LogWriter,
        behind: WriteBehind,
        deletion: SegmentDeletion,
        disk_work: LogDiskWork,
    ) -> None:
        self._state = state
        self._writer = writer
        self._behind = behind
        self._deletion = deletion
        self._disk_work = disk_work

    def delete_old_segments(self, reads: Reads = WAITING) -> int:
        """Apply retention (`storage.log.retention`): may roll the active segment, never deletes it.

        The files get the suffix `.deleted`, and are removed later (`SegmentDeletion`). Where a
        thread writes for the log it renames them: ask `LogDiskWork.begin` afterwards.

        Args:
            reads: Whether it may wait for the disk where a segment's times are not known yet: after
                a start that is so with all of them.

        Returns:
            How many segments left the log.

        Raises:
            DiskError: The disk refused.
            WouldBlockError: `reads` do not wait, and the disk would have to be waited for; nothing
                was done.
        """
        state = self._state
        state.check_failure()
        self._deletion.retry()
        plan = plan_retention(
            [_Facts(segment, reads) for segment in state.segments],
            state.config,
            log_start_offset=(
                state.durable_log_start_offset if state.has_remote_part else state.log_start_offset
            ),
            high_watermark=state.high_watermark,
            log_end_offset=state.log_end_offset,
            now_ms=state.clock.now_ms(),
            remote_storage=state.copies_to_remote,
            highest_remote_offset=min(state.highest_remote_offset, state.durable_remote_offset),
        )
        count = len(plan)
        # While a thread writes to the active segment it stays: the next pass finds it.
        if plan.roll_active and not self._disk_work.is_under_way:
            # As in Kafka, what goes must not be the active one: a new one takes its place.
            try:
                if state.write_queue is None and state.pace.is_quick:
                    self._writer.roll()
                else:
                    # By the directory's thread, behind what it has to write.
                    self._behind.queue_roll()
            except DiskError as error:
                # On a full disk the others go all the same: the next pass finds the room they had.
                if error.is_disk_failure or count == 0:
                    raise
            else:
                if not state.copies_to_remote and state.write_queue is None:
                    count += 1
            # Else it is to be copied, or is yet to be closed; the next pass finds it closed.
        if count == 0:
            return 0
        for segment in list(state.segments)[:count]:
            self._deletion.delete(segment)
        # Where copying is disabled the topic's retention goes by what is here, as in Kafka. Where
        # remote storage is not enabled any more, what was copied may still be served again.
        if not state.copies_to_remote and (state.remote_storage or not state.has_remote_part):
            state.delete_records(max(state.segments[0].base_offset, state.log_start_offset))
        return count
