"""Records of `__remote_log_metadata`: which segment of which partition is in remote storage.

A record has no key. Its value is a frame and one message of version 0. Numbers are big-endian;
`uvarint` is an unsigned varint, `string` a uvarint of length + 1 and UTF-8, `bytes` a uvarint of
length + 1 and octets (0: null), an array a uvarint of count + 1 and its elements. `tags` are the
tagged fields that close every struct: a uvarint count, then of each a uvarint tag, a uvarint size
and the content; those that are not named here are passed over.

    size  field
       *  frame version        uvarint, always 1
       *  api key              uvarint: which of the messages below
       *  version              uvarint, always 0

A topic partition, as part of others:

       *  topic                string
      16  topic id
       4  partition
       *  tags

RemoteLogSegmentMetadataRecord (api key 0): a copy has begun.

       *  topic partition
      16  segment id
       *  tags                 of both together
       8  start offset         first, inclusive
       8  end offset           last, inclusive
       4  broker id
       8  max timestamp        ms since 1970
       8  event timestamp      ms since 1970
       *  leader epochs        array of: 4 epoch, 8 first offset, tags
       4  segment size         bytes
       *  custom metadata      bytes or null
       1  state                0 copy started, 1 copied, 2 delete started, 3 deleted
       *  tags                 tag 0, 1 byte: the transaction index is empty (absent: 0)

RemoteLogSegmentMetadataUpdateRecord (api key 1): the segment is in another state.

       *  topic partition
      16  segment id
       *  tags                 of both together
       4  broker id
       8  event timestamp
       *  custom metadata      bytes or null
       1  state
       *  tags

RemotePartitionDeleteMetadataRecord (api key 2): how far the deletion of a partition is.

       *  topic partition
       4  broker id
       8  event timestamp
       1  state                0 marked, 1 started, 2 finished
       *  tags

RemoteLogSegmentMetadataSnapshotRecord (api key 3): a segment where its partition is known from
elsewhere; as api key 0 without topic partition and the tags after it.

Replaying a topic decodes every event there ever was, so the usual shape (no unknown tags, one
leader epoch, short names) is taken apart by a single `Struct`. Ids stay 16 bytes: a `UUID` costs as
much as the rest of an event.

Source: Kafka, storage/src/main/resources/message, AbstractApiMessageSerde.java.
"""

from struct import Struct
from struct import error as StructError
from typing import NamedTuple, TypeAlias

from protocol.errors import DecodeError

FRAME_VERSION = 1
SEGMENT_API_KEY = 0
SEGMENT_UPDATE_API_KEY = 1
PARTITION_DELETE_API_KEY = 2
SEGMENT_SNAPSHOT_API_KEY = 3

NAME_SIZE_MAX = 0x7FFF
"""Longest string Kafka reads, in bytes of UTF-8."""

_TXN_INDEX_EMPTY_TAG = 0
_TXN_INDEX_IS_EMPTY = b"\x01\x00\x01\x01"
"""Tagged fields of a segment without aborted transactions: one field, tag 0, one byte, true."""

_VARINT_BYTES_MAX = 5

# Topic id, partition, tags, segment id, tags.
_IDS = Struct(">16siB16sB")
_TOPIC_PARTITION = Struct(">16siB")
_OFFSETS = Struct(">qqiqq")
_EPOCH = Struct(">iqB")
_SIZE = Struct(">i")
_UPDATE = Struct(">iq")
# From the topic id to the length of the custom metadata when there is one leader epoch.
_SEGMENT_WITH_ONE_EPOCH = Struct(">16siB16sBqqiqqBiqBiB")
# From the segment id on, likewise.
_SNAPSHOT_WITH_ONE_EPOCH = Struct(">16sqqiqqBiqBiB")
# From the topic id to the length of the custom metadata.
_UPDATE_WITH_IDS = Struct(">16siB16sBiqB")

_SEGMENT_FRAME = bytes((FRAME_VERSION, SEGMENT_API_KEY, 0))
_UPDATE_FRAME = bytes((FRAME_VERSION, SEGMENT_UPDATE_API_KEY, 0))
_DELETE_FRAME = bytes((FRAME_VERSION, PARTITION_DELETE_API_KEY, 0))
_SNAPSHOT_FRAME = bytes((FRAME_VERSION, SEGMENT_SNAPSHOT_API_KEY, 0))

LeaderEpochs: TypeAlias = tuple[tuple[int, int], ...]
"""(epoch, first offset of it), as they are in the record."""


class SegmentMetadataRecord(NamedTuple):
    """A copy has begun; ids are 16 bytes, `end_offset` is inclusive."""

    topic: str
    topic_id: bytes
    partition: int
    segment_id: bytes
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: LeaderEpochs
    segment_size_bytes: int
    custom_metadata: bytes | None
    state: int
    txn_index_empty: bool


class SegmentMetadataUpdateRecord(NamedTuple):
    """A segment is in another state."""

    topic: str
    topic_id: bytes
    partition: int
    segment_id: bytes
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    state: int


class PartitionDeleteMetadataRecord(NamedTuple):
    """How far the deletion of a partition is."""

    topic: str
    topic_id: bytes
    partition: int
    broker_id: int
    event_timestamp_ms: int
    state: int


class SegmentMetadataSnapshotRecord(NamedTuple):
    """A segment of a partition that is known from elsewhere."""

    segment_id: bytes
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: LeaderEpochs
    segment_size_bytes: int
    custom_metadata: bytes | None
    state: int
    txn_index_empty: bool


RemoteLogMetadataRecord: TypeAlias = (
    SegmentMetadataRecord
    | SegmentMetadataUpdateRecord
    | PartitionDeleteMetadataRecord
    | SegmentMetadataSnapshotRecord
)


# -- writing ---------------------------------------------------------------------------------------


def encode(record: RemoteLogMetadataRecord) -> bytes:
    """The value of a record.

    Raises:
        ValueError: A number does not fit its field, a name is longer than `NAME_SIZE_MAX`, or an id
            is not 16 bytes.
    """
    try:
        match record:
            case SegmentMetadataRecord():
                return b"".join(
                    (
                        _SEGMENT_FRAME,
                        _string(record.topic),
                        _IDS.pack(
                            _id(record.topic_id), record.partition, 0, _id(record.segment_id), 0
                        ),
                        *_segment_body(record),
                    )
                )
            case SegmentMetadataUpdateRecord():
                return b"".join(
                    (
                        _UPDATE_FRAME,
                        _string(record.topic),
                        _IDS.pack(
                            _id(record.topic_id), record.partition, 0, _id(record.segment_id), 0
                        ),
                        _UPDATE.pack(record.broker_id, record.event_timestamp_ms),
                        _nullable_bytes(record.custom_metadata),
                        record.state.to_bytes(1, "big", signed=True),
                        b"\x00",
                    )
                )
            case PartitionDeleteMetadataRecord():
                return b"".join(
                    (
                        _DELETE_FRAME,
                        _string(record.topic),
                        _TOPIC_PARTITION.pack(_id(record.topic_id), record.partition, 0),
                        _UPDATE.pack(record.broker_id, record.event_timestamp_ms),
                        record.state.to_bytes(1, "big", signed=True),
                        b"\x00",
                    )
                )
            case SegmentMetadataSnapshotRecord():
                return b"".join((_SNAPSHOT_FRAME, _id(record.segment_id), *_segment_body(record)))
    except (StructError, OverflowError) as error:
        raise ValueError(f"a number does not fit its field: {error}") from error


def _segment_body(
    record: SegmentMetadataRecord | SegmentMetadataSnapshotRecord,
) -> tuple[bytes, ...]:
    return (
        _OFFSETS.pack(
            record.start_offset,
            record.end_offset,
            record.broker_id,
            record.max_timestamp_ms,
            record.event_timestamp_ms,
        ),
        _uvarint(len(record.segment_leader_epochs) + 1),
        *(_EPOCH.pack(epoch, offset, 0) for epoch, offset in record.segment_leader_epochs),
        _SIZE.pack(record.segment_size_bytes),
        _nullable_bytes(record.custom_metadata),
        record.state.to_bytes(1, "big", signed=True),
        _TXN_INDEX_IS_EMPTY if record.txn_index_empty else b"\x00",
    )


def _id(octets: bytes) -> bytes:
    # `Struct` would pad or cut it in silence.
    if len(octets) != 16:
        raise ValueError(f"id of {len(octets)} bytes")
    return octets


def _uvarint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    octets = bytearray()
    while value > 0x7F:
        octets.append((value & 0x7F) | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def _string(text: str) -> bytes:
    octets = text.encode()
    if len(octets) > NAME_SIZE_MAX:
        raise ValueError(f"string of {len(octets)} bytes, at most {NAME_SIZE_MAX} fit")
    return _uvarint(len(octets) + 1) + octets


def _nullable_bytes(octets: bytes | None) -> bytes:
    return b"\x00" if octets is None else _uvarint(len(octets) + 1) + octets


# -- reading ---------------------------------------------------------------------------------------


def decode(data: bytes) -> RemoteLogMetadataRecord:
    """Read the value of a record.

    Raises:
        DecodeError: The frame, the api key or the version is not known, the bytes end too early or
            go on after the message, or a name is not UTF-8.
    """
    try:
        frame = data[:3]
        if frame == _UPDATE_FRAME:
            return _decode_update(data)
        if frame == _SEGMENT_FRAME:
            return _decode_segment(data)
        if frame == _SNAPSHOT_FRAME:
            return _decode_snapshot(data)
        if frame == _DELETE_FRAME:
            return _decode_delete(_Reader(data, 3))
        return _decode_with_long_frame(data)
    except (StructError, IndexError) as error:
        raise DecodeError(f"remote log metadata of {len(data)} bytes ends too early") from error
    except UnicodeDecodeError as error:
        raise DecodeError("topic name is not UTF-8") from error


def _decode_with_long_frame(data: bytes) -> RemoteLogMetadataRecord:
    """The frame's numbers are not one byte each, or not ours."""
    reader = _Reader(data, 0)
    frame_version = reader.uvarint()
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"frame version {frame_version} is not known")
    api_key = reader.uvarint()
    version = reader.uvarint()
    if version != 0:
        raise DecodeError(f"version {version} of remote log metadata {api_key} is not known")
    match api_key:
        case 0:
            return _decode_segment_slowly(reader)
        case 1:
            return _decode_update_slowly(reader)
        case 2:
            return _decode_delete(reader)
        case 3:
            return _decode_snapshot_slowly(reader)
        case _:
            raise DecodeError(f"remote log metadata {api_key} is not known")


def _decode_segment(data: bytes) -> SegmentMetadataRecord:
    name_end = data[3] + 3
    # A name of 127 bytes has a second length byte; then the slow way is right, not just slow.
    if data[3] < 0x80 and len(data) >= name_end + 1 + _SEGMENT_WITH_ONE_EPOCH.size:
        (
            topic_id,
            partition,
            tags,
            segment_id,
            more_tags,
            start_offset,
            end_offset,
            broker_id,
            max_timestamp_ms,
            event_timestamp_ms,
            epochs,
            epoch,
            epoch_offset,
            epoch_tags,
            size,
            custom_length,
        ) = _SEGMENT_WITH_ONE_EPOCH.unpack_from(data, name_end)
        if epochs == 2 and not (tags or more_tags or epoch_tags) and name_end > 3:
            custom, state, is_empty = _tail(
                data, name_end + _SEGMENT_WITH_ONE_EPOCH.size, custom_length
            )
            return SegmentMetadataRecord(
                data[4:name_end].decode(),
                topic_id,
                partition,
                segment_id,
                start_offset,
                end_offset,
                broker_id,
                max_timestamp_ms,
                event_timestamp_ms,
                ((epoch, epoch_offset),),
                size,
                custom,
                state,
                is_empty,
            )
    return _decode_segment_slowly(_Reader(data, 3))


def _decode_snapshot(data: bytes) -> SegmentMetadataSnapshotRecord:
    if len(data) > 3 + _SNAPSHOT_WITH_ONE_EPOCH.size:
        (
            segment_id,
            start_offset,
            end_offset,
            broker_id,
            max_timestamp_ms,
            event_timestamp_ms,
            epochs,
            epoch,
            epoch_offset,
            epoch_tags,
            size,
            custom_length,
        ) = _SNAPSHOT_WITH_ONE_EPOCH.unpack_from(data, 3)
        if epochs == 2 and not epoch_tags:
            custom, state, is_empty = _tail(data, 3 + _SNAPSHOT_WITH_ONE_EPOCH.size, custom_length)
            return SegmentMetadataSnapshotRecord(
                segment_id,
                start_offset,
                end_offset,
                broker_id,
                max_timestamp_ms,
                event_timestamp_ms,
                ((epoch, epoch_offset),),
                size,
                custom,
                state,
                is_empty,
            )
    return _decode_snapshot_slowly(_Reader(data, 3))


def _decode_update(data: bytes) -> SegmentMetadataUpdateRecord:
    name_end = data[3] + 3
    if data[3] < 0x80 and len(data) >= name_end + 1 + _UPDATE_WITH_IDS.size:
        (
            topic_id,
            partition,
            tags,
            segment_id,
            more_tags,
            broker_id,
            event_timestamp_ms,
            custom_length,
        ) = _UPDATE_WITH_IDS.unpack_from(data, name_end)
        if not (tags or more_tags) and name_end > 3:
            position = name_end + _UPDATE_WITH_IDS.size
            if custom_length == 0 and len(data) == position + 2 and data[-1] == 0:
                state = data[position]
                return SegmentMetadataUpdateRecord(
                    data[4:name_end].decode(),
                    topic_id,
                    partition,
                    segment_id,
                    broker_id,
                    event_timestamp_ms,
                    None,
                    state if state < 0x80 else state - 0x100,
                )
            custom, signed_state, _ = _tail(data, position, custom_length)
            return SegmentMetadataUpdateRecord(
                data[4:name_end].decode(),
                topic_id,
                partition,
                segment_id,
                broker_id,
                event_timestamp_ms,
                custom,
                signed_state,
            )
    return _decode_update_slowly(_Reader(data, 3))


def _tail(data: bytes, position: int, custom_length: int) -> tuple[bytes | None, int, bool]:
    """Custom metadata from behind the first byte of its length, state, tagged fields.

    `position` is behind that byte; everything up to the end of `data` must be used.
    """
    if custom_length == 0:
        rest = data[position + 1 :]
        if rest == b"\x00":
            state = data[position]
            return None, state if state < 0x80 else state - 0x100, False
        if rest == _TXN_INDEX_IS_EMPTY:
            state = data[position]
            return None, state if state < 0x80 else state - 0x100, True
    return _read_tail(_Reader(data, position - 1))


def _read_tail(reader: "_Reader") -> tuple[bytes | None, int, bool]:
    custom = reader.nullable_bytes()
    state = reader.int8()
    is_empty = False
    for tag, content in reader.tagged_fields():
        if tag == _TXN_INDEX_EMPTY_TAG:
            if len(content) != 1:
                raise DecodeError(f"flag of {len(content)} bytes")
            is_empty = content != b"\x00"
    reader.end()
    return custom, state, is_empty


def _decode_segment_slowly(reader: "_Reader") -> SegmentMetadataRecord:
    topic, topic_id, partition = reader.topic_partition()
    segment_id = reader.take(16)
    reader.tagged_fields()
    return SegmentMetadataRecord(topic, topic_id, partition, segment_id, *_read_body(reader))


def _decode_snapshot_slowly(reader: "_Reader") -> SegmentMetadataSnapshotRecord:
    return SegmentMetadataSnapshotRecord(reader.take(16), *_read_body(reader))


def _read_body(
    reader: "_Reader",
) -> tuple[int, int, int, int, int, LeaderEpochs, int, bytes | None, int, bool]:
    start_offset, end_offset, broker_id, max_timestamp_ms, event_timestamp_ms = _OFFSETS.unpack(
        reader.take(_OFFSETS.size)
    )
    epochs = reader.leader_epochs()
    size = reader.int32()
    return (
        start_offset,
        end_offset,
        broker_id,
        max_timestamp_ms,
        event_timestamp_ms,
        epochs,
        size,
        *_read_tail(reader),
    )


def _decode_update_slowly(reader: "_Reader") -> SegmentMetadataUpdateRecord:
    topic, topic_id, partition = reader.topic_partition()
    segment_id = reader.take(16)
    reader.tagged_fields()
    broker_id, event_timestamp_ms = _UPDATE.unpack(reader.take(_UPDATE.size))
    custom = reader.nullable_bytes()
    state = reader.int8()
    reader.tagged_fields()
    reader.end()
    return SegmentMetadataUpdateRecord(
        topic, topic_id, partition, segment_id, broker_id, event_timestamp_ms, custom, state
    )


def _decode_delete(reader: "_Reader") -> PartitionDeleteMetadataRecord:
    topic, topic_id, partition = reader.topic_partition()
    broker_id, event_timestamp_ms = _UPDATE.unpack(reader.take(_UPDATE.size))
    state = reader.int8()
    reader.tagged_fields()
    reader.end()
    return PartitionDeleteMetadataRecord(
        topic, topic_id, partition, broker_id, event_timestamp_ms, state
    )


class _Reader:
    """Walks over one message; every read is checked against what is left."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise DecodeError(f"{size} bytes wanted, {len(self._data) - self._position} left")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def int8(self) -> int:
        return int.from_bytes(self.take(1), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise DecodeError(f"varint longer than {_VARINT_BYTES_MAX} bytes")

    def string(self) -> str:
        size = self.uvarint() - 1
        if size < 0:
            raise DecodeError("null where a string is needed")
        if size > NAME_SIZE_MAX:
            raise DecodeError(f"string of {size} bytes")
        return self.take(size).decode()

    def nullable_bytes(self) -> bytes | None:
        size = self.uvarint() - 1
        return None if size < 0 else self.take(size)

    def topic_partition(self) -> tuple[str, bytes, int]:
        topic = self.string()
        topic_id = self.take(16)
        partition = self.int32()
        self.tagged_fields()
        return topic, topic_id, partition

    def leader_epochs(self) -> LeaderEpochs:
        count = self.uvarint() - 1
        # Each takes 13 bytes at least, so a longer array cannot be true.
        if not 0 <= count <= (len(self._data) - self._position) // _EPOCH.size:
            raise DecodeError(f"array of {count} leader epochs")
        epochs = []
        for _ in range(count):
            epoch = self.int32()
            epochs.append((epoch, int.from_bytes(self.take(8), "big", signed=True)))
            self.tagged_fields()
        return tuple(epochs)

    def tagged_fields(self) -> list[tuple[int, bytes]]:
        count = self.uvarint()
        if count > len(self._data) - self._position:
            raise DecodeError(f"{count} tagged fields")
        return [(self.uvarint(), self.take(self.uvarint())) for _ in range(count)]

    def end(self) -> None:
        left = len(self._data) - self._position
        if left:
            raise DecodeError(f"{left} bytes after the message")
