"""The client libraries behind one shape: produce records, consume them with a group.

Every adapter uses its library as an application would. Consuming always goes through a consumer
group with committed offsets; `consume` returns (offset, record) in the order of delivery.
"""

import asyncio
import json
import shutil
import subprocess
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Protocol, cast

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, libversion
from typing_extensions import override

from tests.interop.records import CODECS, Headers, Sent

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated call, at import and again as messages load.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer

DEADLINE_S = 60.0

Consumed = list[tuple[int, Sent]]


class ClientAdapter(Protocol):
    """What the matrix needs of a client."""

    name: str
    version: str
    codecs: tuple[str, ...]
    null_headers: bool
    """Whether the library can send a header without a value."""

    def produce(
        self, address: str, topic: str, records: Sequence[Sent], *, codec: str, partition: int = 0
    ) -> list[int]:
        """Send with acks=all; the offsets the broker gave."""

    def consume(self, address: str, topic: str, count: int, *, group: str) -> Consumed:
        """Subscribe, read `count` records, commit, leave."""


class KafkaPython(ClientAdapter):
    """kafka-python; its snappy and zstd need packages of their own, other clients cover these."""

    name = "kafka-python"
    version = version("kafka-python")
    codecs = ("none", "gzip", "lz4")
    null_headers = False

    @override
    def produce(
        self, address: str, topic: str, records: Sequence[Sent], *, codec: str, partition: int = 0
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=address,
            compression_type=None if codec == "none" else codec,
            acks="all",
            linger_ms=20,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    partition=partition,
                )
                for record in records
            ]
            producer.flush(timeout=DEADLINE_S)
            return [future.get(timeout=DEADLINE_S).offset for future in futures]
        finally:
            producer.close(timeout=10)

    @override
    def consume(self, address: str, topic: str, count: int, *, group: str) -> Consumed:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        found: Consumed = []
        deadline = time.monotonic() + DEADLINE_S
        try:
            while len(found) < count and time.monotonic() < deadline:
                for messages in consumer.poll(timeout_ms=500).values():
                    found += [
                        (m.offset, Sent(m.key, m.value, tuple(map(tuple, m.headers))))
                        for m in messages
                    ]
            consumer.commit()
        finally:
            consumer.close()
        return found


class AioKafka(ClientAdapter):
    """aiokafka."""

    name = "aiokafka"
    version = version("aiokafka")
    codecs = CODECS
    null_headers = True

    @override
    def produce(
        self, address: str, topic: str, records: Sequence[Sent], *, codec: str, partition: int = 0
    ) -> list[int]:
        async def run() -> list[int]:
            async with AIOKafkaProducer(
                bootstrap_servers=address,
                compression_type=None if codec == "none" else codec,
                acks="all",
                linger_ms=20,
            ) as producer:
                futures = [
                    await producer.send(
                        topic,
                        key=record.key,
                        value=record.value,
                        headers=list(record.headers),
                        partition=partition,
                    )
                    for record in records
                ]
                return [(await future).offset for future in futures]

        return asyncio.run(asyncio.wait_for(run(), DEADLINE_S))

    @override
    def consume(self, address: str, topic: str, count: int, *, group: str) -> Consumed:
        async def run() -> Consumed:
            async with AIOKafkaConsumer(
                topic,
                bootstrap_servers=address,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer:
                found: Consumed = []
                deadline = time.monotonic() + DEADLINE_S
                while len(found) < count and time.monotonic() < deadline:
                    for messages in (await consumer.getmany(timeout_ms=500)).values():
                        found += [
                            (m.offset, Sent(m.key, m.value, tuple(map(tuple, m.headers))))
                            for m in messages
                        ]
                await consumer.commit()
                return found

        return asyncio.run(asyncio.wait_for(run(), DEADLINE_S + 15))


class Confluent(ClientAdapter):
    """confluent-kafka, which is librdkafka."""

    name = "confluent-kafka"
    version = f"{version('confluent-kafka')} (librdkafka {libversion()[0]})"
    codecs = CODECS
    null_headers = True

    @override
    def produce(
        self, address: str, topic: str, records: Sequence[Sent], *, codec: str, partition: int = 0
    ) -> list[int]:
        producer = Producer(
            {
                "bootstrap.servers": address,
                "compression.codec": codec,
                "enable.idempotence": True,
                "linger.ms": 20,
            }
        )
        offsets: list[int] = []

        def delivered(error: object, message: object) -> None:
            if error is not None:
                raise KafkaException(error)
            offsets.append(message.offset())  # type: ignore[attr-defined]  # untyped library

        for record in records:
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                partition=partition,
                on_delivery=delivered,
            )
        assert producer.flush(DEADLINE_S) == 0, "librdkafka could not deliver everything"
        return offsets

    @override
    def consume(self, address: str, topic: str, count: int, *, group: str) -> Consumed:
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        found: Consumed = []
        deadline = time.monotonic() + DEADLINE_S
        try:
            consumer.subscribe([topic])
            while len(found) < count and time.monotonic() < deadline:
                for message in consumer.consume(500, timeout=0.5):
                    if message.error() is not None:
                        raise KafkaException(message.error())
                    headers = cast("Headers", tuple(message.headers() or ()))
                    offset = message.offset()
                    assert offset is not None
                    found.append((offset, Sent(message.key(), message.value(), headers)))
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return found


class Kcat(ClientAdapter):
    """kcat: an old librdkafka (2.0) as Debian ships it, so another range of versions."""

    name = "kcat"
    codecs = CODECS
    null_headers = False

    def __init__(self) -> None:
        self.version = self._installed_version()

    @staticmethod
    def program() -> str:
        """Where kcat is; fails the test with what to install when it is not."""
        path = shutil.which("kcat") or shutil.which("kafkacat")
        if path is None:
            pytest.fail("kcat was not found: install it (Debian: apt-get install kcat)")
        return path

    @classmethod
    def _installed_version(cls) -> str:
        path = shutil.which("kcat") or shutil.which("kafkacat")
        if path is None:
            return "absent"
        text = subprocess.run([path, "-V"], capture_output=True, text=True, check=False).stdout
        return text[text.find("Version") :].split("(")[0].removeprefix("Version").strip() + (
            " (librdkafka " + text.partition("librdkafka ")[2].split(" ")[0] + ")"
        )

    def run(self, address: str, *arguments: str, text: bytes = b"") -> bytes:
        """Run kcat to its end; fails with what it printed when it exits with an error."""
        result = subprocess.run(
            # Of its own it gives up after five seconds: transactions, and what it asks of topics.
            [self.program(), "-b", address, "-m", str(round(DEADLINE_S / 2)), *arguments],
            input=text,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert result.returncode == 0, result.stderr.decode(errors="replace")
        return result.stdout

    @override
    def produce(
        self, address: str, topic: str, records: Sequence[Sent], *, codec: str, partition: int = 0
    ) -> list[int]:
        # kcat reads lines: one key and one value each, without headers.
        lines = b"".join((r.key or b"") + b"\t" + (r.value or b"") + b"\n" for r in records)
        arguments = ["-P", "-t", topic, "-p", str(partition), "-K", "\\t", "-z", codec]
        self.run(address, *arguments, "-X", "acks=all", text=lines)
        return []

    @override
    def consume(self, address: str, topic: str, count: int, *, group: str) -> Consumed:
        out = self.run(
            address,
            *("-G", group, "-c", str(count), "-J", "-q"),
            *("-X", "auto.offset.reset=earliest", topic),
        )
        found: Consumed = []
        for line in out.splitlines():
            message = json.loads(line)
            key, value = message["key"], message["payload"]
            found.append(
                (
                    message["offset"],
                    Sent(
                        None if key is None else key.encode(),
                        None if value is None else value.encode(),
                    ),
                )
            )
        return found


LIBRARIES: tuple[ClientAdapter, ...] = (KafkaPython(), AioKafka(), Confluent())
