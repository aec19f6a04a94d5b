"""Actions that make topics, write and read them; see `actions` for the whole language.

Source: Kafka, storage/src/test/java/org/apache/kafka/tiered/storage/actions.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from protocol.error_codes import ErrorCode
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
from protocol.records.record import Record
from tests.fakes.network.client import LATEST, RefusedError
from tests.system.tiered.context import EARLIEST_LOCAL, Context, KeyValue, TopicPlan


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
            await until_led(context, self.topic, partition)


async def until_led(context: Context, topic: str, partition: int) -> None:
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
            await until_led(context, self.topic, partition)


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
        # Times that grow: an equal one gets no entry in the time index, which rolls segments here.
        now_ms = int(time.time() * 1000)
        for number, record in enumerate(self.records):
            timestamp_ms = record.timestamp_ms
            answer = await client.try_produce(
                self.topic,
                [(record.key.encode(), record.value.encode())],
                partition=self.partition,
                timestamp_ms=now_ms + number if timestamp_ms is None else timestamp_ms,
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
            fetched = after["get_range"] - before["get_range"]
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
