"""Real consumers with `client.rack` read from a follower in it, while brokers are killed (KIP-392).

Broker 1 leads, consumers are in the rack of broker 2. Every record is seen once, in order.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition

from bench.cluster.cluster import Cluster
from bench.cluster.numbered import NumberedProducer, number_of
from bench.kafka_release import CONSOLE_CONSUMER
from tests.interop.cluster.conftest import RACKS
from tests.interop.tool_server import ToolServer

LEADER, FOLLOWER = 1, 2
ASSIGNMENT = [[1, 2, 3]]
READ_S = 60.0
STATISTICS_MS = 100


class RackReader(threading.Thread):
    """librdkafka in a rack: the numbers it has read, and from which broker it reads."""

    def __init__(self, bootstrap: str, topic: str, rack: str, isolation: str) -> None:
        super().__init__(name="rack-reader", daemon=True)
        self.numbers: list[int] = []
        self.brokers: list[int] = []
        self.errors: list[str] = []
        self._topic = topic
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{topic}-rack",
                "client.rack": rack,
                "isolation.level": isolation,
                "auto.offset.reset": "error",
                "statistics.interval.ms": STATISTICS_MS,
                "stats_cb": self._on_statistics,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def _on_statistics(self, text: str) -> None:
        partitions = json.loads(text)["topics"].get(self._topic, {}).get("partitions", {})
        broker = partitions.get("0", {}).get("broker", -1)
        if broker >= 0 and self.brokers[-1:] != [broker]:
            self.brokers.append(broker)

    def run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(500, timeout=0.1):
                if message.error() is not None:
                    self.errors.append(str(message.error()))
                    continue
                value = message.value()
                assert value is not None
                self.numbers.append(number_of(value))
        self._consumer.close()

    def wait_until(self, what: str, condition: Callable[[], bool]) -> None:
        """Until it has come to something."""
        deadline = time.monotonic() + READ_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {self.brokers}, {self.errors[:5]}"
            time.sleep(0.05)

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self.join()


@contextmanager
def written(cluster: Cluster, topic: str) -> Iterator[NumberedProducer]:
    """A topic that broker 1 leads, and is written to; all is acknowledged in the end."""
    cluster.create_topic(topic, ASSIGNMENT)
    cluster.wait_until("its leader", lambda: cluster.leader_of(topic) == LEADER)
    producer = NumberedProducer(cluster.bootstrap, topic, rate_per_s=200.0)
    producer.start()
    try:
        producer.wait_for_acks(100)
        yield producer
    finally:
        producer.stop()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_librdkafka_reads_in_its_rack_while_brokers_die(
    cluster: Cluster, topic: str, isolation: str
) -> None:
    """First the follower it reads from, which comes back; then the leader."""
    with written(cluster, topic) as producer:
        reader = RackReader(cluster.bootstrap, topic, RACKS[FOLLOWER - 1], isolation)
        reader.start()
        try:
            reader.wait_until("reads in its rack", lambda: reader.brokers[-1:] == [FOLLOWER])
            cluster.kill(FOLLOWER)
            producer.wait_for_acks(200)
            seen = len(reader.numbers)
            reader.wait_until("reads on", lambda: len(reader.numbers) > seen + 200)
            # What librdkafka says of itself comes after the records.
            reader.wait_until("another broker", lambda: reader.brokers[-1] != FOLLOWER)
            cluster.heal()
            cluster.wait_for_all()
            cluster.wait_until_in_sync([topic])
            cluster.kill(LEADER)
            producer.wait_for_acks(200)
            producer.finish()
            count = producer.acknowledged_count
            reader.wait_until("has read all", lambda: len(reader.numbers) >= count)
        finally:
            reader.stop()
        assert reader.numbers == list(range(count))
        assert reader.errors == []


def test_javas_console_consumer_reads_in_its_rack_while_the_follower_dies(
    cluster: Cluster, topic: str, kafka_tools: ToolServer
) -> None:
    """What it has not read when the follower dies it reads from the leader.

    In a named group: it joins again, since racks of its partition have changed (KIP-881), and goes
    on from what it has committed then.
    """
    with written(cluster, topic) as producer:
        lines: list[str] = []

        def consume() -> None:
            answer = kafka_tools.tool(
                CONSOLE_CONSUMER,
                *("--bootstrap-server", cluster.addresses[2], "--topic", topic),
                *("--group", f"{topic}-java"),
                *("--from-beginning", "--max-messages", "2000", "--timeout-ms", "60000"),
                *("--command-property", f"client.rack={RACKS[FOLLOWER - 1]}"),
            )
            lines.extend(answer.stdout.splitlines())

        consumer = threading.Thread(target=consume)
        consumer.start()
        producer.wait_for_acks(800)
        cluster.kill(FOLLOWER)
        producer.wait_for_acks(1_200)
        producer.finish()
        consumer.join(2 * READ_S)
        assert [number_of(line.encode()) for line in lines] == list(range(2000))
