"""Produce, API key 0, versions 3 to 13, flexible from 9.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 0
MIN_VERSION: Final = 3
MAX_VERSION: Final = 13
FIRST_FLEXIBLE_VERSION: Final[int | None] = 9

_p_h: Final = _Struct(">h").pack
_p_hi: Final = _Struct(">hi").pack
_p_hii: Final = _Struct(">hii").pack
_p_i: Final = _Struct(">i").pack
_p_ihqq: Final = _Struct(">ihqq").pack
_p_ihqqq: Final = _Struct(">ihqqq").pack
_p_ihqqqi: Final = _Struct(">ihqqqi").pack
_p_iix: Final = _Struct(">iix").pack
_p_ix: Final = _Struct(">ix").pack
_p_u: Final = _Struct(">16s").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hiB: Final = _Struct(">hiB").unpack_from
_u_hii: Final = _Struct(">hii").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihqq: Final = _Struct(">ihqq").unpack_from
_u_ihqqq: Final = _Struct(">ihqqq").unpack_from
_u_ihqqqB: Final = _Struct(">ihqqqB").unpack_from
_u_ihqqqi: Final = _Struct(">ihqqqi").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class PartitionProduceData(Message):
    """Part of ProduceRequest, versions 3-13."""

    __slots__ = (
        "index",
        "records",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        records: bytes | bytearray | memoryview | None = None,
    ) -> None:
        self.index: int = index
        self.records: bytes | bytearray | memoryview | None = records


class TopicProduceData(Message):
    """Part of ProduceRequest, versions 3-13."""

    __slots__ = (
        "topic_id",
        "partition_data",
        "name",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 13
        partition_data: list[PartitionProduceData] = EMPTY,
        name: str = "",  # versions 3-12
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partition_data: list[PartitionProduceData] = [] if partition_data is EMPTY else partition_data
        self.name: str = name


class ProduceRequest(Message):
    """Body of the request, versions 3-13."""

    __slots__ = (
        "transactional_id",
        "acks",
        "timeout_ms",
        "topic_data",
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.topic_data: list[TopicProduceData] = [] if topic_data is EMPTY else topic_data


class BatchIndexAndErrorMessage(Message):
    """Part of ProduceResponse, versions 8-13."""

    __slots__ = (
        "batch_index",
        "batch_index_error_message",
    )

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index: int = batch_index
        self.batch_index_error_message: str | None = batch_index_error_message


class LeaderIdAndEpoch(Message):
    """Part of ProduceResponse, versions 10-13."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class PartitionProduceResponse(Message):
    """Part of ProduceResponse, versions 3-13."""

    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,  # versions 5-13
        record_errors: list[BatchIndexAndErrorMessage] = EMPTY,  # versions 8-13
        error_message: str | None = None,  # versions 8-13
        current_leader: LeaderIdAndEpoch | None = None,  # versions 10-13, tag 0
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.base_offset: int = base_offset
        self.log_append_time_ms: int = log_append_time_ms
        self.log_start_offset: int = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is EMPTY else record_errors
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch | None = current_leader


class TopicProduceResponse(Message):
    """Part of ProduceResponse, versions 3-13."""

    __slots__ = (
        "topic_id",
        "partition_responses",
        "name",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 13
        partition_responses: list[PartitionProduceResponse] = EMPTY,
        name: str = "",  # versions 3-12
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partition_responses: list[PartitionProduceResponse] = [] if partition_responses is EMPTY else partition_responses
        self.name: str = name


class NodeEndpoint(Message):
    """Part of ProduceResponse, versions 10-13."""

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


class ProduceResponse(Message):
    """Body of the response, versions 3-13."""

    __slots__ = (
        "responses",
        "throttle_time_ms",
        "node_endpoints",
    )

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] = EMPTY,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # versions 10-13, tag 0
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is EMPTY else responses
        self.throttle_time_ms: int = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _decode_request_v3(view: bytes | memoryview) -> ProduceRequest:
    data = memoryview(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ProduceRequest.__new__(ProduceRequest)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.transactional_id = None
    else:
        e = p + n
        m.transactional_id = str(data[p:e], "utf-8", "replace")
        p = e
    m.acks, m.timeout_ms, n = _u_hii(data, p)
    p += 10
    if n < 0:
        raise null_error("topic_data")
    if n * 6 > end - p:
        raise count_error("topic_data", n)
    left -= n
    if left < 0:
        raise limit_error("topic_data")
    items: list[TopicProduceData] = []
    m.topic_data = items
    for _ in range(n):
        item = TopicProduceData.__new__(TopicProduceData)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = str(data[p:e], "utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partition_data")
        if n * 8 > end - p:
            raise count_error("partition_data", n)
        left -= n
        if left < 0:
            raise limit_error("partition_data")
        items1: list[PartitionProduceData] = []
        item.partition_data = items1
        for _ in range(n):
            item1 = PartitionProduceData.__new__(PartitionProduceData)
            item1.index, n = _u_ii(data, p)
            p += 8
            if n < 0:
                item1.records = None
            else:
                e = p + n
                item1.records = data[p:e]
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ProduceRequest")
    return m


def _decode_request_v9(view: bytes | memoryview) -> ProduceRequest:
    data = memoryview(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ProduceRequest.__new__(ProduceRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.transactional_id = None
    else:
        e = p + n - 1
        m.transactional_id = str(data[p:e], "utf-8", "replace")
        p = e
    m.acks, m.timeout_ms, n = _u_hiB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topic_data")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topic_data", n)
    left -= n
    if left < 0:
        raise limit_error("topic_data")
    items: list[TopicProduceData] = []
    m.topic_data = items
    for _ in range(n):
        item = TopicProduceData.__new__(TopicProduceData)
        item.topic_id = NIL_UUID
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = str(data[p:e], "utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partition_data")
        n -= 1
        if n * 6 > end - p:
            raise count_error("partition_data", n)
        left -= n
        if left < 0:
            raise limit_error("partition_data")
        items1: list[PartitionProduceData] = []
        item.partition_data = items1
        for _ in range(n):
            item1 = PartitionProduceData.__new__(PartitionProduceData)
            item1.index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.records = None
            else:
                e = p + n - 1
                item1.records = data[p:e]
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("PartitionProduceData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("TopicProduceData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ProduceRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ProduceRequest")
    return m


def _decode_request_v13(view: bytes | memoryview) -> ProduceRequest:
    data = memoryview(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ProduceRequest.__new__(ProduceRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.transactional_id = None
    else:
        e = p + n - 1
        m.transactional_id = str(data[p:e], "utf-8", "replace")
        p = e
    m.acks, m.timeout_ms, n = _u_hiB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topic_data")
    n -= 1
    if n * 18 > end - p:
        raise count_error("topic_data", n)
    left -= n
    if left < 0:
        raise limit_error("topic_data")
    items: list[TopicProduceData] = []
    m.topic_data = items
    for _ in range(n):
        item = TopicProduceData.__new__(TopicProduceData)
        item.name = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partition_data")
        n -= 1
        if n * 6 > end - p:
            raise count_error("partition_data", n)
        left -= n
        if left < 0:
            raise limit_error("partition_data")
        items1: list[PartitionProduceData] = []
        item.partition_data = items1
        for _ in range(n):
            item1 = PartitionProduceData.__new__(PartitionProduceData)
            item1.index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.records = None
            else:
                e = p + n - 1
                item1.records = data[p:e]
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("PartitionProduceData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("TopicProduceData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ProduceRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ProduceRequest")
    return m


def _encode_request_v3(m: ProduceRequest) -> bytes:
    out = bytearray()
    v = m.transactional_id
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    items = m.topic_data
    out += _p_hii(m.acks, m.timeout_ms, len(items))
    for item in items:
        b1 = item.name.encode()
        out += _p_h(len(b1))
        out += b1
        items1 = item.partition_data
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_i(item1.index)
            v2 = item1.records
            if v2 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(v2))
                out += v2
    return bytes(out)


def _encode_request_v9(m: ProduceRequest) -> bytes:
    out = bytearray()
    v = m.transactional_id
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
    items = m.topic_data
    out += _p_hi(m.acks, m.timeout_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items1 = item.partition_data
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_i(item1.index)
            v2 = item1.records
            if v2 is None:
                out += b"\x00"
            else:
                n = len(v2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += v2
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v13(m: ProduceRequest) -> bytes:
    out = bytearray()
    v = m.transactional_id
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
    items = m.topic_data
    out += _p_hi(m.acks, m.timeout_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.partition_data
        out += _p_u(item.topic_id.bytes)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_i(item1.index)
            v1 = item1.records
            if v1 is None:
                out += b"\x00"
            else:
                n = len(v1) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += v1
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ProduceRequest]]] = {
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v3,
    6: _decode_request_v3,
    7: _decode_request_v3,
    8: _decode_request_v3,
    9: _decode_request_v9,
    10: _decode_request_v9,
    11: _decode_request_v9,
    12: _decode_request_v9,
    13: _decode_request_v13,
}


_request_encoders: Final[dict[int, Callable[[ProduceRequest], bytes]]] = {
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v3,
    6: _encode_request_v3,
    7: _encode_request_v3,
    8: _encode_request_v3,
    9: _encode_request_v9,
    10: _encode_request_v9,
    11: _encode_request_v9,
    12: _encode_request_v9,
    13: _encode_request_v13,
}


def decode_request(data: bytes | memoryview, version: int) -> ProduceRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ProduceRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ProduceRequest", version) from None


def encode_request(message: ProduceRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ProduceRequest has no version {version} here")
    return encode(message)


def _decode_response_v3(view: bytes | memoryview) -> ProduceResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ProduceResponse.__new__(ProduceResponse)
    m.node_endpoints = []
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("responses")
    if n * 6 > end - p:
        raise count_error("responses", n)
    items: list[TopicProduceResponse] = []
    m.responses = items
    for _ in range(n):
        item = TopicProduceResponse.__new__(TopicProduceResponse)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partition_responses")
        if n * 22 > end - p:
            raise count_error("partition_responses", n)
        items1: list[PartitionProduceResponse] = []
        item.partition_responses = items1
        for _ in range(n):
            item1 = PartitionProduceResponse.__new__(PartitionProduceResponse)
            item1.log_start_offset = -1
            item1.record_errors = []
            item1.error_message = None
            item1.current_leader = None
            item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms = _u_ihqq(data, p)
            p += 22
            items1.append(item1)
        items.append(item)
    m.throttle_time_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("ProduceResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> ProduceResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ProduceResponse.__new__(ProduceResponse)
    m.node_endpoints = []
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("responses")
    if n * 6 > end - p:
        raise count_error("responses", n)
    items: list[TopicProduceResponse] = []
    m.responses = items
    for _ in range(n):
        item = TopicProduceResponse.__new__(TopicProduceResponse)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partition_responses")
        if n * 30 > end - p:
            raise count_error("partition_responses", n)
        items1: list[PartitionProduceResponse] = []
        item.partition_responses = items1
        for _ in range(n):
            item1 = PartitionProduceResponse.__new__(PartitionProduceResponse)
            item1.record_errors = []
            item1.error_message = None
            item1.current_leader = None
            item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset = _u_ihqqq(data, p)
            p += 30
            items1.append(item1)
        items.append(item)
    m.throttle_time_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("ProduceResponse")
    return m


def _decode_response_v8(view: bytes | memoryview) -> ProduceResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ProduceResponse.__new__(ProduceResponse)
    m.node_endpoints = []
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("responses")
    if n * 6 > end - p:
        raise count_error("responses", n)
    items: list[TopicProduceResponse] = []
    m.responses = items
    for _ in range(n):
        item = TopicProduceResponse.__new__(TopicProduceResponse)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partition_responses")
        if n * 36 > end - p:
            raise count_error("partition_responses", n)
        items1: list[PartitionProduceResponse] = []
        item.partition_responses = items1
        for _ in range(n):
            item1 = PartitionProduceResponse.__new__(PartitionProduceResponse)
            item1.current_leader = None
            item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset, n = _u_ihqqqi(data, p)
            p += 34
            if n < 0:
                raise null_error("record_errors")
            if n * 6 > end - p:
                raise count_error("record_errors", n)
            items2: list[BatchIndexAndErrorMessage] = []
            item1.record_errors = items2
            for _ in range(n):
                item2 = BatchIndexAndErrorMessage.__new__(BatchIndexAndErrorMessage)
                item2.batch_index, n = _u_ih(data, p)
                p += 6
                if n < 0:
                    item2.batch_index_error_message = None
                else:
                    e = p + n
                    item2.batch_index_error_message = data[p:e].decode("utf-8", "replace")
                    p = e
                items2.append(item2)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                item1.error_message = None
            else:
                e = p + n
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    m.throttle_time_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("ProduceResponse")
    return m


def _decode_response_v9(view: bytes | memoryview) -> ProduceResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ProduceResponse.__new__(ProduceResponse)
    m.node_endpoints = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 3 > end - p:
        raise count_error("responses", n)
    items: list[TopicProduceResponse] = []
    m.responses = items
    for _ in range(n):
        item = TopicProduceResponse.__new__(TopicProduceResponse)
        item.topic_id = NIL_UUID
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partition_responses")
        n -= 1
        if n * 33 > end - p:
            raise count_error("partition_responses", n)
        items1: list[PartitionProduceResponse] = []
        item.partition_responses = items1
        for _ in range(n):
            item1 = PartitionProduceResponse.__new__(PartitionProduceResponse)
            item1.current_leader = None
            item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset, n = _u_ihqqqB(data, p)
            p += 31
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("record_errors")
            n -= 1
            if n * 6 > end - p:
                raise count_error("record_errors", n)
            items2: list[BatchIndexAndErrorMessage] = []
            item1.record_errors = items2
            for _ in range(n):
                item2 = BatchIndexAndErrorMessage.__new__(BatchIndexAndErrorMessage)
                item2.batch_index, n = _u_iB(data, p)
                p += 5
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item2.batch_index_error_message = None
                else:
                    e = p + n - 1
                    item2.batch_index_error_message = data[p:e].decode("utf-8", "replace")
                    p = e
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.error_message = None
            else:
                e = p + n - 1
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
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
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ProduceResponse")
    return m


def _decode_response_v10(view: bytes | memoryview) -> ProduceResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ProduceResponse.__new__(ProduceResponse)
    m.node_endpoints = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 3 > end - p:
        raise count_error("responses", n)
    items: list[TopicProduceResponse] = []
    m.responses = items
    for _ in range(n):
        item = TopicProduceResponse.__new__(TopicProduceResponse)
        item.topic_id = NIL_UUID
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partition_responses")
        n -= 1
        if n * 33 > end - p:
            raise count_error("partition_responses", n)
        items1: list[PartitionProduceResponse] = []
        item.partition_responses = items1
        for _ in range(n):
            item1 = PartitionProduceResponse.__new__(PartitionProduceResponse)
            item1.current_leader = None
            item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset, n = _u_ihqqqB(data, p)
            p += 31
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("record_errors")
            n -= 1
            if n * 6 > end - p:
                raise count_error("record_errors", n)
            items2: list[BatchIndexAndErrorMessage] = []
            item1.record_errors = items2
            for _ in range(n):
                item2 = BatchIndexAndErrorMessage.__new__(BatchIndexAndErrorMessage)
                item2.batch_index, n = _u_iB(data, p)
                p += 5
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item2.batch_index_error_message = None
                else:
                    e = p + n - 1
                    item2.batch_index_error_message = data[p:e].decode("utf-8", "replace")
                    p = e
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.error_message = None
            else:
                e = p + n - 1
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                for _ in range(n):
                    tag, p = decode_unsigned_varint(data, p)
                    limit, p = decode_unsigned_varint(data, p)
                    limit += p
                    if tag == 0:
                        s = LeaderIdAndEpoch.__new__(LeaderIdAndEpoch)
                        s.leader_id, s.leader_epoch, n = _u_iiB(data, p)
                        p += 9
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.current_leader = s
                        if p > limit:
                            raise end_error("current_leader")
                    if limit > end:
                        raise end_error("PartitionProduceResponse")
                    p = limit
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        for _ in range(n):
            tag, p = decode_unsigned_varint(data, p)
            limit1, p = decode_unsigned_varint(data, p)
            limit1 += p
            if tag == 0:
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
                    item3.host = data[p:e].decode("utf-8", "replace")
                    p = e
                    item3.port, n = _u_iB(data, p)
                    p += 5
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        item3.rack = None
                    else:
                        e = p + n - 1
                        item3.rack = data[p:e].decode("utf-8", "replace")
                        p = e
                    n = data[p]
                    p += 1
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items3.append(item3)
                if p > limit1:
                    raise end_error("node_endpoints")
            if limit1 > end:
                raise end_error("ProduceResponse")
            p = limit1
    if p > end:
        raise end_error("ProduceResponse")
    return m


def _decode_response_v13(view: bytes | memoryview) -> ProduceResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ProduceResponse.__new__(ProduceResponse)
    m.node_endpoints = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 18 > end - p:
        raise count_error("responses", n)
    items: list[TopicProduceResponse] = []
    m.responses = items
    for _ in range(n):
        item = TopicProduceResponse.__new__(TopicProduceResponse)
        item.name = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partition_responses")
        n -= 1
        if n * 33 > end - p:
            raise count_error("partition_responses", n)
        items1: list[PartitionProduceResponse] = []
        item.partition_responses = items1
        for _ in range(n):
            item1 = PartitionProduceResponse.__new__(PartitionProduceResponse)
            item1.current_leader = None
            item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset, n = _u_ihqqqB(data, p)
            p += 31
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("record_errors")
            n -= 1
            if n * 6 > end - p:
                raise count_error("record_errors", n)
            items2: list[BatchIndexAndErrorMessage] = []
            item1.record_errors = items2
            for _ in range(n):
                item2 = BatchIndexAndErrorMessage.__new__(BatchIndexAndErrorMessage)
                item2.batch_index, n = _u_iB(data, p)
                p += 5
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item2.batch_index_error_message = None
                else:
                    e = p + n - 1
                    item2.batch_index_error_message = data[p:e].decode("utf-8", "replace")
                    p = e
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.error_message = None
            else:
                e = p + n - 1
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                for _ in range(n):
                    tag, p = decode_unsigned_varint(data, p)
                    limit, p = decode_unsigned_varint(data, p)
                    limit += p
                    if tag == 0:
                        s = LeaderIdAndEpoch.__new__(LeaderIdAndEpoch)
                        s.leader_id, s.leader_epoch, n = _u_iiB(data, p)
                        p += 9
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.current_leader = s
                        if p > limit:
                            raise end_error("current_leader")
                    if limit > end:
                        raise end_error("PartitionProduceResponse")
                    p = limit
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        for _ in range(n):
            tag, p = decode_unsigned_varint(data, p)
            limit1, p = decode_unsigned_varint(data, p)
            limit1 += p
            if tag == 0:
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
                    item3.host = data[p:e].decode("utf-8", "replace")
                    p = e
                    item3.port, n = _u_iB(data, p)
                    p += 5
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        item3.rack = None
                    else:
                        e = p + n - 1
                        item3.rack = data[p:e].decode("utf-8", "replace")
                        p = e
                    n = data[p]
                    p += 1
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items3.append(item3)
                if p > limit1:
                    raise end_error("node_endpoints")
            if limit1 > end:
                raise end_error("ProduceResponse")
            p = limit1
    if p > end:
        raise end_error("ProduceResponse")
    return m


def _encode_response_v3(m: ProduceResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_i(len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partition_responses
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ihqq(item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms)
    out += _p_i(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v5(m: ProduceResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_i(len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partition_responses
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ihqqq(item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset)
    out += _p_i(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v8(m: ProduceResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_i(len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partition_responses
        out += _p_i(len(items1))
        for item1 in items1:
            items2 = item1.record_errors
            out += _p_ihqqqi(item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset, len(items2))
            for item2 in items2:
                out += _p_i(item2.batch_index)
                v1 = item2.batch_index_error_message
                if v1 is None:
                    out += b"\xff\xff"
                else:
                    b1 = v1.encode()
                    out += _p_h(len(b1))
                    out += b1
            v2 = item1.error_message
            if v2 is None:
                out += b"\xff\xff"
            else:
                b2 = v2.encode()
                out += _p_h(len(b2))
                out += b2
    out += _p_i(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v9(m: ProduceResponse) -> bytes:
    out = bytearray()
    items = m.responses
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
        items1 = item.partition_responses
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.record_errors
            out += _p_ihqqq(item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_i(item2.batch_index)
                v1 = item2.batch_index_error_message
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
                out += b"\x00"
            v2 = item1.error_message
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
            out += b"\x00"
        out += b"\x00"
    out += _p_ix(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v10(m: ProduceResponse) -> bytes:
    out = bytearray()
    items = m.responses
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
        items1 = item.partition_responses
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.record_errors
            out += _p_ihqqq(item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_i(item2.batch_index)
                v1 = item2.batch_index_error_message
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
                out += b"\x00"
            v2 = item1.error_message
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
            count = 0
            section = bytearray()
            t = item1.current_leader
            if t is not None and (t.leader_id != -1 or t.leader_epoch != -1):
                count += 1
                content = bytearray()
                content += _p_iix(t.leader_id, t.leader_epoch)
                section += encode_unsigned_varint(0)
                section += encode_unsigned_varint(len(content))
                section += content
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    out += _p_i(m.throttle_time_ms)
    count1 = 0
    section1 = bytearray()
    t1 = m.node_endpoints
    if t1:
        count1 += 1
        content1 = bytearray()
        items3 = t1
        n = len(items3) + 1
        if n < 128:
            content1.append(n)
        else:
            content1 += encode_unsigned_varint(n)
        for item3 in items3:
            b3 = item3.host.encode()
            content1 += _p_i(item3.node_id)
            n = len(b3) + 1
            if n < 128:
                content1.append(n)
            else:
                content1 += encode_unsigned_varint(n)
            content1 += b3
            content1 += _p_i(item3.port)
            v4 = item3.rack
            if v4 is None:
                content1 += b"\x00"
            else:
                b4 = v4.encode()
                n = len(b4) + 1
                if n < 128:
                    content1.append(n)
                else:
                    content1 += encode_unsigned_varint(n)
                content1 += b4
            content1 += b"\x00"
        section1 += encode_unsigned_varint(0)
        section1 += encode_unsigned_varint(len(content1))
        section1 += content1
    out += encode_unsigned_varint(count1)
    out += section1
    return bytes(out)


def _encode_response_v13(m: ProduceResponse) -> bytes:
    out = bytearray()
    items = m.responses
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.partition_responses
        out += _p_u(item.topic_id.bytes)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.record_errors
            out += _p_ihqqq(item1.index, item1.error_code, item1.base_offset, item1.log_append_time_ms, item1.log_start_offset)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_i(item2.batch_index)
                v = item2.batch_index_error_message
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
                out += b"\x00"
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
            count = 0
            section = bytearray()
            t = item1.current_leader
            if t is not None and (t.leader_id != -1 or t.leader_epoch != -1):
                count += 1
                content = bytearray()
                content += _p_iix(t.leader_id, t.leader_epoch)
                section += encode_unsigned_varint(0)
                section += encode_unsigned_varint(len(content))
                section += content
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    out += _p_i(m.throttle_time_ms)
    count1 = 0
    section1 = bytearray()
    t1 = m.node_endpoints
    if t1:
        count1 += 1
        content1 = bytearray()
        items3 = t1
        n = len(items3) + 1
        if n < 128:
            content1.append(n)
        else:
            content1 += encode_unsigned_varint(n)
        for item3 in items3:
            b2 = item3.host.encode()
            content1 += _p_i(item3.node_id)
            n = len(b2) + 1
            if n < 128:
                content1.append(n)
            else:
                content1 += encode_unsigned_varint(n)
            content1 += b2
            content1 += _p_i(item3.port)
            v3 = item3.rack
            if v3 is None:
                content1 += b"\x00"
            else:
                b3 = v3.encode()
                n = len(b3) + 1
                if n < 128:
                    content1.append(n)
                else:
                    content1 += encode_unsigned_varint(n)
                content1 += b3
            content1 += b"\x00"
        section1 += encode_unsigned_varint(0)
        section1 += encode_unsigned_varint(len(content1))
        section1 += content1
    out += encode_unsigned_varint(count1)
    out += section1
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ProduceResponse]]] = {
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v5,
    6: _decode_response_v5,
    7: _decode_response_v5,
    8: _decode_response_v8,
    9: _decode_response_v9,
    10: _decode_response_v10,
    11: _decode_response_v10,
    12: _decode_response_v10,
    13: _decode_response_v13,
}


_response_encoders: Final[dict[int, Callable[[ProduceResponse], bytes]]] = {
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v5,
    6: _encode_response_v5,
    7: _encode_response_v5,
    8: _encode_response_v8,
    9: _encode_response_v9,
    10: _encode_response_v10,
    11: _encode_response_v10,
    12: _encode_response_v10,
    13: _encode_response_v13,
}


def decode_response(data: bytes | memoryview, version: int) -> ProduceResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ProduceResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ProduceResponse", version) from None


def encode_response(message: ProduceResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ProduceResponse has no version {version} here")
    return encode(message)
