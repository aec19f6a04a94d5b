"""Envelope, API key 58, versions 0 alone, flexible from 0.

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

API_KEY: Final = 58
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_hx: Final = _Struct(">hx").pack
_u_hB: Final = _Struct(">hB").unpack_from


class EnvelopeRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "request_data",
        "request_principal",
        "client_host_address",
    )

    def __init__(
        self,
        *,
        request_data: bytes = b'',
        request_principal: bytes | None = b'',
        client_host_address: bytes = b'',
    ) -> None:
        self.request_data: bytes = request_data
        self.request_principal: bytes | None = request_principal
        self.client_host_address: bytes = client_host_address


class EnvelopeResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "response_data",
        "error_code",
    )

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
    ) -> None:
        self.response_data: bytes | None = response_data
        self.error_code: int = error_code


def _decode_request_v0(view: bytes | memoryview) -> EnvelopeRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = EnvelopeRequest.__new__(EnvelopeRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("request_data")
    e = p + n - 1
    m.request_data = data[p:e]
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.request_principal = None
    else:
        e = p + n - 1
        m.request_principal = data[p:e]
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("client_host_address")
    e = p + n - 1
    m.client_host_address = data[p:e]
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("EnvelopeRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("EnvelopeRequest")
    return m


def _encode_request_v0(m: EnvelopeRequest) -> bytes:
    out = bytearray()
    b = m.request_data
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    v1 = m.request_principal
    if v1 is None:
        out += b"\x00"
    else:
        n = len(v1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += v1
    b2 = m.client_host_address
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], EnvelopeRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[EnvelopeRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> EnvelopeRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("EnvelopeRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("EnvelopeRequest", version) from None


def encode_request(message: EnvelopeRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"EnvelopeRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> EnvelopeResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = EnvelopeResponse.__new__(EnvelopeResponse)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.response_data = None
    else:
        e = p + n - 1
        m.response_data = data[p:e]
        p = e
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("EnvelopeResponse")
    return m


def _encode_response_v0(m: EnvelopeResponse) -> bytes:
    out = bytearray()
    v = m.response_data
    if v is None:
        out += b"\x00"
    else:
        n = len(v) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += v
    out += _p_hx(m.error_code)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], EnvelopeResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[EnvelopeResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> EnvelopeResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("EnvelopeResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("EnvelopeResponse", version) from None


def encode_response(message: EnvelopeResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"EnvelopeResponse has no version {version} here")
    return encode(message)
