"""DescribeProducers, API key 61, versions 0 alone, flexible from 0.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from struct import pack, unpack_from
from typing import Final

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
    PACK_INT32,
    SMALL,
    UNPACK_INT32,
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
)

API_KEY: Final = 61
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_qiiqiqx: Final = _Struct(">qiiqiqx").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_qiiqiqB: Final = _Struct(">qiiqiqB").unpack_from


class TopicRequest(Message):
    """Part of DescribeProducersRequest, versions 0."""

    __slots__ = (
        "name",
        "partition_indexes",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


class DescribeProducersRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "topics",
    )

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is EMPTY else topics


class ProducerState(Message):
    """Part of DescribeProducersResponse, versions 0."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.last_sequence: int = last_sequence
        self.last_timestamp: int = last_timestamp
        self.coordinator_epoch: int = coordinator_epoch
        self.current_txn_start_offset: int = current_txn_start_offset


class PartitionResponse(Message):
    """Part of DescribeProducersResponse, versions 0."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "active_producers",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.active_producers: list[ProducerState] = [] if active_producers is EMPTY else active_producers


class TopicResponse(Message):
    """Part of DescribeProducersResponse, versions 0."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionResponse] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[PartitionResponse] = [] if partitions is EMPTY else partitions


class DescribeProducersResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TopicResponse] = [] if topics is EMPTY else topics


def _decode_request_v0(view: bytes | memoryview) -> DescribeProducersRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeProducersRequest.__new__(DescribeProducersRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partition_indexes")
        n -= 1
        if n * 4 > end - p:
            raise count_error("partition_indexes", n)
        left -= n
        if left < 0:
            raise limit_error("partition_indexes")
        item.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
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
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeProducersRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeProducersRequest")
    return m


def _encode_request_v0(m: DescribeProducersRequest) -> bytes:
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
        items1 = item.partition_indexes
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        n = len(items1)
        out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeProducersRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[DescribeProducersRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeProducersRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeProducersRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeProducersRequest", version) from None


def encode_request(message: DescribeProducersRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeProducersRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeProducersResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeProducersResponse.__new__(DescribeProducersResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[TopicResponse] = []
    m.topics = items
    for _ in range(n):
        item = TopicResponse.__new__(TopicResponse)
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
            raise null_error("partitions")
        n -= 1
        if n * 9 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionResponse] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionResponse.__new__(PartitionResponse)
            item1.partition_index, item1.error_code, n = _u_ihB(data, p)
            p += 7
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
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("active_producers")
            n -= 1
            if n * 37 > end - p:
                raise count_error("active_producers", n)
            items2: list[ProducerState] = []
            item1.active_producers = items2
            for _ in range(n):
                item2 = ProducerState.__new__(ProducerState)
                item2.producer_id, item2.producer_epoch, item2.last_sequence, item2.last_timestamp, item2.coordinator_epoch, item2.current_txn_start_offset, n = _u_qiiqiqB(data, p)
                p += 37
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
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeProducersResponse")
    return m


def _encode_response_v0(m: DescribeProducersResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(m.throttle_time_ms)
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
        items1 = item.partitions
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
            items2 = item1.active_producers
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_qiiqiqx(item2.producer_id, item2.producer_epoch, item2.last_sequence, item2.last_timestamp, item2.coordinator_epoch, item2.current_txn_start_offset)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeProducersResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[DescribeProducersResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeProducersResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeProducersResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeProducersResponse", version) from None


def encode_response(message: DescribeProducersResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeProducersResponse has no version {version} here")
    return encode(message)
