"""Pushed-down filters of Spark: on topic, partition, offset, and lower bounds of timestamps.

Those on topic, partition and offset are met exactly: Spark need not evaluate them. A lower bound of
the timestamp lets a read begin at the first record of that time or later; records behind it may
still be older, so Spark filters them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from pipeline.source.partition_view import OffsetSpan
from storage.types.topic_partition import TopicPartition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp"})
_LONG_MAX = (1 << 63) - 1


@dataclass(slots=True)
class Chosen:
    """The part of a read that filters leave.

    Attributes:
        topics, partitions: None: all.
        start, end: Offsets, exclusive end.
        time_ms: Rows older than that are not wanted; None: all are.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start: int = 0
    end: int = _LONG_MAX
    time_ms: int | None = None

    def span(self, partition: TopicPartition, span: OffsetSpan) -> OffsetSpan:
        """The part of a partition's span that the filters leave; may be empty."""
        if (self.topics is not None and partition.topic not in self.topics) or (
            self.partitions is not None and partition.partition not in self.partitions
        ):
            return OffsetSpan(span.start, span.start)
        start = max(span.start, self.start)
        return OffsetSpan(start, max(min(span.end, self.end), start))


def choose(filters: Iterable[Filter]) -> tuple[Chosen, list[Filter]]:
    """The filters that are used, and those that Spark must evaluate itself."""
    chosen = Chosen()
    return chosen, [each for each in filters if not _take(chosen, each)]


def _take(chosen: Chosen, condition: Filter) -> bool:
    """Use a filter; False where Spark must evaluate it (too)."""
    name = ".".join(getattr(condition, "attribute", ()))
    if isinstance(condition, IsNotNull):
        return name in _NEVER_NULL
    value = getattr(condition, "value", None)
    if name == "topic":
        return _take_topic(chosen, condition, value)
    if name == "partition":
        return _take_partition(chosen, condition, value)
    if name == "offset":
        return _take_offset(chosen, condition, value)
    if name == "timestamp":
        _take_timestamp(chosen, condition, value)
    return False


def _values(condition: Filter, value: Any, kind: type) -> frozenset[Any] | None:
    """The values that are equal to what is asked for; None: it is no such question."""
    if isinstance(condition, EqualTo | EqualNullSafe):
        values: tuple[Any, ...] = (value,)
    elif isinstance(condition, In):
        values = tuple(each for each in value if each is not None)
    else:
        return None
    return frozenset(values) if all(type(each) is kind for each in values) else None


def _take_topic(chosen: Chosen, condition: Filter, value: Any) -> bool:
    values = _values(condition, value, str)
    if values is None:
        return False
    chosen.topics = values if chosen.topics is None else chosen.topics & values
    return True


def _take_partition(chosen: Chosen, condition: Filter, value: Any) -> bool:
    values = _values(condition, value, int)
    if values is None:
        return False
    chosen.partitions = values if chosen.partitions is None else chosen.partitions & values
    return True


def _take_offset(chosen: Chosen, condition: Filter, value: Any) -> bool:
    if type(value) is not int:
        return False
    if isinstance(condition, EqualTo | EqualNullSafe):
        start, end = value, value + 1
    elif isinstance(condition, GreaterThan):
        start, end = value + 1, _LONG_MAX
    elif isinstance(condition, GreaterThanOrEqual):
        start, end = value, _LONG_MAX
    elif isinstance(condition, LessThan):
        start, end = 0, value
    elif isinstance(condition, LessThanOrEqual):
        start, end = 0, value + 1
    else:
        return False
    chosen.start = max(chosen.start, start)
    chosen.end = min(chosen.end, end)
    return True


def _take_timestamp(chosen: Chosen, condition: Filter, value: Any) -> None:
    bounds = EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual
    if not isinstance(condition, bounds) or not isinstance(value, datetime):
        return
    if value.tzinfo is None:
        return  # of no zone: it is unknown which moment is meant
    time_ms = (value - _EPOCH) // _MILLISECOND
    if time_ms >= 0:
        chosen.time_ms = max(time_ms, chosen.time_ms or 0)
