"""SaslAuthenticate, API key 36, versions 0 to 2, flexible from 2.

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

API_KEY: Final = 36
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_q: Final = _Struct(">q").pack
_p_qx: Final = _Struct(">qx").pack
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_q: Final = _Struct(">q").unpack_from
_u_qB: Final = _Struct(">qB").unpack_from


class SaslAuthenticateRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "auth_bytes",
    )

    def __init__(
        self,
        *,
        auth_bytes: bytes = b'',
    ) -> None:
        self.auth_bytes: bytes = auth_bytes


class SaslAuthenticateResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "error_code",
        "error_message",
        "auth_bytes",
        "session_lifetime_ms",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b'',
        session_lifetime_ms: int = 0,  # versions 1-2
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.auth_bytes: bytes = auth_bytes
        self.session_lifetime_ms: int = session_lifetime_ms


def _decode_request_v0(view: bytes | memoryview) -> SaslAuthenticateRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SaslAuthenticateRequest.__new__(SaslAuthenticateRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("auth_bytes")
    e = p + n
    m.auth_bytes = data[p:e]
    p = e
    if p > end:
        raise end_error("SaslAuthenticateRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> SaslAuthenticateRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = SaslAuthenticateRequest.__new__(SaslAuthenticateRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("auth_bytes")
    e = p + n - 1
    m.auth_bytes = data[p:e]
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("SaslAuthenticateRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("SaslAuthenticateRequest")
    return m


def _encode_request_v0(m: SaslAuthenticateRequest) -> bytes:
    out = bytearray()
    b = m.auth_bytes
    out += _p_i(len(b))
    out += b
    return bytes(out)


def _encode_request_v2(m: SaslAuthenticateRequest) -> bytes:
    out = bytearray()
    b = m.auth_bytes
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], SaslAuthenticateRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[SaslAuthenticateRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> SaslAuthenticateRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("SaslAuthenticateRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("SaslAuthenticateRequest", version) from None


def encode_request(message: SaslAuthenticateRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"SaslAuthenticateRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> SaslAuthenticateResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SaslAuthenticateResponse.__new__(SaslAuthenticateResponse)
    m.session_lifetime_ms = 0
    m.error_code, n = _u_hh(data, p)
    p += 4
    if n < 0:
        m.error_message = None
    else:
        e = p + n
        m.error_message = data[p:e].decode("utf-8", "replace")
        p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("auth_bytes")
    e = p + n
    m.auth_bytes = data[p:e]
    p = e
    if p > end:
        raise end_error("SaslAuthenticateResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> SaslAuthenticateResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SaslAuthenticateResponse.__new__(SaslAuthenticateResponse)
    m.error_code, n = _u_hh(data, p)
    p += 4
    if n < 0:
        m.error_message = None
    else:
        e = p + n
        m.error_message = data[p:e].decode("utf-8", "replace")
        p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("auth_bytes")
    e = p + n
    m.auth_bytes = data[p:e]
    p = e
    m.session_lifetime_ms, = _u_q(data, p)
    p += 8
    if p > end:
        raise end_error("SaslAuthenticateResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> SaslAuthenticateResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SaslAuthenticateResponse.__new__(SaslAuthenticateResponse)
    m.error_code, n = _u_hB(data, p)
    p += 3
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
        raise null_error("auth_bytes")
    e = p + n - 1
    m.auth_bytes = data[p:e]
    p = e
    m.session_lifetime_ms, n = _u_qB(data, p)
    p += 9
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("SaslAuthenticateResponse")
    return m


def _encode_response_v0(m: SaslAuthenticateResponse) -> bytes:
    out = bytearray()
    out += _p_h(m.error_code)
    v = m.error_message
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    b1 = m.auth_bytes
    out += _p_i(len(b1))
    out += b1
    return bytes(out)


def _encode_response_v1(m: SaslAuthenticateResponse) -> bytes:
    out = bytearray()
    out += _p_h(m.error_code)
    v = m.error_message
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    b1 = m.auth_bytes
    out += _p_i(len(b1))
    out += b1
    out += _p_q(m.session_lifetime_ms)
    return bytes(out)


def _encode_response_v2(m: SaslAuthenticateResponse) -> bytes:
    out = bytearray()
    out += _p_h(m.error_code)
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
    b1 = m.auth_bytes
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    out += _p_qx(m.session_lifetime_ms)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], SaslAuthenticateResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[SaslAuthenticateResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> SaslAuthenticateResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("SaslAuthenticateResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("SaslAuthenticateResponse", version) from None


def encode_response(message: SaslAuthenticateResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"SaslAuthenticateResponse has no version {version} here")
    return encode(message)
