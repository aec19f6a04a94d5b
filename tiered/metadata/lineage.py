"""Lineage of a log: its leader epochs, by which remote segments belong to it or do not.

A replica's leader epochs are its lineage. A remote segment belongs to it when its own epochs are a
part of them:

    lineage      epoch 0 @ 0      epoch 2 @ 100                 epoch 3 @ 180 ...    log end
    belongs      [0 @ 0 .. 90]    [0 @ 91, 2 @ 100 .. 150]      [2 @ 151 .. 179]
    does not     [1 @ 91 .. 120]  epoch 1 wrote nothing here: another history
                 [2 @ 151 .. 185] its end was overwritten by epoch 3

Segments overlap after a change of leader, as replicas roll at different offsets; that is no reason
not to belong. Epochs that wrote nothing are left out on both sides.

Source: Kafka, RemoteLogManager.java (isRemoteSegmentWithinLeaderEpochs, findHighestRemoteOffset,
findLogStartOffset, buildFilteredLeaderEpochMap).
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from storage.log.log import Log
from storage.segment.segment import Segment
from tiered.metadata.epoch_bounds import find_segment, valid_end
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    SegmentState,
    TopicIdPartition,
)


def without_empty_epochs(entries: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out epochs at whose start offset the next one begins too."""
    kept: list[tuple[int, int]] = []
    for epoch, offset in entries:
        if kept and kept[-1][1] == offset:
            kept.pop()
        kept.append((epoch, offset))
    return kept


class Lineage:
    """See the module.

    Attributes:
        end_offset: The log end offset, exclusive.
    """

    __slots__ = ("_at", "_entries", "end_offset")

    def __init__(self, entries: Sequence[tuple[int, int]], end_offset: int) -> None:
        """Take over a replica's (epoch, start offset), ascending."""
        self._entries = without_empty_epochs(entries)
        self._at = {epoch: at for at, (epoch, _) in enumerate(self._entries)}
        self.end_offset = end_offset

    @classmethod
    def of(cls, log: Log) -> "Lineage":
        """Of a replica's log now."""
        return cls(log.leader_epochs.entries(), log.log_end_offset)

    @property
    def first_epoch(self) -> int | None:
        """The earliest epoch with records, None: the log knows no epoch."""
        return self._entries[0][0] if self._entries else None

    @property
    def last_epoch(self) -> int | None:
        """The latest epoch with records."""
        return self._entries[-1][0] if self._entries else None

    def contains(self, segment: RemoteLogSegmentMetadata) -> bool:
        """Whether a segment belongs to it. Its part below the first known epoch does not count.

        That part lies before the log start: the epochs there were forgotten with it.
        """
        entries = self._entries
        if not entries or segment.end_offset >= self.end_offset:
            return False
        epochs = segment.segment_leader_epochs
        own = without_empty_epochs(epochs) if len(epochs) > 1 else epochs
        last = own[-1][0]
        if not entries[0][0] <= last <= entries[-1][0]:
            return False
        is_first = True
        for index, (epoch, offset) in enumerate(own):
            if epoch < entries[0][0]:
                continue
            at = self._at.get(epoch)
            if at is None or (is_first and at > 0 and offset < entries[at][1]):
                return False
            is_first = False
            following = entries[at + 1] if at + 1 < len(entries) else None
            if index + 1 < len(own):
                if following is None or following != tuple(own[index + 1]):
                    return False
            elif following is not None and segment.end_offset >= following[1]:
                return False
        return True


def find_highest_remote_offset(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log
) -> int:
    """Last offset of this log that was copied, inclusive; -1: none. Copying goes on after it.

    Epochs from the newest to the oldest: the first of which anything was copied says how far. What
    a past leader copied beyond the end that the epoch has here does not count.

    The metadata remembers for good how far an epoch was copied, also when the segment was removed
    again because its published end was not known. Kafka would take it for copied
    then, and local retention would remove the only copy. So above the log start it only counts if
    there is a segment that holds it; and nothing counts from the first local record on that no
    segment holds (`find_local_hole`), which is copied again.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    highest = _highest_copied(metadata, partition, log)
    hole = find_local_hole(metadata, partition, log, highest)
    return highest if hole is None else hole - 1


def find_local_hole(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log, last: int
) -> int | None:
    """First offset up to `last` that is on the local disk and in no finished remote segment.

    None: there is none. A removal that should not have been leaves such a hole; or one that should,
    and a crash has lost the log start that went up before it. Local segments without a record need
    no copy, and are passed over.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    offset = _next_local_record(log, max(log.local_log_start_offset, log.log_start_offset))
    while offset <= last:
        segment = find_segment(metadata, partition, log.leader_epochs, offset)
        end = offset if segment is None else valid_end(segment, log.leader_epochs)
        if end <= offset:
            return offset
        offset = _next_local_record(log, end)
    return None


def _next_local_record(log: Log, offset: int) -> int:
    """The offset, or the end of the segments without a record that it lies in."""
    segments = log.segment_facts()
    at = max(bisect_right(segments, offset, key=_base_offset) - 1, 0)
    while at + 1 < len(segments) and not segments[at].size:
        at += 1
    return max(offset, segments[at].base_offset)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _highest_copied(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log
) -> int:
    """Last offset that was copied, holes or not; see `find_highest_remote_offset`."""
    for epoch, _ in reversed(log.leader_epochs.entries()):
        highest = metadata.highest_offset(partition, epoch)
        if highest is None:
            continue
        _, end = log.leader_epochs.end_offset_for(epoch, log.log_end_offset)
        highest = min(highest, end - 1)
        if highest < log.log_start_offset:
            return highest
        if metadata.find(partition, epoch, highest) is not None:
            return highest
        return min(highest, _last_finished_offset(metadata, partition, log))
    return -1


def _last_finished_offset(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log
) -> int:
    """Last offset of the finished segments in the lineage, up to the first gap between them."""
    lineage = Lineage.of(log)
    last = -1
    for segment in metadata.segments(partition):
        if segment.state is not SegmentState.COPY_SEGMENT_FINISHED:
            continue
        if not lineage.contains(segment) or segment.end_offset < log.log_start_offset:
            continue
        if segment.start_offset > max(last + 1, log.log_start_offset):
            break
        last = max(last, segment.end_offset)
    return last


def find_log_start_offset(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, log: Log
) -> int:
    """Log start offset by remote storage; a crash may have lost the log's own.

    The first finished segment that holds any record of this log, though its end was overwritten by
    a later epoch. Copying is in order, so what lies below it was copied too and has expired since;
    but not above the first local record: what is on the disk is copied again and expires then,
    rather than given up for a segment that may be missing. Without such a segment: the local log
    start.

    A segment whose copy was only begun may prove complete (`tiered.tasks.expirer`), and be the
    only one with its offsets: the log start does not go beyond it before that is known.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    local = log.local_log_start_offset
    first_local = _next_local_record(log, max(local, log.log_start_offset))
    begun: int | None = None
    for segment in metadata.segments(partition):
        end = valid_end(segment, log.leader_epochs)
        if end <= max(segment.start_offset, log.log_start_offset):
            continue
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            return min(segment.start_offset, first_local) if begun is None else begun
        if segment.state is SegmentState.COPY_SEGMENT_STARTED and begun is None:
            begun = min(segment.start_offset, local)
    return local if begun is None else begun
