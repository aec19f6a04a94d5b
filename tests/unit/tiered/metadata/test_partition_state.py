"""One metadata partition: every user partition in it, wanted or not."""

from uuid import UUID

import pytest

from protocol.errors import DecodeError
from tiered.errors import InvalidTransitionError
from tiered.metadata.partition_state import MetadataPartitionState, key_of
from tiered.metadata.records import MetadataEvent, decode_event, encode_event
from tiered.metadata.snapshot import encoding, read_snapshot, seal
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

A = TopicIdPartition(UUID(int=5), "a", 0)
B = TopicIdPartition(UUID(int=6), "b", 1)


def segment(partition: TopicIdPartition, number: int) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        RemoteLogSegmentId(partition, UUID(int=number)), 0, 9, 5, 1, 6, 7, (SegmentEpoch(0, 0),)
    )


def finished(metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadataUpdate:
    return RemoteLogSegmentMetadataUpdate(
        metadata.segment_id, 6, SegmentState.COPY_SEGMENT_FINISHED, 1
    )


def deletion(partition: TopicIdPartition, state: PartitionDeleteState) -> RemotePartitionDelete:
    return RemotePartitionDelete(partition, state, 1, 1)


def apply(state: MetadataPartitionState, *events: MetadataEvent) -> None:
    for event in events:
        state.apply(decode_event(encode_event(event)))
        state.next_offset += 1


def restored(state: MetadataPartitionState) -> MetadataPartitionState:
    data = bytearray()
    for _ in encoding(state.capture(UUID(int=77), 50), data):
        pass
    seal(data)
    again = MetadataPartitionState(state.metadata_partition)
    again.restore(read_snapshot(bytes(data)))
    return again


def test_user_partitions_do_not_mix() -> None:
    state = MetadataPartitionState(3)
    a, b = segment(A, 1), segment(B, 1)
    apply(state, a, b, finished(b))
    (user_a, user_b) = state.users()
    assert (user_a.partition, user_b.partition) == (A, B)
    assert user_a.cache.find(0, 5) is None
    assert user_b.cache.find(0, 5) == b.with_update(finished(b))
    assert state.segments == 2
    assert state.user(key_of(A)) is user_a is state.ensure(A)


def test_what_is_refused_changes_nothing() -> None:
    state = MetadataPartitionState(3)
    a = segment(A, 1)
    with pytest.raises(InvalidTransitionError):
        apply(state, finished(a))
    with pytest.raises(InvalidTransitionError):
        apply(state, deletion(A, PartitionDeleteState.DELETE_PARTITION_STARTED))
    with pytest.raises(DecodeError):
        state.apply(decode_event(encode_event(a))._replace(state=9))
    assert list(state.users()) == []


def test_a_deleted_partition_is_forgotten() -> None:
    state = MetadataPartitionState(3)
    apply(state, segment(A, 1))
    for step in PartitionDeleteState:
        assert list(state.users()) != []
        apply(state, deletion(A, step))
    assert list(state.users()) == []
    assert list(state.deletions()) == []


def test_blocks_are_read_when_they_are_wanted() -> None:
    before = MetadataPartitionState(3)
    a = segment(A, 1)
    marked = deletion(B, PartitionDeleteState.DELETE_PARTITION_MARKED)
    apply(before, a, finished(a), segment(B, 2), marked)
    state = restored(before)
    assert state.next_offset == 4
    assert state.segments == 0
    assert list(state.deletions()) == [marked]
    user = state.user(key_of(A))
    assert user is not None
    assert user.block is not None
    # Snapshots of what was not read are the same bytes.
    assert restored(state).capture(UUID(int=77), 50) == state.capture(UUID(int=77), 50)
    assert len(list(user.reading_block())) == 2
    assert user.block is None
    assert user.cache.find(0, 5) == a.with_update(finished(a))
    assert list(user.reading_block()) == []
    assert state.segments == 1


def test_a_capture_does_not_change() -> None:
    state = MetadataPartitionState(3)
    a = segment(A, 1)
    apply(state, a)
    capture = state.capture(UUID(int=77), 50)
    apply(state, finished(a), segment(B, 2))
    assert len(capture.partitions) == 1
    assert capture.next_offset == 1
    assert capture == restored_capture(capture)


def restored_capture(capture: object) -> object:
    """The same one; made when only `a` had been told."""
    state = MetadataPartitionState(3)
    apply(state, segment(A, 1))
    return state.capture(UUID(int=77), 50)
