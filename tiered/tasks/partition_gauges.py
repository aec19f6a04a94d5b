"""Gauges of one led partition's remote log: KIP-963's, and ours."""

from typing import NamedTuple

from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import TopicIdPartition
from tiered.tasks.led_partition import LedPartition, copy_lag


class PartitionGauges(NamedTuple):
    """Computed at each call, so that they equal what is there; Kafka adds them up per topic.

    Attributes:
        copy_lag_segments, copy_lag_bytes: Closed and not copied (RemoteCopyLagSegments, -Bytes).
        delete_lag_segments, delete_lag_bytes: Expired and not removed, as the expiry task last saw
            it (RemoteDeleteLagSegments, -Bytes).
        metadata_count: Segments in any state but removed (RemoteLogMetadataCount).
        remote_bytes: Of finished segments (RemoteLogSizeBytes).
        size_computation_ms: See LedPartition (RemoteLogSizeComputationTime).
        unreferenced_segments: See LedPartition.
        is_blocked: A segment may not be copied, and holds up those after it.
        stopped_copying: Copying has stopped for this leadership.
    """

    partition: TopicIdPartition
    copy_lag_segments: int
    copy_lag_bytes: int
    delete_lag_segments: int
    delete_lag_bytes: int
    metadata_count: int
    remote_bytes: int
    size_computation_ms: float
    unreferenced_segments: int
    is_blocked: bool
    stopped_copying: bool


def gauges_of(led: LedPartition, metadata: RemoteLogMetadataManager) -> PartitionGauges:
    """The gauges of one partition; those that need metadata are 0 without it."""
    partition = led.tiered.partition
    ready = metadata.is_ready(partition)
    lag_segments, lag_bytes = copy_lag(led)
    return PartitionGauges(
        partition=partition,
        copy_lag_segments=lag_segments,
        copy_lag_bytes=lag_bytes,
        delete_lag_segments=led.delete_lag_segments,
        delete_lag_bytes=led.delete_lag_bytes,
        metadata_count=len(metadata.segments(partition)) if ready else 0,
        remote_bytes=metadata.size(partition) if ready else 0,
        size_computation_ms=led.size_computation_ms,
        unreferenced_segments=led.unreferenced_segments,
        is_blocked=led.blocked is not None,
        stopped_copying=bool(led.stopped_copying),
    )
