"""Pieces of ranges of offsets: from the bucket what it has, from the broker the rest.

    span         [start ............................... end)
    lost         start .. log start                             nowhere: `failOnDataLoss`
    bucket               [piece][piece] gap [piece]             below the handover; committed rows
                                                                are those known to be
    broker                              [gap]      [piece .. )  if there is one; else a gap is lost
    lost                                                .. end  above the log's end

What is lost is found here, on the driver, before any task starts.
"""

from collections.abc import Iterator, Mapping, Sequence

from pipeline.plan.bucket import Bucket
from pipeline.plan.handover import absent_ranges
from pipeline.plan.in_parallel import PARTITIONS_AT_A_TIME, in_parallel
from pipeline.plan.known_outcomes import with_known_outcomes
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import BrokerPiece, Piece
from pipeline.plan.splits import OffsetRange, SplitLimits, plan_pieces
from pipeline.source.bucket_view import Views
from pipeline.source.data_loss import PlanLosses
from pipeline.source.options.options import SourceOptions
from pipeline.source.partition_view import OffsetSpan, PartitionView
from storage.types.topic_partition import TopicPartition


async def plan_spans(
    bucket: Bucket | None,
    options: SourceOptions,
    views: Views,
    spans: Mapping[TopicPartition, OffsetSpan],
    losses: PlanLosses,
) -> list[Piece]:
    """Pieces of all spans, by partition and offset.

    Args:
        bucket: Open, unless no view has a log.
        options: How to split, and which rows.
        views: What there is, at least of the spans' partitions.
        spans: What is wanted.
        losses: Collects what is nowhere.

    Raises:
        LostOffsetsError, ReadError: As `losses` has it.
        PlanError, RemoteStorageError: As `plan_pieces`.
    """
    kept: dict[TopicPartition, OffsetSpan] = {}
    for partition, span in sorted(spans.items()):
        view = views[partition]
        if view.problem and span.start < span.end:
            losses.unreadable(view.problem)
        kept[partition] = _kept(view, span, losses)

    async def wanted(partition: TopicPartition) -> OffsetRange | None:
        view, (start, end) = views[partition], kept[partition]
        end = min(end, view.handover)
        if bucket is None or view.log is None or start >= end:
            return None
        if not options.read_committed:
            return OffsetRange(view.log, start, end)
        known = await with_known_outcomes(bucket, view.log, start, end)
        return OffsetRange(known.log, start, end, known.aborted)

    found = await in_parallel(kept, wanted, PARTITIONS_AT_A_TIME)
    asked: list[BrokerPiece] = []
    for (partition, span), one in zip(kept.items(), found, strict=True):
        view = views[partition]
        asked += _of_broker(view, view.log if one is None else one.log, span, losses)
    ranges = [one for one in found if one is not None]
    limits = SplitLimits(
        options.max_partition_bytes, options.min_partitions, options.max_records_per_partition
    )
    pieces: list[Piece] = []
    if bucket is not None and ranges:
        pieces += await plan_pieces(bucket, ranges, limits, read_committed=options.read_committed)
    parts = max((options.min_partitions or 0) - len(pieces), 0)
    pieces += split_by_offsets(asked, parts, options.max_records_per_partition)
    return sorted(pieces, key=lambda piece: (*piece.partition, piece.start_offset))


def _kept(view: PartitionView, span: OffsetSpan, losses: PlanLosses) -> OffsetSpan:
    """The span without what is before the log's start and beyond its end."""
    start, end = span
    losses.lost(view.name, start, min(end, view.start), f"the log begins at offset {view.start}")
    losses.lost(view.name, max(start, view.end), end, f"the log ends at offset {view.end}")
    kept = max(start, view.start)
    return OffsetSpan(kept, max(min(end, view.end), kept))


def _of_broker(
    view: PartitionView, log: PartitionLog | None, span: OffsetSpan, losses: PlanLosses
) -> Iterator[BrokerPiece]:
    """What the bucket does not have of a span: the broker is asked, or it is lost.

    `log`: the view's, perhaps without rows of which nothing says whether they were committed.
    """
    ranges = absent_ranges(log, view.handover, span.start, span.end)
    absent = [OffsetSpan(*found) for found in ranges]
    if log is not None:
        _report_damage(view, log, absent, losses)
    reason = "no segment of the bucket has them"
    if log is not view.log:
        reason += ", or says how their transactions ended"
    for start, end in absent:
        if view.has_broker:
            yield BrokerPiece(view.name, view.leader_epoch, start, end)
        else:
            losses.lost(view.name, start, end, reason)


def _report_damage(
    view: PartitionView, log: PartitionLog, absent: Sequence[OffsetSpan], losses: PlanLosses
) -> None:
    """Unreadable objects that may have held wanted offsets which are nowhere else."""
    if view.has_broker:
        return
    for one in log.damaged:
        beyond = one.start_offset < 0 or one.start_offset >= log.end_offset
        in_gap = any(start <= one.start_offset < end for start, end in absent)
        if beyond or in_gap:
            losses.unreadable(f"{view}: {one.key} at byte {one.position}: {one.problem}")


def split_by_offsets(
    pieces: Sequence[BrokerPiece], min_pieces: int, max_records: int | None
) -> Sequence[BrokerPiece]:
    """Cut by counts of offsets, as Spark's Kafka source does (KafkaOffsetRangeCalculator)."""
    total = sum(piece.end_offset - piece.start_offset for piece in pieces)
    result: list[BrokerPiece] = []
    for piece in pieces:
        size = piece.end_offset - piece.start_offset
        parts = max(1, round(size / total * min_pieces)) if len(pieces) < min_pieces else 1
        if max_records is not None:
            parts = max(parts, -(-size // max_records))
        parts = min(parts, size)
        cuts = [piece.start_offset + size * number // parts for number in range(parts + 1)]
        result += [
            piece._replace(start_offset=cuts[number], end_offset=cuts[number + 1])
            for number in range(parts)
        ]
    return result
