"""Batches we write: byte for byte as Kafka, and as compaction leaves them."""

from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import checked_header, crc32c, crc_matches, read_header
from protocol.records.builder import build_batch, build_plain_batch, rebuild_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from tests.effort import examples
from tests.unit.protocol.kafka_python_oracle import DefaultRecordBatch

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
MIB = 1024 * 1024

RECORDS: Any = [
    (b"k0", b"v0", (), 1700000000123),
    (None, b"no key", (("h", b"x"), ("é", None)), 1700000000000),
    (b"tombstone", None, (), 1700000009999),
    (b"", bytes(n // 500 for n in range(40_000)), (), 1700000000001),
]


def build(codec: Codec) -> bytearray:
    return build_batch(
        RECORDS,
        base_offset=42,
        codec=codec,
        producer_id=1000,
        producer_epoch=3,
        base_sequence=7,
        transactional=True,
        leader_epoch=5,
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY, Codec.LZ4])
def test_same_bytes_as_kafka(codec: Codec) -> None:
    """Header, records, CRC, and for two codecs even the compressed block."""
    assert build(codec) == (GOLDEN / f"{codec.name.lower()}.batch").read_bytes()


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_same_header_as_kafka(codec: Codec) -> None:
    """Where the compressor's freedom shows only length and CRC differ."""
    theirs = checked_header((GOLDEN / f"{codec.name.lower()}.batch").read_bytes())
    data = build(codec)
    ours = checked_header(data)
    assert ours._replace(batch_length=0, crc=0) == theirs._replace(batch_length=0, crc=0)
    assert crc_matches(memoryview(data), 0, ours)


@examples(40)
@given(
    st.lists(
        st.tuples(
            st.none() | st.binary(max_size=200),
            st.none() | st.binary(max_size=200),
            st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=2),
            st.integers(0, 2**45),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4]),
)
def test_kafka_python_reads_ours(records: Any, codec: Codec) -> None:
    """An independent reader, for the codecs it has libraries for here."""
    batch = DefaultRecordBatch(bytes(build_batch(records, base_offset=9, codec=codec)))
    assert batch.validate_crc()
    got = [(r.key, r.value, list(r.headers), r.timestamp) for r in batch]
    assert got == records
    assert batch.max_timestamp == max(record[3] for record in records)


def test_timestamp_type() -> None:
    """With LogAppendTime readers see the greatest time for all."""
    view = memoryview(build_batch([(None, b"", (), 5), (None, b"", (), 3)], timestamp_type=1))
    assert read_header(view).is_log_append_time
    assert [r.timestamp for r in iterate_records(view, max_size=MIB)] == [5, 5]


def test_no_records_is_our_mistake() -> None:
    """A batch without records says nothing; compaction's are built from a header."""
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("kept", [[0, 1, 2, 3], [1], [0, 3], [2]])
def test_rebuilt_batch_keeps_offsets_and_producer(codec: Codec, kept: list[int]) -> None:
    """What compaction leaves has gaps; the batch still spans the same offsets."""
    original = checked_header(build(codec))
    records = list(iterate_records(memoryview(build(codec)), max_size=MIB))
    left = [records[index] for index in kept]
    view = memoryview(rebuild_batch(original, left))
    header = checked_header(view)
    assert crc_matches(view, 0, header)
    assert list(iterate_records(view, max_size=MIB)) == left
    for field in ("base_offset", "last_offset_delta", "producer_id", "producer_epoch"):
        assert getattr(header, field) == getattr(original, field)
    assert (header.base_sequence, header.leader_epoch) == (7, 5)
    assert header.records_count == len(left)
    assert header.max_timestamp == max(record.timestamp for record in left)
    assert (header.codec, header.is_transactional) == (codec, True)


def test_delete_horizon_takes_the_base_timestamp() -> None:
    """Records keep their times; a second pass keeps the horizon (KIP-534)."""
    original = checked_header(build(Codec.NONE))
    records = list(iterate_records(memoryview(build(Codec.NONE)), max_size=MIB))
    view = memoryview(rebuild_batch(original, records, delete_horizon_ms=1800000000000))
    header = checked_header(view)
    assert header.delete_horizon_ms == 1800000000000
    assert list(iterate_records(view, max_size=MIB)) == records
    again = memoryview(rebuild_batch(header, records[1:]))
    assert checked_header(again).delete_horizon_ms == 1800000000000
    assert list(iterate_records(again, max_size=MIB)) == records[1:]


@pytest.mark.parametrize("codec", Codec)
def test_empty_rebuilt_batch_is_kafkas(codec: Codec) -> None:
    """No records left: the 61 bytes that Kafka writes, whatever the codec was."""
    header = checked_header((GOLDEN / f"{codec.name.lower()}.batch").read_bytes())
    assert rebuild_batch(header, []) == (GOLDEN / "empty.batch").read_bytes()


def test_rebuilt_with_another_codec() -> None:
    """`compression.type` of the topic may differ from the producer's."""
    records = list(iterate_records(memoryview(build(Codec.GZIP)), max_size=MIB))
    header = checked_header(build(Codec.GZIP))
    view = memoryview(rebuild_batch(header, records, codec=Codec.LZ4))
    assert view == build(Codec.LZ4)


def test_rebuilt_log_append_time_keeps_its_time() -> None:
    """The max timestamp is the broker's time, also when the record that set it is gone."""
    data = build_batch([(b"a", b"", (), 5), (b"b", b"", (), 9)], timestamp_type=1)
    records = list(iterate_records(memoryview(data), max_size=MIB))
    view = memoryview(rebuild_batch(checked_header(data), records[:1]))
    assert [r.timestamp for r in iterate_records(view, max_size=MIB)] == [9]


def plain_varint(value: int) -> bytes:
    """Zigzag, seven bits to a byte: as slowly as it can be written down."""
    value = (value << 1) ^ (value >> 63)
    octets = []
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*octets, value])


def plain_batch(records: Any, base_offset: int, producer_id: int) -> bytes:
    """An uncompressed batch, field by field from the layout."""

    def sized(octets: bytes | None) -> bytes:
        return plain_varint(-1) if octets is None else plain_varint(len(octets)) + octets

    block = b""
    for delta, (key, value, headers, timestamp) in enumerate(records):
        body = b"\0" + plain_varint(timestamp - records[0][3]) + plain_varint(delta)
        body += sized(key) + sized(value) + plain_varint(len(headers))
        for name, content in headers:
            body += sized(name.encode()) + sized(content)
        block += plain_varint(len(body)) + body
    times = [timestamp for *_, timestamp in records]
    summed = pack(
        ">hiqqqhii", 0, len(times) - 1, times[0], max(times), producer_id, -1, -1, len(times)
    )
    summed += block
    head = pack(">qiibI", base_offset, len(summed) + 9, -1, 2, crc32c(summed))
    return head + summed


LENGTHS = st.sampled_from([0, 1, 63, 64, 1_010, 1_023, 1_024, 1_025, 8_191, 8_192])
OCTETS = st.none() | st.binary(max_size=20) | LENGTHS.map(bytes)


@given(
    records=st.lists(
        st.tuples(
            OCTETS,
            OCTETS,
            st.lists(st.tuples(st.text(max_size=5), OCTETS), max_size=2),
            st.sampled_from([0, 1, 1_023, 1_024, 1_700_000_000_000, -1]),
        ),
        min_size=1,
        max_size=4,
    ),
    base_offset=st.integers(0, 2**62),
    producer_id=st.integers(-1, 2**62),
)
def test_short_cuts_change_no_byte(records: Any, base_offset: int, producer_id: int) -> None:
    """Tables of small numbers, and a header that is packed in two parts."""
    built = build_batch(records, base_offset=base_offset, producer_id=producer_id)
    assert built == plain_batch(records, base_offset, producer_id)


@examples(50)
@given(
    st.lists(
        st.tuples(st.binary(max_size=1500), st.none() | st.binary(max_size=1500)),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 1 << 45),
)
def test_plain_batches_are_the_same_bytes(
    records: list[tuple[bytes, bytes | None]], timestamp_ms: int
) -> None:
    """The short way to what coordinators write, on both sides of a length's second byte."""
    general = build_batch([(key, value, (), timestamp_ms) for key, value in records])
    assert build_plain_batch(records, timestamp_ms) == general
