"""State of one led partition, shared by the copier and the expirer."""

import logging
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from uuid import UUID

from storage.segment.segment import Segment
from tiered.metadata.lineage import (
    find_highest_remote_offset,
    find_local_hole,
    find_log_start_offset,
)
from tiered.metadata.readable_bytes import ReadableBytes
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.tiered_partition import TieredPartition

_log = logging.getLogger(__name__)

NEXT_LEADER_MS: Final = 15_000.0
"""By then a leader that was replaced has heard of it, or has lost its lease."""


@dataclass(frozen=True, slots=True)
class BlockedSegment:
    """A local segment that must not be copied; copying stops before it.

    Attributes:
        base_offset, path, problem: Which, and why.
        retry_at_ms: On the monotonic clock: when it is checked again.
    """

    base_offset: int
    path: str
    problem: str
    retry_at_ms: float


@dataclass(slots=True)
class LedPartition:
    """One leadership.

    Attributes:
        tiered: What the broker gave.
        is_active: The leadership lasts; False: tasks that still work for it must stop.
        is_settled: `log.highest_remote_offset` agrees with the metadata; False after a copy whose
            outcome is not known.
        purge_wanted: Remote storage was switched off, and what it has there is to go: that was said
            once, whatever is set since.
        blocked: The segment that copying stops before, None: there is none.
        stopped_copying: Why nothing is copied any more in this leadership; empty: it is.
        delete_lag_segments, delete_lag_bytes: What retention has expired and is still there.
        unreferenced_segments: Finished segments outside the lineage that are kept, as their offsets
            are not below the log start.
        size_computation_ms: How long it took to add up the partition's size
            (RemoteLogSizeComputationTime).
        readable: Sums of its remote segments.
        incomplete_since: Unfinished copies that are needed, and since when they were not all there,
            monotonic.
        others_copies: Unfinished ones of other brokers, and when they were seen first, monotonic.
    """

    tiered: TieredPartition
    is_active: bool = True
    is_settled: bool = False
    purge_wanted: bool = False
    blocked: BlockedSegment | None = None
    stopped_copying: str = ""
    delete_lag_segments: int = 0
    delete_lag_bytes: int = 0
    unreferenced_segments: int = 0
    size_computation_ms: float = 0.0
    readable: ReadableBytes = field(default_factory=ReadableBytes)
    incomplete_since: dict[UUID, float] = field(default_factory=dict)
    others_copies: dict[UUID, float] = field(default_factory=dict)

    @property
    def may_change(self) -> bool:
        """Whether events may be published and objects removed in this leadership, now."""
        return self.is_active and self.tiered.may_change()

    def left_behind(
        self, unfinished: Sequence[RemoteLogSegmentMetadata], broker_id: int, now_ms: float
    ) -> list[RemoteLogSegmentMetadata]:
        """Of unfinished copies and deletions, those that this leadership may go on with.

        Another broker's copy may not be over: the leader before has begun it and has not heard of
        this one yet, or the next one has, of which this broker has not heard. `NEXT_LEADER_MS`
        after it was seen first its leader knows, and has finished it or never will. Removed at once
        it could be finished meanwhile: its records leave the disks of those who have read that, and
        are in no bucket when they have read the rest.

        Args:
            unfinished: In any state but COPY_SEGMENT_FINISHED.
            broker_id: Of this broker.
            now_ms: Monotonic.
        """
        self.others_copies = {
            segment.id: self.others_copies.get(segment.id, now_ms)
            for segment in unfinished
            if segment.state is SegmentState.COPY_SEGMENT_STARTED and segment.broker_id != broker_id
        }
        return [
            segment
            for segment in unfinished
            if now_ms - self.others_copies.get(segment.id, -math.inf) >= NEXT_LEADER_MS
        ]

    def settle(
        self, metadata: RemoteLogMetadataManager, deletion: SegmentDeletion, *, fresh: bool = False
    ) -> None:
        """Bring the log's two remote offsets in agreement with the metadata.

        The log start goes up to the first offset that can be had, the highest remote offset up to
        what is copied. Segments whose deletion was begun and may be published do not count. Where a
        segment is missing whose records are still on the disk, the highest remote offset goes back
        to before it: they are copied again, and local retention keeps them until then.

        Args:
            metadata: What is copied.
            deletion: What is being removed.
            fresh: A leadership begins: what the log knew of remote storage counts for nothing.

        Raises:
            RemoteStorageNotReadyError: Metadata is still being read.
        """
        log, partition = self.tiered.log, self.tiered.partition
        highest = find_highest_remote_offset(metadata, partition, log)
        doubtful = deletion.first_doubtful_offset(partition, log.log_start_offset)
        if doubtful is not None:
            highest = min(highest, doubtful - 1)
        before = log.highest_remote_offset
        if not fresh and find_local_hole(metadata, partition, log, before) is None:
            highest = max(highest, before)
        elif highest < before and not fresh:
            _log.error(
                "%s: remote segments up to offset %d are missing after %d: they are copied again",
                partition,
                before,
                highest,
            )
        log.highest_remote_offset = highest
        self.is_settled = True
        self.raise_log_start(find_log_start_offset(metadata, partition, log))

    def raise_log_start(self, offset: int) -> None:
        """Move the log start up, and notify the waiters."""
        if self.tiered.log.raise_log_start(offset):
            self.tiered.on_log_start_moved()


def uncopied_segments(led: LedPartition, most: int | None = None) -> list[tuple[Segment, int]]:
    """Closed segments that remote storage does not have whole, and their ends (exclusive).

    Segments wholly below the log start are not among them, once a crash could not bring it down
    again: they only wait for their removal. One of which a past leader has copied a part is:
    replicas roll at different offsets. Those without a record are not: compaction has left them, or
    `varve tier skip`; there is nothing to copy, and what follows need not wait for it. Unless the
    file may have been emptied otherwise.

    Args:
        led: Whose.
        most: So many of the oldest; a log may have thousands when its copying begins.
    """
    log = led.tiered.log
    segments = log.segment_facts()
    first_wanted = max(log.highest_remote_offset + 1, log.durable_log_start_offset)
    first = max(bisect_right(segments, first_wanted, key=_base_offset) - 1, 0)
    waiting = (
        (segments[at], segments[at + 1].base_offset)
        for at in range(first, len(segments) - 1)
        if segments[at].size or segments[at].may_be_cut
    )
    return list(waiting if most is None else islice(waiting, most))


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def copy_lag(led: LedPartition) -> tuple[int, int]:
    """(segments, bytes) that are closed and not copied: RemoteCopyLagSegments and -Bytes.

    Zero while copying is disabled for the topic, as in Kafka; not while it is paused or blocked.
    """
    if not led.tiered.log.copies_to_remote:
        return 0, 0
    waiting = uncopied_segments(led)
    return len(waiting), sum(segment.size for segment, _ in waiting)


def only_local_bytes(led: LedPartition) -> int:
    """Bytes of the segments that remote storage has nothing of, the active one included."""
    highest = led.tiered.log.highest_remote_offset
    return sum(
        segment.size for segment in led.tiered.log.segment_facts() if segment.base_offset > highest
    )
