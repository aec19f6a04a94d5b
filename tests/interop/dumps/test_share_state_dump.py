"""Released Kafka reads our `__share_group_state`.

No broker is needed: the log is ours, the tool is Kafka's.
"""

import json
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from bench.kafka_release import DUMP_LOG, KafkaRelease
from config.topic import TopicConfig
from protocol.internal.share_state import (
    ShareSnapshotValue,
    ShareStateKey,
    ShareUpdateValue,
    StateBatch,
    encode_share_snapshot,
    encode_share_state_key,
    encode_share_update,
)
from protocol.records.builder import build_batch
from storage.environment.filesystem import LocalFilesystem
from storage.log.log import Log
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import format_uuid
from tests.fakes.clock import ManualClock

RECORDS = 200


def some_batches(random: Random) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(
            first := random.randrange(1 << 40),
            first + random.randrange(1 << 20),
            random.choice([0, 2, 4]),
            random.randrange(11),
        )
        for _ in range(random.choice([0, 1, 3, 200]))
    )


def batches_as_dumped(batches: tuple[StateBatch, ...]) -> list[dict[str, int]]:
    return [
        {
            "firstOffset": batch.first_offset,
            "lastOffset": batch.last_offset,
            "deliveryState": batch.delivery_state,
            "deliveryCount": batch.delivery_count,
        }
        for batch in batches
    ]


def as_dumped(value: ShareSnapshotValue | ShareUpdateValue) -> dict[str, Any]:
    data: dict[str, Any] = {
        "snapshotEpoch": value.snapshot_epoch,
        "leaderEpoch": value.leader_epoch,
        "startOffset": value.start_offset,
        "stateBatches": batches_as_dumped(value.batches),
    }
    if isinstance(value, ShareSnapshotValue):
        data["stateEpoch"] = value.state_epoch
        data["createTimestamp"] = value.create_timestamp_ms
        data["writeTimestamp"] = value.write_timestamp_ms
    if value.delivery_complete_count != -1:
        data["deliveryCompleteCount"] = value.delivery_complete_count
    return {"version": "0", "data": data}


def test_kafka_dump_log_decodes_our_topic(kafka_tools: KafkaRelease, tmp_path: Path) -> None:
    """kafka-dump-log --share-group-state-decoder, record by record, both kinds and tombstones."""
    random = Random(1)
    clock = ManualClock()
    topic_partition = TopicPartition("__share_group_state", 0)
    log = Log.open(
        str(tmp_path / str(topic_partition)),
        topic_partition,
        topic_id=UUID(int=1),
        config=TopicConfig(),
        filesystem=LocalFilesystem(),
        clock=clock,
    )
    expected: list[tuple[Any, Any]] = []
    for number in range(RECORDS):
        kind = random.randrange(2)
        key = ShareStateKey(kind, f"group-{number}-ä", UUID(int=number + 1), random.randrange(99))
        small, large = random.randrange(1 << 31), random.randrange(1 << 42)
        count = random.choice([-1, 0, small])
        value: ShareSnapshotValue | ShareUpdateValue
        if kind == 0:
            value = ShareSnapshotValue(
                small, 3, 5, large, large + 1, large + 2, some_batches(random), count
            )
            octets = encode_share_snapshot(value)
        else:
            value = ShareUpdateValue(
                small, 5, random.choice([-1, large]), some_batches(random), count
            )
            octets = encode_share_update(value)
        is_tombstone = number % 20 == 19
        raw = None if is_tombstone else octets
        batch = build_batch([(encode_share_state_key(key), raw, (), clock.now_ms())])
        log.append_as_leader(
            memoryview(batch),
            leader_epoch=0,
            now_ms=clock.now_ms(),
            origin=AppendOrigin.COORDINATOR,
        )
        dumped_key = {
            "groupId": key.group_id,
            "topicId": format_uuid(key.topic_id),
            "partition": key.partition,
        }
        dumped = None if is_tombstone else as_dumped(value)
        expected.append(({"type": str(kind), "data": dumped_key}, dumped))
    log.close()
    (path,) = (tmp_path / str(topic_partition)).glob("*.log")
    result = kafka_tools.tool(
        DUMP_LOG, "--share-group-state-decoder", "--files", str(path), timeout_s=120
    )
    found = []
    for line in result.stdout.splitlines():
        if " key: " in line:
            key_text, payload = line.split(" key: ", 1)[1].split(" payload: ", 1)
            value_found = None if payload == "<DELETE>" else json.loads(payload)
            found.append((json.loads(key_text), value_found))
    assert found == expected
