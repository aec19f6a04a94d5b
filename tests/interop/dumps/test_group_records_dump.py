"""Released Kafka reads our records of consumer groups and writes the same bytes.

No broker is needed: the log is ours, the tool and the classes are Kafka's.
"""

import base64
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from bench.kafka_release import DUMP_LOG, KafkaRelease
from config.topic import TopicConfig
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
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    PartitionRacks,
    TopicMetadata,
    encode_consumer_group_current_member_assignment_value,
    encode_consumer_group_key,
    encode_consumer_group_member_metadata_value,
    encode_consumer_group_metadata_value,
    encode_consumer_group_partition_metadata_value,
    encode_consumer_group_regular_expression_value,
    encode_consumer_group_target_assignment_member_value,
    encode_consumer_group_target_assignment_metadata_value,
)
from protocol.records.builder import build_batch
from storage.environment.filesystem import LocalFilesystem
from storage.log.log import Log
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import format_uuid
from tests.fakes.clock import ManualClock

ROUNDS = 60

RESERIALIZE = """
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;

public class Reserialize {
    public static void main(String[] arguments) {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            CoordinatorRecord record = serde.deserialize(
                ByteBuffer.wrap(HexFormat.of().parseHex(words[0])),
                ByteBuffer.wrap(HexFormat.of().parseHex(words[1]))
            );
            System.out.println(
                HexFormat.of().formatHex(serde.serializeKey(record)) + " "
                    + HexFormat.of().formatHex(serde.serializeValue(record))
            );
        }
    }
}
"""

Record = tuple[ConsumerGroupKey, bytes, dict[str, object]]
"""A key, an encoded value, and what Kafka's tool says of the value."""


def random_text(random: Random) -> str:
    return random.choice(["", "a", "grüppe", "x" * 126, "y" * 127, "z" * 300, "some.topic_1"])


def random_nullable(random: Random) -> str | None:
    return None if random.random() < 0.4 else random_text(random)


def random_uuid(random: Random) -> UUID:
    return UUID(int=random.getrandbits(128))


def random_int32(random: Random) -> int:
    return random.choice([-1, 0, 1, 127, 128, 1 << 20, (1 << 31) - 1])


def random_int64(random: Random) -> int:
    return random.choice([-1, 1, 1 << 40, -(1 << 63), (1 << 63) - 1])


def random_assignment(random: Random) -> dict[UUID, tuple[int, ...]]:
    return {
        random_uuid(random): tuple(range(random.choice([0, 1, 5, 130])))
        for _ in range(random.randrange(4))
    }


def assignment_json(assignment: Mapping[UUID, tuple[int, ...]]) -> list[dict[str, object]]:
    return [
        {"topicId": format_uuid(topic_id), "partitions": list(partitions)}
        for topic_id, partitions in assignment.items()
    ]


def group_record(random: Random) -> Record:
    value = ConsumerGroupMetadataValue(
        random_int32(random), random.choice([0, random_int64(random)])
    )
    data: dict[str, object] = {"epoch": value.epoch}
    if value.metadata_hash:
        data["metadataHash"] = value.metadata_hash
    key = ConsumerGroupMetadataKey(random_text(random))
    return key, encode_consumer_group_metadata_value(value), data


def partition_metadata_record(random: Random) -> Record:
    value = ConsumerGroupPartitionMetadataValue(
        tuple(
            TopicMetadata(
                random_uuid(random),
                random_text(random),
                random_int32(random),
                tuple(
                    PartitionRacks(partition, ("r1", "räck")[: random.randrange(3)])
                    for partition in range(random.randrange(4))
                ),
            )
            for _ in range(random.randrange(4))
        )
    )
    topics = [
        {
            "topicId": format_uuid(topic.topic_id),
            "topicName": topic.name,
            "numPartitions": topic.partition_count,
            "partitionMetadata": [
                {"partition": place.partition, "racks": list(place.racks)} for place in topic.racks
            ],
        }
        for topic in value.topics
    ]
    key = ConsumerGroupPartitionMetadataKey(random_text(random))
    return key, encode_consumer_group_partition_metadata_value(value), {"topics": topics}


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
    return key, encode_consumer_group_target_assignment_metadata_value(value), data


def target_record(random: Random) -> Record:
    value = ConsumerGroupTargetAssignmentMemberValue(random_assignment(random))
    key = ConsumerGroupTargetAssignmentMemberKey(random_text(random), random_text(random))
    data: dict[str, object] = {"topicPartitions": assignment_json(value.partitions)}
    return key, encode_consumer_group_target_assignment_member_value(value), data


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
    partition_metadata_record,
    member_record,
    target_epoch_record,
    target_record,
    current_record,
    expression_record,
)


def random_records(random: Random) -> list[Record]:
    """Of every kind, with every optional part."""
    return [kind(random) for _ in range(ROUNDS) for kind in KINDS]


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


def dump(
    kafka_tools: KafkaRelease, directory: Path, records: Sequence[tuple[bytes, bytes]]
) -> list[tuple[object, object]]:
    """What kafka-dump-log --offsets-decoder says of each record, with a tombstone behind each."""
    clock = ManualClock()
    topic_partition = TopicPartition("__consumer_offsets", 0)
    log = Log.open(
        str(directory / str(topic_partition)),
        topic_partition,
        topic_id=UUID(int=1),
        config=TopicConfig(),
        filesystem=LocalFilesystem(),
        clock=clock,
    )
    for key, value in records:
        now_ms = clock.now_ms()
        batch = build_batch([(key, value, (), now_ms), (key, None, (), now_ms)])
        log.append_as_leader(
            memoryview(batch),
            leader_epoch=0,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
        )
    log.close()
    (path,) = (directory / str(topic_partition)).glob("*.log")
    dumped = kafka_tools.tool(DUMP_LOG, "--offsets-decoder", "--files", str(path), timeout_s=120)
    found: list[tuple[object, object]] = []
    for line in dumped.stdout.splitlines():
        if " key: " in line:
            key_text, _, payload = line.split(" key: ", 1)[1].partition(" payload: ")
            found.append(
                (json.loads(key_text), None if payload == "<DELETE>" else json.loads(payload))
            )
    return found


def reserialized(kafka_tools: KafkaRelease, directory: Path, lines: list[str]) -> list[str]:
    """Keys and values in hexadecimal, read and written again by Kafka's serializer."""
    if shutil.which("javac") is None:
        pytest.fail("needs a Java that compiles: openjdk-17-jdk-headless")
    source = directory / "Reserialize.java"
    source.write_text(RESERIALIZE)
    return kafka_tools.tool(
        str(source), text="\n".join(lines) + "\n", timeout_s=120
    ).stdout.splitlines()


def test_kafka_dump_log_decodes_our_topic(kafka_tools: KafkaRelease, tmp_path: Path) -> None:
    """kafka-dump-log --offsets-decoder, record by record, tombstones in between."""
    records = random_records(Random(1))
    found = dump(
        kafka_tools,
        tmp_path,
        [(encode_consumer_group_key(key), value) for key, value, _ in records],
    )
    expected: list[tuple[object, object]] = []
    for key, _, data in records:
        expected.append((key_json(key), {"version": "0", "data": data}))
        expected.append((key_json(key), None))
    assert found == expected


def test_kafka_writes_the_same_bytes(kafka_tools: KafkaRelease, tmp_path: Path) -> None:
    """Read and written again by the serializer of Kafka's group coordinator."""
    lines = [
        f"{encode_consumer_group_key(key).hex()} {value.hex()}"
        for key, value, _ in random_records(Random(2))
    ]
    assert reserialized(kafka_tools, tmp_path, lines) == lines
