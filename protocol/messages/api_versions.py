"""ApiVersions, API key 18, versions 0 to 4, flexible from 3.

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

API_KEY: Final = 18
MIN_VERSION: Final = 0
MAX_VERSION: Final = 4
FIRST_FLEXIBLE_VERSION: Final[int | None] = 3

_p_h: Final = _Struct(">h").pack
_p_hhh: Final = _Struct(">hhh").pack
_p_hhhx: Final = _Struct(">hhhx").pack
_p_hhx: Final = _Struct(">hhx").pack
_p_hi: Final = _Struct(">hi").pack
_p_i: Final = _Struct(">i").pack
_p_q: Final = _Struct(">q").pack
_p_z: Final = _Struct(">?").pack
_u_hB: Final = _Struct(">hB").unpack_from
_u_hhB: Final = _Struct(">hhB").unpack_from
_u_hhh: Final = _Struct(">hhh").unpack_from
_u_hhhB: Final = _Struct(">hhhB").unpack_from
_u_hi: Final = _Struct(">hi").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_q: Final = _Struct(">q").unpack_from
_u_z: Final = _Struct(">?").unpack_from


class ApiVersionsRequest(Message):
    """Body of the request, versions 0-4."""

    __slots__ = (
        "client_software_name",
        "client_software_version",
    )

    def __init__(
        self,
        *,
        client_software_name: str = "",  # versions 3-4
        client_software_version: str = "",  # versions 3-4
    ) -> None:
        self.client_software_name: str = client_software_name
        self.client_software_version: str = client_software_version


class ApiVersion(Message):
    """Part of ApiVersionsResponse, versions 0-4."""

    __slots__ = (
        "api_key",
        "min_version",
        "max_version",
    )

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key: int = api_key
        self.min_version: int = min_version
        self.max_version: int = max_version


class SupportedFeatureKey(Message):
    """Part of ApiVersionsResponse, versions 3-4."""

    __slots__ = (
        "name",
        "min_version",
        "max_version",
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name: str = name
        self.min_version: int = min_version
        self.max_version: int = max_version


class FinalizedFeatureKey(Message):
    """Part of ApiVersionsResponse, versions 3-4."""

    __slots__ = (
        "name",
        "max_version_level",
        "min_version_level",
    )

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name: str = name
        self.max_version_level: int = max_version_level
        self.min_version_level: int = min_version_level


class ApiVersionsResponse(Message):
    """Body of the response, versions 0-4."""

    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,  # versions 1-4
        supported_features: list[SupportedFeatureKey] = EMPTY,  # versions 3-4, tag 0
        finalized_features_epoch: int = -1,  # versions 3-4, tag 1
        finalized_features: list[FinalizedFeatureKey] = EMPTY,  # versions 3-4, tag 2
        zk_migration_ready: bool = False,  # versions 3-4, tag 3
    ) -> None:
        self.error_code: int = error_code
        self.api_keys: list[ApiVersion] = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms: int = throttle_time_ms
        self.supported_features: list[SupportedFeatureKey] = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch: int = finalized_features_epoch
        self.finalized_features: list[FinalizedFeatureKey] = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready: bool = zk_migration_ready


def _decode_request_v0(view: bytes | memoryview) -> ApiVersionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ApiVersionsRequest.__new__(ApiVersionsRequest)
    m.client_software_name = ""
    m.client_software_version = ""
    if p > end:
        raise end_error("ApiVersionsRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> ApiVersionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ApiVersionsRequest.__new__(ApiVersionsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("client_software_name")
    e = p + n - 1
    m.client_software_name = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("client_software_version")
    e = p + n - 1
    m.client_software_version = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ApiVersionsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ApiVersionsRequest")
    return m


def _encode_request_v0(m: ApiVersionsRequest) -> bytes:
    out = bytearray()
    return bytes(out)


def _encode_request_v3(m: ApiVersionsRequest) -> bytes:
    out = bytearray()
    b = m.client_software_name.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.client_software_version.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ApiVersionsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v3,
}


_request_encoders: Final[dict[int, Callable[[ApiVersionsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v3,
}


def decode_request(data: bytes | memoryview, version: int) -> ApiVersionsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ApiVersionsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ApiVersionsRequest", version) from None


def encode_request(message: ApiVersionsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ApiVersionsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ApiVersionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ApiVersionsResponse.__new__(ApiVersionsResponse)
    m.throttle_time_ms = 0
    m.supported_features = []
    m.finalized_features_epoch = -1
    m.finalized_features = []
    m.zk_migration_ready = False
    m.error_code, n = _u_hi(data, p)
    p += 6
    if n < 0:
        raise null_error("api_keys")
    if n * 6 > end - p:
        raise count_error("api_keys", n)
    items: list[ApiVersion] = []
    m.api_keys = items
    for _ in range(n):
        item = ApiVersion.__new__(ApiVersion)
        item.api_key, item.min_version, item.max_version = _u_hhh(data, p)
        p += 6
        items.append(item)
    if p > end:
        raise end_error("ApiVersionsResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> ApiVersionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ApiVersionsResponse.__new__(ApiVersionsResponse)
    m.supported_features = []
    m.finalized_features_epoch = -1
    m.finalized_features = []
    m.zk_migration_ready = False
    m.error_code, n = _u_hi(data, p)
    p += 6
    if n < 0:
        raise null_error("api_keys")
    if n * 6 > end - p:
        raise count_error("api_keys", n)
    items: list[ApiVersion] = []
    m.api_keys = items
    for _ in range(n):
        item = ApiVersion.__new__(ApiVersion)
        item.api_key, item.min_version, item.max_version = _u_hhh(data, p)
        p += 6
        items.append(item)
    m.throttle_time_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("ApiVersionsResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> ApiVersionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ApiVersionsResponse.__new__(ApiVersionsResponse)
    m.supported_features = []
    m.finalized_features_epoch = -1
    m.finalized_features = []
    m.zk_migration_ready = False
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("api_keys")
    n -= 1
    if n * 7 > end - p:
        raise count_error("api_keys", n)
    items: list[ApiVersion] = []
    m.api_keys = items
    for _ in range(n):
        item = ApiVersion.__new__(ApiVersion)
        item.api_key, item.min_version, item.max_version, n = _u_hhhB(data, p)
        p += 7
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        for _ in range(n):
            tag, p = decode_unsigned_varint(data, p)
            limit, p = decode_unsigned_varint(data, p)
            limit += p
            if tag == 0:
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("supported_features")
                n -= 1
                if n * 6 > end - p:
                    raise count_error("supported_features", n)
                items1: list[SupportedFeatureKey] = []
                m.supported_features = items1
                for _ in range(n):
                    item1 = SupportedFeatureKey.__new__(SupportedFeatureKey)
                    n = data[p]
                    p += 1
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("name")
                    e = p + n - 1
                    item1.name = data[p:e].decode("utf-8", "replace")
                    p = e
                    item1.min_version, item1.max_version, n = _u_hhB(data, p)
                    p += 5
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items1.append(item1)
                if p > limit:
                    raise end_error("supported_features")
            elif tag == 1:
                m.finalized_features_epoch, = _u_q(data, p)
                p += 8
                if p > limit:
                    raise end_error("finalized_features_epoch")
            elif tag == 2:
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("finalized_features")
                n -= 1
                if n * 6 > end - p:
                    raise count_error("finalized_features", n)
                items2: list[FinalizedFeatureKey] = []
                m.finalized_features = items2
                for _ in range(n):
                    item2 = FinalizedFeatureKey.__new__(FinalizedFeatureKey)
                    n = data[p]
                    p += 1
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("name")
                    e = p + n - 1
                    item2.name = data[p:e].decode("utf-8", "replace")
                    p = e
                    item2.max_version_level, item2.min_version_level, n = _u_hhB(data, p)
                    p += 5
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items2.append(item2)
                if p > limit:
                    raise end_error("finalized_features")
            elif tag == 3:
                m.zk_migration_ready, = _u_z(data, p)
                p += 1
                if p > limit:
                    raise end_error("zk_migration_ready")
            if limit > end:
                raise end_error("ApiVersionsResponse")
            p = limit
    if p > end:
        raise end_error("ApiVersionsResponse")
    return m


def _encode_response_v0(m: ApiVersionsResponse) -> bytes:
    out = bytearray()
    items = m.api_keys
    out += _p_hi(m.error_code, len(items))
    for item in items:
        out += _p_hhh(item.api_key, item.min_version, item.max_version)
    return bytes(out)


def _encode_response_v1(m: ApiVersionsResponse) -> bytes:
    out = bytearray()
    items = m.api_keys
    out += _p_hi(m.error_code, len(items))
    for item in items:
        out += _p_hhh(item.api_key, item.min_version, item.max_version)
    out += _p_i(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v3(m: ApiVersionsResponse) -> bytes:
    out = bytearray()
    items = m.api_keys
    out += _p_h(m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        out += _p_hhhx(item.api_key, item.min_version, item.max_version)
    out += _p_i(m.throttle_time_ms)
    count = 0
    section = bytearray()
    t = m.supported_features
    if t:
        count += 1
        content = bytearray()
        items1 = t
        n = len(items1) + 1
        if n < 128:
            content.append(n)
        else:
            content += encode_unsigned_varint(n)
        for item1 in items1:
            b = item1.name.encode()
            n = len(b) + 1
            if n < 128:
                content.append(n)
            else:
                content += encode_unsigned_varint(n)
            content += b
            content += _p_hhx(item1.min_version, item1.max_version)
        section += encode_unsigned_varint(0)
        section += encode_unsigned_varint(len(content))
        section += content
    t1 = m.finalized_features_epoch
    if t1 != -1:
        count += 1
        content1 = bytearray()
        content1 += _p_q(t1)
        section += encode_unsigned_varint(1)
        section += encode_unsigned_varint(len(content1))
        section += content1
    t2 = m.finalized_features
    if t2:
        count += 1
        content2 = bytearray()
        items2 = t2
        n = len(items2) + 1
        if n < 128:
            content2.append(n)
        else:
            content2 += encode_unsigned_varint(n)
        for item2 in items2:
            b1 = item2.name.encode()
            n = len(b1) + 1
            if n < 128:
                content2.append(n)
            else:
                content2 += encode_unsigned_varint(n)
            content2 += b1
            content2 += _p_hhx(item2.max_version_level, item2.min_version_level)
        section += encode_unsigned_varint(2)
        section += encode_unsigned_varint(len(content2))
        section += content2
    t3 = m.zk_migration_ready
    if t3:
        count += 1
        content3 = bytearray()
        content3 += _p_z(t3)
        section += encode_unsigned_varint(3)
        section += encode_unsigned_varint(len(content3))
        section += content3
    out += encode_unsigned_varint(count)
    out += section
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ApiVersionsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v3,
}


_response_encoders: Final[dict[int, Callable[[ApiVersionsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v3,
}


def decode_response(data: bytes | memoryview, version: int) -> ApiVersionsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ApiVersionsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ApiVersionsResponse", version) from None


def encode_response(message: ApiVersionsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ApiVersionsResponse has no version {version} here")
    return encode(message)
