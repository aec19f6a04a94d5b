"""Kafka's four records, byte by byte, round trip, and against hostile bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.internal.remote_log_metadata import (
    PartitionDeleteMetadataRecord,
    RemoteLogMetadataRecord,
    SegmentMetadataRecord,
    SegmentMetadataSnapshotRecord,
    SegmentMetadataUpdateRecord,
    decode,
    encode,
)
from tests.effort import examples

INT8 = st.integers(-(1 << 7), (1 << 7) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
IDS = st.binary(min_size=16, max_size=16)
NAMES = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ["", "a" * 125, "a" * 126, "a" * 127, "a" * 128, "a" * 249]
)
CUSTOM = st.none() | st.binary(max_size=200)
EPOCHS = st.lists(st.tuples(INT32, INT64), max_size=4).map(tuple)

SEGMENTS = st.builds(
    SegmentMetadataRecord,
    NAMES,
    IDS,
    INT32,
    IDS,
    INT64,
    INT64,
    INT32,
    INT64,
    INT64,
    EPOCHS,
    INT32,
    CUSTOM,
    INT8,
    st.booleans(),
)
UPDATES = st.builds(SegmentMetadataUpdateRecord, NAMES, IDS, INT32, IDS, INT32, INT64, CUSTOM, INT8)
DELETES = st.builds(PartitionDeleteMetadataRecord, NAMES, IDS, INT32, INT32, INT64, INT8)
SNAPSHOTS = st.builds(
    SegmentMetadataSnapshotRecord,
    IDS,
    INT64,
    INT64,
    INT32,
    INT64,
    INT64,
    EPOCHS,
    INT32,
    CUSTOM,
    INT8,
    st.booleans(),
)
RECORDS = SEGMENTS | UPDATES | DELETES | SNAPSHOTS

TOPIC_ID = bytes(range(16))
SEGMENT_ID = bytes(range(16, 32))

SEGMENT = SegmentMetadataRecord(
    topic="t",
    topic_id=TOPIC_ID,
    partition=3,
    segment_id=SEGMENT_ID,
    start_offset=10,
    end_offset=20,
    broker_id=1,
    max_timestamp_ms=5,
    event_timestamp_ms=6,
    segment_leader_epochs=((0, 10), (2, 15)),
    segment_size_bytes=1000,
    custom_metadata=b"xy",
    state=0,
    txn_index_empty=True,
)
SEGMENT_BYTES = (
    b"\x01\x00\x00"  # frame
    b"\x02t"
    + TOPIC_ID
    + b"\x00\x00\x00\x03\x00"
    + SEGMENT_ID
    + b"\x00"
    + (10).to_bytes(8, "big")
    + (20).to_bytes(8, "big")
    + b"\x00\x00\x00\x01"
    + (5).to_bytes(8, "big")
    + (6).to_bytes(8, "big")
    + b"\x03"
    + b"\x00\x00\x00\x00"
    + (10).to_bytes(8, "big")
    + b"\x00"
    + b"\x00\x00\x00\x02"
    + (15).to_bytes(8, "big")
    + b"\x00"
    + (1000).to_bytes(4, "big")
    + b"\x03xy"
    + b"\x00"
    + b"\x01\x00\x01\x01"
)


def test_a_segment_byte_by_byte() -> None:
    assert encode(SEGMENT) == SEGMENT_BYTES
    assert decode(SEGMENT_BYTES) == SEGMENT


def test_an_update_byte_by_byte() -> None:
    record = SegmentMetadataUpdateRecord("t", TOPIC_ID, 3, SEGMENT_ID, 1, 6, None, 2)
    data = (
        b"\x01\x01\x00\x02t"
        + TOPIC_ID
        + b"\x00\x00\x00\x03\x00"
        + SEGMENT_ID
        + b"\x00"
        + b"\x00\x00\x00\x01"
        + (6).to_bytes(8, "big")
        + b"\x00\x02\x00"
    )
    assert encode(record) == data
    assert decode(data) == record


def test_a_deletion_byte_by_byte() -> None:
    record = PartitionDeleteMetadataRecord("t", TOPIC_ID, 3, 1, 6, 2)
    data = (
        b"\x01\x02\x00\x02t"
        + TOPIC_ID
        + b"\x00\x00\x00\x03\x00"
        + b"\x00\x00\x00\x01"
        + (6).to_bytes(8, "big")
        + b"\x02\x00"
    )
    assert encode(record) == data
    assert decode(data) == record


@given(RECORDS)
def test_what_is_written_is_read(record: RemoteLogMetadataRecord) -> None:
    assert decode(encode(record)) == record


@given(RECORDS, st.data())
def test_a_cut_record_is_refused(record: RemoteLogMetadataRecord, data: st.DataObject) -> None:
    encoded = encode(record)
    size = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(DecodeError):
        decode(encoded[:size])


@given(RECORDS, st.binary(min_size=1, max_size=5))
def test_garbage_behind_a_record_is_refused(record: RemoteLogMetadataRecord, more: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(encode(record) + more)


@examples(500)
@given(RECORDS, st.data())
def test_a_flipped_byte_never_raises_anything_else(
    record: RemoteLogMetadataRecord, data: st.DataObject
) -> None:
    encoded = bytearray(encode(record))
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        again = decode(bytes(encoded))
    except DecodeError:
        return
    assert decode(encode(again)) == again


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    for prefix in (b"", b"\x01\x00\x00", b"\x01\x01\x00", b"\x01\x02\x00", b"\x01\x03\x00"):
        try:
            decode(prefix + data)
        except DecodeError:
            continue


def test_unknown_tagged_fields_are_passed_over() -> None:
    """Wherever a newer writer may put them."""
    unknown = b"\x01\x07\x02hi"
    head = b"\x01\x00\x00\x02t" + TOPIC_ID + b"\x00\x00\x00\x03"
    data = (
        head
        + unknown
        + SEGMENT_ID
        + unknown
        + (10).to_bytes(8, "big")
        + (20).to_bytes(8, "big")
        + b"\x00\x00\x00\x01"
        + (5).to_bytes(8, "big")
        + (6).to_bytes(8, "big")
        + b"\x03"
        + b"\x00\x00\x00\x00"
        + (10).to_bytes(8, "big")
        + unknown
        + b"\x00\x00\x00\x02"
        + (15).to_bytes(8, "big")
        + b"\x00"
        + (1000).to_bytes(4, "big")
        + b"\x03xy\x00"
        + b"\x02\x00\x01\x01\x07\x02hi"
    )
    assert decode(data) == SEGMENT


def test_a_long_varint_means_the_same() -> None:
    """Kafka reads a frame whose numbers are not written in the shortest way."""
    assert decode(b"\x81\x00\x80\x00\x00" + SEGMENT_BYTES[3:]) == SEGMENT


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x00\x00" + SEGMENT_BYTES[3:],
        b"\x02\x00\x00" + SEGMENT_BYTES[3:],
        b"\x01\x04\x00" + SEGMENT_BYTES[3:],
        b"\x01\x00\x01" + SEGMENT_BYTES[3:],
        b"\xff\xff\xff\xff\xff\x01",
        # A null name, and one that is not UTF-8.
        b"\x01\x00\x00\x00" + SEGMENT_BYTES[5:],
        b"\x01\x00\x00\x02\xff" + SEGMENT_BYTES[5:],
        # A flag of two bytes.
        SEGMENT_BYTES[:-3] + b"\x00\x02\x01\x01",
    ],
)
def test_what_is_not_known_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data)


def test_numbers_that_do_not_fit_are_not_written() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode(SEGMENT._replace(segment_size_bytes=1 << 31))
    with pytest.raises(ValueError, match="does not fit"):
        encode(SEGMENT._replace(state=200))
    with pytest.raises(ValueError, match="id of 15 bytes"):
        encode(SEGMENT._replace(topic_id=TOPIC_ID[:15]))
    with pytest.raises(ValueError, match="string of"):
        encode(SEGMENT._replace(topic="a" * 40_000))
