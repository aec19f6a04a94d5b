"""Numbered records by an idempotent librdkafka producer, and the search for them afterwards.

A record's value begins with its number in decimal, so that every tool can write some. Partitions
take turns: the numbers of each ascend.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from socket import socket

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from typing_extensions import override

from bench import wire
from bench.cluster.steady import Steady
from bench.verify import verify_partition

QUEUE_MAX = 10_000
DELIVERY_S = 300.0


def number_of(value: bytes) -> int:
    """The number that a value begins with."""
    return int(value.partition(b" ")[0])


class NumberedProducer(Steady):
    """Sends with acks=all until it is stopped; remembers what was acknowledged, where and when.

    Attributes:
        acknowledged: For each partition, the offset of each number; None: not known, as of a batch
            that was sent again and is there already (DUPLICATE_SEQUENCE_NUMBER).
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partitions: Sequence[int] = (0,),
        rate_per_s: float = 0.0,
        value_size: int = 200,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__("numbered-producer", rate_per_s)
        self.topic = topic
        self.partitions = tuple(partitions)
        self.acknowledged: dict[int, dict[int, int | None]] = {index: {} for index in partitions}
        self._value_size = value_size
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": int(DELIVERY_S * 1000),
                "queue.buffering.max.messages": QUEUE_MAX,
                "error_cb": self._on_error,
                "log_level": 0,  # refused connections are what these runs are about
                **(settings or {}),
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
        assert value is not None
        number = number_of(value)
        self.acks.append((time.monotonic(), number))
        self.acknowledged[partition][number] = offset

    @override
    def run(self) -> None:
        begin = time.monotonic()
        while not self.stopping.is_set() and not self.failures:
            number = len(self.sent_at)
            due = begin + number * self.interval_s
            while (left := due - time.monotonic()) > 0:
                self._producer.poll(left)
            self.sent_at.append(time.monotonic())
            try:
                self._producer.produce(
                    self.topic,
                    (b"%d " % number).ljust(self._value_size, b"."),
                    partition=self.partitions[number % len(self.partitions)],
                    on_delivery=self._on_delivery,
                )
            except BufferError:
                self.sent_at.pop()
                self._producer.poll(0.01)
            except KafkaException as error:  # after a fatal error nothing can be sent any more
                self.failures.append(str(error))
            if number % 20 == 0 or self.interval_s:
                self._producer.poll(0)
            if number % 20 == 0 and not self.interval_s:
                time.sleep(0.002)

    def finish(self, timeout_s: float = 120.0) -> None:
        """Stop sending and wait for everything in flight; else that is given up with this object.

        Raises:
            AssertionError: A record failed or was not answered.
        """
        self.stop()
        left = self._producer.flush(timeout_s)
        assert not self.failures, self.failures[:5]
        assert left == 0, f"{left} records were never answered"


@dataclass(slots=True)
class Found:
    """What a read of a topic has, beside what was acknowledged; all lists are empty when good."""

    records: int = 0
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    reordered: list[str] = field(default_factory=list)

    def judge(self, where: str, offsets: Mapping[int, int | None], numbers: Sequence[int]) -> None:
        """Compare one partition's numbers, by offset, with what was acknowledged."""
        self.records += len(numbers)
        there = Counter(numbers)
        for number, offset in offsets.items():
            if number not in there:
                self.lost.append(f"{where}: record {number}, acknowledged at {offset}, is lost")
            elif offset is not None and list(numbers[offset : offset + 1]) != [number]:
                self.lost.append(f"{where}: record {number} is not at its offset {offset}")
        self.duplicated += [f"{where}: record {n} is there twice" for n in there if there[n] > 1]
        self.reordered += [
            f"{where}: record {after} at {at} stands behind {before}"
            for at, (before, after) in enumerate(itertools.pairwise(numbers), 1)
            if after < before
        ]

    @property
    def problems(self) -> list[str]:
        """All that is wrong."""
        return [*self.lost, *self.duplicated, *self.reordered]


Connect = Callable[[str, int], AbstractContextManager[socket]]
"""Topic and partition to a connection to its leader."""


def read_numbers(connection: socket, topic: str, partition: int) -> list[int]:
    """The numbers of one partition's records, by offset; checks CRCs and offsets on the way."""
    numbers: list[int] = []
    end = wire.list_offset(connection, topic, partition)
    verify_partition(connection, topic, partition)
    while len(numbers) < end:
        connection.sendall(wire.fetch_frame(topic, partition, len(numbers), max_bytes=4 << 20))
        answer = wire.parse_fetch(wire.receive(connection))
        for _, count, batch in wire.whole_batches(answer.records):
            values = [number_of(value) for value in wire.plain_values(batch)]
            if len(values) != count:
                raise wire.WireError(f"{topic}-{partition}: {len(values)} records of {count}")
            numbers += values
    return numbers


def compare(
    topic: str, acknowledged: Mapping[int, Mapping[int, int | None]], connect: Connect
) -> Found:
    """Read all that was produced: every acknowledged number at its offset, each once, ascending.

    Args:
        topic: Of the numbers.
        acknowledged: For each partition, numbers and their offsets; None: not known.
        connect: To the leader of a partition.
    """
    found = Found()
    for index, offsets in acknowledged.items():
        with connect(topic, index) as connection:
            found.judge(f"{topic}-{index}", offsets, read_numbers(connection, topic, index))
    return found
