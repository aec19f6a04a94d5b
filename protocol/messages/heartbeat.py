"""Heartbeat, API key 12, versions 0 to 4, flexible from 4.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from typing import Final

from protocol.message import (
    REQUEST_ELEMENTS_MAX,
    Message,
    broken,
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

API_KEY: Final = 12
MIN_VERSION: Final = 0
MAX_VERSION: Final = 4
FIRST_FLEXIBLE_VERSION: Final[int | None] = 4

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihx: Final = _Struct(">ihx").pack
_u_h: Final = _Struct(">h").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from


class HeartbeatRequest(Message):
    """Body of the request, versions 0-4."""

    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,  # versions 3-4
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id


class HeartbeatResponse(Message):
    """Body of the response, versions 0-4."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 1-4
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code


def _decode_request_v0(view: bytes | memoryview) -> HeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = HeartbeatRequest.__new__(HeartbeatRequest)
    m.group_instance_id = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    if p > end:
        raise end_error("HeartbeatRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> HeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = HeartbeatRequest.__new__(HeartbeatRequest)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.group_instance_id = None
    else:
        e = p + n
        m.group_instance_id = data[p:e].decode("utf-8", "replace")
        p = e
    if p > end:
        raise end_error("HeartbeatRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> HeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = HeartbeatRequest.__new__(HeartbeatRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("member_id")
    e = p + n - 1
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_instance_id = None
    else:
        e = p + n - 1
        m.group_instance_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("HeartbeatRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("HeartbeatRequest")
    return m


def _encode_request_v0(m: HeartbeatRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.generation_id, len(b1))
    out += b1
    return bytes(out)


def _encode_request_v3(m: HeartbeatRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.generation_id, len(b1))
    out += b1
    v2 = m.group_instance_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    return bytes(out)


def _encode_request_v4(m: HeartbeatRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    out += _p_i(m.generation_id)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    v2 = m.group_instance_id
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
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], HeartbeatRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
}


_request_encoders: Final[dict[int, Callable[[HeartbeatRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
}


def decode_request(data: bytes | memoryview, version: int) -> HeartbeatRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("HeartbeatRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("HeartbeatRequest", version) from None


def encode_request(message: HeartbeatRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"HeartbeatRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> HeartbeatResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = HeartbeatResponse.__new__(HeartbeatResponse)
    m.throttle_time_ms = 0
    m.error_code, = _u_h(data, p)
    p += 2
    if p > end:
        raise end_error("HeartbeatResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> HeartbeatResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = HeartbeatResponse.__new__(HeartbeatResponse)
    m.throttle_time_ms, m.error_code = _u_ih(data, p)
    p += 6
    if p > end:
        raise end_error("HeartbeatResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> HeartbeatResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = HeartbeatResponse.__new__(HeartbeatResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("HeartbeatResponse")
    return m


def _encode_response_v0(m: HeartbeatResponse) -> bytes:
    out = bytearray()
    out += _p_h(m.error_code)
    return bytes(out)


def _encode_response_v1(m: HeartbeatResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    return bytes(out)


def _encode_response_v4(m: HeartbeatResponse) -> bytes:
    out = bytearray()
    out += _p_ihx(m.throttle_time_ms, m.error_code)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], HeartbeatResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v1,
    4: _decode_response_v4,
}


_response_encoders: Final[dict[int, Callable[[HeartbeatResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v1,
    4: _encode_response_v4,
}


def decode_response(data: bytes | memoryview, version: int) -> HeartbeatResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("HeartbeatResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("HeartbeatResponse", version) from None


def encode_response(message: HeartbeatResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"HeartbeatResponse has no version {version} here")
    return encode(message)
