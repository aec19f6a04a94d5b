"""UnregisterBroker, API key 64, versions 0 alone, flexible from 0.

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
    version_error,
)
from protocol.primitives import (
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
)

API_KEY: Final = 64
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ih: Final = _Struct(">ih").pack
_p_ix: Final = _Struct(">ix").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from


class UnregisterBrokerRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "broker_id",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
    ) -> None:
        self.broker_id: int = broker_id


class UnregisterBrokerResponse(Message):
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


def _decode_request_v0(view: bytes | memoryview) -> UnregisterBrokerRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = UnregisterBrokerRequest.__new__(UnregisterBrokerRequest)
    m.broker_id, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("UnregisterBrokerRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("UnregisterBrokerRequest")
    return m


def _encode_request_v0(m: UnregisterBrokerRequest) -> bytes:
    out = bytearray()
    out += _p_ix(m.broker_id)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], UnregisterBrokerRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[UnregisterBrokerRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> UnregisterBrokerRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("UnregisterBrokerRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("UnregisterBrokerRequest", version) from None


def encode_request(message: UnregisterBrokerRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"UnregisterBrokerRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> UnregisterBrokerResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = UnregisterBrokerResponse.__new__(UnregisterBrokerResponse)
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
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("UnregisterBrokerResponse")
    return m


def _encode_response_v0(m: UnregisterBrokerResponse) -> bytes:
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], UnregisterBrokerResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[UnregisterBrokerResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> UnregisterBrokerResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("UnregisterBrokerResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("UnregisterBrokerResponse", version) from None


def encode_response(message: UnregisterBrokerResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"UnregisterBrokerResponse has no version {version} here")
    return encode(message)
