"""ShareFetch, API key 78, versions 1 to 2, flexible from 1.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from struct import pack, unpack_from
from typing import Final
from uuid import UUID

from protocol.message import (
    EMPTY,
    REQUEST_ELEMENTS_MAX,
    Message,
    broken,
    count_error,
    end_error,
    limit_error,
    null_error,
    version_error,
)
from protocol.primitives import (
    NIL_UUID,
    PACK_INT32,
    SMALL,
    UNPACK_INT32,
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 78
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_iiiiii: Final = _Struct(">iiiiii").pack
_p_iiiiiibz: Final = _Struct(">iiiiiib?").pack
_p_iix: Final = _Struct(">iix").pack
_p_qq: Final = _Struct(">qq").pack
_p_qqhx: Final = _Struct(">qqhx").pack
_p_u: Final = _Struct(">16s").pack
_u_hB: Final = _Struct(">hB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_iiiiiiB: Final = _Struct(">iiiiiiB").unpack_from
_u_iiiiiibzB: Final = _Struct(">iiiiiib?B").unpack_from
_u_qqB: Final = _Struct(">qqB").unpack_from
_u_qqhB: Final = _Struct(">qqhB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class AcknowledgementBatch(Message):
    """Part of ShareFetchRequest, versions 1-2."""

    __slots__ = (
        "first_offset",
        "last_offset",
        "acknowledge_types",
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = EMPTY,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.acknowledge_types: list[int] = [] if acknowledge_types is EMPTY else acknowledge_types


class FetchPartition(Message):
    """Part of ShareFetchRequest, versions 1-2."""

    __slots__ = (
        "partition_index",
        "acknowledgement_batches",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.acknowledgement_batches: list[AcknowledgementBatch] = [] if acknowledgement_batches is EMPTY else acknowledgement_batches


class FetchTopic(Message):
    """Part of ShareFetchRequest, versions 1-2."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[FetchPartition] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is EMPTY else partitions


class ForgottenTopic(Message):
    """Part of ShareFetchRequest, versions 1-2."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class ShareFetchRequest(Message):
    """Body of the request, versions 1-2."""

    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,  # versions 2
        is_renew_ack: bool = False,  # versions 2
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.max_records: int = max_records
        self.batch_size: int = batch_size
        self.share_acquire_mode: int = share_acquire_mode
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[FetchTopic] = [] if topics is EMPTY else topics
        self.forgotten_topics_data: list[ForgottenTopic] = [] if forgotten_topics_data is EMPTY else forgotten_topics_data


class LeaderIdAndEpoch(Message):
    """Part of ShareFetchResponse, versions 1-2."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class AcquiredRecords(Message):
    """Part of ShareFetchResponse, versions 1-2."""

    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_count",
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_count: int = delivery_count


class PartitionData(Message):
    """Part of ShareFetchResponse, versions 1-2."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "acknowledge_error_code",
        "acknowledge_error_message",
        "current_leader",
        "records",
        "acquired_records",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        records: bytes | bytearray | memoryview = b'',
        acquired_records: list[AcquiredRecords] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acknowledge_error_code: int = acknowledge_error_code
        self.acknowledge_error_message: str | None = acknowledge_error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.records: bytes | bytearray | memoryview = records
        self.acquired_records: list[AcquiredRecords] = [] if acquired_records is EMPTY else acquired_records


class ShareFetchableTopicResponse(Message):
    """Part of ShareFetchResponse, versions 1-2."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[PartitionData] = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """Part of ShareFetchResponse, versions 1-2."""

    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class ShareFetchResponse(Message):
    """Body of the response, versions 1-2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: list[ShareFetchableTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _decode_request_v1(view: bytes | memoryview) -> ShareFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ShareFetchRequest.__new__(ShareFetchRequest)
    m.share_acquire_mode = 0
    m.is_renew_ack = False
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_id = None
    else:
        e = p + n - 1
        m.group_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.member_id = None
    else:
        e = p + n - 1
        m.member_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size, n = _u_iiiiiiB(data, p)
    p += 25
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 18 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 6 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("acknowledgement_batches")
            n -= 1
            if n * 18 > end - p:
                raise count_error("acknowledgement_batches", n)
            left -= n
            if left < 0:
                raise limit_error("acknowledgement_batches")
            items2: list[AcknowledgementBatch] = []
            item1.acknowledgement_batches = items2
            for _ in range(n):
                item2 = AcknowledgementBatch.__new__(AcknowledgementBatch)
                item2.first_offset, item2.last_offset, n = _u_qqB(data, p)
                p += 17
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("acknowledge_types")
                n -= 1
                if n > end - p:
                    raise count_error("acknowledge_types", n)
                left -= n
                if left < 0:
                    raise limit_error("acknowledge_types")
                item2.acknowledge_types = list(unpack_from(f">{n}b", data, p))
                p += n
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("AcknowledgementBatch")
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("forgotten_topics_data")
    n -= 1
    if n * 18 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items3: list[ForgottenTopic] = []
    m.forgotten_topics_data = items3
    for _ in range(n):
        item3 = ForgottenTopic.__new__(ForgottenTopic)
        u1, n = _u_uB(data, p)
        p += 17
        item3.topic_id = uuid_from_bytes(u1)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 4 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        item3.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ForgottenTopic")
            p = skip_fields(data, p, n)
        items3.append(item3)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ShareFetchRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ShareFetchRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> ShareFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ShareFetchRequest.__new__(ShareFetchRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_id = None
    else:
        e = p + n - 1
        m.group_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.member_id = None
    else:
        e = p + n - 1
        m.member_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size, m.share_acquire_mode, m.is_renew_ack, n = _u_iiiiiibzB(data, p)
    p += 27
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 18 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 6 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("acknowledgement_batches")
            n -= 1
            if n * 18 > end - p:
                raise count_error("acknowledgement_batches", n)
            left -= n
            if left < 0:
                raise limit_error("acknowledgement_batches")
            items2: list[AcknowledgementBatch] = []
            item1.acknowledgement_batches = items2
            for _ in range(n):
                item2 = AcknowledgementBatch.__new__(AcknowledgementBatch)
                item2.first_offset, item2.last_offset, n = _u_qqB(data, p)
                p += 17
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("acknowledge_types")
                n -= 1
                if n > end - p:
                    raise count_error("acknowledge_types", n)
                left -= n
                if left < 0:
                    raise limit_error("acknowledge_types")
                item2.acknowledge_types = list(unpack_from(f">{n}b", data, p))
                p += n
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("AcknowledgementBatch")
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("forgotten_topics_data")
    n -= 1
    if n * 18 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items3: list[ForgottenTopic] = []
    m.forgotten_topics_data = items3
    for _ in range(n):
        item3 = ForgottenTopic.__new__(ForgottenTopic)
        u1, n = _u_uB(data, p)
        p += 17
        item3.topic_id = uuid_from_bytes(u1)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 4 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        item3.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ForgottenTopic")
            p = skip_fields(data, p, n)
        items3.append(item3)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ShareFetchRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ShareFetchRequest")
    return m


def _encode_request_v1(m: ShareFetchRequest) -> bytes:
    out = bytearray()
    v = m.group_id
    if v is None:
        out += b"\x00"
    else:
        b = v.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
    v1 = m.member_id
    if v1 is None:
        out += b"\x00"
    else:
        b1 = v1.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
    items = m.topics
    out += _p_iiiiii(m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.partitions
        out += _p_u(item.topic_id.bytes)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.acknowledgement_batches
            out += _p_i(item1.partition_index)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                items3 = item2.acknowledge_types
                out += _p_qq(item2.first_offset, item2.last_offset)
                n = len(items3) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items3)
                out += pack(f">{n}b", *items3)
                out += b"\x00"
            out += b"\x00"
        out += b"\x00"
    items4 = m.forgotten_topics_data
    n = len(items4) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item3 in items4:
        items5 = item3.partitions
        out += _p_u(item3.topic_id.bytes)
        n = len(items5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        n = len(items5)
        out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v2(m: ShareFetchRequest) -> bytes:
    out = bytearray()
    v = m.group_id
    if v is None:
        out += b"\x00"
    else:
        b = v.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
    v1 = m.member_id
    if v1 is None:
        out += b"\x00"
    else:
        b1 = v1.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
    items = m.topics
    out += _p_iiiiiibz(m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size, m.share_acquire_mode, m.is_renew_ack)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.partitions
        out += _p_u(item.topic_id.bytes)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.acknowledgement_batches
            out += _p_i(item1.partition_index)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                items3 = item2.acknowledge_types
                out += _p_qq(item2.first_offset, item2.last_offset)
                n = len(items3) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items3)
                out += pack(f">{n}b", *items3)
                out += b"\x00"
            out += b"\x00"
        out += b"\x00"
    items4 = m.forgotten_topics_data
    n = len(items4) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item3 in items4:
        items5 = item3.partitions
        out += _p_u(item3.topic_id.bytes)
        n = len(items5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        n = len(items5)
        out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ShareFetchRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[ShareFetchRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> ShareFetchRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ShareFetchRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ShareFetchRequest", version) from None


def encode_request(message: ShareFetchRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ShareFetchRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> ShareFetchResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = ShareFetchResponse.__new__(ShareFetchResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.error_message = None
    else:
        e = p + n - 1
        m.error_message = str(data[p:e], "utf-8", "replace")
        p = e
    m.acquisition_lock_timeout_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 18 > end - p:
        raise count_error("responses", n)
    items: list[ShareFetchableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = ShareFetchableTopicResponse.__new__(ShareFetchableTopicResponse)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 22 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.partition_index, item1.error_code, n = _u_ihB(data, p)
            p += 7
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.error_message = None
            else:
                e = p + n - 1
                item1.error_message = str(data[p:e], "utf-8", "replace")
                p = e
            item1.acknowledge_error_code, n = _u_hB(data, p)
            p += 3
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.acknowledge_error_message = None
            else:
                e = p + n - 1
                item1.acknowledge_error_message = str(data[p:e], "utf-8", "replace")
                p = e
            s = LeaderIdAndEpoch.__new__(LeaderIdAndEpoch)
            s.leader_id, s.leader_epoch, n = _u_iiB(data, p)
            p += 9
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item1.current_leader = s
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("records")
            e = p + n - 1
            item1.records = data[p:e]
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("acquired_records")
            n -= 1
            if n * 19 > end - p:
                raise count_error("acquired_records", n)
            items2: list[AcquiredRecords] = []
            item1.acquired_records = items2
            for _ in range(n):
                item2 = AcquiredRecords.__new__(AcquiredRecords)
                item2.first_offset, item2.last_offset, item2.delivery_count, n = _u_qqhB(data, p)
                p += 19
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("node_endpoints")
    n -= 1
    if n * 11 > end - p:
        raise count_error("node_endpoints", n)
    items3: list[NodeEndpoint] = []
    m.node_endpoints = items3
    for _ in range(n):
        item3 = NodeEndpoint.__new__(NodeEndpoint)
        item3.node_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item3.host = str(data[p:e], "utf-8", "replace")
        p = e
        item3.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item3.rack = None
        else:
            e = p + n - 1
            item3.rack = str(data[p:e], "utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items3.append(item3)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ShareFetchResponse")
    return m


def _encode_response_v1(m: ShareFetchResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    v = m.error_message
    if v is None:
        out += b"\x00"
    else:
        b = v.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
    items = m.responses
    out += _p_i(m.acquisition_lock_timeout_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.partitions
        out += _p_u(item.topic_id.bytes)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_ih(item1.partition_index, item1.error_code)
            v1 = item1.error_message
            if v1 is None:
                out += b"\x00"
            else:
                b1 = v1.encode()
                n = len(b1) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b1
            out += _p_h(item1.acknowledge_error_code)
            v2 = item1.acknowledge_error_message
            if v2 is None:
                out += b"\x00"
            else:
                b2 = v2.encode()
                n = len(b2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b2
            s = item1.current_leader
            b3 = item1.records
            out += _p_iix(s.leader_id, s.leader_epoch)
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
            items2 = item1.acquired_records
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_qqhx(item2.first_offset, item2.last_offset, item2.delivery_count)
            out += b"\x00"
        out += b"\x00"
    items3 = m.node_endpoints
    n = len(items3) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item3 in items3:
        b4 = item3.host.encode()
        out += _p_i(item3.node_id)
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        out += _p_i(item3.port)
        v5 = item3.rack
        if v5 is None:
            out += b"\x00"
        else:
            b5 = v5.encode()
            n = len(b5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b5
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ShareFetchResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[ShareFetchResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> ShareFetchResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ShareFetchResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ShareFetchResponse", version) from None


def encode_response(message: ShareFetchResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ShareFetchResponse has no version {version} here")
    return encode(message)
