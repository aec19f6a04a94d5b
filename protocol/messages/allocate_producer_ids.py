"""AllocateProducerIds, API key 67, versions 0 alone, flexible from 0.

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
    skip_fields,
)

API_KEY: Final = 67
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ihqix: Final = _Struct(">ihqix").pack
_p_iqx: Final = _Struct(">iqx").pack
_u_ihqiB: Final = _Struct(">ihqiB").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from


class AllocateProducerIdsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch


class AllocateProducerIdsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id_start",
        "producer_id_len",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id_start: int = producer_id_start
        self.producer_id_len: int = producer_id_len


def _decode_request_v0(view: bytes | memoryview) -> AllocateProducerIdsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AllocateProducerIdsRequest.__new__(AllocateProducerIdsRequest)
    m.broker_id, m.broker_epoch, n = _u_iqB(data, p)
    p += 13
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AllocateProducerIdsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AllocateProducerIdsRequest")
    return m


def _encode_request_v0(m: AllocateProducerIdsRequest) -> bytes:
    out = bytearray()
    out += _p_iqx(m.broker_id, m.broker_epoch)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AllocateProducerIdsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[AllocateProducerIdsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> AllocateProducerIdsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AllocateProducerIdsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("AllocateProducerIdsRequest", version, error) from None


def encode_request(message: AllocateProducerIdsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AllocateProducerIdsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AllocateProducerIdsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AllocateProducerIdsResponse.__new__(AllocateProducerIdsResponse)
    m.throttle_time_ms, m.error_code, m.producer_id_start, m.producer_id_len, n = _u_ihqiB(data, p)
    p += 19
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AllocateProducerIdsResponse")
    return m


def _encode_response_v0(m: AllocateProducerIdsResponse) -> bytes:
    out = bytearray()
    out += _p_ihqix(m.throttle_time_ms, m.error_code, m.producer_id_start, m.producer_id_len)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AllocateProducerIdsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[AllocateProducerIdsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> AllocateProducerIdsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AllocateProducerIdsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("AllocateProducerIdsResponse", version, error) from None


def encode_response(message: AllocateProducerIdsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AllocateProducerIdsResponse has no version {version} here")
    return encode(message)
