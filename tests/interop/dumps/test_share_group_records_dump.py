"""Released Kafka reads our records of share groups and writes the same bytes.

No broker is needed: the log is ours, the tool and the classes are Kafka's.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from protocol.internal import share_group_records as r
from protocol.internal.target_assignment import (
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    encode_target_assignment_member_value,
    encode_target_assignment_metadata_value,
)
from storage.types.uuid_text import format_uuid
from tests.interop.dumps.coordinator_log import GroupRecord, check_dumped, check_written_again
from tests.interop.dumps.samples import (
    ROUNDS,
    assignment_json,
    random_assignment,
    random_int32,
    random_int64,
    random_nullable,
    random_text,
    random_uuid,
)
from tests.interop.tool_server import ToolServer

Record = tuple[r.ShareGroupKey, bytes, dict[str, object]]
"""A key, an encoded value, and what Kafka's tool says of the value."""


def group_record(random: Random) -> Record:
    value = r.ShareGroupMetadataValue(random_int32(random), random_int64(random))
    data: dict[str, object] = {"epoch": value.epoch, "metadataHash": value.metadata_hash}
    key = r.ShareGroupMetadataKey(random_text(random))
    return key, r.encode_share_group_metadata_value(value), data


def member_record(random: Random) -> Record:
    value = r.ShareGroupMemberMetadataValue(
        random_nullable(random),
        random_text(random),
        random_text(random),
        tuple(random_text(random) for _ in range(random.randrange(4))),
    )
    data: dict[str, object] = {
        "rackId": value.rack_id,
        "clientId": value.client_id,
        "clientHost": value.client_host,
        "subscribedTopicNames": list(value.subscribed_topic_names),
    }
    key = r.ShareGroupMemberMetadataKey(random_text(random), random_text(random))
    return key, r.encode_share_group_member_metadata_value(value), data


def target_epoch_record(random: Random) -> Record:
    value = TargetAssignmentMetadataValue(random_int32(random))
    key = r.ShareGroupTargetAssignmentMetadataKey(random_text(random))
    data: dict[str, object] = {"assignmentEpoch": value.assignment_epoch}
    return key, encode_target_assignment_metadata_value(value), data


def target_record(random: Random) -> Record:
    value = TargetAssignmentMemberValue(random_assignment(random))
    key = r.ShareGroupTargetAssignmentMemberKey(random_text(random), random_text(random))
    data: dict[str, object] = {"topicPartitions": assignment_json(value.partitions)}
    return key, encode_target_assignment_member_value(value), data


def current_record(random: Random) -> Record:
    value = r.ShareGroupCurrentMemberAssignmentValue(
        random_int32(random),
        random_int32(random),
        random.choice([0, 127]),
        random_assignment(random),
    )
    key = r.ShareGroupCurrentMemberAssignmentKey(random_text(random), random_text(random))
    data: dict[str, object] = {
        "memberEpoch": value.member_epoch,
        "previousMemberEpoch": value.previous_member_epoch,
        "state": value.state,
        "assignedPartitions": assignment_json(value.assigned_partitions),
    }
    return key, r.encode_share_group_current_member_assignment_value(value), data


def state_record(random: Random) -> Record:
    def infos() -> tuple[r.TopicPartitionsInfo, ...]:
        return tuple(
            r.TopicPartitionsInfo(
                random_uuid(random),
                random_text(random),
                tuple(range(random.choice([0, 1, 5, 130]))),
            )
            for _ in range(random.randrange(4))
        )

    def infos_json(topics: Sequence[r.TopicPartitionsInfo]) -> list[dict[str, object]]:
        return [
            {
                "topicId": format_uuid(topic.topic_id),
                "topicName": topic.name,
                "partitions": list(topic.partitions),
            }
            for topic in topics
        ]

    value = r.ShareGroupStatePartitionMetadataValue(
        infos(),
        infos(),
        tuple(
            r.TopicInfo(random_uuid(random), random_text(random))
            for _ in range(random.randrange(3))
        ),
    )
    data: dict[str, object] = {
        "initializingTopics": infos_json(value.initializing),
        "initializedTopics": infos_json(value.initialized),
        "deletingTopics": [
            {"topicId": format_uuid(topic.topic_id), "topicName": topic.name}
            for topic in value.deleting
        ],
    }
    key = r.ShareGroupStatePartitionMetadataKey(random_text(random))
    return key, r.encode_share_group_state_partition_metadata_value(value), data


KINDS: tuple[Callable[[Random], Record], ...] = (
    group_record,
    member_record,
    target_epoch_record,
    target_record,
    current_record,
    state_record,
)


def key_json(key: r.ShareGroupKey) -> dict[str, object]:
    data: dict[str, object] = {"groupId": key.group}
    if isinstance(
        key,
        r.ShareGroupMemberMetadataKey
        | r.ShareGroupTargetAssignmentMemberKey
        | r.ShareGroupCurrentMemberAssignmentKey,
    ):
        data["memberId"] = key.member_id
    return {"type": str(key.VERSION), "data": data}


def random_records(random: Random) -> list[GroupRecord]:
    """Of every kind, with every optional part."""
    made = [kind(random) for _ in range(ROUNDS) for kind in KINDS]
    return [
        GroupRecord(r.encode_share_group_key(key), value, key_json(key), data)
        for key, value, data in made
    ]


def test_kafka_dump_log_decodes_our_topic(kafka_tools: ToolServer, tmp_path: Path) -> None:
    check_dumped(kafka_tools, tmp_path, random_records(Random(1)))


def test_kafka_writes_the_same_bytes(kafka_tools: ToolServer) -> None:
    check_written_again(kafka_tools, random_records(Random(2)))
