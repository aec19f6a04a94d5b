"""ControllerRegistration, API key 70, versions 0 alone, flexible from 0.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from typing import Final
from uuid import UUID

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
    NIL_UUID,
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 70
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hhx: Final = _Struct(">Hhx").pack
_p_hhx: Final = _Struct(">hhx").pack
_p_ih: Final = _Struct(">ih").pack
_p_iuz: Final = _Struct(">i16s?").pack
_u_HhB: Final = _Struct(">HhB").unpack_from
_u_hhB: Final = _Struct(">hhB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iuzB: Final = _Struct(">i16s?B").unpack_from


class Listener(Message):
    """Part of ControllerRegistrationRequest, versions 0."""

    __slots__ = (
        "name",
        "host",
        "port",
        "security_protocol",
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.security_protocol: int = security_protocol


class Feature(Message):
    """Part of ControllerRegistrationRequest, versions 0."""

    __slots__ = (
        "name",
        "min_supported_version",
        "max_supported_version",
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name: str = name
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version


class ControllerRegistrationRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "controller_id",
        "incarnation_id",
        "zk_migration_ready",
        "listeners",
        "features",
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: UUID = NIL_UUID,
        zk_migration_ready: bool = False,
        listeners: list[Listener] = EMPTY,
        features: list[Feature] = EMPTY,
    ) -> None:
        self.controller_id: int = controller_id
        self.incarnation_id: UUID = incarnation_id
        self.zk_migration_ready: bool = zk_migration_ready
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners
        self.features: list[Feature] = [] if features is EMPTY else features


class ControllerRegistrationResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _decode_request_v0(view: bytes | memoryview) -> ControllerRegistrationRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ControllerRegistrationRequest.__new__(ControllerRegistrationRequest)
    m.controller_id, u, m.zk_migration_ready, n = _u_iuzB(data, p)
    p += 22
    m.incarnation_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("listeners")
    n -= 1
    if n * 7 > end - p:
        raise count_error("listeners", n)
    left -= n
    if left < 0:
        raise limit_error("listeners")
    items: list[Listener] = []
    m.listeners = items
    for _ in range(n):
        item = Listener.__new__(Listener)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode()
        p = e
        item.port, item.security_protocol, n = _u_HhB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Listener")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("features")
    n -= 1
    if n * 6 > end - p:
        raise count_error("features", n)
    left -= n
    if left < 0:
        raise limit_error("features")
    items1: list[Feature] = []
    m.features = items1
    for _ in range(n):
        item1 = Feature.__new__(Feature)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode()
        p = e
        item1.min_supported_version, item1.max_supported_version, n = _u_hhB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Feature")
            p = skip_fields(data, p, n)
        items1.append(item1)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ControllerRegistrationRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ControllerRegistrationRequest")
    return m


def _encode_request_v0(m: ControllerRegistrationRequest) -> bytes:
    out = bytearray()
    items = m.listeners
    out += _p_iuz(m.controller_id, m.incarnation_id.bytes, m.zk_migration_ready)
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
        b1 = item.host.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += _p_Hhx(item.port, item.security_protocol)
    items1 = m.features
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        b2 = item1.name.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_hhx(item1.min_supported_version, item1.max_supported_version)
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ControllerRegistrationRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[ControllerRegistrationRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> ControllerRegistrationRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ControllerRegistrationRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("ControllerRegistrationRequest", version, error) from None


def encode_request(message: ControllerRegistrationRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ControllerRegistrationRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ControllerRegistrationResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ControllerRegistrationResponse.__new__(ControllerRegistrationResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.error_message = None
    else:
        e = p + n - 1
        m.error_message = data[p:e].decode()
        p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ControllerRegistrationResponse")
    return m


def _encode_response_v0(m: ControllerRegistrationResponse) -> bytes:
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
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ControllerRegistrationResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[ControllerRegistrationResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> ControllerRegistrationResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ControllerRegistrationResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("ControllerRegistrationResponse", version, error) from None


def encode_response(message: ControllerRegistrationResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ControllerRegistrationResponse has no version {version} here")
    return encode(message)
