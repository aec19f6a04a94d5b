from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from pipeline.plan.piece import PartitionName
from pipeline.read.broker.client import (
    EARLIEST,
    LATEST,
    NO_OFFSET,
    BrokerClient,
    EpochEnd,
    ListedOffset,
)
from pipeline.read.broker.cluster import PartitionFacts
from pipeline.read.broker.errors import (
    BrokerDeniedError,
    BrokerError,
    BrokerUnreachableError,
    OffsetsGoneError,
    TopicGoneError,
)
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.primitives import NIL_UUID
from protocol.records.builder import build_batch
from tests.fakes.clock import ManualClock
from tests.fakes.kafka.memory_cluster import Drop, KafkaCluster


class World:
    """A cluster, and a client whose pauses move the clock.

    Attributes:
        pauses: In ms.
    """

    def __init__(self, nodes: int = 2) -> None:
        self.cluster = KafkaCluster(nodes)
        self.clock = ManualClock()
        self.pauses: list[float] = []
        self.client = self.connect()

    def connect(self, **changes: Any) -> BrokerClient:
        return BrokerClient(
            self.cluster.options._replace(**changes),
            clock=self.clock,
            sleep_ms=self.sleep,
            dial=self.cluster.dial,
        )

    def sleep(self, duration_ms: float) -> None:
        self.pauses.append(duration_ms)
        self.clock.advance(duration_ms)

    def write(self, topic: str, number: int = 0, count: int = 1, **options: Any) -> None:
        """Batches of one record."""
        log = self.cluster.partition(topic, number)
        for _ in range(count):
            offset = log.end
            data = build_batch(
                [(None, b"%d" % offset, (), 1000 + offset)], base_offset=offset, **options
            )
            self.cluster.append(topic, number, data)

    def name(self, topic: str, number: int = 0) -> PartitionName:
        return PartitionName(topic, self.cluster.topics[topic].topic_id, number)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.cluster.add_topic("orders", 3)
    world.cluster.add_topic("others")
    world.cluster.add_topic("__internal", is_internal=True)
    yield world
    world.client.close()
    assert world.cluster.open == 0


# -- topics ---------------------------------------------------------------------------------------


def test_topics_come_with_ids_partitions_and_leaders(world: World) -> None:
    facts = world.client.topics(["orders", "missing"])
    assert [*facts] == ["orders"]
    assert facts["orders"].topic_id == world.cluster.topics["orders"].topic_id
    assert [(one.number, one.leader) for one in facts["orders"].partitions] == [
        (0, 1),
        (1, 2),
        (2, 1),
    ]
    assert sorted(world.client.topics()) == ["__internal", "orders", "others"]


def test_nothing_is_created_by_asking(world: World) -> None:
    world.client.topics(["missing"])
    assert world.cluster.log[-1][3].allow_auto_topic_creation is False


def test_the_next_broker_of_the_list_is_asked_when_one_is_down(world: World) -> None:
    world.cluster.down.add(1)
    assert world.client.topics(["others"])
    assert world.pauses == []


def test_when_nobody_answers_all_are_named() -> None:
    world = World()
    world.cluster.down |= {1, 2}
    with pytest.raises(BrokerUnreachableError, match=r"node1:9092.*node2:9092"):
        world.client.topics()
    assert sum(world.pauses) < world.client.options.bootstrap_timeout_ms


def test_brokers_that_start_meanwhile_are_found() -> None:
    world = World()
    world.cluster.add_topic("t")
    world.cluster.down |= {1, 2}
    sleep = world.sleep

    def start(duration_ms: float) -> None:
        sleep(duration_ms)
        if len(world.pauses) == 3:
            world.cluster.down.clear()

    world.client._cluster._sleep_ms = start
    assert [*world.client.topics()] == ["t"]
    assert world.pauses == [100, 200, 400]


def test_a_broker_that_hangs_is_asked_last(world: World) -> None:
    """It takes connections and answers nothing: each attempt would cost the whole timeout."""
    world.client.topics()
    world.cluster.fail(ApiKey.METADATA, Drop.SILENCE, node=1)
    world.cluster.fail(ApiKey.API_VERSIONS, Drop.SILENCE, node=1, times=9)
    for _ in range(3):
        assert world.client.topics(["others"])
    assert world.cluster.dialled == ["node1:9092", "node2:9092"]
    other = world.connect()
    for _ in range(3):
        assert other.topics(["others"])
    assert world.cluster.dialled[2:] == ["node1:9092", "node2:9092"]
    # Where no other answers it is asked again.
    world.cluster.down.add(2)
    assert other.topics(["others"])
    assert world.cluster.requests[1, ApiKey.API_VERSIONS] > 2
    other.close()


def test_the_leader_of_an_earlier_epoch_is_no_news(world: World) -> None:
    """A broker that was paused names it, until it hears that there is another."""
    log = world.cluster.partition("others")
    log.leader, log.epoch = 2, 3
    world.client.topics(["others"])
    log.leader, log.epoch = 1, 2
    (facts,) = world.client.topics(["others"])["others"].partitions
    assert facts == PartitionFacts(0, 2, 3)
    log.leader, log.epoch = 1, 4
    (facts,) = world.client.topics(["others"])["others"].partitions
    assert facts == PartitionFacts(0, 1, 4)
    world.cluster.add_topic("others")
    (facts,) = world.client.topics(["others"])["others"].partitions
    assert facts == PartitionFacts(0, 1, 0)


def test_a_topic_that_may_not_be_described_is_denied(world: World) -> None:
    world.cluster.fail(ApiKey.METADATA, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerDeniedError, match="topic orders: TOPIC_AUTHORIZATION_FAILED"):
        world.client.topics(["orders"])
    assert world.pauses == []


@pytest.mark.parametrize("text", ["", " , ", "host", "host:", ":9092", "host:0", "host:99999"])
def test_a_bootstrap_list_that_is_none_is_told(text: str) -> None:
    world = World()
    with pytest.raises(BrokerError, match=r"kafka\.bootstrap\.servers"):
        world.connect(bootstrap_servers=text)


def test_addresses_may_have_a_listener_and_be_of_version_6() -> None:
    world = World()
    world.cluster.nodes[1] = "::1"
    client = world.connect(bootstrap_servers="PLAINTEXT://[::1]:9092")
    client.topics()
    assert world.cluster.dialled == ["::1:9092"]
    client.close()


# -- offsets --------------------------------------------------------------------------------------


def test_offsets_are_asked_of_each_leader_at_once(world: World) -> None:
    for number in range(3):
        world.write("orders", number, 5 + number)
    wanted = {("orders", number): LATEST for number in range(3)}
    found = world.client.list_offsets(wanted, read_committed=False)
    assert {number: one.offset for (_, number), one in found.items()} == {0: 5, 1: 6, 2: 7}
    assert world.cluster.requests[1, ApiKey.LIST_OFFSETS] == 1
    assert world.cluster.requests[2, ApiKey.LIST_OFFSETS] == 1


def test_the_end_of_committed_rows_is_the_stable_one(world: World) -> None:
    world.write("others", count=9)
    world.cluster.partition("others").stable_end = 4
    one = {("others", 0): LATEST}
    assert world.client.list_offsets(one, read_committed=False)["others", 0].offset == 9
    assert world.client.list_offsets(one, read_committed=True)["others", 0].offset == 4


def test_earliest_and_times(world: World) -> None:
    world.write("others", count=9)
    world.cluster.partition("others").start = 2
    ask = world.client.list_offsets
    assert ask({("others", 0): EARLIEST}, read_committed=True)["others", 0].offset == 2
    assert ask({("others", 0): 1005}, read_committed=True)["others", 0] == ListedOffset(5, 1005, 0)
    assert ask({("others", 0): 9999}, read_committed=True)["others", 0].offset == NO_OFFSET


def test_a_leader_that_has_changed_is_found(world: World) -> None:
    one = {("others", 0): LATEST}
    world.client.list_offsets(one, read_committed=False)
    log = world.cluster.partition("others")
    log.leader, log.epoch = 2, 7
    world.write("others")
    assert world.client.list_offsets(one, read_committed=False)["others", 0] == (1, -1, 7)
    assert world.pauses == [100]


@pytest.mark.parametrize(
    "fault",
    [
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        Drop.CONNECTION,
        Drop.SILENCE,
    ],
)
def test_what_passes_by_itself_is_tried_again(world: World, fault: ErrorCode | Drop) -> None:
    world.cluster.fail(ApiKey.LIST_OFFSETS, fault, times=3)
    world.client.list_offsets({("others", 0): LATEST}, read_committed=False)
    assert world.pauses == [100, 200, 400]


def test_patience_has_an_end(world: World) -> None:
    world.cluster.fail(ApiKey.LIST_OFFSETS, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=10_000)
    with pytest.raises(
        BrokerError, match=r"no success within \d+ ms: offsets of others-0: NOT_LEA"
    ):
        world.client.list_offsets({("others", 0): LATEST}, read_committed=False)
    assert 50_000 < sum(world.pauses) <= 60_000
    assert max(world.pauses) == 1000


def test_a_partition_without_a_leader_is_waited_for(world: World) -> None:
    world.cluster.partition("others").leader = -1
    with pytest.raises(BrokerError, match="others-0 has no leader now"):
        world.client.list_offsets({("others", 0): LATEST}, read_committed=False)


def test_a_topic_that_is_not_there_is_told_soon(world: World) -> None:
    with pytest.raises(TopicGoneError, match="the cluster has no partition missing-0"):
        world.client.list_offsets({("missing", 0): LATEST}, read_committed=False)
    assert len(world.pauses) == 3


def test_an_error_that_does_not_pass_is_told_at_once(world: World) -> None:
    world.cluster.fail(ApiKey.LIST_OFFSETS, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerDeniedError, match="offsets of others-0"):
        world.client.list_offsets({("others", 0): LATEST}, read_committed=False)
    assert world.pauses == []


def test_a_broker_without_isolation_levels_is_refused(world: World) -> None:
    world.cluster.versions[ApiKey.LIST_OFFSETS] = (1, 1)
    with pytest.raises(BrokerError, match="no isolation levels"):
        world.client.list_offsets({("others", 0): LATEST}, read_committed=True)


def test_ends_of_leader_epochs(world: World) -> None:
    world.write("others", count=9)
    world.cluster.partition("others").epochs = [(0, 0), (3, 5)]
    ask = world.client.epoch_ends
    assert ask({("others", 0): 0})["others", 0] == EpochEnd(0, 5)
    assert ask({("others", 0): 2})["others", 0] == EpochEnd(0, 5)
    assert ask({("others", 0): 4})["others", 0] == EpochEnd(3, 9)
    world.cluster.partition("others").epochs = [(3, 5)]
    assert ask({("others", 0): 1})["others", 0] == EpochEnd(-1, -1)


# -- records --------------------------------------------------------------------------------------


def fetch(world: World, offset: int = 0, **options: Any) -> Any:
    return world.client.begin_fetch(
        world.name("others"), offset, **{"read_committed": False, **options}
    ).wait()


def test_batches_come_as_they_are(world: World) -> None:
    world.write("others", count=3)
    fetched = fetch(world, 1)
    assert fetched.records == b"".join(world.cluster.partition("others").batches[1:])
    assert (fetched.log_start_offset, fetched.high_watermark) == (0, 3)


def test_a_fetch_has_no_session_and_names_the_topic_by_id(world: World) -> None:
    fetch(world)
    _, api, version, request = world.cluster.log[-1]
    assert (api, version) == (ApiKey.FETCH, 18)
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert request.topics[0].topic_id == world.name("others").topic_id
    assert request.max_bytes == world.client.options.fetch_max_bytes


def test_older_brokers_are_asked_by_name(world: World) -> None:
    world.write("others")
    world.cluster.versions[ApiKey.FETCH] = (4, 12)
    assert fetch(world).records
    assert world.cluster.log[-1][3].topics[0].topic == "others"


def test_a_piece_without_an_id_asks_by_name(world: World) -> None:
    world.write("others")
    name = world.name("others")._replace(topic_id=NIL_UUID)
    assert world.client.begin_fetch(name, 0, read_committed=False).wait().records
    assert world.cluster.log[-1][2] == 12


def test_aborted_transactions_come_with_committed_reads_only(world: World) -> None:
    world.write("others", count=3)
    world.cluster.partition("others").aborted = [(7, 1, 2)]
    assert fetch(world, read_committed=True).aborted == ((7, 1),)
    assert fetch(world).aborted == ()


def test_the_next_request_is_under_way_while_the_last_answer_is_looked_at(world: World) -> None:
    world.write("others", count=3)
    first = world.client.begin_fetch(world.name("others"), 0, read_committed=False)
    second = world.client.begin_fetch(world.name("others"), 2, read_committed=False)
    assert world.cluster.count(ApiKey.FETCH) == 2
    assert len(second.wait().records) < len(first.wait().records)


@pytest.mark.parametrize(
    "fault",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        Drop.CONNECTION,
        Drop.HALF,
        Drop.SILENCE,
    ],
)
def test_a_fetch_is_sent_again(world: World, fault: ErrorCode | Drop) -> None:
    world.write("others", count=3)
    world.cluster.fail(ApiKey.FETCH, fault, times=2)
    assert fetch(world).records
    assert world.pauses == [100, 200]


def test_a_leader_that_goes_away_is_followed(world: World) -> None:
    world.write("others", count=3)
    fetch(world)
    world.cluster.down.add(1)
    log = world.cluster.partition("others")
    log.leader, log.epoch = 2, 1
    assert fetch(world).records


def test_a_leader_older_than_the_plan_is_waited_for(world: World) -> None:
    """It would give what a newer one has overwritten."""
    world.write("others", count=3)
    with pytest.raises(BrokerError, match="UNKNOWN_LEADER_EPOCH"):
        fetch(world, leader_epoch=4)


def test_offsets_out_of_range_are_told_as_such(world: World) -> None:
    with pytest.raises(OffsetsGoneError, match="Fetch of others-0 from offset 99"):
        fetch(world, 99)


def test_another_incarnation_is_another_topic(world: World) -> None:
    name = world.name("others")
    world.client.check_incarnation(name)
    world.client.check_incarnation(name._replace(topic_id=NIL_UUID))
    with pytest.raises(TopicGoneError, match="was deleted and recreated"):
        world.client.check_incarnation(name._replace(topic_id=UUID(int=99)))
    del world.cluster.topics["others"]
    with pytest.raises(TopicGoneError, match="does not exist any more"):
        world.client.check_incarnation(name)
