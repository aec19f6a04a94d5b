"""ListConfigResources, API key 74, versions 0 to 1, flexible from 0.

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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
)

API_KEY: Final = 74
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_bx: Final = _Struct(">bx").pack
_p_ih: Final = _Struct(">ih").pack
_u_bB: Final = _Struct(">bB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from


class ListConfigResourcesRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "resource_types",
    )

    def __init__(
        self,
        *,
        resource_types: list[int] = EMPTY,  # versions 1
    ) -> None:
        self.resource_types: list[int] = [] if resource_types is EMPTY else resource_types


class ConfigResource(Message):
    """Part of ListConfigResourcesResponse, versions 0-1."""

    __slots__ = (
        "resource_name",
        "resource_type",
    )

    def __init__(
        self,
        *,
        resource_name: str = "",
        resource_type: int = 16,  # versions 1
    ) -> None:
        self.resource_name: str = resource_name
        self.resource_type: int = resource_type


class ListConfigResourcesResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "config_resources",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.config_resources: list[ConfigResource] = [] if config_resources is EMPTY else config_resources


def _decode_request_v0(view: bytes | memoryview) -> ListConfigResourcesRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListConfigResourcesRequest.__new__(ListConfigResourcesRequest)
    m.resource_types = []
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListConfigResourcesRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListConfigResourcesRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> ListConfigResourcesRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListConfigResourcesRequest.__new__(ListConfigResourcesRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("resource_types")
    n -= 1
    if n > end - p:
        raise count_error("resource_types", n)
    left -= n
    if left < 0:
        raise limit_error("resource_types")
    m.resource_types = list(unpack_from(f">{n}b", data, p))
    p += n
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListConfigResourcesRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListConfigResourcesRequest")
    return m


def _encode_request_v0(m: ListConfigResourcesRequest) -> bytes:
    out = bytearray()
    out += b"\x00"
    return bytes(out)


def _encode_request_v1(m: ListConfigResourcesRequest) -> bytes:
    out = bytearray()
    items = m.resource_types
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    n = len(items)
    out += pack(f">{n}b", *items)
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ListConfigResourcesRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[ListConfigResourcesRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> ListConfigResourcesRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ListConfigResourcesRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListConfigResourcesRequest", version) from None


def encode_request(message: ListConfigResourcesRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListConfigResourcesRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ListConfigResourcesResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListConfigResourcesResponse.__new__(ListConfigResourcesResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("config_resources")
    n -= 1
    if n * 2 > end - p:
        raise count_error("config_resources", n)
    items: list[ConfigResource] = []
    m.config_resources = items
    for _ in range(n):
        item = ConfigResource.__new__(ConfigResource)
        item.resource_type = 16
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("resource_name")
        e = p + n - 1
        item.resource_name = data[p:e].decode("utf-8", "replace")
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
        raise end_error("ListConfigResourcesResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> ListConfigResourcesResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListConfigResourcesResponse.__new__(ListConfigResourcesResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("config_resources")
    n -= 1
    if n * 3 > end - p:
        raise count_error("config_resources", n)
    items: list[ConfigResource] = []
    m.config_resources = items
    for _ in range(n):
        item = ConfigResource.__new__(ConfigResource)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("resource_name")
        e = p + n - 1
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        item.resource_type, n = _u_bB(data, p)
        p += 2
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
        raise end_error("ListConfigResourcesResponse")
    return m


def _encode_response_v0(m: ListConfigResourcesResponse) -> bytes:
    out = bytearray()
    items = m.config_resources
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.resource_name.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v1(m: ListConfigResourcesResponse) -> bytes:
    out = bytearray()
    items = m.config_resources
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.resource_name.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_bx(item.resource_type)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ListConfigResourcesResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[ListConfigResourcesResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> ListConfigResourcesResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ListConfigResourcesResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListConfigResourcesResponse", version) from None


def encode_response(message: ListConfigResourcesResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListConfigResourcesResponse has no version {version} here")
    return encode(message)
