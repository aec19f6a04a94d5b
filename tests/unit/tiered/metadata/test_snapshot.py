"""A snapshot's bytes: as the table says, whole or refused, and the same after a round trip."""

from uuid import UUID

import pytest
from fastcrc import crc32
from hypothesis import given
from hypothesis import strategies as st

from tiered.metadata.segment_index import RemoteLogMetadataCache
from tiered.metadata.snapshot import (
    CapturedPartition,
    CapturedState,
    SnapshotError,
    encoding,
    read_snapshot,
    reading_block,
    seal,
)
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemotePartitionDelete,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

TOPIC_ID = UUID(int=77)


def segment(
    partition: TopicIdPartition, number: int, start: int, custom: bytes | None = None
) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        RemoteLogSegmentId(partition, UUID(int=number)),
        start,
        start + 9,
        5,
        1,
        6,
        100,
        (SegmentEpoch(0, start), SegmentEpoch(1, start + 5)),
        custom_metadata=custom,
    )


def filled(partition: TopicIdPartition, count: int) -> RemoteLogMetadataCache:
    """Some of each state."""
    cache = RemoteLogMetadataCache()
    for number in range(count):
        metadata = segment(partition, number, 10 * number, b"x" * number)
        cache.add(metadata)
        for state in list(SegmentState)[1 : 1 + number % 4]:
            cache.update(metadata.id.bytes, state, 1, 7, None)
    return cache


def written(state: CapturedState) -> bytes:
    data = bytearray()
    for _ in encoding(state, data):
        pass
    seal(data)
    return bytes(data)


def read_back(partition: TopicIdPartition, block: bytes) -> RemoteLogMetadataCache:
    cache = RemoteLogMetadataCache()
    for _ in reading_block(partition, block, cache):
        pass
    return cache


def test_byte_by_byte() -> None:
    partition = TopicIdPartition(UUID(int=5), "ab", 3)
    deletion = RemotePartitionDelete(partition, PartitionDeleteState.DELETE_PARTITION_STARTED, 9, 8)
    state = CapturedState(2, TOPIC_ID, 100, 50, [CapturedPartition(partition, deletion, bytes(8))])
    body = (
        b"\x00\x00\x00\x02"
        + TOPIC_ID.bytes
        + (100).to_bytes(8, "big")
        + (50).to_bytes(8, "big")
        + b"\x00\x00\x00\x01"
        + UUID(int=5).bytes
        + b"\x00\x00\x00\x03\x01\x00\x00\x00\x08"
        + (9).to_bytes(8, "big")
        + b"\x00\x02ab"
        + b"\x00\x00\x00\x08"
        + bytes(8)
    )
    assert written(state) == b"vrms\x00\x01" + crc32.iscsi(body).to_bytes(4, "big") + body


@given(st.lists(st.integers(0, 9), max_size=4), st.booleans())
def test_what_is_written_is_read(counts: list[int], deleting: bool) -> None:
    users = [
        (TopicIdPartition(UUID(int=5), "topic", index), count) for index, count in enumerate(counts)
    ]
    caches = {partition: filled(partition, count) for partition, count in users}
    deletions = {
        partition: RemotePartitionDelete(
            partition, PartitionDeleteState.DELETE_PARTITION_MARKED, 1, 1
        )
        for partition in caches
        if deleting
    }
    data = written(
        CapturedState(
            2,
            TOPIC_ID,
            100,
            50,
            [CapturedPartition(p, deletions.get(p), c.capture()) for p, c in caches.items()],
        )
    )
    snapshot = read_snapshot(data)
    assert snapshot[:4] == (2, TOPIC_ID, 100, 50)
    assert [(p, d) for p, d, _ in snapshot.partitions] == [(p, deletions.get(p)) for p in caches]
    for partition, _, block in snapshot.partitions:
        again, before = read_back(partition, block), caches[partition]
        assert again.capture() == before.capture()
        assert again.segments(1) == before.segments(1)
        assert again.finished_bytes == before.finished_bytes
    # Blocks that nobody has read go into the next snapshot as they are.
    unread = [CapturedPartition(*partition) for partition in snapshot.partitions]
    assert written(CapturedState(2, TOPIC_ID, 100, 50, unread)) == data


@given(st.data())
def test_any_damage_is_noticed(data: st.DataObject) -> None:
    partition = TopicIdPartition(UUID(int=5), "topic", 0)
    capture = filled(partition, 3).capture()
    whole = written(CapturedState(0, TOPIC_ID, 9, 9, [CapturedPartition(partition, None, capture)]))
    damaged = bytearray(whole)
    damaged[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    for bad in (bytes(damaged), whole[: data.draw(st.integers(0, len(whole) - 1))], whole + b"x"):
        with pytest.raises(SnapshotError):
            read_snapshot(bad)


@given(st.data())
def test_damage_with_a_right_checksum_is_an_error_and_nothing_else(data: st.DataObject) -> None:
    """A writer with a mistake: whatever it wrote must not end the reader."""
    partition = TopicIdPartition(UUID(int=5), "topic", 0)
    capture = filled(partition, 6).capture()
    damaged = bytearray(
        written(CapturedState(0, TOPIC_ID, 9, 9, [CapturedPartition(partition, None, capture)]))
    )
    damaged[data.draw(st.integers(10, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(10, len(damaged) - 1)) :]
    seal(damaged)
    try:
        for found, _, block in read_snapshot(bytes(damaged)).partitions:
            read_back(found, block)
    except SnapshotError:
        pass


def test_a_block_that_is_too_long() -> None:
    partition = TopicIdPartition(UUID(int=5), "topic", 0)
    with pytest.raises(SnapshotError, match="after the block"):
        read_back(partition, bytes(9))
