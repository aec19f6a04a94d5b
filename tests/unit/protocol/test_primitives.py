"""Varints, strings and UUIDs at their edges."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.primitives import (
    NIL_UUID,
    decode_compact_string,
    decode_string,
    decode_unsigned_varint,
    encode_compact_string,
    encode_string,
    encode_unsigned_varint,
    skip_tagged_fields,
    uuid_from_bytes,
)


@given(st.integers(0, (1 << 32) - 1))
def test_unsigned_varint_comes_back(value: int) -> None:
    """32 bits in at most 5 bytes, and the position after them."""
    data = encode_unsigned_varint(value)
    assert len(data) <= 5
    assert decode_unsigned_varint(b"\xaa" + data + b"\xbb", 1) == (value, 1 + len(data))


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        ((1 << 32) - 1, "ffffffff0f"),
    ],
)
def test_unsigned_varint_bytes(value: int, data: str) -> None:
    """Seven bits each, lowest first."""
    assert encode_unsigned_varint(value).hex() == data


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_a_varint_out_of_range_is_our_mistake(value: int) -> None:
    """Writing it is a ValueError, not a DecodeError."""
    with pytest.raises(ValueError, match="cannot be") as caught:
        encode_unsigned_varint(value)
    assert not isinstance(caught.value, DecodeError)


@pytest.mark.parametrize("data", ["ffffffffff", "ffffffff1f", "808080808001", "ff" * 1000])
def test_varint_above_32_bits_is_refused(data: str) -> None:
    """After five bytes at the latest, however many follow."""
    with pytest.raises(DecodeError):
        decode_unsigned_varint(bytes.fromhex(data), 0)


def test_varint_may_have_needless_bytes() -> None:
    """Kafka reads them; so do we."""
    assert decode_unsigned_varint(b"\x80\x80\x00", 0) == (0, 3)


@given(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_strings_come_back(value: str | None) -> None:
    """Both forms, null and empty apart."""
    data = encode_string(value)
    assert decode_string(data, 0) == (value, len(data))
    data = encode_compact_string(value)
    assert decode_compact_string(memoryview(data), 0) == (value, len(data))


def test_string_bytes() -> None:
    """Length n in the old form, n + 1 in the compact one."""
    assert encode_string("ab") == b"\x00\x02ab"
    assert encode_string(None) == b"\xff\xff"
    assert encode_compact_string("ab") == b"\x03ab"
    assert encode_compact_string("") == b"\x01"
    assert encode_compact_string(None) == b"\x00"


def test_a_string_too_long_for_its_length_is_our_mistake() -> None:
    """32,767 bytes fit, one more does not."""
    assert len(encode_string("x" * 32_767)) == 32_769
    with pytest.raises(ValueError, match="32768"):
        encode_string("x" * 32_768)


@pytest.mark.parametrize("data", [b"\x00\x03ab", b"\xff\xfe"])
def test_bad_strings_are_refused(data: bytes) -> None:
    """Beyond the end, a length below -1."""
    with pytest.raises(DecodeError):
        decode_string(data, 0)


@pytest.mark.parametrize("data", [b"\x04ab", b"\xff\xff\xff\xff\x0f"])
def test_bad_compact_strings_are_refused(data: bytes) -> None:
    """Beyond the end by a little and by 4 GiB."""
    with pytest.raises(DecodeError):
        decode_compact_string(data, 0)


def test_strings_that_are_not_utf8_are_replaced() -> None:
    """As Java reads them: one U+FFFD for each byte, or piece of a character, that is wrong."""
    raw = b"M\xfcller\xe2\x82"
    assert decode_string(b"\0\x08" + raw + b"rest", 0) == ("M\ufffdller\ufffd", 10)
    assert decode_compact_string(b"\x09" + raw, 0)[0] == "M\ufffdller\ufffd"


def test_tag_section_is_stepped_over() -> None:
    """Count, then tag, size and content of each."""
    data = b"\x02" + b"\x00\x03abc" + b"\x85\x01\x00" + b"rest"
    assert skip_tagged_fields(data, 0) == len(data) - 4
    assert skip_tagged_fields(b"\x00rest", 0) == 1


@pytest.mark.parametrize("data", [b"\x01\x00\x04abc", b"\x01\x00\xff\xff\xff\xff\x0f"])
def test_tagged_field_beyond_the_end_is_refused(data: bytes) -> None:
    """The size of a field is checked against what is left."""
    with pytest.raises(DecodeError):
        skip_tagged_fields(data, 0)


def test_a_lie_about_the_number_of_tags_ends_with_the_bytes() -> None:
    """4,294,967,295 fields are claimed, and one is there."""
    with pytest.raises(IndexError):
        skip_tagged_fields(b"\xff\xff\xff\xff\x0f" + b"\x00\x00", 0)


@given(st.binary(min_size=16, max_size=16))
def test_uuid_is_one_in_every_way(data: bytes) -> None:
    """It equals, hashes and prints like one made the slow way."""
    value, slow = uuid_from_bytes(data), UUID(bytes=data)
    assert value == slow
    assert hash(value) == hash(slow)
    assert str(value) == str(slow)
    assert value.bytes == data
    assert value.is_safe is slow.is_safe


def test_nil_uuid_is_shared() -> None:
    """It is the most frequent one."""
    assert uuid_from_bytes(bytes(16)) is NIL_UUID
