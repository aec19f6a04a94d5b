"""The replica manager and the controller, as far as the group coordinator knows them."""

from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

from broker.controller.configs.group_settings import ConsumerGroupSettings, ShareGroupSettings
from broker.controller.configs.share_group_config import ShareGroupConfig
from broker.controller.images.cluster_image import (
    BrokerEndpoint,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from tests.fakes.broker.coordinator_log import CoordinatorLog

OFFSETS_TOPIC = "__consumer_offsets"


class FakeReplicaManager(CoordinatorLog):
    """Offsets partitions in memory."""

    def __init__(self, partitions: Iterable[int] = (0,)) -> None:
        super().__init__(partitions, topic=OFFSETS_TOPIC)

    def compacted(self) -> "FakeReplicaManager":
        """The same log when the cleaner has been through all of it, tombstones gone, too."""
        made = FakeReplicaManager(self.batches)
        for index in self.batches:
            latest: dict[bytes | None, bytes | None] = {}
            for record in self.records(index):
                latest.pop(record.key, None)
                latest[record.key] = record.value
            kept = [(k, v, (), 0) for k, v in latest.items() if v is not None]
            if kept:
                made.add_batch(index, build_batch(kept))
        return made


def topic_image(name: str, topic_id: int, partitions: int) -> TopicImage:
    """A topic that broker 1 leads."""
    return TopicImage(
        name,
        UUID(int=topic_id),
        tuple(
            PartitionImage(
                index=index, leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,)
            )
            for index in range(partitions)
        ),
        {},
        name == OFFSETS_TOPIC,
    )


class FakeController:
    """An image, and whoever listens to it."""

    def __init__(self, *topics: TopicImage) -> None:
        self.revision = 0
        self.image = self._image_of(topics)
        self.listeners: list[Callable[[ClusterImage, ClusterImage], Awaitable[None]]] = []
        self.listeners_of_now: list[Callable[[ClusterImage, ClusterImage], None]] = []
        self.refuse_with: ErrorCode | None = None
        self.on_created: Callable[[], None] = lambda: None

    def _image_of(self, topics: Iterable[TopicImage]) -> ClusterImage:
        by_name = {topic.name: topic for topic in topics}
        self.revision += 1
        broker = BrokerImage(1, {"PLAINTEXT": BrokerEndpoint("broker.test", 9092)})
        return ClusterImage(
            "cluster",
            1,
            {1: broker},
            by_name,
            {topic.topic_id: topic for topic in by_name.values()},
            self.revision,
        )

    def subscribe(self, listener: Callable[[ClusterImage, ClusterImage], Awaitable[None]]) -> None:
        self.listeners.append(listener)

    def subscribe_now(self, listener: Callable[[ClusterImage, ClusterImage], None]) -> None:
        self.listeners_of_now.append(listener)

    def group_config(self, group_id: str) -> ConsumerGroupSettings:
        return ConsumerGroupSettings(45_000, 5_000)

    def share_group_config(self, group_id: str) -> ShareGroupSettings:
        return ShareGroupSettings(45_000, 5_000, ShareGroupConfig(30_000))

    async def set_topics(self, *topics: TopicImage) -> None:
        old, self.image = self.image, self._image_of(topics)
        for now in self.listeners_of_now:
            now(old, self.image)
        for listener in self.listeners:
            await listener(old, self.image)

    async def ensure_internal_topic(self, name: str) -> TopicImage:
        if self.refuse_with is not None:
            raise ApiError(self.refuse_with)
        if name not in self.image.topics:
            await self.set_topics(*self.image.topics.values(), topic_image(name, 99, 1))
            self.on_created()
        return self.image.topics[name]
