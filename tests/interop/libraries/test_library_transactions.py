"""Transactions and groups of both protocols with the Python client libraries and kcat."""

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition as AioTopicPartition
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
    Producer,
    TopicPartition,
    libversion,
)
from confluent_kafka.admin import AdminClient

from bench import wire
from bench.node import OwnedNode
from tests.interop.clients import Kcat

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.structs import OffsetAndMetadata as KafkaOffsetAndMetadata
    from kafka.structs import TopicPartition as KafkaTopicPartition

COUNT = 60
DEADLINE_S = 60.0

Ran = Callable[[str], None]


def create(node: OwnedNode, name: str, partitions: int = 1) -> None:
    """A topic that is led."""
    with node.connect() as connection:
        wire.create_topic(connection, name, partitions)
        wire.wait_until_led(connection, name, partitions)


def fill(node: OwnedNode, topic: str) -> None:
    """Numbers to read."""
    producer = Producer({"bootstrap.servers": node.address})
    for number in range(COUNT):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(DEADLINE_S) == 0


def committed_values(node: OwnedNode, topic: str, isolation: str = "read_committed") -> list[str]:
    """What a librdkafka consumer of that isolation level sees up to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.address,
            "group.id": "looks",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is None:
                found.append((message.value() or b"").decode())
            elif message.error().name() == "_PARTITION_EOF":  # type: ignore[union-attr]  # its stub says error() may be None twice
                return found
    finally:
        consumer.close()
    raise AssertionError(f"no end of {topic}, {len(found)} values")


def committed_offset(node: OwnedNode, group: str, topic: str) -> int:
    """The group's stable position."""
    admin = AdminClient({"bootstrap.servers": node.address})
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    future = admin.list_consumer_group_offsets([asked], require_stable=True)[group]
    offset: int = future.result(DEADLINE_S).topic_partitions[0].offset
    return offset


def copies() -> list[str]:
    """What a job that copies has to leave behind."""
    return [f"copy {number}" for number in range(COUNT)]


@pytest.fixture
def source(coordinators: OwnedNode, topic: str) -> str:
    """A topic with numbers; beside it an empty one, `<source>-sink`."""
    create(coordinators, topic)
    create(coordinators, f"{topic}-sink")
    fill(coordinators, topic)
    return topic


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_copies(coordinators: OwnedNode, source: str, ran: Ran, protocol: str) -> None:
    """One transaction aborted, then all committed, with the positions of the group."""
    ran(f"confluent-kafka {version('confluent-kafka')} (librdkafka {libversion()[0]})")
    producer = Producer({"bootstrap.servers": coordinators.address, "transactional.id": source})
    producer.init_transactions(DEADLINE_S)
    consumer = Consumer(
        {
            "bootstrap.servers": coordinators.address,
            "group.id": source,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    values = poll_values(consumer, COUNT)
    for commit in (False, True):
        producer.begin_transaction()
        for value in values:
            producer.produce(f"{source}-sink", f"copy {value}")
        position = [TopicPartition(source, 0, COUNT)]
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(position, metadata, DEADLINE_S)
        if commit:
            producer.commit_transaction(DEADLINE_S)
        else:
            producer.flush(DEADLINE_S)
            producer.abort_transaction(DEADLINE_S)
    consumer.close()
    assert committed_values(coordinators, f"{source}-sink") == copies()
    assert len(committed_values(coordinators, f"{source}-sink", "read_uncommitted")) == 2 * COUNT
    assert committed_offset(coordinators, source, source) == COUNT


def poll_values(consumer: Consumer, count: int) -> list[str]:
    """As many values as that."""
    found: list[str] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None:
            if message.error() is not None:
                raise KafkaException(message.error())
            found.append((message.value() or b"").decode())
    return found


def test_librdkafka_zombie(coordinators: OwnedNode, source: str, ran: Ran) -> None:
    """The second producer of an id fences the first."""
    ran(f"confluent-kafka {version('confluent-kafka')} (librdkafka {libversion()[0]})")
    settings = {
        "bootstrap.servers": coordinators.address,
        "transactional.id": source,
        "log_level": 0,
    }
    old, young = Producer(settings), Producer(settings)
    old.init_transactions(DEADLINE_S)
    old.begin_transaction()
    old.produce(f"{source}-sink", "old")
    old.flush(DEADLINE_S)
    young.init_transactions(DEADLINE_S)
    with pytest.raises(KafkaException) as caught:
        old.commit_transaction(DEADLINE_S)
    assert caught.value.args[0].fatal()
    young.begin_transaction()
    young.produce(f"{source}-sink", "young")
    young.commit_transaction(DEADLINE_S)
    assert committed_values(coordinators, f"{source}-sink") == ["young"]


def members(
    node: OwnedNode, group: str, subscription: str, count: int, **settings: Any
) -> list[Consumer]:
    """Several consumers of a group."""
    made = []
    for index in range(count):
        own = {key: value for key, value in settings.items() if value is not None}
        if "group.instance.id" in own:
            own["group.instance.id"] += str(index)
        consumer = Consumer(
            {
                "bootstrap.servers": node.address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "log_level": 0,
                **own,
            }
        )
        consumer.subscribe([subscription])
        made.append(consumer)
    return made


def balance(consumers: list[Consumer], partitions: int) -> list[set[tuple[str, int]]]:
    """Poll until they share the partitions evenly; what each has."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        for consumer in consumers:
            consumer.poll(0.05)
        owned = [{(at.topic, at.partition) for at in c.assignment()} for c in consumers]
        each = partitions // len(consumers)
        if all(len(one) == each for one in owned) and len(set.union(*owned)) == partitions:
            return owned
        assert time.monotonic() < deadline, owned


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"group.protocol": "consumer"}, id="consumer"),
        pytest.param(
            {"group.protocol": "consumer", "group.remote.assignor": "range"}, id="consumer-range"
        ),
        pytest.param({"partition.assignment.strategy": "cooperative-sticky"}, id="cooperative"),
        pytest.param({"partition.assignment.strategy": "roundrobin"}, id="roundrobin"),
        pytest.param(
            {"group.protocol": "consumer", "group.instance.id": "i"}, id="consumer-static"
        ),
        pytest.param({"group.instance.id": "i", "session.timeout.ms": 10_000}, id="classic-static"),
    ],
)
def test_librdkafka_groups(
    coordinators: OwnedNode, topic: str, ran: Ran, settings: dict[str, Any]
) -> None:
    """Two members share, static ones come back to what they had; the admin client looks on."""
    ran(f"confluent-kafka {version('confluent-kafka')} (librdkafka {libversion()[0]})")
    create(coordinators, topic, 4)
    is_new = settings.get("group.protocol") == "consumer"
    subscription = f"^{topic}.*" if is_new else topic
    consumers = members(coordinators, topic, subscription, 2, **settings)
    before = balance(consumers, 4)
    admin = AdminClient({"bootstrap.servers": coordinators.address})
    described = admin.describe_consumer_groups([topic])[topic].result(DEADLINE_S)
    assert len(described.members) == 2
    assert (described.type is ConsumerGroupType.CONSUMER) is is_new
    if "group.instance.id" in settings:
        consumers[0].close()
        (again,) = members(coordinators, topic, subscription, 1, **settings)
        assert balance([again, consumers[1]], 4) == before
        consumers[0] = again
    for consumer in consumers:
        consumer.close()


def test_kafka_python_copies(coordinators: OwnedNode, source: str, ran: Ran) -> None:
    """The protocol before KIP-890, as kafka-python knows it."""
    ran(f"kafka-python {version('kafka-python')}")
    producer = KafkaProducer(bootstrap_servers=coordinators.address, transactional_id=source)
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=coordinators.address,
        group_id=source,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    try:
        producer.init_transactions()
        values: list[str] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(values) < COUNT and time.monotonic() < deadline:
            for messages in consumer.poll(timeout_ms=200).values():
                values += [message.value.decode() for message in messages]
        position = {KafkaTopicPartition(source, 0): KafkaOffsetAndMetadata(COUNT, "", -1)}
        for commit in (False, True):
            producer.begin_transaction()
            for value in values:
                producer.send(f"{source}-sink", f"copy {value}".encode())
            producer.send_offsets_to_transaction(position, consumer.group_metadata())
            if commit:
                producer.commit_transaction()
            else:
                producer.flush(timeout=DEADLINE_S)
                producer.abort_transaction()
    finally:
        consumer.close()
        producer.close(timeout=10)
    assert committed_values(coordinators, f"{source}-sink") == copies()
    assert committed_offset(coordinators, source, source) == COUNT


def test_aiokafka_copies(coordinators: OwnedNode, source: str, ran: Ran) -> None:
    """The protocol before KIP-890, as aiokafka knows it."""
    ran(f"aiokafka {version('aiokafka')}")

    async def copy() -> None:
        async with (
            AIOKafkaProducer(
                bootstrap_servers=coordinators.address, transactional_id=source
            ) as producer,
            AIOKafkaConsumer(
                source,
                bootstrap_servers=coordinators.address,
                group_id=source,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                isolation_level="read_committed",
            ) as consumer,
        ):
            values: list[str] = []
            while len(values) < COUNT:
                for messages in (await consumer.getmany(timeout_ms=200)).values():
                    values += [message.value.decode() for message in messages]
            for commit in (False, True):
                await producer.begin_transaction()
                for value in values:
                    await producer.send_and_wait(f"{source}-sink", f"copy {value}".encode())
                await producer.send_offsets_to_transaction(
                    {AioTopicPartition(source, 0): COUNT}, source
                )
                if commit:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()

    asyncio.run(asyncio.wait_for(copy(), DEADLINE_S))
    assert committed_values(coordinators, f"{source}-sink") == copies()
    assert committed_offset(coordinators, source, source) == COUNT


@pytest.fixture
def open_transaction(coordinators: OwnedNode, source: str) -> Iterator[Producer]:
    """One that holds back what stands behind it in `<source>-sink`."""
    producer = Producer({"bootstrap.servers": coordinators.address, "transactional.id": source})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(f"{source}-sink", "open")
    producer.flush(DEADLINE_S)
    yield producer
    producer.abort_transaction(DEADLINE_S)


def test_kcat(coordinators: OwnedNode, source: str, kcat: Kcat, open_transaction: Producer) -> None:
    """Transactions of an old librdkafka, and its two isolation levels."""
    address = coordinators.address
    kcat.run(
        address, *("-P", "-t", source), *("-X", f"transactional.id={source}-kcat"), text=b"mine\n"
    )
    assert committed_values(coordinators, source)[-1] == "mine"
    sink = f"{source}-sink"
    for isolation, expected in (("read_committed", b""), ("read_uncommitted", b"open\n")):
        level = ("-X", f"isolation.level={isolation}")
        assert kcat.run(address, "-C", "-t", sink, "-e", "-q", *level) == expected
    out = kcat.run(
        address,
        *("-G", f"{source}-group", "-c", str(COUNT + 1), "-q"),
        *("-X", "auto.offset.reset=earliest", "-X", "isolation.level=read_committed", source),
    )
    assert len(out.splitlines()) == COUNT + 1
