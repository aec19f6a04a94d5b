"""Records what real clients and a released Kafka say to each other.

Run it by `python -m tests.golden.frames.capture`.

Starts Kafka, and in front of it a proxy that its advertised listener points to, then lets each
client produce, consume with a group, commit, and use admin calls and transactions where it has
them. Of every client, API and version one request and one answer are kept in `frames.jsonl`, one
JSON object a line:

    origin        client and broker with their versions
    api_key, api_version
    kind          "request" or "response"
    frame         hexadecimal, without the size prefix

The broker itself connects to its advertised address as well: WriteTxnMarkers and some
AddPartitionsToTxn are its own, under the name of whichever client ran at that moment. Of several
frames of one kind the longest is kept, since it says most, up to `FRAME_SIZE_MAX`.
"""

import asyncio
import json
import socket
import tempfile
import threading
import warnings
from pathlib import Path
from struct import Struct
from typing import Any

from bench.kafka_release import (
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSUMER_GROUPS,
    DELETE_RECORDS,
    GET_OFFSETS,
    KAFKA_VERSION,
    TOPICS,
    VERIFIABLE_PRODUCER,
    KafkaRelease,
)
from bench.node import KafkaNode, free_ports

FRAMES = Path(__file__).with_name("frames.jsonl")
FRAME_SIZE_MAX = 4096
SIZE = Struct(">i")
KEY_AND_VERSION = Struct(">hhi")


class Recorder:
    """A proxy that keeps the longest request and answer of each origin, API and version."""

    def __init__(self, port: int, target: int) -> None:
        self.origin = ""
        self.frames: dict[tuple[str, int, int, str], bytes] = {}
        self._target = target
        self._server = socket.create_server(("127.0.0.1", port), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            broker = socket.create_connection(("127.0.0.1", self._target))
            waiting: dict[int, tuple[str, int, int]] = {}
            for source, sink, kind in ((client, broker, "request"), (broker, client, "response")):
                threading.Thread(
                    target=self._pump, args=(source, sink, kind, waiting), daemon=True
                ).start()

    def _pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        kind: str,
        waiting: dict[int, tuple[str, int, int]],
    ) -> None:
        with source, sink, source.makefile("rb") as stream:
            while len(prefix := stream.read(4)) == 4:
                frame = stream.read(SIZE.unpack(prefix)[0])
                if kind == "request":
                    key, version, correlation_id = KEY_AND_VERSION.unpack_from(frame)
                    row = waiting[correlation_id] = (self.origin, key, version)
                else:
                    row = waiting.pop(SIZE.unpack_from(frame)[0])
                known = self.frames.get((*row, kind), b"")
                if len(known) < len(frame) <= FRAME_SIZE_MAX:
                    self.frames[(*row, kind)] = frame
                try:
                    sink.sendall(prefix + frame)
                except OSError:
                    return

    def write(self) -> None:
        """Write what was kept, ordered."""
        rows = [
            {
                "origin": origin,
                "api_key": key,
                "api_version": version,
                "kind": kind,
                "frame": frame.hex(),
            }
            for (origin, key, version, kind), frame in sorted(self.frames.items())
        ]
        FRAMES.write_text("".join(json.dumps(row) + "\n" for row in rows))


def run_confluent(address: str, topic: str) -> None:
    """librdkafka: admin, idempotent producer, group consumer."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin._config import ConfigResource
    from confluent_kafka.cimpl import NewPartitions, NewTopic

    settings: dict[str, Any] = {"bootstrap.servers": address, "client.id": "golden"}
    admin = AdminClient(settings)
    for future in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        future.result(20)
    producer = Producer({**settings, "enable.idempotence": True, "compression.type": "lz4"})
    for number in range(10):
        producer.produce(topic, key=str(number), value=b"value", headers={"h": b"1"})
    producer.flush(20)
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got = 0
    while got < 10:
        message = consumer.poll(5)
        assert message is not None
        assert not message.error()
        got += 1
    consumer.commit(asynchronous=False)
    consumer.close()
    resource = ConfigResource("topic", topic)
    for calls in (
        admin.create_partitions([NewPartitions(topic, 3)]),
        admin.describe_configs([resource]),
        admin.describe_consumer_groups([topic]),
        admin.delete_consumer_groups([topic]),
        admin.delete_topics([topic]),
    ):
        for future in calls.values():
            future.result(20)
    admin.list_consumer_groups().result(20)
    admin.describe_cluster().result(20)


def run_kafka_python(address: str, topic: str) -> None:
    """kafka-python: producer and group consumer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka import KafkaConsumer, KafkaProducer

        producer = KafkaProducer(bootstrap_servers=address, client_id="golden")
        for number in range(10):
            producer.send(topic, key=str(number).encode(), value=b"value").get(20)
        producer.close()
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=address,
            client_id="golden",
            group_id=topic,
            auto_offset_reset="earliest",
            consumer_timeout_ms=8000,
        )
        for _, _ in zip(range(10), consumer, strict=False):
            pass
        consumer.commit()
        consumer.close()


async def run_aiokafka(address: str, topic: str) -> None:
    """aiokafka: transactional producer and group consumer, in the old encodings."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=address, client_id="golden", transactional_id=topic
    )
    await producer.start()
    async with producer.transaction():
        await producer.send_and_wait(topic, b"value", key=b"key")
    await producer.stop()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=address,
        client_id="golden",
        group_id=topic,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    await asyncio.wait_for(consumer.getone(), 20)
    await consumer.commit()
    await consumer.stop()


def run_java(release: KafkaRelease, address: str, topic: str, directory: Path) -> None:
    """Kafka's own shell tools."""
    server = ("--bootstrap-server", address)
    release.tool(TOPICS, *server, "--create", "--topic", topic, "--partitions", "2")
    release.tool(TOPICS, *server, "--describe", "--topic", topic)
    release.tool(VERIFIABLE_PRODUCER, *server, "--topic", topic, "--max-messages", "10")
    for protocol in ("classic", "consumer"):
        settings = ("--consumer-property", f"group.protocol={protocol}")
        group = ("--group", f"{topic}-{protocol}", "--from-beginning", "--max-messages", "10")
        release.tool(CONSOLE_CONSUMER, *server, "--topic", topic, *group, *settings)
    release.tool(CONSUMER_GROUPS, *server, "--all-groups", "--describe")
    release.tool(
        CONSUMER_GROUPS,
        *(*server, "--group", f"{topic}-classic", "--topic", topic),
        *("--reset-offsets", "--to-earliest", "--execute"),
    )
    release.tool(
        CONSUMER_GROUPS,
        *(*server, "--group", f"{topic}-classic", "--delete-offsets", "--topic", topic),
    )
    release.tool(CONSUMER_GROUPS, *server, "--delete", "--group", f"{topic}-classic")
    entity = ("--entity-type", "topics", "--entity-name", topic)
    release.tool(CONFIGS, *server, *entity, "--alter", "--add-config", "retention.ms=1000")
    release.tool(CONFIGS, *server, *entity, "--describe")
    release.tool(GET_OFFSETS, *server, "--topic", topic)
    records = directory / "delete-records.json"
    partition = {"topic": topic, "partition": 0, "offset": -1}
    records.write_text(json.dumps({"partitions": [partition], "version": 1}))
    release.tool(DELETE_RECORDS, *server, "--offset-json-file", str(records))
    release.tool(TOPICS, *server, "--alter", "--topic", topic, "--partitions", "3")
    release.tool(TOPICS, *server, "--delete", "--topic", topic)


def main() -> None:
    """Record all clients."""
    import aiokafka
    import confluent_kafka
    import kafka

    broker = f"Apache Kafka {KAFKA_VERSION}"
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (port,) = free_ports(1)
        node = KafkaNode(
            directory / "kafka",
            {
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "group.initial.rebalance.delay.ms": "0",
            },
            heap=("-Xmx512M",),
        )
        node.start()
        recorder = Recorder(port, node.port)
        address = f"127.0.0.1:{port}"
        try:
            library = f"librdkafka {confluent_kafka.libversion()[0]}"
            recorder.origin = f"confluent-kafka {confluent_kafka.__version__}, {library}; {broker}"
            run_confluent(address, "confluent-0001")
            recorder.origin = f"kafka-python {kafka.__version__}; {broker}"
            run_kafka_python(address, "kafka-python-0001")
            recorder.origin = f"aiokafka {aiokafka.__version__}; {broker}"
            asyncio.run(run_aiokafka(address, "aiokafka-0001"))
            recorder.origin = f"Kafka's shell tools {KAFKA_VERSION}; {broker}"
            run_java(node.release, address, "tools-0001", directory)
        finally:
            node.stop()
            recorder.write()


if __name__ == "__main__":
    main()
