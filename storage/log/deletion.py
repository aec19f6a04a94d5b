"""Deleting segments that have left a log: renamed at once or by a thread, removed later.

    in the log ──delete──> leaving ──ticket: rename to .deleted──> deleted ──a while──> removed
                  └──retire: renamed here and now──────────────────^

A start after a crash finds the ones that were not renamed in the log, and retention deletes them
again.

Source: Kafka, LocalLog.java (deleteSegmentFiles).
"""

from collections import deque

from storage.log.flush import LogFlusher
from storage.log.state import LogState
from storage.log.write_ticket import RetireTicket
from storage.segment.segment import Segment
from storage.segment.segment_files import rename_files
from storage.types.log_files import DELETED_SUFFIX, SNAPSHOT_SUFFIX, log_file_name


class SegmentDeletion:
    """Deletes segments of one log.

    Owns the segments that have left the log and whose files are there. Retention, truncation and
    compaction hand them over; `LogDiskWork` asks for tickets. On the owner's thread, but for
    `remove_deleted_files`, which blocks for the disk and runs in a thread of its own.
    """

    __slots__ = ("_deleted", "_flusher", "_is_refused", "_leaving", "_state", "is_under_way")

    def __init__(self, state: LogState, flusher: LogFlusher) -> None:
        self._state = state
        self._flusher = flusher
        # With the suffix .deleted: (when to remove, segment). None instead of empty.
        self._deleted: deque[tuple[float, Segment]] | None = None
        # To be renamed by a thread.
        self._leaving: list[Segment] | None = None
        self._is_refused = False
        self.is_under_way = False

    @property
    def is_due(self) -> bool:
        """Segments have left the log, and a thread may rename their files now."""
        return bool(self._leaving) and not self._is_refused and self._state.failure is None

    def retry(self) -> None:
        """Let a thread try again after the disk had no room."""
        self._is_refused = False

    def delete(self, segment: Segment) -> None:
        """Take a segment and its producer snapshot out of the log; who renames it says the pace.

        Raises:
            DiskError: The disk refused.
        """
        state = self._state
        if state.pace.has_writer:
            state.segments.remove(segment)
            segment.close()
            if self._leaving is None:
                self._leaving = []
            self._leaving.append(segment)
        else:
            self.retire(segment)
            state.producer_state.snapshots.retire(segment.base_offset)

    def retire(self, segment: Segment) -> None:
        """Take a segment out of the log and rename its files; its producer snapshot stays.

        Raises:
            DiskError: The disk refused; the segment is in the log.
        """
        rename_files(self._state.filesystem, segment.renames(DELETED_SUFFIX))
        self.retired(segment)

    def retired(self, segment: Segment) -> None:
        """The files of a segment have the suffix `.deleted`: it leaves the log."""
        self._state.segments.remove(segment)
        segment.close()
        segment.finish_rename(DELETED_SUFFIX)
        self._note_deleted(segment)

    def begin(self) -> RetireTicket:
        """The renames of the segments that leave, for a thread; to be given to `finish`."""
        segments, self._leaving = self._leaving or [], None
        self.is_under_way = True
        state = self._state
        renames: list[tuple[str, str]] = []
        for segment in segments:
            renames += segment.renames(DELETED_SUFFIX)
            renames.append(state.producer_state.snapshots.forget(segment.base_offset))
        return RetireTicket(state.generation, state.filesystem, segments, renames)

    def finish(self, ticket: RetireTicket, error: BaseException | None) -> None:
        """The ticket's `run` has returned, or raised `error`."""
        self.is_under_way = False
        if error is not None:
            self._state.fail_with(error)
        elif ticket.refusal is not None:
            # Retention tries again. A start in between finds them in the log, and they go again.
            self._leaving = [*ticket.segments, *(self._leaving or ())]
            self._is_refused = True
        else:
            for segment in ticket.segments:
                segment.finish_rename(DELETED_SUFFIX)
                self._note_deleted(segment)

    def _note_deleted(self, segment: Segment) -> None:
        self._flusher.directory_changed = True
        if self._deleted is None:
            self._deleted = deque()
        state = self._state
        due = state.clock.monotonic_ms() + state.config.file_delete_delay_ms
        self._deleted.append((due, segment))

    def remove_leaving(self) -> None:
        """Remove the files of segments that no thread has renamed yet: a new one may get a name.

        Raises:
            DiskError: The disk refused.
        """
        leaving, self._leaving = self._leaving or [], None
        for segment in leaving:
            segment.delete_files()
            self._state.producer_state.snapshots.delete(segment.base_offset)

    def remove_deleted_files(self, *, now: bool = False) -> int:
        """Remove files whose segments left the log `file.delete.delay.ms` ago (all if `now`).

        Blocks for the disk, which may take long to free the blocks: to be called in a thread.

        Returns:
            How many segments' files were removed.

        Raises:
            DiskError: The disk refused.
        """
        waiting = self._deleted
        limit = float("inf") if now else self._state.clock.monotonic_ms()
        count = 0
        while waiting and waiting[0][0] <= limit:
            segment = waiting.popleft()[1]
            segment.delete_files()
            snapshot = log_file_name(segment.base_offset, SNAPSHOT_SUFFIX, DELETED_SUFFIX)
            self._state.filesystem.unlink(f"{segment.directory}/{snapshot}", missing_ok=True)
            count += 1
        return count

    def move_to(self, directory: str) -> None:
        """The partition's directory was renamed."""
        for _, segment in self._deleted or ():
            segment.move_to(directory)
        for segment in self._leaving or ():
            segment.move_to(directory)
