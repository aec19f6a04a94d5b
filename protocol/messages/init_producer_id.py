"""InitProducerId, API key 22, versions 0 to 6, flexible from 2.

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

API_KEY: Final = 22
MIN_VERSION: Final = 0
MAX_VERSION: Final = 6
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ihqh: Final = _Struct(">ihqh").pack
_p_ihqhqhx: Final = _Struct(">ihqhqhx").pack
_p_ihqhx: Final = _Struct(">ihqhx").pack
_p_iqhx: Final = _Struct(">iqhx").pack
_p_iqhzzx: Final = _Struct(">iqh??x").pack
_p_ix: Final = _Struct(">ix").pack
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihqh: Final = _Struct(">ihqh").unpack_from
_u_ihqhB: Final = _Struct(">ihqhB").unpack_from
_u_ihqhqhB: Final = _Struct(">ihqhqhB").unpack_from
_u_iqhB: Final = _Struct(">iqhB").unpack_from
_u_iqhzzB: Final = _Struct(">iqh??B").unpack_from


class InitProducerIdRequest(Message):
    """Body of the request, versions 0-6."""

    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,  # versions 3-6
        producer_epoch: int = -1,  # versions 3-6
        enable2_pc: bool = False,  # versions 6
        keep_prepared_txn: bool = False,  # versions 6
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.enable2_pc: bool = enable2_pc
        self.keep_prepared_txn: bool = keep_prepared_txn


class InitProducerIdResponse(Message):
    """Body of the response, versions 0-6."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,  # versions 6
        ongoing_txn_producer_epoch: int = -1,  # versions 6
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.ongoing_txn_producer_id: int = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch: int = ongoing_txn_producer_epoch


def _decode_request_v0(view: bytes | memoryview) -> InitProducerIdRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = InitProducerIdRequest.__new__(InitProducerIdRequest)
    m.producer_id = -1
    m.producer_epoch = -1
    m.enable2_pc = False
    m.keep_prepared_txn = False
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.transactional_id = None
    else:
        e = p + n
        m.transactional_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.transaction_timeout_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("InitProducerIdRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> InitProducerIdRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = InitProducerIdRequest.__new__(InitProducerIdRequest)
    m.producer_id = -1
    m.producer_epoch = -1
    m.enable2_pc = False
    m.keep_prepared_txn = False
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.transactional_id = None
    else:
        e = p + n - 1
        m.transactional_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.transaction_timeout_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("InitProducerIdRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("InitProducerIdRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> InitProducerIdRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = InitProducerIdRequest.__new__(InitProducerIdRequest)
    m.enable2_pc = False
    m.keep_prepared_txn = False
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.transactional_id = None
    else:
        e = p + n - 1
        m.transactional_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.transaction_timeout_ms, m.producer_id, m.producer_epoch, n = _u_iqhB(data, p)
    p += 15
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("InitProducerIdRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("InitProducerIdRequest")
    return m


def _decode_request_v6(view: bytes | memoryview) -> InitProducerIdRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = InitProducerIdRequest.__new__(InitProducerIdRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.transactional_id = None
    else:
        e = p + n - 1
        m.transactional_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.transaction_timeout_ms, m.producer_id, m.producer_epoch, m.enable2_pc, m.keep_prepared_txn, n = _u_iqhzzB(data, p)
    p += 17
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("InitProducerIdRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("InitProducerIdRequest")
    return m


def _encode_request_v0(m: InitProducerIdRequest) -> bytes:
    out = bytearray()
    v = m.transactional_id
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    out += _p_i(m.transaction_timeout_ms)
    return bytes(out)


def _encode_request_v2(m: InitProducerIdRequest) -> bytes:
    out = bytearray()
    v = m.transactional_id
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
    out += _p_ix(m.transaction_timeout_ms)
    return bytes(out)


def _encode_request_v3(m: InitProducerIdRequest) -> bytes:
    out = bytearray()
    v = m.transactional_id
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
    out += _p_iqhx(m.transaction_timeout_ms, m.producer_id, m.producer_epoch)
    return bytes(out)


def _encode_request_v6(m: InitProducerIdRequest) -> bytes:
    out = bytearray()
    v = m.transactional_id
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
    out += _p_iqhzzx(m.transaction_timeout_ms, m.producer_id, m.producer_epoch, m.enable2_pc, m.keep_prepared_txn)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], InitProducerIdRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v3,
    6: _decode_request_v6,
}


_request_encoders: Final[dict[int, Callable[[InitProducerIdRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v3,
    6: _encode_request_v6,
}


def decode_request(data: bytes | memoryview, version: int) -> InitProducerIdRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("InitProducerIdRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("InitProducerIdRequest", version) from None


def encode_request(message: InitProducerIdRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"InitProducerIdRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> InitProducerIdResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = InitProducerIdResponse.__new__(InitProducerIdResponse)
    m.ongoing_txn_producer_id = -1
    m.ongoing_txn_producer_epoch = -1
    m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch = _u_ihqh(data, p)
    p += 16
    if p > end:
        raise end_error("InitProducerIdResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> InitProducerIdResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = InitProducerIdResponse.__new__(InitProducerIdResponse)
    m.ongoing_txn_producer_id = -1
    m.ongoing_txn_producer_epoch = -1
    m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch, n = _u_ihqhB(data, p)
    p += 17
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("InitProducerIdResponse")
    return m


def _decode_response_v6(view: bytes | memoryview) -> InitProducerIdResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = InitProducerIdResponse.__new__(InitProducerIdResponse)
    m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch, m.ongoing_txn_producer_id, m.ongoing_txn_producer_epoch, n = _u_ihqhqhB(data, p)
    p += 27
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("InitProducerIdResponse")
    return m


def _encode_response_v0(m: InitProducerIdResponse) -> bytes:
    out = bytearray()
    out += _p_ihqh(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)
    return bytes(out)


def _encode_response_v2(m: InitProducerIdResponse) -> bytes:
    out = bytearray()
    out += _p_ihqhx(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)
    return bytes(out)


def _encode_response_v6(m: InitProducerIdResponse) -> bytes:
    out = bytearray()
    out += _p_ihqhqhx(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch, m.ongoing_txn_producer_id, m.ongoing_txn_producer_epoch)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], InitProducerIdResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v2,
    5: _decode_response_v2,
    6: _decode_response_v6,
}


_response_encoders: Final[dict[int, Callable[[InitProducerIdResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v2,
    5: _encode_response_v2,
    6: _encode_response_v6,
}


def decode_response(data: bytes | memoryview, version: int) -> InitProducerIdResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("InitProducerIdResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("InitProducerIdResponse", version) from None


def encode_response(message: InitProducerIdResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"InitProducerIdResponse has no version {version} here")
    return encode(message)
