"""Fetch (API key 1), versions 4 to 18: request decode and response encode, by hand.

Request, big-endian; `[n]` an array with 32-bit count, from v12 compact; strings alike:

    replica_id       int32                          up to v14; -1: a consumer
    max_wait_ms      int32
    min_bytes        int32
    max_bytes        int32
    isolation_level  int8                           0 read_uncommitted, 1 read_committed
    session_id       int32                          from v7
    session_epoch    int32                          from v7
    topics [n]       name string | topic_id 16      the id from v13
                     partitions [n]:
                         partition             int32
                         current_leader_epoch  int32     from v9
                         fetch_offset          int64
                         last_fetched_epoch    int32     from v12
                         log_start_offset      int64     from v5
                         max_bytes             int32
                         tag 0 directory id    16        from v17
                         tag 1 high_watermark  int64     from v18
    forgotten [n]    name | topic_id, partitions [n] int32     from v7
    rack_id          string                         from v11
    tag 0            cluster_id nullable string     from v12
    tag 1            replica_id int32, replica_epoch int64     from v15

Response:

    throttle_time_ms int32
    error_code       int16                          from v7
    session_id       int32                          from v7
    topics [n]       name | topic_id
                     partitions [n]:
                         index int32, error_code int16, high_watermark int64,
                         last_stable_offset int64
                         log_start_offset          int64     from v5
                         aborted [n] nullable      producer id int64, first offset int64
                         preferred_read_replica    int32     from v11
                         records                   bytes
                         tag 0 diverging_epoch     epoch int32, end offset int64    from v12
                         tag 1 current_leader      id int32, epoch int32            from v12
    tag 0            node_endpoints [n]             from v16

Versions:
- 4   isolation level, aborted transactions         KIP-98
- 5   log start offset                              KIP-107
- 7   incremental sessions                          KIP-227
- 9   fencing by current leader epoch               KIP-320
- 10  zstd                                          KIP-110
- 11  rack of the client                            KIP-392
- 12  flexible; last fetched epoch                  KIP-482, KIP-595
- 13  topic ids                                     KIP-516
- 14  OFFSET_MOVED_TO_TIERED_STORAGE                KIP-405
- 15  replica state                                 KIP-903
- 16  addresses of current leaders                  KIP-951
- 17  directory id                                  KIP-853
- 18  high watermark of the follower                KIP-1166

A response is a list of buffers in wire order: our own bytes, merged, and between them the records
objects exactly as they were given, so that file slices can leave by sendfile.

Source: Kafka, FetchRequest.json, FetchResponse.json.
"""

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Any, Final

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
    uvarint,
)

MIN_VERSION: Final = 4
MAX_VERSION: Final = 18
FIRST_FLEXIBLE_VERSION: Final = 12
FIRST_TOPIC_ID_VERSION: Final = 13

NO_HIGH_WATERMARK: Final = (1 << 63) - 1
"""The follower does not tell its high watermark (below v18, and the default there)."""

_HEAD_V4: Final = Struct(">iiiibi")
_HEAD_V7: Final = Struct(">iiiibiii")
_HEAD_V15: Final = Struct(">iiibii")

_FORGOTTEN_RACK: Final = Struct(">ih")

_PARTITION_V4: Final = Struct(">iqi")
_PARTITION_V5: Final = Struct(">iqqi")
_PARTITION_V9: Final = Struct(">iiqqi")
_PARTITION_V12: Final = Struct(">iiqiqi")

_INT64: Final = Struct(">q")
_REPLICA_STATE: Final = Struct(">iq")

_RESPONSE_V4: Final = Struct(">ii")
_RESPONSE_V7: Final = Struct(">ihii")
_RESPONSE_V12: Final = Struct(">ihi")
_OUT_V4: Final = Struct(">ihqq")
_OUT_V5: Final = Struct(">ihqqq")
_OUT_V12: Final = Struct(">ihqqqbi")
_ABORTED: Final = Struct(">qq")
_ABORTED_V12: Final = Struct(">qqb")

# One topic, one partition, no tags, no aborted transaction: what lies before and after the topic.
_SINGLE_HEAD_V12: Final = Struct(">ihib")
_SINGLE_V12: Final = Struct(">bihqqqbi")

_DIVERGING: Final = Struct(">bbiqb")
_LEADER: Final = Struct(">bbiib")


class FetchPartition:
    """What is wanted of one partition.

    Attributes:
        partition: Index.
        current_leader_epoch: Leader epoch the client knows; -1: do not fence.
        fetch_offset: First offset wanted.
        last_fetched_epoch: Epoch of the last record fetched; -1: none, or below v12.
        log_start_offset: A follower's log start offset; -1 from consumers.
        max_bytes: Limit for this partition (KIP-74: the first batch goes out whole even above it).
        high_watermark: A follower's high watermark; `NO_HIGH_WATERMARK` if it does not tell.
        directory_id: A follower's log directory, 16 bytes; None if it does not tell.
    """

    __slots__ = (
        "current_leader_epoch",
        "directory_id",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
    )

    def __init__(
        self,
        partition: int,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        log_start_offset: int,
        max_bytes: int,
        high_watermark: int = NO_HIGH_WATERMARK,
        directory_id: bytes | None = None,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.max_bytes = max_bytes
        self.high_watermark = high_watermark
        self.directory_id = directory_id


class FetchTopic:
    """One topic of a Fetch request: `name` below v13, else `topic_id` (16 raw bytes)."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str | None, topic_id: bytes, partitions: list[FetchPartition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class FetchRequest:
    """A decoded Fetch request; keeps nothing of the frame.

    `forgotten` holds (name, or topic id from v13; partitions to drop from the session). Defaults
    where a version has no field: replica_id -1, session_id 0, session_epoch -1, rack_id "",
    cluster_id None, replica_epoch -1.
    """

    __slots__ = (
        "cluster_id",
        "forgotten",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_epoch",
        "replica_id",
        "session_epoch",
        "session_id",
        "topics",
    )

    def __init__(
        self,
        replica_id: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation_level: int,
        session_id: int,
        session_epoch: int,
        topics: list[FetchTopic],
        forgotten: list[tuple[str | bytes, list[int]]],
        rack_id: str = "",
        cluster_id: str | None = None,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = topics
        self.forgotten = forgotten
        self.rack_id = rack_id
        self.cluster_id = cluster_id
        self.replica_epoch = replica_epoch


class FetchPartitionResponse:
    """What one partition answers.

    Attributes:
        index: Partition.
        error_code: 0 or Kafka's code.
        high_watermark: -1 on errors.
        last_stable_offset: -1 on errors.
        log_start_offset: -1 on errors.
        aborted: (producer id, first offset) of aborted transactions within the records. A
            read_committed consumer needs a list, though empty; None is for read_uncommitted.
        preferred_read_replica: Node to fetch from instead (KIP-392), else -1.
        diverging_epoch: (epoch, end offset) where the fetcher's log forked off (KIP-595).
        current_leader: (leader id, leader epoch) with NOT_LEADER_OR_FOLLOWER and
            FENCED_LEADER_EPOCH (KIP-951).
        records: Anything with `.length` or `len()`; passed on as it is. None goes out as empty:
            some clients do not expect null.
    """

    __slots__ = (
        "aborted",
        "current_leader",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "index",
        "last_stable_offset",
        "log_start_offset",
        "preferred_read_replica",
        "records",
    )

    def __init__(
        self,
        index: int,
        error_code: int,
        high_watermark: int,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        aborted: Sequence[tuple[int, int]] | None = None,
        preferred_read_replica: int = -1,
        diverging_epoch: tuple[int, int] | None = None,
        current_leader: tuple[int, int] | None = None,
        # Any, because a file slice belongs to storage, which lies above.
        records: Any = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.aborted = aborted
        self.preferred_read_replica = preferred_read_replica
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.records = records


def decode_request(data: memoryview, position: int, version: int) -> FetchRequest:
    """Decode the request body that begins at `position`.

    Bytes after the body are ignored, unknown tagged fields skipped.

    Raises:
        DecodeError: Anything else is wrong; the connection is closed.
    """
    try:
        if version >= FIRST_FLEXIBLE_VERSION:
            return _decode_flexible(data, position, version)
        return _decode_fixed(data, position, version)
    except (IndexError, struct_error):
        raise DecodeError("fetch request ends too early") from None
    except UnicodeDecodeError:
        raise DecodeError("fetch request has a string that is not UTF-8") from None


def _decode_flexible(data: memoryview, position: int, version: int) -> FetchRequest:
    size = len(data)
    by_id = version >= FIRST_TOPIC_ID_VERSION
    replica_id = -1
    if version < 15:
        replica_id = INT32.unpack_from(data, position)[0]
        position += 4
    max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = (
        _HEAD_V15.unpack_from(data, position)
    )
    topic_count = data[position + 21]
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
            name = str(data[position:end], "utf-8")
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
            partition = FetchPartition(*_PARTITION_V12.unpack_from(data, position))
            position += 32
            if data[position]:
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
        name = str(data[position + 2 : end], "utf-8")
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


def records_length(records: Any) -> int:
    """Bytes of a records object: `.length` if it has one, else `len()`; 0 for None."""
    if records is None:
        return 0
    length: int = getattr(records, "length", -1)
    return length if length >= 0 else len(records)


def encode_response(
    topics: Sequence[tuple[str | bytes, Sequence[FetchPartitionResponse]]],
    version: int,
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Any]:
    """Encode the response body (without response header) as buffers in wire order.

    Args:
        topics: (topic, partitions): the name as str below v13, the 16-byte topic id from v13.
            What a version does not carry is left out.
        version: 4 .. 18.
        throttle_time_ms: For how long a quota held the request back.
        error_code: Error of the whole request (session errors), from v7.
        session_id: 0 when there is no session (KIP-227), from v7.
        node_endpoints: (node id, host, port, rack) of the leaders named in `current_leader`.

    Returns:
        `bytes` and, untouched, every records object that is not empty. Never two of our own bytes
        side by side.
    """
    if version < FIRST_FLEXIBLE_VERSION:
        return _encode_fixed(topics, version, throttle_time_ms, error_code, session_id)
    if len(topics) == 1 and not node_endpoints:
        topic, partitions = topics[0]
        if len(partitions) == 1:
            it = partitions[0]
            if not it.aborted and it.diverging_epoch is None and it.current_leader is None:
                head = _SINGLE_HEAD_V12.pack(throttle_time_ms, error_code, session_id, 2)
                tail = _SINGLE_V12.pack(
                    2,
                    it.index,
                    it.error_code,
                    it.high_watermark,
                    it.last_stable_offset,
                    it.log_start_offset,
                    0 if it.aborted is None else 1,
                    it.preferred_read_replica,
                )
                if not isinstance(topic, bytes):
                    topic = topic.encode()
                    head += uvarint(len(topic) + 1)
                records = it.records
                length = 0 if records is None else records_length(records)
                if length == 0:
                    return [head + topic + tail + b"\x01\0\0\0"]
                return [head + topic + tail + uvarint(length + 1), records, b"\0\0\0"]
    return _encode_flexible(
        topics, version, throttle_time_ms, error_code, session_id, node_endpoints
    )


def _encode_flexible(
    topics: Sequence[tuple[str | bytes, Sequence[FetchPartitionResponse]]],
    version: int,
    throttle_time_ms: int,
    error_code: int,
    session_id: int,
    node_endpoints: Sequence[NodeEndpoint],
) -> list[Any]:
    buffers: list[Any] = []
    parts: list[bytes] = [
        _RESPONSE_V12.pack(throttle_time_ms, error_code, session_id),
        uvarint(len(topics) + 1),
    ]
    pack = _OUT_V5.pack
    pack_plain = _OUT_V12.pack
    for topic, partitions in topics:
        parts.append(topic if isinstance(topic, bytes) else compact_string(topic))
        parts.append(uvarint(len(partitions) + 1))
        for it in partitions:
            if not it.aborted and it.diverging_epoch is None and it.current_leader is None:
                parts.append(
                    pack_plain(
                        it.index,
                        it.error_code,
                        it.high_watermark,
                        it.last_stable_offset,
                        it.log_start_offset,
                        0 if it.aborted is None else 1,
                        it.preferred_read_replica,
                    )
                )
                length = 0 if it.records is None else records_length(it.records)
                if length:
                    parts.append(uvarint(length + 1))
                    buffers.append(b"".join(parts))
                    buffers.append(it.records)
                    parts = [b"\0"]
                else:
                    parts.append(b"\x01\0")
                continue
            parts.append(
                pack(
                    it.index,
                    it.error_code,
                    it.high_watermark,
                    it.last_stable_offset,
                    it.log_start_offset,
                )
            )
            aborted = it.aborted
            if aborted is None:
                parts.append(b"\0")
            else:
                parts.append(uvarint(len(aborted) + 1))
                for producer_id, first_offset in aborted:
                    parts.append(_ABORTED_V12.pack(producer_id, first_offset, 0))
            length = records_length(it.records)
            parts.append(INT32.pack(it.preferred_read_replica))
            parts.append(uvarint(length + 1))
            if length:
                buffers.append(b"".join(parts))
                buffers.append(it.records)
                parts = []
            tags = b""
            count = 0
            if it.diverging_epoch is not None:
                tags = _DIVERGING.pack(0, 13, *it.diverging_epoch, 0)
                count = 1
            if it.current_leader is not None:
                tags += _LEADER.pack(1, 9, *it.current_leader, 0)
                count += 1
            parts.append(uvarint(count) + tags)
        parts.append(b"\0")
    parts.append(node_endpoints_section(node_endpoints) if version >= 16 else b"\0")
    buffers.append(b"".join(parts))
    return buffers


def _encode_fixed(
    topics: Sequence[tuple[str | bytes, Sequence[FetchPartitionResponse]]],
    version: int,
    throttle_time_ms: int,
    error_code: int,
    session_id: int,
) -> list[Any]:
    buffers: list[Any] = []
    parts: list[bytes] = []
    if version >= 7:
        parts.append(_RESPONSE_V7.pack(throttle_time_ms, error_code, session_id, len(topics)))
    else:
        parts.append(_RESPONSE_V4.pack(throttle_time_ms, len(topics)))
    for topic, partitions in topics:
        raw = topic if isinstance(topic, bytes) else topic.encode()
        parts += (INT16.pack(len(raw)), raw, INT32.pack(len(partitions)))
        for it in partitions:
            if version >= 5:
                parts.append(
                    _OUT_V5.pack(
                        it.index,
                        it.error_code,
                        it.high_watermark,
                        it.last_stable_offset,
                        it.log_start_offset,
                    )
                )
            else:
                parts.append(
                    _OUT_V4.pack(it.index, it.error_code, it.high_watermark, it.last_stable_offset)
                )
            aborted = it.aborted
            if aborted is None:
                parts.append(b"\xff\xff\xff\xff")
            else:
                parts.append(INT32.pack(len(aborted)))
                for producer_id, first_offset in aborted:
                    parts.append(_ABORTED.pack(producer_id, first_offset))
            if version >= 11:
                parts.append(INT32.pack(it.preferred_read_replica))
            length = records_length(it.records)
            parts.append(INT32.pack(length))
            if length:
                buffers.append(b"".join(parts))
                buffers.append(it.records)
                parts = []
    if parts:
        buffers.append(b"".join(parts))
    return buffers
