"""Admission control of a micro-batch: by offsets, as Spark's Kafka source, and by bytes.

A limit is divided among partitions in proportion to what each has, so that all end at about the
same time; every partition that has anything advances by at least one offset. Bytes are those of the
segments, known before anything is read: within a segment they are taken to be spread evenly over
its offsets.

Source: Spark, KafkaMicroBatchStream.rateLimit and delayBatch.
"""

from collections.abc import Mapping
from math import ceil, floor

from pipeline.plan.partition_log import PartitionLog
from pipeline.source.bucket_view import Views
from storage.types.topic_partition import TopicPartition

UNKNOWN_RECORD_BYTES = 1024
"""Assumed size of an offset where no segment of any partition gives one."""

Offsets = Mapping[TopicPartition, int]


def limited_by_offsets(limit: int, start: Offsets, end: Offsets) -> dict[TopicPartition, int]:
    """Ends such that about `limit` offsets lie between; partitions not in `start` are left out."""
    sizes = {
        partition: end[partition] - start[partition]
        for partition in end
        if partition in start and end[partition] > start[partition]
    }
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    return {
        partition: min(offset, start[partition] + _share(limit * sizes[partition] / total))
        if partition in sizes
        else offset
        for partition, offset in end.items()
    }


def limited_by_bytes(
    limit: int, views: Views, start: Offsets, end: Offsets
) -> dict[TopicPartition, int]:
    """Ends such that about `limit` bytes lie between; partitions not in `start` are left out."""
    mean = _mean_bytes(views)
    sizes = {
        partition: bytes_between(views[partition].log, start[partition], end[partition], mean)
        for partition in end
        if partition in start and end[partition] > start[partition]
    }
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    return {
        partition: _offset_after(
            views[partition].log, start[partition], offset, limit * sizes[partition] / total, mean
        )
        if partition in sizes
        else offset
        for partition, offset in end.items()
    }


def bytes_between(log: PartitionLog | None, start: int, end: int, mean: float) -> float:
    """Bytes of offsets, about; those that no segment has count `mean` each."""
    total = 0.0
    known = 0
    for laid in log.segments_of(start, end) if log is not None and start < end else ():
        count = min(end, laid.end_offset) - max(start, laid.start_offset)
        metadata = laid.metadata
        whole = metadata.end_offset + 1 - metadata.start_offset
        total += metadata.segment_size_bytes * count / whole
        known += count
    return total + mean * (end - start - known)


def is_delayed(
    min_offsets: int | None, start: Offsets, end: Offsets, waited_ms: float, max_delay_ms: int
) -> bool:
    """Whether a micro-batch waits for more: too few offsets, and not yet for too long."""
    if min_offsets is None or waited_ms >= max_delay_ms:
        return False
    return sum(offset - start.get(partition, 0) for partition, offset in end.items()) < min_offsets


def _share(part: float) -> int:
    """Whole offsets; a small partition does not starve."""
    return ceil(part) if part < 1 else floor(part)


def _mean_bytes(views: Views) -> float:
    """Bytes of an offset, over all segments that are known."""
    size = offsets = 0
    for view in views.values():
        for laid in view.log.segments if view.log is not None else ():
            size += laid.metadata.segment_size_bytes
            offsets += laid.metadata.end_offset + 1 - laid.metadata.start_offset
    return size / offsets if offsets else UNKNOWN_RECORD_BYTES


def _offset_after(log: PartitionLog | None, start: int, end: int, limit: float, mean: float) -> int:
    """The greatest offset up to which there are at most `limit` bytes, at least one further on."""
    low, high = start + 1, end
    while low < high:
        middle = (low + high + 1) // 2
        if bytes_between(log, start, middle, mean) <= limit:
            low = middle
        else:
            high = middle - 1
    return low
