"""PushTelemetry, API key 72, versions 0 alone, flexible from 0.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from typing import Final
from uuid import UUID

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
    NIL_UUID,
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 72
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ihx: Final = _Struct(">ihx").pack
_p_uizb: Final = _Struct(">16si?b").pack
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_uizbB: Final = _Struct(">16si?bB").unpack_from


class PushTelemetryRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "client_instance_id",
        "subscription_id",
        "terminating",
        "compression_type",
        "metrics",
    )

    def __init__(
        self,
        *,
        client_instance_id: UUID = NIL_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b'',
    ) -> None:
        self.client_instance_id: UUID = client_instance_id
        self.subscription_id: int = subscription_id
        self.terminating: bool = terminating
        self.compression_type: int = compression_type
        self.metrics: bytes = metrics


class PushTelemetryResponse(Message):
    """Body of the response, versions 0."""

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


def _decode_request_v0(view: bytes | memoryview) -> PushTelemetryRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = PushTelemetryRequest.__new__(PushTelemetryRequest)
    u, m.subscription_id, m.terminating, m.compression_type, n = _u_uizbB(data, p)
    p += 23
    m.client_instance_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("metrics")
    e = p + n - 1
    m.metrics = data[p:e]
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("PushTelemetryRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("PushTelemetryRequest")
    return m


def _encode_request_v0(m: PushTelemetryRequest) -> bytes:
    out = bytearray()
    b = m.metrics
    out += _p_uizb(m.client_instance_id.bytes, m.subscription_id, m.terminating, m.compression_type)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], PushTelemetryRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[PushTelemetryRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> PushTelemetryRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("PushTelemetryRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("PushTelemetryRequest", version) from None


def encode_request(message: PushTelemetryRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"PushTelemetryRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> PushTelemetryResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = PushTelemetryResponse.__new__(PushTelemetryResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("PushTelemetryResponse")
    return m


def _encode_response_v0(m: PushTelemetryResponse) -> bytes:
    out = bytearray()
    out += _p_ihx(m.throttle_time_ms, m.error_code)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], PushTelemetryResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[PushTelemetryResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> PushTelemetryResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("PushTelemetryResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("PushTelemetryResponse", version) from None


def encode_response(message: PushTelemetryResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"PushTelemetryResponse has no version {version} here")
    return encode(message)
