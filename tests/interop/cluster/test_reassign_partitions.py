"""kafka-reassign-partitions on three brokers: the same on ours and on released Kafka."""

import json
from pathlib import Path
from typing import Any

from bench.cluster.cluster import Cluster
from bench.kafka_release import CONFIGS, REASSIGN_PARTITIONS
from tests.interop.tool_server import ToolServer

RATE = 100_000
"""Bytes per second of the throttle: the move takes longer than the tool on a busy machine."""


class Reassign:
    """The tool, by one of the brokers."""

    def __init__(self, cluster: Cluster, tools: ToolServer, directory: Path) -> None:
        self._cluster = cluster
        self._tools = tools
        self._file = directory / "moves.json"

    def plan(self, topic: str, *replicas: list[int]) -> None:
        partitions = [
            {"topic": topic, "partition": index, "replicas": one}
            for index, one in enumerate(replicas)
        ]
        self._file.write_text(json.dumps({"version": 1, "partitions": partitions}))

    def run(self, *words: str) -> str:
        by = ("--bootstrap-server", self._cluster.addresses[1])
        return self._tools.tool(REASSIGN_PARTITIONS, *by, *words).stdout

    def with_plan(self, *words: str) -> str:
        return self.run("--reassignment-json-file", str(self._file), *words)


def replicas_of(cluster: Cluster, topic: str, index: int = 0) -> tuple[int, ...]:
    (state,) = [one for one in cluster.state([topic]).partitions if one.index == index]
    return tuple(state.replicas)


def fill(cluster: Cluster, topic: str, records: int) -> None:
    """Records of 100 kB, acknowledged by all."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
    for _ in range(records):
        producer.send(topic, b"x" * 100_000, partition=0)
    producer.flush()
    producer.close()


def throttles(cluster: Cluster, tools: ToolServer, *entity: str) -> str:
    by = ("--bootstrap-server", cluster.addresses[0])
    shown = tools.tool(CONFIGS, *by, "--describe", *entity).stdout
    return "".join(line for line in shown.splitlines(keepends=True) if "throttled" in line)


def test_generate_execute_verify(
    cluster: Cluster, topic: str, kafka_tools: ToolServer, tmp_path: Path
) -> None:
    """A plan of the tool's own; it is verified as complete, and the assignment is the plan's."""
    cluster.create_topic(topic, [[1, 2], [2, 1]])
    reassign = Reassign(cluster, kafka_tools, tmp_path)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    generated = reassign.run(
        "--topics-to-move-json-file", str(topics), "--broker-list", "2,3", "--generate"
    )
    plan: dict[str, Any] = json.loads(generated.splitlines()[-1])
    wanted = [
        one["replicas"] for one in sorted(plan["partitions"], key=lambda one: one["partition"])
    ]
    assert {node for one in wanted for node in one} == {2, 3}
    reassign.plan(topic, *wanted)
    assert "Successfully started partition reassignments" in reassign.with_plan("--execute")
    cluster.wait_until(
        "the plan's replicas",
        lambda: [list(replicas_of(cluster, topic, index)) for index in (0, 1)] == wanted,
    )
    verified = reassign.with_plan("--verify")
    for index in (0, 1):
        assert f"Reassignment of partition {topic}-{index} is completed." in verified


def test_throttle_list_cancel_and_its_end(
    cluster: Cluster, topic: str, kafka_tools: ToolServer, tmp_path: Path
) -> None:
    """What is under way is listed, cancelled, begun again; --verify takes the throttle off."""
    cluster.create_topic(topic, [[1, 2]])
    fill(cluster, topic, 100)
    reassign = Reassign(cluster, kafka_tools, tmp_path)
    reassign.plan(topic, [3, 2])
    started = reassign.with_plan("--execute", "--throttle", str(RATE))
    assert "Successfully started partition reassignment" in started
    assert f"{topic}-0: replicas: 3,2,1. adding: 3. removing: 1." in reassign.run("--list")
    of_topic = throttles(cluster, kafka_tools, "--topic", topic)
    assert "leader.replication.throttled.replicas=0:1,0:2" in of_topic
    assert "follower.replication.throttled.replicas=0:3" in of_topic
    of_broker = throttles(cluster, kafka_tools, "--broker", "3")
    assert f"leader.replication.throttled.rate={RATE}" in of_broker
    assert f"follower.replication.throttled.rate={RATE}" in of_broker
    assert "is still in progress" in reassign.with_plan("--verify")

    assert "cancelled" in reassign.with_plan("--cancel").lower()
    assert sorted(replicas_of(cluster, topic)) == [1, 2]
    assert "No partition reassignments found." in reassign.run("--list")
    assert throttles(cluster, kafka_tools, "--topic", topic) == ""

    reassign.with_plan("--execute", "--throttle", str(RATE))
    assert "is still in progress" in reassign.with_plan("--verify")
    # Faster.
    reassign.with_plan("--execute", "--additional", "--throttle", "1000000000")
    cluster.wait_until("replicas 3, 2", lambda: replicas_of(cluster, topic) == (3, 2))
    verified = reassign.with_plan("--verify")
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert throttles(cluster, kafka_tools, "--topic", topic) == ""
    assert throttles(cluster, kafka_tools, "--broker", "3") == ""
