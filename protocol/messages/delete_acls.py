"""DeleteAcls, API key 31, versions 1 to 3, flexible from 2.

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

API_KEY: Final = 31
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


class DeleteAclsFilter(Message):
    """Part of DeleteAclsRequest, versions 1-3."""

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


class DeleteAclsRequest(Message):
    """Body of the request, versions 1-3."""

    __slots__ = (
        "filters",
    )

    def __init__(
        self,
        *,
        filters: list[DeleteAclsFilter] = EMPTY,
    ) -> None:
        self.filters: list[DeleteAclsFilter] = [] if filters is EMPTY else filters


class DeleteAclsMatchingAcl(Message):
    """Part of DeleteAclsResponse, versions 1-3."""

    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


class DeleteAclsFilterResult(Message):
    """Part of DeleteAclsResponse, versions 1-3."""

    __slots__ = (
        "error_code",
        "error_message",
        "matching_acls",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.matching_acls: list[DeleteAclsMatchingAcl] = [] if matching_acls is EMPTY else matching_acls


class DeleteAclsResponse(Message):
    """Body of the response, versions 1-3."""

    __slots__ = (
        "throttle_time_ms",
        "filter_results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.filter_results: list[DeleteAclsFilterResult] = [] if filter_results is EMPTY else filter_results


def _decode_request_v1(view: bytes | memoryview) -> DeleteAclsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteAclsRequest.__new__(DeleteAclsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("filters")
    if n * 10 > end - p:
        raise count_error("filters", n)
    left -= n
    if left < 0:
        raise limit_error("filters")
    items: list[DeleteAclsFilter] = []
    m.filters = items
    for _ in range(n):
        item = DeleteAclsFilter.__new__(DeleteAclsFilter)
        item.resource_type_filter, n = _u_bh(data, p)
        p += 3
        if n < 0:
            item.resource_name_filter = None
        else:
            e = p + n
            item.resource_name_filter = data[p:e].decode("utf-8", "replace")
            p = e
        item.pattern_type_filter, n = _u_bh(data, p)
        p += 3
        if n < 0:
            item.principal_filter = None
        else:
            e = p + n
            item.principal_filter = data[p:e].decode("utf-8", "replace")
            p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            item.host_filter = None
        else:
            e = p + n
            item.host_filter = data[p:e].decode("utf-8", "replace")
            p = e
        item.operation, item.permission_type = _u_bb(data, p)
        p += 2
        items.append(item)
    if p > end:
        raise end_error("DeleteAclsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> DeleteAclsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteAclsRequest.__new__(DeleteAclsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("filters")
    n -= 1
    if n * 8 > end - p:
        raise count_error("filters", n)
    left -= n
    if left < 0:
        raise limit_error("filters")
    items: list[DeleteAclsFilter] = []
    m.filters = items
    for _ in range(n):
        item = DeleteAclsFilter.__new__(DeleteAclsFilter)
        item.resource_type_filter, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.resource_name_filter = None
        else:
            e = p + n - 1
            item.resource_name_filter = data[p:e].decode("utf-8", "replace")
            p = e
        item.pattern_type_filter, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.principal_filter = None
        else:
            e = p + n - 1
            item.principal_filter = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.host_filter = None
        else:
            e = p + n - 1
            item.host_filter = data[p:e].decode("utf-8", "replace")
            p = e
        item.operation, item.permission_type, n = _u_bbB(data, p)
        p += 3
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DeleteAclsFilter")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DeleteAclsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DeleteAclsRequest")
    return m


def _encode_request_v1(m: DeleteAclsRequest) -> bytes:
    out = bytearray()
    items = m.filters
    out += _p_i(len(items))
    for item in items:
        out += _p_b(item.resource_type_filter)
        v = item.resource_name_filter
        if v is None:
            out += b"\xff\xff"
        else:
            b = v.encode()
            out += _p_h(len(b))
            out += b
        out += _p_b(item.pattern_type_filter)
        v1 = item.principal_filter
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
        v2 = item.host_filter
        if v2 is None:
            out += b"\xff\xff"
        else:
            b2 = v2.encode()
            out += _p_h(len(b2))
            out += b2
        out += _p_bb(item.operation, item.permission_type)
    return bytes(out)


def _encode_request_v2(m: DeleteAclsRequest) -> bytes:
    out = bytearray()
    items = m.filters
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        out += _p_b(item.resource_type_filter)
        v = item.resource_name_filter
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
        out += _p_b(item.pattern_type_filter)
        v1 = item.principal_filter
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
        v2 = item.host_filter
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
        out += _p_bbx(item.operation, item.permission_type)
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteAclsRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[DeleteAclsRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> DeleteAclsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DeleteAclsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteAclsRequest", version) from None


def encode_request(message: DeleteAclsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteAclsRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> DeleteAclsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteAclsResponse.__new__(DeleteAclsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("filter_results")
    if n * 8 > end - p:
        raise count_error("filter_results", n)
    items: list[DeleteAclsFilterResult] = []
    m.filter_results = items
    for _ in range(n):
        item = DeleteAclsFilterResult.__new__(DeleteAclsFilterResult)
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            item.error_message = None
        else:
            e = p + n
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("matching_acls")
        if n * 14 > end - p:
            raise count_error("matching_acls", n)
        items1: list[DeleteAclsMatchingAcl] = []
        item.matching_acls = items1
        for _ in range(n):
            item1 = DeleteAclsMatchingAcl.__new__(DeleteAclsMatchingAcl)
            item1.error_code, n = _u_hh(data, p)
            p += 4
            if n < 0:
                item1.error_message = None
            else:
                e = p + n
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            item1.resource_type, n = _u_bh(data, p)
            p += 3
            if n < 0:
                raise null_error("resource_name")
            e = p + n
            item1.resource_name = data[p:e].decode("utf-8", "replace")
            p = e
            item1.pattern_type, n = _u_bh(data, p)
            p += 3
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
        raise end_error("DeleteAclsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> DeleteAclsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteAclsResponse.__new__(DeleteAclsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("filter_results")
    n -= 1
    if n * 5 > end - p:
        raise count_error("filter_results", n)
    items: list[DeleteAclsFilterResult] = []
    m.filter_results = items
    for _ in range(n):
        item = DeleteAclsFilterResult.__new__(DeleteAclsFilterResult)
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("matching_acls")
        n -= 1
        if n * 11 > end - p:
            raise count_error("matching_acls", n)
        items1: list[DeleteAclsMatchingAcl] = []
        item.matching_acls = items1
        for _ in range(n):
            item1 = DeleteAclsMatchingAcl.__new__(DeleteAclsMatchingAcl)
            item1.error_code, n = _u_hB(data, p)
            p += 3
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.error_message = None
            else:
                e = p + n - 1
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            item1.resource_type, n = _u_bB(data, p)
            p += 2
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("resource_name")
            e = p + n - 1
            item1.resource_name = data[p:e].decode("utf-8", "replace")
            p = e
            item1.pattern_type, n = _u_bB(data, p)
            p += 2
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
        raise end_error("DeleteAclsResponse")
    return m


def _encode_response_v1(m: DeleteAclsResponse) -> bytes:
    out = bytearray()
    items = m.filter_results
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
        items1 = item.matching_acls
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_h(item1.error_code)
            v1 = item1.error_message
            if v1 is None:
                out += b"\xff\xff"
            else:
                b1 = v1.encode()
                out += _p_h(len(b1))
                out += b1
            b2 = item1.resource_name.encode()
            out += _p_bh(item1.resource_type, len(b2))
            out += b2
            b3 = item1.principal.encode()
            out += _p_bh(item1.pattern_type, len(b3))
            out += b3
            b4 = item1.host.encode()
            out += _p_h(len(b4))
            out += b4
            out += _p_bb(item1.operation, item1.permission_type)
    return bytes(out)


def _encode_response_v2(m: DeleteAclsResponse) -> bytes:
    out = bytearray()
    items = m.filter_results
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
        items1 = item.matching_acls
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_h(item1.error_code)
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
            b2 = item1.resource_name.encode()
            out += _p_b(item1.resource_type)
            n = len(b2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b2
            b3 = item1.principal.encode()
            out += _p_b(item1.pattern_type)
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
            b4 = item1.host.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
            out += _p_bbx(item1.operation, item1.permission_type)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteAclsResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[DeleteAclsResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> DeleteAclsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DeleteAclsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteAclsResponse", version) from None


def encode_response(message: DeleteAclsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteAclsResponse has no version {version} here")
    return encode(message)
