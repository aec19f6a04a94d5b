"""A batch query: planned on the driver, read on executors."""

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, InputPartition

from pipeline.source.batch_reader import BatchReader, FilteringBatchReader
from pipeline.source.options.options import Query, parse_options
from tests.unit.pipeline.source.test_planner import planner, world_of
from tests.unit.storage.log.log_model import NOW_MS


async def spans(reader: BatchReader) -> list[tuple[int, int]]:
    return [
        (partition.value.start_offset, partition.value.end_offset)
        for partition in reader.partitions()
    ]


async def reader_of(*sizes: int, kind: Any = BatchReader, **given: str) -> Any:
    world = await world_of(*sizes)
    options = parse_options({"path": "/tier", "subscribe": "t", **given}, Query.BATCH)
    return kind(options, lambda _: planner(world, **given))


async def test_a_task_reads_a_piece_which_can_be_pickled() -> None:
    reader = await reader_of(5, 7)
    partitions = reader.partitions()
    assert isinstance(partitions, list)  # Spark refuses any other sequence
    again = pickle.loads(pickle.dumps(partitions))
    assert [one.value for one in again] == [one.value for one in partitions]
    assert await spans(reader) == [(0, 5), (5, 12)]


async def test_what_has_no_rows_has_no_pieces() -> None:
    reader = await reader_of(5, endingOffsets='{"t":{"0":0}}')
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


async def test_filters_choose_offsets_before_anything_is_read() -> None:
    reader = await reader_of(5, 7, kind=FilteringBatchReader, pushFilters="true")
    rest = list(reader.pushFilters([GreaterThan(("offset",), 7), EqualTo(("key",), b"x")]))
    assert rest == [EqualTo(("key",), b"x")]
    assert await spans(reader) == [(8, 12)]


async def test_a_lower_bound_of_time_chooses_the_first_record_of_it() -> None:
    reader = await reader_of(5, 7, kind=FilteringBatchReader, pushFilters="true")
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=NOW_MS + 6)
    condition = GreaterThan(("timestamp",), time)
    assert list(reader.pushFilters([condition])) == [condition]
    assert await spans(reader) == [(6, 12)]


async def test_options_without_effect_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    reader = await reader_of(5, **{"kafka.group.id": "g"})
    reader.partitions()
    assert caplog.messages == ["options without effect: kafka.group.id"]
