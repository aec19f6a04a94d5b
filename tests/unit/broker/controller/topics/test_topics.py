"""What a new topic looks like, and why it is refused."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.images.cluster_image import (
    BrokerEndpoint,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from broker.controller.topics.topics import (
    NewPartitions,
    NewTopic,
    added_partitions,
    automatic_topic,
    check_new_name,
    check_request_size,
    new_partitions_of,
    place,
    requested_configs,
)
from broker.runtime.errors import ApiError
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from storage.environment.randomness import SeededRandomness

SEED = SeededRandomness(0)
SETTINGS = BrokerConfig().replace(num_partitions=3)


def image_of(*nodes: int, fenced: tuple[int, ...] = ()) -> ClusterImage:
    endpoints = {"PLAINTEXT": BrokerEndpoint("h", 9092)}
    return ClusterImage.empty().with_brokers(
        BrokerImage(node, endpoints, is_fenced=node in fenced) for node in nodes
    )


ONE = image_of(1)
THREE = image_of(1, 2, 3)


def plan(topic: NewTopic, image: ClusterImage = ONE) -> list[PartitionImage]:
    return new_partitions_of(topic, image, SETTINGS, SEED)


def refused(topic: NewTopic, image: ClusterImage = ONE) -> tuple[ErrorCode, str | None]:
    with pytest.raises(ApiError) as caught:
        plan(topic, image)
    return caught.value.code, caught.value.message


def test_defaults_come_from_the_settings() -> None:
    """-1 means num.partitions and default.replication.factor; epochs begin at 0."""
    assert plan(NewTopic("t")) == [PartitionImage(i, 1, 0, 0, (1,), (1,)) for i in range(3)]


@pytest.mark.parametrize("factor", [0, -2])
def test_replication_factor_must_be_positive(factor: int) -> None:
    assert refused(NewTopic("t", 1, factor)) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    )


@pytest.mark.parametrize("count", [0, -2])
def test_partition_count_must_be_positive(count: int) -> None:
    assert refused(NewTopic("t", count, 1)) == (
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    )


def test_more_replicas_than_brokers_are_refused() -> None:
    """In Kafka's words, which say how many brokers there are."""
    assert refused(NewTopic("t", 1, 3)) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot "
        "be reached because only 1 broker(s) are registered.",
    )


def test_no_active_broker() -> None:
    code, message = refused(NewTopic("t", 1, 1), image_of(1, fenced=(1,)))
    assert code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert message is not None
    assert message.endswith("All brokers are currently fenced.")


@given(st.integers(1, 7), st.integers(1, 40), st.integers(0, 100), st.data())
def test_placement_spreads_leaders_and_replicas(
    brokers: int, count: int, first: int, data: st.DataObject
) -> None:
    """Replicas differ, the leader is the first, and leaders are balanced."""
    factor = data.draw(st.integers(1, brokers))
    partitions = place(range(count), factor, image_of(*range(brokers)), SeededRandomness(first))
    assert [p.index for p in partitions] == list(range(count))
    for partition in partitions:
        assert len(set(partition.replicas)) == factor
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
    led = [sum(p.leader == node for p in partitions) for node in range(brokers)]
    assert max(led) - min(led) <= 2


def test_fenced_brokers_hold_replicas_but_do_not_lead() -> None:
    """They are used only when there are too few others, and are not in sync."""
    (partition,) = place([0], 3, image_of(1, 2, 3, fenced=(2,)), SEED)
    assert sorted(partition.isr) == [1, 3]
    assert partition.replicas == (*partition.isr, 2)
    assert partition.leader == partition.replicas[0]


def test_assignment_decides_everything() -> None:
    """In the order the client gave, leader first, whatever the order of partitions."""
    topic = NewTopic("t", assignments=[(1, [3, 1]), (0, [2, 3])])
    assert plan(topic, THREE) == [
        PartitionImage(0, 2, 0, 0, (2, 3), (2, 3)),
        PartitionImage(1, 3, 0, 0, (3, 1), (3, 1)),
    ]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (
            NewTopic("t", -1, 1, [(0, [1])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set "
            "to -1.",
        ),
        (
            NewTopic("t", 1, -1, [(0, [1])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (0, [2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (2, [2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("t", assignments=[(0, [])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            NewTopic("t", assignments=[(0, [9])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            NewTopic("t", assignments=[(0, [2, 1, 2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 2 more than once.",
        ),
        (
            NewTopic("t", assignments=[(0, [1, 2]), (1, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes a partition with 1 replica(s), but this is "
            "not consistent with previous partitions, which have 2 replica(s).",
        ),
    ],
)
def test_refused_assignments(topic: NewTopic, code: ErrorCode, message: str) -> None:
    """Kafka's codes and sentences."""
    assert refused(topic, THREE) == (code, message)


def test_assignment_to_fenced_brokers_only_is_refused() -> None:
    code, message = refused(NewTopic("t", assignments=[(0, [1])]), image_of(1, fenced=(1,)))
    assert code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message is not None
    assert "fenced or in controlled shutdown" in message


def topic_of(count: int, factor: int = 1) -> TopicImage:
    replicas = tuple(range(1, factor + 1))
    partitions = tuple(PartitionImage(i, 1, 0, 0, replicas, replicas) for i in range(count))
    return TopicImage("t", UUID(int=7), partitions, {}, False)


def test_extension_places_the_new_partitions_only() -> None:
    """With the replication factor the topic has."""
    added = added_partitions(
        NewPartitions("t", 5), topic_of(3, factor=2), THREE, SeededRandomness(0)
    )
    assert [p.index for p in added] == [3, 4]
    assert all(len(p.replicas) == 2 for p in added)


def test_extension_by_assignment() -> None:
    added = added_partitions(
        NewPartitions("t", 4, [[3], [2]]), topic_of(2), THREE, SeededRandomness(0)
    )
    assert [(p.index, p.replicas) for p in added] == [(2, (3,)), (3, (2,))]


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (NewPartitions("t", 3), ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partition(s)."),
        (
            NewPartitions("t", 2),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 3 partition(s); 2 would not be an increase.",
        ),
        (
            NewPartitions("t", 5, [[1]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            NewPartitions("t", 4, [[1, 2]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes a partition with 2 replica(s), but this is "
            "not consistent with previous partitions, which have 1 replica(s).",
        ),
        (
            NewPartitions("t", 10_004),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
def test_refused_extensions(request_: NewPartitions, code: ErrorCode, message: str) -> None:
    """Kafka's codes and sentences."""
    with pytest.raises(ApiError) as caught:
        added_partitions(request_, topic_of(3), THREE, SEED)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_request_size_counts_every_way_to_ask() -> None:
    """Counts, defaults and assignments together; 10,000 is the most."""
    settings = BrokerConfig().replace(num_partitions=4)
    topics = [NewTopic("a", 9_994), NewTopic("b"), NewTopic("c", assignments=[(0, [1]), (1, [1])])]
    check_request_size(topics, settings)
    with pytest.raises(ApiError) as caught:
        check_request_size([*topics, NewTopic("d", 1)], settings)
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
    check_request_size([*topics, NewTopic("nonsense", -100)], settings)


def test_null_settings_are_refused_together() -> None:
    with pytest.raises(ApiError) as caught:
        requested_configs(NewTopic("t", configs=[("a", None), ("b", "1"), ("c", None)]))
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert caught.value.message == "Null value not supported for topic configs: a,c"
    assert requested_configs(NewTopic("t", configs=[("a", "1"), ("a", "2")])) == {"a": "2"}


def test_kafkas_own_metadata_log_cannot_be_created() -> None:
    with pytest.raises(ApiError) as caught:
        check_new_name("__cluster_metadata", ONE, {})
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert caught.value.message == "Creation of internal topic __cluster_metadata is prohibited."


def test_offsets_topic_has_its_own_settings() -> None:
    """Compacted, with as many partitions as the settings say."""
    settings = BrokerConfig().replace(
        offsets_topic_num_partitions=7,
        offsets_topic_replication_factor=1,
        offsets_topic_segment_bytes=12345678,
    )
    topic = automatic_topic("__consumer_offsets", ONE, settings)
    assert (topic.num_partitions, topic.replication_factor) == (7, 1)
    assert dict(topic.configs) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "12345678",
    }


def test_internal_topics_work_on_fewer_brokers_than_their_replication_factor() -> None:
    """A single node with default settings (3 replicas, 2 in sync) can have them."""
    settings = BrokerConfig().replace(
        offsets_topic_replication_factor=3,
        transaction_state_log_replication_factor=3,
        transaction_state_log_min_isr=2,
    )
    assert automatic_topic("__consumer_offsets", ONE, settings).replication_factor == 1
    assert automatic_topic("__consumer_offsets", THREE, settings).replication_factor == 3
    state = automatic_topic("__transaction_state", ONE, settings)
    assert state.replication_factor == 1
    assert dict(state.configs)["min.insync.replicas"] == "1"
    state = automatic_topic("__transaction_state", THREE, settings)
    assert dict(state.configs)["min.insync.replicas"] == "2"


def test_other_topics_get_the_defaults() -> None:
    assert automatic_topic("t", ONE, SETTINGS) == NewTopic("t")
