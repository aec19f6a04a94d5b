"""Kafka's own programs for groups and transactions, unmodified, from the released jars."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from subprocess import CompletedProcess

import pytest

from bench import wire
from bench.kafka_release import (
    CONSOLE_CONSUMER,
    CONSUMER_GROUPS,
    GET_OFFSETS,
    VERIFIABLE_CONSUMER,
)
from bench.node import OwnedNode
from tests.interop.libraries.test_library_transactions import committed_offset, committed_values
from tests.interop.tool_server import ToolServer

FEATURES = "org.apache.kafka.tools.FeatureCommand"
GROUPS = "org.apache.kafka.tools.GroupsCommand"
MESSAGE_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


def words_of(tool: Callable[..., CompletedProcess[str]], *arguments: str) -> list[list[str]]:
    """What a tool prints, by lines and words."""
    return [line.split() for line in tool(*arguments).stdout.splitlines()]


def test_transactional_message_copier(
    coordinators: OwnedNode, topic: str, kafka_tools: ToolServer
) -> None:
    """One copier of Kafka's system tests; then kafka-transactions looks, several times at once."""
    server = ("--bootstrap-server", coordinators.address)
    source, sink = f"{topic}-source", f"{topic}-sink"
    count = 300
    with coordinators.connect() as connection:
        wire.create_topic(connection, source, 1)
        wire.create_topic(connection, sink, 1)
        values = [str(number).encode() for number in range(count)]
        wire.produce(connection, source, 0, wire.record_batch(values))
    copied = kafka_tools.tool(
        MESSAGE_COPIER,
        *("--broker-list", coordinators.address, "--input-topic", source),
        *("--input-partition", "0", "--output-topic", sink, "--max-messages", str(count)),
        *("--consumer-group", topic, "--transaction-size", "100", "--transactional-id", topic),
    )
    told = [json.loads(line) for line in copied.stdout.splitlines() if line.startswith("{")]
    assert told[-1]["remaining"] == 0
    one = ("--topic", sink, "--partition", "0")
    with ThreadPoolExecutor() as pool:
        listed, described, producers, hanging = pool.map(
            lambda arguments: words_of(kafka_tools.tool, TRANSACTIONS, *server, *arguments),
            (
                ("list",),
                ("describe", "--transactional-id", topic),
                ("describe-producers", *one),
                ("find-hanging", "--topic", sink),
            ),
        )
    assert topic in [words[0] for words in listed]
    assert "CompleteCommit" in described[1]
    assert len(producers) == 2
    assert len(hanging) == 1, hanging
    assert committed_values(coordinators, sink) == [str(number) for number in range(count)]


@pytest.mark.slow
def test_transactional_message_copiers(
    coordinators: OwnedNode, topic: str, kafka_tools: ToolServer
) -> None:
    """Two copiers of Kafka's system tests, with random aborts; then kafka-transactions looks."""
    server = ("--bootstrap-server", coordinators.address)
    source, sink = f"{topic}-source", f"{topic}-sink"
    count = 3000
    with coordinators.connect() as connection:
        wire.create_topic(connection, source, 2)
        wire.create_topic(connection, sink, 2)
        for partition in range(2):
            values = [b"%d" % number for number in range(partition, count, 2)]
            wire.produce(connection, source, partition, wire.record_batch(values))

    def copy(partition: int) -> list[dict[str, object]]:
        held = kafka_tools.tool(
            GET_OFFSETS, *server, "--topic-partitions", f"{source}:{partition}"
        ).stdout
        copied = kafka_tools.tool(
            MESSAGE_COPIER,
            *("--broker-list", coordinators.address, "--input-topic", source),
            *("--input-partition", str(partition), "--output-topic", sink),
            *("--max-messages", held.rpartition(":")[2].strip(), "--consumer-group", topic),
            *("--transaction-size", "100", "--transactional-id", f"{topic}-{partition}"),
            "--enable-random-aborts",
        )
        return [json.loads(line) for line in copied.stdout.splitlines() if line.startswith("{")]

    with ThreadPoolExecutor() as pool:
        told = list(pool.map(copy, range(2)))
    assert all(lines[-1]["remaining"] == 0 for lines in told)
    read = kafka_tools.tool(
        CONSOLE_CONSUMER,
        *(*server, "--topic", sink, "--from-beginning", "--isolation-level", "read_committed"),
        *("--max-messages", str(count), "--timeout-ms", "60000"),
    )
    assert sorted(map(int, read.stdout.split())) == list(range(count))

    listed = kafka_tools.tool(TRANSACTIONS, *server, "list").stdout
    mine = [line.split() for line in listed.splitlines() if line.startswith(topic)]
    assert sorted(words[0] for words in mine) == [f"{topic}-0", f"{topic}-1"]
    described = kafka_tools.tool(
        TRANSACTIONS, *server, "describe", "--transactional-id", f"{topic}-0"
    ).stdout
    assert "CompleteCommit" in described or "CompleteAbort" in described
    producers = kafka_tools.tool(
        TRANSACTIONS, *server, "describe-producers", "--topic", sink, "--partition", "0"
    ).stdout
    assert len(producers.splitlines()) >= 2
    hanging = kafka_tools.tool(TRANSACTIONS, *server, "find-hanging", "--topic", sink).stdout
    assert len(hanging.splitlines()) == 1, hanging


def test_verifiable_consumer_and_groups_tool(
    coordinators: OwnedNode, topic: str, kafka_tools: ToolServer
) -> None:
    """A VerifiableConsumer of the new protocol; the group tools look, several times at once."""
    server = ("--bootstrap-server", coordinators.address)
    group = (*server, "--group", topic)
    count = 1000
    with coordinators.connect() as connection:
        wire.create_topic(connection, topic, 1)
        wire.produce(connection, topic, 0, wire.record_batch([b"x"] * count))
    kafka_tools.tool(
        VERIFIABLE_CONSUMER,
        *(*server, "--topic", topic, "--max-messages", str(count), "--group-id", topic),
        *("--group-protocol", "consumer", "--reset-policy", "earliest"),
    )
    with ThreadPoolExecutor() as pool:
        described, listed, states = pool.map(
            lambda arguments: words_of(kafka_tools.tool, *arguments),
            (
                (CONSUMER_GROUPS, *group, "--describe"),
                (GROUPS, *server, "--list", "--group-type", "consumer"),
                (CONSUMER_GROUPS, *server, "--list", "--state", "empty"),
            ),
        )
    assert [topic, topic, "0", str(count), str(count), "0"] in [words[:6] for words in described]
    assert [topic, "Consumer", "consumer"] in [words[:3] for words in listed]
    assert [topic, "Empty"] in [words[:2] for words in states]
    reset = (*group, "--reset-offsets", "--to-offset", "7", "--topic", topic, "--execute")
    kafka_tools.tool(CONSUMER_GROUPS, *reset)
    assert committed_offset(coordinators, topic, topic) == 7


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_consumers_and_groups_tool(
    coordinators: OwnedNode, topic: str, kafka_tools: ToolServer, protocol: str
) -> None:
    """VerifiableConsumer of both protocols; Kafka's group tools look at what it did."""
    server = ("--bootstrap-server", coordinators.address)
    count = 1000
    with coordinators.connect() as connection:
        wire.create_topic(connection, topic, 1)
        wire.produce(connection, topic, 0, wire.record_batch([b"x"] * count))
    consumed = [
        json.loads(line)
        for line in kafka_tools.tool(
            VERIFIABLE_CONSUMER,
            *(*server, "--topic", topic, "--max-messages", str(count), "--group-id", topic),
            *("--group-protocol", protocol, "--reset-policy", "earliest"),
        ).stdout.splitlines()
    ]
    assert sum(e["count"] for e in consumed if e["name"] == "records_consumed") == count
    group = (*server, "--group", topic)

    def position() -> list[str]:
        lines = kafka_tools.tool(CONSUMER_GROUPS, *group, "--describe").stdout.splitlines()
        return next(line.split()[1:6] for line in lines if line.startswith(topic))

    assert position() == [topic, "0", str(count), str(count), "0"]
    reset = (*group, "--reset-offsets", "--to-offset", "7", "--topic", topic)
    kafka_tools.tool(CONSUMER_GROUPS, *reset, "--dry-run")
    assert position()[2] == str(count)
    kafka_tools.tool(CONSUMER_GROUPS, *reset, "--execute")
    assert position()[2] == "7"
    kind = "Classic" if protocol == "classic" else "Consumer"
    listed = kafka_tools.tool(GROUPS, *server, "--list", "--group-type", protocol).stdout
    assert [topic, kind, "consumer"] in [line.split()[:3] for line in listed.splitlines()]
    states = kafka_tools.tool(CONSUMER_GROUPS, *server, "--list", "--state", "empty").stdout
    assert [topic, "Empty"] in [line.split()[:2] for line in states.splitlines()]
    assert "was successful" in kafka_tools.tool(CONSUMER_GROUPS, *group, "--delete").stdout


def test_kafka_features(coordinators: OwnedNode, kafka_tools: ToolServer) -> None:
    """kafka-features shows what is finalised."""
    server = ("--bootstrap-server", coordinators.address)
    shown = kafka_tools.tool(FEATURES, *server, "describe").stdout
    levels = {line.split()[1]: line.split() for line in shown.splitlines()}
    for name, level in (("group.version", "1"), ("transaction.version", "2")):
        words = levels[name]
        assert words[words.index("FinalizedVersionLevel:") + 1] == level


@pytest.mark.parametrize("change", ["upgrade", "downgrade"])
def test_there_is_no_release_of_kafka_to_be_at(
    coordinators: OwnedNode, kafka_tools: ToolServer, change: str
) -> None:
    """Refused as a whole, and said why; single features may be set."""
    server = ("--bootstrap-server", coordinators.address)
    before = kafka_tools.tool(FEATURES, *server, "describe").stdout
    refused = kafka_tools.tool(FEATURES, *server, change, "--release-version", "4.2", check=False)
    assert refused.returncode == 1
    assert "Varve has no metadata.version and no kraft.version" in refused.stdout
    assert kafka_tools.tool(FEATURES, *server, "describe").stdout == before
    one = kafka_tools.tool(FEATURES, *server, change, "--feature", "group.version=1")
    assert f"group.version was {change}d to 1." in one.stdout
