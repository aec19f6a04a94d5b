"""Records of `__consumer_offsets`: committed offsets and classic groups.

Keys and values begin with their own version (int16). Big-endian; `string` is an int16 length and
UTF-8 (length -1: null), `bytes` an int32 length and octets. In a flexible value (version 4) they
become `compact`: an unsigned varint of length + 1 (0: null), and tagged fields close every struct.

Key of a committed offset (versions 0 and 1 are the same; 1 is written):

    size  field
       2  version
       *  group        string
       *  topic        string
       4  partition

Value of a committed offset (4 is written, 1 when the client asked for a retention time of its own):

    size  field              versions
       2  version
       8  offset             0-
       4  leader epoch       3-       -1: not known
       *  metadata           0-       string
       8  commit timestamp   0-       ms since 1970
       8  expire timestamp   1        ms since 1970, -1: by offsets.retention.minutes
      16  topic id           4-       tagged, tag 0; absent: not known

Key of a group (version 2):

    size  field
       2  version
       *  group              string

Value of a group (3 is written):

    size  field                    versions
       2  version
       *  protocol type            0-    string; empty: a group that only stores offsets
       4  generation               0-
       *  protocol                 0-    string or null
       *  leader                   0-    string or null
       8  current state timestamp  2-    ms since 1970, -1: not known
       4  number of members        0-    then of each member:
       *    member id              0-    string
       *    group instance id      3-    string or null
       *    client id              0-    string
       *    client host            0-    string
       4    rebalance timeout      1-    ms, absent: as the session timeout
       4    session timeout        0-    ms
       *    subscription           0-    bytes
       *    assignment             0-    bytes

A record without a value is a tombstone: the key is forgotten. Keys of versions 3 and up belong to
the newer group types; a reader that does not know them passes over them.

Source: Kafka, group-coordinator/src/main/resources/common/message, GroupCoordinatorRecordHelpers.
"""

from struct import Struct
from typing import NamedTuple
from uuid import UUID

from protocol.errors import DecodeError

NO_TOPIC_ID = UUID(int=0)
NO_TIMESTAMP = -1
STRING_SIZE_MAX = 0x7FFF
"""Longest string of these formats, in bytes of UTF-8."""

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_OFFSET_V3 = Struct(">hqi")
_OFFSET_V1 = Struct(">hq")

_OFFSET_KEY_VERSION = 1
_GROUP_KEY_VERSION = 2
_OFFSET_VALUE_VERSION = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
_GROUP_VALUE_VERSION = 3
_VALUE_VERSION_MAX = 4
_TOPIC_ID_TAG = 0


class OffsetCommitKey(NamedTuple):
    """Whose offset, and of which partition."""

    group: str
    topic: str
    partition: int


class OffsetCommitValue(NamedTuple):
    """A committed offset; times are ms since 1970 UTC."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: UUID = NO_TOPIC_ID


class GroupMetadataKey(NamedTuple):
    """Which group."""

    group: str


class MemberMetadata(NamedTuple):
    """One member of a classic group; `rebalance_timeout_ms` -1 means the session timeout."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(NamedTuple):
    """A classic group as of one generation."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int
    members: tuple[MemberMetadata, ...]


Key = OffsetCommitKey | GroupMetadataKey


def encode_offset_commit_key(group: str, topic: str, partition: int) -> bytes:
    """Key of a committed offset, version 1.

    Raises:
        ValueError: A name is longer than `STRING_SIZE_MAX`.
    """
    return b"".join(
        (
            _INT16.pack(_OFFSET_KEY_VERSION),
            _string(group),
            _string(topic),
            _INT32.pack(partition),
        )
    )


def encode_offset_commit_value(value: OffsetCommitValue) -> bytes:
    """Value of a committed offset: version 4, or 1 when it carries an expiry time.

    Version 1 has no room for leader epoch and topic id: Kafka drops them too.

    Raises:
        ValueError: The metadata is longer than `STRING_SIZE_MAX`.
    """
    offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id = value
    if expire_timestamp_ms != NO_TIMESTAMP:
        return b"".join(
            (
                _OFFSET_V1.pack(_OFFSET_VALUE_VERSION_WITH_EXPIRY, offset),
                _string(metadata),
                _INT64.pack(commit_timestamp_ms),
                _INT64.pack(expire_timestamp_ms),
            )
        )
    tagged = b"\x00" if topic_id.int == 0 else b"\x01\x00\x10" + topic_id.bytes
    return b"".join(
        (
            _OFFSET_V3.pack(_OFFSET_VALUE_VERSION, offset, leader_epoch),
            _compact_string(metadata),
            _INT64.pack(commit_timestamp_ms),
            tagged,
        )
    )


def encode_group_metadata_key(group: str) -> bytes:
    """Key of a group, version 2.

    Raises:
        ValueError: The name is longer than `STRING_SIZE_MAX`.
    """
    return _INT16.pack(_GROUP_KEY_VERSION) + _string(group)


def encode_group_metadata_value(value: GroupMetadataValue) -> bytes:
    """Value of a group, version 3.

    Raises:
        ValueError: A string is longer than `STRING_SIZE_MAX`.
    """
    pieces = [
        _INT16.pack(_GROUP_VALUE_VERSION),
        _string(value.protocol_type),
        _INT32.pack(value.generation),
        _nullable_string(value.protocol),
        _nullable_string(value.leader),
        _INT64.pack(value.current_state_timestamp_ms),
        _INT32.pack(len(value.members)),
    ]
    for member in value.members:
        pieces += (
            _string(member.member_id),
            _nullable_string(member.group_instance_id),
            _string(member.client_id),
            _string(member.client_host),
            _INT32.pack(member.rebalance_timeout_ms),
            _INT32.pack(member.session_timeout_ms),
            _INT32.pack(len(member.subscription)),
            member.subscription,
            _INT32.pack(len(member.assignment)),
            member.assignment,
        )
    return b"".join(pieces)


def decode_key(data: bytes) -> Key | None:
    """Read a key; None when its version belongs to another kind of record.

    Raises:
        DecodeError: The bytes end too early or hold a bad string.
    """
    reader = _Reader(data)
    version = reader.int16()
    if version in (0, 1):
        return OffsetCommitKey(reader.string(), reader.string(), reader.int32())
    if version == _GROUP_KEY_VERSION:
        return GroupMetadataKey(reader.string())
    return None


def decode_offset_commit_value(data: bytes) -> OffsetCommitValue:
    """Read a committed offset of any version.

    Raises:
        DecodeError: The version is not known, or the bytes do not fit it.
    """
    reader = _Reader(data)
    version = _value_version(reader)
    reader.flexible = version >= 4
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    commit_timestamp_ms = reader.int64()
    expire_timestamp_ms = reader.int64() if version == 1 else NO_TIMESTAMP
    topic_id = NO_TOPIC_ID
    for tag, content in reader.tagged_fields():
        if tag == _TOPIC_ID_TAG:
            if len(content) != 16:
                raise DecodeError(f"topic id of {len(content)} bytes")
            topic_id = UUID(bytes=content)
    return OffsetCommitValue(
        offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id
    )


def decode_group_metadata_value(data: bytes) -> GroupMetadataValue:
    """Read a group of any version.

    Raises:
        DecodeError: The version is not known, or the bytes do not fit it.
    """
    reader = _Reader(data)
    version = _value_version(reader)
    reader.flexible = version >= 4
    protocol_type = reader.string()
    generation = reader.int32()
    protocol = reader.nullable_string()
    leader = reader.nullable_string()
    current_state_timestamp_ms = reader.int64() if version >= 2 else NO_TIMESTAMP
    members = tuple(_read_member(reader, version) for _ in range(reader.array_length()))
    reader.tagged_fields()
    return GroupMetadataValue(
        protocol_type, generation, protocol, leader, current_state_timestamp_ms, members
    )


def _read_member(reader: "_Reader", version: int) -> MemberMetadata:
    member = MemberMetadata(
        member_id=reader.string(),
        group_instance_id=reader.nullable_string() if version >= 3 else None,
        client_id=reader.string(),
        client_host=reader.string(),
        rebalance_timeout_ms=reader.int32() if version >= 1 else -1,
        session_timeout_ms=reader.int32(),
        subscription=reader.octets(),
        assignment=reader.octets(),
    )
    reader.tagged_fields()
    return member


def _value_version(reader: "_Reader") -> int:
    version = reader.int16()
    if not 0 <= version <= _VALUE_VERSION_MAX:
        raise DecodeError(f"value version {version} is not known")
    return version


def _string(text: str) -> bytes:
    octets = text.encode()
    if len(octets) > STRING_SIZE_MAX:
        raise ValueError(f"string of {len(octets)} bytes, at most {STRING_SIZE_MAX} fit")
    return _INT16.pack(len(octets)) + octets


def _nullable_string(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else _string(text)


def _compact_string(text: str) -> bytes:
    octets = text.encode()
    size = len(octets)
    if size < 0x7F:
        return bytes((size + 1,)) + octets
    if size > STRING_SIZE_MAX:
        raise ValueError(f"string of {size} bytes, at most {STRING_SIZE_MAX} fit")
    prefix = bytearray()
    rest = size + 1
    while rest > 0x7F:
        prefix.append((rest & 0x7F) | 0x80)
        rest >>= 7
    prefix.append(rest)
    return bytes(prefix) + octets


class _Reader:
    """Walks over one key or value; every read is checked against what is left."""

    __slots__ = ("_data", "_position", "flexible")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self.flexible = False

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise DecodeError(f"{size} bytes wanted, {len(self._data) - self._position} left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise DecodeError("varint longer than five bytes")

    def nullable_string(self) -> str | None:
        size = self.unsigned_varint() - 1 if self.flexible else self.int16()
        if size == -1:
            return None
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise DecodeError("string is not UTF-8") from error

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise DecodeError("null where a string is needed")
        return text

    def octets(self) -> bytes:
        size = self.unsigned_varint() - 1 if self.flexible else self.int32()
        return self._take(size)

    def array_length(self) -> int:
        length = self.unsigned_varint() - 1 if self.flexible else self.int32()
        # Every member takes more than one byte, so a longer array cannot be true.
        if not 0 <= length <= len(self._data) - self._position:
            raise DecodeError(f"array of {length} elements")
        return length

    def tagged_fields(self) -> list[tuple[int, bytes]]:
        if not self.flexible:
            return []
        count = self.unsigned_varint()
        if count > len(self._data) - self._position:
            raise DecodeError(f"{count} tagged fields")
        return [(self.unsigned_varint(), self._take(self.unsigned_varint())) for _ in range(count)]
