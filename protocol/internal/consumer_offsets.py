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
the newer group types: see `consumer_group_records` and `share_group_records`; others are passed
over.

Source: Kafka, group-coordinator/src/main/resources/common/message, GroupCoordinatorRecordHelpers.
"""

from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from protocol.errors import DecodeError
from protocol.internal.consumer_group_records import ConsumerGroupKey, decode_consumer_group_key
from protocol.internal.record_fields import (
    STRING_SIZE_MAX,
    RecordReader,
    compact_string,
    nullable_string,
    string,
)
from protocol.internal.share_group_records import ShareGroupKey, decode_share_group_key

__all__ = [
    "NO_TIMESTAMP",
    "NO_TOPIC_ID",
    "STRING_SIZE_MAX",
    "GroupMetadataKey",
    "GroupMetadataValue",
    "Key",
    "MemberMetadata",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "decode_group_metadata_value",
    "decode_key",
    "decode_offset_commit_value",
    "encode_group_metadata_key",
    "encode_group_metadata_value",
    "encode_offset_commit",
    "encode_offset_commit_key",
    "encode_offset_commit_value",
    "offset_commit_key_head",
]

NO_TOPIC_ID = UUID(int=0)
NO_TIMESTAMP = -1
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_OFFSET_V3: Final = Struct(">hqi")
_OFFSET_V1: Final = Struct(">hq")
_pack_plain_value: Final = Struct(">hqiBqB").pack
"""Packs a whole value without metadata and topic id."""

_pack_value_of_topic: Final = Struct(">hqiBqBBB16s").pack
"""Packs a whole value without metadata and with a topic id, its only tagged field."""

_OFFSET_KEY_VERSION: Final = 1
_OFFSET_KEY_HEAD: Final = _INT16.pack(_OFFSET_KEY_VERSION)
_GROUP_KEY_VERSION = 2
_OFFSET_VALUE_VERSION: Final = 4
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


Key = OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey | ShareGroupKey


def encode_offset_commit_key(group: str, topic: str, partition: int) -> bytes:
    """Key of a committed offset, version 1.

    Raises:
        ValueError: A name is longer than `STRING_SIZE_MAX`.
    """
    return offset_commit_key_head(group, topic) + _INT32.pack(partition)


def offset_commit_key_head(group: str, topic: str) -> bytes:
    """What keys of one group and topic have in common: all but the partition's int32.

    Raises:
        ValueError: A name is longer than `STRING_SIZE_MAX`.
    """
    return _OFFSET_KEY_HEAD + string(group) + string(topic)


def encode_offset_commit_value(value: OffsetCommitValue) -> bytes:
    """Value of a committed offset: version 4, or 1 when it carries an expiry time.

    Version 1 has no room for leader epoch and topic id: Kafka drops them too.

    Raises:
        ValueError: The metadata is longer than `STRING_SIZE_MAX`.
    """
    return encode_offset_commit(*value)


def encode_offset_commit(
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int,
    topic_id: UUID,
) -> bytes:
    """The fields of an `OffsetCommitValue`; see `encode_offset_commit_value`."""
    if expire_timestamp_ms != NO_TIMESTAMP:
        return b"".join(
            (
                _OFFSET_V1.pack(_OFFSET_VALUE_VERSION_WITH_EXPIRY, offset),
                string(metadata),
                _INT64.pack(commit_timestamp_ms),
                _INT64.pack(expire_timestamp_ms),
            )
        )
    if not metadata:
        # What nearly every consumer commits.
        if topic_id.int == 0:
            return _pack_plain_value(
                _OFFSET_VALUE_VERSION, offset, leader_epoch, 1, commit_timestamp_ms, 0
            )
        return _pack_value_of_topic(
            _OFFSET_VALUE_VERSION,
            offset,
            leader_epoch,
            1,
            commit_timestamp_ms,
            1,
            _TOPIC_ID_TAG,
            16,
            topic_id.bytes,
        )
    tagged = b"\x00" if topic_id.int == 0 else b"\x01\x00\x10" + topic_id.bytes
    return b"".join(
        (
            _OFFSET_V3.pack(_OFFSET_VALUE_VERSION, offset, leader_epoch),
            compact_string(metadata),
            _INT64.pack(commit_timestamp_ms),
            tagged,
        )
    )


def encode_group_metadata_key(group: str) -> bytes:
    """Key of a group, version 2.

    Raises:
        ValueError: The name is longer than `STRING_SIZE_MAX`.
    """
    return _INT16.pack(_GROUP_KEY_VERSION) + string(group)


def encode_group_metadata_value(value: GroupMetadataValue) -> bytes:
    """Value of a group, version 3.

    Raises:
        ValueError: A string is longer than `STRING_SIZE_MAX`.
    """
    pieces = [
        _INT16.pack(_GROUP_VALUE_VERSION),
        string(value.protocol_type),
        _INT32.pack(value.generation),
        nullable_string(value.protocol),
        nullable_string(value.leader),
        _INT64.pack(value.current_state_timestamp_ms),
        _INT32.pack(len(value.members)),
    ]
    for member in value.members:
        pieces += (
            string(member.member_id),
            nullable_string(member.group_instance_id),
            string(member.client_id),
            string(member.client_host),
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
    reader = RecordReader(data)
    version = reader.int16()
    if version in (0, 1):
        return OffsetCommitKey(reader.string(), reader.string(), reader.int32())
    if version == _GROUP_KEY_VERSION:
        return GroupMetadataKey(reader.string())
    consumer_group_key = decode_consumer_group_key(version, reader)
    if consumer_group_key is not None:
        return consumer_group_key
    return decode_share_group_key(version, reader)


def decode_offset_commit_value(data: bytes) -> OffsetCommitValue:
    """Read a committed offset of any version.

    Raises:
        DecodeError: The version is not known, or the bytes do not fit it.
    """
    reader = RecordReader(data)
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
    reader = RecordReader(data)
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


def _read_member(reader: RecordReader, version: int) -> MemberMetadata:
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


def _value_version(reader: RecordReader) -> int:
    version = reader.int16()
    if not 0 <= version <= _VALUE_VERSION_MAX:
        raise DecodeError(f"value version {version} is not known")
    return version
