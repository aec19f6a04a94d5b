"""Putting a compacted segment in place of the segments that it was made from.

    .cleaned ──prepare──> .swap ──put──> live, the others .deleted ──sync──> on disk
                            └──undo──> removed

Wherever a crash stops it, the next start finishes or undoes it (`storage.log.recovery.loader`).
Where there is no room for a name, or no descriptor, nothing has happened: the log goes on, and a
`.swap` left behind would be put over what it is by the next start.

Source: Kafka, LocalLog.java (replaceSegments).
"""

from collections.abc import Sequence

from storage.errors import DiskError
from storage.log.deletion import SegmentDeletion
from storage.log.state import LogState
from storage.segment.segment import Segment
from storage.types.log_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SKIPPED_SUFFIX,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    log_file_name,
)


class SegmentReplacement:
    """Replaces segments of one log by compacted ones.

    Owns nothing. The cleaner calls `prepare`, `sync` and `undo` in its thread, and `put` on the
    owner's.
    """

    __slots__ = ("_deletion", "_state")

    def __init__(self, state: LogState, deletion: SegmentDeletion) -> None:
        self._state = state
        self._deletion = deletion

    def replace(self, base_offset: int, replaced: Sequence[int], *, keep: bool = False) -> None:
        """Put the finished, synced `.cleaned` segment at `base_offset` in place of others.

        `prepare`, `put` and `sync` in one. Blocks for the disk.

        Args:
            base_offset: Of the new segment, and of the first one it replaces.
            replaced: Base offsets of all segments it stands for, ascending; never the active one.
            keep: Their files are not removed later, but stay as `.skipped`.

        Raises:
            DiskError: As `prepare`, `put` and `sync`.
            LogDirectoryOfflineError: The log is out of service.
        """
        segment = self.prepare(base_offset)
        try:
            self.put(segment, replaced, keep=keep)
        except DiskError as error:
            self.undo_after(error, segment)
            raise
        self.sync()

    # Each step is one that a start after a crash can finish or undo: see storage.log.recovery.

    def prepare(self, base_offset: int) -> Segment:
        """Give the `.cleaned` segment the suffix `.swap`, on disk. For a thread.

        From here on a start after a crash puts it in place; `undo` keeps it from that.

        Raises:
            DiskError: The disk refused.
        """
        state = self._state
        path = f"{state.directory}/{log_file_name(base_offset, LOG_SUFFIX, CLEANED_SUFFIX)}"
        index = log_file_name(base_offset, TRANSACTION_INDEX_SUFFIX, CLEANED_SUFFIX)
        segment = Segment(
            state.directory,
            base_offset,
            state.filesystem,
            index_interval_bytes=state.config.index_interval_bytes,
            index_max_bytes=state.config.segment_index_bytes,
            size=state.filesystem.file_size(path),
            created_ms=state.clock.now_ms(),
            has_transaction_index=state.filesystem.exists(f"{state.directory}/{index}"),
            stage=CLEANED_SUFFIX,
        )
        # Written in this life, whole.
        segment.may_be_cut = False
        try:
            segment.rename_stage(SWAP_SUFFIX)
            state.filesystem.sync_directory(segment.directory)
        except DiskError as error:
            self.undo_after(error, segment)
            raise
        return segment

    def put(self, segment: Segment, replaced: Sequence[int], *, keep: bool = False) -> None:
        """Let a prepared segment take the place of others: renames, no sync. By the log's owner.

        `keep` as for `replace`.

        Raises:
            DiskError: The disk refused. Where it `is_disk_failure` the next start finishes or
                undoes it; else the log is as before, or out of service if that could not be.
            LogDirectoryOfflineError: The log is out of service.
        """
        state = self._state
        state.check_failure()
        old = [one for one in state.segments if one.base_offset in set(replaced)]
        assert len(old) == len(replaced), (segment, replaced)
        assert state.segments.active not in old, segment
        snapshots = state.producer_state.snapshots
        renames: list[tuple[str, str]] = []
        for retired in old:
            renames += retired.renames(SKIPPED_SUFFIX if keep else DELETED_SUFFIX)
            if retired.base_offset != segment.base_offset:
                path = snapshots.path(retired.base_offset)
                renames.append((path, path + DELETED_SUFFIX))
        self._rename_all([*renames, *segment.renames("")])
        for retired in old:
            if keep:
                state.segments.remove(retired)
                retired.close()
                retired.finish_rename(SKIPPED_SUFFIX)
            else:
                self._deletion.retired(retired)
            if retired.base_offset != segment.base_offset:
                snapshots.forget(retired.base_offset)
        segment.finish_rename("")
        state.segments.add(segment)

    def _rename_all(self, renames: Sequence[tuple[str, str]]) -> None:
        """Rename all files that are there, or none."""
        filesystem = self._state.filesystem
        done: list[tuple[str, str]] = []
        try:
            for source, target in renames:
                if filesystem.exists(source):
                    filesystem.rename(source, target)
                    done.append((source, target))
        except DiskError as error:
            if not error.is_disk_failure:
                self._rename_back(done)
            raise

    def _rename_back(self, done: Sequence[tuple[str, str]]) -> None:
        try:
            for source, target in reversed(done):
                self._state.filesystem.rename(target, source)
        except DiskError as error:
            # The files are neither the old segments nor the new one.
            self._state.fail(error)

    def sync(self) -> None:
        """Have the names of a replacement on disk. For a thread.

        Raises:
            DiskError: The disk refused.
        """
        self._state.filesystem.sync_directory(self._state.directory)

    def undo(self, segment: Segment) -> None:
        """Remove a prepared segment that is not to be put in place. For a thread.

        On disk when this returns: after a power cut it would be put over what the log is by then.

        Raises:
            DiskError: The disk refused.
        """
        segment.delete_files()
        self.sync()

    def undo_after(self, error: DiskError, segment: Segment) -> None:
        """Remove a segment that could not be put in place, if the log goes on without it.

        `error`: why; after a failure of the disk the next start decides.
        """
        if error.is_disk_failure or self._state.failure is not None:
            return
        filesystem = self._state.filesystem
        try:
            segment.close()
            for stage in (SWAP_SUFFIX, CLEANED_SUFFIX):
                for kind in SEGMENT_SUFFIXES:
                    name = log_file_name(segment.base_offset, kind, stage)
                    filesystem.unlink(f"{segment.directory}/{name}", missing_ok=True)
            self.sync()
        except DiskError as worse:
            # Else the next start would put it over what the log is by then.
            self._state.fail(worse)
