"""OffsetCommit (API key 8), versions 2 to 10: request decode and response encode, by hand.

Request, big-endian; `[n]` an array with 32-bit count, from v8 compact; strings alike:

    group_id                 string
    generation_id            int32                     from v9 or member epoch
    member_id                string
    group_instance_id        nullable string           from v7
    retention_time_ms        int64                     v2 to v4
    topics [n]               name string               up to v9
                             topic_id 16 bytes         from v10
                             partitions [n]            index int32, offset int64,
                                                       leader_epoch int32      from v6
                                                       metadata nullable string
    from v8 a tagged section closes every partition, every topic and the body

Response:

    throttle_time_ms         int32                     from v3
    topics [n]               name string | topic_id    as above
                             partitions [n]            index int32, error_code int16

The answer lists the topics and partitions of its request, so it is encoded from the request: the
error code of a partition is set there. Strings are bounded by the frame; lists, with the tagged
fields, by `REQUEST_ELEMENTS_MAX`, as in the generated codec, whose errors these are.

Source: Kafka, OffsetCommitRequest.json, OffsetCommitResponse.json.
"""

from struct import Struct
from struct import error as struct_error
from typing import Final
from uuid import UUID

from protocol.hot.wire import uvarint
from protocol.message import (
    REQUEST_ELEMENTS_MAX,
    broken,
    count_error,
    end_error,
    limit_error,
    null_error,
)
from protocol.primitives import NIL_UUID, decode_unsigned_varint, skip_fields, uuid_from_bytes

MIN_VERSION: Final = 2
MAX_VERSION: Final = 10
FIRST_FLEXIBLE_VERSION: Final = 8
FIRST_TOPIC_ID_VERSION: Final = 10

_NAME: Final = "OffsetCommitRequest"

_int16: Final = Struct(">h").unpack_from
_int32: Final = Struct(">i").unpack_from
_int32_length: Final = Struct(">ih").unpack_from
_int64: Final = Struct(">q").unpack_from
_int32_byte: Final = Struct(">iB").unpack_from
_partition_v2: Final = Struct(">iqh").unpack_from
_partition_v6: Final = Struct(">iqih").unpack_from
_partition_v8: Final = Struct(">iqiBB").unpack_from

_pack_int16: Final = Struct(">h").pack
_pack_int32: Final = Struct(">i").pack
_pack_result: Final = Struct(">ih").pack
_pack_result_v8: Final = Struct(">ihx").pack
# One partition in the last topic of all: its result and the three ends.
_pack_single_v8: Final = Struct(">Bihxxx").pack


class CommittedPartition:
    """One partition of a request, and what becomes of it.

    Attributes:
        index: Partition.
        offset: To be committed.
        leader_epoch: Of the last record consumed; -1: not known, or below v6.
        metadata: The client's; None as null.
        error_code: Of the answer; 0 until it is set.
    """

    __slots__ = ("error_code", "index", "leader_epoch", "metadata", "offset")

    def __init__(self, index: int, offset: int, leader_epoch: int, metadata: str | None) -> None:
        self.index = index
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.error_code = 0


class CommittedTopic:
    """One topic of a request.

    Attributes:
        name: Below v10; from v10 on empty, until the handler sets it.
        topic_id: From v10 on; else zero.
        partitions: In the order of the request.
    """

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: UUID, partitions: list[CommittedPartition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class OffsetCommitRequest:
    """A decoded request.

    Attributes:
        group_id: The group.
        generation_or_epoch: Generation, or member epoch, of the member; -1: no member.
        member_id: Empty: no member.
        group_instance_id: Of a static member, from v7 on.
        retention_time_ms: Up to v4; -1: the broker's.
        topics: In the order of the request.
    """

    __slots__ = (
        "generation_or_epoch",
        "group_id",
        "group_instance_id",
        "member_id",
        "retention_time_ms",
        "topics",
    )

    def __init__(
        self,
        group_id: str,
        generation_or_epoch: int,
        member_id: str,
        group_instance_id: str | None,
        retention_time_ms: int,
        topics: list[CommittedTopic],
    ) -> None:
        self.group_id = group_id
        self.generation_or_epoch = generation_or_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = topics


def decode_request(data: bytes, version: int) -> OffsetCommitRequest:
    """Decode a body.

    Bytes after it are ignored, unknown tagged fields skipped.

    Raises:
        DecodeError: Anything else is wrong. There is no answer to such a request: the connection
            is closed.
    """
    try:
        if version >= FIRST_FLEXIBLE_VERSION:
            return _decode_flexible(data, version >= FIRST_TOPIC_ID_VERSION)
        return _decode_fixed(data, version)
    except (IndexError, struct_error):
        raise broken(_NAME, version) from None


def _decode_flexible(data: bytes, by_id: bool) -> OffsetCommitRequest:
    size = len(data)
    length = data[0]
    position = 1
    if length > 127:
        length, position = decode_unsigned_varint(data, 0)
    if length == 0:
        raise null_error("group_id")
    end = position + length - 1
    group_id = data[position:end].decode("utf-8", "replace")
    generation, length = _int32_byte(data, end)
    position = end + 5
    if length > 127:
        length, position = decode_unsigned_varint(data, position - 1)
    if length == 0:
        raise null_error("member_id")
    end = position + length - 1
    member_id = data[position:end].decode("utf-8", "replace")
    group_instance_id: str | None = None
    length = data[end]
    position = end + 1
    if length > 127:
        length, position = decode_unsigned_varint(data, position - 1)
    if length:
        end = position + length - 1
        group_instance_id = data[position:end].decode("utf-8", "replace")
        position = end
    count = data[position]
    position += 1
    if count > 127:
        count, position = decode_unsigned_varint(data, position - 1)
    if count == 0:
        raise null_error("topics")
    count -= 1
    if count * (18 if by_id else 3) > size - position:
        raise count_error("topics", count)
    left = REQUEST_ELEMENTS_MAX - count
    if left < 0:
        raise limit_error("topics")
    topics: list[CommittedTopic] = []
    for _ in range(count):
        name = ""
        topic_id = NIL_UUID
        if by_id:
            end = position + 16
            if end > size:
                raise end_error(_NAME)
            topic_id = uuid_from_bytes(data[position:end])
        else:
            length = data[position]
            position += 1
            if length > 127:
                length, position = decode_unsigned_varint(data, position - 1)
            if length == 0:
                raise null_error("name")
            end = position + length - 1
            name = data[position:end].decode("utf-8", "replace")
        each = data[end]
        position = end + 1
        if each > 127:
            each, position = decode_unsigned_varint(data, position - 1)
        if each == 0:
            raise null_error("partitions")
        each -= 1
        if each * 18 > size - position:
            raise count_error("partitions", each)
        left -= each
        if left < 0:
            raise limit_error("partitions")
        partitions: list[CommittedPartition] = []
        for _ in range(each):
            index, offset, leader_epoch, length, tags = _partition_v8(data, position)
            metadata: str | None = None
            if length <= 1:
                # Without metadata, which is what most commit: the next byte counts tagged fields.
                if length:
                    metadata = ""
                position += 18
            else:
                position += 17
                if length > 127:
                    length, position = decode_unsigned_varint(data, position - 1)
                if length:
                    end = position + length - 1
                    metadata = data[position:end].decode("utf-8", "replace")
                    position = end
                tags = data[position]
                position += 1
            if tags:
                if tags > 127:
                    tags, position = decode_unsigned_varint(data, position - 1)
                left -= tags
                if left < 0:
                    raise limit_error("OffsetCommitRequestPartition")
                position = skip_fields(data, position, tags)
            partitions.append(CommittedPartition(index, offset, leader_epoch, metadata))
        tags = data[position]
        position += 1
        if tags:
            if tags > 127:
                tags, position = decode_unsigned_varint(data, position - 1)
            left -= tags
            if left < 0:
                raise limit_error("OffsetCommitRequestTopic")
            position = skip_fields(data, position, tags)
        topics.append(CommittedTopic(name, topic_id, partitions))
    tags = data[position]
    position += 1
    if tags:
        if tags > 127:
            tags, position = decode_unsigned_varint(data, position - 1)
        if left < tags:
            raise limit_error(_NAME)
        position = skip_fields(data, position, tags)
    if position > size:
        raise end_error(_NAME)
    return OffsetCommitRequest(group_id, generation, member_id, group_instance_id, -1, topics)


def _decode_fixed(data: bytes, version: int) -> OffsetCommitRequest:
    size = len(data)
    has_epoch = version >= 6
    length: int = _int16(data, 0)[0]
    if length < 0:
        raise null_error("group_id")
    end = 2 + length
    group_id = data[2:end].decode("utf-8", "replace")
    generation, length = _int32_length(data, end)
    position = end + 6
    if length < 0:
        raise null_error("member_id")
    end = position + length
    member_id = data[position:end].decode("utf-8", "replace")
    position = end
    group_instance_id: str | None = None
    retention_time_ms = -1
    if version >= 7:
        length = _int16(data, position)[0]
        position += 2
        if length >= 0:
            end = position + length
            group_instance_id = data[position:end].decode("utf-8", "replace")
            position = end
    elif version <= 4:
        retention_time_ms = _int64(data, position)[0]
        position += 8
    count: int = _int32(data, position)[0]
    position += 4
    if count < 0:
        raise null_error("topics")
    if count * 6 > size - position:
        raise count_error("topics", count)
    left = REQUEST_ELEMENTS_MAX - count
    if left < 0:
        raise limit_error("topics")
    partition_size = 18 if has_epoch else 14
    topics: list[CommittedTopic] = []
    for _ in range(count):
        length = _int16(data, position)[0]
        position += 2
        if length < 0:
            raise null_error("name")
        end = position + length
        name = data[position:end].decode("utf-8", "replace")
        each: int = _int32(data, end)[0]
        position = end + 4
        if each < 0:
            raise null_error("partitions")
        if each * partition_size > size - position:
            raise count_error("partitions", each)
        left -= each
        if left < 0:
            raise limit_error("partitions")
        partitions: list[CommittedPartition] = []
        for _ in range(each):
            leader_epoch = -1
            if has_epoch:
                index, offset, leader_epoch, length = _partition_v6(data, position)
            else:
                index, offset, length = _partition_v2(data, position)
            position += partition_size
            metadata: str | None = None
            if length >= 0:
                end = position + length
                metadata = data[position:end].decode("utf-8", "replace")
                position = end
            partitions.append(CommittedPartition(index, offset, leader_epoch, metadata))
        topics.append(CommittedTopic(name, NIL_UUID, partitions))
    if position > size:
        raise end_error(_NAME)
    return OffsetCommitRequest(
        group_id, generation, member_id, group_instance_id, retention_time_ms, topics
    )


def encode_response(topics: list[CommittedTopic], version: int) -> bytes:
    """Encode the answer to the request with these topics; throttle time 0."""
    if version < FIRST_FLEXIBLE_VERSION:
        return _encode_fixed(topics, version)
    by_id = version >= FIRST_TOPIC_ID_VERSION
    count = len(topics)
    if count == 1:
        topic = topics[0]
        if len(topic.partitions) == 1:
            partition = topic.partitions[0]
            tail = _pack_single_v8(2, partition.index, partition.error_code)
            if by_id:
                return b"\0\0\0\0\x02" + topic.topic_id.bytes + tail
            raw = topic.name.encode()
            return b"\0\0\0\0\x02" + uvarint(len(raw) + 1) + raw + tail
    pieces = [b"\0\0\0\0", uvarint(count + 1)]
    for topic in topics:
        if by_id:
            pieces.append(topic.topic_id.bytes)
        else:
            raw = topic.name.encode()
            pieces.append(uvarint(len(raw) + 1))
            pieces.append(raw)
        pieces.append(uvarint(len(topic.partitions) + 1))
        pieces += [_pack_result_v8(one.index, one.error_code) for one in topic.partitions]
        pieces.append(b"\0")
    pieces.append(b"\0")
    return b"".join(pieces)


def _encode_fixed(topics: list[CommittedTopic], version: int) -> bytes:
    pieces = [b"\0\0\0\0" if version >= 3 else b"", _pack_int32(len(topics))]
    for topic in topics:
        raw = topic.name.encode()
        pieces.append(_pack_int16(len(raw)))
        pieces.append(raw)
        pieces.append(_pack_int32(len(topic.partitions)))
        pieces += [_pack_result(one.index, one.error_code) for one in topic.partitions]
    return b"".join(pieces)
