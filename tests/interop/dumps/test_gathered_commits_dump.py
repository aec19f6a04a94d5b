"""Commits that share a batch, read by Kafka's tool and by a broker that starts after a kill."""

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import group_wire, wire
from bench.group_wire import CommitFrame
from bench.kafka_release import DUMP_LOG
from bench.node import OwnedNode
from tests.interop.conftest import new_node
from tests.interop.tool_server import ToolServer

GROUPS = [f"group-{number}" for number in range(8)]
COMMITS = 40
"""Of each group, sent without waiting for an answer."""

PARTITIONS = range(3)
BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*isvalid: (\w+)", re.M)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[OwnedNode]:
    """A broker whose groups share one offsets partition."""
    made = new_node(tmp_path, {"node.id": "1", "offsets.topic.num.partitions": "1"})
    made.start()
    yield made
    if made.is_running:
        made.stop()


def commit_without_waiting(node: OwnedNode) -> None:
    """All commits of all groups in one write; every answer is good and in its place."""
    sent = bytearray()
    number = 0
    for offset in range(COMMITS):
        for group in GROUPS:
            sent += CommitFrame.of(group, -1, "", "t", PARTITIONS).filled(number, offset)
            number += 1
    with node.connect() as connection:
        writer = threading.Thread(target=connection.sendall, args=(sent,))
        writer.start()
        for expected in range(number):
            answer = bytes(wire.receive(connection))
            assert int.from_bytes(answer[:4], "big") == expected
            assert group_wire.commit_errors(answer) == set()
        writer.join()


def fetched(node: OwnedNode) -> list[dict[int, int]]:
    found = []
    with node.connect() as connection:
        for group in GROUPS:
            connection.sendall(group_wire.offset_fetch_frame(group, "t", PARTITIONS, 1))
            found.append(group_wire.fetched_offsets(bytes(wire.receive(connection))))
    return found


def wait_for_coordinator(node: OwnedNode) -> None:
    """FindCoordinator creates the topic; it is served when its log has been read."""
    deadline = time.monotonic() + 60
    with node.connect() as connection:
        while time.monotonic() < deadline:
            connection.sendall(group_wire.find_coordinator_frame(GROUPS[0], 1))
            wire.receive(connection)
            connection.sendall(group_wire.offset_fetch_frame(GROUPS[0], "t", PARTITIONS, 1))
            try:
                group_wire.fetched_offsets(bytes(wire.receive(connection)))
            except wire.WireError:
                time.sleep(0.05)
            else:
                return
    pytest.fail("no coordinator")


def test_commits_of_one_moment_are_few_batches_that_kafka_reads(
    node: OwnedNode, kafka_tools: ToolServer
) -> None:
    """In the order of the requests; and nothing of it is lost by a kill."""
    with node.connect() as connection:
        wire.create_topic(connection, "t", len(PARTITIONS))
    wait_for_coordinator(node)
    commit_without_waiting(node)
    last = [dict.fromkeys(PARTITIONS, COMMITS - 1)] * len(GROUPS)
    assert fetched(node) == last
    node.kill()
    (path,) = node.data_directory.glob("**/__consumer_offsets-0/*.log")
    dumped = kafka_tools.tool(
        DUMP_LOG, "--offsets-decoder", "--files", str(path), timeout_s=120
    ).stdout
    batches = BATCH.findall(dumped)
    assert {valid for *_, valid in batches} == {"true"}
    records = [line for line in dumped.splitlines() if " key: " in line]
    total = COMMITS * len(GROUPS) * len(PARTITIONS)
    assert len(records) == sum(int(count) for *_, count, _ in batches) == total
    assert len(batches) <= COMMITS * len(GROUPS) / 4
    seen: dict[tuple[str, int], list[int]] = {}
    for line in records:
        key_text, _, payload = line.split(" key: ", 1)[1].partition(" payload: ")
        key, value = json.loads(key_text)["data"], json.loads(payload)["data"]
        seen.setdefault((key["group"], key["partition"]), []).append(value["offset"])
    assert seen == {
        (group, index): list(range(COMMITS)) for group in GROUPS for index in PARTITIONS
    }
    node.start()
    wait_for_coordinator(node)
    assert fetched(node) == last
