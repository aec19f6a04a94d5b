"""Kafka's own shell tools, unmodified, from the released jars."""

import json

import pytest

from bench import wire
from bench.kafka_release import (
    BROKER_API_VERSIONS,
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    CONSUMER_GROUPS,
    CONSUMER_PERFORMANCE,
    DELETE_RECORDS,
    END_TO_END_LATENCY,
    GET_OFFSETS,
    LOG_DIRS,
    PRODUCER_PERFORMANCE,
    TOPICS,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
)
from bench.node import OwnedNode
from tests.interop.records import CODECS
from tests.interop.tool_server import ToolServer


def bootstrap(broker: OwnedNode) -> tuple[str, str]:
    return "--bootstrap-server", broker.address


def test_kafka_topics(broker: OwnedNode, topic: str, kafka_tools: ToolServer) -> None:
    """kafka-topics creates, describes, grows, lists and deletes a topic."""
    server = bootstrap(broker)
    created = kafka_tools.tool(
        TOPICS,
        *(*server, "--create", "--topic", topic, "--partitions", "2"),
        *("--config", "retention.ms=100000", "--config", "cleanup.policy=compact,delete"),
    )
    assert f"Created topic {topic}." in created.stdout

    again = kafka_tools.tool(TOPICS, *server, "--create", "--topic", topic, check=False)
    assert again.returncode == 1
    assert f"Topic '{topic}' already exists." in again.stdout

    kafka_tools.tool(TOPICS, *server, "--alter", "--topic", topic, "--partitions", "5")
    described = kafka_tools.tool(TOPICS, *server, "--describe", "--topic", topic).stdout
    assert "PartitionCount: 5" in described
    assert "retention.ms=100000" in described
    assert "cleanup.policy=compact,delete" in described
    assert described.count("Leader: ") == 5
    assert "Leader: none" not in described

    fewer = kafka_tools.tool(
        TOPICS, *server, "--alter", "--topic", topic, "--partitions", "1", check=False
    )
    assert fewer.returncode == 1
    assert "InvalidPartitionsException" in fewer.stderr

    kafka_tools.tool(TOPICS, *server, "--delete", "--topic", topic)
    assert topic not in kafka_tools.tool(TOPICS, *server, "--list").stdout.split()


def test_console_producer_and_consumer(
    broker: OwnedNode, topic: str, kafka_tools: ToolServer
) -> None:
    """Keys, headers and nulls in all codecs, produced idempotently, consumed by a group."""
    expected = []
    for codec in CODECS:
        kafka_tools.tool(
            CONSOLE_PRODUCER,
            *(*bootstrap(broker), "--topic", topic, "--compression-codec", codec),
            *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
            *("--reader-property", "null.marker=NULL"),
            text=f"h1:v1,h2:{codec}\tkey\tvalue\nh:1\ttombstone\tNULL\n",
        )
        expected += [f"h1:v1,h2:{codec}\tkey\tvalue", "h:1\ttombstone\tNULL"]
    consumed = kafka_tools.tool(
        CONSOLE_CONSUMER,
        *(*bootstrap(broker), "--topic", topic, "--from-beginning", "--group", topic),
        *("--max-messages", str(len(expected)), "--timeout-ms", "60000"),
        *("--formatter-property", "print.key=true"),
        *("--formatter-property", "print.headers=true"),
        *("--formatter-property", "print.offset=true"),
        *("--formatter-property", "null.literal=NULL"),
    )
    assert consumed.stdout.splitlines() == [
        f"Offset:{offset}\t{line}" for offset, line in enumerate(expected)
    ]


def test_kafka_configs(broker: OwnedNode, topic: str, kafka_tools: ToolServer) -> None:
    """kafka-configs sets, shows, refuses and removes topic settings, and shows a broker's."""
    with broker.connect() as connection:
        wire.create_topic(connection, topic)
    entity = (*bootstrap(broker), "--topic", topic)
    kafka_tools.tool(
        CONFIGS, *entity, "--alter", "--add-config", "max.message.bytes=2000,retention.ms=500"
    )
    shown = kafka_tools.tool(CONFIGS, *entity, "--describe").stdout
    assert (
        "max.message.bytes=2000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "max.message.bytes=2000, DEFAULT_CONFIG:message.max.bytes=1048588}"
    ) in shown
    assert "retention.ms=500 sensitive=false" in shown

    refused = kafka_tools.tool(
        CONFIGS, *entity, "--alter", "--add-config", "cleanup.policy=nonsense", check=False
    )
    assert refused.returncode == 1
    assert "InvalidConfigurationException" in refused.stderr
    assert "Invalid value nonsense for configuration cleanup.policy" in refused.stderr

    kafka_tools.tool(CONFIGS, *entity, "--alter", "--delete-config", "max.message.bytes")
    shown = kafka_tools.tool(CONFIGS, *entity, "--describe").stdout
    assert "max.message.bytes" not in shown
    assert "retention.ms=500" in shown

    everything = kafka_tools.tool(CONFIGS, *entity, "--describe", "--all").stdout
    assert "  max.message.bytes=1048588 sensitive=false" in everything
    assert "  segment.bytes=1073741824 sensitive=false" in everything
    with broker.connect() as connection:
        (node_id,) = wire.cluster_brokers(connection)
    of_broker = kafka_tools.tool(
        CONFIGS, *bootstrap(broker), "--broker", str(node_id), "--describe", "--all"
    ).stdout
    assert "  num.partitions=1 sensitive=false" in of_broker


def test_kafka_consumer_groups(broker: OwnedNode, topic: str, kafka_tools: ToolServer) -> None:
    """kafka-consumer-groups lists, describes, resets and deletes a group."""
    with broker.connect() as connection:
        wire.create_topic(connection, topic)
        wire.produce(connection, topic, 0, wire.record_batch([b"x"] * 7))
    server = bootstrap(broker)
    kafka_tools.tool(
        CONSOLE_CONSUMER,
        *(*server, "--topic", topic, "--from-beginning", "--group", topic),
        *("--max-messages", "7", "--timeout-ms", "60000"),
    )
    group = (*server, "--group", topic)
    assert topic in kafka_tools.tool(CONSUMER_GROUPS, *server, "--list").stdout.split()

    def position() -> list[str]:
        lines = kafka_tools.tool(CONSUMER_GROUPS, *group, "--describe").stdout.splitlines()
        return next(line.split()[1:6] for line in lines if line.startswith(topic))

    assert position() == [topic, "0", "7", "7", "0"]
    kafka_tools.tool(
        CONSUMER_GROUPS,
        *group,
        "--reset-offsets",
        "--shift-by",
        "-3",
        "--topic",
        topic,
        "--execute",
    )
    assert position() == [topic, "0", "4", "7", "3"]
    state = kafka_tools.tool(CONSUMER_GROUPS, *group, "--describe", "--state").stdout
    assert state.splitlines()[-1].split()[-2:] == ["Empty", "0"]
    kafka_tools.tool(
        CONSUMER_GROUPS, *server, "--delete-offsets", "--group", topic, "--topic", topic
    )
    deleted = kafka_tools.tool(CONSUMER_GROUPS, *group, "--delete")
    assert "was successful" in deleted.stdout
    assert topic not in kafka_tools.tool(CONSUMER_GROUPS, *server, "--list").stdout.split()


def test_verifiable_producer_and_consumer(
    broker: OwnedNode, topic: str, kafka_tools: ToolServer
) -> None:
    """Kafka's system-test clients: every value acknowledged once, consumed once, committed."""
    count = 2000
    produced = [
        json.loads(line)
        for line in kafka_tools.tool(
            VERIFIABLE_PRODUCER,
            *(*bootstrap(broker), "--topic", topic, "--max-messages", str(count), "--acks", "-1"),
        ).stdout.splitlines()
    ]
    acked = [e for e in produced if e["name"] == "producer_send_success"]
    assert [int(e["value"]) for e in sorted(acked, key=lambda e: e["offset"])] == list(range(count))
    assert produced[-1]["acked"] == count

    consumed = [
        json.loads(line)
        for line in kafka_tools.tool(
            VERIFIABLE_CONSUMER,
            *(*bootstrap(broker), "--topic", topic, "--max-messages", str(count)),
            *("--group-id", topic, "--reset-policy", "earliest"),
        ).stdout.splitlines()
    ]
    assert sum(e["count"] for e in consumed if e["name"] == "records_consumed") == count
    commits = [e for e in consumed if e["name"] == "offsets_committed"]
    assert all(e["success"] for e in commits)
    assert commits[-1]["offsets"][0]["offset"] == count


def test_offsets_log_dirs_and_delete_records(
    broker: OwnedNode, topic: str, kafka_tools: ToolServer
) -> None:
    """kafka-get-offsets, kafka-log-dirs and kafka-delete-records agree on one partition."""
    batch = wire.record_batch([b"x" * 50] * 10)
    with broker.connect() as connection:
        wire.create_topic(connection, topic)
        for _ in range(3):
            wire.produce(connection, topic, 0, batch)
    server = bootstrap(broker)
    assert kafka_tools.tool(GET_OFFSETS, *server, "--topic", topic).stdout == f"{topic}:0:30\n"

    dirs = kafka_tools.tool(LOG_DIRS, *server, "--describe", "--topic-list", topic).stdout
    (log_dir,) = json.loads(dirs.splitlines()[-1])["brokers"][0]["logDirs"]
    assert log_dir["error"] is None
    (partition,) = log_dir["partitions"]
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] == 3 * len(batch)

    asked = {"partitions": [{"topic": topic, "partition": 0, "offset": 12}], "version": 1}
    path = broker.directory / f"{topic}.json"
    path.write_text(json.dumps(asked))
    deleted = kafka_tools.tool(DELETE_RECORDS, *server, "--offset-json-file", str(path)).stdout
    assert "low_watermark: 12" in deleted
    first = kafka_tools.tool(GET_OFFSETS, *server, "--topic", topic, "--time", "earliest").stdout
    assert first == f"{topic}:0:12\n"


def test_broker_api_versions(broker: OwnedNode, kafka_tools: ToolServer) -> None:
    """The Java client can use what the broker advertises for the core of the protocol."""
    text = kafka_tools.tool(BROKER_API_VERSIONS, *bootstrap(broker)).stdout
    for api in ("Produce(0)", "Fetch(1)", "Metadata(3)", "OffsetCommit(8)", "JoinGroup(11)"):
        line = next(line for line in text.splitlines() if line.strip().startswith(api))
        assert "usable" in line, line
    # librdkafka before 2.11.1 switches compression off where Produce v0 is not offered.
    assert "Produce(0): 0 to " in text


def test_performance_tools(broker: OwnedNode, topic: str, kafka_tools: ToolServer) -> None:
    """The producer, consumer and end-to-end tools run to their end and count everything."""
    server = bootstrap(broker)
    produced = kafka_tools.tool(
        PRODUCER_PERFORMANCE,
        *(*server, "--topic", topic, "--num-records", "20000", "--record-size", "100"),
        *("--throughput", "-1"),
    ).stdout
    assert produced.startswith("20000 records sent")
    consumed = kafka_tools.tool(
        CONSUMER_PERFORMANCE,
        *(*server, "--topic", topic, "--num-records", "20000", "--timeout", "60000"),
    ).stdout
    assert int(consumed.splitlines()[1].split(",")[4]) == 20000
    latency = kafka_tools.tool(
        END_TO_END_LATENCY,
        *(*server, "--topic", f"{topic}-latency", "--num-records", "50"),
        *("--producer-acks", "all", "--record-size", "100"),
    ).stdout
    assert "Percentiles" in latency


@pytest.mark.parametrize("assignor", ["Range", "RoundRobin", "Sticky", "CooperativeSticky"])
def test_java_assignors(
    broker: OwnedNode, topic: str, kafka_tools: ToolServer, assignor: str
) -> None:
    """Each of Java's classic assignors gets its assignment through the coordinator."""
    with broker.connect() as connection:
        wire.create_topic(connection, topic, partitions=3)
        for partition in range(3):
            wire.produce(connection, topic, partition, wire.record_batch([b"x"]))
    name = f"org.apache.kafka.clients.consumer.{assignor}Assignor"
    result = kafka_tools.tool(
        CONSOLE_CONSUMER,
        *(*bootstrap(broker), "--topic", topic, "--from-beginning", "--group", topic),
        *("--max-messages", "3", "--timeout-ms", "60000"),
        *("--command-property", f"partition.assignment.strategy={name}"),
    )
    assert result.stdout.splitlines() == ["x"] * 3
