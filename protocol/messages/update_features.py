"""UpdateFeatures, API key 57, versions 0 to 2, flexible from 0.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from typing import Final

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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
)

API_KEY: Final = 57
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_h: Final = _Struct(">h").pack
_p_hbx: Final = _Struct(">hbx").pack
_p_hzx: Final = _Struct(">h?x").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_zx: Final = _Struct(">?x").pack
_u_hB: Final = _Struct(">hB").unpack_from
_u_hbB: Final = _Struct(">hbB").unpack_from
_u_hzB: Final = _Struct(">h?B").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class FeatureUpdateKey(Message):
    """Part of UpdateFeaturesRequest, versions 0-2."""

    __slots__ = (
        "feature",
        "max_version_level",
        "upgrade_type",
        "allow_downgrade",
    )

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        upgrade_type: int = 1,  # versions 1-2
        allow_downgrade: bool = False,  # versions 0
    ) -> None:
        self.feature: str = feature
        self.max_version_level: int = max_version_level
        self.upgrade_type: int = upgrade_type
        self.allow_downgrade: bool = allow_downgrade


class UpdateFeaturesRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "timeout_ms",
        "feature_updates",
        "validate_only",
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = EMPTY,
        validate_only: bool = False,  # versions 1-2
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.feature_updates: list[FeatureUpdateKey] = [] if feature_updates is EMPTY else feature_updates
        self.validate_only: bool = validate_only


class UpdatableFeatureResult(Message):
    """Part of UpdateFeaturesResponse, versions 0-1."""

    __slots__ = (
        "feature",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.feature: str = feature
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class UpdateFeaturesResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] = EMPTY,  # versions 0-1
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[UpdatableFeatureResult] = [] if results is EMPTY else results


def _decode_request_v0(view: bytes | memoryview) -> UpdateFeaturesRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = UpdateFeaturesRequest.__new__(UpdateFeaturesRequest)
    m.validate_only = False
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("feature_updates")
    n -= 1
    if n * 5 > end - p:
        raise count_error("feature_updates", n)
    left -= n
    if left < 0:
        raise limit_error("feature_updates")
    items: list[FeatureUpdateKey] = []
    m.feature_updates = items
    for _ in range(n):
        item = FeatureUpdateKey.__new__(FeatureUpdateKey)
        item.upgrade_type = 1
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("feature")
        e = p + n - 1
        item.feature = data[p:e].decode("utf-8", "replace")
        p = e
        item.max_version_level, item.allow_downgrade, n = _u_hzB(data, p)
        p += 4
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FeatureUpdateKey")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("UpdateFeaturesRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("UpdateFeaturesRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> UpdateFeaturesRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = UpdateFeaturesRequest.__new__(UpdateFeaturesRequest)
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("feature_updates")
    n -= 1
    if n * 5 > end - p:
        raise count_error("feature_updates", n)
    left -= n
    if left < 0:
        raise limit_error("feature_updates")
    items: list[FeatureUpdateKey] = []
    m.feature_updates = items
    for _ in range(n):
        item = FeatureUpdateKey.__new__(FeatureUpdateKey)
        item.allow_downgrade = False
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("feature")
        e = p + n - 1
        item.feature = data[p:e].decode("utf-8", "replace")
        p = e
        item.max_version_level, item.upgrade_type, n = _u_hbB(data, p)
        p += 4
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FeatureUpdateKey")
            p = skip_fields(data, p, n)
        items.append(item)
    m.validate_only, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("UpdateFeaturesRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("UpdateFeaturesRequest")
    return m


def _encode_request_v0(m: UpdateFeaturesRequest) -> bytes:
    out = bytearray()
    items = m.feature_updates
    out += _p_i(m.timeout_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.feature.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_hzx(item.max_version_level, item.allow_downgrade)
    out += b"\x00"
    return bytes(out)


def _encode_request_v1(m: UpdateFeaturesRequest) -> bytes:
    out = bytearray()
    items = m.feature_updates
    out += _p_i(m.timeout_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.feature.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_hbx(item.max_version_level, item.upgrade_type)
    out += _p_zx(m.validate_only)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], UpdateFeaturesRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[UpdateFeaturesRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> UpdateFeaturesRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("UpdateFeaturesRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("UpdateFeaturesRequest", version) from None


def encode_request(message: UpdateFeaturesRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"UpdateFeaturesRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> UpdateFeaturesResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = UpdateFeaturesResponse.__new__(UpdateFeaturesResponse)
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 5 > end - p:
        raise count_error("results", n)
    items: list[UpdatableFeatureResult] = []
    m.results = items
    for _ in range(n):
        item = UpdatableFeatureResult.__new__(UpdatableFeatureResult)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("feature")
        e = p + n - 1
        item.feature = data[p:e].decode("utf-8", "replace")
        p = e
        item.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.error_message = None
        else:
            e = p + n - 1
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("UpdateFeaturesResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> UpdateFeaturesResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = UpdateFeaturesResponse.__new__(UpdateFeaturesResponse)
    m.results = []
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
        raise end_error("UpdateFeaturesResponse")
    return m


def _encode_response_v0(m: UpdateFeaturesResponse) -> bytes:
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
    items = m.results
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.feature.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += _p_h(item.error_code)
        v2 = item.error_message
        if v2 is None:
            out += b"\x00"
        else:
            b2 = v2.encode()
            n = len(b2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b2
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v2(m: UpdateFeaturesResponse) -> bytes:
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], UpdateFeaturesResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[UpdateFeaturesResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> UpdateFeaturesResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("UpdateFeaturesResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("UpdateFeaturesResponse", version) from None


def encode_response(message: UpdateFeaturesResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"UpdateFeaturesResponse has no version {version} here")
    return encode(message)
