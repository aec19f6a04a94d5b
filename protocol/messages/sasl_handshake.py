"""SaslHandshake, API key 17, versions 0 to 1.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from typing import Final

from protocol.message import (
    EMPTY,
    Message,
    broken,
    count_error,
    end_error,
    null_error,
    version_error,
)

API_KEY: Final = 17
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = None

_p_h: Final = _Struct(">h").pack
_p_hi: Final = _Struct(">hi").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hi: Final = _Struct(">hi").unpack_from


class SaslHandshakeRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "mechanism",
    )

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism: str = mechanism


class SaslHandshakeResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "error_code",
        "mechanisms",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.mechanisms: list[str] = [] if mechanisms is EMPTY else mechanisms


def _decode_request_v0(view: bytes | memoryview) -> SaslHandshakeRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SaslHandshakeRequest.__new__(SaslHandshakeRequest)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("mechanism")
    e = p + n
    m.mechanism = data[p:e].decode("utf-8", "replace")
    p = e
    if p > end:
        raise end_error("SaslHandshakeRequest")
    return m


def _encode_request_v0(m: SaslHandshakeRequest) -> bytes:
    out = bytearray()
    b = m.mechanism.encode()
    out += _p_h(len(b))
    out += b
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], SaslHandshakeRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[SaslHandshakeRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> SaslHandshakeRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("SaslHandshakeRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("SaslHandshakeRequest", version) from None


def encode_request(message: SaslHandshakeRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"SaslHandshakeRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> SaslHandshakeResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SaslHandshakeResponse.__new__(SaslHandshakeResponse)
    m.error_code, n = _u_hi(data, p)
    p += 6
    if n < 0:
        raise null_error("mechanisms")
    if n * 2 > end - p:
        raise count_error("mechanisms", n)
    items: list[str] = []
    m.mechanisms = items
    for _ in range(n):
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("item")
        e = p + n
        item = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    if p > end:
        raise end_error("SaslHandshakeResponse")
    return m


def _encode_response_v0(m: SaslHandshakeResponse) -> bytes:
    out = bytearray()
    items = m.mechanisms
    out += _p_hi(m.error_code, len(items))
    for item in items:
        b = item.encode()
        out += _p_h(len(b))
        out += b
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], SaslHandshakeResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[SaslHandshakeResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> SaslHandshakeResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("SaslHandshakeResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("SaslHandshakeResponse", version) from None


def encode_response(message: SaslHandshakeResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"SaslHandshakeResponse has no version {version} here")
    return encode(message)
