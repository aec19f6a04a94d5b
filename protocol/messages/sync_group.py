"""SyncGroup, API key 14, versions 0 to 5, flexible from 4.

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

API_KEY: Final = 14
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FIRST_FLEXIBLE_VERSION: Final[int | None] = 4

_p_h: Final = _Struct(">h").pack
_p_hi: Final = _Struct(">hi").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihi: Final = _Struct(">ihi").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hi: Final = _Struct(">hi").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihi: Final = _Struct(">ihi").unpack_from


class SyncGroupRequestAssignment(Message):
    """Part of SyncGroupRequest, versions 0-5."""

    __slots__ = (
        "member_id",
        "assignment",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b'',
    ) -> None:
        self.member_id: str = member_id
        self.assignment: bytes = assignment


class SyncGroupRequest(Message):
    """Body of the request, versions 0-5."""

    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,  # versions 3-5
        protocol_type: str | None = None,  # versions 5
        protocol_name: str | None = None,  # versions 5
        assignments: list[SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignments: list[SyncGroupRequestAssignment] = [] if assignments is EMPTY else assignments


class SyncGroupResponse(Message):
    """Body of the response, versions 0-5."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "protocol_type",
        "protocol_name",
        "assignment",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 1-5
        error_code: int = 0,
        protocol_type: str | None = None,  # versions 5
        protocol_name: str | None = None,  # versions 5
        assignment: bytes = b'',
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignment: bytes = assignment


def _decode_request_v0(view: bytes | memoryview) -> SyncGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = SyncGroupRequest.__new__(SyncGroupRequest)
    m.group_instance_id = None
    m.protocol_type = None
    m.protocol_name = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("assignments")
    if n * 6 > end - p:
        raise count_error("assignments", n)
    left -= n
    if left < 0:
        raise limit_error("assignments")
    items: list[SyncGroupRequestAssignment] = []
    m.assignments = items
    for _ in range(n):
        item = SyncGroupRequestAssignment.__new__(SyncGroupRequestAssignment)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("member_id")
        e = p + n
        item.member_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("assignment")
        e = p + n
        item.assignment = data[p:e]
        p = e
        items.append(item)
    if p > end:
        raise end_error("SyncGroupRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> SyncGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = SyncGroupRequest.__new__(SyncGroupRequest)
    m.protocol_type = None
    m.protocol_name = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.group_instance_id = None
    else:
        e = p + n
        m.group_instance_id = data[p:e].decode("utf-8", "replace")
        p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("assignments")
    if n * 6 > end - p:
        raise count_error("assignments", n)
    left -= n
    if left < 0:
        raise limit_error("assignments")
    items: list[SyncGroupRequestAssignment] = []
    m.assignments = items
    for _ in range(n):
        item = SyncGroupRequestAssignment.__new__(SyncGroupRequestAssignment)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("member_id")
        e = p + n
        item.member_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("assignment")
        e = p + n
        item.assignment = data[p:e]
        p = e
        items.append(item)
    if p > end:
        raise end_error("SyncGroupRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> SyncGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = SyncGroupRequest.__new__(SyncGroupRequest)
    m.protocol_type = None
    m.protocol_name = None
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("member_id")
    e = p + n - 1
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_instance_id = None
    else:
        e = p + n - 1
        m.group_instance_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("assignments")
    n -= 1
    if n * 3 > end - p:
        raise count_error("assignments", n)
    left -= n
    if left < 0:
        raise limit_error("assignments")
    items: list[SyncGroupRequestAssignment] = []
    m.assignments = items
    for _ in range(n):
        item = SyncGroupRequestAssignment.__new__(SyncGroupRequestAssignment)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("member_id")
        e = p + n - 1
        item.member_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("assignment")
        e = p + n - 1
        item.assignment = data[p:e]
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("SyncGroupRequestAssignment")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("SyncGroupRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("SyncGroupRequest")
    return m


def _decode_request_v5(view: bytes | memoryview) -> SyncGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = SyncGroupRequest.__new__(SyncGroupRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("member_id")
    e = p + n - 1
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_instance_id = None
    else:
        e = p + n - 1
        m.group_instance_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.protocol_type = None
    else:
        e = p + n - 1
        m.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.protocol_name = None
    else:
        e = p + n - 1
        m.protocol_name = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("assignments")
    n -= 1
    if n * 3 > end - p:
        raise count_error("assignments", n)
    left -= n
    if left < 0:
        raise limit_error("assignments")
    items: list[SyncGroupRequestAssignment] = []
    m.assignments = items
    for _ in range(n):
        item = SyncGroupRequestAssignment.__new__(SyncGroupRequestAssignment)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("member_id")
        e = p + n - 1
        item.member_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("assignment")
        e = p + n - 1
        item.assignment = data[p:e]
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("SyncGroupRequestAssignment")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("SyncGroupRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("SyncGroupRequest")
    return m


def _encode_request_v0(m: SyncGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.generation_id, len(b1))
    out += b1
    items = m.assignments
    out += _p_i(len(items))
    for item in items:
        b2 = item.member_id.encode()
        out += _p_h(len(b2))
        out += b2
        b3 = item.assignment
        out += _p_i(len(b3))
        out += b3
    return bytes(out)


def _encode_request_v3(m: SyncGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.generation_id, len(b1))
    out += b1
    v2 = m.group_instance_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    items = m.assignments
    out += _p_i(len(items))
    for item in items:
        b3 = item.member_id.encode()
        out += _p_h(len(b3))
        out += b3
        b4 = item.assignment
        out += _p_i(len(b4))
        out += b4
    return bytes(out)


def _encode_request_v4(m: SyncGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    out += _p_i(m.generation_id)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    v2 = m.group_instance_id
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
    items = m.assignments
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b3 = item.member_id.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        b4 = item.assignment
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v5(m: SyncGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    out += _p_i(m.generation_id)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    v2 = m.group_instance_id
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
    v3 = m.protocol_type
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
    v4 = m.protocol_name
    if v4 is None:
        out += b"\x00"
    else:
        b4 = v4.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
    items = m.assignments
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b5 = item.member_id.encode()
        n = len(b5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b5
        b6 = item.assignment
        n = len(b6) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b6
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], SyncGroupRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v5,
}


_request_encoders: Final[dict[int, Callable[[SyncGroupRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v5,
}


def decode_request(data: bytes | memoryview, version: int) -> SyncGroupRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("SyncGroupRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("SyncGroupRequest", version) from None


def encode_request(message: SyncGroupRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"SyncGroupRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> SyncGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SyncGroupResponse.__new__(SyncGroupResponse)
    m.throttle_time_ms = 0
    m.protocol_type = None
    m.protocol_name = None
    m.error_code, n = _u_hi(data, p)
    p += 6
    if n < 0:
        raise null_error("assignment")
    e = p + n
    m.assignment = data[p:e]
    p = e
    if p > end:
        raise end_error("SyncGroupResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> SyncGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SyncGroupResponse.__new__(SyncGroupResponse)
    m.protocol_type = None
    m.protocol_name = None
    m.throttle_time_ms, m.error_code, n = _u_ihi(data, p)
    p += 10
    if n < 0:
        raise null_error("assignment")
    e = p + n
    m.assignment = data[p:e]
    p = e
    if p > end:
        raise end_error("SyncGroupResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> SyncGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SyncGroupResponse.__new__(SyncGroupResponse)
    m.protocol_type = None
    m.protocol_name = None
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("assignment")
    e = p + n - 1
    m.assignment = data[p:e]
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("SyncGroupResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> SyncGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = SyncGroupResponse.__new__(SyncGroupResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.protocol_type = None
    else:
        e = p + n - 1
        m.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.protocol_name = None
    else:
        e = p + n - 1
        m.protocol_name = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("assignment")
    e = p + n - 1
    m.assignment = data[p:e]
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("SyncGroupResponse")
    return m


def _encode_response_v0(m: SyncGroupResponse) -> bytes:
    out = bytearray()
    b = m.assignment
    out += _p_hi(m.error_code, len(b))
    out += b
    return bytes(out)


def _encode_response_v1(m: SyncGroupResponse) -> bytes:
    out = bytearray()
    b = m.assignment
    out += _p_ihi(m.throttle_time_ms, m.error_code, len(b))
    out += b
    return bytes(out)


def _encode_response_v4(m: SyncGroupResponse) -> bytes:
    out = bytearray()
    b = m.assignment
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    out += b"\x00"
    return bytes(out)


def _encode_response_v5(m: SyncGroupResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    v = m.protocol_type
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
    v1 = m.protocol_name
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
    b2 = m.assignment
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], SyncGroupResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v1,
    4: _decode_response_v4,
    5: _decode_response_v5,
}


_response_encoders: Final[dict[int, Callable[[SyncGroupResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v1,
    4: _encode_response_v4,
    5: _encode_response_v5,
}


def decode_response(data: bytes | memoryview, version: int) -> SyncGroupResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("SyncGroupResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("SyncGroupResponse", version) from None


def encode_response(message: SyncGroupResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"SyncGroupResponse has no version {version} here")
    return encode(message)
