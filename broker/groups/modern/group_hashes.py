"""Cache of groups' metadata hashes.

A group's hash is needed whenever a member joins or leaves; its topics change rarely.
"""

from collections.abc import Iterable

from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.groups.modern.metadata_hash import group_hash, topic_hash
from broker.groups.modern.modern_group import AnyModernGroup, HashKey

TOPICS_MAX = 100_000
"""Topics whose hash is kept."""


class GroupHashes:
    """Hashes of one shard's groups."""

    def __init__(self) -> None:
        # With the topic and the revision of the brokers it was computed from. Threads add to it.
        self._topics: dict[str, tuple[TopicImage, int, int]] = {}

    @staticmethod
    def key(group: AnyModernGroup, image: ClusterImage) -> HashKey:
        """The cache key of a hash computed now."""
        return (group.topics_version, image.revision, image.broker_revision)

    def known(self, group: AnyModernGroup, image: ClusterImage) -> int | None:
        """The hash of the group's subscribed topics, if it was computed already."""
        known = group.work.metadata_hash
        return known[1] if known is not None and known[0] == self.key(group, image) else None

    def of(self, group: AnyModernGroup, image: ClusterImage) -> int:
        """The hash of the group's subscribed topics in the image."""
        known = self.known(group, image)
        if known is not None:
            return known
        value = self.of_names(group.subscribed_topics(), image)
        group.work.metadata_hash = (self.key(group, image), value)
        return value

    def of_names(self, names: Iterable[str], image: ClusterImage) -> int:
        """The hash of topics, those left out that do not exist; may be called on any thread."""
        topics = image.topics
        return group_hash(
            {
                name: self._topic(topic, image)
                for name in names
                if (topic := topics.get(name)) is not None
            }
        )

    def _topic(self, topic: TopicImage, image: ClusterImage) -> int:
        known = self._topics.get(topic.name)
        if known is not None and known[0] is topic and known[1] == image.broker_revision:
            return known[2]
        racks: dict[int, list[str]] = {}
        for partition in topic.partitions:
            for node_id in partition.replicas:
                broker = image.brokers.get(node_id)
                if broker is not None and broker.rack is not None:
                    racks.setdefault(partition.index, []).append(broker.rack)
        value = topic_hash(topic.topic_id, topic.name, len(topic.partitions), racks)
        if len(self._topics) >= TOPICS_MAX:
            self._topics.clear()
        self._topics[topic.name] = (topic, image.broker_revision, value)
        return value
