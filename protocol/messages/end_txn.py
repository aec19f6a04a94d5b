"""EndTxn, API key 26, versions 0 to 5, flexible from 3.

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

API_KEY: Final = 26
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FIRST_FLEXIBLE_VERSION: Final[int | None] = 3

_p_h: Final = _Struct(">h").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihqhx: Final = _Struct(">ihqhx").pack
_p_ihx: Final = _Struct(">ihx").pack
_p_qhz: Final = _Struct(">qh?").pack
_p_qhzx: Final = _Struct(">qh?x").pack
_u_h: Final = _Struct(">h").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihqhB: Final = _Struct(">ihqhB").unpack_from
_u_qhz: Final = _Struct(">qh?").unpack_from
_u_qhzB: Final = _Struct(">qh?B").unpack_from


class EndTxnRequest(Message):
    """Body of the request, versions 0-5."""

    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "committed",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.committed: bool = committed


class EndTxnResponse(Message):
    """Body of the response, versions 0-5."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,  # versions 5
        producer_epoch: int = -1,  # versions 5
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch


def _decode_request_v0(view: bytes | memoryview) -> EndTxnRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = EndTxnRequest.__new__(EndTxnRequest)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("transactional_id")
    e = p + n
    m.transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.producer_id, m.producer_epoch, m.committed = _u_qhz(data, p)
    p += 11
    if p > end:
        raise end_error("EndTxnRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> EndTxnRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = EndTxnRequest.__new__(EndTxnRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("transactional_id")
    e = p + n - 1
    m.transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.producer_id, m.producer_epoch, m.committed, n = _u_qhzB(data, p)
    p += 12
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("EndTxnRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("EndTxnRequest")
    return m


def _encode_request_v0(m: EndTxnRequest) -> bytes:
    out = bytearray()
    b = m.transactional_id.encode()
    out += _p_h(len(b))
    out += b
    out += _p_qhz(m.producer_id, m.producer_epoch, m.committed)
    return bytes(out)


def _encode_request_v3(m: EndTxnRequest) -> bytes:
    out = bytearray()
    b = m.transactional_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    out += _p_qhzx(m.producer_id, m.producer_epoch, m.committed)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], EndTxnRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v3,
}


_request_encoders: Final[dict[int, Callable[[EndTxnRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v3,
}


def decode_request(data: bytes | memoryview, version: int) -> EndTxnRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("EndTxnRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("EndTxnRequest", version) from None


def encode_request(message: EndTxnRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"EndTxnRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> EndTxnResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = EndTxnResponse.__new__(EndTxnResponse)
    m.producer_id = -1
    m.producer_epoch = -1
    m.throttle_time_ms, m.error_code = _u_ih(data, p)
    p += 6
    if p > end:
        raise end_error("EndTxnResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> EndTxnResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = EndTxnResponse.__new__(EndTxnResponse)
    m.producer_id = -1
    m.producer_epoch = -1
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("EndTxnResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> EndTxnResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = EndTxnResponse.__new__(EndTxnResponse)
    m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch, n = _u_ihqhB(data, p)
    p += 17
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("EndTxnResponse")
    return m


def _encode_response_v0(m: EndTxnResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    return bytes(out)


def _encode_response_v3(m: EndTxnResponse) -> bytes:
    out = bytearray()
    out += _p_ihx(m.throttle_time_ms, m.error_code)
    return bytes(out)


def _encode_response_v5(m: EndTxnResponse) -> bytes:
    out = bytearray()
    out += _p_ihqhx(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], EndTxnResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v5,
}


_response_encoders: Final[dict[int, Callable[[EndTxnResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v5,
}


def decode_response(data: bytes | memoryview, version: int) -> EndTxnResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("EndTxnResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("EndTxnResponse", version) from None


def encode_response(message: EndTxnResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"EndTxnResponse has no version {version} here")
    return encode(message)
