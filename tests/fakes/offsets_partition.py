"""The replica manager and the controller, as far as the group coordinator knows them."""

from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
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
from protocol.records.batch import read_header, set_offset_and_epoch
from protocol.records.builder import build_batch
from protocol.records.record import iterate_records
from storage.types.topic_partition import TopicPartition

OFFSETS_TOPIC = "__consumer_offsets"
OnCommitted = Callable[[ErrorCode, int], None]


class FakeReplicaManager:
    """Offsets partitions in memory.

    Appends commit at once. With `hold` they wait for `commit_held` or `fail_held`; while
    `fail_with` is set they are refused and nothing is written, as are batches above
    `batch_size_max`. `high_watermarks` holds that of a
    partition back, as where another shard's writes are not on disk yet.
    """

    def __init__(self, partitions: Iterable[int] = (0,)) -> None:
        self.batches: dict[int, list[bytes]] = {index: [] for index in partitions}
        self.ends: dict[int, int] = dict.fromkeys(partitions, 0)
        self.high_watermarks: dict[int, int] = {}
        self.hold = False
        self.fail_with: ErrorCode | None = None
        self.held: list[tuple[int, bytearray, OnCommitted]] = []
        self.reads = 0
        self.batch_size_max = 1 << 20

    def append_internal(
        self, tp: TopicPartition, batch: bytearray, on_committed: OnCommitted
    ) -> None:
        if self.fail_with is not None:
            on_committed(self.fail_with, -1)
        elif len(batch) > self.batch_size_max:
            on_committed(ErrorCode.MESSAGE_TOO_LARGE, -1)
        elif self.hold:
            self.held.append((tp.partition, batch, on_committed))
        else:
            self._commit(tp.partition, batch, on_committed)

    def commit_held(self) -> None:
        held, self.held = self.held, []
        for index, batch, on_committed in held:
            self._commit(index, batch, on_committed)

    def fail_held(self, code: ErrorCode) -> None:
        held, self.held = self.held, []
        for _, _, on_committed in held:
            on_committed(code, -1)

    def add_batch(self, index: int, batch: bytearray) -> None:
        """Put a batch into the log, as another broker might have."""
        self._commit(index, batch, lambda code, offset: None)

    def _commit(self, index: int, batch: bytearray, on_committed: OnCommitted) -> None:
        base_offset = self.ends[index]
        set_offset_and_epoch(memoryview(batch), 0, base_offset, 0)
        self.batches[index].append(bytes(batch))
        self.ends[index] = read_header(memoryview(batch)).next_offset
        on_committed(ErrorCode.NONE, base_offset)

    def compacted(self) -> "FakeReplicaManager":
        """The same log when the cleaner has been through all of it, tombstones gone, too."""
        made = FakeReplicaManager(self.batches)
        for index, batches in self.batches.items():
            latest: dict[bytes | None, bytes | None] = {}
            for batch in batches:
                for record in iterate_records(memoryview(batch), max_size=1 << 20):
                    latest.pop(record.key, None)
                    latest[record.key] = record.value
            kept = [(k, v, (), 0) for k, v in latest.items() if v is not None]
            if kept:
                made.add_batch(index, build_batch(kept))
        return made

    def get_partition(self, topic: str, index: int) -> SimpleNamespace | None:
        if topic != OFFSETS_TOPIC or index not in self.batches:
            return None
        end_offset = self.ends[index]
        log = SimpleNamespace(
            log_start_offset=0,
            high_watermark=self.high_watermarks.get(index, end_offset),
            log_end_offset=end_offset,
            next_offset=end_offset,
        )
        return SimpleNamespace(log=log, leader_epoch=0)

    async def read_internal(self, tp: TopicPartition, offset: int, max_bytes: int) -> memoryview:
        self.reads += 1
        taken = bytearray()
        for batch in self.batches[tp.partition]:
            if read_header(memoryview(batch)).last_offset < offset:
                continue
            if taken and len(taken) + len(batch) > max_bytes:
                # As a log does: the last batch may be cut off.
                taken += batch[: max(max_bytes - len(taken), 0)]
                break
            taken += batch
        return memoryview(bytes(taken))


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

    def group_config(self, group_id: str) -> ConsumerGroupSettings:
        return ConsumerGroupSettings(45_000, 5_000)

    def share_group_config(self, group_id: str) -> ShareGroupSettings:
        return ShareGroupSettings(45_000, 5_000, ShareGroupConfig(30_000))

    async def set_topics(self, *topics: TopicImage) -> None:
        old, self.image = self.image, self._image_of(topics)
        for listener in self.listeners:
            await listener(old, self.image)

    async def ensure_internal_topic(self, name: str) -> TopicImage:
        if self.refuse_with is not None:
            raise ApiError(self.refuse_with)
        if name not in self.image.topics:
            await self.set_topics(*self.image.topics.values(), topic_image(name, 99, 1))
            self.on_created()
        return self.image.topics[name]
