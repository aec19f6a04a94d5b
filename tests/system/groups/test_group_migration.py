"""Real consumers change the group protocol one after the other while the group goes on reading."""

import asyncio
import threading
from collections import Counter

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from config.listeners import Listener
from protocol.messages.list_groups import ListGroupsRequest
from tests.fakes.network.client import Client
from tests.system.conftest import Node, StartNode, until

TOPIC, GROUP = "t", "g"
PARTITIONS = 6
QUICK = {
    "group_consumer_min_heartbeat_interval_ms": 200,
    "group_consumer_heartbeat_interval_ms": 200,
}

PASSING = {
    KafkaError._NO_OFFSET,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_MEMBER_EPOCH,
}
"""Commits that fail because the partition has just gone to somebody else."""


class Reader:
    """A consumer with a thread of its own, which notes what it reads and commits it."""

    def __init__(self, port: int, seen: "Counter[bytes]", protocol: str, strategy: str) -> None:
        settings: dict[str, object] = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": GROUP,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
        if protocol == "classic":
            settings |= {
                "partition.assignment.strategy": strategy,
                "heartbeat.interval.ms": 200,
                "session.timeout.ms": 10_000,
            }
        self._consumer = Consumer(settings)
        self._seen = seen
        self._stopping = threading.Event()
        self.owned: frozenset[int] = frozenset()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._consumer.subscribe([TOPIC])
            while not self._stopping.is_set():
                message = self._consumer.poll(0.05)
                self.owned = frozenset(p.partition for p in self._consumer.assignment())
                if message is None:
                    continue
                if message.error():
                    raise KafkaException(message.error())
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                assert value is not None
                self._commit(partition, offset + 1)
                self._seen[value] += 1
        except BaseException as error:  # noqa: BLE001 because the test looks at it
            self.failure = error
        finally:
            self._consumer.close()
            self.owned = frozenset()

    def _commit(self, partition: int, offset: int) -> None:
        try:
            self._consumer.commit(
                offsets=[TopicPartition(TOPIC, partition, offset)], asynchronous=False
            )
        except KafkaException as error:
            if error.args[0].code() not in PASSING:
                raise

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)
        if self.failure is not None:
            raise self.failure


class World:
    """A broker, a topic that gets records all the time, and readers."""

    def __init__(self, node: Node, client: Client) -> None:
        self.node, self.client = node, client
        self.seen: Counter[bytes] = Counter()
        self.readers: list[Reader] = []
        self.written = 0

    def start(self, protocol: str, strategy: str) -> None:
        self.readers.append(Reader(self.node.port, self.seen, protocol, strategy))

    async def replace_first(self, protocol: str, strategy: str) -> None:
        """A rolling restart of one consumer with another protocol."""
        self.start(protocol, strategy)
        await self.settle()
        await self.readers.pop(0).stop()
        await self.settle()

    async def settle(self) -> None:
        """Wait until every partition has one owner and all has been read that was written."""
        for partition in range(PARTITIONS):
            await self.client.produce(TOPIC, b"%d" % self.written, partition=partition)
            self.written += 1
        await until(self._is_settled)

    def _is_settled(self) -> bool:
        for reader in self.readers:
            if reader.failure is not None:
                raise reader.failure
        owned = [partition for reader in self.readers for partition in reader.owned]
        return (
            sorted(owned) == list(range(PARTITIONS))
            and all(reader.owned for reader in self.readers)
            and len(self.seen) == self.written
        )

    async def group_type(self) -> str:
        listed = await self.client.call(ListGroupsRequest())
        (group,) = [group for group in listed.groups if group.group_id == GROUP]
        return f"{group.group_type} {group.group_state}".lower()

    async def stop(self) -> None:
        for reader in self.readers:
            await reader.stop()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_consumers_roll_to_the_new_protocol_and_back(
    start_node: StartNode, strategy: str
) -> None:
    """Nothing is left out, and what was read twice is what was not committed in time."""
    node = await start_node(**QUICK)
    client = await node.client()
    await client.create_topic(TOPIC, PARTITIONS)
    world = World(node, client)
    try:
        for _ in range(2):
            # One after the other: a sticky assignor has told members something by then.
            world.start("classic", strategy)
            await world.settle()
        await until_type(world, "classic stable")

        await world.replace_first("consumer", strategy)
        assert (await world.group_type()).startswith("consumer")
        await world.replace_first("consumer", strategy)
        await until_type(world, "consumer stable")

        await world.replace_first("classic", strategy)
        assert (await world.group_type()).startswith("consumer")
        await world.replace_first("classic", strategy)
        await until_type(world, "classic stable")
        await world.settle()
    finally:
        await world.stop()
    assert sum(world.seen.values()) - world.written <= PARTITIONS
    for partition in range(PARTITIONS):
        assert await client.committed(GROUP, TOPIC, partition) == await client.offset(
            TOPIC, partition=partition
        )


async def until_type(world: World, expected: str) -> None:
    async def holds() -> bool:
        return await world.group_type() == expected

    await until(holds)


async def test_a_restart_in_the_middle_of_a_migration(start_node: StartNode) -> None:
    """Members of both protocols find their group again."""
    node = await start_node(**QUICK)
    client = await node.client()
    await client.create_topic(TOPIC, PARTITIONS)
    world = World(node, client)
    try:
        for _ in range(2):
            world.start("classic", "range")
        await world.settle()
        await world.replace_first("consumer", "range")
        listener = Listener("PLAINTEXT", "127.0.0.1", node.port)
        await node.stop()
        again = await start_node(**QUICK, listeners=(listener,))
        world.node, world.client = again, await again.client()
        await world.settle()
        # The coordinator hears what members have taken with their next heartbeats.
        await until_type(world, "consumer stable")
    finally:
        await world.stop()
