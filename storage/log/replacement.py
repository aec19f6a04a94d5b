"""Putting a compacted segment in place of the segments that it was made from.

    .cleaned ──prepare──> .swap ──put──> live, the others .deleted ──sync──> on disk
                            └──undo──> removed

Wherever a crash stops it, the next start finishes or undoes it (`storage.log.recovery.loader`).

Source: Kafka, LocalLog.java (replaceSegments).
"""

from collections.abc import Sequence

from storage.log.deletion import SegmentDeletion
from storage.log.state import LogState
from storage.segment.segment import Segment
from storage.types.log_files import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
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
            DiskError: The disk refused; the next start finishes or undoes it.
            LogDirectoryOfflineError: The log is out of service.
        """
        segment = self.prepare(base_offset)
        self.put(segment, replaced, keep=keep)
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
        segment.rename_stage(SWAP_SUFFIX)
        state.filesystem.sync_directory(segment.directory)
        return segment

    def put(self, segment: Segment, replaced: Sequence[int], *, keep: bool = False) -> None:
        """Let a prepared segment take the place of others: renames, no sync. By the log's owner.

        `keep` as for `replace`.

        Raises:
            DiskError: The disk refused; the next start finishes or undoes it.
            LogDirectoryOfflineError: The log is out of service.
        """
        state = self._state
        state.check_failure()
        old = [one for one in state.segments if one.base_offset in set(replaced)]
        assert len(old) == len(replaced), (segment, replaced)
        assert state.segments.active not in old, segment
        for retired in old:
            if keep:
                state.segments.remove(retired)
                retired.close()
                retired.rename_stage(SKIPPED_SUFFIX)
            else:
                self._deletion.retire(retired)
            if retired.base_offset != segment.base_offset:
                state.producer_state.snapshots.retire(retired.base_offset)
        segment.rename_stage("")
        state.segments.add(segment)

    def sync(self) -> None:
        """Have the names of a replacement on disk. For a thread.

        Raises:
            DiskError: The disk refused.
        """
        self._state.filesystem.sync_directory(self._state.directory)

    def undo(self, segment: Segment) -> None:
        """Remove a prepared segment that is not to be put in place. For a thread."""
        segment.delete_files()
