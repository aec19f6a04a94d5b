"""Released Kafka reads our `__remote_log_metadata`, writes the same bytes, looks in the same place.

No broker is needed: the log is ours, the tools are Kafka's.
"""

from pathlib import Path
from random import Random

from storage.types.uuid_text import format_uuid
from tests.interop.dumps.coordinator_log import dumped_payloads, write_topic
from tests.interop.dumps.samples import random_uuid
from tests.interop.tool_server import ToolServer
from tiered.metadata.partitioner import metadata_partition
from tiered.metadata.records import MetadataEvent, encode_event, encode_segment_snapshot
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

EVENTS = 300


def random_events(random: Random) -> list[MetadataEvent]:
    """Of every kind, with every optional part."""
    events: list[MetadataEvent] = []
    for _ in range(EVENTS):
        topic = random.choice(["t", "some.topic_name-1", "n" * 126, "n" * 127, "n" * 249])
        partition = TopicIdPartition(random_uuid(random), topic, random.randrange(1 << 31))
        segment_id = RemoteLogSegmentId(partition, random_uuid(random))
        start = random.randrange(1 << 62)
        custom = random.choice([None, b"", b"abc", random.randbytes(128), random.randbytes(300)])
        state = random.choice(list(SegmentState))
        event_ms = random.randrange(1 << 42)
        broker_id = random.randrange(1 << 31)
        match random.randrange(3):
            case 0:
                epochs = [SegmentEpoch(random.randrange(9), start)]
                for _ in range(random.choice([0, 0, 1, 200])):
                    epoch, offset = epochs[-1]
                    epochs.append(SegmentEpoch(epoch + 1, offset + random.randrange(1, 99)))
                events.append(
                    RemoteLogSegmentMetadata(
                        segment_id,
                        start,
                        epochs[-1].offset + random.randrange(1 << 20),
                        random.randrange(1 << 42),
                        broker_id,
                        event_ms,
                        random.randrange(1 << 31),
                        tuple(epochs),
                        state,
                        custom,
                        random.random() < 0.5,
                    )
                )
            case 1:
                events.append(
                    RemoteLogSegmentMetadataUpdate(segment_id, event_ms, state, broker_id, custom)
                )
            case _:
                deletion = random.choice(list(PartitionDeleteState))
                events.append(RemotePartitionDelete(partition, deletion, event_ms, broker_id))
    return events


def partition_text(partition: TopicIdPartition) -> str:
    return f"{format_uuid(partition.topic_id)}:{partition}"


def segment_id_text(segment_id: RemoteLogSegmentId) -> str:
    return (
        f"RemoteLogSegmentId{{topicIdPartition={partition_text(segment_id.partition)}, "
        f"id={format_uuid(segment_id.id)}}}"
    )


def custom_text(custom: bytes | None) -> str:
    if custom is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(custom)} bytes}}]"


def text_of(event: MetadataEvent) -> str:
    """As Kafka's classes print themselves."""
    match event:
        case RemoteLogSegmentMetadata():
            epochs = ", ".join(f"{epoch}={offset}" for epoch, offset in event.segment_leader_epochs)
            return (
                f"RemoteLogSegmentMetadata{{remoteLogSegmentId={segment_id_text(event.segment_id)}"
                f", startOffset={event.start_offset}, endOffset={event.end_offset}"
                f", brokerId={event.broker_id}, maxTimestampMs={event.max_timestamp_ms}"
                f", eventTimestampMs={event.event_timestamp_ms}"
                f", segmentLeaderEpochs={{{epochs}}}"
                f", segmentSizeInBytes={event.segment_size_bytes}"
                f", customMetadata={custom_text(event.custom_metadata)}, state={event.state.name}"
                f", txnIdxEmpty={str(event.txn_index_empty).lower()}}}"
            )
        case RemoteLogSegmentMetadataUpdate():
            return (
                "RemoteLogSegmentMetadataUpdate{remoteLogSegmentId="
                f"{segment_id_text(event.segment_id)}"
                f", customMetadata={custom_text(event.custom_metadata)}, state={event.state.name}"
                f", eventTimestampMs={event.event_timestamp_ms}, brokerId={event.broker_id}}}"
            )
        case RemotePartitionDelete():
            return (
                f"RemotePartitionDeleteMetadata{{topicPartition={partition_text(event.partition)}"
                f", state={event.state.name}, eventTimestampMs={event.event_timestamp_ms}"
                f", brokerId={event.broker_id}}}"
            )


def test_kafka_dump_log_decodes_our_topic(kafka_tools: ToolServer, tmp_path: Path) -> None:
    """kafka-dump-log --remote-log-metadata-decoder, event by event."""
    events = random_events(Random(1))
    path = write_topic(
        tmp_path, "__remote_log_metadata", [[(None, encode_event(event))] for event in events]
    )
    dumped = dumped_payloads(kafka_tools, path, "--remote-log-metadata-decoder")
    assert [payload for _, payload in dumped] == [text_of(event) for event in events]


def test_kafka_writes_the_same_bytes(kafka_tools: ToolServer) -> None:
    """Read and written again by Kafka's serde, also the record that only snapshots have."""
    random = Random(2)
    values = [encode_event(event) for event in random_events(random)]
    values += [
        encode_segment_snapshot(event)
        for event in random_events(random)
        if isinstance(event, RemoteLogSegmentMetadata)
    ]
    answers = kafka_tools.ask("RemoteMetadata", [f"record {value.hex()}" for value in values])
    assert answers == [value.hex() for value in values]


def test_kafka_looks_in_the_same_place(kafka_tools: ToolServer) -> None:
    """The metadata partition of random partitions, for several counts."""
    random = Random(3)
    cases = [
        (TopicIdPartition(random_uuid(random), "t", random.randrange(1 << 31)), count)
        for count in (1, 2, 50, 1000, (1 << 31) - 1)
        for _ in range(200)
    ]
    answers = kafka_tools.ask(
        "RemoteMetadata",
        [f"place {format_uuid(p.topic_id)} {p.partition} {count}" for p, count in cases],
    )
    assert answers == [str(metadata_partition(partition, count)) for partition, count in cases]
