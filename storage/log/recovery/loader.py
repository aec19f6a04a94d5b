"""Log recovery: from the files in a partition's directory to a log that can be appended to.

    1  leftovers         .deleted, .cleaned, indexes without log removed; .swap put in place
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
    the log was never compacted              not by its settings, nor by the cleaner's checkpoint,
                                             nor by gaps that cannot be anything else
    something is there before it             else the log begins later, as after retention

Only what is cut off is synced, so that it cannot come back behind new records. The recovery point
does not move up (but to the end of the log after a clean stop): a second crash finds no more trust
in the files than the first did. A broker that is stopped while it recovers syncs what it has
scanned of the log: the next start goes on from there.

Source: Kafka, LogLoader.java, UnifiedLog.java (rebuildProducerState).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NoReturn

from protocol.records.batch import CONTROL_BIT, LOG_OVERHEAD
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.checkpoints.log_loading import LoadingStoppedError
from storage.errors import CorruptFileError
from storage.index.batch_scan import read_batch_header
from storage.log.recovery.segment_recovery import (
    MisplacedSegmentError,
    SegmentRecovery,
    SuspectBatchError,
    begins_after_gap,
    replay_batch,
)
from storage.log.segment_factory import SegmentFactory
from storage.log.state import LogState
from storage.producers.state import ProducerStateManager
from storage.segment.segment import Segment
from storage.segment.segments import Segments
from storage.segment.set_aside import folder_name, number_of, set_aside, set_aside_end
from storage.types.log_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    OFFSET_MAX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogFileName,
    log_file_name,
    parse_log_file_name,
)

_log = logging.getLogger(__name__)

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
TEMPORARY_SUFFIX: Final = ".tmp"

Progress = Callable[[int, int], None]
"""Called with (bytes scanned, bytes to scan) of this log. What it raises ends the opening."""

REPLAY_TICK_BATCHES: Final = 4096
"""Batches between two checks whether the broker stops."""


@dataclass(frozen=True, slots=True)
class CheckpointedLog:
    """What the checkpoints of a log directory say of a log, before it is read.

    The defaults are those of a log that was not closed cleanly, and none of which was flushed.

    Attributes:
        recovery_point: None if there is no checkpoint of it.
        log_start_offset: 0 if there is none.
        high_watermark: 0 if there is none; brought into the log's range.
        was_compacted: The cleaner's checkpoint knows the log.
        clean_shutdown: The directory was closed cleanly, so nothing is scanned.
        new_leader_epoch: The one in which the log is led from now on, if that began with this
            start (KIP-320): it begins at the log's end, in whatever state that was found.
        latest_epoch: The cluster has begun no later one in this log, so batches of epochs up to it
            are believed where the epochs' checkpoint lags behind; None: that is not known.
    """

    recovery_point: int | None = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    was_compacted: bool = False
    clean_shutdown: bool = False
    new_leader_epoch: int | None = None
    latest_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """What opening found.

    Attributes:
        segments: Ascending, at least one.
        log_start_offset: As in `storage.log.log`; likewise the other two.
        log_end_offset: See there.
        recovery_point: See there.
        set_aside: Folders with segments that are not part of the log.
        was_scanned: There may have been more of the log: its end was read from the batches.
        has_new_segment: There was no segment, and an empty one was made.
        may_have_gaps: See there.
    """

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    set_aside: tuple[str, ...]
    was_scanned: bool
    has_new_segment: bool
    may_have_gaps: bool


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
        self._is_compacted = was_compacted
        self._log_start_offset = checkpointed.log_start_offset
        self._last_known_epoch = (
            checkpointed.latest_epoch if new_leader_epoch is None else new_leader_epoch - 1
        )
        # The log may start before its first segment here.
        self._remote_storage = config.remote_storage_enable
        self._now_ms = state.clock.now_ms()
        self._on_progress = on_progress
        self._bytes_done = 0
        self._bytes_total = 0
        self._segments = Segments()
        self._scanned = False
        self._set_aside_numbers: set[int] = set()
        self.leader_epochs = LeaderEpochCache(self._path(LEADER_EPOCH_CHECKPOINT), state.filesystem)
        self.producer_state = producer_state([])

    def _advance(self, count: int = 0) -> None:
        """So many bytes more have been scanned; raises when the broker stops."""
        self._bytes_done += count
        if self._on_progress is not None:
            self._on_progress(min(self._bytes_done, self._bytes_total), self._bytes_total)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def close(self) -> None:
        """Let go of the files of a log that could not be opened."""
        for segment in self._segments:
            segment.close()

    def load(self) -> LoadedLog:
        """Open the log; blocks, for as long as it takes to read what must be scanned.

        Raises:
            DiskError: The disk refused.
        """
        while True:
            self._find_segments()
            self._set_aside_empty()
            try:
                log_end_offset = self._find_end()
                break
            except SuspectBatchError as error:
                _log.warning("truncating the log: %s", error)
                self._set_aside(
                    [s for s in self._segments if s.base_offset > error.segment.base_offset]
                )
                self._set_aside_end(error.segment, error.position)
                self._segments.clear()
            except MisplacedSegmentError as error:
                _log.warning("not a segment of this log: %s", error)
                self._set_aside(
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
            self._drop_all(list(segments))
            self.leader_epochs.clear()
            self.producer_state.truncate_fully_and_start_at(self._log_start_offset)
        is_new = not len(segments)
        if is_new:
            segments.add(self._factory.create(self._log_start_offset))
            log_end_offset = self._log_start_offset
            if not self._is_compacted:
                # No checkpoint knows it, but there is nothing that could have been compacted.
                self._gaps_until = 0
        local_start = max(self._log_start_offset, segments[0].base_offset)
        log_start_offset = self._log_start_offset if self._remote_storage else local_start
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
        folders = [self._path(folder_name(n)) for n in sorted(self._set_aside_numbers)]
        return LoadedLog(
            segments,
            log_start_offset,
            log_end_offset,
            recovery_point,
            tuple(folders),
            self._scanned,
            is_new,
            self._gaps_until == OFFSET_MAX,
        )

    # -- files -------------------------------------------------------------------------------

    def _find_segments(self) -> None:
        files: dict[str, list[tuple[LogFileName, int]]] = {}
        for entry in self._filesystem.list_directory(self._directory):
            if entry.is_directory:
                number = number_of(entry.name)
                if number is not None:
                    self._set_aside_numbers.add(number)
                continue
            if entry.name.endswith(TEMPORARY_SUFFIX):
                self._filesystem.unlink(self._path(entry.name), missing_ok=True)
                continue
            name = parse_log_file_name(entry.name)
            if name is not None:
                files.setdefault(name.stage, []).append((name, entry.size))
            elif entry.name.endswith(LOG_SUFFIX):
                _log.warning("ignoring %s: its name is not a segment's", self._path(entry.name))
        live = files.get("", [])
        if len(files) > 1:
            live = self._clear_stages(files)
        sizes = {name.base_offset: size for name, size in live if name.kind == LOG_SUFFIX}
        with_index = set()
        # What is empty on purpose, after a compaction or a skip, has empty indexes.
        had_records = set()
        snapshots = []
        for name, size in live:
            if size and name.kind in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                had_records.add(name.base_offset)
            if name.kind == SNAPSHOT_SUFFIX:
                snapshots.append(name.base_offset)
            elif name.base_offset not in sizes:
                _log.warning("removing index %s: its .log file is missing", log_file_name(*name))
                self._filesystem.unlink(self._path(log_file_name(*name)), missing_ok=True)
            elif name.kind == TRANSACTION_INDEX_SUFFIX:
                with_index.add(name.base_offset)
        bases = sorted(sizes)
        for base_offset, following in zip(bases, [*bases[1:], OFFSET_MAX], strict=False):
            size = sizes[base_offset]
            segment = self._factory.describe(base_offset, size, base_offset in with_index)
            was_synced = self._clean_shutdown or following <= self._recovery_point
            segment.may_be_cut = size > 0 or (was_synced and base_offset in had_records)
            self._segments.add(segment)
        self.producer_state = self._make_producer_state(snapshots)
        self.producer_state.snapshots.remove_strays(list(sizes))

    def _clear_stages(
        self, files: dict[str, list[tuple[LogFileName, int]]]
    ) -> list[tuple[LogFileName, int]]:
        """Deal with files that are no live ones; returns the live ones there are then."""
        cleaned = files.get(CLEANED_SUFFIX, [])
        swaps = files.get(SWAP_SUFFIX, [])
        for name, _ in files.get(DELETED_SUFFIX, []) + cleaned:
            self._filesystem.unlink(self._path(log_file_name(*name)), missing_ok=True)
        live = dict(files.get("", []))
        # A swap at or above a segment that was still being cleaned belongs to a change that had
        # not begun: what it was made from is still there.
        limit = min((name.base_offset for name, _ in cleaned), default=None)
        valid = []
        for name, size in swaps:
            if limit is not None and name.base_offset >= limit:
                self._filesystem.unlink(self._path(log_file_name(*name)), missing_ok=True)
            else:
                valid.append((name, size))
        for name, size in valid:
            if name.kind == LOG_SUFFIX:
                self._remove_replaced(name.base_offset, self._end_of_swap(name, size), live)
        for name, size in valid:
            target = name._replace(stage="")
            self._filesystem.rename(
                self._path(log_file_name(*name)), self._path(log_file_name(*target))
            )
            live[target] = size
        return list(live.items())

    def _end_of_swap(self, name: LogFileName, size: int) -> int:
        segment = self._factory.describe(name.base_offset, size, False)
        file = self._filesystem.open(self._path(log_file_name(*name)), readonly=True)
        segment.file = file
        next_offset = name.base_offset
        for _, header in segment.scan():
            next_offset = header.next_offset
        segment.release()
        return next_offset

    def _remove_replaced(self, start: int, end: int, live: dict[LogFileName, int]) -> None:
        for name in list(live):
            if name.kind in SEGMENT_SUFFIXES and start <= name.base_offset < max(end, start + 1):
                _log.info("removing segment %s: compaction has replaced it", log_file_name(*name))
                self._filesystem.unlink(self._path(log_file_name(*name)))
                del live[name]

    def _drop_all(self, segments: list[Segment]) -> None:
        """Delete segments and their producer snapshots at once: they have no readers yet.

        The last goes first, and all before this returns: wherever it stops, what is left has no
        gap, and nothing comes back behind new records after the next crash.
        """
        live = [segment for segment in reversed(segments) if segment in list(self._segments)]
        for segment in live:
            _log.warning("removing segment %s: it begins beyond the log end offset", segment.path)
            self._segments.remove(segment)
            segment.delete_files()
            self.producer_state.snapshots.delete(segment.base_offset)
        if live:
            self._filesystem.sync_directory(self._directory)

    def _set_aside(self, segments: list[Segment]) -> None:
        """Take segments out of the log and move their files into a new folder of the partition.

        On disk when this returns: nothing may come back behind new records after the next crash.
        """
        live = [segment for segment in segments if segment in list(self._segments)]
        if not live:
            return
        number = max(self._set_aside_numbers, default=0) + 1
        folder = self._path(folder_name(number))
        for segment in live:
            _log.warning(
                "moving segment %s, which does not continue the log, to %s", segment.path, folder
            )
            self._segments.remove(segment)
            self.producer_state.snapshots.delete(segment.base_offset)
        self._set_aside_numbers.add(number)
        set_aside(self._filesystem, folder, live)

    def _set_aside_empty(self) -> None:
        """Take segments without a byte out of the log that cannot be its own.

        The log would end where the last of them begins: below what the segment before it has, or
        beyond what a clean stop has noted. A roll that fails, on a disk that then refuses to remove
        the new file, leaves one in the way of what is appended after it; so does a hand.
        """
        foreign = []
        before: Segment | None = None
        for segment in list(self._segments):
            if segment.size == 0 and before is not None and self._is_foreign(segment, before):
                foreign.append(segment)
            else:
                before = segment
        self._set_aside(foreign)

    def _is_foreign(self, segment: Segment, before: Segment) -> bool:
        end = before.next_offset()
        if segment.base_offset <= end:
            return segment.base_offset < end
        # The gap may be compaction's; but a clean stop knew of no segment up there.
        return (
            self._clean_end is not None
            and segment.base_offset > self._clean_end
            and not any(one.size for one in self._segments if one.base_offset > segment.base_offset)
        )

    def _set_aside_end(self, segment: Segment, position: int) -> None:
        """Cut a segment; what is cut off is sound, and kept in a file of its own."""
        file = segment.open_file()
        header = read_batch_header(file, position, segment.size)
        assert header is not None, (segment, position)
        number = max(self._set_aside_numbers, default=0) + 1
        self._set_aside_numbers.add(number)
        set_aside_end(
            self._filesystem, self._path(folder_name(number)), segment, position, header.base_offset
        )
        file.truncate(position)
        file.sync()

    # -- the end of the log ------------------------------------------------------------------

    def _find_end(self) -> int:
        """The log end offset, after scanning what cannot be trusted."""
        segments = self._segments
        if not len(segments):
            return self._log_start_offset
        self._check_epochs()
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
            if self._recovery_point < segments.active.base_offset:
                # A clean stop knew no segment above it: somebody has put them there since.
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

    def _check_epochs(self) -> None:
        """Read leader epochs from the log that their checkpoint lacks."""
        epochs = self.leader_epochs
        first = epochs.earliest_entry
        if first is not None:
            self._check_first_epochs(first[1])
            return
        entries = self._epochs_of_batches(None)
        # What a scan will refuse may have left its epochs here; the truncation at the end of
        # loading takes them out again, as they begin after the log's end.
        if entries:
            epochs.replace(entries)

    def _check_first_epochs(self, first_start: int) -> None:
        """Read the epochs below the first known one, if the log starts before it again.

        DeleteRecords drops epochs that end before the new log start. The epochs' checkpoint is
        written with the next epoch, the one of the log start later: after a crash between them the
        log starts where it did before.
        """
        begin = max(self._log_start_offset, self._segments[0].base_offset)
        if self._clean_shutdown or first_start <= begin:
            return
        entries = self._epochs_of_batches(first_start)
        if entries and self.leader_epochs.extend_back(entries):
            _log.warning(
                "log %s: leader epochs below offset %d were missing in their checkpoint, read from "
                "the batches epochs=%d",
                self._directory,
                first_start,
                len(entries),
            )

    def _epochs_of_batches(self, end_offset: int | None) -> list[tuple[int, int]]:
        """(epoch, start offset) of the batches below `end_offset`; None: of all."""
        entries: list[tuple[int, int]] = []
        for segment in self._segments:
            self._advance()
            if end_offset is not None and segment.base_offset >= end_offset:
                break
            for count, (_, header) in enumerate(segment.scan(), 1):
                if count % REPLAY_TICK_BATCHES == 0:
                    self._advance()
                if end_offset is not None and header.base_offset >= end_offset:
                    break
                if header.leader_epoch > (entries[-1][0] if entries else -1):
                    entries.append((header.leader_epoch, header.base_offset))
        return entries

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
            on_bytes=self._advance,
        )
        for at, segment in enumerate(unflushed):
            self.producer_state.take_snapshot(segment.base_offset)
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
        self.producer_state.take_snapshot(recovery.next_offset)
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
        snapshot = self._path(log_file_name(reached, SNAPSHOT_SUFFIX))
        if self._filesystem.exists(snapshot):
            self._filesystem.open(snapshot).sync()
        self._filesystem.sync_directory(self._directory)
        raise LoadingStoppedError(reached)

    def _before_cut(self, end: int, rest: list[Segment]) -> None:
        """A segment is cut at offset `end`: without what is missing, the rest is not the log's.

        Where nothing is missing, only space was cut off that had been allocated in advance.
        """
        if rest and rest[0].base_offset != end:
            self._set_aside(rest)

    def _check_follows(
        self, recovery: SegmentRecovery, segment: Segment, rest: list[Segment]
    ) -> None:
        """Check that the next segment starts where a whole segment ends."""
        end, following = recovery.next_offset, rest[0].base_offset
        if end > following:
            if recovery.jumped_at is not None and recovery.jumped_from <= following:
                raise SuspectBatchError(segment, recovery.jumped_at)
            _log.warning("segment %s overlaps the next segment %s", segment.path, rest[0].path)
            self._set_aside(rest)
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
                self._set_aside(rest)
            else:
                _log.info(
                    "log %s continues at offset %d after a gap that begins at offset %d",
                    self._directory,
                    following,
                    end,
                )

    def _is_lost(self, recovery: SegmentRecovery, rest: list[Segment]) -> bool:
        """Whether what lacks between two segments was there when the power went; see the module."""
        if recovery.next_offset < self._gaps_until or recovery.has_gaps:
            return False
        before = [s for s in self._segments if s.base_offset < rest[0].base_offset]
        if not any(segment.size for segment in before):
            return False
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
                state.take_snapshot(log_end_offset)
            return
        state.truncate_and_reload(log_start_offset, log_end_offset, self._now_ms)
        if state.map_end_offset < log_end_offset:
            self._replay(state.map_end_offset, log_end_offset)
            state.take_snapshot(log_end_offset)

    def _replay(self, start: int, end: int) -> None:
        """Give the batches of [start, end) to the producer state; their indexes are there."""
        replay(self._segments, self.producer_state, start, end, self._advance)


def replay(
    segments: Segments,
    producer_state: ProducerStateManager,
    start: int,
    end: int,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Give the batches of [start, end) to the producer state, by their headers.

    Transaction indexes are not written: what is below the recovery point has them. `tick` is called
    now and then; what it raises ends this.
    """
    if start >= end:
        return
    for segment in segments.from_offset(start):
        if segment.base_offset >= end:
            break
        tick()
        batches = segment.scan(segment.position_of(start))
        for count, (position, header) in enumerate(batches, 1):
            if count % REPLAY_TICK_BATCHES == 0:
                tick()
            if header.base_offset >= end:
                break
            if header.producer_id < 0:
                continue
            batch = memoryview(b"")
            if header.attributes & CONTROL_BIT:
                size = header.batch_length + LOG_OVERHEAD
                batch = memoryview(segment.open_file().read_at(size, position))
            replay_batch(producer_state, None, header, batch)
    producer_state.map_end_offset = end
