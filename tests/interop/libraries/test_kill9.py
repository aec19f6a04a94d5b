"""Kill -9 under load: no acknowledged record is lost, reordered or written twice.

An idempotent librdkafka producer sends numbered records without pause while the broker's process is
killed and started again. Afterwards the log is read and compared with what was acknowledged:

- every acknowledged record stands at the offset it was acknowledged with;
- no number stands twice, acknowledged or not;
- numbers of one partition ascend.
"""

import random
import struct
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from typing_extensions import override

from bench import wire
from bench.node import OwnedNode
from bench.verify import verify_partition
from tests.interop.conftest import new_node

TOPIC = "crash"
PARTITIONS = 3


class LoadingProducer(threading.Thread):
    """Sends numbered records until told to stop; remembers what was acknowledged where."""

    def __init__(self, address: str) -> None:
        super().__init__(name="producer", daemon=True)
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self.sent = 0
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 300_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                "queue.buffering.max.messages": 2_000,
                "error_cb": self._on_error,
                "log_level": 0,  # refused connections are what this test is about
            }
        )

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.failures.append(f"fatal: {error}")

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.acknowledged[partition][struct.unpack_from(">q", value)[0]] = offset

    @override
    def run(self) -> None:
        payload = b"." * 200
        while not self._stopping.is_set() and not self.failures:
            try:
                self._producer.produce(
                    TOPIC,
                    struct.pack(">q", self.sent) + payload,
                    partition=self.sent % PARTITIONS,
                    on_delivery=self._on_delivery,
                )
                self.sent += 1
            except BufferError:
                self._producer.poll(0.01)
            except KafkaException as error:  # after a fatal error nothing can be sent any more
                self.failures.append(str(error))
            if self.sent % 20 == 0:
                self._producer.poll(0)
                time.sleep(0.002)

    def stop(self) -> None:
        """Stop sending; what is in flight is given up when this object goes."""
        self._stopping.set()
        self.join()

    def finish(self) -> None:
        """Stop sending and wait for everything in flight."""
        self.stop()
        left = self._producer.flush(120)
        assert not self.failures, self.failures[:5]
        assert left == 0, f"{left} records were never answered"

    @property
    def acknowledged_count(self) -> int:
        """Records acknowledged so far."""
        return sum(map(len, self.acknowledged))


def read_numbers(node: OwnedNode, partition: int) -> list[int]:
    """The numbers of one partition's records, by offset; checks CRCs and offsets on the way."""
    numbers: list[int] = []
    with node.connect() as connection:
        end = wire.list_offset(connection, TOPIC, partition)
        verify_partition(connection, TOPIC, partition)
        while len(numbers) < end:
            connection.sendall(wire.fetch_frame(TOPIC, partition, len(numbers), max_bytes=4 << 20))
            answer = wire.parse_fetch(wire.receive(connection))
            for _, count, batch in wire.whole_batches(answer.records):
                numbers += [struct.unpack_from(">q", v)[0] for v in wire.plain_values(batch)]
                assert count
    return numbers


def crash_under_load(directory: Path, kills: int, seed: int) -> None:
    """The whole experiment; the seed is printed by pytest when it fails."""
    moments = random.Random(seed)
    node = new_node(directory)
    node.start()
    with node.connect() as connection:
        wire.create_topic(connection, TOPIC, PARTITIONS, {"segment.bytes": "1048576"})
    producer = LoadingProducer(node.address)
    producer.start()
    try:
        for _ in range(kills):
            before = producer.acknowledged_count
            deadline = time.monotonic() + 60
            while producer.acknowledged_count < before + 200:
                assert not producer.failures, producer.failures[:5]
                assert time.monotonic() < deadline, "no acknowledgement since the last start"
                time.sleep(0.01)
            time.sleep(moments.uniform(0.0, 0.5))
            node.kill()
            node.start()
        producer.finish()
        with node.connect() as connection:
            wire.wait_until_led(connection, TOPIC, PARTITIONS)
        for partition, acknowledged in enumerate(producer.acknowledged):
            numbers = read_numbers(node, partition)
            lost = [n for n, offset in acknowledged.items() if numbers[offset : offset + 1] != [n]]
            assert not lost, f"partition {partition}: {len(lost)} of {len(acknowledged)} not there"
            assert len(set(numbers)) == len(numbers), f"partition {partition}: duplicates"
            assert numbers == sorted(numbers), f"partition {partition}: reordered"
        assert producer.acknowledged_count >= kills * 200
    finally:
        producer.stop()
        node.stop()


def test_five_kills_lose_nothing(tmp_path: Path) -> None:
    """The short variant."""
    crash_under_load(tmp_path, kills=5, seed=5)


@pytest.mark.slow
def test_fifty_kills_lose_nothing(tmp_path: Path) -> None:
    """The full variant, with a seed of its own."""
    crash_under_load(tmp_path, kills=50, seed=50)
