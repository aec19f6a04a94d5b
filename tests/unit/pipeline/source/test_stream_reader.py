"""A streaming query: offsets, limits, and what happened between two batches."""

from typing import Any
from uuid import UUID

import pytest
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

from pipeline.plan.errors import TopicError
from pipeline.read.read_errors import LostOffsetsError, ReadError
from pipeline.source.options.options import Query, parse_options
from pipeline.source.stream_reader import END_ATTEMPTS, END_PAUSE_MS, StreamReader
from storage.types.uuid_text import format_uuid
from tests.fakes.clock import ManualClock
from tests.unit.pipeline.plan.bucket_world import BucketWorld, Replica
from tests.unit.pipeline.source.test_broker_view import World as BrokerWorld
from tests.unit.pipeline.source.test_planner import planner
from tests.unit.storage.log.log_model import NOW_MS, TOPIC_ID


class World:
    """A bucket that grows, and readers of it."""

    def __init__(self) -> None:
        self.bucket = BucketWorld()
        self.leader: Replica = self.bucket.replica("a")
        self.clock = ManualClock(NOW_MS)

    async def grow(self, records: int, partitions: int = 1) -> None:
        self.leader.write(records)
        self.leader.roll()
        await self.bucket.copy(self.leader, partitions=partitions)

    def reader(self, **given: str) -> StreamReader:
        options = parse_options({"path": "/tier", "subscribe": "t", **given}, Query.STREAM)
        return StreamReader(
            options, lambda _: planner(self.bucket, **_without_start(given)), lambda: self.clock
        )


def _without_start(given: dict[str, str]) -> dict[str, str]:
    """The planner's own options are those of a batch, which may not begin at the latest offset."""
    return {name: text for name, text in given.items() if text != "latest"}


def kafka_offsets(*ends: int) -> dict[str, Any]:
    """As the Kafka source writes them."""
    return {"t": {str(number): end for number, end in enumerate(ends)}}


def offsets(*ends: int, topic_id: UUID = TOPIC_ID) -> dict[str, Any]:
    return {**kafka_offsets(*ends), f"t@{format_uuid(topic_id)}": {}}


def spans(
    reader: StreamReader, start: dict[str, Any], end: dict[str, Any]
) -> list[tuple[int, int]]:
    return [
        (each.value.start_offset, each.value.end_offset) for each in reader.partitions(start, end)
    ]


@pytest.fixture
async def world() -> World:
    made = World()
    await made.grow(10)
    return made


async def test_a_query_begins_where_its_options_say(world: World) -> None:
    assert world.reader(startingOffsets="earliest").initialOffset() == offsets(0)
    assert world.reader(startingOffsets='{"t":{"0":4}}').initialOffset() == offsets(4)


async def test_a_batch_has_what_came_since_the_last(world: World) -> None:
    reader = world.reader()
    end = reader.latestOffset(offsets(4), ReadAllAvailable())
    assert end == offsets(10)
    assert spans(reader, offsets(4), end) == [(4, 10)]
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert spans(reader, end, end) == []
    await world.grow(5)
    assert reader.latestOffset(end, ReadAllAvailable()) == offsets(15)
    assert reader.reportLatestOffset() == kafka_offsets(15)


async def test_a_batch_that_was_planned_before_a_restart_is_planned_as_it_was(
    world: World,
) -> None:
    """From the checkpoint alone, though there is more by now; it may be the Kafka source's."""
    await world.grow(5)
    assert spans(world.reader(), offsets(2), offsets(7)) == [(2, 7)]


async def test_a_checkpoint_of_the_kafka_source_is_continued(world: World) -> None:
    """It has no topic's id."""
    end = world.reader().latestOffset(kafka_offsets(4), ReadAllAvailable())
    assert end == offsets(10)
    assert spans(world.reader(), kafka_offsets(4), end) == [(4, 10)]
    assert spans(world.reader(), kafka_offsets(4), kafka_offsets(7)) == [(4, 7)]


@pytest.mark.parametrize("lenient", ["true", "false"])
async def test_a_topic_recreated_while_no_query_ran_is_an_error(world: World, lenient: str) -> None:
    """It may end behind the offset that was read, and has other records below."""
    of_another = offsets(4, topic_id=UUID(int=9))
    reader = world.reader(failOnDataLoss=lenient)
    with pytest.raises(TopicError, match="topic t was deleted and recreated since the query read"):
        reader.latestOffset(of_another, ReadAllAvailable())
    # Also a batch that was planned before, or whose plan came after.
    for start, end in (
        (of_another, offsets(10)),
        (kafka_offsets(4), offsets(10, topic_id=UUID(int=9))),
    ):
        with pytest.raises(TopicError, match="deleted and recreated"):
            world.reader().partitions(start, end)


async def test_nothing_rests_on_commit(world: World) -> None:
    reader = world.reader()
    reader.commit(offsets(10))
    assert reader.latestOffset(offsets(0), ReadAllAvailable()) == offsets(10)
    reader.stop()
    reader.stop()


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "4"}, ReadMaxRows(4)),
        ({"maxBytesPerTrigger": "4k"}, ReadMaxBytes(4096)),
        ({"minOffsetsPerTrigger": "4"}, ReadMinRows(4)),
    ],
)
async def test_limits_are_told_to_spark(world: World, given: dict[str, str], limit: Any) -> None:
    assert world.reader(**given).getDefaultReadLimit() == limit


async def test_all_limits_are_heeded_together(world: World) -> None:
    reader = world.reader(maxOffsetsPerTrigger="6", maxBytesPerTrigger="1")
    assert reader.latestOffset(offsets(2), ReadMaxRows(6)) == offsets(3)
    only_offsets = world.reader(maxOffsetsPerTrigger="6")
    assert only_offsets.latestOffset(offsets(2), ReadMaxRows(6)) == offsets(8)


async def test_spark_may_ask_for_everything_in_spite_of_limits(world: World) -> None:
    """Trigger.Once does."""
    reader = world.reader(maxOffsetsPerTrigger="6", minOffsetsPerTrigger="5")
    assert reader.latestOffset(offsets(0), ReadAllAvailable()) == offsets(10)


async def test_a_batch_waits_for_enough_offsets_or_long_enough(world: World) -> None:
    """The first one does not wait, as in Spark's Kafka source."""
    reader = world.reader(minOffsetsPerTrigger="4", maxTriggerDelay="1m")
    limit = ReadMinRows(4)
    assert reader.latestOffset(offsets(9), limit) == offsets(10)
    await world.grow(3)
    world.clock.advance(59_999)
    assert reader.latestOffset(offsets(10), limit) == offsets(10)
    world.clock.advance(1)
    assert reader.latestOffset(offsets(10), limit) == offsets(13)
    await world.grow(4)
    assert reader.latestOffset(offsets(13), limit) == offsets(17)


async def test_available_now_goes_no_further_than_what_was_there(world: World) -> None:
    reader = world.reader(maxOffsetsPerTrigger="6", minOffsetsPerTrigger="5")
    reader.prepareForTriggerAvailableNow()
    await world.grow(5)
    assert reader.latestOffset(offsets(0), ReadMaxRows(6)) == offsets(6)
    assert reader.latestOffset(offsets(6), ReadMaxRows(6)) == offsets(10)
    assert reader.latestOffset(offsets(10), ReadMaxRows(6)) == offsets(10)


async def test_new_partitions_begin_at_the_earliest_offset(world: World) -> None:
    await world.grow(2, partitions=2)
    reader = world.reader()
    end = reader.latestOffset(offsets(12), ReadAllAvailable())
    assert end == offsets(12, 0)
    assert spans(reader, {}, offsets(12, 0)) == [(0, 10), (10, 12)]


async def test_a_log_that_ends_below_what_was_read_is_a_loss(world: World) -> None:
    """A node was restored: its offsets are given out again, to other records."""
    reader = world.reader()
    with pytest.raises(LostOffsetsError, match=r"offsets 10 to 29 .* read up to offset 30"):
        reader.latestOffset(offsets(30), ReadAllAvailable())
    with pytest.raises(LostOffsetsError, match=r"offsets 10 to 29 .* ends at offset 10"):
        reader.partitions(offsets(5), offsets(30))
    lenient = world.reader(failOnDataLoss="false")
    end = lenient.latestOffset(offsets(30), ReadAllAvailable())
    assert end == offsets(10)
    assert spans(lenient, offsets(30), end) == []


async def beside_paused(looks: int, **given: str) -> tuple[StreamReader, list[float]]:
    """A reader of a log up to 10, of whose leader so many looks give an end of 4; its pauses."""
    world = BrokerWorld()
    await world.copy(10)
    world.broker.end = 4
    pauses: list[float] = []

    def sleep(duration_ms: float) -> None:
        pauses.append(duration_ms)
        if len(pauses) == looks:
            world.broker.end = 10

    options = parse_options({"path": "/tier", "subscribe": "t", **given}, Query.STREAM)
    return StreamReader(
        options, lambda _: world.planner(**given), lambda: world.clock, sleep
    ), pauses


@pytest.mark.parametrize("lenient", ["true", "false"])
async def test_the_end_that_a_paused_leader_knew_is_not_believed(lenient: str) -> None:
    """Not of a batch that was planned before a restart, either; unless it stays so."""
    reader, pauses = await beside_paused(END_ATTEMPTS, failOnDataLoss=lenient)
    assert reader.latestOffset(offsets(7), ReadAllAvailable()) == offsets(10)
    assert pauses == [END_PAUSE_MS] * END_ATTEMPTS
    reader, _ = await beside_paused(END_ATTEMPTS, failOnDataLoss=lenient)
    assert spans(reader, offsets(2), offsets(7)) == [(2, 7)]
    reader, _ = await beside_paused(END_ATTEMPTS + 1)
    with pytest.raises(LostOffsetsError, match="the log ends at 4"):
        reader.latestOffset(offsets(7), ReadAllAvailable())


async def test_a_partition_that_is_gone_is_a_loss(world: World) -> None:
    reader = world.reader()
    with pytest.raises(ReadError, match="t-1: deleted since the query read them"):
        reader.latestOffset(offsets(5, 7), ReadAllAvailable())
    with pytest.raises(ReadError, match="t-1: deleted"):
        reader.partitions(offsets(5, 7), offsets(10, 9))
    lenient = world.reader(failOnDataLoss="false")
    assert lenient.latestOffset(offsets(5, 7), ReadAllAvailable()) == offsets(10)
    assert spans(lenient, offsets(5, 7), offsets(10)) == [(5, 10)]
