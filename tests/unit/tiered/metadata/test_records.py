"""Events become records and come back; records that make no sense are refused."""

from uuid import UUID

import pytest

from protocol.errors import DecodeError
from protocol.internal.remote_log_metadata import (
    PartitionDeleteMetadataRecord,
    SegmentMetadataRecord,
    SegmentMetadataUpdateRecord,
    encode,
)
from tiered.metadata.records import (
    decode_event,
    decode_segment_snapshot,
    deletion_of,
    encode_event,
    encode_segment_snapshot,
    segment_of,
    segment_state,
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

P0 = TopicIdPartition(UUID(int=7), "topic", 3)
SEGMENT = RemoteLogSegmentMetadata(
    RemoteLogSegmentId(P0, UUID(int=9)),
    10,
    20,
    5,
    1,
    6,
    1000,
    (SegmentEpoch(0, 10), SegmentEpoch(2, 15)),
    SegmentState.COPY_SEGMENT_FINISHED,
    b"custom",
    True,
)


def test_a_segment_comes_back() -> None:
    record = decode_event(encode_event(SEGMENT))
    assert isinstance(record, SegmentMetadataRecord)
    assert segment_of(P0, record) == SEGMENT
    assert decode_segment_snapshot(P0, encode_segment_snapshot(SEGMENT)) == SEGMENT


def test_an_update_comes_back() -> None:
    update = RemoteLogSegmentMetadataUpdate(
        SEGMENT.segment_id, 8, SegmentState.DELETE_SEGMENT_STARTED, 4, None
    )
    record = decode_event(encode_event(update))
    assert record == SegmentMetadataUpdateRecord(
        "topic", P0.topic_id.bytes, 3, UUID(int=9).bytes, 4, 8, None, 2
    )


def test_a_deletion_comes_back() -> None:
    deletion = RemotePartitionDelete(P0, PartitionDeleteState.DELETE_PARTITION_STARTED, 8, 4)
    record = decode_event(encode_event(deletion))
    assert isinstance(record, PartitionDeleteMetadataRecord)
    assert deletion_of(P0, record) == deletion


def test_epochs_come_in_order() -> None:
    """Kafka's reader sorts them; of one named twice the last counts."""
    record = decode_event(encode_event(SEGMENT))
    assert isinstance(record, SegmentMetadataRecord)
    mixed = record._replace(segment_leader_epochs=((2, 15), (0, 9), (0, 10)))
    assert segment_of(P0, mixed) == SEGMENT


@pytest.mark.parametrize(
    "change",
    [
        {"start_offset": -1},
        {"end_offset": 9},
        {"segment_size_bytes": -1},
        {"segment_leader_epochs": ()},
        {"state": 4},
        {"state": -1},
    ],
)
def test_a_segment_that_makes_no_sense(change: dict[str, object]) -> None:
    record = decode_event(encode_event(SEGMENT))
    assert isinstance(record, SegmentMetadataRecord)
    with pytest.raises(DecodeError):
        segment_of(P0, SegmentMetadataRecord(**{**record._asdict(), **change}))


def test_states_that_are_not_known() -> None:
    for number in (-1, 4):
        with pytest.raises(DecodeError):
            segment_state(number)
    record = PartitionDeleteMetadataRecord("topic", P0.topic_id.bytes, 3, 1, 1, 3)
    with pytest.raises(DecodeError):
        deletion_of(P0, record)


def test_a_snapshot_record_is_no_event_and_an_event_no_snapshot() -> None:
    with pytest.raises(DecodeError):
        decode_event(encode_segment_snapshot(SEGMENT))
    with pytest.raises(DecodeError):
        decode_segment_snapshot(P0, encode_event(SEGMENT))
    with pytest.raises(DecodeError):
        decode_segment_snapshot(
            P0, encode(PartitionDeleteMetadataRecord("topic", P0.topic_id.bytes, 3, 1, 1, 0))
        )
