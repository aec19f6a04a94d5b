"""AlterClientQuotas, API key 49, versions 0 to 1, flexible from 1.

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

API_KEY: Final = 49
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_dz: Final = _Struct(">d?").pack
_p_dzx: Final = _Struct(">d?x").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_z: Final = _Struct(">?").pack
_p_zx: Final = _Struct(">?x").pack
_u_dz: Final = _Struct(">d?").unpack_from
_u_dzB: Final = _Struct(">d?B").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_z: Final = _Struct(">?").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class AlterClientQuotasRequestEntityData(Message):
    """Part of AlterClientQuotasRequest, versions 0-1."""

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


class OpData(Message):
    """Part of AlterClientQuotasRequest, versions 0-1."""

    __slots__ = (
        "key",
        "value",
        "remove",
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key: str = key
        self.value: float = value
        self.remove: bool = remove


class AlterClientQuotasRequestEntryData(Message):
    """Part of AlterClientQuotasRequest, versions 0-1."""

    __slots__ = (
        "entity",
        "ops",
    )

    def __init__(
        self,
        *,
        entity: list[AlterClientQuotasRequestEntityData] = EMPTY,
        ops: list[OpData] = EMPTY,
    ) -> None:
        self.entity: list[AlterClientQuotasRequestEntityData] = [] if entity is EMPTY else entity
        self.ops: list[OpData] = [] if ops is EMPTY else ops


class AlterClientQuotasRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "entries",
        "validate_only",
    )

    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequestEntryData] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.entries: list[AlterClientQuotasRequestEntryData] = [] if entries is EMPTY else entries
        self.validate_only: bool = validate_only


class AlterClientQuotasResponseEntityData(Message):
    """Part of AlterClientQuotasResponse, versions 0-1."""

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


class AlterClientQuotasResponseEntryData(Message):
    """Part of AlterClientQuotasResponse, versions 0-1."""

    __slots__ = (
        "error_code",
        "error_message",
        "entity",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[AlterClientQuotasResponseEntityData] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.entity: list[AlterClientQuotasResponseEntityData] = [] if entity is EMPTY else entity


class AlterClientQuotasResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "entries",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[AlterClientQuotasResponseEntryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.entries: list[AlterClientQuotasResponseEntryData] = [] if entries is EMPTY else entries


def _decode_request_v0(view: bytes | memoryview) -> AlterClientQuotasRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterClientQuotasRequest.__new__(AlterClientQuotasRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("entries")
    if n * 8 > end - p:
        raise count_error("entries", n)
    left -= n
    if left < 0:
        raise limit_error("entries")
    items: list[AlterClientQuotasRequestEntryData] = []
    m.entries = items
    for _ in range(n):
        item = AlterClientQuotasRequestEntryData.__new__(AlterClientQuotasRequestEntryData)
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("entity")
        if n * 4 > end - p:
            raise count_error("entity", n)
        left -= n
        if left < 0:
            raise limit_error("entity")
        items1: list[AlterClientQuotasRequestEntityData] = []
        item.entity = items1
        for _ in range(n):
            item1 = AlterClientQuotasRequestEntityData.__new__(AlterClientQuotasRequestEntityData)
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
            raise null_error("ops")
        if n * 11 > end - p:
            raise count_error("ops", n)
        left -= n
        if left < 0:
            raise limit_error("ops")
        items2: list[OpData] = []
        item.ops = items2
        for _ in range(n):
            item2 = OpData.__new__(OpData)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("key")
            e = p + n
            item2.key = data[p:e].decode("utf-8", "replace")
            p = e
            item2.value, item2.remove = _u_dz(data, p)
            p += 9
            items2.append(item2)
        items.append(item)
    m.validate_only, = _u_z(data, p)
    p += 1
    if p > end:
        raise end_error("AlterClientQuotasRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> AlterClientQuotasRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterClientQuotasRequest.__new__(AlterClientQuotasRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("entries")
    n -= 1
    if n * 3 > end - p:
        raise count_error("entries", n)
    left -= n
    if left < 0:
        raise limit_error("entries")
    items: list[AlterClientQuotasRequestEntryData] = []
    m.entries = items
    for _ in range(n):
        item = AlterClientQuotasRequestEntryData.__new__(AlterClientQuotasRequestEntryData)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("entity")
        n -= 1
        if n * 3 > end - p:
            raise count_error("entity", n)
        left -= n
        if left < 0:
            raise limit_error("entity")
        items1: list[AlterClientQuotasRequestEntityData] = []
        item.entity = items1
        for _ in range(n):
            item1 = AlterClientQuotasRequestEntityData.__new__(AlterClientQuotasRequestEntityData)
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
                left -= n
                if left < 0:
                    raise limit_error("AlterClientQuotasRequestEntityData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("ops")
        n -= 1
        if n * 11 > end - p:
            raise count_error("ops", n)
        left -= n
        if left < 0:
            raise limit_error("ops")
        items2: list[OpData] = []
        item.ops = items2
        for _ in range(n):
            item2 = OpData.__new__(OpData)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("key")
            e = p + n - 1
            item2.key = data[p:e].decode("utf-8", "replace")
            p = e
            item2.value, item2.remove, n = _u_dzB(data, p)
            p += 10
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("OpData")
                p = skip_fields(data, p, n)
            items2.append(item2)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AlterClientQuotasRequestEntryData")
            p = skip_fields(data, p, n)
        items.append(item)
    m.validate_only, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AlterClientQuotasRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AlterClientQuotasRequest")
    return m


def _encode_request_v0(m: AlterClientQuotasRequest) -> bytes:
    out = bytearray()
    items = m.entries
    out += _p_i(len(items))
    for item in items:
        items1 = item.entity
        out += _p_i(len(items1))
        for item1 in items1:
            b = item1.entity_type.encode()
            out += _p_h(len(b))
            out += b
            v1 = item1.entity_name
            if v1 is None:
                out += b"\xff\xff"
            else:
                b1 = v1.encode()
                out += _p_h(len(b1))
                out += b1
        items2 = item.ops
        out += _p_i(len(items2))
        for item2 in items2:
            b2 = item2.key.encode()
            out += _p_h(len(b2))
            out += b2
            out += _p_dz(item2.value, item2.remove)
    out += _p_z(m.validate_only)
    return bytes(out)


def _encode_request_v1(m: AlterClientQuotasRequest) -> bytes:
    out = bytearray()
    items = m.entries
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
            b = item1.entity_type.encode()
            n = len(b) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b
            v1 = item1.entity_name
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
        items2 = item.ops
        n = len(items2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item2 in items2:
            b2 = item2.key.encode()
            n = len(b2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b2
            out += _p_dzx(item2.value, item2.remove)
        out += b"\x00"
    out += _p_zx(m.validate_only)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterClientQuotasRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[AlterClientQuotasRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> AlterClientQuotasRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AlterClientQuotasRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterClientQuotasRequest", version) from None


def encode_request(message: AlterClientQuotasRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterClientQuotasRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AlterClientQuotasResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterClientQuotasResponse.__new__(AlterClientQuotasResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("entries")
    if n * 8 > end - p:
        raise count_error("entries", n)
    items: list[AlterClientQuotasResponseEntryData] = []
    m.entries = items
    for _ in range(n):
        item = AlterClientQuotasResponseEntryData.__new__(AlterClientQuotasResponseEntryData)
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            item.error_message = None
        else:
            e = p + n
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("entity")
        if n * 4 > end - p:
            raise count_error("entity", n)
        items1: list[AlterClientQuotasResponseEntityData] = []
        item.entity = items1
        for _ in range(n):
            item1 = AlterClientQuotasResponseEntityData.__new__(AlterClientQuotasResponseEntityData)
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
        items.append(item)
    if p > end:
        raise end_error("AlterClientQuotasResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> AlterClientQuotasResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterClientQuotasResponse.__new__(AlterClientQuotasResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("entries")
    n -= 1
    if n * 5 > end - p:
        raise count_error("entries", n)
    items: list[AlterClientQuotasResponseEntryData] = []
    m.entries = items
    for _ in range(n):
        item = AlterClientQuotasResponseEntryData.__new__(AlterClientQuotasResponseEntryData)
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("entity")
        n -= 1
        if n * 3 > end - p:
            raise count_error("entity", n)
        items1: list[AlterClientQuotasResponseEntityData] = []
        item.entity = items1
        for _ in range(n):
            item1 = AlterClientQuotasResponseEntityData.__new__(AlterClientQuotasResponseEntityData)
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
        raise end_error("AlterClientQuotasResponse")
    return m


def _encode_response_v0(m: AlterClientQuotasResponse) -> bytes:
    out = bytearray()
    items = m.entries
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
    return bytes(out)


def _encode_response_v1(m: AlterClientQuotasResponse) -> bytes:
    out = bytearray()
    items = m.entries
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
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterClientQuotasResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[AlterClientQuotasResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> AlterClientQuotasResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AlterClientQuotasResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterClientQuotasResponse", version) from None


def encode_response(message: AlterClientQuotasResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterClientQuotasResponse has no version {version} here")
    return encode(message)
