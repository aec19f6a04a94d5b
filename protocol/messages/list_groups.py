"""ListGroups, API key 16, versions 0 to 5, flexible from 3.

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

API_KEY: Final = 16
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FIRST_FLEXIBLE_VERSION: Final[int | None] = 3

_p_h: Final = _Struct(">h").pack
_p_hi: Final = _Struct(">hi").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihi: Final = _Struct(">ihi").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hi: Final = _Struct(">hi").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihi: Final = _Struct(">ihi").unpack_from


class ListGroupsRequest(Message):
    """Body of the request, versions 0-5."""

    __slots__ = (
        "states_filter",
        "types_filter",
    )

    def __init__(
        self,
        *,
        states_filter: list[str] = EMPTY,  # versions 4-5
        types_filter: list[str] = EMPTY,  # versions 5
    ) -> None:
        self.states_filter: list[str] = [] if states_filter is EMPTY else states_filter
        self.types_filter: list[str] = [] if types_filter is EMPTY else types_filter


class ListedGroup(Message):
    """Part of ListGroupsResponse, versions 0-5."""

    __slots__ = (
        "group_id",
        "protocol_type",
        "group_state",
        "group_type",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",  # versions 4-5
        group_type: str = "",  # versions 5
    ) -> None:
        self.group_id: str = group_id
        self.protocol_type: str = protocol_type
        self.group_state: str = group_state
        self.group_type: str = group_type


class ListGroupsResponse(Message):
    """Body of the response, versions 0-5."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "groups",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 1-5
        error_code: int = 0,
        groups: list[ListedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.groups: list[ListedGroup] = [] if groups is EMPTY else groups


def _decode_request_v0(view: bytes | memoryview) -> ListGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListGroupsRequest.__new__(ListGroupsRequest)
    m.states_filter = []
    m.types_filter = []
    if p > end:
        raise end_error("ListGroupsRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> ListGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListGroupsRequest.__new__(ListGroupsRequest)
    m.states_filter = []
    m.types_filter = []
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListGroupsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListGroupsRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> ListGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListGroupsRequest.__new__(ListGroupsRequest)
    m.types_filter = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("states_filter")
    n -= 1
    if n > end - p:
        raise count_error("states_filter", n)
    left -= n
    if left < 0:
        raise limit_error("states_filter")
    items: list[str] = []
    m.states_filter = items
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
        left -= n
        if left < 0:
            raise limit_error("ListGroupsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListGroupsRequest")
    return m


def _decode_request_v5(view: bytes | memoryview) -> ListGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListGroupsRequest.__new__(ListGroupsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("states_filter")
    n -= 1
    if n > end - p:
        raise count_error("states_filter", n)
    left -= n
    if left < 0:
        raise limit_error("states_filter")
    items: list[str] = []
    m.states_filter = items
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("types_filter")
    n -= 1
    if n > end - p:
        raise count_error("types_filter", n)
    left -= n
    if left < 0:
        raise limit_error("types_filter")
    items1: list[str] = []
    m.types_filter = items1
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
            raise limit_error("ListGroupsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListGroupsRequest")
    return m


def _encode_request_v0(m: ListGroupsRequest) -> bytes:
    out = bytearray()
    return bytes(out)


def _encode_request_v3(m: ListGroupsRequest) -> bytes:
    out = bytearray()
    out += b"\x00"
    return bytes(out)


def _encode_request_v4(m: ListGroupsRequest) -> bytes:
    out = bytearray()
    items = m.states_filter
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
    out += b"\x00"
    return bytes(out)


def _encode_request_v5(m: ListGroupsRequest) -> bytes:
    out = bytearray()
    items = m.states_filter
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
    items1 = m.types_filter
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
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ListGroupsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v5,
}


_request_encoders: Final[dict[int, Callable[[ListGroupsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v5,
}


def decode_request(data: bytes | memoryview, version: int) -> ListGroupsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ListGroupsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListGroupsRequest", version) from None


def encode_request(message: ListGroupsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListGroupsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ListGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListGroupsResponse.__new__(ListGroupsResponse)
    m.throttle_time_ms = 0
    m.error_code, n = _u_hi(data, p)
    p += 6
    if n < 0:
        raise null_error("groups")
    if n * 4 > end - p:
        raise count_error("groups", n)
    items: list[ListedGroup] = []
    m.groups = items
    for _ in range(n):
        item = ListedGroup.__new__(ListedGroup)
        item.group_state = ""
        item.group_type = ""
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("group_id")
        e = p + n
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_type")
        e = p + n
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    if p > end:
        raise end_error("ListGroupsResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> ListGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListGroupsResponse.__new__(ListGroupsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihi(data, p)
    p += 10
    if n < 0:
        raise null_error("groups")
    if n * 4 > end - p:
        raise count_error("groups", n)
    items: list[ListedGroup] = []
    m.groups = items
    for _ in range(n):
        item = ListedGroup.__new__(ListedGroup)
        item.group_state = ""
        item.group_type = ""
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("group_id")
        e = p + n
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_type")
        e = p + n
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    if p > end:
        raise end_error("ListGroupsResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> ListGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListGroupsResponse.__new__(ListGroupsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 3 > end - p:
        raise count_error("groups", n)
    items: list[ListedGroup] = []
    m.groups = items
    for _ in range(n):
        item = ListedGroup.__new__(ListedGroup)
        item.group_state = ""
        item.group_type = ""
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("protocol_type")
        e = p + n - 1
        item.protocol_type = data[p:e].decode("utf-8", "replace")
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
        raise end_error("ListGroupsResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> ListGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListGroupsResponse.__new__(ListGroupsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 4 > end - p:
        raise count_error("groups", n)
    items: list[ListedGroup] = []
    m.groups = items
    for _ in range(n):
        item = ListedGroup.__new__(ListedGroup)
        item.group_type = ""
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("protocol_type")
        e = p + n - 1
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_state")
        e = p + n - 1
        item.group_state = data[p:e].decode("utf-8", "replace")
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
        raise end_error("ListGroupsResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> ListGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListGroupsResponse.__new__(ListGroupsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 5 > end - p:
        raise count_error("groups", n)
    items: list[ListedGroup] = []
    m.groups = items
    for _ in range(n):
        item = ListedGroup.__new__(ListedGroup)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("protocol_type")
        e = p + n - 1
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_state")
        e = p + n - 1
        item.group_state = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_type")
        e = p + n - 1
        item.group_type = data[p:e].decode("utf-8", "replace")
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
        raise end_error("ListGroupsResponse")
    return m


def _encode_response_v0(m: ListGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_hi(m.error_code, len(items))
    for item in items:
        b = item.group_id.encode()
        out += _p_h(len(b))
        out += b
        b1 = item.protocol_type.encode()
        out += _p_h(len(b1))
        out += b1
    return bytes(out)


def _encode_response_v1(m: ListGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_ihi(m.throttle_time_ms, m.error_code, len(items))
    for item in items:
        b = item.group_id.encode()
        out += _p_h(len(b))
        out += b
        b1 = item.protocol_type.encode()
        out += _p_h(len(b1))
        out += b1
    return bytes(out)


def _encode_response_v3(m: ListGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        b1 = item.protocol_type.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v4(m: ListGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        b1 = item.protocol_type.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        b2 = item.group_state.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v5(m: ListGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        b1 = item.protocol_type.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        b2 = item.group_state.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        b3 = item.group_type.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ListGroupsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v5,
}


_response_encoders: Final[dict[int, Callable[[ListGroupsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v5,
}


def decode_response(data: bytes | memoryview, version: int) -> ListGroupsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ListGroupsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListGroupsResponse", version) from None


def encode_response(message: ListGroupsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListGroupsResponse has no version {version} here")
    return encode(message)
