"""Zigzag varints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.varint import append_varint, read_varint, read_varlong
from tests.unit.protocol.kafka_python_oracle import decode_varint, encode_varint

EDGES = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31)]


def kafka_python(value: int) -> bytes:
    out = bytearray()
    encode_varint(value, out.append)
    return bytes(out)


@given(st.integers(-(2**31), 2**31 - 1) | st.sampled_from(EDGES))
def test_varint_agrees_with_kafka_python(value: int) -> None:
    """Same bytes, same value."""
    out = bytearray(b"x")
    append_varint(out, value)
    assert out[1:] == kafka_python(value)
    assert read_varint(bytes(out), 1) == (value, len(out))
    assert decode_varint(out, 1) == (value, len(out))


@given(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**63 - 1, -(2**63)]))
def test_varlong_agrees_with_kafka_python(value: int) -> None:
    """64 bits take at most ten bytes."""
    out = bytearray()
    append_varint(out, value)
    assert out == kafka_python(value)
    assert read_varlong(bytes(out), 0) == (value, len(out))
    assert len(out) <= 10


def test_too_long_is_refused() -> None:
    """The walk ends after 5 and 10 bytes, not at the end of the input."""
    data = b"\xff" * 1_000_000
    with pytest.raises(DecodeError, match="5 bytes"):
        read_varint(data, 0)
    with pytest.raises(DecodeError, match="10 bytes"):
        read_varlong(data, 0)


def test_too_large_is_refused() -> None:
    """The last byte holds only the bits that are left."""
    with pytest.raises(DecodeError, match="32 bits"):
        read_varint(b"\xff\xff\xff\xff\x10", 0)
    with pytest.raises(DecodeError, match="64 bits"):
        read_varlong(b"\xff" * 9 + b"\x02", 0)


def test_cut_off_is_an_index_error() -> None:
    """The caller turns it into DecodeError once for all fields."""
    with pytest.raises(IndexError):
        read_varint(b"\xff", 0)
    with pytest.raises(IndexError):
        read_varlong(b"", 0)
