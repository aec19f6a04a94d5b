"""Codec between remote segment metadata and the records of `__remote_log_metadata`.

`protocol.internal.remote_log_metadata` knows the bytes; here is what makes them mean something:
states are in range, a segment has leader epochs and does not end before it begins.
"""

from typing import Final, TypeAlias
from uuid import UUID

from protocol.errors import DecodeError
from protocol.internal.remote_log_metadata import (
    LeaderEpochs,
    PartitionDeleteMetadataRecord,
    SegmentMetadataRecord,
    SegmentMetadataSnapshotRecord,
    SegmentMetadataUpdateRecord,
    decode,
    encode,
)
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

MetadataEvent: TypeAlias = (
    RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate | RemotePartitionDelete
)
"""Events of remote segments."""

EventRecord: TypeAlias = (
    SegmentMetadataRecord | SegmentMetadataUpdateRecord | PartitionDeleteMetadataRecord
)
"""The same, as read from the topic."""

# By number: calling an enum costs ten times as much.
_SEGMENT_STATES: Final = tuple(SegmentState)
_PARTITION_STATES: Final = tuple(PartitionDeleteState)


def encode_event(event: MetadataEvent) -> bytes:
    """The record's value.

    Raises:
        ValueError: A number does not fit (a segment of 2 GiB or more, say).
    """
    match event:
        case RemoteLogSegmentMetadata():
            partition = event.partition
            return encode(
                SegmentMetadataRecord(
                    partition.topic,
                    partition.topic_id.bytes,
                    partition.partition,
                    event.id.bytes,
                    event.start_offset,
                    event.end_offset,
                    event.broker_id,
                    event.max_timestamp_ms,
                    event.event_timestamp_ms,
                    event.segment_leader_epochs,
                    event.segment_size_bytes,
                    event.custom_metadata,
                    event.state,
                    event.txn_index_empty,
                )
            )
        case RemoteLogSegmentMetadataUpdate():
            partition = event.segment_id.partition
            return encode(
                SegmentMetadataUpdateRecord(
                    partition.topic,
                    partition.topic_id.bytes,
                    partition.partition,
                    event.segment_id.id.bytes,
                    event.broker_id,
                    event.event_timestamp_ms,
                    event.custom_metadata,
                    event.state,
                )
            )
        case RemotePartitionDelete():
            partition = event.partition
            return encode(
                PartitionDeleteMetadataRecord(
                    partition.topic,
                    partition.topic_id.bytes,
                    partition.partition,
                    event.broker_id,
                    event.event_timestamp_ms,
                    event.state,
                )
            )


def decode_event(data: bytes) -> EventRecord:
    """The event of a record; ids are still bytes, states still numbers.

    Raises:
        DecodeError: The bytes are no record, or one that does not name its partition.
    """
    record = decode(data)
    if isinstance(record, SegmentMetadataSnapshotRecord):
        raise DecodeError("a snapshot record does not belong into the topic")
    return record


def segment_of(
    partition: TopicIdPartition, record: SegmentMetadataRecord
) -> RemoteLogSegmentMetadata:
    """The segment; `partition` is the record's own, made before.

    Raises:
        DecodeError: It makes no sense.
    """
    return _segment(
        partition,
        record.segment_id,
        record.start_offset,
        record.end_offset,
        record.broker_id,
        record.max_timestamp_ms,
        record.event_timestamp_ms,
        record.segment_leader_epochs,
        record.segment_size_bytes,
        record.custom_metadata,
        record.state,
        txn_index_empty=record.txn_index_empty,
    )


def deletion_of(
    partition: TopicIdPartition, record: PartitionDeleteMetadataRecord
) -> RemotePartitionDelete:
    """The deletion; raises as `segment_of`."""
    state = record.state
    if not 0 <= state < len(_PARTITION_STATES):
        raise DecodeError(f"state {state} of a partition's deletion is not known")
    return RemotePartitionDelete(
        partition, _PARTITION_STATES[state], record.event_timestamp_ms, record.broker_id
    )


def segment_state(number: int) -> SegmentState:
    """A segment's state by its number.

    Raises:
        DecodeError: There is no such state.
    """
    if not 0 <= number < len(_SEGMENT_STATES):
        raise DecodeError(f"state {number} of a remote segment is not known")
    return _SEGMENT_STATES[number]


def encode_segment_snapshot(metadata: RemoteLogSegmentMetadata) -> bytes:
    """A segment as its partition's snapshot has it."""
    return encode(
        SegmentMetadataSnapshotRecord(
            metadata.id.bytes,
            metadata.start_offset,
            metadata.end_offset,
            metadata.broker_id,
            metadata.max_timestamp_ms,
            metadata.event_timestamp_ms,
            metadata.segment_leader_epochs,
            metadata.segment_size_bytes,
            metadata.custom_metadata,
            metadata.state,
            metadata.txn_index_empty,
        )
    )


def decode_segment_snapshot(partition: TopicIdPartition, data: bytes) -> RemoteLogSegmentMetadata:
    """What `encode_segment_snapshot` wrote.

    Raises:
        DecodeError: It is something else.
    """
    record = decode(data)
    if not isinstance(record, SegmentMetadataSnapshotRecord):
        raise DecodeError("not a segment's snapshot")
    return _segment(partition, *record[:10], txn_index_empty=record.txn_index_empty)


def _segment(
    partition: TopicIdPartition,
    segment_id: bytes,
    start_offset: int,
    end_offset: int,
    broker_id: int,
    max_timestamp_ms: int,
    event_timestamp_ms: int,
    epochs: LeaderEpochs,
    size: int,
    custom_metadata: bytes | None,
    state: int,
    *,
    txn_index_empty: bool,
) -> RemoteLogSegmentMetadata:
    if not 0 <= start_offset <= end_offset:
        raise DecodeError(f"a segment from {start_offset} to {end_offset}")
    if size < 0:
        raise DecodeError(f"a segment of {size} bytes")
    if not epochs:
        raise DecodeError("a segment without a leader epoch")
    if len(epochs) > 1:
        # Kafka's reader keeps them in a map by epoch: of one named twice the last counts.
        epochs = tuple(sorted(dict(epochs).items()))
    return RemoteLogSegmentMetadata(
        RemoteLogSegmentId(partition, UUID(bytes=segment_id)),
        start_offset,
        end_offset,
        max_timestamp_ms,
        broker_id,
        event_timestamp_ms,
        size,
        tuple([SegmentEpoch(epoch, offset) for epoch, offset in epochs]),
        segment_state(state),
        custom_metadata,
        txn_index_empty,
    )
