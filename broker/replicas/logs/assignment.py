"""What the newest image assigns to this broker: replicas, their settings and log directories."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from broker.controller.images.features import RecordLevel, writes
from broker.controller.images.partition_image import NO_LEADER
from broker.controller.topics.tiered_topics import own_overrides
from config.topic import TopicConfig
from storage.checkpoints.log_directory import LOST
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL

if TYPE_CHECKING:
    from uuid import UUID

    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage, TopicImage
    from broker.controller.images.partition_image import PartitionImage


def _never(_partition: "PartitionImage") -> bool:
    return False


def _nothing(_topic_id: "UUID", _index: int, _directory_id: "UUID") -> None:
    pass


LOGGER = logging.getLogger(__name__)


class Assignment:
    """See the module. Images are replaced as a whole: in any thread.

    Attributes:
        begins_anew: Whether a replica begins empty, in whichever log directory has room.
        report: Called, in a cluster, with topic id, index and log directory of a replica, for the
            controller to hear where it lies. On the loop's thread.
    """

    def __init__(self, controller: "Controller", *, is_alone: bool) -> None:
        """`is_alone`: a single node, which writes down in which directories its logs are."""
        self._controller = controller
        self._is_alone = is_alone
        self._node_id = controller.settings.node_id
        self.begins_anew: Callable[[PartitionImage], bool] = _never
        self.report: Callable[[UUID, int, UUID], None] = _nothing

    @property
    def image(self) -> "ClusterImage":
        """The newest."""
        return self._controller.image

    def is_here(self, partition: "PartitionImage") -> bool:
        """Whether this broker is to have a replica of a partition."""
        return self._node_id in partition.replicas

    def topic_of(
        self, topic_partition: TopicPartition, topic_id: "UUID | None", image: "ClusterImage"
    ) -> "TopicImage | None":
        """The topic that a log found here is of, None if it is not assigned here.

        `topic_id`: what the log says; None or all zeros: it says nothing. Then it may be that of
        an earlier topic of the name, whose replica here missed its deletion, and it is of none
        where another broker leads and nobody counts on this one to have its records.
        """
        topic = image.topics.get(topic_partition.topic)
        if topic is None or topic_partition.partition >= len(topic.partitions):
            return None
        if topic_id not in (None, NIL, topic.topic_id):
            return None
        partition = topic.partitions[topic_partition.partition]
        if not self.is_here(partition):
            return None
        is_known = topic_id not in (None, NIL)
        return topic if is_known or self._is_relied_on(partition) else None

    def _is_relied_on(self, partition: "PartitionImage") -> bool:
        return (
            self._is_alone
            or partition.leader in (NO_LEADER, self._node_id)
            or self._node_id in (*partition.isr, *partition.elr)
        )

    def is_elsewhere(
        self, topic_partition: TopicPartition, topic_id: "UUID | None", image: "ClusterImage"
    ) -> bool:
        """Whether the cluster says that other brokers have the replicas of a log found here.

        Not if it says nothing of the partition, or the log does not say which topic it is of; nor
        while no broker leads it: this replica might be the last that is whole.
        """
        partition = image.partition(*topic_partition)
        return (
            not self._is_alone
            and partition is not None
            and image.topics[topic_partition.topic].topic_id == topic_id
            and not self.is_here(partition)
            and partition.leader >= 0
        )

    def directory_of(self, topic_partition: TopicPartition) -> "UUID | None":
        """The log directory that a partition belongs to."""
        partition = self.image.partition(*topic_partition)
        if partition is None or self.begins_anew(partition):
            return None
        return partition.directory_on(self._node_id)

    def is_counted_on(self, topic_partition: TopicPartition) -> bool:
        """Whether this broker could be elected for a partition as having all that is committed."""
        partition = self.image.partition(*topic_partition)
        return partition is not None and self._node_id in (*partition.isr, *partition.elr)

    def may_begin(self, topic_partition: TopicPartition) -> bool:
        """Whether a replica may begin empty although a log directory is offline or missing."""
        partition = self.image.partition(*topic_partition)
        return partition is not None and self.begins_anew(partition)

    def report_lost(self, topic_partition: TopicPartition) -> None:
        """A replica is in a log directory that is not here, and it is not known in which."""
        topic = self.image.topics.get(topic_partition.topic)
        if topic is not None and writes(self.image.features, RecordLevel.MOVES):
            self.report(topic.topic_id, topic_partition.partition, LOST)

    async def record_directories(self, places: "Mapping[TopicPartition, UUID]") -> None:
        """Write down the log directories of partitions; a member of a cluster does not."""
        if not self._is_alone:
            return
        image = self.image
        by_topic: dict[UUID, dict[int, UUID]] = {}
        for (name, index), directory_id in places.items():
            if name in image.topics:
                by_topic.setdefault(image.topics[name].topic_id, {})[index] = directory_id
        if by_topic:
            done = await self._controller.assign_directories(by_topic)
            LOGGER.info("log directory assignments recorded topics=%d", len(done))

    def config_for(self, topic: str) -> TopicConfig:
        """The topic's settings: broker's defaults under its own."""
        found = self.image.topics.get(topic)
        overrides = found.overrides if found is not None else {}
        return TopicConfig.resolve(
            self._controller.effective_settings, own_overrides(topic, overrides)
        )

    def defaults(self) -> TopicConfig:
        """The broker's defaults."""
        return TopicConfig.resolve(self._controller.effective_settings, {})
