"""CreateAcls, API key 30, versions 1 to 3, flexible from 2.

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

API_KEY: Final = 30
MIN_VERSION: Final = 1
MAX_VERSION: Final = 3
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_b: Final = _Struct(">b").pack
_p_bb: Final = _Struct(">bb").pack
_p_bbx: Final = _Struct(">bbx").pack
_p_bh: Final = _Struct(">bh").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_u_bB: Final = _Struct(">bB").unpack_from
_u_bb: Final = _Struct(">bb").unpack_from
_u_bbB: Final = _Struct(">bbB").unpack_from
_u_bh: Final = _Struct(">bh").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from


class AclCreation(Message):
    """Part of CreateAclsRequest, versions 1-3."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.resource_pattern_type: int = resource_pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


class CreateAclsRequest(Message):
    """Body of the request, versions 1-3."""

    __slots__ = (
        "creations",
    )

    def __init__(
        self,
        *,
        creations: list[AclCreation] = EMPTY,
    ) -> None:
        self.creations: list[AclCreation] = [] if creations is EMPTY else creations


class AclCreationResult(Message):
    """Part of CreateAclsResponse, versions 1-3."""

    __slots__ = (
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class CreateAclsResponse(Message):
    """Body of the response, versions 1-3."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AclCreationResult] = [] if results is EMPTY else results


def _decode_request_v1(view: bytes | memoryview) -> CreateAclsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreateAclsRequest.__new__(CreateAclsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("creations")
    if n * 10 > end - p:
        raise count_error("creations", n)
    left -= n
    if left < 0:
        raise limit_error("creations")
    items: list[AclCreation] = []
    m.creations = items
    for _ in range(n):
        item = AclCreation.__new__(AclCreation)
        item.resource_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("resource_name")
        e = p + n
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        item.resource_pattern_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("principal")
        e = p + n
        item.principal = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("host")
        e = p + n
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.operation, item.permission_type = _u_bb(data, p)
        p += 2
        items.append(item)
    if p > end:
        raise end_error("CreateAclsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> CreateAclsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreateAclsRequest.__new__(CreateAclsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("creations")
    n -= 1
    if n * 8 > end - p:
        raise count_error("creations", n)
    left -= n
    if left < 0:
        raise limit_error("creations")
    items: list[AclCreation] = []
    m.creations = items
    for _ in range(n):
        item = AclCreation.__new__(AclCreation)
        item.resource_type, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("resource_name")
        e = p + n - 1
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        item.resource_pattern_type, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("principal")
        e = p + n - 1
        item.principal = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.operation, item.permission_type, n = _u_bbB(data, p)
        p += 3
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AclCreation")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("CreateAclsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreateAclsRequest")
    return m


def _encode_request_v1(m: CreateAclsRequest) -> bytes:
    out = bytearray()
    items = m.creations
    out += _p_i(len(items))
    for item in items:
        b = item.resource_name.encode()
        out += _p_bh(item.resource_type, len(b))
        out += b
        b1 = item.principal.encode()
        out += _p_bh(item.resource_pattern_type, len(b1))
        out += b1
        b2 = item.host.encode()
        out += _p_h(len(b2))
        out += b2
        out += _p_bb(item.operation, item.permission_type)
    return bytes(out)


def _encode_request_v2(m: CreateAclsRequest) -> bytes:
    out = bytearray()
    items = m.creations
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.resource_name.encode()
        out += _p_b(item.resource_type)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        b1 = item.principal.encode()
        out += _p_b(item.resource_pattern_type)
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        b2 = item.host.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_bbx(item.operation, item.permission_type)
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], CreateAclsRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[CreateAclsRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> CreateAclsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("CreateAclsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("CreateAclsRequest", version) from None


def encode_request(message: CreateAclsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"CreateAclsRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> CreateAclsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreateAclsResponse.__new__(CreateAclsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("results")
    if n * 4 > end - p:
        raise count_error("results", n)
    items: list[AclCreationResult] = []
    m.results = items
    for _ in range(n):
        item = AclCreationResult.__new__(AclCreationResult)
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
        raise end_error("CreateAclsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> CreateAclsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreateAclsResponse.__new__(CreateAclsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 4 > end - p:
        raise count_error("results", n)
    items: list[AclCreationResult] = []
    m.results = items
    for _ in range(n):
        item = AclCreationResult.__new__(AclCreationResult)
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
        raise end_error("CreateAclsResponse")
    return m


def _encode_response_v1(m: CreateAclsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        out += _p_h(item.error_code)
        v = item.error_message
        if v is None:
            out += b"\xff\xff"
        else:
            b = v.encode()
            out += _p_h(len(b))
            out += b
    return bytes(out)


def _encode_response_v2(m: CreateAclsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        out += _p_h(item.error_code)
        v = item.error_message
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
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], CreateAclsResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[CreateAclsResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> CreateAclsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("CreateAclsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("CreateAclsResponse", version) from None


def encode_response(message: CreateAclsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"CreateAclsResponse has no version {version} here")
    return encode(message)
