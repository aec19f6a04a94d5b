"""CreatePartitions, API key 37, versions 0 to 3, flexible from 2.

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

API_KEY: Final = 37
MIN_VERSION: Final = 0
MAX_VERSION: Final = 3
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_iz: Final = _Struct(">i?").pack
_p_izx: Final = _Struct(">i?x").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iz: Final = _Struct(">i?").unpack_from
_u_izB: Final = _Struct(">i?B").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class CreatePartitionsAssignment(Message):
    """Part of CreatePartitionsRequest, versions 0-3."""

    __slots__ = (
        "broker_ids",
    )

    def __init__(
        self,
        *,
        broker_ids: list[int] = EMPTY,
    ) -> None:
        self.broker_ids: list[int] = [] if broker_ids is EMPTY else broker_ids


class CreatePartitionsTopic(Message):
    """Part of CreatePartitionsRequest, versions 0-3."""

    __slots__ = (
        "name",
        "count",
        "assignments",
    )

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = EMPTY,
    ) -> None:
        self.name: str = name
        self.count: int = count
        self.assignments: list[CreatePartitionsAssignment] | None = [] if assignments is EMPTY else assignments


class CreatePartitionsRequest(Message):
    """Body of the request, versions 0-3."""

    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] = EMPTY,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only


class CreatePartitionsTopicResult(Message):
    """Part of CreatePartitionsResponse, versions 0-3."""

    __slots__ = (
        "name",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name: str = name
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class CreatePartitionsResponse(Message):
    """Body of the response, versions 0-3."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[CreatePartitionsTopicResult] = [] if results is EMPTY else results


def _decode_request_v0(view: bytes | memoryview) -> CreatePartitionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreatePartitionsRequest.__new__(CreatePartitionsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 10 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[CreatePartitionsTopic] = []
    m.topics = items
    for _ in range(n):
        item = CreatePartitionsTopic.__new__(CreatePartitionsTopic)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.count, n = _u_ii(data, p)
        p += 8
        if n < 0:
            item.assignments = None
        else:
            if n * 4 > end - p:
                raise count_error("assignments", n)
            left -= n
            if left < 0:
                raise limit_error("assignments")
            items1: list[CreatePartitionsAssignment] = []
            item.assignments = items1
            for _ in range(n):
                item1 = CreatePartitionsAssignment.__new__(CreatePartitionsAssignment)
                n, = _u_i(data, p)
                p += 4
                if n < 0:
                    raise null_error("broker_ids")
                if n * 4 > end - p:
                    raise count_error("broker_ids", n)
                left -= n
                if left < 0:
                    raise limit_error("broker_ids")
                item1.broker_ids = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                items1.append(item1)
        items.append(item)
    m.timeout_ms, m.validate_only = _u_iz(data, p)
    p += 5
    if p > end:
        raise end_error("CreatePartitionsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> CreatePartitionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreatePartitionsRequest.__new__(CreatePartitionsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 7 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[CreatePartitionsTopic] = []
    m.topics = items
    for _ in range(n):
        item = CreatePartitionsTopic.__new__(CreatePartitionsTopic)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.count, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.assignments = None
        else:
            n -= 1
            if n * 2 > end - p:
                raise count_error("assignments", n)
            left -= n
            if left < 0:
                raise limit_error("assignments")
            items1: list[CreatePartitionsAssignment] = []
            item.assignments = items1
            for _ in range(n):
                item1 = CreatePartitionsAssignment.__new__(CreatePartitionsAssignment)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("broker_ids")
                n -= 1
                if n * 4 > end - p:
                    raise count_error("broker_ids", n)
                left -= n
                if left < 0:
                    raise limit_error("broker_ids")
                item1.broker_ids = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("CreatePartitionsAssignment")
                    p = skip_fields(data, p, n)
                items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("CreatePartitionsTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    m.timeout_ms, m.validate_only, n = _u_izB(data, p)
    p += 6
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("CreatePartitionsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreatePartitionsRequest")
    return m


def _encode_request_v0(m: CreatePartitionsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.assignments
        out += _p_i(item.count)
        if items1 is None:
            out += _NULL_INT32
        else:
            out += _p_i(len(items1))
            for item1 in items1:
                items2 = item1.broker_ids
                out += _p_i(len(items2))
                n = len(items2)
                out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
    out += _p_iz(m.timeout_ms, m.validate_only)
    return bytes(out)


def _encode_request_v2(m: CreatePartitionsRequest) -> bytes:
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
        items1 = item.assignments
        out += _p_i(item.count)
        if items1 is None:
            out += b"\x00"
        else:
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item1 in items1:
                items2 = item1.broker_ids
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items2)
                out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
                out += b"\x00"
        out += b"\x00"
    out += _p_izx(m.timeout_ms, m.validate_only)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], CreatePartitionsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
    3: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[CreatePartitionsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
    3: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> CreatePartitionsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("CreatePartitionsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("CreatePartitionsRequest", version) from None


def encode_request(message: CreatePartitionsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"CreatePartitionsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> CreatePartitionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreatePartitionsResponse.__new__(CreatePartitionsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("results")
    if n * 6 > end - p:
        raise count_error("results", n)
    items: list[CreatePartitionsTopicResult] = []
    m.results = items
    for _ in range(n):
        item = CreatePartitionsTopicResult.__new__(CreatePartitionsTopicResult)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            item.error_message = None
        else:
            e = p + n
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    if p > end:
        raise end_error("CreatePartitionsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> CreatePartitionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreatePartitionsResponse.__new__(CreatePartitionsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 5 > end - p:
        raise count_error("results", n)
    items: list[CreatePartitionsTopicResult] = []
    m.results = items
    for _ in range(n):
        item = CreatePartitionsTopicResult.__new__(CreatePartitionsTopicResult)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.error_message = None
        else:
            e = p + n - 1
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
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
        raise end_error("CreatePartitionsResponse")
    return m


def _encode_response_v0(m: CreatePartitionsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        out += _p_h(item.error_code)
        v1 = item.error_message
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    return bytes(out)


def _encode_response_v2(m: CreatePartitionsResponse) -> bytes:
    out = bytearray()
    items = m.results
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
        out += _p_h(item.error_code)
        v1 = item.error_message
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
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], CreatePartitionsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
    3: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[CreatePartitionsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
    3: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> CreatePartitionsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("CreatePartitionsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("CreatePartitionsResponse", version) from None


def encode_response(message: CreatePartitionsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"CreatePartitionsResponse has no version {version} here")
    return encode(message)
