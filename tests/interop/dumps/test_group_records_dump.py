"""Released Kafka reads our records of consumer groups and writes the same bytes.

No broker is needed: the log is ours, the tool and the classes are Kafka's.
"""

import base64
from pathlib import Path
from random import Random

from protocol.internal.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocolMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    encode_consumer_group_current_member_assignment_value,
    encode_consumer_group_key,
    encode_consumer_group_member_metadata_value,
    encode_consumer_group_metadata_value,
    encode_consumer_group_regular_expression_value,
)
from protocol.internal.target_assignment import (
    encode_target_assignment_member_value,
    encode_target_assignment_metadata_value,
)
from tests.interop.dumps.coordinator_log import GroupRecord, check_dumped, check_written_again
from tests.interop.dumps.samples import (
    ROUNDS,
    assignment_json,
    random_assignment,
    random_int32,
    random_int64,
    random_nullable,
    random_text,
)
from tests.interop.tool_server import ToolServer

Record = tuple[ConsumerGroupKey, bytes, dict[str, object]]
"""A key, an encoded value, and what Kafka's tool says of the value."""


def group_record(random: Random) -> Record:
    value = ConsumerGroupMetadataValue(
        random_int32(random), random.choice([0, random_int64(random)])
    )
    data: dict[str, object] = {"epoch": value.epoch}
    if value.metadata_hash:
        data["metadataHash"] = value.metadata_hash
    key = ConsumerGroupMetadataKey(random_text(random))
    return key, encode_consumer_group_metadata_value(value), data


def member_record(random: Random) -> Record:
    classic = None
    if random.random() < 0.5:
        protocols = tuple(
            ClassicProtocolMetadata(random_text(random), random.randbytes(random.choice([0, 200])))
            for _ in range(random.randrange(1, 4))
        )
        # Kafka leaves out one with no protocol and no timeout; no member is like that.
        classic = ClassicMemberMetadata(random_int32(random), protocols)
    value = ConsumerGroupMemberMetadataValue(
        instance_id=random_nullable(random),
        rack_id=random_nullable(random),
        client_id=random_text(random),
        client_host=random_text(random),
        subscribed_topic_names=tuple(random_text(random) for _ in range(random.randrange(4))),
        subscribed_topic_regex=random_nullable(random),
        rebalance_timeout_ms=random_int32(random),
        server_assignor=random_nullable(random),
        classic_member_metadata=classic,
    )
    data: dict[str, object] = {
        "instanceId": value.instance_id,
        "rackId": value.rack_id,
        "clientId": value.client_id,
        "clientHost": value.client_host,
        "subscribedTopicNames": list(value.subscribed_topic_names),
        "subscribedTopicRegex": value.subscribed_topic_regex,
        "rebalanceTimeoutMs": value.rebalance_timeout_ms,
        "serverAssignor": value.server_assignor,
    }
    if classic is not None:
        data["classicMemberMetadata"] = {
            "sessionTimeoutMs": classic.session_timeout_ms,
            "supportedProtocols": [
                {"name": name, "metadata": base64.b64encode(metadata).decode()}
                for name, metadata in classic.supported_protocols
            ],
        }
    key = ConsumerGroupMemberMetadataKey(random_text(random), random_text(random))
    return key, encode_consumer_group_member_metadata_value(value), data


def target_epoch_record(random: Random) -> Record:
    value = ConsumerGroupTargetAssignmentMetadataValue(random_int32(random))
    key = ConsumerGroupTargetAssignmentMetadataKey(random_text(random))
    data: dict[str, object] = {"assignmentEpoch": value.assignment_epoch}
    return key, encode_target_assignment_metadata_value(value), data


def target_record(random: Random) -> Record:
    value = ConsumerGroupTargetAssignmentMemberValue(random_assignment(random))
    key = ConsumerGroupTargetAssignmentMemberKey(random_text(random), random_text(random))
    data: dict[str, object] = {"topicPartitions": assignment_json(value.partitions)}
    return key, encode_target_assignment_member_value(value), data


def current_record(random: Random) -> Record:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        random_int32(random),
        random_int32(random),
        random.choice([0, 1, 2, 127, -1]),
        random_assignment(random),
        random_assignment(random),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(random_text(random), random_text(random))
    data: dict[str, object] = {
        "memberEpoch": value.member_epoch,
        "previousMemberEpoch": value.previous_member_epoch,
        "state": value.state,
        "assignedPartitions": assignment_json(value.assigned_partitions),
        "partitionsPendingRevocation": assignment_json(value.partitions_pending_revocation),
    }
    return key, encode_consumer_group_current_member_assignment_value(value), data


def expression_record(random: Random) -> Record:
    topics = tuple(random_text(random) for _ in range(random.randrange(4)))
    value = ConsumerGroupRegularExpressionValue(topics, random_int64(random), random_int64(random))
    key = ConsumerGroupRegularExpressionKey(random_text(random), random_text(random))
    data: dict[str, object] = {
        "topics": list(topics),
        "version": value.version,
        "timestamp": value.timestamp_ms,
    }
    return key, encode_consumer_group_regular_expression_value(value), data


KINDS = (
    group_record,
    member_record,
    target_epoch_record,
    target_record,
    current_record,
    expression_record,
)


def key_json(key: ConsumerGroupKey) -> dict[str, object]:
    data: dict[str, object] = {"groupId": key.group}
    if isinstance(key, ConsumerGroupRegularExpressionKey):
        data["regularExpression"] = key.pattern
    elif isinstance(
        key,
        ConsumerGroupMemberMetadataKey
        | ConsumerGroupTargetAssignmentMemberKey
        | ConsumerGroupCurrentMemberAssignmentKey,
    ):
        data["memberId"] = key.member_id
    return {"type": str(key.VERSION), "data": data}


def random_records(random: Random) -> list[GroupRecord]:
    """Of every kind, with every optional part."""
    made = [kind(random) for _ in range(ROUNDS) for kind in KINDS]
    return [
        GroupRecord(encode_consumer_group_key(key), value, key_json(key), data)
        for key, value, data in made
    ]


def test_kafka_dump_log_decodes_our_topic(kafka_tools: ToolServer, tmp_path: Path) -> None:
    check_dumped(kafka_tools, tmp_path, random_records(Random(1)))


def test_kafka_writes_the_same_bytes(kafka_tools: ToolServer) -> None:
    check_written_again(kafka_tools, random_records(Random(2)))
