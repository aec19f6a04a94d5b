"""A topic of our own log in a directory, and what Kafka's DumpLogSegments says of its records."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from bench.kafka_release import DUMP_LOG
from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.interop.tool_server import ToolServer

KeyValue = tuple[bytes | None, bytes | None]


class GroupRecord(NamedTuple):
    """A record of `__consumer_offsets`, and what Kafka's tool says of its key and its value."""

    key: bytes
    value: bytes
    key_json: dict[str, object]
    data: dict[str, object]


def write_topic(directory: Path, topic: str, batches: Iterable[Sequence[KeyValue]]) -> Path:
    """Append batches as a coordinator does; the one segment's file."""
    clock = ManualClock()
    topic_partition = TopicPartition(topic, 0)
    log = Log.open(
        str(directory / str(topic_partition)),
        topic_partition,
        topic_id=UUID(int=1),
        config=TopicConfig(),
        environment=Environment.without_loop(
            filesystem=LocalFilesystem(), clock=clock, randomness=SeededRandomness(1)
        ),
    )
    for records in batches:
        now_ms = clock.now_ms()
        batch = build_batch([(key, value, (), now_ms) for key, value in records])
        log.writer.append_as_leader(
            memoryview(batch), leader_epoch=0, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        )
    log.close()
    (path,) = (directory / str(topic_partition)).glob("*.log")
    return path


def dumped_payloads(tools: ToolServer, path: Path, decoder: str) -> list[tuple[str, str]]:
    """Key, empty where there is none, and payload of each record, as the tool prints them."""
    said = tools.tool(DUMP_LOG, decoder, "--files", str(path), timeout_s=120).stdout
    found = []
    for line in said.splitlines():
        before, mark, payload = line.partition(" payload: ")
        if mark:
            found.append((before.partition(" key: ")[2], payload))
    return found


def dumped_records(tools: ToolServer, path: Path, decoder: str) -> list[tuple[Any, Any]]:
    """Key and value of each record, from the tool's JSON; None is a tombstone."""
    return [
        (json.loads(key), None if payload == "<DELETE>" else json.loads(payload))
        for key, payload in dumped_payloads(tools, path, decoder)
    ]


def check_dumped(tools: ToolServer, directory: Path, records: Sequence[GroupRecord]) -> None:
    """kafka-dump-log --offsets-decoder reads each, with a tombstone behind it."""
    path = write_topic(
        directory,
        "__consumer_offsets",
        [((record.key, record.value), (record.key, None)) for record in records],
    )
    expected: list[tuple[object, object]] = []
    for record in records:
        expected.append((record.key_json, {"version": "0", "data": record.data}))
        expected.append((record.key_json, None))
    assert dumped_records(tools, path, "--offsets-decoder") == expected


def check_written_again(tools: ToolServer, records: Sequence[GroupRecord]) -> None:
    """The serializer of Kafka's group coordinator reads each and writes the same bytes."""
    lines = [f"{record.key.hex()} {record.value.hex()}" for record in records]
    assert tools.ask("GroupRecords", lines) == lines
