"""Metadata of the classic protocol that consumers exchange through the coordinator.

The metadata of JoinGroup is a *subscription*, what SyncGroup hands out an *assignment*; the
coordinator looks into them only to move a group from one protocol to the other (KIP-848).
Big-endian:

    subscription                              assignment
    int16   version                           int16   version
    array   topics: string                    array   of  string topic, array of int32 partitions
    octets  user data, null                   octets  user data, null
    array   of  string topic,
                array of int32 partitions     version 1 upwards: what the member owns
    int32   generation                        version 2 upwards
    string  rack, null                        version 3 upwards

A newer version than these has more at its end, which is not read.

Source: Kafka, ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json,
ConsumerProtocol.java; KIP-429, KIP-792, KIP-881.
"""

from collections.abc import Mapping
from struct import Struct
from typing import Final, NamedTuple

from protocol.errors import DecodeError

VERSION_MAX: Final = 3
"""Of both messages."""

NO_GENERATION: Final = -1

_INT16 = Struct(">h")
_INT32 = Struct(">i")


class ConsumerSubscription(NamedTuple):
    """What a consumer wants; `owned` are the partitions it has, by topic."""

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: Mapping[str, tuple[int, ...]] = {}
    generation: int = NO_GENERATION
    rack: str | None = None


class ConsumerAssignment(NamedTuple):
    """What a consumer gets."""

    partitions: Mapping[str, tuple[int, ...]]
    user_data: bytes | None = None


def message_version(data: bytes) -> int:
    """Version of a subscription or an assignment, at most `VERSION_MAX`.

    Raises:
        DecodeError: There is none.
    """
    return _Reader(data).version()


def decode_subscription(data: bytes) -> ConsumerSubscription:
    """Read a subscription.

    Raises:
        DecodeError: The bytes are none.
    """
    reader = _Reader(data)
    version = reader.version()
    topics = tuple(reader.string() for _ in range(reader.count(_INT16.size)))
    user_data = reader.octets()
    owned = reader.partitions() if version >= 1 else {}
    generation = reader.int32() if version >= 2 else NO_GENERATION
    rack = reader.nullable_string() if version >= 3 else None
    return ConsumerSubscription(version, topics, user_data, owned, generation, rack)


def decode_assignment(data: bytes) -> ConsumerAssignment:
    """Read an assignment; no bytes at all are an empty one.

    Raises:
        DecodeError: The bytes are none.
    """
    if not data:
        return ConsumerAssignment({})
    reader = _Reader(data)
    reader.version()
    return ConsumerAssignment(reader.partitions(), reader.octets())


def encode_assignment(assignment: ConsumerAssignment, version: int) -> bytes:
    """Write an assignment; all versions look alike."""
    return _INT16.pack(version) + _partitions(assignment.partitions) + _octets(assignment.user_data)


def _string(text: str) -> bytes:
    octets = text.encode()
    return _INT16.pack(len(octets)) + octets


def _octets(data: bytes | None) -> bytes:
    return _INT32.pack(-1) if data is None else _INT32.pack(len(data)) + data


def _partitions(partitions: Mapping[str, tuple[int, ...]]) -> bytes:
    parts = [_INT32.pack(len(partitions))]
    for topic, numbers in partitions.items():
        parts.append(_string(topic))
        parts.append(_INT32.pack(len(numbers)))
        parts += map(_INT32.pack, numbers)
    return b"".join(parts)


class _Reader:
    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _take(self, size: int) -> int:
        position = self._position
        if size < 0 or position + size > len(self._data):
            raise DecodeError(f"{size} bytes at {position} of {len(self._data)}")
        self._position = position + size
        return position

    def int16(self) -> int:
        (value,) = _INT16.unpack_from(self._data, self._take(_INT16.size))
        assert isinstance(value, int)
        return value

    def int32(self) -> int:
        (value,) = _INT32.unpack_from(self._data, self._take(_INT32.size))
        assert isinstance(value, int)
        return value

    def version(self) -> int:
        version = self.int16()
        if version < 0:
            raise DecodeError(f"version {version}")
        return min(version, VERSION_MAX)

    def count(self, element_size: int) -> int:
        """Elements that follow, each of at least so many bytes: a lie costs nothing."""
        count = self.int32()
        if not 0 <= count <= (len(self._data) - self._position) // element_size:
            raise DecodeError(f"{count} elements")
        return count

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise DecodeError("no string")
        return text

    def nullable_string(self) -> str | None:
        size = self.int16()
        if size == -1:
            return None
        position = self._take(size)
        try:
            return self._data[position : position + size].decode()
        except UnicodeDecodeError as error:
            raise DecodeError("string is not UTF-8") from error

    def octets(self) -> bytes | None:
        size = self.int32()
        if size == -1:
            return None
        position = self._take(size)
        return self._data[position : position + size]

    def partitions(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for _ in range(self.count(_INT16.size + _INT32.size)):
            topic = self.string()
            numbers = tuple(self.int32() for _ in range(self.count(_INT32.size)))
            # A topic that is named twice has all of its partitions.
            found[topic] = found[topic] + numbers if topic in found else numbers
        return found
