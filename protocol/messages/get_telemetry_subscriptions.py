"""GetTelemetrySubscriptions, API key 71, versions 0 alone, flexible from 0.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from struct import pack, unpack_from
from typing import Final
from uuid import UUID

from protocol.message import (
    EMPTY,
    REQUEST_ELEMENTS_MAX,
    Message,
    broken,
    count_error,
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

API_KEY: Final = 71
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ihui: Final = _Struct(">ih16si").pack
_p_iiz: Final = _Struct(">ii?").pack
_p_ux: Final = _Struct(">16sx").pack
_u_ihuiB: Final = _Struct(">ih16siB").unpack_from
_u_iizB: Final = _Struct(">ii?B").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class GetTelemetrySubscriptionsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "client_instance_id",
    )

    def __init__(
        self,
        *,
        client_instance_id: UUID = NIL_UUID,
    ) -> None:
        self.client_instance_id: UUID = client_instance_id


class GetTelemetrySubscriptionsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: UUID = NIL_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = EMPTY,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.client_instance_id: UUID = client_instance_id
        self.subscription_id: int = subscription_id
        self.accepted_compression_types: list[int] = [] if accepted_compression_types is EMPTY else accepted_compression_types
        self.push_interval_ms: int = push_interval_ms
        self.telemetry_max_bytes: int = telemetry_max_bytes
        self.delta_temporality: bool = delta_temporality
        self.requested_metrics: list[str] = [] if requested_metrics is EMPTY else requested_metrics


def _decode_request_v0(view: bytes | memoryview) -> GetTelemetrySubscriptionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = GetTelemetrySubscriptionsRequest.__new__(GetTelemetrySubscriptionsRequest)
    u, n = _u_uB(data, p)
    p += 17
    m.client_instance_id = uuid_from_bytes(u)
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("GetTelemetrySubscriptionsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("GetTelemetrySubscriptionsRequest")
    return m


def _encode_request_v0(m: GetTelemetrySubscriptionsRequest) -> bytes:
    out = bytearray()
    out += _p_ux(m.client_instance_id.bytes)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], GetTelemetrySubscriptionsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[GetTelemetrySubscriptionsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> GetTelemetrySubscriptionsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("GetTelemetrySubscriptionsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("GetTelemetrySubscriptionsRequest", version) from None


def encode_request(message: GetTelemetrySubscriptionsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"GetTelemetrySubscriptionsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> GetTelemetrySubscriptionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = GetTelemetrySubscriptionsResponse.__new__(GetTelemetrySubscriptionsResponse)
    m.throttle_time_ms, m.error_code, u, m.subscription_id, n = _u_ihuiB(data, p)
    p += 27
    m.client_instance_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("accepted_compression_types")
    n -= 1
    if n > end - p:
        raise count_error("accepted_compression_types", n)
    m.accepted_compression_types = list(unpack_from(f">{n}b", data, p))
    p += n
    m.push_interval_ms, m.telemetry_max_bytes, m.delta_temporality, n = _u_iizB(data, p)
    p += 10
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("requested_metrics")
    n -= 1
    if n > end - p:
        raise count_error("requested_metrics", n)
    items: list[str] = []
    m.requested_metrics = items
    for _ in range(n):
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("item")
        e = p + n - 1
        item = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("GetTelemetrySubscriptionsResponse")
    return m


def _encode_response_v0(m: GetTelemetrySubscriptionsResponse) -> bytes:
    out = bytearray()
    items = m.accepted_compression_types
    out += _p_ihui(m.throttle_time_ms, m.error_code, m.client_instance_id.bytes, m.subscription_id)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    n = len(items)
    out += pack(f">{n}b", *items)
    items1 = m.requested_metrics
    out += _p_iiz(m.push_interval_ms, m.telemetry_max_bytes, m.delta_temporality)
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items1:
        b = item.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], GetTelemetrySubscriptionsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[GetTelemetrySubscriptionsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> GetTelemetrySubscriptionsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("GetTelemetrySubscriptionsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("GetTelemetrySubscriptionsResponse", version) from None


def encode_response(message: GetTelemetrySubscriptionsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"GetTelemetrySubscriptionsResponse has no version {version} here")
    return encode(message)
