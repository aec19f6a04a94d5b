"""Strings, arrays and tagged fields: both forms, their limits, damage."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.internal.record_fields import (
    NO_TAGGED_FIELDS,
    STRING_SIZE_MAX,
    RecordReader,
    compact_int32s,
    compact_nullable_string,
    compact_octets,
    compact_string,
    compact_strings,
    nullable_string,
    string,
    tagged_fields,
    unsigned_varint,
)


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16384, "808001"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_varints(value: int, octets: str) -> None:
    """The bytes of well-known values, both ways."""
    assert unsigned_varint(value).hex() == octets
    assert RecordReader(bytes.fromhex(octets)).unsigned_varint() == value


def test_varint_that_never_ends_is_refused() -> None:
    """Five bytes hold 32 bits; a sixth is damage."""
    with pytest.raises(DecodeError, match="five bytes"):
        RecordReader(b"\x80" * 6).unsigned_varint()


@given(st.text(max_size=200))
def test_strings_come_back(text: str) -> None:
    """Plain and compact, nullable and not."""
    assert RecordReader(string(text)).string() == text
    assert RecordReader(nullable_string(text)).nullable_string() == text
    assert RecordReader(compact_string(text), flexible=True).string() == text
    assert RecordReader(compact_nullable_string(text), flexible=True).nullable_string() == text


def test_null() -> None:
    """Null is null where it may be, an error where it may not."""
    assert RecordReader(nullable_string(None)).nullable_string() is None
    assert RecordReader(compact_nullable_string(None), flexible=True).nullable_string() is None
    with pytest.raises(DecodeError, match="null"):
        RecordReader(nullable_string(None)).string()
    with pytest.raises(DecodeError):
        RecordReader(b"\x00", flexible=True).octets()
    with pytest.raises(DecodeError):
        RecordReader(b"\x00", flexible=True).array_length()


def test_longest_string() -> None:
    """One byte more is refused before it is written."""
    longest = "s" * STRING_SIZE_MAX
    assert RecordReader(compact_string(longest), flexible=True).string() == longest
    for write in (string, nullable_string, compact_string, compact_nullable_string):
        with pytest.raises(ValueError, match="32768"):
            write(longest + "s")


@given(
    st.binary(max_size=300), st.lists(st.text(max_size=20)), st.lists(st.integers(-5, 2**31 - 1))
)
def test_arrays_come_back(octets: bytes, texts: list[str], numbers: list[int]) -> None:
    """Several fields one after another."""
    data = compact_octets(octets) + compact_strings(texts) + compact_int32s(numbers)
    reader = RecordReader(data, flexible=True)
    assert reader.octets() == octets
    assert reader.strings() == tuple(texts)
    assert reader.int32s() == tuple(numbers)


def test_tagged_fields() -> None:
    """A count, then tag, size and content; nothing in a version that is not flexible."""
    fields = [(0, b"abc"), (300, b"")]
    data = tagged_fields(fields)
    assert data == b"\x02\x00\x03abc\xac\x02\x00"
    assert RecordReader(data, flexible=True).tagged_fields() == fields
    assert RecordReader(b"").tagged_fields() == []
    assert tagged_fields([]) == NO_TAGGED_FIELDS


@pytest.mark.parametrize("read", ["strings", "int32s", "tagged_fields", "octets", "string"])
def test_lengths_that_lie_cost_nothing(read: str) -> None:
    """Four thousand million elements in ten bytes are refused at once."""
    started = time.thread_time()
    with pytest.raises(DecodeError):
        getattr(RecordReader(b"\xff\xff\xff\xff\x0f" + bytes(5), flexible=True), read)()
    assert time.thread_time() - started < 1.0
