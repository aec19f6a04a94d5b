"""DescribeLogDirs, API key 35, versions 1 to 4, flexible from 2.

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

API_KEY: Final = 35
MIN_VERSION: Final = 1
MAX_VERSION: Final = 4
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_hh: Final = _Struct(">hh").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ii: Final = _Struct(">ii").pack
_p_iqqz: Final = _Struct(">iqq?").pack
_p_iqqzx: Final = _Struct(">iqq?x").pack
_p_qqx: Final = _Struct(">qqx").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iqqz: Final = _Struct(">iqq?").unpack_from
_u_iqqzB: Final = _Struct(">iqq?B").unpack_from
_u_qqB: Final = _Struct(">qqB").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class DescribableLogDirTopic(Message):
    """Part of DescribeLogDirsRequest, versions 1-4."""

    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class DescribeLogDirsRequest(Message):
    """Body of the request, versions 1-4."""

    __slots__ = (
        "topics",
    )

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None = EMPTY,
    ) -> None:
        self.topics: list[DescribableLogDirTopic] | None = [] if topics is EMPTY else topics


class DescribeLogDirsPartition(Message):
    """Part of DescribeLogDirsResponse, versions 1-4."""

    __slots__ = (
        "partition_index",
        "partition_size",
        "offset_lag",
        "is_future_key",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_size: int = partition_size
        self.offset_lag: int = offset_lag
        self.is_future_key: bool = is_future_key


class DescribeLogDirsTopic(Message):
    """Part of DescribeLogDirsResponse, versions 1-4."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[DescribeLogDirsPartition] = [] if partitions is EMPTY else partitions


class DescribeLogDirsResult(Message):
    """Part of DescribeLogDirsResponse, versions 1-4."""

    __slots__ = (
        "error_code",
        "log_dir",
        "topics",
        "total_bytes",
        "usable_bytes",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = EMPTY,
        total_bytes: int = -1,  # versions 4
        usable_bytes: int = -1,  # versions 4
    ) -> None:
        self.error_code: int = error_code
        self.log_dir: str = log_dir
        self.topics: list[DescribeLogDirsTopic] = [] if topics is EMPTY else topics
        self.total_bytes: int = total_bytes
        self.usable_bytes: int = usable_bytes


class DescribeLogDirsResponse(Message):
    """Body of the response, versions 1-4."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # versions 3-4
        results: list[DescribeLogDirsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results: list[DescribeLogDirsResult] = [] if results is EMPTY else results


def _decode_request_v1(view: bytes | memoryview) -> DescribeLogDirsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeLogDirsRequest.__new__(DescribeLogDirsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        m.topics = None
    else:
        if n * 6 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[DescribableLogDirTopic] = []
        m.topics = items
        for _ in range(n):
            item = DescribableLogDirTopic.__new__(DescribableLogDirTopic)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("topic")
            e = p + n
            item.topic = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("partitions")
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items.append(item)
    if p > end:
        raise end_error("DescribeLogDirsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> DescribeLogDirsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeLogDirsRequest.__new__(DescribeLogDirsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topics = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[DescribableLogDirTopic] = []
        m.topics = items
        for _ in range(n):
            item = DescribableLogDirTopic.__new__(DescribableLogDirTopic)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("topic")
            e = p + n - 1
            item.topic = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
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
            item.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("DescribableLogDirTopic")
                p = skip_fields(data, p, n)
            items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeLogDirsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeLogDirsRequest")
    return m


def _encode_request_v1(m: DescribeLogDirsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            b = item.topic.encode()
            out += _p_h(len(b))
            out += b
            items1 = item.partitions
            out += _p_i(len(items1))
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
    return bytes(out)


def _encode_request_v2(m: DescribeLogDirsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            b = item.topic.encode()
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
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
            out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeLogDirsRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[DescribeLogDirsRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeLogDirsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeLogDirsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeLogDirsRequest", version) from None


def encode_request(message: DescribeLogDirsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeLogDirsRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> DescribeLogDirsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeLogDirsResponse.__new__(DescribeLogDirsResponse)
    m.error_code = 0
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("results")
    if n * 8 > end - p:
        raise count_error("results", n)
    items: list[DescribeLogDirsResult] = []
    m.results = items
    for _ in range(n):
        item = DescribeLogDirsResult.__new__(DescribeLogDirsResult)
        item.total_bytes = -1
        item.usable_bytes = -1
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("log_dir")
        e = p + n
        item.log_dir = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("topics")
        if n * 6 > end - p:
            raise count_error("topics", n)
        items1: list[DescribeLogDirsTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = DescribeLogDirsTopic.__new__(DescribeLogDirsTopic)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("name")
            e = p + n
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("partitions")
            if n * 21 > end - p:
                raise count_error("partitions", n)
            items2: list[DescribeLogDirsPartition] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = DescribeLogDirsPartition.__new__(DescribeLogDirsPartition)
                item2.partition_index, item2.partition_size, item2.offset_lag, item2.is_future_key = _u_iqqz(data, p)
                p += 21
                items2.append(item2)
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("DescribeLogDirsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> DescribeLogDirsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeLogDirsResponse.__new__(DescribeLogDirsResponse)
    m.error_code = 0
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 5 > end - p:
        raise count_error("results", n)
    items: list[DescribeLogDirsResult] = []
    m.results = items
    for _ in range(n):
        item = DescribeLogDirsResult.__new__(DescribeLogDirsResult)
        item.total_bytes = -1
        item.usable_bytes = -1
        item.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("log_dir")
        e = p + n - 1
        item.log_dir = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topics")
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        items1: list[DescribeLogDirsTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = DescribeLogDirsTopic.__new__(DescribeLogDirsTopic)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 22 > end - p:
                raise count_error("partitions", n)
            items2: list[DescribeLogDirsPartition] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = DescribeLogDirsPartition.__new__(DescribeLogDirsPartition)
                item2.partition_index, item2.partition_size, item2.offset_lag, item2.is_future_key, n = _u_iqqzB(data, p)
                p += 22
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
        raise end_error("DescribeLogDirsResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> DescribeLogDirsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeLogDirsResponse.__new__(DescribeLogDirsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 5 > end - p:
        raise count_error("results", n)
    items: list[DescribeLogDirsResult] = []
    m.results = items
    for _ in range(n):
        item = DescribeLogDirsResult.__new__(DescribeLogDirsResult)
        item.total_bytes = -1
        item.usable_bytes = -1
        item.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("log_dir")
        e = p + n - 1
        item.log_dir = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topics")
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        items1: list[DescribeLogDirsTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = DescribeLogDirsTopic.__new__(DescribeLogDirsTopic)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 22 > end - p:
                raise count_error("partitions", n)
            items2: list[DescribeLogDirsPartition] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = DescribeLogDirsPartition.__new__(DescribeLogDirsPartition)
                item2.partition_index, item2.partition_size, item2.offset_lag, item2.is_future_key, n = _u_iqqzB(data, p)
                p += 22
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
        raise end_error("DescribeLogDirsResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> DescribeLogDirsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeLogDirsResponse.__new__(DescribeLogDirsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 21 > end - p:
        raise count_error("results", n)
    items: list[DescribeLogDirsResult] = []
    m.results = items
    for _ in range(n):
        item = DescribeLogDirsResult.__new__(DescribeLogDirsResult)
        item.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("log_dir")
        e = p + n - 1
        item.log_dir = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topics")
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        items1: list[DescribeLogDirsTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = DescribeLogDirsTopic.__new__(DescribeLogDirsTopic)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 22 > end - p:
                raise count_error("partitions", n)
            items2: list[DescribeLogDirsPartition] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = DescribeLogDirsPartition.__new__(DescribeLogDirsPartition)
                item2.partition_index, item2.partition_size, item2.offset_lag, item2.is_future_key, n = _u_iqqzB(data, p)
                p += 22
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
        item.total_bytes, item.usable_bytes, n = _u_qqB(data, p)
        p += 17
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
        raise end_error("DescribeLogDirsResponse")
    return m


def _encode_response_v1(m: DescribeLogDirsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.log_dir.encode()
        out += _p_hh(item.error_code, len(b))
        out += b
        items1 = item.topics
        out += _p_i(len(items1))
        for item1 in items1:
            b1 = item1.name.encode()
            out += _p_h(len(b1))
            out += b1
            items2 = item1.partitions
            out += _p_i(len(items2))
            for item2 in items2:
                out += _p_iqqz(item2.partition_index, item2.partition_size, item2.offset_lag, item2.is_future_key)
    return bytes(out)


def _encode_response_v2(m: DescribeLogDirsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.log_dir.encode()
        out += _p_h(item.error_code)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b1 = item1.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items2 = item1.partitions
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqqzx(item2.partition_index, item2.partition_size, item2.offset_lag, item2.is_future_key)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v3(m: DescribeLogDirsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.log_dir.encode()
        out += _p_h(item.error_code)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b1 = item1.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items2 = item1.partitions
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqqzx(item2.partition_index, item2.partition_size, item2.offset_lag, item2.is_future_key)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v4(m: DescribeLogDirsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.log_dir.encode()
        out += _p_h(item.error_code)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b1 = item1.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items2 = item1.partitions
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqqzx(item2.partition_index, item2.partition_size, item2.offset_lag, item2.is_future_key)
            out += b"\x00"
        out += _p_qqx(item.total_bytes, item.usable_bytes)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeLogDirsResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v3,
    4: _decode_response_v4,
}


_response_encoders: Final[dict[int, Callable[[DescribeLogDirsResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v3,
    4: _encode_response_v4,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeLogDirsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeLogDirsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeLogDirsResponse", version) from None


def encode_response(message: DescribeLogDirsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeLogDirsResponse has no version {version} here")
    return encode(message)
