"""What a table is partitioned by, as text and as Iceberg's numbers."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.files.partition_values import iceberg_value, split
from pipeline.lake.settings.config import parse_partition_field

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
moments = st.lists(st.integers(-(10**15), 4 * 10**15), min_size=1, max_size=20)


def batch_of(micros: list[int]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "topic": ["t"] * len(micros),
            "partition": pa.array([i % 2 for i in range(len(micros))], pa.int32()),
            "timestamp": pa.array(micros, pa.timestamp("us", "UTC")),
        }
    )


@given(moments, st.sampled_from(["year", "month", "day", "hour"]))
def test_a_batch_is_split_by_the_time_in_utc(micros: list[int], unit: str) -> None:
    """Before 1970 as well: Kafka's "no timestamp" is a millisecond before it."""
    field = parse_partition_field(f"{unit}(timestamp)")
    form = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}[unit]
    found = {}
    for values, part in split(batch_of(micros), [field]):
        ((name, text),) = values
        assert name == f"timestamp_{unit}"
        found[text] = [m.as_py() for m in part.column("timestamp")]
    expected: dict[str, list[datetime]] = {}
    for micro in micros:
        moment = EPOCH + timedelta(microseconds=micro)
        expected.setdefault(moment.strftime(form), []).append(moment)
    assert found == expected


@pytest.mark.parametrize(
    ("unit", "text", "number"),
    [
        ("year", "1970", 0),
        ("year", "1969", -1),
        ("month", "1971-02", 13),
        ("day", "1969-12-31", -1),
        ("day", "2026-11-22", 20_779),
        ("hour", "1970-01-02-03", 27),
    ],
)
def test_iceberg_counts_from_1970(unit: str, text: str, number: int) -> None:
    assert iceberg_value(parse_partition_field(f"{unit}(timestamp)"), text) == number


def test_plain_columns_are_their_own_values() -> None:
    fields = [parse_partition_field("partition"), parse_partition_field("topic")]
    found = [values for values, _ in split(batch_of([0, 1, 2]), fields)]
    assert found == [
        (("partition", "0"), ("topic", "t")),
        (("partition", "1"), ("topic", "t")),
    ]
    assert iceberg_value(fields[0], "1") == 1
    assert iceberg_value(fields[1], "t") == "t"


def test_without_fields_a_batch_stays_whole() -> None:
    batch = batch_of([0, 1])
    assert list(split(batch, [])) == [((), batch)]
