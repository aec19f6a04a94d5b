"""Metadata hashes of groups, computed no more often than something has changed.

A group is asked for its hash whenever a member joins or leaves; its topics change rarely.
"""

from collections.abc import Iterable
from typing import Protocol

from broker.controller.cluster_image import ClusterImage, TopicImage
from broker.groups.consumer.metadata_hash import group_hash, topic_hash

TOPICS_MAX = 100_000
"""Topics whose hash is kept."""


HashKey = tuple[int, int, int]
"""What a hash was computed from: version of the subscriptions, revisions of topics and brokers."""


class Hashed(Protocol):
    """Keeps the hash that was computed last, and from what."""

    metadata_hash: tuple[HashKey, int] | None


class Subscribed(Protocol):
    """A group, consumer or share; `topics_version` grows when a topic comes or goes."""

    topics_version: int

    @property
    def work(self) -> Hashed:
        """Where the hash is kept."""
        ...

    def subscribed_topics(self) -> Iterable[str]:
        """Every topic once that a member subscribed to."""
        ...


class GroupHashes:
    """Hashes of one shard's groups."""

    def __init__(self) -> None:
        self._topics: dict[str, tuple[TopicImage, int]] = {}
        self._broker_revision = -1

    def of(self, group: Subscribed, image: ClusterImage) -> int:
        """The hash of what the group subscribed to, as the image has it."""
        key = (group.topics_version, image.revision, image.broker_revision)
        known = group.work.metadata_hash
        if known is not None and known[0] == key:
            return known[1]
        if image.broker_revision != self._broker_revision or len(self._topics) > TOPICS_MAX:
            self._topics.clear()
            self._broker_revision = image.broker_revision
        value = group_hash(
            {
                name: self._topic(topic, image)
                for name in group.subscribed_topics()
                if (topic := image.topics.get(name)) is not None
            }
        )
        group.work.metadata_hash = (key, value)
        return value

    def _topic(self, topic: TopicImage, image: ClusterImage) -> int:
        known = self._topics.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        racks: dict[int, list[str]] = {}
        for partition in topic.partitions:
            for node_id in partition.replicas:
                broker = image.brokers.get(node_id)
                if broker is not None and broker.rack is not None:
                    racks.setdefault(partition.index, []).append(broker.rack)
        value = topic_hash(topic.topic_id, topic.name, len(topic.partitions), racks)
        self._topics[topic.name] = (topic, value)
        return value
