"""Reads Fetch requests, versions 4 to 18; `fetch` says what they are like.

The common request of a consumer is read in one pass without a call for each field.
"""

from struct import Struct
from struct import error as struct_error
from typing import Final

from protocol.errors import DecodeError
from protocol.hot.fetch_request import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_TOPIC_ID_VERSION,
    FetchFields,
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from protocol.hot.wire import (
    ELEMENTS_MAX,
    INT16,
    INT32,
    TAGGED_SIZE_MAX,
    read_compact_string,
    read_string,
    read_uvarint,
    skip_tags,
)
from protocol.quick import read_fetch

_read_fetch: Final = read_fetch

_HEAD_V4: Final = Struct(">iiiibi")
_HEAD_V7: Final = Struct(">iiiibiii")
# Each of these with the byte behind it, mostly the whole of a count: one look less.
_head_v15: Final = Struct(">iiibiiB").unpack_from
_topic_v13: Final = Struct(">16sB").unpack_from
_partition_v12: Final = Struct(">iiqiqiB").unpack_from

_FORGOTTEN_RACK: Final = Struct(">ih")

_PARTITION_V4: Final = Struct(">iqi")
_PARTITION_V5: Final = Struct(">iqqi")
_PARTITION_V9: Final = Struct(">iiqqi")

_INT64: Final = Struct(">q")
_REPLICA_STATE: Final = Struct(">iq")
_REPLICA_TAG: Final = 0x01010D
"""One tagged field: tag 1, 13 bytes."""
_replica_tag: Final = Struct(">BHiqb").unpack_from
_REPLICA_TAG_SIZE: Final = 16


def decode_request(data: memoryview, position: int, version: int) -> FetchRequest:
    """Decode the request body that begins at `position`.

    Bytes after the body are ignored, unknown tagged fields skipped.

    Raises:
        DecodeError: Anything else is wrong; the connection is closed.
    """
    try:
        if version >= FIRST_FLEXIBLE_VERSION:
            one = _read_fetch(data, position, version)
            return _decode_flexible(data, position, version) if one is None else _request_of(one)
        return _decode_fixed(data, position, version)
    except (IndexError, struct_error):
        raise DecodeError("fetch request ends too early") from None


def _request_of(one: FetchFields) -> FetchRequest:
    """The request of no more than one partition that was read in one call."""
    (
        replica_id,
        replica_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        rack_id,
        topic,
        partition,
        leader_epoch,
        offset,
        last_epoch,
        log_start,
        limit,
    ) = one
    topics: list[FetchTopic] = []
    if topic is not None:
        wanted = [FetchPartition(partition, leader_epoch, offset, last_epoch, log_start, limit)]
        if isinstance(topic, bytes):
            topics.append(FetchTopic(None, topic, wanted))
        else:
            topics.append(FetchTopic(topic, b"", wanted))
    return FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        [],
        rack_id,
        None,
        replica_epoch,
    )


def _decode_flexible(data: memoryview, position: int, version: int) -> FetchRequest:
    size = len(data)
    by_id = version >= FIRST_TOPIC_ID_VERSION
    replica_id = -1
    if version < 15:
        replica_id = INT32.unpack_from(data, position)[0]
        position += 4
    (
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topic_count,
    ) = _head_v15(data, position)
    if topic_count > 127:
        topic_count, position = read_uvarint(data, position + 21)
    else:
        position += 22
    topic_count -= 1
    if topic_count < 0:
        raise DecodeError("fetch request has a null topic array")
    elements = topic_count
    if elements > ELEMENTS_MAX or topic_count * 3 > size - position:
        raise DecodeError(f"fetch request claims {topic_count} topics")
    tagged = 0
    topics: list[FetchTopic] = []
    for _ in range(topic_count):
        name: str | None = None
        topic_id = b""
        if by_id:
            end = position + 16
            if end > size:
                raise DecodeError("topic id is cut off")
            topic_id, partition_count = _topic_v13(data, position)
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
            raise DecodeError("fetch request has a null partition array")
        elements += partition_count
        if elements > ELEMENTS_MAX or partition_count * 33 > size - position:
            raise DecodeError(f"fetch request claims {partition_count} partitions")
        partitions: list[FetchPartition] = []
        for _ in range(partition_count):
            index, epoch, offset, last_epoch, log_start, limit, has_tags = _partition_v12(
                data, position
            )
            partition = FetchPartition(index, epoch, offset, last_epoch, log_start, limit)
            position += 32
            if has_tags:
                end = _decode_partition_tags(data, position, version, partition)
                tagged += end - position
                if tagged > TAGGED_SIZE_MAX:
                    raise DecodeError(f"tagged fields above {TAGGED_SIZE_MAX} bytes")
                position = end
            else:
                position += 1
            partitions.append(partition)
        topics.append(FetchTopic(name, topic_id, partitions))
        if data[position]:
            end = skip_tags(data, position)
            tagged += end - position
            if tagged > TAGGED_SIZE_MAX:
                raise DecodeError(f"tagged fields above {TAGGED_SIZE_MAX} bytes")
            position = end
        else:
            position += 1
    forgotten: list[tuple[str | bytes, list[int]]] = []
    if data[position] == 1:
        position += 1
    else:
        position = _decode_forgotten_flexible(data, position, by_id, elements, forgotten)
    rack_id = ""
    if data[position] == 1:
        position += 1
    else:
        rack, position = read_compact_string(data, position)
        if rack is None:
            raise DecodeError("rack id is null")
        rack_id = rack
    request = FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
    )
    if data[position]:
        if version >= 15 and size - position >= _REPLICA_TAG_SIZE:
            # What followers send; a tag within it is for the long way.
            count, tag, replica_id, replica_epoch, has_tags = _replica_tag(data, position)
            if count << 16 | tag == _REPLICA_TAG and not has_tags:
                request.replica_id, request.replica_epoch = replica_id, replica_epoch
                return request
        _decode_tags(data, position, version, request)
    return request


def _decode_partition_tags(
    data: memoryview, position: int, version: int, partition: FetchPartition
) -> int:
    """Take directory id and high watermark from a partition's tagged section; position after."""
    start = position
    count, position = read_uvarint(data, position)
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        end = position + size
        if end > len(data):
            raise DecodeError("tagged field runs past the end")
        if end - start > TAGGED_SIZE_MAX:
            raise DecodeError(f"tagged fields above {TAGGED_SIZE_MAX} bytes")
        if tag == 0 and version >= 17:
            if size != 16:
                raise DecodeError(f"directory id has {size} bytes")
            partition.directory_id = bytes(data[position:end])
        elif tag == 1 and version >= 18:
            if size != 8:
                raise DecodeError(f"high watermark has {size} bytes")
            partition.high_watermark = _INT64.unpack_from(data, position)[0]
        position = end
    return position


def _decode_tags(data: memoryview, position: int, version: int, request: FetchRequest) -> None:
    """Take cluster id and replica state from the body's tagged section."""
    start = position
    count, position = read_uvarint(data, position)
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        end = position + size
        if end > len(data):
            raise DecodeError("tagged field runs past the end")
        if end - start > TAGGED_SIZE_MAX:
            raise DecodeError(f"tagged fields above {TAGGED_SIZE_MAX} bytes")
        if tag == 0:
            request.cluster_id, _after = read_compact_string(data[:end], position)
        elif tag == 1 and version >= 15:
            request.replica_id, request.replica_epoch = _REPLICA_STATE.unpack_from(
                data[:end], position
            )
            skip_tags(data[:end], position + 12)
        position = end


def _decode_forgotten_flexible(
    data: memoryview,
    position: int,
    by_id: bool,
    elements: int,
    forgotten: list[tuple[str | bytes, list[int]]],
) -> int:
    """Fill `forgotten`; the position after it. `elements` were seen before."""
    size = len(data)
    topic_count, position = read_uvarint(data, position)
    topic_count -= 1
    if topic_count < 0:
        raise DecodeError("fetch request has a null array of forgotten topics")
    elements += topic_count
    if elements > ELEMENTS_MAX or topic_count * 3 > size - position:
        raise DecodeError(f"fetch request forgets {topic_count} topics")
    tagged = 0
    for _ in range(topic_count):
        topic: str | bytes | None
        if by_id:
            if position + 16 > size:
                raise DecodeError("topic id is cut off")
            topic = bytes(data[position : position + 16])
            position += 16
        else:
            topic, position = read_compact_string(data, position)
            if topic is None:
                raise DecodeError("topic name is null")
        count, position = read_uvarint(data, position)
        count -= 1
        if count < 0:
            raise DecodeError("fetch request has a null partition array")
        elements += count
        if elements > ELEMENTS_MAX or count * 4 > size - position:
            raise DecodeError(f"fetch request forgets {count} partitions")
        forgotten.append((topic, _decode_int32s(data, position, count)))
        position += count * 4
        end = skip_tags(data, position)
        tagged += end - position
        if tagged > TAGGED_SIZE_MAX:
            raise DecodeError(f"tagged fields above {TAGGED_SIZE_MAX} bytes")
        position = end
    return position


def _decode_int32s(data: memoryview, position: int, count: int) -> list[int]:
    return [item[0] for item in INT32.iter_unpack(data[position : position + count * 4])]


def _decode_fixed(data: memoryview, position: int, version: int) -> FetchRequest:
    size = len(data)
    session_id = 0
    session_epoch = -1
    if version >= 7:
        (
            replica_id,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topic_count,
        ) = _HEAD_V7.unpack_from(data, position)
        position += 29
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, topic_count = (
            _HEAD_V4.unpack_from(data, position)
        )
        position += 21
    layout = _PARTITION_V9 if version >= 9 else _PARTITION_V5 if version >= 5 else _PARTITION_V4
    partition_size = layout.size
    elements = topic_count
    if not 0 <= elements <= ELEMENTS_MAX or topic_count * 6 > size - position:
        raise DecodeError(f"fetch request claims {topic_count} topics")
    topics: list[FetchTopic] = []
    for _ in range(topic_count):
        length: int = INT16.unpack_from(data, position)[0]
        end = position + 2 + length
        if length < 0 or end > size:
            raise DecodeError(f"topic name of {length} bytes, {size - position - 2} are left")
        name = str(data[position + 2 : end], "utf-8", "replace")
        count: int = INT32.unpack_from(data, end)[0]
        position = end + 4
        elements += count
        if count < 0 or elements > ELEMENTS_MAX or count * partition_size > size - position:
            raise DecodeError(f"fetch request claims {count} partitions")
        partitions: list[FetchPartition] = []
        for _ in range(count):
            if version >= 9:
                index, epoch, offset, log_start, limit = layout.unpack_from(data, position)
                partitions.append(FetchPartition(index, epoch, offset, -1, log_start, limit))
            elif version >= 5:
                index, offset, log_start, limit = layout.unpack_from(data, position)
                partitions.append(FetchPartition(index, -1, offset, -1, log_start, limit))
            else:
                index, offset, limit = layout.unpack_from(data, position)
                partitions.append(FetchPartition(index, -1, offset, -1, -1, limit))
            position += partition_size
        topics.append(FetchTopic(name, b"", partitions))
    forgotten: list[tuple[str | bytes, list[int]]] = []
    rack_id = ""
    if version >= 11 and _FORGOTTEN_RACK.unpack_from(data, position) == (0, 0):
        pass  # nothing forgotten, no rack: what nearly all send
    elif version >= 7:
        topic_count = INT32.unpack_from(data, position)[0]
        position += 4
        elements += topic_count
        if topic_count < 0 or elements > ELEMENTS_MAX or topic_count * 6 > size - position:
            raise DecodeError(f"fetch request forgets {topic_count} topics")
        for _ in range(topic_count):
            topic, position = read_string(data, position)
            if topic is None:
                raise DecodeError("topic name is null")
            count = INT32.unpack_from(data, position)[0]
            position += 4
            elements += count
            if count < 0 or elements > ELEMENTS_MAX or count * 4 > size - position:
                raise DecodeError(f"fetch request forgets {count} partitions")
            forgotten.append((topic, _decode_int32s(data, position, count)))
            position += count * 4
        if version >= 11:
            rack, position = read_string(data, position)
            if rack is None:
                raise DecodeError("rack id is null")
            rack_id = rack
    return FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
    )
