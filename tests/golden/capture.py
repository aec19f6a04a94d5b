"""Record the golden frames anew: `python -m tests.golden.capture`.

Real clients talk through a recording proxy to released Kafka, which advertises the proxy as its own
address. Of each (api, version, direction) the smallest frames of at most two clients are kept, so
the file stays small; each line says which client and which broker it came from.
"""

import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench import wire
from bench.kafka_release import (
    BROKER_API_VERSIONS,
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    CONSUMER_GROUPS,
    DELETE_RECORDS,
    GET_OFFSETS,
    KAFKA_VERSION,
    LOG_DIRS,
    PRODUCER_PERFORMANCE,
    TOPICS,
    VERIFIABLE_CONSUMER,
    KafkaRelease,
)
from bench.node import KafkaNode
from tests.golden.proxy import Frame, RecordingProxy
from tests.interop.clients import LIBRARIES, ClientAdapter, Kcat
from tests.interop.records import Sent

FRAMES = Path(__file__).parent / "frames.jsonl"
CLIENTS_PER_KIND = 2
SIZE_LIMIT = 12_000

RECORDS = [
    Sent(b"key", b"value", (("header", b"1"),)),
    Sent(b"tombstone", None),
    Sent(None, b"no key"),
]

Step = tuple[str, Callable[[], object]]


def _library_steps(address: str) -> Iterator[Step]:
    clients: list[ClientAdapter] = [*LIBRARIES, Kcat()]
    for client in clients:
        name = f"{client.name} {client.version}"
        topic = f"golden-{client.name}"

        def exchange(client: ClientAdapter = client, topic: str = topic) -> None:
            for codec in ("none", "gzip"):
                client.produce(address, topic, RECORDS, codec=codec)
            client.consume(address, topic, 2 * len(RECORDS), group=topic)

        yield name, exchange

    def admin() -> None:
        client = AdminClient({"bootstrap.servers": address})
        for future in client.create_topics([NewTopic("golden-admin", 2, 1)]).values():
            future.result(30)
        client.list_consumer_groups().result(30)
        client.describe_cluster().result(30)
        for future in client.delete_topics(["golden-admin"]).values():
            future.result(30)

    def transaction() -> None:
        producer = Producer({"bootstrap.servers": address, "transactional.id": "golden"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("golden-confluent-kafka", b"in a transaction")
        producer.commit_transaction(30)
        producer.begin_transaction()
        producer.produce("golden-confluent-kafka", b"aborted")
        producer.flush(30)
        producer.abort_transaction(30)

    confluent = LIBRARIES[2]
    yield f"{confluent.name} {confluent.version}", admin
    yield f"{confluent.name} {confluent.version}", transaction


def _tool_steps(address: str, release: KafkaRelease, directory: Path) -> Iterator[Step]:
    offsets = directory / "offsets.json"
    asked = {"topic": "golden-java", "partition": 0, "offset": 1}
    offsets.write_text(json.dumps({"partitions": [asked], "version": 1}))
    topic = ("--topic", "golden-java")
    group = ("--group", "golden-java")
    read = (*topic, "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000")
    commands: list[tuple[str, tuple[str, ...]]] = [
        (TOPICS, ("--create", *topic, "--partitions", "2", "--config", "retention.ms=1000000")),
        (TOPICS, ("--create", *topic)),  # refused: exists
        (CONSOLE_PRODUCER, topic),
        (CONSOLE_CONSUMER, (*read, *group)),
        (
            CONSOLE_CONSUMER,
            (*read, "--group", "golden-848", "--command-property", "group.protocol=consumer"),
        ),
        (VERIFIABLE_CONSUMER, (*topic, "--max-messages", "2", "--group-id", "golden-verifiable")),
        (TOPICS, ("--describe", *topic)),
        (TOPICS, ("--alter", *topic, "--partitions", "3")),
        (CONFIGS, ("--alter", *topic, "--add-config", "max.message.bytes=2000")),
        (CONFIGS, ("--alter", *topic, "--add-config", "cleanup.policy=nonsense")),
        (CONFIGS, ("--describe", *topic)),
        (CONSUMER_GROUPS, ("--list",)),
        (CONSUMER_GROUPS, ("--describe", *group)),
        (CONSUMER_GROUPS, ("--describe", "--group", "golden-848")),
        (CONSUMER_GROUPS, ("--reset-offsets", "--to-earliest", *group, *topic, "--execute")),
        (CONSUMER_GROUPS, ("--delete-offsets", *group, *topic)),
        (CONSUMER_GROUPS, ("--delete", *group)),
        (GET_OFFSETS, topic),
        (LOG_DIRS, ("--describe", "--topic-list", "golden-java")),
        (DELETE_RECORDS, ("--offset-json-file", str(offsets))),
        (BROKER_API_VERSIONS, ()),
        (
            PRODUCER_PERFORMANCE,
            (
                *(*topic, "--num-records", "3", "--record-size", "10", "--throughput", "-1"),
                *("--transactional-id", "golden-java", "--transaction-duration-ms", "1000"),
            ),
        ),
        (TOPICS, ("--delete", *topic)),
    ]
    for main_class, arguments in commands:
        text = "one\ntwo\n" if main_class == CONSOLE_PRODUCER else None

        def run(
            main_class: str = main_class,
            arguments: tuple[str, ...] = arguments,
            text: str | None = text,
        ) -> None:
            release.tool(
                main_class, "--bootstrap-server", address, *arguments, text=text, check=False
            )

        yield f"Apache Kafka Java {KAFKA_VERSION}", run


def _choose(recorded: list[tuple[str, Frame]]) -> list[tuple[str, Frame]]:
    """Per kind, the smallest frame of each of the first clients that sent one."""
    by_kind: dict[tuple[int, int, str], dict[str, Frame]] = {}
    for client, frame in recorded:
        if len(frame.data) > SIZE_LIMIT:
            continue
        of_kind = by_kind.setdefault((frame.api_key, frame.version, frame.direction), {})
        kept = of_kind.get(client)
        # A Fetch without records, an answer without items would be smallest but say little.
        enough = 150 if frame.api_key in (wire.FETCH, wire.PRODUCE) else 0
        if kept is None and len(of_kind) >= CLIENTS_PER_KIND:
            continue
        if kept is None or abs(len(frame.data) - enough) < abs(len(kept.data) - enough):
            of_kind[client] = frame
    return [(client, frame) for kind in sorted(by_kind) for client, frame in by_kind[kind].items()]


def main() -> int:
    """Record and write `frames.jsonl`."""
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        directory = Path(name)
        listener = socket.create_server(("127.0.0.1", 0))
        host, port = listener.getsockname()
        node = KafkaNode(
            directory,
            {
                "advertised.listeners": f"PLAINTEXT://{host}:{port}",
                "group.initial.rebalance.delay.ms": "0",
                "offsets.topic.num.partitions": "2",
                "transaction.state.log.num.partitions": "2",
            },
        )
        proxy = RecordingProxy(listener, (node.host, node.port))
        node.start()
        recorded: list[tuple[str, Frame]] = []
        try:
            steps = [
                *_library_steps(proxy.address),
                *_tool_steps(proxy.address, node.release, directory),
            ]
            for client, step in steps:
                step()
                time.sleep(0.2)
                recorded += [(client, frame) for frame in proxy.take()]
        finally:
            proxy.close()
            node.stop()
    lines = [
        json.dumps(
            {
                "api_key": frame.api_key,
                "version": frame.version,
                "direction": frame.direction,
                "client": client,
                "broker": f"Apache Kafka {KAFKA_VERSION}",
                "hex": frame.data.hex(),
            }
        )
        for client, frame in _choose(recorded)
    ]
    FRAMES.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} frames of {len(recorded)}, {FRAMES.stat().st_size} bytes")  # noqa: T201  a script
    return 0


if __name__ == "__main__":
    sys.exit(main())
