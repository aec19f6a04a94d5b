"""AlterReplicaLogDirs, API key 34, versions 1 to 2, flexible from 2.

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

API_KEY: Final = 34
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihx: Final = _Struct(">ihx").pack
_p_ii: Final = _Struct(">ii").pack
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from


class AlterReplicaLogDirTopic(Message):
    """Part of AlterReplicaLogDirsRequest, versions 1-2."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class AlterReplicaLogDir(Message):
    """Part of AlterReplicaLogDirsRequest, versions 1-2."""

    __slots__ = (
        "path",
        "topics",
    )

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = EMPTY,
    ) -> None:
        self.path: str = path
        self.topics: list[AlterReplicaLogDirTopic] = [] if topics is EMPTY else topics


class AlterReplicaLogDirsRequest(Message):
    """Body of the request, versions 1-2."""

    __slots__ = (
        "dirs",
    )

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] = EMPTY,
    ) -> None:
        self.dirs: list[AlterReplicaLogDir] = [] if dirs is EMPTY else dirs


class AlterReplicaLogDirPartitionResult(Message):
    """Part of AlterReplicaLogDirsResponse, versions 1-2."""

    __slots__ = (
        "partition_index",
        "error_code",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class AlterReplicaLogDirTopicResult(Message):
    """Part of AlterReplicaLogDirsResponse, versions 1-2."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterReplicaLogDirPartitionResult] = [] if partitions is EMPTY else partitions


class AlterReplicaLogDirsResponse(Message):
    """Body of the response, versions 1-2."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterReplicaLogDirTopicResult] = [] if results is EMPTY else results


def _decode_request_v1(view: bytes | memoryview) -> AlterReplicaLogDirsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterReplicaLogDirsRequest.__new__(AlterReplicaLogDirsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("dirs")
    if n * 6 > end - p:
        raise count_error("dirs", n)
    left -= n
    if left < 0:
        raise limit_error("dirs")
    items: list[AlterReplicaLogDir] = []
    m.dirs = items
    for _ in range(n):
        item = AlterReplicaLogDir.__new__(AlterReplicaLogDir)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("path")
        e = p + n
        item.path = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("topics")
        if n * 6 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items1: list[AlterReplicaLogDirTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = AlterReplicaLogDirTopic.__new__(AlterReplicaLogDirTopic)
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
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item1.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("AlterReplicaLogDirsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> AlterReplicaLogDirsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterReplicaLogDirsRequest.__new__(AlterReplicaLogDirsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("dirs")
    n -= 1
    if n * 3 > end - p:
        raise count_error("dirs", n)
    left -= n
    if left < 0:
        raise limit_error("dirs")
    items: list[AlterReplicaLogDir] = []
    m.dirs = items
    for _ in range(n):
        item = AlterReplicaLogDir.__new__(AlterReplicaLogDir)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("path")
        e = p + n - 1
        item.path = data[p:e].decode("utf-8", "replace")
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
        left -= n
        if left < 0:
            raise limit_error("topics")
        items1: list[AlterReplicaLogDirTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = AlterReplicaLogDirTopic.__new__(AlterReplicaLogDirTopic)
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
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item1.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AlterReplicaLogDirTopic")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AlterReplicaLogDir")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AlterReplicaLogDirsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AlterReplicaLogDirsRequest")
    return m


def _encode_request_v1(m: AlterReplicaLogDirsRequest) -> bytes:
    out = bytearray()
    items = m.dirs
    out += _p_i(len(items))
    for item in items:
        b = item.path.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.topics
        out += _p_i(len(items1))
        for item1 in items1:
            b1 = item1.name.encode()
            out += _p_h(len(b1))
            out += b1
            items2 = item1.partitions
            out += _p_i(len(items2))
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
    return bytes(out)


def _encode_request_v2(m: AlterReplicaLogDirsRequest) -> bytes:
    out = bytearray()
    items = m.dirs
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.path.encode()
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
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterReplicaLogDirsRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[AlterReplicaLogDirsRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> AlterReplicaLogDirsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AlterReplicaLogDirsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterReplicaLogDirsRequest", version) from None


def encode_request(message: AlterReplicaLogDirsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterReplicaLogDirsRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> AlterReplicaLogDirsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterReplicaLogDirsResponse.__new__(AlterReplicaLogDirsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("results")
    if n * 6 > end - p:
        raise count_error("results", n)
    items: list[AlterReplicaLogDirTopicResult] = []
    m.results = items
    for _ in range(n):
        item = AlterReplicaLogDirTopicResult.__new__(AlterReplicaLogDirTopicResult)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic_name")
        e = p + n
        item.topic_name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 6 > end - p:
            raise count_error("partitions", n)
        items1: list[AlterReplicaLogDirPartitionResult] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AlterReplicaLogDirPartitionResult.__new__(AlterReplicaLogDirPartitionResult)
            item1.partition_index, item1.error_code = _u_ih(data, p)
            p += 6
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("AlterReplicaLogDirsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> AlterReplicaLogDirsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterReplicaLogDirsResponse.__new__(AlterReplicaLogDirsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 3 > end - p:
        raise count_error("results", n)
    items: list[AlterReplicaLogDirTopicResult] = []
    m.results = items
    for _ in range(n):
        item = AlterReplicaLogDirTopicResult.__new__(AlterReplicaLogDirTopicResult)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        item.topic_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 7 > end - p:
            raise count_error("partitions", n)
        items1: list[AlterReplicaLogDirPartitionResult] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AlterReplicaLogDirPartitionResult.__new__(AlterReplicaLogDirPartitionResult)
            item1.partition_index, item1.error_code, n = _u_ihB(data, p)
            p += 7
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
        raise end_error("AlterReplicaLogDirsResponse")
    return m


def _encode_response_v1(m: AlterReplicaLogDirsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.topic_name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ih(item1.partition_index, item1.error_code)
    return bytes(out)


def _encode_response_v2(m: AlterReplicaLogDirsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.topic_name.encode()
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
            out += _p_ihx(item1.partition_index, item1.error_code)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterReplicaLogDirsResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[AlterReplicaLogDirsResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> AlterReplicaLogDirsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AlterReplicaLogDirsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterReplicaLogDirsResponse", version) from None


def encode_response(message: AlterReplicaLogDirsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterReplicaLogDirsResponse has no version {version} here")
    return encode(message)
