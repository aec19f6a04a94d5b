"""Fields of flexible versions (KIP-482), read and written by hand; see `bench.wire`."""

import struct
import uuid
from collections.abc import Iterable

from bench import wire

NO_TAGS = b"\x00"


def string(value: str | None) -> bytes:
    """A compact string; None is a length of 0."""
    return b"\x00" if value is None else wire.compact_string(value)


def array(items: Iterable[bytes] | None) -> bytes:
    """A compact array of items already encoded; None is a count of 0."""
    if items is None:
        return b"\x00"
    pieces = list(items)
    return wire.uvarint(len(pieces) + 1) + b"".join(pieces)


def blob(value: bytes) -> bytes:
    """Compact bytes."""
    return wire.uvarint(len(value) + 1) + value


def int32s(values: Iterable[int]) -> bytes:
    """A compact array of int32."""
    return array(struct.pack(">i", value) for value in values)


class FlexibleReader(wire.Reader):
    """Reads the fields of a flexible response in order."""

    def uvarint(self) -> int:
        """An unsigned varint."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_string(self) -> str | None:
        """A compact string."""
        size = self.uvarint()
        return None if not size else self.take(size - 1).decode()

    def compact_blob(self) -> bytes:
        """Compact bytes; nothing for null."""
        return self.take(max(self.uvarint() - 1, 0))

    def compact_times(self) -> range:
        """How often the items of the next compact array are to be read."""
        return range(max(self.uvarint() - 1, 0))

    def int32s(self) -> list[int]:
        """A compact array of int32."""
        return [self.int32() for _ in self.compact_times()]

    def uuid(self) -> uuid.UUID:
        """A topic id."""
        return uuid.UUID(bytes=self.take(16))

    def tags(self) -> None:
        """Step over tagged fields."""
        for _ in range(self.uvarint()):
            self.uvarint()
            self.take(self.uvarint())


def answer_of(data: bytes) -> FlexibleReader:
    """The body of a flexible answer given from its correlation id on."""
    reader = FlexibleReader(data)
    reader.int32()
    reader.tags()
    return reader


def partition_codes(answer: bytes) -> set[int]:
    """All error codes, 0 included, of a flexible answer that has one for each partition.

    OffsetCommit v8, AddPartitionsToTxn v3 and TxnOffsetCommit v3 to v5.
    """
    reader = answer_of(answer)
    reader.int32()
    found = set()
    for _ in reader.compact_times():
        reader.compact_string()
        for _ in reader.compact_times():
            reader.int32()
            found.add(reader.int16())
            reader.tags()
        reader.tags()
    return found
