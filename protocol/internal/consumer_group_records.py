"""Records of `__consumer_offsets` that belong to consumer groups (KIP-848).

A key begins with its version (int16): the kind of record. Then follow plain strings, an int16
length and UTF-8:

    version  kind                        key              says
          3  group metadata              group            the group's epoch
          4  partition metadata          group            what topics looked like; no longer written
          5  member metadata             group, member    who a member is, what it subscribed to
          6  target assignment metadata  group            of which group epoch the target is
          7  target assignment member    group, member    what a member shall own in the end
          8  current member assignment   group, member    what a member owns now
         16  regular expression          group, pattern   the topics that a pattern stands for

A value begins with its own version (int16, always 0) and is flexible: `string` is a uvarint of
length + 1 (0: null) and UTF-8, an array a uvarint of count + 1 and its elements, and `tags`, the
tagged fields, close every struct. Big-endian.

    size  field
          group metadata
       4  epoch
       *  tags                     tag 0, 8 bytes: hash of the subscribed topics; absent: 0

          partition metadata
       *  topics                   array of: 16 topic id, name, 4 partitions, racks (array of
                                   4 partition, array of rack, tags), tags

          member metadata
       *  instance id              string or null
       *  rack id                  string or null
       *  client id                string
       *  client host              string
       *  subscribed topics        array of string
       *  subscribed pattern       string or null
       4  rebalance timeout        ms; -1: not given
       *  server assignor          string or null
       *  tags                     tag 0: a member that speaks the classic protocol: 1 byte, 1 (-1:
                                   null), 4 session timeout, array of (name, metadata, tags), tags

          target assignment metadata
       4  assignment epoch
       *  tags

          target assignment member
       *  topic partitions         array of: 16 topic id, array of 4 partition, tags
       *  tags

          current member assignment
       4  member epoch
       4  previous member epoch
       1  state                    see `MemberState`
       *  assigned partitions      as topic partitions above
       *  pending revocation       as topic partitions above
       *  tags

          regular expression
       *  topics                   array of string
       8  version                  of the metadata that was matched
       8  timestamp                ms since 1970
       *  tags

A record without a value is a tombstone.

Source: Kafka, group-coordinator/src/main/resources/common/message/ConsumerGroup*.json.
"""

from dataclasses import dataclass
from struct import Struct
from typing import ClassVar, NamedTuple

from protocol.errors import DecodeError
from protocol.internal.record_fields import (
    NO_TAGGED_FIELDS,
    Assignment,
    RecordReader,
    assignment_field,
    compact_nullable_string,
    compact_octets,
    compact_string,
    compact_strings,
    flexible_value,
    string,
    tagged_fields,
    unsigned_varint,
)
from protocol.internal.target_assignment import (
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    decode_target_assignment_member_value,
    decode_target_assignment_metadata_value,
)

_VERSION = b"\x00\x00"
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_EPOCH = Struct(">hi")
_HASH = Struct(">q")
_CURRENT = Struct(">hiib")
_VERSION_AND_TIMESTAMP = Struct(">qq")
_METADATA_HASH_TAG = 0
_CLASSIC_MEMBER_TAG = 0


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataKey:
    """Epoch of which group."""

    VERSION: ClassVar = 3
    group: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataKey:
    """Topics of which group, as brokers before Kafka 4.1 kept them."""

    VERSION: ClassVar = 4
    group: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadataKey:
    """Who is which member."""

    VERSION: ClassVar = 5
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMetadataKey:
    """Epoch of which group's target assignment."""

    VERSION: ClassVar = 6
    group: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMemberKey:
    """Target of which member."""

    VERSION: ClassVar = 7
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentKey:
    """Partitions of which member."""

    VERSION: ClassVar = 8
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionKey:
    """Topics of which pattern."""

    VERSION: ClassVar = 16
    group: str
    pattern: str


_GroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
)
_MemberKey = (
    ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
)
ConsumerGroupKey = _GroupKey | _MemberKey | ConsumerGroupRegularExpressionKey

_GROUP_KEYS: dict[int, type[_GroupKey]] = {
    3: ConsumerGroupMetadataKey,
    4: ConsumerGroupPartitionMetadataKey,
    6: ConsumerGroupTargetAssignmentMetadataKey,
}
_MEMBER_KEYS: dict[int, type[_MemberKey]] = {
    5: ConsumerGroupMemberMetadataKey,
    7: ConsumerGroupTargetAssignmentMemberKey,
    8: ConsumerGroupCurrentMemberAssignmentKey,
}


class ConsumerGroupMetadataValue(NamedTuple):
    """How often the group changed, and the hash of the topics it was computed with (0: none)."""

    epoch: int
    metadata_hash: int = 0


class ClassicProtocolMetadata(NamedTuple):
    """One assignor that a classic member offers."""

    name: str
    metadata: bytes


class ClassicMemberMetadata(NamedTuple):
    """What is known more of a member that speaks the classic protocol."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocolMetadata, ...]


class ConsumerGroupMemberMetadataValue(NamedTuple):
    """Identity and subscription of a member; `rebalance_timeout_ms` -1: not given."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = None


class ConsumerGroupCurrentMemberAssignmentValue(NamedTuple):
    """What a member owns, and what it must give back first."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: Assignment
    partitions_pending_revocation: Assignment


class ConsumerGroupRegularExpressionValue(NamedTuple):
    """Topics that match a pattern as of one version of the metadata."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


ConsumerGroupTargetAssignmentMetadataValue = TargetAssignmentMetadataValue
ConsumerGroupTargetAssignmentMemberValue = TargetAssignmentMemberValue
decode_consumer_group_target_assignment_metadata_value = decode_target_assignment_metadata_value
decode_consumer_group_target_assignment_member_value = decode_target_assignment_member_value


def encode_consumer_group_key(key: ConsumerGroupKey) -> bytes:
    """Key of any record of a consumer group.

    Raises:
        ValueError: A string is too long.
    """
    version = _INT16.pack(key.VERSION)
    if isinstance(key, _GroupKey):
        return version + string(key.group)
    if isinstance(key, ConsumerGroupRegularExpressionKey):
        return version + string(key.group) + string(key.pattern)
    return version + string(key.group) + string(key.member_id)


def decode_consumer_group_key(version: int, reader: RecordReader) -> ConsumerGroupKey | None:
    """What follows the version of a key; None when that belongs to another kind of record.

    Raises:
        DecodeError: The bytes end too early or hold a bad string.
    """
    if (group_key := _GROUP_KEYS.get(version)) is not None:
        return group_key(reader.string())
    if (member_key := _MEMBER_KEYS.get(version)) is not None:
        return member_key(reader.string(), reader.string())
    if version == ConsumerGroupRegularExpressionKey.VERSION:
        return ConsumerGroupRegularExpressionKey(reader.string(), reader.string())
    return None


def encode_consumer_group_metadata_value(value: ConsumerGroupMetadataValue) -> bytes:
    """Value of a record of key version 3."""
    hash_field = (
        NO_TAGGED_FIELDS
        if value.metadata_hash == 0
        else tagged_fields([(_METADATA_HASH_TAG, _HASH.pack(value.metadata_hash))])
    )
    return _EPOCH.pack(0, value.epoch) + hash_field


def decode_consumer_group_metadata_value(data: bytes) -> ConsumerGroupMetadataValue:
    """Read a value of key version 3.

    Raises:
        DecodeError: The bytes are not such a value.
    """
    reader = flexible_value(data)
    epoch = reader.int32()
    metadata_hash = 0
    for tag, content in reader.tagged_fields():
        if tag == _METADATA_HASH_TAG:
            if len(content) != _HASH.size:
                raise DecodeError(f"metadata hash of {len(content)} bytes")
            (metadata_hash,) = _HASH.unpack(content)
    return ConsumerGroupMetadataValue(epoch, metadata_hash)


def encode_consumer_group_member_metadata_value(value: ConsumerGroupMemberMetadataValue) -> bytes:
    """Value of a record of key version 5.

    Raises:
        ValueError: A string is too long.
    """
    classic = value.classic_member_metadata
    return b"".join(
        (
            _VERSION,
            compact_nullable_string(value.instance_id),
            compact_nullable_string(value.rack_id),
            compact_string(value.client_id),
            compact_string(value.client_host),
            compact_strings(value.subscribed_topic_names),
            compact_nullable_string(value.subscribed_topic_regex),
            _INT32.pack(value.rebalance_timeout_ms),
            compact_nullable_string(value.server_assignor),
            NO_TAGGED_FIELDS
            if classic is None
            else tagged_fields([(_CLASSIC_MEMBER_TAG, _classic_member(classic))]),
        )
    )


def _classic_member(classic: ClassicMemberMetadata) -> bytes:
    pieces = [
        b"\x01",
        _INT32.pack(classic.session_timeout_ms),
        unsigned_varint(len(classic.supported_protocols) + 1),
    ]
    for protocol in classic.supported_protocols:
        pieces += (
            compact_string(protocol.name),
            compact_octets(protocol.metadata),
            NO_TAGGED_FIELDS,
        )
    pieces.append(NO_TAGGED_FIELDS)
    return b"".join(pieces)


def decode_consumer_group_member_metadata_value(data: bytes) -> ConsumerGroupMemberMetadataValue:
    """Read a value of key version 5.

    Raises:
        DecodeError: The bytes are not such a value.
    """
    reader = flexible_value(data)
    value = ConsumerGroupMemberMetadataValue(
        instance_id=reader.nullable_string(),
        rack_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        subscribed_topic_names=reader.strings(),
        subscribed_topic_regex=reader.nullable_string(),
        rebalance_timeout_ms=reader.int32(),
        server_assignor=reader.nullable_string(),
    )
    for tag, content in reader.tagged_fields():
        if tag == _CLASSIC_MEMBER_TAG:
            value = value._replace(classic_member_metadata=_read_classic_member(content))
    return value


def _read_classic_member(content: bytes) -> ClassicMemberMetadata | None:
    reader = RecordReader(content, flexible=True)
    if reader.int8() < 0:
        return None
    session_timeout_ms = reader.int32()
    protocols = []
    for _ in range(reader.array_length()):
        protocols.append(ClassicProtocolMetadata(reader.string(), reader.octets()))
        reader.tagged_fields()
    reader.tagged_fields()
    return ClassicMemberMetadata(session_timeout_ms, tuple(protocols))


def encode_consumer_group_current_member_assignment_value(
    value: ConsumerGroupCurrentMemberAssignmentValue,
) -> bytes:
    """Value of a record of key version 8; topics in the order of the mappings."""
    return b"".join(
        (
            _CURRENT.pack(0, value.member_epoch, value.previous_member_epoch, value.state),
            assignment_field(value.assigned_partitions),
            assignment_field(value.partitions_pending_revocation),
            NO_TAGGED_FIELDS,
        )
    )


def decode_consumer_group_current_member_assignment_value(
    data: bytes,
) -> ConsumerGroupCurrentMemberAssignmentValue:
    """Read a value of key version 8.

    Raises:
        DecodeError: The bytes are not such a value, or name a topic twice.
    """
    reader = flexible_value(data)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=reader.int32(),
        previous_member_epoch=reader.int32(),
        state=reader.int8(),
        assigned_partitions=reader.assignment(),
        partitions_pending_revocation=reader.assignment(),
    )
    reader.tagged_fields()
    return value


def encode_consumer_group_regular_expression_value(
    value: ConsumerGroupRegularExpressionValue,
) -> bytes:
    """Value of a record of key version 16.

    Raises:
        ValueError: A string is too long.
    """
    return b"".join(
        (
            _VERSION,
            compact_strings(value.topics),
            _VERSION_AND_TIMESTAMP.pack(value.version, value.timestamp_ms),
            NO_TAGGED_FIELDS,
        )
    )


def decode_consumer_group_regular_expression_value(
    data: bytes,
) -> ConsumerGroupRegularExpressionValue:
    """Read a value of key version 16.

    Raises:
        DecodeError: The bytes are not such a value.
    """
    reader = flexible_value(data)
    value = ConsumerGroupRegularExpressionValue(reader.strings(), reader.int64(), reader.int64())
    reader.tagged_fields()
    return value
