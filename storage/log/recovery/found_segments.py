"""The files of a log that is opened: which are its segments, and what is done with the others.

    .deleted, .cleaned      removed
    .swap                   put in place of the segments that it was made from
    index without log       removed
    .log                    a segment; one that turns out not to continue the log is set aside

Source: Kafka, LogLoader.java.
"""

import logging
from collections.abc import Callable
from typing import Final

from storage.index.batch_scan import read_batch_header
from storage.log.segment_factory import SegmentFactory
from storage.log.state import LogState
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

TEMPORARY_SUFFIX: Final = ".tmp"


class FoundSegments:
    """The segments of one log, until it has them; and their files.

    Used by `LogLoader` alone, in its thread.

    Attributes:
        directory: Of the partition.
        segments: Ascending. `find` adds them.
    """

    def __init__(
        self,
        state: LogState,
        factory: SegmentFactory,
        *,
        recovery_point: int,
        clean_shutdown: bool,
        on_removed: Callable[[int], None],
    ) -> None:
        """Touch nothing yet.

        Args:
            state: Of the log; its directory exists. It is read, not changed.
            factory: Describes the segments there are.
            recovery_point: What lies below is on disk.
            clean_shutdown: All of it is.
            on_removed: Called with the base offset of a segment that leaves the log: its producer
                snapshot has to go, too.
        """
        self.directory = state.directory
        self.segments = Segments()
        self._filesystem = state.filesystem
        self._factory = factory
        self._recovery_point = recovery_point
        self._clean_shutdown = clean_shutdown
        self._on_removed = on_removed
        self._set_aside_numbers: set[int] = set()

    def path(self, name: str) -> str:
        """Of a file in the partition's directory."""
        return f"{self.directory}/{name}"

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders with segments that are not part of the log."""
        return tuple(self.path(folder_name(n)) for n in sorted(self._set_aside_numbers))

    def find(self) -> list[int]:
        """Describe the segments there are, after finishing or undoing what was under way.

        Returns:
            The offsets of the producer snapshots.

        Raises:
            DiskError: The disk refused.
        """
        files: dict[str, list[tuple[LogFileName, int]]] = {}
        for entry in self._filesystem.list_directory(self.directory):
            if entry.is_directory:
                number = number_of(entry.name)
                if number is not None:
                    self._set_aside_numbers.add(number)
                continue
            if entry.name.endswith(TEMPORARY_SUFFIX):
                self._filesystem.unlink(self.path(entry.name), missing_ok=True)
                continue
            name = parse_log_file_name(entry.name)
            if name is not None:
                files.setdefault(name.stage, []).append((name, entry.size))
            elif entry.name.endswith(LOG_SUFFIX):
                _log.warning("ignoring %s: its name is not a segment's", self.path(entry.name))
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
                self._filesystem.unlink(self.path(log_file_name(*name)), missing_ok=True)
            elif name.kind == TRANSACTION_INDEX_SUFFIX:
                with_index.add(name.base_offset)
        bases = sorted(sizes)
        for base_offset, following in zip(bases, [*bases[1:], OFFSET_MAX], strict=False):
            size = sizes[base_offset]
            segment = self._factory.describe(base_offset, size, base_offset in with_index)
            was_synced = self._clean_shutdown or following <= self._recovery_point
            segment.may_be_cut = size > 0 or (was_synced and base_offset in had_records)
            self.segments.add(segment)
        return snapshots

    def _clear_stages(
        self, files: dict[str, list[tuple[LogFileName, int]]]
    ) -> list[tuple[LogFileName, int]]:
        """Deal with files that are no live ones; returns the live ones there are then."""
        cleaned = files.get(CLEANED_SUFFIX, [])
        swaps = files.get(SWAP_SUFFIX, [])
        for name, _ in files.get(DELETED_SUFFIX, []) + cleaned:
            self._filesystem.unlink(self.path(log_file_name(*name)), missing_ok=True)
        live = dict(files.get("", []))
        # A swap at or above a segment that was still being cleaned belongs to a change that had
        # not begun: what it was made from is still there.
        limit = min((name.base_offset for name, _ in cleaned), default=None)
        valid = []
        for name, size in swaps:
            if limit is not None and name.base_offset >= limit:
                self._filesystem.unlink(self.path(log_file_name(*name)), missing_ok=True)
            else:
                valid.append((name, size))
        for name, size in valid:
            if name.kind == LOG_SUFFIX:
                self._remove_replaced(name.base_offset, self._end_of_swap(name, size), live)
        for name, size in valid:
            target = name._replace(stage="")
            self._filesystem.rename(
                self.path(log_file_name(*name)), self.path(log_file_name(*target))
            )
            live[target] = size
        return list(live.items())

    def _end_of_swap(self, name: LogFileName, size: int) -> int:
        segment = self._factory.describe(name.base_offset, size, False)
        file = self._filesystem.open(self.path(log_file_name(*name)), readonly=True)
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
                self._filesystem.unlink(self.path(log_file_name(*name)))
                del live[name]

    def drop_all(self, segments: list[Segment]) -> None:
        """Delete segments and their producer snapshots at once: they have no readers yet.

        The last goes first, and all before this returns: wherever it stops, what is left has no
        gap, and nothing comes back behind new records after the next crash.
        """
        live = [segment for segment in reversed(segments) if segment in list(self.segments)]
        for segment in live:
            _log.warning("removing segment %s: it begins beyond the log end offset", segment.path)
            self.segments.remove(segment)
            segment.delete_files()
            self._on_removed(segment.base_offset)
        if live:
            self._filesystem.sync_directory(self.directory)

    def set_aside(self, segments: list[Segment]) -> None:
        """Take segments out of the log and move their files into a new folder of the partition.

        On disk when this returns: nothing may come back behind new records after the next crash.
        """
        live = [segment for segment in segments if segment in list(self.segments)]
        if not live:
            return
        number = max(self._set_aside_numbers, default=0) + 1
        folder = self.path(folder_name(number))
        for segment in live:
            _log.warning(
                "moving segment %s, which does not continue the log, to %s", segment.path, folder
            )
            self.segments.remove(segment)
            self._on_removed(segment.base_offset)
        self._set_aside_numbers.add(number)
        set_aside(self._filesystem, folder, live)

    def set_aside_empty(self, clean_end: int | None) -> None:
        """Take segments without a byte out of the log that cannot be its own.

        The log would end where the last of them begins: below what the segment before it has, or
        beyond what a clean stop has noted. A roll that fails, on a disk that then refuses to remove
        the new file, leaves one in the way of what is appended after it; so does a hand.

        `clean_end`: where the log ended at a clean stop; None: there was none.
        """
        foreign = []
        before: Segment | None = None
        for segment in list(self.segments):
            if (
                segment.size == 0
                and before is not None
                and self._is_foreign(segment, before, clean_end)
            ):
                foreign.append(segment)
            else:
                before = segment
        self.set_aside(foreign)

    def _is_foreign(self, segment: Segment, before: Segment, clean_end: int | None) -> bool:
        end = before.next_offset()
        if segment.base_offset <= end:
            return segment.base_offset < end
        # The gap may be compaction's; but a clean stop knew of no segment up there.
        return (
            clean_end is not None
            and segment.base_offset > clean_end
            and not any(one.size for one in self.segments if one.base_offset > segment.base_offset)
        )

    def set_aside_end(self, segment: Segment, position: int) -> None:
        """Cut a segment; what is cut off is sound, and kept in a file of its own."""
        file = segment.open_file()
        header = read_batch_header(file, position, segment.size)
        assert header is not None, (segment, position)
        number = max(self._set_aside_numbers, default=0) + 1
        self._set_aside_numbers.add(number)
        set_aside_end(
            self._filesystem, self.path(folder_name(number)), segment, position, header.base_offset
        )
        file.truncate(position)
        file.sync()
