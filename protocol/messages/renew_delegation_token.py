"""RenewDelegationToken, API key 39, versions 1 to 2, flexible from 2.

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

API_KEY: Final = 39
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_hqi: Final = _Struct(">hqi").pack
_p_hqix: Final = _Struct(">hqix").pack
_p_i: Final = _Struct(">i").pack
_p_q: Final = _Struct(">q").pack
_p_qx: Final = _Struct(">qx").pack
_u_hqi: Final = _Struct(">hqi").unpack_from
_u_hqiB: Final = _Struct(">hqiB").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_q: Final = _Struct(">q").unpack_from
_u_qB: Final = _Struct(">qB").unpack_from


class RenewDelegationTokenRequest(Message):
    """Body of the request, versions 1-2."""

    __slots__ = (
        "hmac",
        "renew_period_ms",
    )

    def __init__(
        self,
        *,
        hmac: bytes = b'',
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac: bytes = hmac
        self.renew_period_ms: int = renew_period_ms


class RenewDelegationTokenResponse(Message):
    """Body of the response, versions 1-2."""

    __slots__ = (
        "error_code",
        "expiry_timestamp_ms",
        "throttle_time_ms",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.throttle_time_ms: int = throttle_time_ms


def _decode_request_v1(view: bytes | memoryview) -> RenewDelegationTokenRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = RenewDelegationTokenRequest.__new__(RenewDelegationTokenRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("hmac")
    e = p + n
    m.hmac = data[p:e]
    p = e
    m.renew_period_ms, = _u_q(data, p)
    p += 8
    if p > end:
        raise end_error("RenewDelegationTokenRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> RenewDelegationTokenRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = RenewDelegationTokenRequest.__new__(RenewDelegationTokenRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("hmac")
    e = p + n - 1
    m.hmac = data[p:e]
    p = e
    m.renew_period_ms, n = _u_qB(data, p)
    p += 9
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("RenewDelegationTokenRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("RenewDelegationTokenRequest")
    return m


def _encode_request_v1(m: RenewDelegationTokenRequest) -> bytes:
    out = bytearray()
    b = m.hmac
    out += _p_i(len(b))
    out += b
    out += _p_q(m.renew_period_ms)
    return bytes(out)


def _encode_request_v2(m: RenewDelegationTokenRequest) -> bytes:
    out = bytearray()
    b = m.hmac
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    out += _p_qx(m.renew_period_ms)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], RenewDelegationTokenRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[RenewDelegationTokenRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> RenewDelegationTokenRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("RenewDelegationTokenRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("RenewDelegationTokenRequest", version) from None


def encode_request(message: RenewDelegationTokenRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"RenewDelegationTokenRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> RenewDelegationTokenResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = RenewDelegationTokenResponse.__new__(RenewDelegationTokenResponse)
    m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms = _u_hqi(data, p)
    p += 14
    if p > end:
        raise end_error("RenewDelegationTokenResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> RenewDelegationTokenResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = RenewDelegationTokenResponse.__new__(RenewDelegationTokenResponse)
    m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms, n = _u_hqiB(data, p)
    p += 15
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("RenewDelegationTokenResponse")
    return m


def _encode_response_v1(m: RenewDelegationTokenResponse) -> bytes:
    out = bytearray()
    out += _p_hqi(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)
    return bytes(out)


def _encode_response_v2(m: RenewDelegationTokenResponse) -> bytes:
    out = bytearray()
    out += _p_hqix(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], RenewDelegationTokenResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[RenewDelegationTokenResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> RenewDelegationTokenResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("RenewDelegationTokenResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("RenewDelegationTokenResponse", version) from None


def encode_response(message: RenewDelegationTokenResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"RenewDelegationTokenResponse has no version {version} here")
    return encode(message)
