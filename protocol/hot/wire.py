"""What Produce and Fetch share: variable-length integers, tagged sections, and limits.

    unsigned varint   7 bits a byte, lowest first, top bit = another follows; 1 .. 5 bytes, 32 bits
    compact length    unsigned varint of length + 1; 0 = null                       (KIP-482)
    tagged section    count, then per field: tag, size, `size` bytes; all unsigned varints

Readers take (data, position) and return the position after. They may raise IndexError where the
data ends: the public decoders turn that into DecodeError in one place, which costs nothing while
all goes well.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from protocol.errors import DecodeError

ELEMENTS_MAX: Final = 25_000
"""Most topics plus partitions in one request.

An element costs a client 3 bytes and us 200 bytes and half a microsecond: without this bound a
frame of `socket.request.max.bytes` could take gigabytes and stop the loop for many seconds. The
largest clusters list fewer in one request.
"""

TAGGED_SIZE_MAX: Final = 256 * 1024
"""Most bytes in the tagged sections of one request, together: they are skipped field by field."""

INT16: Final = Struct(">h")
INT32: Final = Struct(">i")

UVARINT_1: Final = tuple(bytes((n,)) for n in range(128))
"""Encoded unsigned varints of one byte."""


_CONTINUED: Final = tuple(bytes((n | 0x80,)) for n in range(128))
"""Bytes behind which another one follows."""


def uvarint(value: int) -> bytes:
    """Encode 0 .. 2**32 - 1."""
    if value < 128:
        return UVARINT_1[value]
    if value < 1 << 14:
        return _CONTINUED[value & 0x7F] + UVARINT_1[value >> 7]
    if value < 1 << 21:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: memoryview, position: int) -> tuple[int, int]:
    """Decode an unsigned varint: (value, position after).

    Raises:
        DecodeError: Longer than 5 bytes, or above 32 bits.
        IndexError: The data ends within.
    """
    byte = data[position]
    if byte < 128:
        return byte, position + 1
    value = byte & 0x7F
    shift = 7
    while True:
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 28:
            raise DecodeError("varint is longer than 5 bytes")
    if value > 0xFFFF_FFFF:
        raise DecodeError("varint does not fit 32 bits")
    return value, position + 1


def read_compact_string(data: memoryview, position: int) -> tuple[str | None, int]:
    """Decode a compact nullable string: (text or None, position after)."""
    length, position = read_uvarint(data, position)
    if length == 0:
        return None, position
    end = position + length - 1
    if end > len(data):
        raise DecodeError(f"string of {length - 1} bytes, {len(data) - position} are left")
    return str(data[position:end], "utf-8", "replace"), end


def read_string(data: memoryview, position: int) -> tuple[str | None, int]:
    """Decode a nullable string of 16-bit length: (text or None, position after)."""
    length: int = INT16.unpack_from(data, position)[0]
    position += 2
    if length < 0:
        if length == -1:
            return None, position
        raise DecodeError(f"string has length {length}")
    end = position + length
    if end > len(data):
        raise DecodeError(f"string of {length} bytes, {len(data) - position} are left")
    return str(data[position:end], "utf-8", "replace"), end


def skip_tags(data: memoryview, position: int) -> int:
    """Skip a tagged section none of whose fields we know; the position after it."""
    start = position
    count, position = read_uvarint(data, position)
    for _ in range(count):
        _tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            raise DecodeError("tagged field runs past the end")
        if position - start > TAGGED_SIZE_MAX:
            raise DecodeError(f"tagged fields above {TAGGED_SIZE_MAX} bytes")
    return position


def compact_string(text: str | None) -> bytes:
    """Encode a compact nullable string."""
    if text is None:
        return b"\0"
    raw = text.encode()
    return uvarint(len(raw) + 1) + raw


def string(text: str | None) -> bytes:
    """Encode a nullable string of 16-bit length; ValueError above 32,767 bytes."""
    if text is None:
        return b"\xff\xff"
    raw = text.encode()
    if len(raw) > 0x7FFF:
        raise ValueError(f"string of {len(raw)} bytes does not fit a 16-bit length")
    return INT16.pack(len(raw)) + raw


NodeEndpoint = tuple[int, str, int, str | None]
"""(node id, host, port, rack)."""


def node_endpoints_array(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """Encode `node_endpoints` as a compact array."""
    parts = [uvarint(len(endpoints) + 1)]
    for node_id, host, port, rack in endpoints:
        parts += (
            INT32.pack(node_id),
            compact_string(host),
            INT32.pack(port),
            compact_string(rack),
            b"\0",
        )
    return b"".join(parts)


def node_endpoints_section(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """Encode a tagged section that holds `node_endpoints` (tag 0), or none if there are none."""
    if not endpoints:
        return b"\0"
    body = node_endpoints_array(endpoints)
    return b"\x01\x00" + uvarint(len(body)) + body
