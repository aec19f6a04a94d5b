"""Produce (API key 0), versions 3 to 13: request decode and response encode, by hand.

Request, big-endian; `[n]` an array with 32-bit count, from v9 compact; strings and bytes alike:

    transactional_id  nullable string
    acks              int16   0, 1 or -1
    timeout_ms        int32
    topics [n]        name string                 up to v12
                      topic_id 16 bytes           from v13
                      partitions [n]              index int32, records nullable bytes
    from v9 a tagged section closes every partition, every topic and the body

Response:

    topics [n]        name string | topic_id      as above
                      partitions [n]              index int32, error_code int16, base_offset int64,
                                                  log_append_time_ms int64,
                                                  log_start_offset int64             from v5
                                                  record_errors [n] (index int32,
                                                     message nullable string)        from v8
                                                  error_message nullable string      from v8
                                                  tag 0 current_leader               from v10
    throttle_time_ms  int32
    tag 0             node_endpoints [n]          from v10

Versions:
- 3   transactional id, record batch magic 2      KIP-98
- 5   log start offset                            KIP-107
- 7   zstd                                        KIP-110
- 8   record errors                               KIP-467
- 9   flexible                                    KIP-482
- 10  current leader and its address              KIP-951
- 11, 12  transaction verification, implicit add  KIP-890
- 13  topic ids                                   KIP-516

Records are never copied: they are slices of the input, writable if the input is.

Source: Kafka, ProduceRequest.json, ProduceResponse.json.
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final, TypeAlias

from protocol.errors import DecodeError
from protocol.hot.wire import (
    ELEMENTS_MAX,
    INT16,
    INT32,
    TAGGED_SIZE_MAX,
    NodeEndpoint,
    compact_string,
    node_endpoints_section,
    read_compact_string,
    read_string,
    read_uvarint,
    skip_tags,
    string,
    uvarint,
)
from protocol.quick import encode_produced, read_plain_produce, read_produce

MIN_VERSION: Final = 3
MAX_VERSION: Final = 13
FIRST_FLEXIBLE_VERSION: Final = 9
FIRST_TOPIC_ID_VERSION: Final = 13

_read_plain_produce: Final = read_plain_produce
_read_produce: Final = read_produce
_encode_produced: Final = encode_produced
_ACKS_TIMEOUT: Final = Struct(">hi")
_ACKS_TIMEOUT_COUNT: Final = Struct(">hii")
_TWO_INT32: Final = Struct(">ii")
_INDEX_LENGTH: Final = Struct(">iBBB")

# One topic, one partition, no error text: everything after the topic in one stroke.
_SINGLE_V3: Final = Struct(">iihqqi")
_SINGLE_V5: Final = Struct(">iihqqqi")
_SINGLE_V8: Final = Struct(">iihqqqihi")
_SINGLE_V9: Final = Struct(">bihqqqIib")

_PARTITION_V3: Final = Struct(">ihqq")
_PARTITION_V5: Final = Struct(">ihqqq")
_PARTITION_V9: Final = Struct(">ihqqqbbb")
_LEADER: Final = Struct(">bbbiib")


class ProduceTopic:
    """One topic of a Produce request.

    Attributes:
        name: Below v13; None from v13 on.
        topic_id: 16 raw bytes from v13 on; b"" below.
        partitions: (index, records); records are a slice of the request, None if null.
    """

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(
        self,
        name: str | None,
        topic_id: bytes,
        partitions: list[tuple[int, memoryview | None]],
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class ProduceRequest:
    """A decoded Produce request. Holds slices of the frame: the frame must outlive it."""

    __slots__ = ("acks", "timeout_ms", "topics", "transactional_id")

    def __init__(
        self, transactional_id: str | None, acks: int, timeout_ms: int, topics: list[ProduceTopic]
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics


PlainProduce: TypeAlias = tuple[int, int, str | bytes, int, memoryview]
"""Acks, timeout in ms, topic name or id, partition, records: of a request that is plain."""


class ProducePartitionResponse:
    """What became of one partition's records.

    Attributes:
        index: Partition.
        error_code: 0 or Kafka's code.
        base_offset: Offset of the first record; -1 on errors.
        log_append_time_ms: Broker time with LogAppendTime, else -1.
        log_start_offset: First offset of the log; -1 on errors.
        record_errors: (index in the batch, message or None) of records at fault (KIP-467).
        error_message: What is wrong with them together.
        current_leader: (leader id, leader epoch) with NOT_LEADER_OR_FOLLOWER (KIP-951).
    """

    __slots__ = (
        "base_offset",
        "current_leader",
        "error_code",
        "error_message",
        "index",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
    )

    def __init__(
        self,
        index: int,
        error_code: int,
        base_offset: int,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: Sequence[tuple[int, str | None]] = (),
        error_message: str | None = None,
        current_leader: tuple[int, int] | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.current_leader = current_leader


def decode_plain(data: memoryview, position: int, version: int) -> PlainProduce | None:
    """Decode a body of one partition, whose records are one whole batch outside of a transaction.

    Returns:
        What it says; None: it is not plain, or is not known to be: `decode_request` decodes it.
    """
    if version < FIRST_FLEXIBLE_VERSION:
        return None
    return _read_plain_produce(data, position, version >= FIRST_TOPIC_ID_VERSION)


def decode_request(data: memoryview, position: int, version: int) -> ProduceRequest:
    """Decode the request body that begins at `position`.

    Bytes after the body are ignored, unknown tagged fields skipped.

    Raises:
        DecodeError: Anything else is wrong. There is no answer to such a request: the connection
            is closed.
    """
    try:
        if version >= FIRST_FLEXIBLE_VERSION:
            by_id = version >= FIRST_TOPIC_ID_VERSION
            one = _read_produce(data, position, by_id)
            if one is None:
                return _decode_flexible(data, position, by_id)
            transactional_id, acks, timeout_ms, topic, index, records = one
            partitions: list[tuple[int, memoryview | None]] = [(index, records)]
            if isinstance(topic, bytes):
                topics = [ProduceTopic(None, topic, partitions)]
            else:
                topics = [ProduceTopic(topic, b"", partitions)]
            return ProduceRequest(transactional_id, acks, timeout_ms, topics)
        return _decode_fixed(data, position)
    except (IndexError, struct_error):
        raise DecodeError("produce request ends too early") from None


def _decode_flexible(data: memoryview, position: int, by_id: bool) -> ProduceRequest:
    size = len(data)
    transactional_id: str | None = None
    if data[position]:
        transactional_id, position = read_compact_string(data, position)
    else:
        position += 1
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(data, position)
    topic_count = data[position + 6]
    if topic_count > 127:
        topic_count, position = read_uvarint(data, position + 6)
    else:
        position += 7
    topic_count -= 1
    if topic_count < 0:
        raise DecodeError("produce request has a null topic array")
    elements = topic_count
    if elements > ELEMENTS_MAX or topic_count * 3 > size - position:
        raise DecodeError(f"produce request claims {topic_count} topics")
    tagged = 0
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        name: str | None = None
        topic_id = b""
        if by_id:
            end = position + 16
            if end > size:
                raise DecodeError("topic id is cut off")
            topic_id = bytes(data[position:end])
        else:
            length = data[position]
            if length > 127:
                length, position = read_uvarint(data, position)
            else:
                position += 1
            if length == 0:
                raise DecodeError("topic name is null")
            end = position + length - 1
            if end > size:
                raise DecodeError("topic name is cut off")
            name = str(data[position:end], "utf-8", "replace")
        partition_count = data[end]
        if partition_count > 127:
            partition_count, position = read_uvarint(data, end)
        else:
            position = end + 1
        partition_count -= 1
        if partition_count < 0:
            raise DecodeError("produce request has a null partition array")
        elements += partition_count
        if elements > ELEMENTS_MAX or partition_count * 6 > size - position:
            raise DecodeError(f"produce request claims {partition_count} partitions")
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(partition_count):
            index, length, second, third = _INDEX_LENGTH.unpack_from(data, position)
            # Batches of 128 bytes to 2 MiB have a length of two or three bytes.
            if length > 127:
                if second < 128:
                    length = length & 0x7F | second << 7
                    position += 6
                elif third < 128:
                    length = length & 0x7F | (second & 0x7F) << 7 | third << 14
                    position += 7
                else:
                    length, position = read_uvarint(data, position + 4)
            else:
                position += 5
            if length:
                end = position + length - 1
                if end > size:
                    raise DecodeError(f"records of {length - 1} bytes, {size - position} are left")
                partitions.append((index, data[position:end]))
                position = end
            else:
                partitions.append((index, None))
            if data[position]:
                end = skip_tags(data, position)
                tagged += end - position
                if tagged > TAGGED_SIZE_MAX:
                    raise DecodeError(f"tagged fields above {TAGGED_SIZE_MAX} bytes")
                position = end
            else:
                position += 1
        topics.append(ProduceTopic(name, topic_id, partitions))
        if data[position]:
            end = skip_tags(data, position)
            tagged += end - position
            if tagged > TAGGED_SIZE_MAX:
                raise DecodeError(f"tagged fields above {TAGGED_SIZE_MAX} bytes")
            position = end
        else:
            position += 1
    if data[position]:
        skip_tags(data, position)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _decode_fixed(data: memoryview, position: int) -> ProduceRequest:
    size = len(data)
    transactional_id: str | None = None
    if data[position] == 0xFF:
        if data[position + 1] != 0xFF:
            raise DecodeError("transactional id has a negative length")
        position += 2
    else:
        transactional_id, position = read_string(data, position)
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(data, position)
    position += 10
    elements = topic_count
    if not 0 <= elements <= ELEMENTS_MAX or topic_count * 6 > size - position:
        raise DecodeError(f"produce request claims {topic_count} topics")
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        length: int = INT16.unpack_from(data, position)[0]
        end = position + 2 + length
        if length < 0 or end > size:
            raise DecodeError(f"topic name of {length} bytes, {size - position - 2} are left")
        name = str(data[position + 2 : end], "utf-8", "replace")
        partition_count: int = INT32.unpack_from(data, end)[0]
        position = end + 4
        elements += partition_count
        if partition_count < 0 or elements > ELEMENTS_MAX or partition_count * 8 > size - position:
            raise DecodeError(f"produce request claims {partition_count} partitions")
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(partition_count):
            index, length = _TWO_INT32.unpack_from(data, position)
            position += 8
            if length >= 0:
                end = position + length
                if end > size:
                    raise DecodeError(f"records of {length} bytes, {size - position} are left")
                partitions.append((index, data[position:end]))
                position = end
            elif length == -1:
                partitions.append((index, None))
            else:
                raise DecodeError(f"records have length {length}")
        topics.append(ProduceTopic(name, b"", partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def encode_response(
    topics: Sequence[tuple[str | bytes, Sequence[ProducePartitionResponse]]],
    version: int,
    *,
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """Encode the response body (without response header).

    Args:
        topics: (topic, partitions): the name as str below v13, the 16-byte topic id from v13.
            What a version does not carry is left out.
        version: 3 .. 13.
        throttle_time_ms: For how long a quota held the request back.
        node_endpoints: (node id, host, port, rack) of the leaders named in `current_leader`.
    """
    if len(topics) == 1 and not node_endpoints:
        topic, partitions = topics[0]
        if len(partitions) == 1:
            it = partitions[0]
            if it.current_leader is None and it.error_message is None and not it.record_errors:
                return _encode_single(topic, it, version, throttle_time_ms)
    if version >= FIRST_FLEXIBLE_VERSION:
        return _encode_flexible(topics, version, throttle_time_ms, node_endpoints)
    return _encode_fixed(topics, version, throttle_time_ms)


def encode_appended(
    topic: str | bytes,
    index: int,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
    version: int,
) -> bytes:
    """Encode the body of a response to one partition whose records were appended.

    Arguments as for `ProducePartitionResponse` and `encode_response`; version 9 or later.
    """
    body = _encode_produced(topic, index, 0, base_offset, log_append_time_ms, log_start_offset, 0)
    if body is not None:
        return body
    it = ProducePartitionResponse(index, 0, base_offset, log_append_time_ms, log_start_offset)
    return _encode_single(topic, it, version, 0)


def _encode_single(
    topic: str | bytes, it: ProducePartitionResponse, version: int, throttle_time_ms: int
) -> bytes:
    if version >= FIRST_FLEXIBLE_VERSION:
        body = _encode_produced(
            topic,
            it.index,
            it.error_code,
            it.base_offset,
            it.log_append_time_ms,
            it.log_start_offset,
            throttle_time_ms,
        )
        if body is not None:
            return body
        # 0x01_00_00_00: no record errors, null message, no tags of partition and topic.
        tail = _SINGLE_V9.pack(
            2,
            it.index,
            it.error_code,
            it.base_offset,
            it.log_append_time_ms,
            it.log_start_offset,
            0x01_00_00_00,
            throttle_time_ms,
            0,
        )
        if isinstance(topic, bytes):
            return b"\x02" + topic + tail
        raw = topic.encode()
        length = len(raw)
        if length < 127:
            return b"\x02%c%b%b" % (length + 1, raw, tail)
        return b"\x02" + uvarint(length + 1) + raw + tail
    head = b"\0\0\0\x01" + _topic_name(topic)
    if version >= 8:
        return head + _SINGLE_V8.pack(
            1,
            it.index,
            it.error_code,
            it.base_offset,
            it.log_append_time_ms,
            it.log_start_offset,
            0,
            -1,
            throttle_time_ms,
        )
    if version >= 5:
        return head + _SINGLE_V5.pack(
            1,
            it.index,
            it.error_code,
            it.base_offset,
            it.log_append_time_ms,
            it.log_start_offset,
            throttle_time_ms,
        )
    return head + _SINGLE_V3.pack(
        1, it.index, it.error_code, it.base_offset, it.log_append_time_ms, throttle_time_ms
    )


def _topic_name(topic: str | bytes) -> bytes:
    raw = topic if isinstance(topic, bytes) else topic.encode()
    return INT16.pack(len(raw)) + raw


def _encode_flexible(
    topics: Sequence[tuple[str | bytes, Sequence[ProducePartitionResponse]]],
    version: int,
    throttle_time_ms: int,
    node_endpoints: Sequence[NodeEndpoint],
) -> bytes:
    parts: list[bytes] = [uvarint(len(topics) + 1)]
    pack = _PARTITION_V5.pack
    pack_plain = _PARTITION_V9.pack
    for topic, partitions in topics:
        parts.append(topic if isinstance(topic, bytes) else compact_string(topic))
        parts.append(uvarint(len(partitions) + 1))
        for it in partitions:
            if it.current_leader is None and it.error_message is None and not it.record_errors:
                parts.append(
                    pack_plain(
                        it.index,
                        it.error_code,
                        it.base_offset,
                        it.log_append_time_ms,
                        it.log_start_offset,
                        1,
                        0,
                        0,
                    )
                )
                continue
            parts.append(
                pack(
                    it.index,
                    it.error_code,
                    it.base_offset,
                    it.log_append_time_ms,
                    it.log_start_offset,
                )
            )
            parts.append(uvarint(len(it.record_errors) + 1))
            for index, message in it.record_errors:
                parts += (INT32.pack(index), compact_string(message), b"\0")
            parts.append(compact_string(it.error_message))
            if it.current_leader is None or version < 10:
                parts.append(b"\0")
            else:
                parts.append(_LEADER.pack(1, 0, 9, *it.current_leader, 0))
        parts.append(b"\0")
    parts.append(INT32.pack(throttle_time_ms))
    parts.append(node_endpoints_section(node_endpoints) if version >= 10 else b"\0")
    return b"".join(parts)


def _encode_fixed(
    topics: Sequence[tuple[str | bytes, Sequence[ProducePartitionResponse]]],
    version: int,
    throttle_time_ms: int,
) -> bytes:
    parts: list[bytes] = [INT32.pack(len(topics))]
    for topic, partitions in topics:
        parts.append(_topic_name(topic))
        parts.append(INT32.pack(len(partitions)))
        for it in partitions:
            if version >= 5:
                parts.append(
                    _PARTITION_V5.pack(
                        it.index,
                        it.error_code,
                        it.base_offset,
                        it.log_append_time_ms,
                        it.log_start_offset,
                    )
                )
            else:
                parts.append(
                    _PARTITION_V3.pack(
                        it.index, it.error_code, it.base_offset, it.log_append_time_ms
                    )
                )
            if version >= 8:
                parts.append(INT32.pack(len(it.record_errors)))
                for index, message in it.record_errors:
                    parts += (INT32.pack(index), string(message))
                parts.append(string(it.error_message))
    parts.append(INT32.pack(throttle_time_ms))
    return b"".join(parts)
