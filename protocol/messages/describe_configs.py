"""DescribeConfigs, API key 32, versions 1 to 4, flexible from 4.

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

API_KEY: Final = 32
MIN_VERSION: Final = 1
MAX_VERSION: Final = 4
FIRST_FLEXIBLE_VERSION: Final[int | None] = 4

_p_b: Final = _Struct(">b").pack
_p_bh: Final = _Struct(">bh").pack
_p_bx: Final = _Struct(">bx").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_z: Final = _Struct(">?").pack
_p_zbz: Final = _Struct(">?b?").pack
_p_zbzi: Final = _Struct(">?b?i").pack
_p_zz: Final = _Struct(">??").pack
_p_zzx: Final = _Struct(">??x").pack
_u_b: Final = _Struct(">b").unpack_from
_u_bB: Final = _Struct(">bB").unpack_from
_u_bh: Final = _Struct(">bh").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_z: Final = _Struct(">?").unpack_from
_u_zbzB: Final = _Struct(">?b?B").unpack_from
_u_zbzi: Final = _Struct(">?b?i").unpack_from
_u_zz: Final = _Struct(">??").unpack_from
_u_zzB: Final = _Struct(">??B").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class DescribeConfigsResource(Message):
    """Part of DescribeConfigsRequest, versions 1-4."""

    __slots__ = (
        "resource_type",
        "resource_name",
        "configuration_keys",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = EMPTY,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configuration_keys: list[str] | None = [] if configuration_keys is EMPTY else configuration_keys


class DescribeConfigsRequest(Message):
    """Body of the request, versions 1-4."""

    __slots__ = (
        "resources",
        "include_synonyms",
        "include_documentation",
    )

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] = EMPTY,
        include_synonyms: bool = False,
        include_documentation: bool = False,  # versions 3-4
    ) -> None:
        self.resources: list[DescribeConfigsResource] = [] if resources is EMPTY else resources
        self.include_synonyms: bool = include_synonyms
        self.include_documentation: bool = include_documentation


class DescribeConfigsSynonym(Message):
    """Part of DescribeConfigsResponse, versions 1-4."""

    __slots__ = (
        "name",
        "value",
        "source",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.source: int = source


class DescribeConfigsResourceResult(Message):
    """Part of DescribeConfigsResponse, versions 1-4."""

    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = EMPTY,
        config_type: int = 0,  # versions 3-4
        documentation: str | None = "",  # versions 3-4
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.synonyms: list[DescribeConfigsSynonym] = [] if synonyms is EMPTY else synonyms
        self.config_type: int = config_type
        self.documentation: str | None = documentation


class DescribeConfigsResult(Message):
    """Part of DescribeConfigsResponse, versions 1-4."""

    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "configs",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[DescribeConfigsResourceResult] = [] if configs is EMPTY else configs


class DescribeConfigsResponse(Message):
    """Body of the response, versions 1-4."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DescribeConfigsResult] = [] if results is EMPTY else results


def _decode_request_v1(view: bytes | memoryview) -> DescribeConfigsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeConfigsRequest.__new__(DescribeConfigsRequest)
    m.include_documentation = False
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("resources")
    if n * 7 > end - p:
        raise count_error("resources", n)
    left -= n
    if left < 0:
        raise limit_error("resources")
    items: list[DescribeConfigsResource] = []
    m.resources = items
    for _ in range(n):
        item = DescribeConfigsResource.__new__(DescribeConfigsResource)
        item.resource_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("resource_name")
        e = p + n
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            item.configuration_keys = None
        else:
            if n * 2 > end - p:
                raise count_error("configuration_keys", n)
            left -= n
            if left < 0:
                raise limit_error("configuration_keys")
            items1: list[str] = []
            item.configuration_keys = items1
            for _ in range(n):
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    raise null_error("item1")
                e = p + n
                item1 = data[p:e].decode("utf-8", "replace")
                p = e
                items1.append(item1)
        items.append(item)
    m.include_synonyms, = _u_z(data, p)
    p += 1
    if p > end:
        raise end_error("DescribeConfigsRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> DescribeConfigsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeConfigsRequest.__new__(DescribeConfigsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("resources")
    if n * 7 > end - p:
        raise count_error("resources", n)
    left -= n
    if left < 0:
        raise limit_error("resources")
    items: list[DescribeConfigsResource] = []
    m.resources = items
    for _ in range(n):
        item = DescribeConfigsResource.__new__(DescribeConfigsResource)
        item.resource_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("resource_name")
        e = p + n
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            item.configuration_keys = None
        else:
            if n * 2 > end - p:
                raise count_error("configuration_keys", n)
            left -= n
            if left < 0:
                raise limit_error("configuration_keys")
            items1: list[str] = []
            item.configuration_keys = items1
            for _ in range(n):
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    raise null_error("item1")
                e = p + n
                item1 = data[p:e].decode("utf-8", "replace")
                p = e
                items1.append(item1)
        items.append(item)
    m.include_synonyms, m.include_documentation = _u_zz(data, p)
    p += 2
    if p > end:
        raise end_error("DescribeConfigsRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> DescribeConfigsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeConfigsRequest.__new__(DescribeConfigsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("resources")
    n -= 1
    if n * 4 > end - p:
        raise count_error("resources", n)
    left -= n
    if left < 0:
        raise limit_error("resources")
    items: list[DescribeConfigsResource] = []
    m.resources = items
    for _ in range(n):
        item = DescribeConfigsResource.__new__(DescribeConfigsResource)
        item.resource_type, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("resource_name")
        e = p + n - 1
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.configuration_keys = None
        else:
            n -= 1
            if n > end - p:
                raise count_error("configuration_keys", n)
            left -= n
            if left < 0:
                raise limit_error("configuration_keys")
            items1: list[str] = []
            item.configuration_keys = items1
            for _ in range(n):
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("item1")
                e = p + n - 1
                item1 = data[p:e].decode("utf-8", "replace")
                p = e
                items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DescribeConfigsResource")
            p = skip_fields(data, p, n)
        items.append(item)
    m.include_synonyms, m.include_documentation, n = _u_zzB(data, p)
    p += 3
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeConfigsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeConfigsRequest")
    return m


def _encode_request_v1(m: DescribeConfigsRequest) -> bytes:
    out = bytearray()
    items = m.resources
    out += _p_i(len(items))
    for item in items:
        b = item.resource_name.encode()
        out += _p_bh(item.resource_type, len(b))
        out += b
        items1 = item.configuration_keys
        if items1 is None:
            out += _NULL_INT32
        else:
            out += _p_i(len(items1))
            for item1 in items1:
                b1 = item1.encode()
                out += _p_h(len(b1))
                out += b1
    out += _p_z(m.include_synonyms)
    return bytes(out)


def _encode_request_v3(m: DescribeConfigsRequest) -> bytes:
    out = bytearray()
    items = m.resources
    out += _p_i(len(items))
    for item in items:
        b = item.resource_name.encode()
        out += _p_bh(item.resource_type, len(b))
        out += b
        items1 = item.configuration_keys
        if items1 is None:
            out += _NULL_INT32
        else:
            out += _p_i(len(items1))
            for item1 in items1:
                b1 = item1.encode()
                out += _p_h(len(b1))
                out += b1
    out += _p_zz(m.include_synonyms, m.include_documentation)
    return bytes(out)


def _encode_request_v4(m: DescribeConfigsRequest) -> bytes:
    out = bytearray()
    items = m.resources
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.resource_name.encode()
        out += _p_b(item.resource_type)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.configuration_keys
        if items1 is None:
            out += b"\x00"
        else:
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item1 in items1:
                b1 = item1.encode()
                n = len(b1) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b1
        out += b"\x00"
    out += _p_zzx(m.include_synonyms, m.include_documentation)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeConfigsRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v3,
    4: _decode_request_v4,
}


_request_encoders: Final[dict[int, Callable[[DescribeConfigsRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v3,
    4: _encode_request_v4,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeConfigsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeConfigsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeConfigsRequest", version) from None


def encode_request(message: DescribeConfigsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeConfigsRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> DescribeConfigsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeConfigsResponse.__new__(DescribeConfigsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("results")
    if n * 11 > end - p:
        raise count_error("results", n)
    items: list[DescribeConfigsResult] = []
    m.results = items
    for _ in range(n):
        item = DescribeConfigsResult.__new__(DescribeConfigsResult)
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            item.error_message = None
        else:
            e = p + n
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        item.resource_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("resource_name")
        e = p + n
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("configs")
        if n * 11 > end - p:
            raise count_error("configs", n)
        items1: list[DescribeConfigsResourceResult] = []
        item.configs = items1
        for _ in range(n):
            item1 = DescribeConfigsResourceResult.__new__(DescribeConfigsResourceResult)
            item1.config_type = 0
            item1.documentation = ""
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("name")
            e = p + n
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                item1.value = None
            else:
                e = p + n
                item1.value = data[p:e].decode("utf-8", "replace")
                p = e
            item1.read_only, item1.config_source, item1.is_sensitive, n = _u_zbzi(data, p)
            p += 7
            if n < 0:
                raise null_error("synonyms")
            if n * 5 > end - p:
                raise count_error("synonyms", n)
            items2: list[DescribeConfigsSynonym] = []
            item1.synonyms = items2
            for _ in range(n):
                item2 = DescribeConfigsSynonym.__new__(DescribeConfigsSynonym)
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    raise null_error("name")
                e = p + n
                item2.name = data[p:e].decode("utf-8", "replace")
                p = e
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    item2.value = None
                else:
                    e = p + n
                    item2.value = data[p:e].decode("utf-8", "replace")
                    p = e
                item2.source, = _u_b(data, p)
                p += 1
                items2.append(item2)
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("DescribeConfigsResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> DescribeConfigsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeConfigsResponse.__new__(DescribeConfigsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("results")
    if n * 11 > end - p:
        raise count_error("results", n)
    items: list[DescribeConfigsResult] = []
    m.results = items
    for _ in range(n):
        item = DescribeConfigsResult.__new__(DescribeConfigsResult)
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            item.error_message = None
        else:
            e = p + n
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        item.resource_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            raise null_error("resource_name")
        e = p + n
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("configs")
        if n * 14 > end - p:
            raise count_error("configs", n)
        items1: list[DescribeConfigsResourceResult] = []
        item.configs = items1
        for _ in range(n):
            item1 = DescribeConfigsResourceResult.__new__(DescribeConfigsResourceResult)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("name")
            e = p + n
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                item1.value = None
            else:
                e = p + n
                item1.value = data[p:e].decode("utf-8", "replace")
                p = e
            item1.read_only, item1.config_source, item1.is_sensitive, n = _u_zbzi(data, p)
            p += 7
            if n < 0:
                raise null_error("synonyms")
            if n * 5 > end - p:
                raise count_error("synonyms", n)
            items2: list[DescribeConfigsSynonym] = []
            item1.synonyms = items2
            for _ in range(n):
                item2 = DescribeConfigsSynonym.__new__(DescribeConfigsSynonym)
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    raise null_error("name")
                e = p + n
                item2.name = data[p:e].decode("utf-8", "replace")
                p = e
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    item2.value = None
                else:
                    e = p + n
                    item2.value = data[p:e].decode("utf-8", "replace")
                    p = e
                item2.source, = _u_b(data, p)
                p += 1
                items2.append(item2)
            item1.config_type, n = _u_bh(data, p)
            p += 3
            if n < 0:
                item1.documentation = None
            else:
                e = p + n
                item1.documentation = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("DescribeConfigsResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> DescribeConfigsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeConfigsResponse.__new__(DescribeConfigsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 7 > end - p:
        raise count_error("results", n)
    items: list[DescribeConfigsResult] = []
    m.results = items
    for _ in range(n):
        item = DescribeConfigsResult.__new__(DescribeConfigsResult)
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
        item.resource_type, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("resource_name")
        e = p + n - 1
        item.resource_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("configs")
        n -= 1
        if n * 9 > end - p:
            raise count_error("configs", n)
        items1: list[DescribeConfigsResourceResult] = []
        item.configs = items1
        for _ in range(n):
            item1 = DescribeConfigsResourceResult.__new__(DescribeConfigsResourceResult)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.value = None
            else:
                e = p + n - 1
                item1.value = data[p:e].decode("utf-8", "replace")
                p = e
            item1.read_only, item1.config_source, item1.is_sensitive, n = _u_zbzB(data, p)
            p += 4
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("synonyms")
            n -= 1
            if n * 4 > end - p:
                raise count_error("synonyms", n)
            items2: list[DescribeConfigsSynonym] = []
            item1.synonyms = items2
            for _ in range(n):
                item2 = DescribeConfigsSynonym.__new__(DescribeConfigsSynonym)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("name")
                e = p + n - 1
                item2.name = data[p:e].decode("utf-8", "replace")
                p = e
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item2.value = None
                else:
                    e = p + n - 1
                    item2.value = data[p:e].decode("utf-8", "replace")
                    p = e
                item2.source, n = _u_bB(data, p)
                p += 2
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            item1.config_type, n = _u_bB(data, p)
            p += 2
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.documentation = None
            else:
                e = p + n - 1
                item1.documentation = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items1.append(item1)
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
        raise end_error("DescribeConfigsResponse")
    return m


def _encode_response_v1(m: DescribeConfigsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        out += _p_h(item.error_code)
        v = item.error_message
        if v is None:
            out += b"\xff\xff"
        else:
            b = v.encode()
            out += _p_h(len(b))
            out += b
        b1 = item.resource_name.encode()
        out += _p_bh(item.resource_type, len(b1))
        out += b1
        items1 = item.configs
        out += _p_i(len(items1))
        for item1 in items1:
            b2 = item1.name.encode()
            out += _p_h(len(b2))
            out += b2
            v3 = item1.value
            if v3 is None:
                out += b"\xff\xff"
            else:
                b3 = v3.encode()
                out += _p_h(len(b3))
                out += b3
            items2 = item1.synonyms
            out += _p_zbzi(item1.read_only, item1.config_source, item1.is_sensitive, len(items2))
            for item2 in items2:
                b4 = item2.name.encode()
                out += _p_h(len(b4))
                out += b4
                v5 = item2.value
                if v5 is None:
                    out += b"\xff\xff"
                else:
                    b5 = v5.encode()
                    out += _p_h(len(b5))
                    out += b5
                out += _p_b(item2.source)
    return bytes(out)


def _encode_response_v3(m: DescribeConfigsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        out += _p_h(item.error_code)
        v = item.error_message
        if v is None:
            out += b"\xff\xff"
        else:
            b = v.encode()
            out += _p_h(len(b))
            out += b
        b1 = item.resource_name.encode()
        out += _p_bh(item.resource_type, len(b1))
        out += b1
        items1 = item.configs
        out += _p_i(len(items1))
        for item1 in items1:
            b2 = item1.name.encode()
            out += _p_h(len(b2))
            out += b2
            v3 = item1.value
            if v3 is None:
                out += b"\xff\xff"
            else:
                b3 = v3.encode()
                out += _p_h(len(b3))
                out += b3
            items2 = item1.synonyms
            out += _p_zbzi(item1.read_only, item1.config_source, item1.is_sensitive, len(items2))
            for item2 in items2:
                b4 = item2.name.encode()
                out += _p_h(len(b4))
                out += b4
                v5 = item2.value
                if v5 is None:
                    out += b"\xff\xff"
                else:
                    b5 = v5.encode()
                    out += _p_h(len(b5))
                    out += b5
                out += _p_b(item2.source)
            out += _p_b(item1.config_type)
            v6 = item1.documentation
            if v6 is None:
                out += b"\xff\xff"
            else:
                b6 = v6.encode()
                out += _p_h(len(b6))
                out += b6
    return bytes(out)


def _encode_response_v4(m: DescribeConfigsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        out += _p_h(item.error_code)
        v = item.error_message
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
        b1 = item.resource_name.encode()
        out += _p_b(item.resource_type)
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items1 = item.configs
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b2 = item1.name.encode()
            n = len(b2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b2
            v3 = item1.value
            if v3 is None:
                out += b"\x00"
            else:
                b3 = v3.encode()
                n = len(b3) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b3
            items2 = item1.synonyms
            out += _p_zbz(item1.read_only, item1.config_source, item1.is_sensitive)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                b4 = item2.name.encode()
                n = len(b4) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b4
                v5 = item2.value
                if v5 is None:
                    out += b"\x00"
                else:
                    b5 = v5.encode()
                    n = len(b5) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    out += b5
                out += _p_bx(item2.source)
            out += _p_b(item1.config_type)
            v6 = item1.documentation
            if v6 is None:
                out += b"\x00"
            else:
                b6 = v6.encode()
                n = len(b6) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b6
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeConfigsResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
}


_response_encoders: Final[dict[int, Callable[[DescribeConfigsResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeConfigsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeConfigsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeConfigsResponse", version) from None


def encode_response(message: DescribeConfigsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeConfigsResponse has no version {version} here")
    return encode(message)
