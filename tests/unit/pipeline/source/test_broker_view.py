"""Bucket and broker seen together, over a cluster in memory and a bucket with real segments."""

from uuid import UUID

import pytest

from pipeline.plan.bucket import Bucket, BucketOptions
from pipeline.plan.errors import TopicError
from pipeline.plan.piece import BrokerPiece
from pipeline.read.broker.client import BrokerClient
from pipeline.read.broker.errors import BrokerUnreachableError
from pipeline.read.broker.options import BrokerOptions
from pipeline.read.read_errors import ReadError
from pipeline.source.broker_view import remade_topics
from pipeline.source.options.options import Query, parse_options
from pipeline.source.planner import Planner, SourcePlan
from protocol.api_keys import ApiKey
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.fakes.kafka.memory_cluster import KafkaCluster
from tests.unit.pipeline.plan.bucket_world import BucketWorld, Replica
from tests.unit.storage.log.log_model import NOW_MS, TOPIC_ID

ZERO = TopicPartition("t", 0)


class World:
    """A topic of one partition at a broker, and what a bucket has of it."""

    def __init__(self) -> None:
        self.bucket = BucketWorld()
        self.leader: Replica = self.bucket.replica("a")
        self.cluster = KafkaCluster()
        self.cluster.add_topic("t").topic_id = TOPIC_ID
        self.broker = self.cluster.partition("t")
        self.broker.epochs = [(0, 0)]
        self.clock = ManualClock(NOW_MS)

    async def copy(self, *sizes: int, epoch: int = 0) -> None:
        for size in sizes:
            self.leader.write(size, epoch=epoch)
            self.leader.roll()
        await self.bucket.copy(self.leader)

    def planner(self, **given: str) -> Planner:
        merged = {
            "path": "/tier",
            "subscribe": "t",
            "kafka.bootstrap.servers": self.cluster.options.bootstrap_servers,
            **given,
        }
        options = parse_options({name: text for name, text in merged.items() if text}, Query.BATCH)

        async def opener(_: BucketOptions) -> Bucket:
            self.bucket.store.closed = False
            return self.bucket.open()

        def connect(broker: BrokerOptions) -> BrokerClient:
            return BrokerClient(
                broker, clock=self.clock, sleep_ms=self.clock.advance, dial=self.cluster.dial
            )

        return Planner(options, opener, connect)


@pytest.fixture
def world() -> World:
    return World()


def plan(world: World, **given: str) -> SourcePlan:
    with world.planner(**given) as driver:
        views = driver.view()
        return driver.plan(views, driver.batch_spans(views))


def asked(planned: SourcePlan) -> list[tuple[str, int, int]]:
    return [
        (
            "broker" if isinstance(piece, BrokerPiece) else "bucket",
            piece.start_offset,
            piece.end_offset,
        )
        for piece in planned.pieces
    ]


async def test_the_bucket_gives_what_it_has_and_the_broker_the_rest(world: World) -> None:
    await world.copy(5, 7)
    world.broker.end = 20
    assert asked(plan(world)) == [("bucket", 0, 5), ("bucket", 5, 12), ("broker", 12, 20)]
    assert world.cluster.count(ApiKey.FETCH) == 0


async def test_begin_and_end_are_the_brokers(world: World) -> None:
    """It knows of DeleteRecords and of what is committed."""
    await world.copy(5, 7)
    world.broker.start, world.broker.end, world.broker.stable_end = 3, 20, 15
    assert asked(plan(world, isolationLevel="read_committed")) == [
        ("bucket", 3, 5),
        ("bucket", 5, 12),
        ("broker", 12, 15),
    ]


async def test_committed_rows_are_handed_over_where_the_bucket_is_unsure(world: World) -> None:
    """A transaction that is open there may have been aborted since: only the broker knows."""
    world.leader.write(3)
    world.leader.transaction(7, 4)
    world.leader.roll()
    await world.bucket.copy(world.leader)
    world.broker.end = 10
    assert asked(plan(world)) == [("bucket", 0, 7), ("broker", 7, 10)]
    assert asked(plan(world, isolationLevel="read_committed")) == [
        ("bucket", 0, 3),
        ("broker", 3, 10),
    ]


async def test_without_a_bucket_all_is_the_brokers(world: World) -> None:
    world.broker.start, world.broker.end = 4, 9
    assert asked(plan(world, tier="broker", path="")) == [("broker", 4, 9)]
    assert asked(plan(world)) == [("broker", 4, 9)]  # nothing was copied yet


async def test_a_bucket_of_another_history_is_not_mixed_in(world: World) -> None:
    """A node restored from an older state: its epoch 3 is not the bucket's."""
    await world.copy(5)
    await world.copy(5, epoch=3)
    world.broker.end, world.broker.epochs = 20, [(0, 0), (2, 6)]
    with pytest.raises(ReadError, match="another history"):
        plan(world)
    planned = plan(world, failOnDataLoss="false")
    assert asked(planned) == [("broker", 0, 20)]
    assert "another history" in planned.losses.sentences[0]


async def test_an_earlier_incarnation_in_the_bucket_is_none_of_the_topic(world: World) -> None:
    await world.copy(5)
    world.cluster.topics["t"].topic_id = UUID(int=77)
    world.broker.end = 3
    assert asked(plan(world)) == [("broker", 0, 3)]


async def test_topics_the_broker_does_not_have_are_an_error(world: World) -> None:
    await world.copy(5)
    del world.cluster.topics["t"]
    with world.planner() as driver, pytest.raises(TopicError, match="there is no topic t at node1"):
        driver.view()


async def test_another_incarnation_than_the_brokers_is_an_error(world: World) -> None:
    with (
        world.planner(topicId=str(UUID(int=5))) as driver,
        pytest.raises(TopicError, match="which is not topicId"),
    ):
        driver.view()


async def test_a_pattern_is_asked_at_the_broker(world: World) -> None:
    """Internal topics match none."""
    world.cluster.add_topic("u")
    world.cluster.add_topic("v", is_internal=True)
    with world.planner(subscribe="", subscribePattern="[t-v]") as driver:
        assert [partition.topic for partition in driver.view()] == ["t", "u"]


async def test_partitions_are_assigned(world: World) -> None:
    world.cluster.add_topic("w", partitions=3)
    with world.planner(subscribe="", assign='{"w":[2]}') as driver:
        assert list(driver.view()) == [TopicPartition("w", 2)]
    with (
        world.planner(subscribe="", assign='{"w":[3]}') as driver,
        pytest.raises(TopicError, match="there is no w-3"),
    ):
        driver.view()


async def test_a_broker_that_cannot_be_reached_is_an_error_before_any_piece(world: World) -> None:
    world.cluster.down = {1}
    with world.planner() as driver, pytest.raises(BrokerUnreachableError, match="node1"):
        driver.view()


async def test_a_topic_that_was_made_anew_is_told(world: World) -> None:
    world.broker.end = 3
    with world.planner() as driver:
        before = driver.view()
        assert remade_topics(before, driver.view()) == []
        world.cluster.topics["t"].topic_id = UUID(int=77)
        assert remade_topics(before, driver.view()) == ["t"]
        assert remade_topics({}, before) == []


async def test_what_the_bucket_has_is_followed(world: World) -> None:
    """A stream looks at every micro-batch: what was seen is not read again."""
    await world.copy(5)
    world.broker.end = 20
    with world.planner() as driver:
        assert driver.view()[ZERO].handover == 5
        reads = world.bucket.store.calls["get"]
        assert driver.view()[ZERO].handover == 5
        assert world.bucket.store.calls["get"] == reads
        await world.copy(4)
        assert driver.view()[ZERO].handover == 9
