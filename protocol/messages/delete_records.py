"""DeleteRecords, API key 21, versions 0 to 2, flexible from 2.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
)

API_KEY: Final = 21
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_iq: Final = _Struct(">iq").pack
_p_iqh: Final = _Struct(">iqh").pack
_p_iqhx: Final = _Struct(">iqhx").pack
_p_iqx: Final = _Struct(">iqx").pack
_p_ix: Final = _Struct(">ix").pack
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iq: Final = _Struct(">iq").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_iqh: Final = _Struct(">iqh").unpack_from
_u_iqhB: Final = _Struct(">iqhB").unpack_from


class DeleteRecordsPartition(Message):
    """Part of DeleteRecordsRequest, versions 0-2."""

    __slots__ = (
        "partition_index",
        "offset",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.offset: int = offset


class DeleteRecordsTopic(Message):
    """Part of DeleteRecordsRequest, versions 0-2."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartition] = [] if partitions is EMPTY else partitions


class DeleteRecordsRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "topics",
        "timeout_ms",
    )

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms


class DeleteRecordsPartitionResult(Message):
    """Part of DeleteRecordsResponse, versions 0-2."""

    __slots__ = (
        "partition_index",
        "low_watermark",
        "error_code",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.low_watermark: int = low_watermark
        self.error_code: int = error_code


class DeleteRecordsTopicResult(Message):
    """Part of DeleteRecordsResponse, versions 0-2."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartitionResult] = [] if partitions is EMPTY else partitions


class DeleteRecordsResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DeleteRecordsTopicResult] = [] if topics is EMPTY else topics


def _decode_request_v0(view: bytes | memoryview) -> DeleteRecordsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteRecordsRequest.__new__(DeleteRecordsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[DeleteRecordsTopic] = []
    m.topics = items
    for _ in range(n):
        item = DeleteRecordsTopic.__new__(DeleteRecordsTopic)
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
            raise null_error("partitions")
        if n * 12 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[DeleteRecordsPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DeleteRecordsPartition.__new__(DeleteRecordsPartition)
            item1.partition_index, item1.offset = _u_iq(data, p)
            p += 12
            items1.append(item1)
        items.append(item)
    m.timeout_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("DeleteRecordsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> DeleteRecordsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteRecordsRequest.__new__(DeleteRecordsRequest)
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
    items: list[DeleteRecordsTopic] = []
    m.topics = items
    for _ in range(n):
        item = DeleteRecordsTopic.__new__(DeleteRecordsTopic)
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
        if n * 13 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[DeleteRecordsPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DeleteRecordsPartition.__new__(DeleteRecordsPartition)
            item1.partition_index, item1.offset, n = _u_iqB(data, p)
            p += 13
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("DeleteRecordsPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DeleteRecordsTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DeleteRecordsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DeleteRecordsRequest")
    return m


def _encode_request_v0(m: DeleteRecordsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iq(item1.partition_index, item1.offset)
    out += _p_i(m.timeout_ms)
    return bytes(out)


def _encode_request_v2(m: DeleteRecordsRequest) -> bytes:
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
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_iqx(item1.partition_index, item1.offset)
        out += b"\x00"
    out += _p_ix(m.timeout_ms)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteRecordsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[DeleteRecordsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> DeleteRecordsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DeleteRecordsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteRecordsRequest", version) from None


def encode_request(message: DeleteRecordsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteRecordsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DeleteRecordsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteRecordsResponse.__new__(DeleteRecordsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[DeleteRecordsTopicResult] = []
    m.topics = items
    for _ in range(n):
        item = DeleteRecordsTopicResult.__new__(DeleteRecordsTopicResult)
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
            raise null_error("partitions")
        if n * 14 > end - p:
            raise count_error("partitions", n)
        items1: list[DeleteRecordsPartitionResult] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DeleteRecordsPartitionResult.__new__(DeleteRecordsPartitionResult)
            item1.partition_index, item1.low_watermark, item1.error_code = _u_iqh(data, p)
            p += 14
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("DeleteRecordsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> DeleteRecordsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteRecordsResponse.__new__(DeleteRecordsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[DeleteRecordsTopicResult] = []
    m.topics = items
    for _ in range(n):
        item = DeleteRecordsTopicResult.__new__(DeleteRecordsTopicResult)
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
        if n * 15 > end - p:
            raise count_error("partitions", n)
        items1: list[DeleteRecordsPartitionResult] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DeleteRecordsPartitionResult.__new__(DeleteRecordsPartitionResult)
            item1.partition_index, item1.low_watermark, item1.error_code, n = _u_iqhB(data, p)
            p += 15
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
        raise end_error("DeleteRecordsResponse")
    return m


def _encode_response_v0(m: DeleteRecordsResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iqh(item1.partition_index, item1.low_watermark, item1.error_code)
    return bytes(out)


def _encode_response_v2(m: DeleteRecordsResponse) -> bytes:
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
            out += _p_iqhx(item1.partition_index, item1.low_watermark, item1.error_code)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteRecordsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[DeleteRecordsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> DeleteRecordsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DeleteRecordsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteRecordsResponse", version) from None


def encode_response(message: DeleteRecordsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteRecordsResponse has no version {version} here")
    return encode(message)
