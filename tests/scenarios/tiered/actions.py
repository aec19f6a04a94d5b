"""The actions of a scenario: those of Kafka's TieredStorageTestHarness, one class each.

Each does its work on a running cluster and returns when what it expects holds; what does not come
about within `context.WAIT_S` fails the scenario. Names, arguments and meaning are Kafka's, seen
from outside: where Kafka's harness looks into the broker's objects, these ask by the protocol, look
into the bucket and into log directories.

Source: Kafka, storage/src/test/java/org/apache/kafka/tiered/storage/actions.
"""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.records.record import Record
from tests.fakes.client import EARLIEST, LATEST, RefusedError
from tests.scenarios.tiered.context import EARLIEST_LOCAL, Context, KeyValue, TopicPlan
from tiered.metadata_partitioner import metadata_partition
from tiered.segment_metadata import TopicIdPartition

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
METADATA_TOPIC = "__remote_log_metadata"


class Action(Protocol):
    """One step."""

    async def run(self, context: Context) -> None:
        """Do it, and wait until what it expects holds."""
        ...


def check(code: int, message: str | None) -> None:
    """Raise what a client would be told."""
    if code:
        raise RefusedError(ErrorCode(code), message)


@dataclass(frozen=True, slots=True)
class ExpectedSegment:
    """A segment that must be in remote storage after the next Produce."""

    broker: int
    base_offset: int
    records: tuple[KeyValue, ...]


# -- topics ----------------------------------------------------------------------------------------


def one_batch_segments(batches: int, *, tiered: bool) -> dict[str, str]:
    """Topic settings with which a segment holds so many batches of one small record.

    Every batch gets an entry in both indexes, and a time index that has room for so many entries of
    12 bytes makes the segment roll. Whatever is rolled and copied may go from the local side.
    """
    return {
        "remote.storage.enable": str(tiered).lower(),
        "index.interval.bytes": "1",
        "segment.index.bytes": str(12 * batches),
        "local.retention.bytes": "1",
    }


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic whose segments hold `batches_per_segment` batches."""

    topic: str
    partitions: int
    replication_factor: int
    batches_per_segment: int
    assignment: Mapping[int, Sequence[int]] | None
    tiered: bool
    configs: Mapping[str, str] = field(default_factory=dict)

    async def run(self, context: Context) -> None:
        settings = {
            **one_batch_segments(self.batches_per_segment, tiered=self.tiered),
            **self.configs,
        }
        node_id = context.cluster.node_id
        topic = CreatableTopic(
            name=self.topic,
            num_partitions=-1 if self.assignment else self.partitions,
            replication_factor=-1 if self.assignment else self.replication_factor,
            assignments=[
                CreatableReplicaAssignment(
                    partition_index=index, broker_ids=[node_id(broker) for broker in brokers]
                )
                for index, brokers in (self.assignment or {}).items()
            ],
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in settings.items()],
        )
        client = await context.client()
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        (result,) = (await client.call(request)).topics
        check(result.error_code, result.error_message)
        plan = TopicPlan(self.topic, self.partitions, self.batches_per_segment, self.tiered)
        context.topics[self.topic] = plan
        for partition in range(self.partitions):
            await _until_led(context, self.topic, partition)


async def _until_led(context: Context, topic: str, partition: int) -> None:
    async def led() -> None:
        await context.offset(topic, partition, LATEST)

    await context.eventually(led)


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Grow a topic to `partitions`."""

    topic: str
    partitions: int
    assignment: Mapping[int, Sequence[int]] | None = None

    async def run(self, context: Context) -> None:
        plan = context.topics[self.topic]
        assignments = None
        if self.assignment is not None:
            node_id = context.cluster.node_id
            assignments = [
                CreatePartitionsAssignment(broker_ids=[node_id(b) for b in self.assignment[index]])
                for index in range(plan.partitions, self.partitions)
            ]
        wanted = CreatePartitionsTopic(
            name=self.topic, count=self.partitions, assignments=assignments
        )
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000)
        (result,) = (await (await context.client()).call(request)).results
        check(result.error_code, result.error_message)
        first, plan.partitions = plan.partitions, self.partitions
        for partition in range(first, self.partitions):
            await _until_led(context, self.topic, partition)


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete it, or (`delete=False`) only wait for what its deletion of segments was said to do."""

    topic: str
    expected: Mapping[int, int] = field(default_factory=dict)
    """Partition to how many remote segments go."""
    delete: bool = True

    async def run(self, context: Context) -> None:
        if self.delete:
            await (await context.client()).delete_topic(self.topic)
            context.topics.pop(self.topic)
        await _deleted(context, self.topic, self.expected)


async def _deleted(context: Context, topic: str, expected: Mapping[int, int]) -> None:
    """Until exactly so many of the known segments of each partition are gone."""
    for partition, count in expected.items():
        known = context.copied.setdefault((topic, partition), set())

        async def gone(partition: int = partition, count: int = count) -> set[str]:
            view = context.cluster.view
            segments = await asyncio.to_thread(view.segments, topic, partition)
            missing = context.copied[topic, partition] - {one.segment_id for one in segments}
            assert len(missing) == count, f"{topic}-{partition}: {len(missing)} of {count} deleted"
            return missing

        known -= await context.eventually(gone)


# -- records ---------------------------------------------------------------------------------------


def visible(record: Record) -> tuple[int, str, str]:
    """(offset, key, value), as `Context.consume` gives it."""
    return record.offset, (record.key or b"").decode(), (record.value or b"").decode()


@dataclass(frozen=True, slots=True)
class Produce:
    """One batch per record; then wait for the tiers to look as expected, and read it all back."""

    topic: str
    partition: int
    records: tuple[KeyValue, ...]
    offloaded: tuple[ExpectedSegment, ...]
    earliest_local_offset: int | None

    async def run(self, context: Context) -> None:
        where = self.topic, self.partition
        start = await context.offset(*where, LATEST)
        client = await context.leader_client(*where)
        for record in self.records:
            answer = await client.try_produce(
                self.topic,
                [(record.key.encode(), record.value.encode())],
                partition=self.partition,
                timestamp_ms=record.timestamp_ms,
            )
            check(answer.error_code, answer.error_message)
        tiered = context.topics[self.topic].tiered
        await context.eventually(lambda: self._earliest_local(context, start))
        if tiered:
            await context.eventually(lambda: self._in_remote(context, start))
            await context.note_copied(*where)
        read = await context.consume(*where, start)
        expected = [(start + n, record.key, record.value) for n, record in enumerate(self.records)]
        assert read == expected, f"{self.topic}-{self.partition}: read {read}"

    async def _earliest_local(self, context: Context, start: int) -> None:
        """On every replica that runs; the leader is asked, directories are looked into."""
        expected = self.earliest_local_offset
        if expected is None:
            per_segment = context.topics[self.topic].batches_per_segment
            count = len(self.records)
            expected = start + count - count % per_segment - 1
        where = self.topic, self.partition
        replicas = (await context.partition(*where)).replica_nodes
        for broker in context.cluster.living():
            if context.cluster.node_id(broker) in replicas:
                first = context.cluster.first_local_segment(broker, *where)
                assert first == expected, f"broker {broker}: local log of {where} begins at {first}"
        if context.topics[self.topic].tiered:
            told = await context.offset(*where, EARLIEST_LOCAL)
            assert told == expected, f"EARLIEST_LOCAL of {where} is {told}"

    async def _in_remote(self, context: Context, start: int) -> None:
        """The bucket holds just the expected of these records, in the expected segments."""
        segments = await asyncio.to_thread(
            context.cluster.view.segments, self.topic, self.partition
        )
        found = [
            visible(record)[1:]
            for segment in segments
            for record in segment.records
            if record.offset >= start
        ]
        expected = [(r.key, r.value) for segment in self.offloaded for r in segment.records]
        assert found == expected, f"{self.topic}-{self.partition}: in the bucket: {found}"
        bases = {segment.base_offset for segment in segments}
        wanted = {segment.base_offset for segment in self.offloaded}
        assert wanted <= bases, f"{self.topic}-{self.partition}: segments begin at {bases}"


@dataclass(frozen=True, slots=True)
class Consume:
    """Read from an offset to the end, with both isolation levels.

    Attributes:
        total: Records read.
        from_remote: How many records at or above the offset are in remote storage: the first ones.
        fetches_max: At most so many calls to the object store for it; None: not looked at.
    """

    topic: str
    partition: int
    offset: int
    total: int
    from_remote: int
    fetches_max: int | None = None

    async def run(self, context: Context) -> None:
        where = self.topic, self.partition
        leader = await context.leader(*where)
        before = context.cluster.fetch_counts(leader)
        read = await context.consume(*where, self.offset, committed=False)
        committed = await context.consume(*where, self.offset, committed=True)
        assert committed == read
        assert len(read) == self.total, f"read {read}"
        segments = await asyncio.to_thread(
            context.cluster.view.segments, self.topic, self.partition
        )
        remote = [
            visible(record)
            for segment in segments
            for record in segment.records
            if record.offset >= self.offset
        ]
        assert len(remote) == self.from_remote, f"in the bucket: {remote}"
        assert read[: self.from_remote] == remote
        after = context.cluster.fetch_counts(leader)
        if before is not None and after is not None and self.fetches_max is not None:
            fetched = after["get"] - before["get"]
            assert fetched <= self.fetches_max, f"{fetched} GETs"


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Raise the log start; remote segments wholly below it go."""

    topic: str
    partition: int
    before_offset: int
    expected: Mapping[int, int] = field(default_factory=dict)

    async def run(self, context: Context) -> None:
        client = await context.leader_client(self.topic, self.partition)
        low = await client.delete_records(self.topic, self.before_offset, partition=self.partition)
        assert low == self.before_offset
        await _deleted(context, self.topic, self.expected)


# -- brokers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StopBroker:
    """As an operator does; nobody asks it anything any more."""

    broker: int

    async def run(self, context: Context) -> None:
        await asyncio.to_thread(context.cluster.stop, self.broker)


@dataclass(frozen=True, slots=True)
class StartBroker:
    """Until every partition of the scenario is led again, if all brokers run."""

    broker: int

    async def run(self, context: Context) -> None:
        await asyncio.to_thread(context.cluster.start, self.broker)
        for plan in context.topics.values():
            for partition in range(plan.partitions):
                await _until_led(context, plan.name, partition)


@dataclass(frozen=True, slots=True)
class BounceBroker:
    """Stop, then start."""

    broker: int

    async def run(self, context: Context) -> None:
        await StopBroker(self.broker).run(context)
        await StartBroker(self.broker).run(context)


@dataclass(frozen=True, slots=True)
class EraseBrokerStorage:
    """Remove files of a stopped broker from its log directories, by name; folders whole."""

    broker: int
    matches: Callable[[str], bool]

    async def run(self, context: Context) -> None:
        assert self.broker not in context.cluster.living(), "it is still running"
        erased = 0
        for log_dir in context.cluster.log_dirs(self.broker):
            for path in log_dir.iterdir():
                if self.matches(path.name):
                    erased += 1
                    if path.is_dir():
                        await asyncio.to_thread(shutil.rmtree, path)
                    else:
                        path.unlink()
        assert erased, "nothing matched"


@dataclass(frozen=True, slots=True)
class UpdateBrokerConfig:
    """Settings of one running broker."""

    broker: int
    set: Mapping[str, str]
    unset: Sequence[str] = ()

    async def run(self, context: Context) -> None:
        name = str(context.cluster.node_id(self.broker))
        await _alter(context, BROKER_RESOURCE, name, self.set, self.unset)


@dataclass(frozen=True, slots=True)
class UpdateTopicConfig:
    """Settings of a topic."""

    topic: str
    set: Mapping[str, str]
    unset: Sequence[str] = ()

    async def run(self, context: Context) -> None:
        await _alter(context, TOPIC_RESOURCE, self.topic, self.set, self.unset)
        plan = context.topics[self.topic]
        enabled = self.set.get("remote.storage.enable")
        if enabled is not None:
            plan.tiered = enabled == "true"


async def _alter(
    context: Context, kind: int, name: str, values: Mapping[str, str], unset: Sequence[str]
) -> None:
    configs = [
        AlterableConfig(name=k, config_operation=SET, value=v) for k, v in values.items()
    ] + [AlterableConfig(name=k, config_operation=DELETE, value=None) for k in unset]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = (await (await context.client()).call(request)).responses
    check(result.error_code, result.error_message)


# -- replicas --------------------------------------------------------------------------------------


async def _reassign(context: Context, topic: str, partition: int, brokers: Sequence[int]) -> None:
    wanted = [context.cluster.node_id(broker) for broker in brokers]
    change = ReassignablePartition(partition_index=partition, replicas=wanted)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=10_000, topics=[ReassignableTopic(name=topic, partitions=[change])]
    )
    answer = await (await context.client()).call(request)
    check(answer.error_code, answer.error_message)
    result = answer.responses[0].partitions[0]
    check(result.error_code, result.error_message)

    async def done() -> None:
        found = await context.partition(topic, partition)
        assert found.replica_nodes == wanted, f"replicas are {found.replica_nodes}"

    await context.eventually(done)


@dataclass(frozen=True, slots=True)
class ReassignReplica:
    """Give a partition these replicas, the first preferred."""

    topic: str
    partition: int
    brokers: Sequence[int]

    async def run(self, context: Context) -> None:
        await _reassign(context, self.topic, self.partition, self.brokers)


@dataclass(frozen=True, slots=True)
class ShrinkReplica:
    """Leave a partition only those of its replicas that are named."""

    topic: str
    partition: int
    brokers: Sequence[int]

    async def run(self, context: Context) -> None:
        now = (await context.partition(self.topic, self.partition)).replica_nodes
        kept = [b for b in self.brokers if context.cluster.node_id(b) in now]
        await _reassign(context, self.topic, self.partition, kept)


@dataclass(frozen=True, slots=True)
class AlterLogDir:
    """Move a replica to the broker's other log directory, and wait until it is there."""

    topic: str
    partition: int
    broker: int

    async def run(self, context: Context) -> None:
        cluster = context.cluster
        source = cluster.partition_directory(self.broker, self.topic, self.partition)
        assert source is not None, "no replica there"
        (target,) = (d for d in cluster.log_dirs(self.broker) if d != source.parent)
        topic = AlterReplicaLogDirTopic(name=self.topic, partitions=[self.partition])
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=str(target), topics=[topic])]
        )
        answer = await (await context.client(self.broker)).call(request)
        check(answer.results[0].partitions[0].error_code, None)

        async def moved() -> None:
            assert (target / source.name).is_dir()
            assert not source.is_dir()

        await context.eventually(moved)


# -- expectations ----------------------------------------------------------------------------------


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
            await _reassign(context, *where, [self.broker, *others])
            chosen = TopicPartitions(topic=self.topic, partitions=[self.partition])
            request = ElectLeadersRequest(
                election_type=0, topic_partitions=[chosen], timeout_ms=10_000
            )
            await (await context.client()).call(request)

        async def leads() -> None:
            found = await context.leader(*where)
            assert found == self.broker, f"{where} is led by {found}"

        await context.eventually(leads)
        await _until_led(context, *where)


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


ACTIONS: tuple[type, ...] = (
    CreateTopic,
    CreatePartitions,
    Produce,
    Consume,
    BounceBroker,
    StartBroker,
    StopBroker,
    EraseBrokerStorage,
    ReassignReplica,
    ShrinkReplica,
    AlterLogDir,
    DeleteRecords,
    DeleteTopic,
    UpdateBrokerConfig,
    UpdateTopicConfig,
    ExpectLeader,
    ExpectBrokerInISR,
    ExpectLeaderEpochCheckpoint,
    ExpectListOffsets,
    ExpectEmptyRemoteStorage,
    ExpectTopicIdToMatchInRemoteStorage,
    ExpectUserTopicMappedToMetadataPartitions,
)
"""The 22 of Kafka's harness."""
