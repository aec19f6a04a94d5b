"""Followers' fetches against a partition on three brokers, led by broker 1."""

from pathlib import Path
from typing import Any

from broker.controller.images.partition_image import PartitionImage
from broker.replicas.partition import Partition
from protocol.api_keys import ApiKey
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from tests.unit.broker.world import World, batch, topic_id

VERSION = 17
LEADER_EPOCH = 5


def record(
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    leader_epoch: int = LEADER_EPOCH,
    partition_epoch: int = 0,
    replicas: tuple[int, ...] = (1, 2, 3),
) -> PartitionImage:
    return PartitionImage(0, 1, leader_epoch, partition_epoch, replicas, isr)


class FollowerWorld(World):
    """A world whose partitions have followers: brokers 2 and 3, in their lives 20 and 30."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.registered = {1: 10, 2: 20, 3: 30}
        self.live = dict(self.registered)
        self.replicas.terms.registered_epoch = self.registered.get
        self.replicas.terms.live_epoch = self.live.get

    def led(self, topic: str = "t", state: PartitionImage | None = None) -> Partition:
        """Lead a partition of three replicas."""
        partition = self.add(topic)
        partition.become_leader(state or record(), now_ms=self.clock.monotonic_ms())
        return partition

    def write(self, partition: Partition, *values: bytes, **options: Any) -> None:
        partition.append(memoryview(batch(*values, **options)), self.clock.now_ms())

    def request(
        self,
        offsets: dict[str, int],
        *,
        replica: int = 2,
        session: tuple[int, int] = (0, 0),
        **options: Any,
    ) -> FetchRequest:
        """A fetch; `options` are those of FetchPartition and FetchRequest."""
        per_partition: dict[str, Any] = {
            "current_leader_epoch": LEADER_EPOCH,
            "last_fetched_epoch": -1,
            "partition_max_bytes": 1 << 20,
            "log_start_offset": 0,
        }
        for name in per_partition:
            if name in options:
                per_partition[name] = options.pop(name)
        broker_epoch = options.pop("broker_epoch", self.registered.get(replica, 1))
        forgotten = [
            ForgottenTopic(topic_id=topic_id(topic), partitions=[0])
            for topic in options.pop("forget", ())
        ]
        values: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10 << 20}
        return FetchRequest(
            replica_state=ReplicaState(replica_id=replica, replica_epoch=broker_epoch),
            session_id=session[0],
            session_epoch=session[1],
            topics=[
                FetchTopic(
                    topic_id=topic_id(topic),
                    partitions=[FetchPartition(partition=0, fetch_offset=offset, **per_partition)],
                )
                for topic, offset in offsets.items()
            ],
            forgotten_topics_data=forgotten,
            **(values | options),
        )

    def fetch(self, offsets: dict[str, int], **options: Any) -> Any:
        """Fetch, and take the answer, which is there at once."""
        return self.ask(ApiKey.FETCH, VERSION, self.request(offsets, **options))

    def fetch_one(self, offset: int, **options: Any) -> Any:
        """Fetch the partition of topic "t"; its part of the answer."""
        answer = self.fetch({"t": offset}, **options)
        (topic,) = answer.responses
        (partition,) = topic.partitions
        return partition

    def park(self, offsets: dict[str, int], **options: Any) -> None:
        """Fetch, and wait."""
        self.send(ApiKey.FETCH, VERSION, self.request(offsets, max_wait_ms=500, **options))

    def fetched(self) -> Any:
        return self.answer(ApiKey.FETCH, VERSION)
