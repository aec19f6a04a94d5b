"""Kafka's own programs for share groups, unmodified, from the released jars."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import wire
from bench.node import OwnedNode
from tests.interop.conftest import BROKER, new_node
from tests.interop.libraries.test_share_groups import PROPERTIES
from tests.interop.tool_server import ToolServer

CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "org.apache.kafka.tools.GroupsCommand"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
VERIFIABLE_SHARE_CONSUMER = "org.apache.kafka.tools.VerifiableShareConsumer"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedNode]:
    node = new_node(tmp_path_factory.mktemp("share-tools"), PROPERTIES)
    node.start()
    if BROKER == "varve":
        # Kafka 4.2 has it on in a new cluster.
        command = [str(Path(sys.executable).parent / "varve"), "features"]
        command += ["--bootstrap-server", node.address, "upgrade", "share.version=1"]
        subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)
    yield node
    node.stop()


class Tool:
    """kafka-share-groups for one group."""

    def __init__(self, tools: ToolServer, node: OwnedNode, group: str) -> None:
        self._tools = tools
        self._server = ("--bootstrap-server", node.address)
        self._group = group

    def run(self, *arguments: str) -> str:
        """What it prints."""
        return self._tools.tool(
            SHARE_GROUPS, *self._server, "--group", self._group, *arguments
        ).stdout

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """The table that it prints: one row for each line, by the words of its first one."""
        lines = [line.split() for line in self.run(*arguments).splitlines()]
        head = next(line for line in lines if line[:1] == ["GROUP"])
        body = lines[lines.index(head) + 1 :]
        return [dict(zip(head, line, strict=False)) for line in body if line]

    def offsets(self) -> dict[str, tuple[str, str]]:
        """Start offset and lag of each partition."""
        return {
            row["PARTITION"]: (row["START-OFFSET"], row["LAG"])
            for row in self.rows("--describe", "--offsets")
        }


@pytest.mark.slow
def test_share_groups_tool(node: OwnedNode, topic: str, kafka_tools: ToolServer) -> None:
    """A group reads, is looked at, put back, and deleted."""
    server = ("--bootstrap-server", node.address)
    group = f"group-{topic}"
    tool = Tool(kafka_tools, node, group)
    with node.connect() as connection:
        wire.create_topic(connection, topic, 2)
        for partition in range(2):
            wire.produce(connection, topic, partition, wire.record_batch([b"x"] * 10))
    kafka_tools.tool(
        CONFIGS,
        *(*server, "--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", "share.auto.offset.reset=earliest"),
    )
    read = kafka_tools.tool(
        CONSOLE_SHARE_CONSUMER,
        *(*server, "--topic", topic, "--group", group),
        *("--max-messages", "20", "--timeout-ms", "60000"),
    )
    assert read.stdout.split() == ["x"] * 20
    # The start offset moves with the next write; what is done already is no lag.
    assert tool.offsets() == {"0": ("0", "0"), "1": ("0", "0")}

    listed = kafka_tools.tool(SHARE_GROUPS, *server, "--list", "--state", "empty").stdout
    assert [group, "Empty"] in [line.split() for line in listed.splitlines()]
    kinds = kafka_tools.tool(GROUPS, *server, "--list", "--group-type", "share").stdout
    assert [group, "Share", "share"] in [line.split()[:3] for line in kinds.splitlines()]
    (state,) = tool.rows("--describe", "--state")
    assert (state["GROUP"], state["STATE"]) == (group, "Empty")

    reset = ("--reset-offsets", "--topic", topic, "--to-earliest")
    tool.run(*reset, "--dry-run")
    assert tool.offsets()["0"] == ("0", "0")
    tool.run(*reset, "--execute")
    # How many records are done from here on is not known until somebody reads.
    assert tool.offsets() == {"0": ("0", "-"), "1": ("0", "-")}
    again = kafka_tools.tool(
        CONSOLE_SHARE_CONSUMER,
        *(*server, "--topic", topic, "--group", group),
        *("--max-messages", "20", "--timeout-ms", "60000"),
    )
    assert again.stdout.split() == ["x"] * 20

    assert "Successful" in tool.run("--delete-offsets", "--topic", topic)
    assert tool.rows("--describe", "--state")[0]["STATE"] == "Empty"
    assert "was successful" in tool.run("--delete")
    assert group not in kafka_tools.tool(SHARE_GROUPS, *server, "--list").stdout


def test_verifiable_share_consumer(node: OwnedNode, topic: str, kafka_tools: ToolServer) -> None:
    """The consumer of Kafka's system tests acknowledges all there is."""
    count = 1000
    with node.connect() as connection:
        wire.create_topic(connection, topic, 3)
        for partition in range(3):
            wire.produce(connection, topic, partition, wire.record_batch([b"x"] * count))
    told = [
        json.loads(line)
        for line in kafka_tools.tool(
            VERIFIABLE_SHARE_CONSUMER,
            *("--bootstrap-server", node.address, "--topic", topic, "--group-id", topic),
            *("--max-messages", str(3 * count), "--offset-reset-strategy", "earliest"),
            *("--acknowledgement-mode", "sync"),
        ).stdout.splitlines()
        if line.startswith("{")
    ]
    consumed = sum(e["count"] for e in told if e["name"] == "records_consumed")
    acknowledged = sum(e["count"] for e in told if e["name"] == "offsets_acknowledged")
    assert (consumed, acknowledged) == (3 * count, 3 * count)
    described = json.loads(
        subprocess.run(
            [
                str(Path(sys.executable).parent / "varve"),
                *("groups", "--bootstrap-server", node.address, "--json", "describe", topic),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        ).stdout
    )
    assert (described["type"], described["state"]) == ("share", "Empty")
    told_by_tool = Tool(kafka_tools, node, topic).offsets()
    told_by_us = {
        str(at["partition"]): (str(at["committed"]), str(at["lag"])) for at in described["offsets"]
    }
    assert told_by_us == told_by_tool
