"""Fetch (API key 1) as a follower sends it and reads its answer: versions 17 and 18, by hand.

`protocol.hot.fetch` has the format. A follower's request names partitions by topic id, and itself
by the tagged replica state (KIP-903); each partition takes one pack. What it reads of an answer is
what replication needs: neither aborted transactions nor a preferred replica.

Source: Kafka, FetchRequest.json, FetchResponse.json.
"""

from collections.abc import Mapping, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final

from protocol.errors import DecodeError
from protocol.hot.wire import read_uvarint, skip_tags, uvarint
from protocol.quick import read_fetched

API_KEY: Final = 1
VERSION: Final = 18

_read_fetched: Final = read_fetched

_HEAD: Final = Struct(">iiibii")
# With one topic that has one partition, and nothing to forget: what most requests are.
_HEAD_OF_ONE: Final = Struct(">iiibiib16sb")
_TAIL_OF_ONE: Final = Struct(">bbbbbbiqb")
_PARTITION: Final = Struct(">iiqiqix")
_INDEX: Final = Struct(">i")
_REPLICA_STATE: Final = Struct(">bbbiqb")
# An empty rack, then one tagged field: tag 1, 13 bytes, the replica state.
_EMPTY_RACK: Final = b"\x01"

# With the first byte of the number of topics, of partitions; of aborted transactions, which a
# follower is sent none of, and the preferred replica behind them, which is for consumers.
_ANSWER: Final = Struct(">ihiB")
_TOPIC: Final = Struct(">16sB")
_FETCHED: Final = Struct(">ihqqqBi")
_DIVERGING: Final = Struct(">iq")

FETCHED_SIZE_MIN: Final = 30 + 1 + 4 + 1 + 1
"""Bytes of a partition without aborted transactions, records, tags."""

pack_partition = _PARTITION.pack
"""(index, current leader epoch, fetch offset, last fetched epoch, log start offset, max bytes)."""


class FetchedPartition:
    """One partition of an answer.

    Attributes:
        topic_id: Sixteen bytes.
        partition: Its index.
        error_code: 0 or Kafka's code; the offsets are -1 then, but for
            OFFSET_MOVED_TO_TIERED_STORAGE.
        high_watermark: The leader's.
        log_start_offset: The leader's.
        records: Batches, the last of which may be cut off; a view of the answer.
        diverging_epoch: (epoch, end offset): the follower's log forked off (KIP-595).
    """

    __slots__ = (
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "log_start_offset",
        "partition",
        "records",
        "topic_id",
    )

    def __init__(
        self,
        topic_id: bytes,
        partition: int,
        error_code: int,
        high_watermark: int,
        log_start_offset: int,
        records: memoryview,
        diverging_epoch: tuple[int, int] | None,
    ) -> None:
        self.topic_id = topic_id
        self.partition = partition
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.records = records
        self.diverging_epoch = diverging_epoch

    def with_own_records(self) -> "FetchedPartition":
        """The same, with a copy of the records: the answer's memory may be used again."""
        return FetchedPartition(
            self.topic_id,
            self.partition,
            self.error_code,
            self.high_watermark,
            self.log_start_offset,
            memoryview(bytes(self.records)),
            self.diverging_epoch,
        )


class FollowerAnswer:
    """An answer; `error_code` is that of the session or the request, 0: none."""

    __slots__ = ("error_code", "partitions", "session_id", "throttle_time_ms")

    def __init__(
        self,
        throttle_time_ms: int,
        error_code: int,
        session_id: int,
        partitions: list[FetchedPartition],
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.partitions = partitions


def encode_request(
    *,
    replica_id: int,
    replica_epoch: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    session: tuple[int, int],
    topics: Mapping[bytes, Sequence[bytes]],
    forgotten: Mapping[bytes, Sequence[int]],
) -> bytes:
    """Encode the body of a request.

    Args:
        replica_id: This broker.
        replica_epoch: Its broker epoch.
        max_wait_ms: How long the leader may wait for records.
        min_bytes: How many it waits for.
        max_bytes: Of the whole answer.
        session: Id and epoch (KIP-227).
        topics: Topic id to its partitions, each made by `pack_partition`.
        forgotten: Topic id to partitions that leave the session.
    """
    session_id, epoch = session
    if len(topics) == 1 and not forgotten:
        (topic_id,) = topics
        partitions = topics[topic_id]
        if len(partitions) == 1:
            return (
                _HEAD_OF_ONE.pack(
                    max_wait_ms, min_bytes, max_bytes, 0, session_id, epoch, 2, topic_id, 2
                )
                + partitions[0]
                + _TAIL_OF_ONE.pack(0, 1, 1, 1, 1, 13, replica_id, replica_epoch, 0)
            )
    parts = [
        _HEAD.pack(max_wait_ms, min_bytes, max_bytes, 0, session_id, epoch),
        uvarint(len(topics) + 1),
    ]
    for topic_id, partitions in topics.items():
        parts += (topic_id, uvarint(len(partitions) + 1), *partitions, b"\0")
    parts.append(uvarint(len(forgotten) + 1))
    for topic_id, indexes in forgotten.items():
        parts += (topic_id, uvarint(len(indexes) + 1), *map(_INDEX.pack, indexes), b"\0")
    parts += (_EMPTY_RACK, _REPLICA_STATE.pack(1, 1, 13, replica_id, replica_epoch, 0))
    return b"".join(parts)


def decode_answer(data: memoryview) -> FollowerAnswer:
    """Decode the body of an answer.

    Raises:
        DecodeError: It is malformed.
    """
    one = _read_fetched(data)
    if one is not None:
        (
            throttle_time_ms,
            error_code,
            session_id,
            topic_id,
            index,
            error,
            watermark,
            start,
            found,
        ) = one
        partition = FetchedPartition(topic_id, index, error, watermark, start, found, None)
        return FollowerAnswer(throttle_time_ms, error_code, session_id, [partition])
    try:
        return _decode(data)
    except (IndexError, struct_error):
        raise DecodeError("fetch answer ends too early") from None


def _decode(data: memoryview) -> FollowerAnswer:
    size = len(data)
    throttle_time_ms, error_code, session_id, topic_count = _ANSWER.unpack_from(data, 0)
    position = 11
    if topic_count > 127:
        topic_count, position = read_uvarint(data, 10)
    found: list[FetchedPartition] = []
    for _ in range(topic_count - 1):
        topic_id, partition_count = _TOPIC.unpack_from(data, position)
        position += 17
        if partition_count > 127:
            partition_count, position = read_uvarint(data, position - 1)
        if (partition_count - 1) * FETCHED_SIZE_MIN > size - position:
            raise DecodeError(f"fetch answer claims {partition_count - 1} partitions")
        for _ in range(partition_count - 1):
            partition, error, high_watermark, _, log_start, aborted, _ = _FETCHED.unpack_from(
                data, position
            )
            if aborted > 1:
                aborted, position = read_uvarint(data, position + 30)
                for _ in range(aborted - 1):
                    position = skip_tags(data, position + 16)
                position += 4
            else:
                position += 35
            length, position = read_uvarint(data, position)
            end = position + length - 1 if length else position
            if end > size:
                raise DecodeError(f"records of {length - 1} bytes, {size - position} are left")
            records = data[position:end]
            diverging = None
            position = end
            if data[position]:
                diverging, position = _read_tags(data, position)
            else:
                position += 1
            found.append(
                FetchedPartition(
                    topic_id, partition, error, high_watermark, log_start, records, diverging
                )
            )
        position = position + 1 if data[position] == 0 else skip_tags(data, position)
    return FollowerAnswer(throttle_time_ms, error_code, session_id, found)


def _read_tags(data: memoryview, position: int) -> tuple[tuple[int, int] | None, int]:
    """The diverging epoch among a partition's tagged fields, and the position after them."""
    diverging = None
    count, position = read_uvarint(data, position)
    for _ in range(count):
        tag, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        if position + size > len(data):
            raise DecodeError("tagged field runs past the end")
        if tag == 0:
            epoch, end_offset = _DIVERGING.unpack_from(data, position)
            if epoch >= 0 or end_offset >= 0:
                diverging = (epoch, end_offset)
        position += size
    return diverging, position
