"""What actions work with: clients, waiting, reading offsets; and the check after each of them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from protocol.error_codes import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.fakes.network.client import EARLIEST, LATEST, Client, RefusedError
from tests.system.tiered.cluster import Cluster
from tests.system.tiered.offsets import TieredOffsets, violations

EARLIEST_LOCAL, LATEST_TIERED = -4, -5
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

WAIT_S = 90.0
"""Everything here happens within two task intervals; the rest is for a busy machine."""


class KeyValue(NamedTuple):
    """A record of a scenario; the time is the producer's, None: now."""

    key: str
    value: str
    timestamp_ms: int | None = None


class InvariantError(Exception):
    """An offset invariant does not hold. No AssertionError: it is not waited for."""


@dataclass(slots=True)
class TopicPlan:
    """What a scenario knows of its topic."""

    name: str
    partitions: int
    batches_per_segment: int
    tiered: bool


@dataclass(slots=True)
class Context:
    """One run of a scenario."""

    cluster: Cluster
    topics: dict[str, TopicPlan] = field(default_factory=dict)
    copied: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """Ids of segments that were seen in remote storage, and whose deletion nobody has told of."""
    checks: int = 0
    _clients: dict[int, Client] = field(default_factory=dict)

    # -- clients ---------------------------------------------------------------------------------

    async def client(self, broker: int | None = None) -> Client:
        """A connection to a broker, by default the first that runs; opened again when it broke."""
        number = self.cluster.living()[0] if broker is None else broker
        client = self._clients.get(number)
        if client is not None and client._reading.done():
            await client.close()
            client = None
        if client is None:
            node = self.cluster.nodes[number]
            client = self._clients[number] = await Client.connect(node.host, node.port, "scenario")
        return client

    async def close(self) -> None:
        """All connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def partition(self, topic: str, partition: int) -> Any:
        """A partition's part of the Metadata answer."""
        (found,) = (await (await self.client()).metadata(topic)).topics
        if found.error_code:
            raise RefusedError(ErrorCode(found.error_code), topic)
        for one in found.partitions:
            if one.partition_index == partition:
                if one.error_code:
                    raise RefusedError(ErrorCode(one.error_code), f"{topic}-{partition}")
                return one
        raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition}")

    async def leader(self, topic: str, partition: int) -> int:
        """The scenario's number of the broker that leads."""
        leader: int = (await self.partition(topic, partition)).leader_id
        return leader - 1

    async def leader_client(self, topic: str, partition: int) -> Client:
        """A connection to it."""
        return await self.client(await self.leader(topic, partition))

    # -- looking ---------------------------------------------------------------------------------

    async def list_offset(
        self, topic: str, partition: int, timestamp: int, isolation: int = READ_UNCOMMITTED
    ) -> tuple[int, int]:
        """(leader epoch, offset) as ListOffsets gives them, -1 for none."""
        wanted = ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
            timeout_ms=10_000,
        )
        client = await self.leader_client(topic, partition)
        answer = (await client.call(request)).topics[0].partitions[0]
        if answer.error_code:
            raise RefusedError(ErrorCode(answer.error_code), f"{topic}-{partition} at {timestamp}")
        return answer.leader_epoch, answer.offset

    async def offset(
        self, topic: str, partition: int, timestamp: int, isolation: int = READ_UNCOMMITTED
    ) -> int:
        """The offset alone."""
        return (await self.list_offset(topic, partition, timestamp, isolation))[1]

    async def tiered_offsets(self, topic: str, partition: int) -> TieredOffsets:
        """In the order that `offsets` asks for."""
        where = topic, partition
        leader = await self.leader(*where)
        first_local = self.cluster.first_local_segment(leader, *where)
        log_start = await self.offset(*where, EARLIEST)
        local_start = await self.offset(*where, EARLIEST_LOCAL)
        remote_end = await self.offset(*where, LATEST_TIERED) + 1
        segments = await asyncio.to_thread(self.cluster.view.segments, topic, partition)
        last_stable = await self.offset(*where, LATEST, READ_COMMITTED)
        log_end = await self.offset(*where, LATEST)
        return TieredOffsets(
            log_start=log_start,
            local_start=local_start,
            remote_end=remote_end,
            last_stable=last_stable,
            log_end=log_end,
            log_start_later=await self.offset(*where, EARLIEST),
            remote_segments=[(one.base_offset, one.end_offset + 1) for one in segments],
            first_local_segment=first_local,
        )

    async def check_offsets(self) -> None:
        """The five invariants, of every tiered partition of which a replica runs.

        An answer worth a retry is asked for again; a violation is final at once, except on a
        broker that is known to tell less than it has while it starts (see `Cluster.strict`).
        """
        if not self.cluster.living():
            return
        for plan in list(self.topics.values()):
            for partition in range(plan.partitions if plan.tiered else 0):
                if not await self._has_living_replica(plan.name, partition):
                    continue
                await self.eventually(lambda p=partition, t=plan.name: self._check_one(t, p))  # type: ignore[misc]  # the defaults of a lambda have no type
                self.checks += 1

    async def _has_living_replica(self, topic: str, partition: int) -> bool:
        if len(self.cluster.living()) == len(self.cluster.nodes):
            return True
        (found,) = (await (await self.client()).metadata(topic)).topics
        living = set(self.cluster.living())
        return not found.partitions or any(
            node_id - 1 in living
            for one in found.partitions
            if one.partition_index == partition
            for node_id in one.replica_nodes
        )

    async def _check_one(self, topic: str, partition: int) -> None:
        found = await self.tiered_offsets(topic, partition)
        wrong = violations(found)
        if wrong:
            text = f"{topic}-{partition}: {'; '.join(wrong)}: {found}"
            raise InvariantError(text) if self.cluster.strict else AssertionError(text)

    # -- waiting ---------------------------------------------------------------------------------

    async def eventually(
        self, attempt: Callable[[], Awaitable[Any]], timeout_s: float = WAIT_S
    ) -> Any:
        """Try until it neither asserts nor is refused with an error worth a retry."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return await attempt()
            except (AssertionError, ConnectionError, RefusedError, TimeoutError) as error:
                final = isinstance(error, RefusedError) and not error.code.retriable
                if final or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)

    async def note_copied(self, topic: str, partition: int) -> None:
        """Remember which segments are there now."""
        segments = await asyncio.to_thread(self.cluster.view.segments, topic, partition)
        known = self.copied.setdefault((topic, partition), set())
        known |= {one.segment_id for one in segments}

    # -- reading as applications do --------------------------------------------------------------

    async def consume(
        self, topic: str, partition: int, offset: int, *, committed: bool = True
    ) -> list[tuple[int, str, str]]:
        """(offset, key, value) from an offset to the end of the partition, by librdkafka."""
        return await asyncio.to_thread(self._consume, topic, partition, offset, committed)

    def _consume(
        self, topic: str, partition: int, offset: int, committed: bool
    ) -> list[tuple[int, str, str]]:
        addresses = [self.cluster.nodes[number].address for number in self.cluster.living()]
        consumer = Consumer(
            {
                "bootstrap.servers": ",".join(addresses),
                "group.id": "scenario",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "check.crcs": True,
                "fetch.wait.max.ms": 50,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        found: list[tuple[int, str, str]] = []
        deadline = time.monotonic() + WAIT_S
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            while time.monotonic() < deadline:
                message = consumer.poll(0.2)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    key, value = message.key() or b"", message.value() or b""
                    found.append((message.offset() or 0, key.decode(), value.decode()))
                elif error.name() == "_PARTITION_EOF":
                    return found
                elif not error.retriable() and error.name() != "UNKNOWN_TOPIC_OR_PART":
                    raise KafkaException(error)
        finally:
            consumer.close()
        raise AssertionError(f"{topic}-{partition}: the end was not reached; {len(found)} records")
