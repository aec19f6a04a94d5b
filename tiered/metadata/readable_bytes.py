"""Readable remote bytes of a log: a sum that is kept, not computed for each check.

Retention by size needs it at every check of a partition, and a partition may have 50,000
segments. So they are gone through once, in slices, when a leadership begins; afterwards only what
has changed in the metadata is added or subtracted. Should the log's epochs change other than by
forgetting the oldest, all is gone through again.

Segments outside the lineage are expected to be few, and are remembered.
"""

from uuid import UUID

from storage.log.log import Log
from tiered.metadata.lineage import Lineage
from tiered.metadata.remote_log_metadata_manager import PartitionSegments
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState


class ReadableBytes:
    """Of one partition that is led here; see the module.

    Attributes:
        bytes: Of the finished segments in the lineage, those below the log start included.
        outside: The finished segments that are not in it, by id.
        examined: Segments examined, in all.
    """

    __slots__ = (
        "_at",
        "_entries",
        "_known",
        "_lineage",
        "_segments",
        "_version",
        "bytes",
        "examined",
        "outside",
    )

    def __init__(self) -> None:
        self._known: PartitionSegments | None = None
        self._version = 0
        self._entries: list[tuple[int, int]] = []
        self._lineage = Lineage((), 0)
        self._segments: list[RemoteLogSegmentMetadata] = []
        self._at = 0
        self.bytes = 0
        self.outside: dict[UUID, RemoteLogSegmentMetadata] = {}
        self.examined = 0

    def counts(self, segment: RemoteLogSegmentMetadata) -> bool:
        """Whether a finished segment is part of `bytes`."""
        return segment.id not in self.outside

    def advance(self, known: PartitionSegments, log: Log, steps: int) -> bool:
        """Catch up with the metadata.

        Args:
            known: The partition's, as it is now.
            log: The leader's.
            steps: Segments to examine, at most, while all are gone through.

        Returns:
            Whether it is up to date; else there is more to go through.
        """
        entries = log.leader_epochs.entries()
        if known is not self._known or not self._is_same_lineage(entries):
            self._begin(known, entries)
        self._lineage.end_offset = log.log_end_offset
        end = min(self._at + steps, len(self._segments))
        for at in range(self._at, end):
            self._add(self._segments[at])
        self._at = end
        if end < len(self._segments):
            return False
        self._segments = []
        self._at = 0
        changes = known.changes(self._version)
        if changes is None:
            # More than are remembered, while it was gone through, say.
            self._begin(known, entries)
            return False
        self._version = known.version
        for before, after in changes:
            if before is not None:
                self._subtract(before)
            if after is not None:
                self._add(after)
        return True

    def _begin(self, known: PartitionSegments, entries: list[tuple[int, int]]) -> None:
        self._known = known
        self._version = known.version
        self._entries = entries
        self._lineage = Lineage(entries, 0)
        self._segments = list(known.segments())
        self._at = 0
        self.bytes = 0
        self.outside = {}

    def _is_same_lineage(self, entries: list[tuple[int, int]]) -> bool:
        """Nothing but the oldest epochs was forgotten, with what lies below the log start."""
        before = self._entries
        gone = len(before) - len(entries)
        if gone < 0 or not entries:
            return before == entries
        same_rest = before[gone + 1 :] == entries[1:]
        oldest = before[gone]
        return same_rest and oldest[0] == entries[0][0] and oldest[1] <= entries[0][1]

    def _add(self, segment: RemoteLogSegmentMetadata) -> None:
        self.examined += 1
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            if self._lineage.contains(segment):
                self.bytes += segment.segment_size_bytes
            else:
                self.outside[segment.id] = segment

    def _subtract(self, segment: RemoteLogSegmentMetadata) -> None:
        self.examined += 1
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED and (
            self.outside.pop(segment.id, None) is None
        ):
            self.bytes -= segment.segment_size_bytes
