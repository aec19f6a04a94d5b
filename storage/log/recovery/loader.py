"""Log recovery: from the files in a partition's directory to a log that can be appended to.

    1  leftovers         removed or put in place (`FoundSegments`)
    2  segments          one for each .log file; an empty one that cannot be the log's is set
                         aside, so that the log does not end where that begins
    3  after a clean     only the end of the active segment is read, to learn the log end offset
       stop
       else              every segment from the one that holds the recovery point is scanned
                         (`SegmentRecovery`): the log ends before the first bad batch.
                         Segments after it are set aside (`storage.segment.set_aside`)
    4  log start         the checkpoint's, but not before the first segment, nor after the log end
    5  producer state    newest snapshot, then the batches after it; leader epochs cut to the log

A clean stop whose log does not end with a whole batch was not one: the active segment is scanned.
Likewise with a damaged transaction index. Damaged offset and time indexes are found, and rebuilt,
when they are used.

A gap in the offsets is no damage as such: compaction leaves gaps in segments, before a segment's
first batch and between segments, and `cleanup.policy` may have changed since. But after a power cut
a closed segment may end early, at the end of a batch, or be empty, while the next one is there: the
kernel writes pages back in any order. That is assumed of a gap between segments only if

    it lies at or above the recovery point   what lies below was on disk: nothing of it can be lost.
                                             Of a log that its directory's checkpoint lacks, which
                                             is younger, that is 0; where there is no checkpoint
                                             at all, nothing is known
    nobody has left one there on purpose     neither compaction nor a follower does so above the
                                             recovery point, and the directory says that nobody
                                             else was here. Else the log was never compacted: not
                                             by its settings, nor by the cleaner's checkpoint, nor
                                             by gaps that cannot be anything else
    something is there before it             else the log begins later, as after retention. Unless
                                             nothing is there behind it either; or the log has other
                                             replicas, so that it is fetched again from the gap on

A follower has to leave one where its leader's log has a gap that is longer than an index can say:
longer than what a power cut can take.

Only what is cut off is synced, so that it cannot come back behind new records. The recovery point
does not move up (but to the end of the log after a clean stop): a second crash finds no more trust
in the files than the first did. A broker that is stopped while it recovers syncs what it has
scanned of the log: the next start goes on from there.

Where the disk has failed, the kernel may hold pages that it could not write, and passes them for
written: a sync succeeds then, and they are lost with the next of its needs for memory. So what is
scanned is written again, to be synced in truth.

Source: Kafka, LogLoader.java, UnifiedLog.java (rebuildProducerState).
"""

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NoReturn

from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.checkpoints.log_loading import LoadingStoppedError
from storage.errors import CorruptFileError
from storage.index.batch_scan import read_batch_header
from storage.log.recovery.epochs_of_batches import complete_epochs
from storage.log.recovery.found_segments import FoundSegments
from storage.log.recovery.loaded_log import CheckpointedLog, LoadedLog
from storage.log.recovery.replay import replay
from storage.log.recovery.segment_recovery import (
    MisplacedSegmentError,
    SegmentRecovery,
    SuspectBatchError,
    begins_after_gap,
)
from storage.log.segment_factory import SegmentFactory
from storage.log.state import LogState
from storage.producers.state import ProducerStateManager
from storage.segment.segment import Segment
from storage.types.log_files import OFFSET_MAX, SNAPSHOT_SUFFIX, log_file_name

_log = logging.getLogger(__name__)

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

LOSS_MAX_OFFSETS: Final = 1 << 30
"""As many records were never in memory alone: a longer gap is one of a leader's log."""

Progress = Callable[[int, int], None]
"""Called with (bytes scanned, bytes to scan) of this log. What it raises ends the opening."""


class LogLoader:
    """Opens one log. Not used twice."""

    def __init__(
        self,
        state: LogState,
        segments: SegmentFactory,
        checkpointed: CheckpointedLog,
        *,
        producer_state: Callable[[list[int]], ProducerStateManager],
        on_progress: Progress | None = None,
    ) -> None:
        """Touch nothing yet.

        Args:
            state: Of the log; its directory exists. It is read, not changed.
            segments: Describes the segments there are, and makes an empty one.
            checkpointed: See there.
            producer_state: Makes the empty producer state; given the offsets of the snapshots.
            on_progress: See `Progress`.
        """
        config = state.config
        recovery_point = checkpointed.recovery_point
        was_compacted = checkpointed.was_compacted or "compact" in config.cleanup_policy
        new_leader_epoch = checkpointed.new_leader_epoch
        self._directory = state.directory
        self._filesystem = state.filesystem
        self._factory = segments
        self._make_producer_state = producer_state
        self._clean_shutdown = checkpointed.clean_shutdown
        self._recovery_point = recovery_point or 0
        # Where the log ended, by a clean stop.
        self._clean_end = recovery_point if checkpointed.clean_shutdown else None
        # Gaps below are compaction's; without a checkpoint all may be.
        self._gaps_until = OFFSET_MAX if was_compacted or recovery_point is None else recovery_point
        # None was left between two segments at or above the recovery point.
        self._no_gaps_above = checkpointed.no_gaps_above and recovery_point is not None
        self._log_start_offset = checkpointed.log_start_offset
        # Where a replica may have been cut at.
        self._cut_from: int | None = None
        self._is_doubtful = checkpointed.is_doubtful
        self._has_other_replicas = checkpointed.has_other_replicas
        self._last_known_epoch = (
            checkpointed.latest_epoch if new_leader_epoch is None else new_leader_epoch - 1
        )
        # The log may start before its first segment here: as `LogState.has_remote_part`.
        self._has_remote_part = config.remote_storage_enable or (
            checkpointed.remote_offset >= checkpointed.log_start_offset
            and not config.remote_log_delete_on_disable
        )
        self._now_ms = state.clock.now_ms()
        self._on_progress = on_progress
        self._bytes_done = 0
        self._bytes_total = 0
        self._scanned = False
        # With producers, and not synced: a stop writes none that is there.
        self.new_snapshots: list[int] = []
        self._found = FoundSegments(
            state,
            segments,
            recovery_point=self._recovery_point,
            clean_shutdown=self._clean_shutdown,
            on_removed=lambda base_offset: self.producer_state.snapshots.delete(base_offset),
        )
        self._segments = self._found.segments
        self.leader_epochs = LeaderEpochCache(
            self._found.path(LEADER_EPOCH_CHECKPOINT), state.filesystem
        )
        self.producer_state = producer_state([])

    def _advance(self, count: int = 0) -> None:
        """So many bytes more have been scanned; raises when the broker stops."""
        self._bytes_done += count
        if self._on_progress is not None:
            self._on_progress(min(self._bytes_done, self._bytes_total), self._bytes_total)

    def close(self) -> None:
        """Let go of the files of a log that could not be opened."""
        for segment in self._segments:
            segment.close()

    def load(self) -> LoadedLog:
        """Open the log; blocks, for as long as it takes to read what must be scanned.

        Raises:
            DiskError: The disk refused.
        """
        if self._has_other_replicas and self.leader_epochs.latest_epoch is not None:
            self._cut_from = self._recovery_point
        while True:
            self.producer_state = self._make_producer_state(self._found.find())
            self.producer_state.snapshots.remove_strays([s.base_offset for s in self._segments])
            self._found.set_aside_empty(self._clean_end)
            try:
                log_end_offset = self._find_end()
                break
            except SuspectBatchError as error:
                _log.warning("truncating the log: %s", error)
                self._found.set_aside(
                    [s for s in self._segments if s.base_offset > error.segment.base_offset]
                )
                self._found.set_aside_end(error.segment, error.position)
                self._segments.clear()
            except MisplacedSegmentError as error:
                _log.warning("not a segment of this log: %s", error)
                self._found.set_aside(
                    [s for s in self._segments if s.base_offset >= error.segment.base_offset]
                )
                self._segments.clear()
        segments = self._segments
        if len(segments) and log_end_offset < self._log_start_offset:
            _log.warning(
                "log %s: log end offset %d is below log start offset %d, starting with an empty "
                "log",
                self._directory,
                log_end_offset,
                self._log_start_offset,
            )
            self._found.drop_all(list(segments))
            self.leader_epochs.clear()
            self.producer_state.truncate_fully_and_start_at(self._log_start_offset)
        is_new = not len(segments)
        if is_new:
            segments.add(self._factory.create(self._log_start_offset))
            log_end_offset = self._log_start_offset
        local_start = max(self._log_start_offset, segments[0].base_offset)
        log_start_offset = self._log_start_offset if self._has_remote_part else local_start
        recovery_point = min(self._recovery_point, log_end_offset)
        if not self._scanned and self._clean_shutdown:
            recovery_point = log_end_offset
        # One that begins at the very end stays: of an emptied log it is all that is known, and a
        # consumer whose epoch is unknown would start over.
        self.leader_epochs.truncate_from_end(log_end_offset + 1)
        self.leader_epochs.truncate_from_start(log_start_offset)
        if not self._scanned:
            # Not from the local start: there lies the snapshot of a log that is empty here.
            self._restore_producer_state(log_start_offset, log_end_offset)
        self.producer_state.map_end_offset = max(log_end_offset, 0)
        gaps_until = None
        if is_new or self._gaps_until == OFFSET_MAX:
            # Of a new one there is nothing that could have been compacted.
            gaps_until = log_end_offset
        return LoadedLog(
            segments,
            log_start_offset,
            log_end_offset,
            recovery_point,
            self._found.folders,
            self._scanned,
            is_new,
            gaps_until,
        )

    # -- the end of the log ------------------------------------------------------------------

    def _find_end(self) -> int:
        """The log end offset, after scanning what cannot be trusted."""
        segments = self._segments
        if not len(segments):
            return self._log_start_offset
        begin = None
        if not self._clean_shutdown:
            begin = max(self._log_start_offset, segments[0].base_offset)
        complete_epochs(self.leader_epochs, segments, begin, self._advance)
        scan_from = None if self._clean_shutdown else max(self._recovery_point, 0)
        for segment in segments:
            try:
                segment.transaction_index.sanity_check(segment.base_offset)
            except CorruptFileError as error:
                _log.warning("recovering segment %s from its batches: %s", segment.path, error)
                if scan_from is None or segment.base_offset < scan_from:
                    scan_from = segment.base_offset
                break
        if scan_from is None:
            if self._recovery_point < segments.active.base_offset and not self._has_other_replicas:
                # A clean stop knew no segment above it: somebody has put them there since. Or it is
                # an older copy, put over what was there: other replicas have what that lacks.
                self._gaps_until = OFFSET_MAX
            next_offset = segments.active.find_end()
            if next_offset is not None:
                return next_offset
            _log.warning("segment %s does not end with a whole record batch", segments.active.path)
            scan_from = segments.active.base_offset
        # The segment before may still have the space it was preallocated with, if the power went
        # while it was being closed.
        at = segments.index_of(scan_from) - 1
        if at >= 0 and segments[at].find_end() is None:
            scan_from = segments[at].base_offset
        return self._scan(segments.from_offset(scan_from))

    def _scan(self, unflushed: list[Segment]) -> int:
        self._scanned = True
        self._bytes_total = sum(segment.size for segment in unflushed)
        self._bytes_done = 0
        first = unflushed[0].base_offset
        self.producer_state.truncate_and_reload(self._log_start_offset, first, self._now_ms)
        self._replay(self.producer_state.map_end_offset, first)
        recovery = SegmentRecovery(
            self.producer_state,
            self.leader_epochs,
            last_known_epoch=self._last_known_epoch,
            cut_from=self._cut_from,
            rewrites=self._is_doubtful,
            on_bytes=self._advance,
        )
        for at, segment in enumerate(unflushed):
            self._take_snapshot(segment.base_offset)
            rest = unflushed[at + 1 :]
            try:
                recovery.recover(segment, lambda end, rest=rest: self._before_cut(end, rest))  # type: ignore[misc]  # bound now
            except LoadingStoppedError:
                self._keep_progress(recovery, unflushed[:at], segment.base_offset)
            if rest and len(self._segments) > self._segments.index_of(segment.base_offset) + 1:
                self._check_follows(recovery, segment, rest)
            if segment is self._segments.active:
                break
        if recovery.has_gaps:
            self._gaps_until = OFFSET_MAX
        self._check_last_batch(recovery)
        recovery.write_found_epochs()
        self.producer_state.map_end_offset = recovery.next_offset
        self._take_snapshot(recovery.next_offset)
        return recovery.next_offset

    def _keep_progress(
        self, recovery: SegmentRecovery, scanned: list[Segment], reached: int
    ) -> NoReturn:
        """The broker stops: make durable what has been scanned, so that the next start goes on.

        Raises:
            LoadingStoppedError: With the recovery point that holds now.
            DiskError: The disk refused.
        """
        if not scanned:
            raise LoadingStoppedError
        recovery.write_found_epochs()
        for segment in scanned:
            segment.open_file().sync()
            for index in (segment.offset_index, segment.time_index):
                if self._filesystem.exists(index.path):
                    index.sync()
            if segment.transaction_index.entry_count:
                segment.transaction_index.flush()
        snapshot = self._found.path(log_file_name(reached, SNAPSHOT_SUFFIX))
        if self._filesystem.exists(snapshot):
            self._filesystem.open(snapshot).sync()
        self._filesystem.sync_directory(self._directory)
        raise LoadingStoppedError(reached)

    def _before_cut(self, end: int, rest: list[Segment]) -> None:
        """A segment is cut at offset `end`: without what is missing, the rest is not the log's.

        Where nothing is missing, only space was cut off that had been allocated in advance.
        """
        if rest and rest[0].base_offset != end:
            self._found.set_aside(rest)

    def _check_follows(
        self, recovery: SegmentRecovery, segment: Segment, rest: list[Segment]
    ) -> None:
        """Check that the next segment starts where a whole segment ends."""
        end, following = recovery.next_offset, rest[0].base_offset
        if end > following:
            if recovery.jumped_at is not None and recovery.jumped_from <= following:
                raise SuspectBatchError(segment, recovery.jumped_at)
            _log.warning("segment %s overlaps the next segment %s", segment.path, rest[0].path)
            self._found.set_aside(rest)
            return
        if recovery.jumped_at is not None:
            recovery.has_gaps = True
        if end < following:
            if self._is_lost(recovery, rest):
                _log.warning(
                    "offsets are missing: segment %s ends before segment %s begins",
                    segment.path,
                    rest[0].path,
                )
                if any(one.size for one in self._segments):
                    self._found.set_aside(rest)
                else:
                    self._found.drop_all(rest)
            else:
                _log.info(
                    "log %s continues at offset %d after a gap that begins at offset %d",
                    self._directory,
                    following,
                    end,
                )

    def _is_lost(self, recovery: SegmentRecovery, rest: list[Segment]) -> bool:
        """Whether what lacks between two segments was there when the power went; see the module."""
        end, following = recovery.next_offset, rest[0].base_offset
        if self._no_gaps_above:
            if end < self._recovery_point or following - end > LOSS_MAX_OFFSETS:
                return False
        elif end < self._gaps_until or recovery.has_gaps:
            return False
        before = [s for s in self._segments if s.base_offset < following]
        if not any(segment.size for segment in before):
            # A replica that went on behind the gap would never be given what is missing.
            return self._has_other_replicas or not any(segment.size for segment in rest)
        if self._no_gaps_above:
            return True
        is_compacted = self._was_compacted(before) or any(map(begins_after_gap, rest))
        if is_compacted:
            self._gaps_until = OFFSET_MAX
        return not is_compacted

    def _was_compacted(self, segments: list[Segment]) -> bool:
        """Whether segments that are below the recovery point, or checked, show gaps."""
        for segment, following in pairwise(segments):
            first = read_batch_header(segment.open_file(), 0, segment.size)
            if first is None and following.base_offset > self._recovery_point:
                # Nothing of it may have been synced: it is no sign of a gap that was meant.
                continue
            if first is not None and first.base_offset > segment.base_offset:
                return True
            if segment.next_offset() < following.base_offset:
                return True
        return False

    def _check_last_batch(self, recovery: SegmentRecovery) -> None:
        """Handle a single gap, before the log's last batch: one flipped bit causes it."""
        at, expected = recovery.jumped_at, recovery.jumped_from
        if at is None or expected < self._gaps_until or recovery.has_gaps:
            return
        segment = self._segments.active
        header = read_batch_header(segment.open_file(), at, segment.size)
        assert header is not None, (segment, at)
        if (header.base_offset ^ expected).bit_count() == 1:
            raise SuspectBatchError(segment, at)

    # -- producer state ----------------------------------------------------------------------

    def _restore_producer_state(self, log_start_offset: int, log_end_offset: int) -> None:
        state = self.producer_state
        if self._clean_shutdown and state.snapshots.latest_offset is None:
            # No snapshot after a clean stop: no log of ours, or one without records. Reading all
            # of it would only find producers that have long gone.
            state.map_end_offset = log_end_offset
            if log_end_offset > log_start_offset:
                self._take_snapshot(log_end_offset)
            return
        state.truncate_and_reload(log_start_offset, log_end_offset, self._now_ms)
        if state.map_end_offset < log_end_offset:
            self._replay(state.map_end_offset, log_end_offset)
            self._take_snapshot(log_end_offset)

    def _take_snapshot(self, offset: int) -> None:
        if self.producer_state.take_snapshot(offset) and not self.producer_state.is_empty:
            self.new_snapshots.append(offset)

    def _replay(self, start: int, end: int) -> None:
        """Give the batches of [start, end) to the producer state; their indexes are there."""
        replay(self._segments, self.producer_state, start, end, self._advance)
