"""DescribeTopicPartitions, API key 75, versions 0 alone, flexible from 0.

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

API_KEY: Final = 75
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_h: Final = _Struct(">h").pack
_p_hiii: Final = _Struct(">hiii").pack
_p_i: Final = _Struct(">i").pack
_p_ix: Final = _Struct(">ix").pack
_p_uz: Final = _Struct(">16s?").pack
_u_b: Final = _Struct(">b").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hiiiB: Final = _Struct(">hiiiB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ib: Final = _Struct(">ib").unpack_from
_u_uzB: Final = _Struct(">16s?B").unpack_from


class TopicRequest(Message):
    """Part of DescribeTopicPartitionsRequest, versions 0."""

    __slots__ = (
        "name",
    )

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name: str = name


class DescribeTopicPartitionsRequestCursor(Message):
    """Part of DescribeTopicPartitionsRequest, versions 0."""

    __slots__ = (
        "topic_name",
        "partition_index",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index


class DescribeTopicPartitionsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "topics",
        "response_partition_limit",
        "cursor",
    )

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequestCursor | None = None,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is EMPTY else topics
        self.response_partition_limit: int = response_partition_limit
        self.cursor: DescribeTopicPartitionsRequestCursor | None = cursor


class DescribeTopicPartitionsResponsePartition(Message):
    """Part of DescribeTopicPartitionsResponse, versions 0."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    """Part of DescribeTopicPartitionsResponse, versions 0."""

    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: UUID = NIL_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: UUID = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[DescribeTopicPartitionsResponsePartition] = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations: int = topic_authorized_operations


class DescribeTopicPartitionsResponseCursor(Message):
    """Part of DescribeTopicPartitionsResponse, versions 0."""

    __slots__ = (
        "topic_name",
        "partition_index",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index


class DescribeTopicPartitionsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
        "next_cursor",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY,
        next_cursor: DescribeTopicPartitionsResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribeTopicPartitionsResponseTopic] = [] if topics is EMPTY else topics
        self.next_cursor: DescribeTopicPartitionsResponseCursor | None = next_cursor


def _decode_request_v0(view: bytes | memoryview) -> DescribeTopicPartitionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeTopicPartitionsRequest.__new__(DescribeTopicPartitionsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 2 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[TopicRequest] = []
    m.topics = items
    for _ in range(n):
        item = TopicRequest.__new__(TopicRequest)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("TopicRequest")
            p = skip_fields(data, p, n)
        items.append(item)
    m.response_partition_limit, n = _u_ib(data, p)
    p += 5
    if n < 0:
        m.cursor = None
    else:
        s = DescribeTopicPartitionsRequestCursor.__new__(DescribeTopicPartitionsRequestCursor)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        s.topic_name = data[p:e].decode("utf-8", "replace")
        p = e
        s.partition_index, n = _u_iB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DescribeTopicPartitionsRequestCursor")
            p = skip_fields(data, p, n)
        m.cursor = s
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeTopicPartitionsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeTopicPartitionsRequest")
    return m


def _encode_request_v0(m: DescribeTopicPartitionsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.name.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += b"\x00"
    s = m.cursor
    out += _p_i(m.response_partition_limit)
    if s is None:
        out += b"\xff"
    else:
        out += b"\x01"
        b1 = s.topic_name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += _p_ix(s.partition_index)
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeTopicPartitionsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[DescribeTopicPartitionsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeTopicPartitionsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeTopicPartitionsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeTopicPartitionsRequest", version) from None


def encode_request(message: DescribeTopicPartitionsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeTopicPartitionsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeTopicPartitionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeTopicPartitionsResponse.__new__(DescribeTopicPartitionsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 26 > end - p:
        raise count_error("topics", n)
    items: list[DescribeTopicPartitionsResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = DescribeTopicPartitionsResponseTopic.__new__(DescribeTopicPartitionsResponseTopic)
        item.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.name = None
        else:
            e = p + n - 1
            item.name = data[p:e].decode("utf-8", "replace")
            p = e
        u, item.is_internal, n = _u_uzB(data, p)
        p += 18
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 20 > end - p:
            raise count_error("partitions", n)
        items1: list[DescribeTopicPartitionsResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DescribeTopicPartitionsResponsePartition.__new__(DescribeTopicPartitionsResponsePartition)
            item1.error_code, item1.partition_index, item1.leader_id, item1.leader_epoch, n = _u_hiiiB(data, p)
            p += 15
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("replica_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item1.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("isr_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item1.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.eligible_leader_replicas = None
            else:
                n -= 1
                if n * 4 > end - p:
                    raise count_error("eligible_leader_replicas", n)
                item1.eligible_leader_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.last_known_elr = None
            else:
                n -= 1
                if n * 4 > end - p:
                    raise count_error("last_known_elr", n)
                item1.last_known_elr = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("offline_replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item1.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items1.append(item1)
        item.topic_authorized_operations, n = _u_iB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    n, = _u_b(data, p)
    p += 1
    if n < 0:
        m.next_cursor = None
    else:
        s = DescribeTopicPartitionsResponseCursor.__new__(DescribeTopicPartitionsResponseCursor)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        s.topic_name = data[p:e].decode("utf-8", "replace")
        p = e
        s.partition_index, n = _u_iB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        m.next_cursor = s
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeTopicPartitionsResponse")
    return m


def _encode_response_v0(m: DescribeTopicPartitionsResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        out += _p_h(item.error_code)
        v = item.name
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
        items1 = item.partitions
        out += _p_uz(item.topic_id.bytes, item.is_internal)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.replica_nodes
            out += _p_hiii(item1.error_code, item1.partition_index, item1.leader_id, item1.leader_epoch)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            items3 = item1.isr_nodes
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item1.eligible_leader_replicas
            if items4 is None:
                out += b"\x00"
            else:
                n = len(items4) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items4)
                out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item1.last_known_elr
            if items5 is None:
                out += b"\x00"
            else:
                n = len(items5) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items5)
                out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
            items6 = item1.offline_replicas
            n = len(items6) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items6)
            out += PACK_INT32[n](*items6) if n < SMALL else pack(f">{n}i", *items6)
            out += b"\x00"
        out += _p_ix(item.topic_authorized_operations)
    s = m.next_cursor
    if s is None:
        out += b"\xff"
    else:
        out += b"\x01"
        b1 = s.topic_name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += _p_ix(s.partition_index)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeTopicPartitionsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[DescribeTopicPartitionsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeTopicPartitionsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeTopicPartitionsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeTopicPartitionsResponse", version) from None


def encode_response(message: DescribeTopicPartitionsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeTopicPartitionsResponse has no version {version} here")
    return encode(message)
