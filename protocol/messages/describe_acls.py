"""DescribeAcls, API key 29, versions 1 to 3, flexible from 2.

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

API_KEY: Final = 29
MIN_VERSION: Final = 1
MAX_VERSION: Final = 3
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_b: Final = _Struct(">b").pack
_p_bb: Final = _Struct(">bb").pack
_p_bbx: Final = _Struct(">bbx").pack
_p_bh: Final = _Struct(">bh").pack
_p_bi: Final = _Struct(">bi").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_u_bB: Final = _Struct(">bB").unpack_from
_u_bb: Final = _Struct(">bb").unpack_from
_u_bbB: Final = _Struct(">bbB").unpack_from
_u_bh: Final = _Struct(">bh").unpack_from
_u_bi: Final = _Struct(">bi").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihh: Final = _Struct(">ihh").unpack_from


class DescribeAclsRequest(Message):
    """Body of the request, versions 1-3."""

    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter: int = resource_type_filter
        self.resource_name_filter: str | None = resource_name_filter
        self.pattern_type_filter: int = pattern_type_filter
        self.principal_filter: str | None = principal_filter
        self.host_filter: str | None = host_filter
        self.operation: int = operation
        self.permission_type: int = permission_type


class AclDescription(Message):
    """Part of DescribeAclsResponse, versions 1-3."""

    __slots__ = (
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


class DescribeAclsResource(Message):
    """Part of DescribeAclsResponse, versions 1-3."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "pattern_type",
        "acls",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] = EMPTY,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.acls: list[AclDescription] = [] if acls is EMPTY else acls


class DescribeAclsResponse(Message):
    """Body of the response, versions 1-3."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "resources",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resources: list[DescribeAclsResource] = [] if resources is EMPTY else resources


def _decode_request_v1(view: bytes | memoryview) -> DescribeAclsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeAclsRequest.__new__(DescribeAclsRequest)
    m.resource_type_filter, n = _u_bh(data, p)
    p += 3
    if n < 0:
        m.resource_name_filter = None
    else:
        e = p + n
        m.resource_name_filter = data[p:e].decode("utf-8", "replace")
        p = e
    m.pattern_type_filter, n = _u_bh(data, p)
    p += 3
    if n < 0:
        m.principal_filter = None
    else:
        e = p + n
        m.principal_filter = data[p:e].decode("utf-8", "replace")
        p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.host_filter = None
    else:
        e = p + n
        m.host_filter = data[p:e].decode("utf-8", "replace")
        p = e
    m.operation, m.permission_type = _u_bb(data, p)
    p += 2
    if p > end:
        raise end_error("DescribeAclsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> DescribeAclsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeAclsRequest.__new__(DescribeAclsRequest)
    m.resource_type_filter, n = _u_bB(data, p)
    p += 2
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.resource_name_filter = None
    else:
        e = p + n - 1
        m.resource_name_filter = data[p:e].decode("utf-8", "replace")
        p = e
    m.pattern_type_filter, n = _u_bB(data, p)
    p += 2
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.principal_filter = None
    else:
        e = p + n - 1
        m.principal_filter = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.host_filter = None
    else:
        e = p + n - 1
        m.host_filter = data[p:e].decode("utf-8", "replace")
        p = e
    m.operation, m.permission_type, n = _u_bbB(data, p)
    p += 3
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeAclsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeAclsRequest")
    return m


def _encode_request_v1(m: DescribeAclsRequest) -> bytes:
    out = bytearray()
    out += _p_b(m.resource_type_filter)
    v = m.resource_name_filter
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    out += _p_b(m.pattern_type_filter)
    v1 = m.principal_filter
    if v1 is None:
        out += b"\xff\xff"
    else:
        b1 = v1.encode()
        out += _p_h(len(b1))
        out += b1
    v2 = m.host_filter
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    out += _p_bb(m.operation, m.permission_type)
    return bytes(out)


def _encode_request_v2(m: DescribeAclsRequest) -> bytes:
    out = bytearray()
    out += _p_b(m.resource_type_filter)
    v = m.resource_name_filter
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
    out += _p_b(m.pattern_type_filter)
    v1 = m.principal_filter
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
    v2 = m.host_filter
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
    out += _p_bbx(m.operation, m.permission_type)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeAclsRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[DescribeAclsRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeAclsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeAclsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeAclsRequest", version) from None


def encode_request(message: DescribeAclsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeAclsRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> DescribeAclsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeAclsResponse.__new__(DescribeAclsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihh(data, p)
    p += 8
    if n < 0:
        m.error_message = None
    else:
        e = p + n
        m.error_message = data[p:e].decode("utf-8", "replace")
        p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("resources")
    if n * 8 > end - p:
        raise count_error("resources", n)
    items: list[DescribeAclsResource] = []
    m.resources = items
    for _ in range(n):
        item = DescribeAclsResource.__new__(DescribeAclsResource)
        item.resource_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("resource_name")
        e = p + n
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        item.pattern_type, n = _u_bi(data, p)
        p += 5
        if n < 0:
            raise null_error("acls")
        if n * 6 > end - p:
            raise count_error("acls", n)
        items1: list[AclDescription] = []
        item.acls = items1
        for _ in range(n):
            item1 = AclDescription.__new__(AclDescription)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("principal")
            e = p + n
            item1.principal = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("host")
            e = p + n
            item1.host = data[p:e].decode("utf-8", "replace")
            p = e
            item1.operation, item1.permission_type = _u_bb(data, p)
            p += 2
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("DescribeAclsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> DescribeAclsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeAclsResponse.__new__(DescribeAclsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.error_message = None
    else:
        e = p + n - 1
        m.error_message = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("resources")
    n -= 1
    if n * 5 > end - p:
        raise count_error("resources", n)
    items: list[DescribeAclsResource] = []
    m.resources = items
    for _ in range(n):
        item = DescribeAclsResource.__new__(DescribeAclsResource)
        item.resource_type, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("resource_name")
        e = p + n - 1
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        item.pattern_type, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("acls")
        n -= 1
        if n * 5 > end - p:
            raise count_error("acls", n)
        items1: list[AclDescription] = []
        item.acls = items1
        for _ in range(n):
            item1 = AclDescription.__new__(AclDescription)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("principal")
            e = p + n - 1
            item1.principal = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("host")
            e = p + n - 1
            item1.host = data[p:e].decode("utf-8", "replace")
            p = e
            item1.operation, item1.permission_type, n = _u_bbB(data, p)
            p += 3
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
        raise end_error("DescribeAclsResponse")
    return m


def _encode_response_v1(m: DescribeAclsResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    v = m.error_message
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    items = m.resources
    out += _p_i(len(items))
    for item in items:
        b1 = item.resource_name.encode()
        out += _p_bh(item.resource_type, len(b1))
        out += b1
        items1 = item.acls
        out += _p_bi(item.pattern_type, len(items1))
        for item1 in items1:
            b2 = item1.principal.encode()
            out += _p_h(len(b2))
            out += b2
            b3 = item1.host.encode()
            out += _p_h(len(b3))
            out += b3
            out += _p_bb(item1.operation, item1.permission_type)
    return bytes(out)


def _encode_response_v2(m: DescribeAclsResponse) -> bytes:
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
    items = m.resources
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.resource_name.encode()
        out += _p_b(item.resource_type)
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items1 = item.acls
        out += _p_b(item.pattern_type)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b2 = item1.principal.encode()
            n = len(b2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b2
            b3 = item1.host.encode()
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
            out += _p_bbx(item1.operation, item1.permission_type)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeAclsResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[DescribeAclsResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeAclsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeAclsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeAclsResponse", version) from None


def encode_response(message: DescribeAclsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeAclsResponse has no version {version} here")
    return encode(message)
