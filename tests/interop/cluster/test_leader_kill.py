"""Kill -9 of the leader while a client writes: it goes on, and nothing is lost or doubled.

Topics have three replicas and two in sync at least. Every library writes with acks=all, and begins
with the broker that is killed; a group reads along. Afterwards that broker comes back, and all
replicas are in sync and equal byte for byte.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError

from bench.cluster.cluster import Cluster
from bench.cluster.numbered import Found, compare, number_of
from bench.cluster.replicas import wait_until_equal
from bench.kafka_release import CONSOLE_PRODUCER, KafkaRelease
from tests.interop.clients import AioKafka, ClientAdapter, Confluent, KafkaPython
from tests.interop.cluster.writers import (
    AioKafkaWriter,
    ConfluentWriter,
    JavaWriter,
    KafkaPythonWriter,
    LinesWriter,
    Writer,
    kcat_writer,
)
from tests.interop.tool_server import ToolServer

SPREAD = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
ONE = ((2, 3, 1),)
ACKS = 300
READ_S = 60.0

MakeWriter = Callable[[str, str, int], Writer]


class GroupReader(threading.Thread):
    """A member of a group that reads along and commits; what it saw, by partition and offset."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        super().__init__(name="group-reader", daemon=True)
        self.seen: dict[tuple[int, int], int] = {}
        self.errors: list[str] = []
        self.changed: list[str] = []
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])

    def run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, timeout=0.2):
                error = message.error()
                if error is not None:
                    if error.fatal() or error.code() == KafkaError.OFFSET_OUT_OF_RANGE:
                        self.errors.append(str(error))
                    continue
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                assert value is not None
                number = number_of(value)
                before = self.seen.setdefault((partition, offset), number)
                if before != number:
                    self.changed.append(f"{partition}@{offset}: {before}, then {number}")
        self._consumer.close()

    def wait_for(self, count: int) -> None:
        """Until it has seen so many records."""
        deadline = time.monotonic() + READ_S
        while len(self.seen) < count:
            assert not self.errors, self.errors
            assert time.monotonic() < deadline, f"read {len(self.seen)} of {count}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self.join()


@contextmanager
def reading(cluster: Cluster, topic: str) -> Iterator[GroupReader]:
    """A group that reads a topic."""
    reader = GroupReader(cluster.bootstrap, topic, f"{topic}-readers")
    reader.start()
    try:
        yield reader
    finally:
        reader.stop()


def write_through_a_kill(
    cluster: Cluster,
    topic: str,
    make_writer: MakeWriter,
    assignment: Sequence[Sequence[int]] = SPREAD,
) -> Found:
    """The whole experiment; the leader of partition 0 is killed once, and comes back."""
    partitions = len(assignment)
    cluster.create_topic(topic, assignment)
    victim = cluster.leader_of(topic, 0)
    addresses = cluster.addresses[victim - 1 :] + cluster.addresses[: victim - 1]
    writer = make_writer(",".join(addresses), topic, partitions)
    with reading(cluster, topic) as reader:
        writer.start()
        writer.wait_for_acks(ACKS)
        reader.wait_for(1)
        cluster.kill(victim)
        writer.wait_for_acks(ACKS)
        cluster.wait_until(
            "partitions of the dead broker have other leaders",
            lambda: all(cluster.leader_of(topic, p) not in {victim, -1} for p in range(partitions)),
        )
        writer.wait_for_acks(ACKS)
        cluster.heal()
        cluster.wait_for_all()
        cluster.wait_until_in_sync([topic])
        writer.wait_for_acks(ACKS)
        writer.finish()
        found = compare(topic, writer.acknowledged, cluster.connected_to_leader)
        assert found.problems == [], found.problems[:10]
        reader.wait_for(found.records)
        assert reader.changed == []
        assert len(reader.seen) == found.records
    wait_until_equal(cluster, topic, partitions)
    return found


@pytest.mark.parametrize(
    ("library", "client"),
    [
        (ConfluentWriter, Confluent),
        (KafkaPythonWriter, KafkaPython),
        (AioKafkaWriter, AioKafka),
    ],
)
def test_python_clients_go_on(
    cluster: Cluster,
    topic: str,
    library: MakeWriter,
    client: type[ClientAdapter],
    ran: Callable[[str], None],
) -> None:
    """Every library meets errors, looks for the new leader and repeats what was not answered."""
    ran(f"{client.name} {client.version}")
    found = write_through_a_kill(cluster, topic, library)
    assert found.records >= 4 * ACKS


@pytest.mark.usefixtures("kcat")
def test_kcat_goes_on(cluster: Cluster, topic: str) -> None:
    """It ends well, so all its lines are there."""
    found = write_through_a_kill(cluster, topic, kcat_writer, ONE)
    assert found.records >= 4 * ACKS


def test_java_client_goes_on(
    cluster: Cluster, topic: str, kafka_tools: ToolServer, tmp_path: Path
) -> None:
    def make(bootstrap: str, name: str, partitions: int) -> JavaWriter:
        return JavaWriter(kafka_tools, tmp_path, bootstrap, name, partitions)

    found = write_through_a_kill(cluster, topic, make)
    assert found.records == JavaWriter.SECONDS * 200


def test_console_producer_goes_on(
    cluster: Cluster, topic: str, kafka_release: KafkaRelease
) -> None:
    """The Java client's own defaults; the tool ends when its input does, in a JVM of its own."""

    def make(bootstrap: str, name: str, _partitions: int) -> LinesWriter:
        arguments = ["--bootstrap-server", bootstrap, "--topic", name]
        # Of its own it repeats three times: over in less than a second.
        arguments += ["--message-send-max-retries", "1000000"]
        return LinesWriter(kafka_release.tool_command(CONSOLE_PRODUCER, arguments))

    found = write_through_a_kill(cluster, topic, make, ONE)
    assert found.records >= 4 * ACKS
