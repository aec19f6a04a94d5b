"""Truncation, retention and replacement of compacted segments.

After a crash in the middle of any of these the next start finds a log without a gap.
"""

from collections.abc import Sequence

from storage.errors import DiskError, OffsetOutOfRangeError
from storage.index.reads import WAITING, Reads
from storage.log.append import LogAppends
from storage.log.recovery import replay
from storage.log.retention import plan_retention
from storage.segment.segment import Segment
from storage.types.log_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SKIPPED_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    log_file_name,
)


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


class LogCuts(LogAppends):
    """Truncation and segment deletion."""

    __slots__ = ()

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on. Blocks for the disk.

        A batch that holds `offset` goes whole, so the log may end before it. The recovery point
        moves down with the log: its checkpoint must be written before the next append.

        Returns:
            Whether anything was removed.

        Raises:
            DiskError: The disk refused.
        """
        assert offset >= 0, offset
        self.write_queued()
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            self._load_latest_epoch()
            return False
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        self._generation += 1
        at = self._segments.index_of(offset)
        # From the end, and on disk before the last is cut: wherever this stops, there is no gap.
        later = list(self._segments)[at + 1 :]
        for segment in reversed(later):
            self._remove_now(segment)
        if later:
            self._filesystem.sync_directory(self.directory)
        end = self._segments.active.truncate_to(offset)
        self._end_at(end)
        self.producer_state.truncate_and_reload(self.log_start_offset, end, self._clock.now_ms())
        if self.producer_state.map_end_offset < end:
            replay(self._segments, self.producer_state, self.producer_state.map_end_offset, end)
        self.producer_state.map_end_offset = end
        self._take_snapshot(end)
        return True

    def _end_at(self, end: int) -> None:
        self.log_end_offset = end
        self.recovery_point = min(self.recovery_point, end)
        self.log_start_offset = min(self.log_start_offset, end)
        self.leader_epochs.truncate_from_end(end)
        self._load_latest_epoch()
        if self._unsynced_snapshots:
            self._unsynced_snapshots = [at for at in self._unsynced_snapshots if at <= end]
        if self.high_watermark > end:
            self.update_high_watermark(end)

    def _load_latest_epoch(self) -> None:
        latest = self.leader_epochs.latest_epoch
        self._latest_leader_epoch = -1 if latest is None else latest

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`. Blocks for the disk.

        Raises:
            DiskError: The disk refused.
        """
        self.drop_queued()
        self._generation += 1
        leaving, self._leaving = self._leaving or [], None
        for segment in leaving:
            # The next one may get the name of one of them.
            segment.delete_files()
            self.producer_state.delete_snapshot(segment.base_offset)
        for segment in reversed(list(self._segments)):
            self._remove_now(segment)
        self._segments.add(self._create_segment(offset))
        self._filesystem.sync_directory(self.directory)
        self.log_start_offset = offset
        self.durable_log_start_offset = min(self.durable_log_start_offset, offset)
        self.leader_epochs.clear()
        self.producer_state.truncate_fully_and_start_at(offset)
        self._end_at(offset)
        self.high_watermark = offset
        self.recovery_point = offset

    def _remove_now(self, segment: Segment) -> None:
        self._segments.remove(segment)
        segment.delete_files()
        self.producer_state.delete_snapshot(segment.base_offset)

    def delete_records(self, before_offset: int) -> int:
        """Move the log start offset up (DeleteRecords, KIP-107); segments go at the next pass.

        Returns:
            The log start offset.

        Raises:
            OffsetOutOfRangeError: Above the high watermark.
        """
        if before_offset > self.high_watermark:
            raise OffsetOutOfRangeError(before_offset, self.log_start_offset, self.high_watermark)
        if before_offset > self.log_start_offset:
            self.log_start_offset = before_offset
            self.leader_epochs.truncate_from_start(before_offset)
            self.producer_state.on_log_start_offset_incremented(before_offset)
        return self.log_start_offset

    def raise_log_start(self, offset: int) -> bool:
        """Move the log start offset up, as far as the high watermark: remote segments have expired.

        Returns:
            Whether it was moved.
        """
        offset = min(offset, self.high_watermark)
        if offset <= self.log_start_offset:
            return False
        self.delete_records(offset)
        return True

    def delete_old_segments(self, reads: Reads = WAITING) -> int:
        """Apply retention (`storage.log.retention`): may roll the active segment, never deletes it.

        The files get the suffix `.deleted`; `remove_deleted_files` removes them later. Where a
        thread writes for the log they get it there: ask `begin_write` afterwards.

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
        self._check_failure()
        self._retire_refused = False
        plan = plan_retention(
            [_Facts(segment, reads) for segment in self._segments],
            self.config,
            log_start_offset=(
                self.durable_log_start_offset if self.remote_storage else self.log_start_offset
            ),
            high_watermark=self.high_watermark,
            log_end_offset=self.log_end_offset,
            now_ms=self._clock.now_ms(),
            remote_storage=self.copies_to_remote,
            highest_remote_offset=self.highest_remote_offset,
        )
        count = len(plan)
        # While a thread writes to the active segment it stays: the next pass finds it.
        if plan.roll_active and not self.is_writing:
            # As in Kafka, what goes must not be the active one: a new one takes its place.
            try:
                if self.write_queue is None and self._pace.is_quick:
                    self.roll()
                else:
                    # By the directory's thread, behind what it has to write.
                    self.queue_roll()
            except DiskError as error:
                # On a full disk the others go all the same: the next pass finds the room they had.
                if error.is_disk_failure or count == 0:
                    raise
            else:
                if not self.copies_to_remote and self.write_queue is None:
                    count += 1
            # Else it is to be copied, or is yet to be closed; the next pass finds it closed.
        if count == 0:
            return 0
        for segment in list(self._segments)[:count]:
            if self._pace.has_writer:
                self._leave(segment)
            else:
                self._retire(segment)
                self.producer_state.retire_snapshot(segment.base_offset)
        if not self.copies_to_remote:
            self.delete_records(max(self._segments[0].base_offset, self.log_start_offset))
        return count

    def _retire(self, segment: Segment) -> None:
        self._segments.remove(segment)
        segment.close()
        segment.rename_stage(DELETED_SUFFIX)
        self._note_deleted(segment)

    def _leave(self, segment: Segment) -> None:
        """As `_retire`, but the disk is a thread's: `begin_write` says so."""
        self._segments.remove(segment)
        segment.close()
        if self._leaving is None:
            self._leaving = []
        self._leaving.append(segment)

    def remove_deleted_files(self, *, now: bool = False) -> int:
        """Remove files whose segments left the log `file.delete.delay.ms` ago (all if `now`).

        Blocks for the disk, which may take long to free the blocks: to be called in a thread.

        Returns:
            How many segments' files were removed.

        Raises:
            DiskError: The disk refused.
        """
        waiting = self._deleted
        limit = float("inf") if now else self._clock.monotonic_ms()
        count = 0
        while waiting and waiting[0][0] <= limit:
            segment = waiting.popleft()[1]
            segment.delete_files()
            snapshot = log_file_name(segment.base_offset, SNAPSHOT_SUFFIX, DELETED_SUFFIX)
            self._filesystem.unlink(f"{segment.directory}/{snapshot}", missing_ok=True)
            count += 1
        return count

    def replace_segments(
        self, base_offset: int, replaced: Sequence[int], *, keep: bool = False
    ) -> None:
        """Put the finished, synced `.cleaned` segment at `base_offset` in place of others.

        All three steps of it, which see. Blocks for the disk.

        Args:
            base_offset: Of the new segment, and of the first one it replaces.
            replaced: Base offsets of all segments it stands for, ascending; never the active one.
            keep: Their files are not removed later, but stay as `.skipped`.

        Raises:
            DiskError: The disk refused; the next start puts it right.
            LogDirectoryOfflineError: The log is out of service.
        """
        segment = self.prepare_replacement(base_offset)
        self.put_replacement(segment, replaced, keep=keep)
        self.sync_replacement()

    # Each step is one that a start after a crash can finish or undo: see storage.log.recovery.

    def prepare_replacement(self, base_offset: int) -> Segment:
        """Give the `.cleaned` segment the suffix `.swap`, on disk. For a thread.

        From here on a start after a crash puts it in place; `undo_replacement` keeps it from that.

        Raises:
            DiskError: The disk refused.
        """
        path = f"{self.directory}/{log_file_name(base_offset, LOG_SUFFIX, CLEANED_SUFFIX)}"
        index = log_file_name(base_offset, TRANSACTION_INDEX_SUFFIX, CLEANED_SUFFIX)
        segment = Segment(
            self.directory,
            base_offset,
            self._filesystem,
            index_interval_bytes=self.config.index_interval_bytes,
            index_max_bytes=self.config.segment_index_bytes,
            size=self._filesystem.file_size(path),
            created_ms=self._clock.now_ms(),
            has_transaction_index=self._filesystem.exists(f"{self.directory}/{index}"),
            stage=CLEANED_SUFFIX,
        )
        segment.rename_stage(SWAP_SUFFIX)
        self._filesystem.sync_directory(segment.directory)
        return segment

    def put_replacement(
        self, segment: Segment, replaced: Sequence[int], *, keep: bool = False
    ) -> None:
        """Let a prepared segment take the place of others: renames, no sync. By the log's owner.

        `keep` as for `replace_segments`.

        Raises:
            DiskError: The disk refused; the next start puts it right.
            LogDirectoryOfflineError: The log is out of service.
        """
        self._check_failure()
        old = [one for one in self._segments if one.base_offset in set(replaced)]
        assert len(old) == len(replaced), (segment, replaced)
        assert self._segments.active not in old, segment
        for retired in old:
            if keep:
                self._segments.remove(retired)
                retired.close()
                retired.rename_stage(SKIPPED_SUFFIX)
            else:
                self._retire(retired)
            if retired.base_offset != segment.base_offset:
                self.producer_state.retire_snapshot(retired.base_offset)
        segment.rename_stage("")
        self._segments.add(segment)

    def sync_replacement(self) -> None:
        """Have the names of a replacement on disk. For a thread.

        Raises:
            DiskError: The disk refused.
        """
        self._filesystem.sync_directory(self.directory)

    def undo_replacement(self, segment: Segment) -> None:
        """Remove a prepared segment that is not wanted any more. For a thread."""
        segment.delete_files()
