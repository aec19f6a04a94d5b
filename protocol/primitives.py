"""Kafka's primitive types that take a call: varints, compact forms, UUIDs.

All integers are big-endian. Layouts (KIP-482 for the compact ones):

    type              bytes
    UNSIGNED_VARINT   1..5, seven bits each, lowest first, top bit = another byte follows
    UNSIGNED_VARLONG  1..10, same
    VARINT, VARLONG   zigzag of the above: 0 -1 1 -2 2 become 0 1 2 3 4
    STRING            int16 length n, n bytes of UTF-8; n = -1: null
    COMPACT_STRING    UNSIGNED_VARINT n + 1, n bytes of UTF-8; 0: null
    BYTES             int32 length n, n bytes; n = -1: null
    COMPACT_BYTES     UNSIGNED_VARINT n + 1, n bytes; 0: null
    UUID              16 bytes
    tag section       UNSIGNED_VARINT count, then per field: UNSIGNED_VARINT tag,
                      UNSIGNED_VARINT size, size bytes; tags ascend

Functions take a position and return the position after what they read. They may be used on bytes
or on a memoryview of format "B". Besides DecodeError they may raise IndexError and struct.error
where the bytes end early: a module that offers decoders to others turns those into DecodeError
(`protocol.messages` and `protocol.headers` do).

Bytes of a string that are not UTF-8 become U+FFFD, here and in every other decoder of requests and
answers: Java decodes so, and some clients send whatever bytes somebody named a group.
"""

from struct import Struct
from typing import Final
from uuid import UUID, SafeUUID

from protocol.errors import DecodeError

STRING_SIZE_MAX: Final = 0x7FFF
"""Longest string in the non-compact form, whose length is an int16."""

NIL_UUID: Final = UUID(int=0)
"""Stands for "no id" everywhere in the protocol."""

INT16: Final = Struct(">h")
INT32: Final = Struct(">i")

SMALL: Final = 9
"""Lists of fewer int32 than this have compiled structs: replicas, partitions of a topic."""

PACK_INT32: Final = tuple(Struct(f">{count}i").pack for count in range(SMALL))
UNPACK_INT32: Final = tuple(Struct(f">{count}i").unpack_from for count in range(SMALL))

Bytes = bytes | memoryview
"""What can be decoded."""


def decode_unsigned_varint(data: Bytes, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes and 32 bits.

    Raises:
        DecodeError: A sixth byte would follow, or the value exceeds 32 bits.
    """
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise DecodeError("varint is longer than 32 bits")


def encode_unsigned_varint(value: int) -> bytes:
    """Write an unsigned varint.

    Raises:
        ValueError: The value is negative or does not fit into 64 bits; a mistake of the caller.
    """
    if value < 0x80:
        if value < 0:
            raise ValueError(f"an unsigned varint cannot be {value}")
        return _SINGLE_BYTE[value]
    if value > 0xFFFFFFFFFFFFFFFF:
        raise ValueError(f"an unsigned varint cannot be {value}")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SINGLE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def decode_string(data: Bytes, position: int) -> tuple[str | None, int]:
    """Read a STRING; None when it is null.

    Raises:
        DecodeError: The length is below -1 or beyond the end.
    """
    (size,) = INT16.unpack_from(data, position)
    return _decode_text(data, position + 2, size)


def decode_compact_string(data: Bytes, position: int) -> tuple[str | None, int]:
    """Read a COMPACT_STRING; None when it is null.

    Raises:
        DecodeError: The length is beyond the end.
    """
    size, position = decode_unsigned_varint(data, position)
    return _decode_text(data, position, size - 1)


def _decode_text(data: Bytes, position: int, size: int) -> tuple[str | None, int]:
    if size < 0:
        if size == -1:
            return None, position
        raise DecodeError(f"string of length {size}")
    end = position + size
    if end > len(data):
        raise DecodeError(f"string of {size} bytes, {len(data) - position} are left")
    return str(data[position:end], "utf-8", "replace"), end


def encode_string(value: str | None) -> bytes:
    """Write a STRING.

    Raises:
        ValueError: It is longer than 32,767 bytes; a mistake of the caller.
    """
    if value is None:
        return b"\xff\xff"
    text = value.encode()
    if len(text) > STRING_SIZE_MAX:
        raise ValueError(f"a string of {len(text)} bytes does not fit its int16 length")
    return INT16.pack(len(text)) + text


def encode_compact_string(value: str | None) -> bytes:
    """Write a COMPACT_STRING."""
    if value is None:
        return b"\x00"
    text = value.encode()
    return encode_unsigned_varint(len(text) + 1) + text


def skip_tagged_fields(data: Bytes, position: int) -> int:
    """Step over a whole tag section, its count included.

    Raises:
        DecodeError: A field's size reaches beyond the end.
    """
    count, position = decode_unsigned_varint(data, position)
    return skip_fields(data, position, count)


def skip_fields(data: Bytes, position: int, count: int) -> int:
    """Step over `count` tagged fields.

    Each takes at least two bytes, so a false count ends with the bytes, not with the count.

    Raises:
        DecodeError: A field's size reaches beyond the end.
    """
    end = len(data)
    for _ in range(count):
        _, position = decode_unsigned_varint(data, position)
        size, position = decode_unsigned_varint(data, position)
        position += size
        if position > end:
            raise DecodeError("tagged field reaches beyond the end")
    return position


_NEW_UUID: Final = object.__new__
_SET: Final = object.__setattr__
_NIL_BYTES: Final = bytes(16)


def uuid_from_bytes(data: bytes) -> UUID:
    """Make a UUID of 16 bytes, several times faster than `UUID(bytes=...)`.

    The length is not checked: every caller has cut the bytes itself.
    """
    if data == _NIL_BYTES:
        return NIL_UUID
    value = _NEW_UUID(UUID)
    # UUID forbids assignment to keep itself immutable; this one is not out of our hands yet.
    _SET(value, "int", int.from_bytes(data, "big"))
    _SET(value, "is_safe", SafeUUID.unknown)
    return value
