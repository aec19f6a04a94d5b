"""Zigzag varints of records: small magnitudes of either sign in few bytes.

    zigzag   0 -1 1 -2 2 ...  ->  0 1 2 3 4 ...
    varint   7 bits a byte, lowest first, top bit = another follows
             32 bits: 1 .. 5 bytes; 64 bits (varlong): 1 .. 10 bytes

Source: Kafka, ByteUtils.java; Protocol Buffers' sint32 and sint64.
"""

from typing import Final

from protocol.errors import DecodeError


def read_varint(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Decode a signed 32-bit varint: (value, position after).

    Raises:
        DecodeError: Longer than 5 bytes, or above 32 bits.
        IndexError: The data ends within.
    """
    value = 0
    shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 28:
            raise DecodeError("varint is longer than 5 bytes")
    if value > 0xFFFF_FFFF:
        raise DecodeError("varint does not fit 32 bits")
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Decode a signed 64-bit varint: (value, position after); raises as `read_varint`."""
    value = 0
    shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise DecodeError("varlong is longer than 10 bytes")
    if value > 0xFFFF_FFFF_FFFF_FFFF:
        raise DecodeError("varlong does not fit 64 bits")
    return (value >> 1) ^ -(value & 1), position


def append_varint(out: bytearray, value: int) -> None:
    """Encode a signed varint of at most 64 bits."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _encode(value: int) -> bytes:
    out = bytearray()
    append_varint(out, value)
    return bytes(out)


VARINTS_END: Final = 1024
VARINTS: Final = tuple(map(_encode, range(VARINTS_END)))
"""Lengths and deltas of nearly all records that a broker writes itself."""


def encode_varint(value: int) -> bytes:
    """A signed varint of at most 64 bits, by itself."""
    return VARINTS[value] if 0 <= value < VARINTS_END else _encode(value)
