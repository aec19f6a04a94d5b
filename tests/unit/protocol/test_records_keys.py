"""Keys of many records at a time: the same as one record after the other, or refused with it."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import HEADER_SIZE, read_header
from protocol.records.builder import append_record, build_batch
from protocol.records.keys import RUN_MAX, RUN_MIN, read_keys
from protocol.records.record import iterate_records, records_block
from protocol.records.varint import encode_varint
from tests.effort import examples

MIB = 1 << 20

headers = st.lists(
    st.tuples(st.text(max_size=70), st.none() | st.binary(max_size=70)), max_size=2
).map(tuple)
contents = st.none() | st.binary(max_size=70) | st.just(bytes(64)) | st.just(bytes(8192))
rows = st.lists(
    st.tuples(
        st.tuples(contents, contents, headers, st.integers(0, 2**45)),
        # How often, and what is added to the time each time.
        st.integers(1, 3 * RUN_MIN),
        st.sampled_from((0, 1, 9_000)),
    ),
    max_size=8,
    min_size=1,
)


def expected(batch: bytearray) -> tuple[list[bytes], list[int], list[int], list[int]]:
    """By the way that makes records."""
    records = list(iterate_records(memoryview(batch), max_size=16 * MIB))
    return (
        [record.key or b"" for record in records],
        [record.offset for record in records],
        [index for index, record in enumerate(records) if record.value is None],
        [index for index, record in enumerate(records) if record.key is None],
    )


def found(batch: bytearray) -> tuple[list[bytes], list[int], list[int], list[int]]:
    header = read_header(batch)
    block = records_block(memoryview(batch), header, max_size=16 * MIB)
    return tuple(read_keys(block, header.records_count))  # type: ignore[return-value]  # likewise


@given(rows)
def test_finds_what_records_say(shapes: list[Any]) -> None:
    """Runs of one shape, single records, and every mixture."""
    batch = build_batch(
        [
            (key, value, headers, time + index * pace)
            for (key, value, headers, time), times, pace in shapes
            for index in range(times)
        ]
    )
    assert found(batch) == expected(batch)


@pytest.mark.parametrize(
    "count", [7, 8, 9, 63, 64, 65, 200, RUN_MAX + 1, 8191, 8192, 8193, 9_000, 70_000]
)
@pytest.mark.parametrize("pace", [0, 1, 400])
def test_a_run_of_one_shape_is_taken_whole(count: int, pace: int) -> None:
    """Wherever offsets and times get another byte."""
    batch = build_batch([(b"k%06d" % i, b"v" * 90, (), i * pace) for i in range(count)])
    assert found(batch) == expected(batch)


def test_a_run_of_tombstones() -> None:
    """They have one shape, too."""
    batch = build_batch([(b"k%06d" % i, None, (), 0) for i in range(100)])
    assert found(batch)[2] == list(range(100))


@pytest.mark.parametrize("at", range(20))
@pytest.mark.parametrize("index", [0, 1, 11, 19])
def test_a_record_of_a_run_that_differs_is_seen(at: int, index: int) -> None:
    """In any byte: it is read as it is, or the batch is refused, as by the other way."""
    plain = build_batch([(b"key-%04d" % i, b"value", (), 5) for i in range(20)])
    step = (len(plain) - HEADER_SIZE) // 20
    assert step == 20
    for change in (1, 2, 0x80, 0x41):
        batch = bytearray(plain)
        batch[HEADER_SIZE + index * step + at] ^= change
        compare(batch)


@examples(300)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_damage_is_refused_as_by_the_other_way(seed: int, changes: int) -> None:
    """Bytes changed, taken out and put in; never another error, never another key."""
    rng = Random(seed)
    header = rng.choice(((), (("h", b"x"),)))
    batch = build_batch(
        [
            (b"k%03d" % i, rng.choice((b"value", b"v" * 200, None)), header, rng.choice((0, 9)))
            for i in range(rng.choice((1, 9, 30)))
        ]
    )
    for _ in range(changes):
        batch[rng.randrange(HEADER_SIZE, len(batch))] = rng.choice((0, 1, 2, 127, 128, 255))
    compare(batch)


def compare(batch: bytearray) -> None:
    try:
        wanted = expected(batch)
    except DecodeError:
        with pytest.raises(DecodeError):
            found(batch)
    else:
        assert found(batch) == wanted


class CountedBytes(bytes):
    """Counts the bytes that are copied out of it."""

    copied = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        if isinstance(found, bytes):
            self.copied += len(found)
        return found


@pytest.mark.parametrize("seed", range(4))
def test_what_looks_like_a_run_and_is_none_costs_little(seed: int) -> None:
    """Records of one length whose keys have many, as somebody may send who wants us to be busy."""
    rng = Random(seed)
    rows = []
    for _ in range(50_000):
        size = rng.randrange(10) if seed else 3 + rng.randrange(2)
        rows.append((b"k" * size, b"v" * (20 - size), (), 0))
    block = CountedBytes(build_batch(rows)[HEADER_SIZE:])
    assert len(read_keys(block, len(rows)).keys) == len(rows)
    assert block.copied < len(block)


def test_offsets_with_gaps() -> None:
    """As compaction leaves them."""
    block = bytearray()
    deltas = [*range(0, 40, 3), *range(40, 100), 5_000, 70_000]
    for delta in deltas:
        append_record(block, delta, 0, b"key", b"value", ())
    keys = read_keys(bytes(block), len(deltas))
    assert keys.deltas == deltas
    assert not keys.is_without_gaps


def test_without_gaps() -> None:
    """However many they are."""
    for count in (0, 1, 100, 20_000):
        block = bytearray()
        for delta in range(count):
            append_record(block, delta, 0, b"k", b"", ())
        assert read_keys(bytes(block), count).is_without_gaps


def test_numbers_may_be_longer_than_they_need() -> None:
    """Nothing forbids it."""
    block = b""
    for delta in range(20):
        body = b"\0\x80\x80\0" + bytes((delta * 2 | 0x80, 0)) + b"\x86\0key\x8a\x80\0value\0"
        size = bytearray(encode_varint(len(body)))
        block += size + body
    keys = read_keys(block, 20)
    assert keys.keys == [b"key"] * 20
    assert keys.is_without_gaps


def test_a_block_of_another_count_is_refused() -> None:
    """Records too many and too few."""
    block = bytearray()
    for delta in range(10):
        append_record(block, delta, 0, b"k", b"v", ())
    for count in (0, 9, 11):
        with pytest.raises(DecodeError):
            read_keys(bytes(block), count)
