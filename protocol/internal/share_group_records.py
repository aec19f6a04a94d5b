"""Records of `__consumer_offsets` that belong to share groups (KIP-932).

A key begins with its version (int16): the kind of record. Then follow plain strings, an int16
length and UTF-8:

    version  kind                        key              says
         10  member metadata             group, member    who a member is, what it subscribed to
         11  group metadata              group            the group's epoch
         12  target assignment metadata  group            of which group epoch the target is
         13  target assignment member    group, member    what a member shall own
         14  current member assignment   group, member    what a member owns now
         15  state partition metadata    group            whose share state is kept, or about to be

A value begins with its own version (int16, always 0) and is flexible: `string` is a uvarint of
length + 1 (0: null) and UTF-8, an array a uvarint of count + 1 and its elements, and `tags`, the
tagged fields, close every struct. Big-endian.

    size  field
          member metadata
       *  rack id                  string or null
       *  client id                string
       *  client host              string
       *  subscribed topics        array of string
       *  tags

          group metadata
       4  epoch
       8  metadata hash            of the subscribed topics; 0: none of them exists
       *  tags

          target assignment metadata
       4  assignment epoch
       *  tags

          target assignment member
       *  topic partitions         array of: 16 topic id, array of 4 partition, tags
       *  tags

          current member assignment
       4  member epoch
       4  previous member epoch
       1  state                    see `MemberState`; always stable
       *  assigned partitions      as topic partitions above
       *  tags

          state partition metadata
       *  initializing             array of: 16 topic id, topic name, array of 4 partition, tags
       *  initialized              the same
       *  deleting                 array of: 16 topic id, topic name, tags
       *  tags

A record without a value is a tombstone.

Source: Kafka, group-coordinator/src/main/resources/common/message/ShareGroup*.json.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import ClassVar, NamedTuple
from uuid import UUID

from protocol.internal.record_fields import (
    NO_TAGGED_FIELDS,
    Assignment,
    RecordReader,
    assignment_field,
    compact_int32s,
    compact_nullable_string,
    compact_string,
    compact_strings,
    flexible_value,
    string,
    unsigned_varint,
)
from protocol.internal.target_assignment import (
    decode_target_assignment_member_value,
    decode_target_assignment_metadata_value,
)

_VERSION = b"\x00\x00"
_INT16 = Struct(">h")
_EPOCH_AND_HASH = Struct(">hiq")
_CURRENT = Struct(">hiib")


@dataclass(frozen=True, slots=True)
class ShareGroupMemberMetadataKey:
    """Who is which member."""

    VERSION: ClassVar = 10
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ShareGroupMetadataKey:
    """Epoch of which group."""

    VERSION: ClassVar = 11
    group: str


@dataclass(frozen=True, slots=True)
class ShareGroupTargetAssignmentMetadataKey:
    """Epoch of which group's target assignment."""

    VERSION: ClassVar = 12
    group: str


@dataclass(frozen=True, slots=True)
class ShareGroupTargetAssignmentMemberKey:
    """Target of which member."""

    VERSION: ClassVar = 13
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ShareGroupCurrentMemberAssignmentKey:
    """Partitions of which member."""

    VERSION: ClassVar = 14
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ShareGroupStatePartitionMetadataKey:
    """Share-partitions of which group."""

    VERSION: ClassVar = 15
    group: str


_GroupKey = (
    ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupStatePartitionMetadataKey
)
_MemberKey = (
    ShareGroupMemberMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
)
ShareGroupKey = _GroupKey | _MemberKey

_GROUP_KEYS: dict[int, type[_GroupKey]] = {
    11: ShareGroupMetadataKey,
    12: ShareGroupTargetAssignmentMetadataKey,
    15: ShareGroupStatePartitionMetadataKey,
}
_MEMBER_KEYS: dict[int, type[_MemberKey]] = {
    10: ShareGroupMemberMetadataKey,
    13: ShareGroupTargetAssignmentMemberKey,
    14: ShareGroupCurrentMemberAssignmentKey,
}


class ShareGroupMemberMetadataValue(NamedTuple):
    """Who a member is and what it wants."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]


class ShareGroupMetadataValue(NamedTuple):
    """How often the group changed, and the hash of the topics it was computed with (0: none)."""

    epoch: int
    metadata_hash: int


class ShareGroupCurrentMemberAssignmentValue(NamedTuple):
    """What a member owns; other members may own it, too."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: Assignment


class TopicPartitionsInfo(NamedTuple):
    """Partitions of one topic."""

    topic_id: UUID
    name: str
    partitions: tuple[int, ...]


class TopicInfo(NamedTuple):
    """One topic."""

    topic_id: UUID
    name: str


class ShareGroupStatePartitionMetadataValue(NamedTuple):
    """Whose share state is about to be there, is there, is about to be gone."""

    initializing: tuple[TopicPartitionsInfo, ...]
    initialized: tuple[TopicPartitionsInfo, ...]
    deleting: tuple[TopicInfo, ...]


decode_share_group_target_assignment_metadata_value = decode_target_assignment_metadata_value
decode_share_group_target_assignment_member_value = decode_target_assignment_member_value


def encode_share_group_key(key: ShareGroupKey) -> bytes:
    """Key of any record of a share group.

    Raises:
        ValueError: A string is too long.
    """
    version = _INT16.pack(key.VERSION)
    if isinstance(key, _GroupKey):
        return version + string(key.group)
    return version + string(key.group) + string(key.member_id)


def decode_share_group_key(version: int, reader: RecordReader) -> ShareGroupKey | None:
    """What follows the version of a key; None when that belongs to another kind of record.

    Raises:
        DecodeError: The bytes end too early or hold a bad string.
    """
    if (group_key := _GROUP_KEYS.get(version)) is not None:
        return group_key(reader.string())
    if (member_key := _MEMBER_KEYS.get(version)) is not None:
        return member_key(reader.string(), reader.string())
    return None


def encode_share_group_member_metadata_value(value: ShareGroupMemberMetadataValue) -> bytes:
    """Value of a record of key version 10.

    Raises:
        ValueError: A string is too long.
    """
    return b"".join(
        (
            _VERSION,
            compact_nullable_string(value.rack_id),
            compact_string(value.client_id),
            compact_string(value.client_host),
            compact_strings(value.subscribed_topic_names),
            NO_TAGGED_FIELDS,
        )
    )


def decode_share_group_member_metadata_value(data: bytes) -> ShareGroupMemberMetadataValue:
    """Read a value of key version 10.

    Raises:
        DecodeError: The bytes are not such a value.
    """
    reader = flexible_value(data)
    value = ShareGroupMemberMetadataValue(
        rack_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        subscribed_topic_names=reader.strings(),
    )
    reader.tagged_fields()
    return value


def encode_share_group_metadata_value(value: ShareGroupMetadataValue) -> bytes:
    """Value of a record of key version 11."""
    return _EPOCH_AND_HASH.pack(0, value.epoch, value.metadata_hash) + NO_TAGGED_FIELDS


def decode_share_group_metadata_value(data: bytes) -> ShareGroupMetadataValue:
    """Read a value of key version 11.

    Raises:
        DecodeError: The bytes are not such a value.
    """
    reader = flexible_value(data)
    value = ShareGroupMetadataValue(reader.int32(), reader.int64())
    reader.tagged_fields()
    return value


def encode_share_group_current_member_assignment_value(
    value: ShareGroupCurrentMemberAssignmentValue,
) -> bytes:
    """Value of a record of key version 14; topics in the order of the mapping."""
    return b"".join(
        (
            _CURRENT.pack(0, value.member_epoch, value.previous_member_epoch, value.state),
            assignment_field(value.assigned_partitions),
            NO_TAGGED_FIELDS,
        )
    )


def decode_share_group_current_member_assignment_value(
    data: bytes,
) -> ShareGroupCurrentMemberAssignmentValue:
    """Read a value of key version 14.

    Raises:
        DecodeError: The bytes are not such a value, or name a topic twice.
    """
    reader = flexible_value(data)
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=reader.int32(),
        previous_member_epoch=reader.int32(),
        state=reader.int8(),
        assigned_partitions=reader.assignment(),
    )
    reader.tagged_fields()
    return value


def encode_share_group_state_partition_metadata_value(
    value: ShareGroupStatePartitionMetadataValue,
) -> bytes:
    """Value of a record of key version 15.

    Raises:
        ValueError: A string is too long.
    """
    pieces = [_VERSION, _infos(value.initializing), _infos(value.initialized)]
    pieces.append(unsigned_varint(len(value.deleting) + 1))
    for topic in value.deleting:
        pieces += (topic.topic_id.bytes, compact_string(topic.name), NO_TAGGED_FIELDS)
    pieces.append(NO_TAGGED_FIELDS)
    return b"".join(pieces)


def decode_share_group_state_partition_metadata_value(
    data: bytes,
) -> ShareGroupStatePartitionMetadataValue:
    """Read a value of key version 15.

    Raises:
        DecodeError: The bytes are not such a value.
    """
    reader = flexible_value(data)
    initializing, initialized = _read_infos(reader), _read_infos(reader)
    deleting = []
    for _ in range(reader.array_length()):
        deleting.append(TopicInfo(reader.uuid(), reader.string()))
        reader.tagged_fields()
    reader.tagged_fields()
    return ShareGroupStatePartitionMetadataValue(initializing, initialized, tuple(deleting))


def _infos(topics: Sequence[TopicPartitionsInfo]) -> bytes:
    pieces = [unsigned_varint(len(topics) + 1)]
    for topic in topics:
        pieces += (
            topic.topic_id.bytes,
            compact_string(topic.name),
            compact_int32s(topic.partitions),
            NO_TAGGED_FIELDS,
        )
    return b"".join(pieces)


def _read_infos(reader: RecordReader) -> tuple[TopicPartitionsInfo, ...]:
    topics = []
    for _ in range(reader.array_length()):
        topics.append(TopicPartitionsInfo(reader.uuid(), reader.string(), reader.int32s()))
        reader.tagged_fields()
    return tuple(topics)
