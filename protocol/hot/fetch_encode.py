"""Writes Fetch responses, versions 4 to 18, as buffers; `fetch` says what they are like.

One partition in a flexible version, which is what most answers are, takes two packs.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

from protocol.hot.fetch_request import FIRST_FLEXIBLE_VERSION
from protocol.hot.wire import (
    INT16,
    INT32,
    NodeEndpoint,
    compact_string,
    node_endpoints_section,
    uvarint,
)
from protocol.quick import encode_fetched

_encode_fetched: Final = encode_fetched
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
                records = it.records
                length = 0 if records is None else records_length(records)
                start = _encode_fetched(
                    topic,
                    throttle_time_ms,
                    error_code,
                    session_id,
                    it.index,
                    it.error_code,
                    it.high_watermark,
                    it.last_stable_offset,
                    it.log_start_offset,
                    0 if it.aborted is None else 1,
                    it.preferred_read_replica,
                    length,
                )
                if start is not None:
                    return [start] if length == 0 else [start, records, b"\0\0\0"]
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
