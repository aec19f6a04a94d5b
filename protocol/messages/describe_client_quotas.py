"""DescribeClientQuotas, API key 48, versions 0 to 1, flexible from 1.

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

API_KEY: Final = 48
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_b: Final = _Struct(">b").pack
_p_d: Final = _Struct(">d").pack
_p_dx: Final = _Struct(">dx").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_z: Final = _Struct(">?").pack
_p_zx: Final = _Struct(">?x").pack
_u_bB: Final = _Struct(">bB").unpack_from
_u_bh: Final = _Struct(">bh").unpack_from
_u_d: Final = _Struct(">d").unpack_from
_u_dB: Final = _Struct(">dB").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihh: Final = _Struct(">ihh").unpack_from
_u_z: Final = _Struct(">?").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class ComponentData(Message):
    """Part of DescribeClientQuotasRequest, versions 0-1."""

    __slots__ = (
        "entity_type",
        "match_type",
        "match",
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type: str = entity_type
        self.match_type: int = match_type
        self.match: str | None = match


class DescribeClientQuotasRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "components",
        "strict",
    )

    def __init__(
        self,
        *,
        components: list[ComponentData] = EMPTY,
        strict: bool = False,
    ) -> None:
        self.components: list[ComponentData] = [] if components is EMPTY else components
        self.strict: bool = strict


class EntityData(Message):
    """Part of DescribeClientQuotasResponse, versions 0-1."""

    __slots__ = (
        "entity_type",
        "entity_name",
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type: str = entity_type
        self.entity_name: str | None = entity_name


class ValueData(Message):
    """Part of DescribeClientQuotasResponse, versions 0-1."""

    __slots__ = (
        "key",
        "value",
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key: str = key
        self.value: float = value


class EntryData(Message):
    """Part of DescribeClientQuotasResponse, versions 0-1."""

    __slots__ = (
        "entity",
        "values",
    )

    def __init__(
        self,
        *,
        entity: list[EntityData] = EMPTY,
        values: list[ValueData] = EMPTY,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is EMPTY else entity
        self.values: list[ValueData] = [] if values is EMPTY else values


class DescribeClientQuotasResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "entries",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entries: list[EntryData] | None = [] if entries is EMPTY else entries


def _decode_request_v0(view: bytes | memoryview) -> DescribeClientQuotasRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeClientQuotasRequest.__new__(DescribeClientQuotasRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("components")
    if n * 5 > end - p:
        raise count_error("components", n)
    left -= n
    if left < 0:
        raise limit_error("components")
    items: list[ComponentData] = []
    m.components = items
    for _ in range(n):
        item = ComponentData.__new__(ComponentData)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("entity_type")
        e = p + n
        item.entity_type = data[p:e].decode("utf-8", "replace")
        p = e
        item.match_type, n = _u_bh(data, p)
        p += 3
        if n < 0:
            item.match = None
        else:
            e = p + n
            item.match = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    m.strict, = _u_z(data, p)
    p += 1
    if p > end:
        raise end_error("DescribeClientQuotasRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> DescribeClientQuotasRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeClientQuotasRequest.__new__(DescribeClientQuotasRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("components")
    n -= 1
    if n * 4 > end - p:
        raise count_error("components", n)
    left -= n
    if left < 0:
        raise limit_error("components")
    items: list[ComponentData] = []
    m.components = items
    for _ in range(n):
        item = ComponentData.__new__(ComponentData)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("entity_type")
        e = p + n - 1
        item.entity_type = data[p:e].decode("utf-8", "replace")
        p = e
        item.match_type, n = _u_bB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.match = None
        else:
            e = p + n - 1
            item.match = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ComponentData")
            p = skip_fields(data, p, n)
        items.append(item)
    m.strict, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeClientQuotasRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeClientQuotasRequest")
    return m


def _encode_request_v0(m: DescribeClientQuotasRequest) -> bytes:
    out = bytearray()
    items = m.components
    out += _p_i(len(items))
    for item in items:
        b = item.entity_type.encode()
        out += _p_h(len(b))
        out += b
        out += _p_b(item.match_type)
        v1 = item.match
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    out += _p_z(m.strict)
    return bytes(out)


def _encode_request_v1(m: DescribeClientQuotasRequest) -> bytes:
    out = bytearray()
    items = m.components
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.entity_type.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_b(item.match_type)
        v1 = item.match
        if v1 is None:
            out += b"\x00"
        else:
            b1 = v1.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
        out += b"\x00"
    out += _p_zx(m.strict)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeClientQuotasRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[DescribeClientQuotasRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeClientQuotasRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeClientQuotasRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeClientQuotasRequest", version) from None


def encode_request(message: DescribeClientQuotasRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeClientQuotasRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeClientQuotasResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeClientQuotasResponse.__new__(DescribeClientQuotasResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihh(data, p)
    p += 8
    if n < 0:
        m.error_message = None
    else:
        e = p + n
        m.error_message = data[p:e].decode("utf-8", "replace")
        p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        m.entries = None
    else:
        if n * 8 > end - p:
            raise count_error("entries", n)
        items: list[EntryData] = []
        m.entries = items
        for _ in range(n):
            item = EntryData.__new__(EntryData)
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("entity")
            if n * 4 > end - p:
                raise count_error("entity", n)
            items1: list[EntityData] = []
            item.entity = items1
            for _ in range(n):
                item1 = EntityData.__new__(EntityData)
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    raise null_error("entity_type")
                e = p + n
                item1.entity_type = data[p:e].decode("utf-8", "replace")
                p = e
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    item1.entity_name = None
                else:
                    e = p + n
                    item1.entity_name = data[p:e].decode("utf-8", "replace")
                    p = e
                items1.append(item1)
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("values")
            if n * 10 > end - p:
                raise count_error("values", n)
            items2: list[ValueData] = []
            item.values = items2
            for _ in range(n):
                item2 = ValueData.__new__(ValueData)
                n, = _u_h(data, p)
                p += 2
                if n < 0:
                    raise null_error("key")
                e = p + n
                item2.key = data[p:e].decode("utf-8", "replace")
                p = e
                item2.value, = _u_d(data, p)
                p += 8
                items2.append(item2)
            items.append(item)
    if p > end:
        raise end_error("DescribeClientQuotasResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> DescribeClientQuotasResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeClientQuotasResponse.__new__(DescribeClientQuotasResponse)
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
        m.entries = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("entries", n)
        items: list[EntryData] = []
        m.entries = items
        for _ in range(n):
            item = EntryData.__new__(EntryData)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("entity")
            n -= 1
            if n * 3 > end - p:
                raise count_error("entity", n)
            items1: list[EntityData] = []
            item.entity = items1
            for _ in range(n):
                item1 = EntityData.__new__(EntityData)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("entity_type")
                e = p + n - 1
                item1.entity_type = data[p:e].decode("utf-8", "replace")
                p = e
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item1.entity_name = None
                else:
                    e = p + n - 1
                    item1.entity_name = data[p:e].decode("utf-8", "replace")
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
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("values")
            n -= 1
            if n * 10 > end - p:
                raise count_error("values", n)
            items2: list[ValueData] = []
            item.values = items2
            for _ in range(n):
                item2 = ValueData.__new__(ValueData)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("key")
                e = p + n - 1
                item2.key = data[p:e].decode("utf-8", "replace")
                p = e
                item2.value, n = _u_dB(data, p)
                p += 9
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
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
        raise end_error("DescribeClientQuotasResponse")
    return m


def _encode_response_v0(m: DescribeClientQuotasResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    v = m.error_message
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    items = m.entries
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            items1 = item.entity
            out += _p_i(len(items1))
            for item1 in items1:
                b1 = item1.entity_type.encode()
                out += _p_h(len(b1))
                out += b1
                v2 = item1.entity_name
                if v2 is None:
                    out += b"\xff\xff"
                else:
                    b2 = v2.encode()
                    out += _p_h(len(b2))
                    out += b2
            items2 = item.values
            out += _p_i(len(items2))
            for item2 in items2:
                b3 = item2.key.encode()
                out += _p_h(len(b3))
                out += b3
                out += _p_d(item2.value)
    return bytes(out)


def _encode_response_v1(m: DescribeClientQuotasResponse) -> bytes:
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
    items = m.entries
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            items1 = item.entity
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item1 in items1:
                b1 = item1.entity_type.encode()
                n = len(b1) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b1
                v2 = item1.entity_name
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
            items2 = item.values
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                b3 = item2.key.encode()
                n = len(b3) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b3
                out += _p_dx(item2.value)
            out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeClientQuotasResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[DescribeClientQuotasResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeClientQuotasResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeClientQuotasResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeClientQuotasResponse", version) from None


def encode_response(message: DescribeClientQuotasResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeClientQuotasResponse has no version {version} here")
    return encode(message)
