"""What an image assigns to a broker."""

from typing import Any
from uuid import UUID

import pytest

from broker.controller.images.partition_image import PartitionImage
from broker.replicas.logs.assignment import Assignment
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL
from tests.unit.broker.replicas.logs.node import ImagesByHand, topic_of

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))


def assignment_of(images: ImagesByHand) -> Assignment:
    controller: Any = images
    return Assignment(controller, is_alone=False)


def test_a_log_is_of_a_topic_by_name_id_and_assignment() -> None:
    images = ImagesByHand()
    images.set(topic := topic_of("t", (1, 2), (2, 3)))
    assignment = assignment_of(images)

    def found(one: TopicPartition, topic_id: UUID | None) -> object:
        return assignment.topic_of(one, topic_id, images.image)

    assert found(T0, topic.topic_id) is topic
    assert found(T0, None) is topic
    assert found(T0, NIL) is topic
    assert found(T0, UUID(int=9)) is None
    assert found(T1, topic.topic_id) is None
    assert found(T2, topic.topic_id) is None
    assert found(TopicPartition("other", 0), None) is None


@pytest.mark.parametrize(
    ("leader", "isr", "elr", "is_taken"),
    [
        (2, (2,), (), False),
        (2, (2, 1), (), True),
        (2, (2,), (1,), True),
        (1, (1,), (), True),
        (-1, (), (), True),
    ],
)
def test_a_log_that_says_no_id_is_taken_where_it_is_relied_on(
    leader: int, isr: tuple[int, ...], elr: tuple[int, ...], is_taken: bool
) -> None:
    """Else the leader has all: it may be of a topic that was deleted and created again."""
    images = ImagesByHand()
    partition = PartitionImage(0, leader, 0, 0, (1, 2), isr, elr=elr)
    topic = topic_of("t", (1, 2))
    topic = type(topic)("t", topic.topic_id, (partition,), {}, internal=False)
    images.set(topic)
    assignment = assignment_of(images)
    for topic_id in (None, NIL):
        found = assignment.topic_of(T0, topic_id, images.image)
        assert found is (topic if is_taken else None)
    assert assignment.topic_of(T0, topic.topic_id, images.image) is topic


def test_a_single_node_takes_a_log_that_says_no_id() -> None:
    images = ImagesByHand()
    images.set(topic := topic_of("t", (1,)))
    controller: Any = images
    assert Assignment(controller, is_alone=True).topic_of(T0, None, images.image) is topic


def test_settings_are_the_topics_over_the_brokers() -> None:
    images = ImagesByHand()
    images.set(topic_of("t", (1,), retention_ms="5"))
    assignment = assignment_of(images)
    assert assignment.config_for("t").retention_ms == 5
    assert assignment.config_for("absent") == assignment.defaults()


def test_a_directory_is_the_one_of_this_brokers_replica() -> None:
    images = ImagesByHand()
    directories = (UUID(int=7), UUID(int=8))
    partition = PartitionImage(0, 2, 0, 0, (2, 1), (2, 1), directories)
    topic = topic_of("t", (2, 1))
    images.set(type(topic)("t", topic.topic_id, (partition,), {}, internal=False))
    assignment = assignment_of(images)
    assert assignment.directory_of(T0) == UUID(int=8)
    assert assignment.directory_of(T1) is None


async def test_a_member_writes_no_directories_down() -> None:
    """The fake has nothing to write them with."""
    await assignment_of(ImagesByHand()).record_directories({T0: UUID(int=7)})
