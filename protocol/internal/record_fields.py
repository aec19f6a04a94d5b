"""Fields that records of internal topics are made of: strings, octets, arrays, tagged fields.

    field            plain                              compact, in flexible versions
    string           int16 length, UTF-8; -1: null      uvarint of length + 1, UTF-8; 0: null
    octets           int32 length, octets; -1: null     uvarint of length + 1, octets; 0: null
    array            int32 count, elements              uvarint of count + 1, elements; 0: null
    assignment       none                               array of: 16 topic id, array of 4 partition,
                                                        tagged fields
    tagged fields    none                               uvarint count, then of each a uvarint tag,
                                                        a uvarint size and the content

Numbers are big-endian; `uvarint` is an unsigned varint of at most five bytes.

Source: Kafka, clients/src/main/java/org/apache/kafka/common/protocol/{ByteBufferAccessor,Readable}.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct, pack, unpack
from typing import TypeAlias
from uuid import UUID

from protocol.errors import DecodeError

STRING_SIZE_MAX = 0x7FFF
"""Longest string, in bytes of UTF-8."""

NO_TAGGED_FIELDS = b"\x00"

Assignment: TypeAlias = Mapping[UUID, tuple[int, ...]]
"""Partitions of topics, by topic id, in the order of the record."""

_INT16 = Struct(">h")


def unsigned_varint(value: int) -> bytes:
    """Seven bits to a byte, the lowest first."""
    if value < 0x80:
        return bytes((value,))
    octets = bytearray()
    while value > 0x7F:
        octets.append((value & 0x7F) | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def string(text: str) -> bytes:
    """A plain string.

    Raises:
        ValueError: It is longer than `STRING_SIZE_MAX`.
    """
    octets = _utf8(text)
    return _INT16.pack(len(octets)) + octets


def nullable_string(text: str | None) -> bytes:
    """A plain string or null.

    Raises:
        ValueError: It is longer than `STRING_SIZE_MAX`.
    """
    return b"\xff\xff" if text is None else string(text)


def compact_string(text: str) -> bytes:
    """A compact string.

    Raises:
        ValueError: It is longer than `STRING_SIZE_MAX`.
    """
    octets = _utf8(text)
    return unsigned_varint(len(octets) + 1) + octets


def compact_nullable_string(text: str | None) -> bytes:
    """A compact string or null.

    Raises:
        ValueError: It is longer than `STRING_SIZE_MAX`.
    """
    return b"\x00" if text is None else compact_string(text)


def compact_octets(octets: bytes) -> bytes:
    """Octets of any length, compact."""
    return unsigned_varint(len(octets) + 1) + octets


def compact_strings(texts: Sequence[str]) -> bytes:
    """A compact array of compact strings.

    Raises:
        ValueError: One is longer than `STRING_SIZE_MAX`.
    """
    return unsigned_varint(len(texts) + 1) + b"".join(map(compact_string, texts))


def compact_int32s(values: Sequence[int]) -> bytes:
    """A compact array of int32."""
    count = len(values)
    return unsigned_varint(count + 1) + pack(f">{count}i", *values)


def tagged_fields(fields: Iterable[tuple[int, bytes]]) -> bytes:
    """Tagged fields; tags ascend."""
    pieces = [
        unsigned_varint(tag) + unsigned_varint(len(content)) + content for tag, content in fields
    ]
    return unsigned_varint(len(pieces)) + b"".join(pieces)


def assignment_field(assignment: Assignment) -> bytes:
    """Partitions of topics, in the order of the mapping."""
    pieces = [unsigned_varint(len(assignment) + 1)]
    for topic_id, partitions in assignment.items():
        pieces += (topic_id.bytes, compact_int32s(partitions), NO_TAGGED_FIELDS)
    return b"".join(pieces)


def _utf8(text: str) -> bytes:
    octets = text.encode()
    if len(octets) > STRING_SIZE_MAX:
        raise ValueError(f"string of {len(octets)} bytes, at most {STRING_SIZE_MAX} fit")
    return octets


class RecordReader:
    """Walks over one key or value; every read is checked against what is left.

    `flexible` says whether strings, octets and arrays are compact: a value knows only after its
    version has been read.
    """

    __slots__ = ("_data", "_position", "flexible")

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self._data = data
        self._position = 0
        self.flexible = flexible

    def take(self, size: int) -> bytes:
        """The next `size` bytes.

        Raises:
            DecodeError: There are fewer.
        """
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise DecodeError(f"{size} bytes wanted, {len(self._data) - self._position} left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def int8(self) -> int:
        """A signed byte."""
        return int.from_bytes(self.take(1), "big", signed=True)

    def int16(self) -> int:
        """Two bytes, signed."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """Four bytes, signed."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        """Eight bytes, signed."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def uuid(self) -> UUID:
        """Sixteen bytes."""
        return UUID(bytes=self.take(16))

    def unsigned_varint(self) -> int:
        """At most five bytes."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise DecodeError("varint longer than five bytes")

    def nullable_string(self) -> str | None:
        """A string or null."""
        size = self.unsigned_varint() - 1 if self.flexible else self.int16()
        if size == -1:
            return None
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise DecodeError("string is not UTF-8") from error

    def string(self) -> str:
        """A string; null is an error."""
        text = self.nullable_string()
        if text is None:
            raise DecodeError("null where a string is needed")
        return text

    def octets(self) -> bytes:
        """Octets; null is an error."""
        size = self.unsigned_varint() - 1 if self.flexible else self.int32()
        return self.take(size)

    def array_length(self) -> int:
        """How many elements follow; each takes at least a byte, so more than is left is a lie."""
        length = self.unsigned_varint() - 1 if self.flexible else self.int32()
        if not 0 <= length <= len(self._data) - self._position:
            raise DecodeError(f"array of {length} elements")
        return length

    def strings(self) -> tuple[str, ...]:
        """An array of strings."""
        return tuple([self.string() for _ in range(self.array_length())])

    def int32s(self) -> tuple[int, ...]:
        """An array of int32."""
        count = self.array_length()
        return unpack(f">{count}i", self.take(4 * count))

    def tagged_fields(self) -> list[tuple[int, bytes]]:
        """Tag and content of each; none where the version is not flexible."""
        if not self.flexible:
            return []
        count = self.unsigned_varint()
        if count > len(self._data) - self._position:
            raise DecodeError(f"{count} tagged fields")
        return [(self.unsigned_varint(), self.take(self.unsigned_varint())) for _ in range(count)]

    def assignment(self) -> Assignment:
        """Partitions of topics; a topic that comes twice is an error."""
        assignment: dict[UUID, tuple[int, ...]] = {}
        for _ in range(self.array_length()):
            topic_id = self.uuid()
            if topic_id in assignment:
                raise DecodeError(f"topic {topic_id} twice in one assignment")
            assignment[topic_id] = self.int32s()
            self.tagged_fields()
        return assignment


def flexible_value(data: bytes) -> RecordReader:
    """A reader behind the version of a value that has only version 0, a flexible one.

    Raises:
        DecodeError: It is another version.
    """
    reader = RecordReader(data, flexible=True)
    version = reader.int16()
    if version != 0:
        raise DecodeError(f"value version {version} is not known")
    return reader
