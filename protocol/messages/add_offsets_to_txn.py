"""AddOffsetsToTxn, API key 25, versions 0 to 4, flexible from 3.

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

API_KEY: Final = 25
MIN_VERSION: Final = 0
MAX_VERSION: Final = 4
FIRST_FLEXIBLE_VERSION: Final[int | None] = 3

_p_h: Final = _Struct(">h").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihx: Final = _Struct(">ihx").pack
_p_qh: Final = _Struct(">qh").pack
_p_qhh: Final = _Struct(">qhh").pack
_u_h: Final = _Struct(">h").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_qhB: Final = _Struct(">qhB").unpack_from
_u_qhh: Final = _Struct(">qhh").unpack_from


class AddOffsetsToTxnRequest(Message):
    """Body of the request, versions 0-4."""

    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "group_id",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.group_id: str = group_id


class AddOffsetsToTxnResponse(Message):
    """Body of the response, versions 0-4."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code


def _decode_request_v0(view: bytes | memoryview) -> AddOffsetsToTxnRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AddOffsetsToTxnRequest.__new__(AddOffsetsToTxnRequest)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("transactional_id")
    e = p + n
    m.transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.producer_id, m.producer_epoch, n = _u_qhh(data, p)
    p += 12
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    if p > end:
        raise end_error("AddOffsetsToTxnRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> AddOffsetsToTxnRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AddOffsetsToTxnRequest.__new__(AddOffsetsToTxnRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("transactional_id")
    e = p + n - 1
    m.transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.producer_id, m.producer_epoch, n = _u_qhB(data, p)
    p += 11
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AddOffsetsToTxnRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AddOffsetsToTxnRequest")
    return m


def _encode_request_v0(m: AddOffsetsToTxnRequest) -> bytes:
    out = bytearray()
    b = m.transactional_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.group_id.encode()
    out += _p_qhh(m.producer_id, m.producer_epoch, len(b1))
    out += b1
    return bytes(out)


def _encode_request_v3(m: AddOffsetsToTxnRequest) -> bytes:
    out = bytearray()
    b = m.transactional_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.group_id.encode()
    out += _p_qh(m.producer_id, m.producer_epoch)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AddOffsetsToTxnRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v3,
}


_request_encoders: Final[dict[int, Callable[[AddOffsetsToTxnRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v3,
}


def decode_request(data: bytes | memoryview, version: int) -> AddOffsetsToTxnRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AddOffsetsToTxnRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AddOffsetsToTxnRequest", version) from None


def encode_request(message: AddOffsetsToTxnRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AddOffsetsToTxnRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AddOffsetsToTxnResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AddOffsetsToTxnResponse.__new__(AddOffsetsToTxnResponse)
    m.throttle_time_ms, m.error_code = _u_ih(data, p)
    p += 6
    if p > end:
        raise end_error("AddOffsetsToTxnResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> AddOffsetsToTxnResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AddOffsetsToTxnResponse.__new__(AddOffsetsToTxnResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AddOffsetsToTxnResponse")
    return m


def _encode_response_v0(m: AddOffsetsToTxnResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    return bytes(out)


def _encode_response_v3(m: AddOffsetsToTxnResponse) -> bytes:
    out = bytearray()
    out += _p_ihx(m.throttle_time_ms, m.error_code)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AddOffsetsToTxnResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
    3: _decode_response_v3,
    4: _decode_response_v3,
}


_response_encoders: Final[dict[int, Callable[[AddOffsetsToTxnResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
    3: _encode_response_v3,
    4: _encode_response_v3,
}


def decode_response(data: bytes | memoryview, version: int) -> AddOffsetsToTxnResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AddOffsetsToTxnResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AddOffsetsToTxnResponse", version) from None


def encode_response(message: AddOffsetsToTxnResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AddOffsetsToTxnResponse has no version {version} here")
    return encode(message)
