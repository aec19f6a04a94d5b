"""IncrementalAlterConfigs, API key 44, versions 0 to 1, flexible from 1.

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

API_KEY: Final = 44
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_b: Final = _Struct(">b").pack
_p_bh: Final = _Struct(">bh").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_z: Final = _Struct(">?").pack
_p_zx: Final = _Struct(">?x").pack
_u_bB: Final = _Struct(">bB").unpack_from
_u_bh: Final = _Struct(">bh").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_z: Final = _Struct(">?").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class AlterableConfig(Message):
    """Part of IncrementalAlterConfigsRequest, versions 0-1."""

    __slots__ = (
        "name",
        "config_operation",
        "value",
    )

    def __init__(
        self,
        *,
        name: str = "",
        config_operation: int = 0,
        value: str | None = "",
    ) -> None:
        self.name: str = name
        self.config_operation: int = config_operation
        self.value: str | None = value


class AlterConfigsResource(Message):
    """Part of IncrementalAlterConfigsRequest, versions 0-1."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "configs",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] = EMPTY,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[AlterableConfig] = [] if configs is EMPTY else configs


class IncrementalAlterConfigsRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "resources",
        "validate_only",
    )

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.resources: list[AlterConfigsResource] = [] if resources is EMPTY else resources
        self.validate_only: bool = validate_only


class AlterConfigsResourceResponse(Message):
    """Part of IncrementalAlterConfigsResponse, versions 0-1."""

    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name


class IncrementalAlterConfigsResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "responses",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[AlterConfigsResourceResponse] = [] if responses is EMPTY else responses


def _decode_request_v0(view: bytes | memoryview) -> IncrementalAlterConfigsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = IncrementalAlterConfigsRequest.__new__(IncrementalAlterConfigsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("resources")
    if n * 7 > end - p:
        raise count_error("resources", n)
    left -= n
    if left < 0:
        raise limit_error("resources")
    items: list[AlterConfigsResource] = []
    m.resources = items
    for _ in range(n):
        item = AlterConfigsResource.__new__(AlterConfigsResource)
        item.resource_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("resource_name")
        e = p + n
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("configs")
        if n * 5 > end - p:
            raise count_error("configs", n)
        left -= n
        if left < 0:
            raise limit_error("configs")
        items1: list[AlterableConfig] = []
        item.configs = items1
        for _ in range(n):
            item1 = AlterableConfig.__new__(AlterableConfig)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("name")
            e = p + n
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            item1.config_operation, n = _u_bh(data, p)
            p += 3
            if n < 0:
                item1.value = None
            else:
                e = p + n
                item1.value = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    m.validate_only, = _u_z(data, p)
    p += 1
    if p > end:
        raise end_error("IncrementalAlterConfigsRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> IncrementalAlterConfigsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = IncrementalAlterConfigsRequest.__new__(IncrementalAlterConfigsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("resources")
    n -= 1
    if n * 4 > end - p:
        raise count_error("resources", n)
    left -= n
    if left < 0:
        raise limit_error("resources")
    items: list[AlterConfigsResource] = []
    m.resources = items
    for _ in range(n):
        item = AlterConfigsResource.__new__(AlterConfigsResource)
        item.resource_type, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("resource_name")
        e = p + n - 1
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("configs")
        n -= 1
        if n * 4 > end - p:
            raise count_error("configs", n)
        left -= n
        if left < 0:
            raise limit_error("configs")
        items1: list[AlterableConfig] = []
        item.configs = items1
        for _ in range(n):
            item1 = AlterableConfig.__new__(AlterableConfig)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            item1.config_operation, n = _u_bB(data, p)
            p += 2
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.value = None
            else:
                e = p + n - 1
                item1.value = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AlterableConfig")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AlterConfigsResource")
            p = skip_fields(data, p, n)
        items.append(item)
    m.validate_only, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("IncrementalAlterConfigsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("IncrementalAlterConfigsRequest")
    return m


def _encode_request_v0(m: IncrementalAlterConfigsRequest) -> bytes:
    out = bytearray()
    items = m.resources
    out += _p_i(len(items))
    for item in items:
        b = item.resource_name.encode()
        out += _p_bh(item.resource_type, len(b))
        out += b
        items1 = item.configs
        out += _p_i(len(items1))
        for item1 in items1:
            b1 = item1.name.encode()
            out += _p_h(len(b1))
            out += b1
            out += _p_b(item1.config_operation)
            v2 = item1.value
            if v2 is None:
                out += b"\xff\xff"
            else:
                b2 = v2.encode()
                out += _p_h(len(b2))
                out += b2
    out += _p_z(m.validate_only)
    return bytes(out)


def _encode_request_v1(m: IncrementalAlterConfigsRequest) -> bytes:
    out = bytearray()
    items = m.resources
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
        items1 = item.configs
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
            out += _p_b(item1.config_operation)
            v2 = item1.value
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
            out += b"\x00"
        out += b"\x00"
    out += _p_zx(m.validate_only)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], IncrementalAlterConfigsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[IncrementalAlterConfigsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> IncrementalAlterConfigsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("IncrementalAlterConfigsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("IncrementalAlterConfigsRequest", version) from None


def encode_request(message: IncrementalAlterConfigsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"IncrementalAlterConfigsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> IncrementalAlterConfigsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = IncrementalAlterConfigsResponse.__new__(IncrementalAlterConfigsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("responses")
    if n * 7 > end - p:
        raise count_error("responses", n)
    items: list[AlterConfigsResourceResponse] = []
    m.responses = items
    for _ in range(n):
        item = AlterConfigsResourceResponse.__new__(AlterConfigsResourceResponse)
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            item.error_message = None
        else:
            e = p + n
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        item.resource_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("resource_name")
        e = p + n
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    if p > end:
        raise end_error("IncrementalAlterConfigsResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> IncrementalAlterConfigsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = IncrementalAlterConfigsResponse.__new__(IncrementalAlterConfigsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 6 > end - p:
        raise count_error("responses", n)
    items: list[AlterConfigsResourceResponse] = []
    m.responses = items
    for _ in range(n):
        item = AlterConfigsResourceResponse.__new__(AlterConfigsResourceResponse)
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
        item.resource_type, n = _u_bB(data, p)
        p += 2
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
        raise end_error("IncrementalAlterConfigsResponse")
    return m


def _encode_response_v0(m: IncrementalAlterConfigsResponse) -> bytes:
    out = bytearray()
    items = m.responses
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
        b1 = item.resource_name.encode()
        out += _p_bh(item.resource_type, len(b1))
        out += b1
    return bytes(out)


def _encode_response_v1(m: IncrementalAlterConfigsResponse) -> bytes:
    out = bytearray()
    items = m.responses
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
        b1 = item.resource_name.encode()
        out += _p_b(item.resource_type)
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], IncrementalAlterConfigsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[IncrementalAlterConfigsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> IncrementalAlterConfigsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("IncrementalAlterConfigsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("IncrementalAlterConfigsResponse", version) from None


def encode_response(message: IncrementalAlterConfigsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"IncrementalAlterConfigsResponse has no version {version} here")
    return encode(message)
