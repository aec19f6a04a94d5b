"""Variable-length integers, strings and tagged sections of Produce and Fetch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.hot.wire import (
    TAGGED_SIZE_MAX,
    compact_string,
    read_compact_string,
    read_string,
    read_uvarint,
    skip_tags,
    string,
    uvarint,
)


@given(st.integers(0, 0xFFFF_FFFF))
def test_unsigned_varint_round_trips(value: int) -> None:
    """What is encoded is decoded, in the least number of bytes."""
    encoded = uvarint(value)
    assert read_uvarint(memoryview(b"x" + encoded + b"y"), 1) == (value, 1 + len(encoded))
    assert len(encoded) == max(1, -(-value.bit_length() // 7))


def test_varint_of_six_bytes_is_refused() -> None:
    """A varint ends within five bytes, however long the input is."""
    with pytest.raises(DecodeError, match="longer than 5"):
        read_uvarint(memoryview(b"\xff" * 1_000_000), 0)


def test_varint_above_32_bits_is_refused() -> None:
    """Five bytes can hold 35 bits; three of them must be 0."""
    assert read_uvarint(memoryview(b"\xff\xff\xff\xff\x0f"), 0) == (0xFFFF_FFFF, 5)
    with pytest.raises(DecodeError, match="32 bits"):
        read_uvarint(memoryview(b"\xff\xff\xff\xff\x1f"), 0)


@given(st.none() | st.text(max_size=300))
def test_strings_round_trip(text: str | None) -> None:
    """Null, empty and other strings, with compact and with 16-bit length."""
    encoded = compact_string(text)
    assert read_compact_string(memoryview(encoded), 0) == (text, len(encoded))
    encoded = string(text)
    assert read_string(memoryview(encoded), 0) == (text, len(encoded))


@pytest.mark.parametrize("raw", [b"\x05abc", b"\xff\xff\xff\xff\x0fabc"])
def test_compact_string_longer_than_input_is_refused(raw: bytes) -> None:
    """A length is compared with what is left before anything is sliced."""
    with pytest.raises(DecodeError, match="are left"):
        read_compact_string(memoryview(raw), 0)


@pytest.mark.parametrize("raw", [b"\x00\x04abc", b"\x7f\xffabc", b"\xff\xfeabc"])
def test_string_of_impossible_length_is_refused(raw: bytes) -> None:
    """Longer than the input, or negative and not null."""
    with pytest.raises(DecodeError):
        read_string(memoryview(raw), 0)


def test_string_too_long_for_its_length_field_is_our_mistake() -> None:
    """32,767 bytes are the most a 16-bit length can say."""
    assert len(string("x" * 32767)) == 32769
    with pytest.raises(ValueError, match="32768"):
        string("x" * 32768)


def test_unknown_tags_are_skipped() -> None:
    """Two fields, one with a two-byte tag, one empty."""
    section = b"\x02\x05\x03abc\x80\x01\x00"
    assert skip_tags(memoryview(section + b"rest"), 0) == len(section)


def test_tagged_field_past_the_end_is_refused() -> None:
    """A size is compared with what is left."""
    with pytest.raises(DecodeError, match="past the end"):
        skip_tags(memoryview(b"\x01\x00\x7fabc"), 0)


def test_endless_tags_are_refused_soon() -> None:
    """A section of many small fields ends at a bound, not at the end of a 100 MiB frame."""
    section = b"\xff\xff\xff\xff\x0f" + b"\x00\x00" * TAGGED_SIZE_MAX
    with pytest.raises(DecodeError, match="above"):
        skip_tags(memoryview(section), 0)
