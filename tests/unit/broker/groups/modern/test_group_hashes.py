"""Hashes of groups, which change when and only when their topics do."""

from dataclasses import replace

from broker.controller.images.cluster_image import BrokerImage
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.modern.group_hashes import GroupHashes
from broker.groups.modern.metadata_hash import group_hash, topic_hash
from tests.fakes.broker.offsets_partition import FakeController, topic_image


def group_of(*topics: str) -> ConsumerGroup:
    group = ConsumerGroup("g")
    group.update_member(ConsumerGroupMember("m", subscribed_topic_names=frozenset(topics)))
    return group


def test_hash_of_topics_that_exist() -> None:
    image = FakeController(topic_image("a", 1, 3)).image
    hashes = GroupHashes()
    assert hashes.of(group_of("nowhere"), image) == 0
    topic = image.topics["a"]
    expected = group_hash({"a": topic_hash(topic.topic_id, "a", 3, {})})
    group = group_of("a", "nowhere")
    assert hashes.of(group, image) == expected != 0
    assert hashes.of(group, image) == expected


def test_every_change_is_seen() -> None:
    controller = FakeController(topic_image("a", 1, 3))
    hashes = GroupHashes()
    group = group_of("a")
    seen = {hashes.of(group, controller.image)}
    for topics in ([topic_image("a", 1, 4)], [topic_image("a", 2, 4)], []):
        controller.image = controller._image_of(topics)
        seen.add(hashes.of(group, controller.image))
    assert len(seen) == 4
    controller.image = controller._image_of([topic_image("a", 1, 3), topic_image("b", 2, 3)])
    assert hashes.of(group, controller.image) in seen
    group.update_member(ConsumerGroupMember("m2", subscribed_topic_names=frozenset({"b"})))
    assert hashes.of(group, controller.image) not in seen


def test_racks_of_replicas_count() -> None:
    image = FakeController(topic_image("a", 1, 3)).image
    hashes = GroupHashes()
    group = group_of("a")
    before = hashes.of(group, image)
    racked = image.with_brokers([BrokerImage(1, {}, rack="r1")])
    after = hashes.of(group, racked)
    assert after != before
    assert hashes.of(group, replace(racked, brokers=image.brokers, broker_revision=9)) == before
