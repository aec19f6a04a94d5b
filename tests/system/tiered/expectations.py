"""Actions that only check: what must hold within a while; see `actions`.

Source: Kafka, storage/src/test/java/org/apache/kafka/tiered/storage/actions.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.fakes.network.client import EARLIEST
from tests.system.tiered.broker_actions import reassign
from tests.system.tiered.context import Context
from tests.system.tiered.topic_actions import until_led
from tiered.metadata.partitioner import metadata_partition
from tiered.segment_metadata import TopicIdPartition

METADATA_TOPIC = "__remote_log_metadata"


@dataclass(frozen=True, slots=True)
class ExpectLeader:
    """A broker in sync leads; `elect` makes it the preferred one and holds an election."""

    topic: str
    partition: int
    broker: int
    elect: bool

    async def run(self, context: Context) -> None:
        where = self.topic, self.partition
        node_id = context.cluster.node_id(self.broker)
        await ExpectBrokerInISR(*where, self.broker).run(context)
        if self.elect:
            now = (await context.partition(*where)).replica_nodes
            others = [n - 1 for n in now if n != node_id]
            await reassign(context, *where, [self.broker, *others])
            chosen = TopicPartitions(topic=self.topic, partitions=[self.partition])
            request = ElectLeadersRequest(
                election_type=0, topic_partitions=[chosen], timeout_ms=10_000
            )
            await (await context.client()).call(request)

        async def leads() -> None:
            found = await context.leader(*where)
            assert found == self.broker, f"{where} is led by {found}"

        await context.eventually(leads)
        await until_led(context, *where)


@dataclass(frozen=True, slots=True)
class ExpectBrokerInISR:
    """A replica is in sync."""

    topic: str
    partition: int
    broker: int

    async def run(self, context: Context) -> None:
        async def in_sync() -> None:
            isr = (await context.partition(self.topic, self.partition)).isr_nodes
            assert context.cluster.node_id(self.broker) in isr, f"in sync: {isr}"

        await context.eventually(in_sync)


@dataclass(frozen=True, slots=True)
class ExpectLeaderEpochCheckpoint:
    """The first leader epoch of the log, and the offset it begins with.

    Asked of the leader by ListOffsets, which tells the epoch of the log start.
    """

    broker: int
    topic: str
    partition: int
    begin_epoch: int
    start_offset: int

    async def run(self, context: Context) -> None:
        async def begins() -> None:
            found = await context.list_offset(self.topic, self.partition, EARLIEST)
            assert found == (self.begin_epoch, self.start_offset), f"the log begins with {found}"

        await context.eventually(begins)


@dataclass(frozen=True, slots=True)
class ExpectListOffsets:
    """(leader epoch, offset) of a timestamp or one of the special ones; -1 for none."""

    topic: str
    partition: int
    timestamp: int
    epoch: int
    offset: int

    async def run(self, context: Context) -> None:
        async def told() -> None:
            found = await context.list_offset(self.topic, self.partition, self.timestamp)
            wanted = (self.epoch, self.offset)
            assert found == wanted, f"ListOffsets {self.timestamp}: {found}, not {wanted}"

        # Kafka's own action asks once; what has just been deleted may not show at once.
        await context.eventually(told, 5.0)


@dataclass(frozen=True, slots=True)
class ExpectEmptyRemoteStorage:
    """No object of a partition is left."""

    topic: str
    partition: int

    async def run(self, context: Context) -> None:
        async def empty() -> None:
            view = context.cluster.view
            left = await asyncio.to_thread(view.keys_of, self.topic, self.partition)
            assert not left, f"left in the bucket: {left}"

        await context.eventually(empty)
        context.copied.pop((self.topic, self.partition), None)


@dataclass(frozen=True, slots=True)
class ExpectTopicIdToMatchInRemoteStorage:
    """All objects of topics of that name lie under the topic's present id."""

    topic: str

    async def run(self, context: Context) -> None:
        (found,) = (await (await context.client()).metadata(self.topic)).topics
        ids = await asyncio.to_thread(context.cluster.view.topic_ids, self.topic)
        assert ids == {found.topic_id}, f"{self.topic} is {found.topic_id}, in the bucket: {ids}"


@dataclass(frozen=True, slots=True)
class ExpectUserTopicMappedToMetadataPartitions:
    """Kafka's partitioner spreads a topic's partitions over at least these metadata partitions."""

    topic: str
    metadata_partitions: Sequence[int]

    async def run(self, context: Context) -> None:
        answer = await (await context.client()).metadata(self.topic, METADATA_TOPIC)
        by_name = {topic.name: topic for topic in answer.topics}
        count = len(by_name[METADATA_TOPIC].partitions)
        topic = by_name[self.topic]
        used = {
            metadata_partition(
                TopicIdPartition(topic.topic_id, self.topic, one.partition_index), count
            )
            for one in topic.partitions
        }
        assert used >= set(self.metadata_partitions), f"used: {sorted(used)}"
