"""Released Kafka reads our `__share_group_state`.

No broker is needed: the log is ours, the tool is Kafka's.
"""

from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from protocol.internal.share_state import (
    ShareSnapshotValue,
    ShareStateKey,
    ShareUpdateValue,
    StateBatch,
    encode_share_snapshot,
    encode_share_state_key,
    encode_share_update,
)
from storage.types.uuid_text import format_uuid
from tests.interop.dumps.coordinator_log import KeyValue, dumped_records, write_topic
from tests.interop.tool_server import ToolServer

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


def test_kafka_dump_log_decodes_our_topic(kafka_tools: ToolServer, tmp_path: Path) -> None:
    """kafka-dump-log --share-group-state-decoder, record by record, both kinds and tombstones."""
    random = Random(1)
    batches: list[list[KeyValue]] = []
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
        batches.append([(encode_share_state_key(key), raw)])
        dumped_key = {
            "groupId": key.group_id,
            "topicId": format_uuid(key.topic_id),
            "partition": key.partition,
        }
        dumped = None if is_tombstone else as_dumped(value)
        expected.append(({"type": str(kind), "data": dumped_key}, dumped))
    path = write_topic(tmp_path, "__share_group_state", batches)
    assert dumped_records(kafka_tools, path, "--share-group-state-decoder") == expected
