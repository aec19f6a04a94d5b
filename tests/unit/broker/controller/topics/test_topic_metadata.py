"""Topics as Metadata tells them, on several brokers."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.controller.images.cluster_image import (
    BrokerEndpoint,
    BrokerImage,
    ClusterImage,
    PartitionImage,
)
from broker.controller.images.metadata_records import chunks, encode_topic, topic_key
from broker.controller.topics.topic_metadata import (
    SWEEP_FROM,
    TopicMetadata,
    describe_brokers,
    describe_partitions,
)
from protocol.error_codes import ErrorCode

IN, OUT = BrokerEndpoint("in", 1), BrokerEndpoint("out", 2)


def image_of(*partitions: PartitionImage) -> ClusterImage:
    """Broker 1 on both listeners, 2 on IN only, 3 fenced."""
    topic_id = UUID(int=7)
    keys = [(topic_key("t"), encode_topic(topic_id)), *chunks(topic_id, partitions)]
    return (
        ClusterImage.empty()
        .updated(keys, 2)
        .with_brokers(
            [
                BrokerImage(1, {"IN": IN, "OUT": OUT}),
                BrokerImage(2, {"IN": IN}),
                BrokerImage(3, {"IN": IN, "OUT": OUT}, is_fenced=True),
            ]
        )
    )


@pytest.mark.parametrize(
    ("version", "error", "replicas", "isr"),
    [
        (0, ErrorCode.REPLICA_NOT_AVAILABLE, [1], [1]),
        (1, ErrorCode.NONE, [1, 2, 3], [1, 2]),
        (12, ErrorCode.NONE, [1, 2, 3], [1, 2]),
    ],
)
def test_replicas_a_client_cannot_reach(
    version: int, error: ErrorCode, replicas: list[int], isr: list[int]
) -> None:
    """Told as offline; version 0 leaves them out and says that it does."""
    partition = PartitionImage(0, 1, 5, 5, (1, 2, 3), (1, 2))
    (told,) = describe_partitions(image_of(partition), [partition], "OUT", version)
    assert (told.error_code, told.leader_id, told.leader_epoch) == (error, 1, 5)
    assert (told.replica_nodes, told.isr_nodes, told.offline_replicas) == (replicas, isr, [2, 3])


def test_a_single_node_leads_nothing_in_a_directory_that_does_not_work() -> None:
    """Kafka's controller puts that down; no other broker could be elected, so ours only says it."""
    works, failed = UUID(int=1), UUID(int=2)
    partitions = [
        PartitionImage(0, 1, 5, 5, (1,), (1,), directories=(works,)),
        PartitionImage(1, 1, 5, 5, (1,), (1,), directories=(failed,)),
        PartitionImage(2, 1, 5, 5, (1,), (1,)),
    ]
    sole = BrokerImage(1, {"IN": IN}, failed_directories=(failed,))
    image = image_of(*partitions).with_brokers([sole])
    told = describe_partitions(image, partitions, "IN", 12)
    assert [(one.leader_id, one.offline_replicas) for one in told] == [(1, []), (-1, [1]), (1, [])]
    assert [one.error_code for one in told] == [0, ErrorCode.LEADER_NOT_AVAILABLE, 0]
    assert told[1].isr_nodes == [1]


def test_partitions_placed_alike_differ_where_they_differ() -> None:
    """They share lists, not epochs or indexes."""
    partitions = [
        PartitionImage(0, 1, 4, 0, (1, 2), (1, 2)),
        PartitionImage(1, 1, 9, 0, (1, 2), (1, 2)),
        PartitionImage(2, 2, 0, 0, (2, 1), (2,)),
    ]
    told = describe_partitions(image_of(*partitions), partitions, "IN", 12)
    assert [(p.partition_index, p.leader_id, p.leader_epoch) for p in told] == [
        (0, 1, 4),
        (1, 1, 9),
        (2, 2, 0),
    ]
    assert [(p.replica_nodes, p.isr_nodes) for p in told] == [
        ([1, 2], [1, 2]),
        ([1, 2], [1, 2]),
        ([2, 1], [2]),
    ]


def test_brokers_that_can_be_called() -> None:
    """Not fenced, and on the client's listener."""
    image = image_of()
    assert [b.node_id for b in describe_brokers(image, "IN")] == [1, 2]
    assert [(b.node_id, b.host, b.port) for b in describe_brokers(image, "OUT")] == [(1, "out", 2)]


def test_structures_are_made_again_when_topic_or_brokers_change() -> None:
    """And kept otherwise."""
    metadata, image = TopicMetadata(), image_of(PartitionImage(0, 1, 0, 0, (1,), (1,)))
    topic = image.topics["t"]
    first = metadata.topic(image, topic, "IN", 12, 0).partitions
    assert metadata.topic(image, topic, "IN", 12, 1).partitions is first
    assert metadata.topic(image, topic, "OUT", 12, 0).partitions is not first
    moved = image.updated(chunks(topic.topic_id, [PartitionImage(0, 2, 1, 1, (2,), (2,))]), 3)
    (partition,) = metadata.topic(moved, moved.topics["t"], "IN", 12, 0).partitions
    assert partition.leader_id == 2
    alone = moved.with_brokers([])
    (partition,) = metadata.topic(alone, alone.topics["t"], "IN", 12, 0).partitions
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_topics_that_are_gone_are_let_go() -> None:
    """Also where clients ask for topics by name only, and never for all of them."""
    metadata = TopicMetadata()
    image = image_of()
    for number in range(1_000):
        topic = replace(image.topics["t"], name=f"topic {number}")
        with_topic = replace(image, topics={**image.topics, topic.name: topic})
        metadata.topic(with_topic, topic, "IN", 12, 0)
        metadata.topic(with_topic, topic, "OUT", 12, 0)
        assert len(metadata) <= 2 * SWEEP_FROM
    many = {f"{number}": replace(image.topics["t"], name=f"{number}") for number in range(500)}
    grown = replace(image, topics=many)
    for topic in many.values():
        metadata.topic(grown, topic, "IN", 12, 0)
    first = many["0"]
    kept = metadata.topic(grown, first, "IN", 12, 0).partitions
    assert metadata.topic(grown, first, "IN", 12, 0).partitions is kept
