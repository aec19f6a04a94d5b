"""The difference between the topics of two cluster images, as coordinators need it."""

from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage


class TopicsChange:
    """The difference from `old` to `new`; each part is computed when it is first read."""

    def __init__(self, old: "ClusterImage", new: "ClusterImage") -> None:
        self._old = old
        self._new = new

    @cached_property
    def deleted(self) -> dict[UUID, str]:
        """Names of deleted topics by id; a topic that is created again has another id."""
        gone = self._old.topics_by_id.keys() - self._new.topics_by_id.keys()
        return {topic_id: self._old.topics_by_id[topic_id].name for topic_id in gone}

    @cached_property
    def has_new(self) -> bool:
        """Whether a topic was created."""
        return not self._new.topics_by_id.keys() <= self._old.topics_by_id.keys()

    @cached_property
    def changed(self) -> frozenset[str]:
        """Names of topics that were created, deleted, or got more partitions."""
        return frozenset(self.deleted.values()).union(
            topic.name
            for topic_id, topic in self._new.topics_by_id.items()
            if (known := self._old.topics_by_id.get(topic_id)) is not topic
            and (known is None or len(known.partitions) != len(topic.partitions))
        )
