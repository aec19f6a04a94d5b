"""Records of `__share_group_state`: what share groups have done with the records of a partition.

A key begins with its own version (int16), which also tells the kind: 0 ShareSnapshot, 1
ShareUpdate. Both kinds of key are alike, not flexible; both kinds of value are flexible, version 0:
a `string` is an int16 length and UTF-8; arrays are compact, and tagged fields close every struct.
Numbers are big-endian.

Key:

    size  field
       2  kind                  0 snapshot, 1 update
       *  group id              string
      16  topic id
       4  partition

Value of a snapshot (everything), and of an update (what has changed since the snapshot):

    size  field                    snapshot   update
       2  version                  0          0
       4  snapshot epoch           yes        of the snapshot it goes on from
       4  state epoch              yes        -
       4  leader epoch             yes        yes
       8  start offset             yes        yes; -1: as before
       8  create time              yes        -          ms since 1970
       8  write time               yes        -          ms since 1970
       *  state batches            yes        yes        array
       8    first offset
       8    last offset            inclusive
       1    delivery state         0 available, 2 acknowledged, 4 archived
       2    delivery count
       *    tagged fields
       *  tagged fields
       4    delivery complete count           tag 0; absent: -1 (KIP-1226)

A snapshot key without a value is a tombstone: the state has been deleted.

Source: Kafka, share-coordinator/src/main/resources/common/message.
"""

from struct import Struct
from struct import error as StructError
from typing import NamedTuple
from uuid import UUID

from protocol.errors import DecodeError
from protocol.internal.record_fields import (
    NO_TAGGED_FIELDS,
    RecordReader,
    string,
    tagged_fields,
    unsigned_varint,
)

SNAPSHOT_KEY_VERSION = 0
UPDATE_KEY_VERSION = 1
VALUE_VERSION = 0
UNKNOWN_COUNT = -1

_KEY_HEAD = Struct(">h")
_KEY_TAIL = Struct(">16si")
_SNAPSHOT = Struct(">hiiiqqq")
_UPDATE = Struct(">hiiq")
_BATCH = Struct(">qqbhx")
_BATCH_FIELDS = Struct(">qqbh")
_INT32 = Struct(">i")
_DELIVERY_COMPLETE_COUNT = 0


class ShareStateKey(NamedTuple):
    """Whose state a record holds."""

    version: int
    group_id: str
    topic_id: UUID
    partition: int


class StateBatch(NamedTuple):
    """Records first_offset to last_offset (inclusive) in one state, delivered equally often.

    Attributes:
        first_offset: Of the batch.
        last_offset: Of the batch, inclusive.
        delivery_state: 0 available, 2 acknowledged, 4 archived.
        delivery_count: How often they have been delivered.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class ShareSnapshotValue(NamedTuple):
    """Everything there is to know; times are ms since 1970 UTC."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_timestamp_ms: int
    write_timestamp_ms: int
    batches: tuple[StateBatch, ...]
    delivery_complete_count: int = UNKNOWN_COUNT


class ShareUpdateValue(NamedTuple):
    """What has changed; a start offset of -1 leaves the one there was."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...]
    delivery_complete_count: int = UNKNOWN_COUNT


def encode_share_state_key(key: ShareStateKey) -> bytes:
    """A key of either kind.

    Raises:
        ValueError: The group id is longer than 32,767 bytes.
    """
    return (
        _KEY_HEAD.pack(key.version)
        + string(key.group_id)
        + _KEY_TAIL.pack(key.topic_id.bytes, key.partition)
    )


def decode_share_state_key(data: bytes) -> ShareStateKey | None:
    """The key; None when the version belongs to a kind of record that is not known.

    Raises:
        DecodeError: The bytes end too early or hold a bad string.
    """
    reader = RecordReader(data)
    version = reader.int16()
    if version not in (SNAPSHOT_KEY_VERSION, UPDATE_KEY_VERSION):
        return None
    return ShareStateKey(version, reader.string(), reader.uuid(), reader.int32())


def encode_share_snapshot(value: ShareSnapshotValue) -> bytes:
    """A snapshot's value, version 0."""
    head = _SNAPSHOT.pack(VALUE_VERSION, *value[:6])
    return head + _encode_tail(value.batches, value.delivery_complete_count)


def encode_share_update(value: ShareUpdateValue) -> bytes:
    """An update's value, version 0."""
    head = _UPDATE.pack(VALUE_VERSION, *value[:3])
    return head + _encode_tail(value.batches, value.delivery_complete_count)


def _encode_tail(batches: tuple[StateBatch, ...], delivery_complete_count: int) -> bytes:
    # A default is not written, as in Kafka.
    tags = (
        NO_TAGGED_FIELDS
        if delivery_complete_count == UNKNOWN_COUNT
        else tagged_fields([(_DELIVERY_COMPLETE_COUNT, _INT32.pack(delivery_complete_count))])
    )
    return (
        unsigned_varint(len(batches) + 1)
        + b"".join([_BATCH.pack(*batch) for batch in batches])
        + tags
    )


def decode_share_snapshot(data: bytes) -> ShareSnapshotValue:
    """Read a snapshot's value.

    Raises:
        DecodeError: The version is not known, or the bytes do not fit it.
    """
    reader = _begin(data)
    head = (
        reader.int32(),
        reader.int32(),
        reader.int32(),
        reader.int64(),
        reader.int64(),
        reader.int64(),
    )
    return ShareSnapshotValue(*head, *_decode_tail(reader))


def decode_share_update(data: bytes) -> ShareUpdateValue:
    """Read an update's value.

    Raises:
        DecodeError: The version is not known, or the bytes do not fit it.
    """
    reader = _begin(data)
    head = (reader.int32(), reader.int32(), reader.int64())
    return ShareUpdateValue(*head, *_decode_tail(reader))


def _begin(data: bytes) -> RecordReader:
    reader = RecordReader(data, flexible=True)
    version = reader.int16()
    if version != VALUE_VERSION:
        raise DecodeError(f"value version {version} is not known")
    return reader


def _decode_tail(reader: RecordReader) -> tuple[tuple[StateBatch, ...], int]:
    batches = []
    for _ in range(reader.array_length()):
        batches.append(StateBatch(*_BATCH_FIELDS.unpack(reader.take(_BATCH_FIELDS.size))))
        reader.tagged_fields()
    delivery_complete_count = UNKNOWN_COUNT
    for tag, content in reader.tagged_fields():
        if tag == _DELIVERY_COMPLETE_COUNT:
            try:
                (delivery_complete_count,) = _INT32.unpack(content)
            except StructError:
                raise DecodeError(f"tagged field {tag} of {len(content)} bytes") from None
    return tuple(batches), delivery_complete_count
