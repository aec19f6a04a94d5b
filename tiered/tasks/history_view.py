"""View of a partition's history: which segments are live, from where to where.

The leader's log and metadata are captured in one loop iteration; what follows may take its time
over it, as neither changes what was captured:

    segments, copied and finished, in the lineage, not below the log start  ─> live
    greatest end of the live ones, at least the log start                   ─> end
    the producer snapshot at that end: where its first open transaction
    begins                                                                  ─> stable end

A transaction may begin in a segment that is copied and be aborted in one that is not, and then
nothing in the bucket says so. So below the stable end a reader without a broker knows of every
record whether it was committed, and above it does not. What the producer snapshot says was open at
the end may have ended since: the log's own last stable offset is further on then, and that does not
help a reader of the bucket alone.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tiered.metadata.lineage import Lineage
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition
from tiered.tasks.led_partition import LedPartition


class Signature(NamedTuple):
    """What changes whenever a history may have changed, and is cheap to compare.

    Attributes:
        version: Of the metadata.
        log_start_offset: Of the log.
        latest_epoch: With records, or begun; -1: none.
        leader_epoch: Of the leadership.
    """

    version: int
    log_start_offset: int
    latest_epoch: int
    leader_epoch: int


def signature_of(led: LedPartition, metadata: RemoteLogMetadataManager) -> Signature:
    """Of a partition that is led here, now.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    log = led.tiered.log
    latest = log.leader_epochs.latest_epoch
    return Signature(
        metadata.known_of(led.tiered.partition).version,
        log.log_start_offset,
        -1 if latest is None else latest,
        led.tiered.leader_epoch,
    )


class CapturedHistory(NamedTuple):
    """A partition at one moment.

    Attributes:
        signature: Of that moment.
        segments: All there are, in any state.
        lineage: Of the log.
        leader_epochs: (epoch, start offset) of the log, ascending.
        partition_count: Of the topic.
    """

    signature: Signature
    segments: Sequence[RemoteLogSegmentMetadata]
    lineage: Lineage
    leader_epochs: Sequence[tuple[int, int]]
    partition_count: int


def capture(led: LedPartition, metadata: RemoteLogMetadataManager) -> CapturedHistory:
    """A partition that is led here, now.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    log = led.tiered.log
    return CapturedHistory(
        signature_of(led, metadata),
        metadata.known_of(led.tiered.partition).segments(),
        Lineage.of(log),
        log.leader_epochs.entries(),
        led.tiered.facts().partitions,
    )


def collecting_live(
    captured: CapturedHistory, into: list[RemoteLogSegmentMetadata]
) -> Iterator[None]:
    """Append the live segments, ascending by start offset; yields after every one."""
    log_start = captured.signature.log_start_offset
    contains = captured.lineage.contains
    for segment in captured.segments:
        if (
            segment.state is SegmentState.COPY_SEGMENT_FINISHED
            and segment.end_offset >= log_start
            and contains(segment)
        ):
            into.append(segment)
        yield


def newest_of(live: Sequence[RemoteLogSegmentMetadata]) -> RemoteLogSegmentMetadata | None:
    """The one that ends last; None: there is none."""
    return max(live, key=lambda segment: segment.end_offset, default=None)


def epochs_between(
    entries: Sequence[tuple[int, int]], start: int, end: int
) -> tuple[tuple[int, int], ...]:
    """(epoch, start offset) of the records from `start` to `end`: the first begins at `start`."""
    if start >= end:
        return ()
    before = [epoch for epoch, offset in entries if offset <= start]
    inside = tuple((epoch, offset) for epoch, offset in entries if start < offset < end)
    return ((before[-1], start), *inside) if before else inside


def was_ever_copied(led: LedPartition, metadata: RemoteLogMetadataManager) -> bool:
    """Whether the metadata has ever had a segment of the partition; it remembers for good.

    Raises:
        RemoteStorageNotReadyError: Metadata is still being read.
    """
    partition: TopicIdPartition = led.tiered.partition
    return bool(metadata.known_of(partition).segments()) or any(
        metadata.highest_offset(partition, epoch) is not None
        for epoch, _ in led.tiered.log.leader_epochs.entries()
    )
