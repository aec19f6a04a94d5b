"""Consumer groups of the new protocol with a real client, over a crash of the broker."""

import asyncio
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from config.listeners import Listener
from tests.system.conftest import Node, StartNode, until

pytestmark = pytest.mark.quick

PARTITIONS = 6
TOPIC = "events"
GROUP = "readers"
MESSAGES = 60


def create(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        future.result(60)


def fill(address: str) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number in range(MESSAGES):
        producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def consumers(address: str, count: int) -> list[Consumer]:
    made = []
    for _ in range(count):
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([TOPIC])
        made.append(consumer)
    return made


def poll(members: list[Consumer], enough: Callable[[int], bool]) -> int:
    """Poll them in turn until enough messages came; fails when they do not come in time."""
    seen = 0
    for _ in range(600):
        for member in members:
            message = member.poll(0.05)
            if message is not None:
                assert message.error() is None, message.error()
                seen += 1
        if enough(seen):
            return seen
    raise AssertionError(f"only {seen} messages")


def shares(members: list[Consumer]) -> list[int]:
    return sorted(len(member.assignment()) for member in members)


def share_and_read(address: str, members: list[Consumer]) -> None:
    """Every message once: they come when nothing is handed from member to member any more."""
    even = [PARTITIONS // len(members)] * len(members)
    assert poll(members, lambda _: shares(members) == even) == 0
    fill(address)
    assert poll(members, lambda seen: seen >= MESSAGES) == MESSAGES
    assert shares(members) == even


async def test_members_share_commit_and_leave(node: Node) -> None:
    address = f"127.0.0.1:{node.port}"

    def run() -> None:
        create(address)
        members = consumers(address, 3)
        try:
            share_and_read(address, members)
            for member in members:
                member.commit(asynchronous=False)
            members.pop().close()
            share_and_read(address, members)
        finally:
            for member in members:
                member.close()

    await asyncio.to_thread(run)
    assert node.broker.groups is not None
    _, group = node.broker.groups.find_group(GROUP)
    assert group is not None
    assert group.type.value == "Consumer"
    # A member that closes does not wait for what becomes of it.
    await until(lambda: group.state_name == "Empty")


async def test_group_outlives_the_broker(start_node: StartNode) -> None:
    """Members, epochs and assignments are in the log: nobody joins again, nothing is revoked."""
    first = await start_node()
    port = first.port
    address = f"127.0.0.1:{port}"
    await asyncio.to_thread(create, address)
    members = consumers(address, 2)
    try:
        await asyncio.to_thread(share_and_read, address, members)
        assert first.broker.groups is not None
        _, before = first.broker.groups.find_group(GROUP)
        assert before is not None
        epoch, names = before.generation_or_epoch, before.member_count
        await first.stop()
        second = await start_node(listeners=(Listener("PLAINTEXT", "127.0.0.1", port),))
        await asyncio.to_thread(fill, address)
        await asyncio.to_thread(poll, members, lambda seen: seen >= MESSAGES)
        assert second.broker.groups is not None
        _, after = second.broker.groups.find_group(GROUP)
        assert after is not None
        assert (after.generation_or_epoch, after.member_count) == (epoch, names)
        assert shares(members) == [3, 3]
    finally:
        for member in members:
            await asyncio.to_thread(member.close)
