"""DeleteGroups, API key 42, versions 0 to 2, flexible from 2.

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

API_KEY: Final = 42
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_hx: Final = _Struct(">hx").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from


class DeleteGroupsRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "groups_names",
    )

    def __init__(
        self,
        *,
        groups_names: list[str] = EMPTY,
    ) -> None:
        self.groups_names: list[str] = [] if groups_names is EMPTY else groups_names


class DeletableGroupResult(Message):
    """Part of DeleteGroupsResponse, versions 0-2."""

    __slots__ = (
        "group_id",
        "error_code",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
    ) -> None:
        self.group_id: str = group_id
        self.error_code: int = error_code


class DeleteGroupsResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DeletableGroupResult] = [] if results is EMPTY else results


def _decode_request_v0(view: bytes | memoryview) -> DeleteGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteGroupsRequest.__new__(DeleteGroupsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("groups_names")
    if n * 2 > end - p:
        raise count_error("groups_names", n)
    left -= n
    if left < 0:
        raise limit_error("groups_names")
    items: list[str] = []
    m.groups_names = items
    for _ in range(n):
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("item")
        e = p + n
        item = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    if p > end:
        raise end_error("DeleteGroupsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> DeleteGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteGroupsRequest.__new__(DeleteGroupsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups_names")
    n -= 1
    if n > end - p:
        raise count_error("groups_names", n)
    left -= n
    if left < 0:
        raise limit_error("groups_names")
    items: list[str] = []
    m.groups_names = items
    for _ in range(n):
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("item")
        e = p + n - 1
        item = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DeleteGroupsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DeleteGroupsRequest")
    return m


def _encode_request_v0(m: DeleteGroupsRequest) -> bytes:
    out = bytearray()
    items = m.groups_names
    out += _p_i(len(items))
    for item in items:
        b = item.encode()
        out += _p_h(len(b))
        out += b
    return bytes(out)


def _encode_request_v2(m: DeleteGroupsRequest) -> bytes:
    out = bytearray()
    items = m.groups_names
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteGroupsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[DeleteGroupsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> DeleteGroupsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DeleteGroupsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteGroupsRequest", version) from None


def encode_request(message: DeleteGroupsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteGroupsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DeleteGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteGroupsResponse.__new__(DeleteGroupsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("results")
    if n * 4 > end - p:
        raise count_error("results", n)
    items: list[DeletableGroupResult] = []
    m.results = items
    for _ in range(n):
        item = DeletableGroupResult.__new__(DeletableGroupResult)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("group_id")
        e = p + n
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        item.error_code, = _u_h(data, p)
        p += 2
        items.append(item)
    if p > end:
        raise end_error("DeleteGroupsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> DeleteGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteGroupsResponse.__new__(DeleteGroupsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 4 > end - p:
        raise count_error("results", n)
    items: list[DeletableGroupResult] = []
    m.results = items
    for _ in range(n):
        item = DeletableGroupResult.__new__(DeletableGroupResult)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        item.error_code, n = _u_hB(data, p)
        p += 3
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
        raise end_error("DeleteGroupsResponse")
    return m


def _encode_response_v0(m: DeleteGroupsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.group_id.encode()
        out += _p_h(len(b))
        out += b
        out += _p_h(item.error_code)
    return bytes(out)


def _encode_response_v2(m: DeleteGroupsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_hx(item.error_code)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteGroupsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[DeleteGroupsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> DeleteGroupsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DeleteGroupsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteGroupsResponse", version) from None


def encode_response(message: DeleteGroupsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteGroupsResponse has no version {version} here")
    return encode(message)
