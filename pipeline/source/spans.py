"""Spans of offsets of each partition, from the limits that options give.

Offsets that are named must be named for every partition, as in Spark's Kafka source: one that is
forgotten would be read from a default.
"""

from collections.abc import Awaitable, Callable, Mapping

from pipeline.plan.errors import PlanError
from pipeline.source.bucket_view import Views
from pipeline.source.data_loss import PlanLosses
from pipeline.source.options.offset_limits import (
    Earliest,
    GlobalTime,
    Latest,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimes,
)
from pipeline.source.options.offsets import EARLIEST, LATEST, SPECIAL_OFFSETS
from pipeline.source.partition_view import OffsetSpan, PartitionView
from storage.types.topic_partition import TopicPartition

OffsetForTime = Callable[[PartitionView, int], Awaitable[int | None]]
"""The first offset whose record is of a time (ms) or later; None: no record is."""


async def starting_offsets(
    views: Views, limit: OffsetLimit, offset_for_time: OffsetForTime, *, latest_if_no_match: bool
) -> dict[TopicPartition, int]:
    """Starting offsets of each partition.

    Raises:
        PlanError: Partitions are missing in the option, or no record is of a time or later.
    """
    offsets = await _resolved(views, limit, offset_for_time, "starting")
    result: dict[TopicPartition, int] = {}
    for partition, offset in offsets.items():
        if offset is None and not latest_if_no_match:
            raise PlanError(
                f"no record of {partition} has the timestamp {_time_of(limit, partition)} or a "
                "later one; startingOffsetsByTimestampStrategy=latest begins at the end then"
            )
        result[partition] = views[partition].end if offset is None else offset
    return result


async def ending_offsets(
    views: Views, limit: OffsetLimit, offset_for_time: OffsetForTime
) -> dict[TopicPartition, int]:
    """End offsets of a batch query, exclusive; the latest where no record is late enough.

    Raises:
        PlanError: Partitions are missing in the option.
    """
    offsets = await _resolved(views, limit, offset_for_time, "ending")
    ends = {
        partition: views[partition].end if offset is None else offset
        for partition, offset in offsets.items()
    }
    return within_view(views, limit, ends)


def within_view(
    views: Views, limit: OffsetLimit, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Offsets of a batch query, those found by a time no further than the view.

    A broker is asked for times after the view: what it finds may be a record that came in between,
    which is none of this query's. Offsets that are named stay: beyond the end they are a loss.
    """
    if not isinstance(limit, GlobalTime | SpecificTimes):
        return dict(offsets)
    return {partition: min(offset, views[partition].end) for partition, offset in offsets.items()}


def spans_between(
    views: Views,
    starting: Mapping[TopicPartition, int],
    ending: Mapping[TopicPartition, int],
    losses: PlanLosses,
) -> dict[TopicPartition, OffsetSpan]:
    """Spans of offsets that a batch query reads.

    Raises:
        PlanError: A partition begins after its end.
        LostOffsetsError: It begins after the log's end, and losses are errors.
    """
    spans: dict[TopicPartition, OffsetSpan] = {}
    for partition, view in views.items():
        start, end = starting[partition], ending[partition]
        if start > view.end:
            losses.lost(view.name, view.end, start, f"the log ends at offset {view.end}")
            start = min(view.end, end)
        if start > end:
            raise PlanError(
                f"the start offset {start} of {partition} is after its end offset {end}"
            )
        spans[partition] = OffsetSpan(start, end)
    return spans


async def _resolved(
    views: Views, limit: OffsetLimit, offset_for_time: OffsetForTime, which: str
) -> dict[TopicPartition, int | None]:
    """Offsets; None where no record is of the time or later."""
    if isinstance(limit, Earliest):
        return {partition: view.start for partition, view in views.items()}
    if isinstance(limit, Latest):
        return {partition: view.end for partition, view in views.items()}
    if isinstance(limit, SpecificOffsets):
        _must_name_all(limit.offsets, views, f"{which}Offsets", SPECIAL_OFFSETS)
        return {
            partition: _offset(limit.offsets[partition], view) for partition, view in views.items()
        }
    if isinstance(limit, SpecificTimes):
        _must_name_all(limit.times_ms, views, f"{which}OffsetsByTimestamp", "")
    return {
        partition: await offset_for_time(view, _time_of(limit, partition))
        for partition, view in views.items()
    }


def _offset(offset: int, view: PartitionView) -> int:
    return {EARLIEST: view.start, LATEST: view.end}.get(offset, offset)


def _time_of(limit: OffsetLimit, partition: TopicPartition) -> int:
    if isinstance(limit, SpecificTimes):
        return limit.times_ms[partition]
    assert isinstance(limit, GlobalTime)
    return limit.time_ms


def _must_name_all(
    named: Mapping[TopicPartition, int], views: Views, option: str, special: str
) -> None:
    missing = ", ".join(str(partition) for partition in views if partition not in named)
    strange = ", ".join(str(partition) for partition in named if partition not in views)
    problems = [f"{missing} is missing"] if missing else []
    problems += [f"{strange} is not there"] if strange else []
    if problems:
        raise PlanError(f"{option} must name every partition{special}; {'; '.join(problems)}")
