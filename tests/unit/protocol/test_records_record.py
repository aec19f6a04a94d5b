"""Records inside a batch: walked, checked, found by time, and never trusted."""

import contextlib
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    read_header,
    set_max_timestamp,
    update_crc,
)
from protocol.records.builder import append_record, build_batch, encode_headers
from protocol.records.compression import Codec
from protocol.records.record import (
    Record,
    check_records,
    find_max_timestamp,
    find_timestamp,
    iterate_records,
    iterate_stamps,
)
from tests.effort import examples
from tests.unit.protocol.kafka_python_oracle import DefaultRecordBatchBuilder

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
MIB = 1024 * 1024

sizes = st.binary(max_size=70) | st.just(bytes(64)) | st.just(bytes(8192)) | st.just(b"x" * 70_000)
headers = st.lists(
    st.tuples(st.text(max_size=70), st.none() | st.binary(max_size=70)), max_size=3
).map(tuple)
contents = st.lists(
    st.tuples(
        st.none() | sizes,
        st.none() | sizes,
        headers,
        st.integers(-1, 2**45) | st.just(2**62) | st.just(0),
    ),
    min_size=1,
    max_size=6,
)


def batch_of(
    block: bytes | bytearray, count: int, *, last_offset_delta: int | None = None
) -> memoryview:
    """A batch around any block of records."""
    delta = count - 1 if last_offset_delta is None else last_offset_delta
    length = HEADER_SIZE - LOG_OVERHEAD + len(block)
    data = bytearray(HEADER.pack(0, length, 0, 2, 0, 0, delta, 0, 0, -1, -1, -1, count) + block)
    view = memoryview(data)
    update_crc(view, 0, len(data))
    return view


def walk(batch: memoryview, max_size: int = MIB) -> list[Record]:
    return list(iterate_records(batch, max_size=max_size))


@pytest.mark.parametrize("name", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_that_kafka_wrote(name: str) -> None:
    """Null key and value, empty key, headers, times before the first: from released Kafka."""
    view = memoryview((GOLDEN / f"{name}.batch").read_bytes())
    steps = bytes(n // 500 for n in range(40_000))
    assert walk(view) == [
        Record(42, 1700000000123, b"k0", b"v0"),
        Record(43, 1700000000000, None, b"no key", (("h", b"x"), ("é", None))),
        Record(44, 1700000009999, b"tombstone", None),
        Record(45, 1700000000001, b"", steps),
    ]


@examples(150)
@given(contents, st.integers(0, 2**50), st.sampled_from(Codec))
def test_what_is_built_is_walked(records: Any, base_offset: int, codec: Codec) -> None:
    """Every content comes back, with consecutive offsets; the short walk agrees."""
    view = memoryview(build_batch(records, base_offset=base_offset, codec=codec))
    got = walk(view)
    assert [(r.key, r.value, r.headers, r.timestamp) for r in got] == records
    assert [r.offset for r in got] == list(range(base_offset, base_offset + len(records)))
    assert list(iterate_stamps(view, max_size=MIB)) == [(r.offset, r.timestamp) for r in got]


@examples(60)
@given(contents)
def test_kafka_python_builds_what_we_walk(records: Any) -> None:
    """An independent builder; ours gives the same bytes where the header leaves no choice."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 10 * MIB)
    for offset, (key, value, pairs, timestamp) in enumerate(records):
        assert builder.append(offset, timestamp, key, value, list(pairs))
    theirs = memoryview(bytes(builder.build()))
    assert [(r.key, r.value, r.headers, r.timestamp) for r in walk(theirs)] == records
    ours = build_batch(records)
    assert ours[HEADER_SIZE:] == theirs[HEADER_SIZE:]


def test_log_append_time_is_every_records_time() -> None:
    """The deltas do not count then (KIP-32)."""
    view = memoryview(build_batch([(None, b"a", (), 5), (None, b"b", (), 9)]))
    set_max_timestamp(view, 0, read_header(view), log_append_time=True, timestamp=1000)
    assert [r.timestamp for r in walk(view)] == [1000, 1000]
    assert find_timestamp(view, 6, max_size=MIB) == (1000, 0)
    assert find_max_timestamp(view, max_size=MIB) == (1000, 0)


def test_empty_batch_of_compaction_has_no_records() -> None:
    """A header alone, as Kafka keeps it for the producer's last sequence."""
    view = memoryview((GOLDEN / "empty.batch").read_bytes())
    assert walk(view) == []
    assert find_max_timestamp(view, max_size=MIB) is None


TIMES = [(None, b"v", (), time) for time in (100, 50, 300, 300, 200)]


@pytest.mark.parametrize(
    ("timestamp", "start_offset", "found"),
    [
        (0, 0, (100, 10)),
        (100, 0, (100, 10)),
        (101, 0, (300, 12)),
        (300, 0, (300, 12)),
        (300, 13, (300, 13)),
        (0, 14, (200, 14)),
        (201, 14, None),
        (301, 0, None),
        (0, 15, None),
    ],
)
def test_first_record_at_or_after_a_time(
    timestamp: int, start_offset: int, found: tuple[int, int] | None
) -> None:
    """The first by offset, not the least by time; never before the log start offset."""
    view = memoryview(build_batch(TIMES, base_offset=10, codec=Codec.GZIP))
    assert find_timestamp(view, timestamp, max_size=MIB, start_offset=start_offset) == found


def test_first_record_with_the_max_timestamp() -> None:
    """Where several share it the first counts; a header that lies finds none."""
    view = memoryview(build_batch(TIMES, base_offset=10))
    assert find_max_timestamp(view, max_size=MIB) == (300, 12)
    set_max_timestamp(view, 0, read_header(view), log_append_time=False, timestamp=400)
    assert find_max_timestamp(view, max_size=MIB) is None


def test_check_of_a_good_batch() -> None:
    """No errors, and the max timestamp the records really have."""
    view = memoryview(build_batch(TIMES, base_offset=10))
    check = check_records(view, max_size=MIB)
    assert check.errors == []
    assert (check.max_timestamp, check.max_timestamp_offset) == (300, 12)


def test_check_names_records_without_key() -> None:
    """A compacted topic needs keys; an empty one is a key."""
    view = memoryview(build_batch([(b"a", b"", (), 1), (None, b"", (), 1), (b"", b"", (), 1)]))
    assert check_records(view, max_size=MIB).errors == []
    errors = check_records(view, max_size=MIB, require_key=True).errors
    assert [index for index, _ in errors] == [1]


def test_check_names_records_out_of_time() -> None:
    """Both bounds are inclusive."""
    view = memoryview(build_batch(TIMES))
    errors = check_records(view, max_size=MIB, timestamp_min=100, timestamp_max=200).errors
    assert [index for index, _ in errors] == [1, 2, 3]


def test_check_names_offsets_that_are_not_consecutive() -> None:
    """Doubled, swapped and skipped deltas."""
    block = bytearray()
    for delta in (0, 0, 2, 4, 3):
        append_record(block, delta, 0, b"k", b"v", ())
    errors = check_records(batch_of(block, 5), max_size=MIB).errors
    assert [index for index, _ in errors] == [1, 3, 4]


@pytest.mark.parametrize(("count", "last_offset_delta"), [(2, 2), (2, 0), (0, 1)])
def test_check_refuses_counts_that_disagree(count: int, last_offset_delta: int) -> None:
    """The log would give out offsets that no record has, or one twice."""
    block = bytearray()
    for delta in range(count):
        append_record(block, delta, 0, b"k", b"v", ())
    view = batch_of(block, count, last_offset_delta=last_offset_delta)
    with pytest.raises(DecodeError, match="last offset delta"):
        check_records(view, max_size=MIB)


def test_truncated_at_every_byte() -> None:
    """A block that ends early is refused, also when the header is adapted to its size."""
    block = bytearray()
    append_record(block, 0, 0, b"key", b"value", (("h", b"v"), ("n", None)))
    append_record(block, 1, 100, None, bytes(100), ())
    assert len(walk(batch_of(block, 2))) == 2
    for size in range(len(block)):
        with pytest.raises(DecodeError):
            walk(batch_of(block[:size], 2))
        with pytest.raises(DecodeError):
            check_records(batch_of(block[:size], 2), max_size=MIB)


def test_flipped_bits_and_noise() -> None:
    """Damaged records are a DecodeError or other records; nothing else is raised."""
    noise = random.Random(7)
    block = bytearray()
    for delta in range(3):
        append_record(block, delta, 70 * delta, b"k" * delta, b"value", (("h", b"v"),))
    for bit in range(len(block) * 8):
        block[bit >> 3] ^= 1 << (bit & 7)
        for function in (iterate_records, iterate_stamps):
            with contextlib.suppress(DecodeError):
                list(function(batch_of(block, 3), max_size=MIB))
        block[bit >> 3] ^= 1 << (bit & 7)
    for _ in range(2000):
        data = bytearray(block)
        position = noise.randrange(len(data))
        data[position : position + 4] = noise.randbytes(4)
        with contextlib.suppress(DecodeError):
            walk(batch_of(data, 3))


def record(*fields: bytes) -> bytes:
    body = b"".join(fields)
    return bytes((len(body) * 2,)) + body


@pytest.mark.parametrize(
    "block",
    [
        record(b"\0\0\0", b"\x7fabc", b"\x01", b"\0"),
        record(b"\0\0\0", b"\x03", b"\x01", b"\0"),
        record(b"\0\0\0", b"\xfe\xff\xff\xff\x0f", b"\x01", b"\0"),
        record(b"\0\0\0", b"\x01", b"\x7f", b"\0"),
        record(b"\0\0\0", b"\x01", b"\x01", b"\x7f"),
        record(b"\0\0\0", b"\x01", b"\x01", b"\x01"),
        record(b"\0\0\0", b"\x01", b"\x01", b"\x02\x01\x01"),
        record(b"\0\0\0", b"\x01", b"\x01", b"\0\0"),
        record(b"\0\0\0", b"\x01", b"\x01", b"\0") + b"\0",
        record(b"\0" + b"\xff" * 11, b"\x01", b"\x01", b"\0"),
        b"\x01" + record(b"\0\0\0", b"\x01", b"\x01", b"\0"),
    ],
    ids=[
        "key longer than the record",
        "key length -2",
        "key length 2**31 - 1",
        "value length -64",
        "header count -64",
        "header count -1",
        "null header key",
        "byte after the headers",
        "byte after the last record",
        "endless timestamp delta",
        "record length -1",
    ],
)
def test_lies_inside_a_record_are_refused(block: bytes) -> None:
    """One wrong length or count each."""
    with pytest.raises(DecodeError):
        walk(batch_of(block, 1))


def test_header_keys_of_any_bytes() -> None:
    """Kafka stores them; they are written back as they were."""
    block = record(b"\0\0\0", b"\x01", b"\x01", b"\x02\x06a\xff\xfe\x02v")
    (got,) = walk(batch_of(block, 1))
    assert got.headers == (("a\udcff\udcfe", b"v"),)
    assert encode_headers(got.headers) == b"\x02\x06a\xff\xfe\x02v"


@pytest.mark.parametrize("wrong_by", [1, -1])
def test_record_length_must_agree_with_its_content(wrong_by: int) -> None:
    """Also when the walk would end at the right byte all the same."""
    good = record(b"\0\0\0", b"\x01", b"\x01", b"\0")
    bad = bytes((good[0] + 2 * wrong_by,)) + good[1:]
    with pytest.raises(DecodeError):
        walk(batch_of(bad + good, 2))


def test_null_in_more_bytes_than_it_needs_is_null() -> None:
    """-1 as a two-byte varint is odd, but -1."""
    got = walk(batch_of(record(b"\0\0\0", b"\x81\0", b"\x81\0", b"\0"), 1))
    assert got == [Record(0, 0, None, None)]


@pytest.mark.parametrize("count", [-1, 2, 2**31 - 1])
def test_record_counts_the_block_cannot_hold_are_refused(count: int) -> None:
    """Before a single record is looked at."""
    with pytest.raises(DecodeError, match="claims"):
        walk(batch_of(record(b"\0\0\0\x01\x01\0"), count))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_compressed_records_are_bounded(codec: Codec) -> None:
    """16 MiB in a small batch, 1 MiB allowed: refused, with little memory in use."""
    view = memoryview(build_batch([(None, bytes(16 * MIB), (), 0)], codec=codec))
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            walk(view)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 2.5 * MIB


def test_what_follows_the_batch_is_not_read() -> None:
    """A view may hold more than the batch it begins with."""
    data = build_batch([(None, b"a", (), 0)])
    assert walk(memoryview(data + b"junk")) == walk(memoryview(data))
