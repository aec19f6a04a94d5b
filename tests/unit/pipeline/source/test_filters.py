"""Which of Spark's filters choose what is read."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql import datasource as spark

from pipeline.source.filters import choose
from pipeline.source.partition_view import OffsetSpan
from storage.types.topic_partition import TopicPartition
from tests.unit.pipeline.source.views import ONE, ZERO

SPAN = OffsetSpan(10, 100)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def left(*filters: spark.Filter, of: TopicPartition = ZERO) -> tuple[int, int]:
    """What filters leave of [10, 100) of a partition; all must have been met whole."""
    chosen, rest = choose(filters)
    assert rest == []
    start, end = chosen.span(of, SPAN)
    return start, end


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (spark.EqualTo(("offset",), 40), (40, 41)),
        (spark.EqualNullSafe(("offset",), 40), (40, 41)),
        (spark.GreaterThan(("offset",), 40), (41, 100)),
        (spark.GreaterThanOrEqual(("offset",), 40), (40, 100)),
        (spark.LessThan(("offset",), 40), (10, 40)),
        (spark.LessThanOrEqual(("offset",), 40), (10, 41)),
        (spark.IsNotNull(("offset",)), (10, 100)),
        (spark.LessThan(("offset",), 5), (10, 10)),
        (spark.GreaterThan(("offset",), 200), (201, 201)),
    ],
)
def test_offsets_are_chosen_exactly(condition: spark.Filter, expected: tuple[int, int]) -> None:
    assert left(condition) == expected


def test_filters_are_all_true() -> None:
    span = left(
        spark.GreaterThan(("offset",), 20),
        spark.GreaterThan(("offset",), 30),
        spark.LessThan(("offset",), 40),
        spark.In(("partition",), (0, 1)),
        spark.EqualTo(("partition",), 0),
    )
    assert span == (31, 40)


@pytest.mark.parametrize(
    ("condition", "zero", "one"),
    [
        (spark.EqualTo(("partition",), 1), 0, 90),
        (spark.In(("partition",), (0, None)), 90, 0),
        (spark.EqualTo(("topic",), "t"), 90, 90),
        (spark.In(("topic",), ("u", "v")), 0, 0),
    ],
)
def test_partitions_are_chosen_exactly(condition: spark.Filter, zero: int, one: int) -> None:
    for partition, count in ((ZERO, zero), (ONE, one)):
        start, end = left(condition, of=partition)
        assert end - start == count


@pytest.mark.parametrize(
    "condition",
    [
        spark.EqualTo(("key",), b"x"),
        spark.EqualTo(("offset",), "40"),
        spark.EqualTo(("offset",), None),
        spark.EqualTo(("partition",), True),
        spark.Not(spark.EqualTo(("offset",), 40)),
        spark.StringStartsWith(("topic",), "t"),
        spark.In(("offset",), (1, 2)),
        spark.IsNotNull(("key",)),
        spark.EqualTo(("offset", "nested"), 1),
        spark.LessThan(("timestamp",), NOON),
    ],
)
def test_spark_looks_at_everything_else(condition: spark.Filter) -> None:
    chosen, rest = choose([condition])
    assert rest == [condition]
    assert rest[0] is condition
    assert chosen.span(ZERO, SPAN) == SPAN
    assert chosen.time_ms is None


@pytest.mark.parametrize("kind", [spark.EqualTo, spark.GreaterThan, spark.GreaterThanOrEqual])
def test_a_lower_bound_of_time_is_taken_and_looked_at_again(kind: Any) -> None:
    """Records behind the first one of that time may be older."""
    condition = kind(("timestamp",), NOON + timedelta(microseconds=1500))
    chosen, rest = choose([condition])
    assert rest == [condition]
    assert chosen.time_ms == int(NOON.timestamp() * 1000) + 1


def test_the_latest_bound_counts_and_zones_are_heeded() -> None:
    zone = timezone(timedelta(hours=2))
    chosen, _ = choose(
        [
            spark.GreaterThan(("timestamp",), NOON),
            spark.GreaterThan(("timestamp",), datetime(2026, 1, 1, 13, tzinfo=zone)),
        ]
    )
    assert chosen.time_ms == int(NOON.timestamp() * 1000)


@pytest.mark.parametrize(
    "value", [NOON.replace(tzinfo=None), "2026-01-01", datetime(1969, 1, 1, tzinfo=UTC)]
)
def test_times_nobody_can_place_choose_nothing(value: Any) -> None:
    """Without a zone; before 1970 are those of records that have none."""
    chosen, rest = choose([spark.GreaterThan(("timestamp",), value)])
    assert chosen.time_ms is None
    assert len(rest) == 1
