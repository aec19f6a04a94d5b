"""Logs and views of partitions as tests of planning need them: numbers, with no bucket behind."""

from collections.abc import Iterable
from uuid import UUID

from pipeline.plan.layout import Gap, LaidSegment
from pipeline.plan.partition_log import DamagedObject, PartitionLog
from pipeline.plan.piece import PartitionName
from pipeline.source.partition_view import PartitionView
from storage.types.topic_partition import TopicPartition
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    TopicIdPartition,
)

TOPIC_ID = UUID(int=7)
ZERO, ONE, TWO = (TopicPartition("t", number) for number in range(3))


def name_of(partition: TopicPartition) -> PartitionName:
    return PartitionName(partition.topic, TOPIC_ID, partition.partition)


def segment(partition: TopicPartition, start: int, end: int, size: int) -> LaidSegment:
    whose = TopicIdPartition(TOPIC_ID, partition.topic, partition.partition)
    metadata = RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(whose, UUID(int=start + 1)),
        start_offset=start,
        end_offset=end - 1,
        max_timestamp_ms=0,
        broker_id=1,
        event_timestamp_ms=0,
        segment_size_bytes=size,
        segment_leader_epochs=(SegmentEpoch(0, start),),
        txn_index_empty=True,
    )
    return LaidSegment(metadata, start, end)


def log_of(
    partition: TopicPartition,
    *segments: tuple[int, int, int],
    gaps: Iterable[tuple[int, int]] = (),
    damaged: Iterable[DamagedObject] = (),
    stable: int | None = None,
) -> PartitionLog:
    """A log of segments (start, end, bytes)."""
    end = segments[-1][1]
    return PartitionLog(
        name_of(partition),
        segments[0][0],
        end,
        end if stable is None else stable,
        segments=tuple(segment(partition, *one) for one in segments),
        gaps=tuple(Gap(*gap) for gap in gaps),
        damaged=tuple(damaged),
    )


def bucket_view(
    partition: TopicPartition, *segments: tuple[int, int, int], **facts: object
) -> PartitionView:
    """What a bucket alone has."""
    log = log_of(partition, *segments, **facts)  # type: ignore[arg-type]  # handed on
    end = log.stable_end_offset
    return PartitionView(name_of(partition), log.log_start_offset, end, log, end)


def broker_view(
    partition: TopicPartition,
    start: int,
    end: int,
    *segments: tuple[int, int, int],
    **facts: object,
) -> PartitionView:
    """What a broker has, and a bucket of it."""
    name = name_of(partition)
    if not segments:
        return PartitionView(name, start, end, None, 0, True, 5)
    log = log_of(partition, *segments, **facts)  # type: ignore[arg-type]  # handed on
    return PartitionView(name, start, end, log, log.stable_end_offset, True, 5)
