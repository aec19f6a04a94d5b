"""LeaveGroup, API key 13, versions 0 to 5, flexible from 4.

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

API_KEY: Final = 13
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FIRST_FLEXIBLE_VERSION: Final[int | None] = 4

_p_h: Final = _Struct(">h").pack
_p_hx: Final = _Struct(">hx").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihi: Final = _Struct(">ihi").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihi: Final = _Struct(">ihi").unpack_from


class MemberIdentity(Message):
    """Part of LeaveGroupRequest, versions 3-5."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "reason",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,  # versions 5
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.reason: str | None = reason


class LeaveGroupRequest(Message):
    """Body of the request, versions 0-5."""

    __slots__ = (
        "group_id",
        "members",
        "member_id",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        members: list[MemberIdentity] = EMPTY,  # versions 3-5
        member_id: str = "",  # versions 0-2
    ) -> None:
        self.group_id: str = group_id
        self.members: list[MemberIdentity] = [] if members is EMPTY else members
        self.member_id: str = member_id


class MemberResponse(Message):
    """Part of LeaveGroupResponse, versions 3-5."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "error_code",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.error_code: int = error_code


class LeaveGroupResponse(Message):
    """Body of the response, versions 0-5."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "members",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 1-5
        error_code: int = 0,
        members: list[MemberResponse] = EMPTY,  # versions 3-5
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.members: list[MemberResponse] = [] if members is EMPTY else members


def _decode_request_v0(view: bytes | memoryview) -> LeaveGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = LeaveGroupRequest.__new__(LeaveGroupRequest)
    m.members = []
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    if p > end:
        raise end_error("LeaveGroupRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> LeaveGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = LeaveGroupRequest.__new__(LeaveGroupRequest)
    m.member_id = ""
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("members")
    if n * 4 > end - p:
        raise count_error("members", n)
    left -= n
    if left < 0:
        raise limit_error("members")
    items: list[MemberIdentity] = []
    m.members = items
    for _ in range(n):
        item = MemberIdentity.__new__(MemberIdentity)
        item.reason = None
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("member_id")
        e = p + n
        item.member_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            item.group_instance_id = None
        else:
            e = p + n
            item.group_instance_id = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    if p > end:
        raise end_error("LeaveGroupRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> LeaveGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = LeaveGroupRequest.__new__(LeaveGroupRequest)
    m.member_id = ""
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("members")
    n -= 1
    if n * 3 > end - p:
        raise count_error("members", n)
    left -= n
    if left < 0:
        raise limit_error("members")
    items: list[MemberIdentity] = []
    m.members = items
    for _ in range(n):
        item = MemberIdentity.__new__(MemberIdentity)
        item.reason = None
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
            item.group_instance_id = None
        else:
            e = p + n - 1
            item.group_instance_id = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("MemberIdentity")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("LeaveGroupRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("LeaveGroupRequest")
    return m


def _decode_request_v5(view: bytes | memoryview) -> LeaveGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = LeaveGroupRequest.__new__(LeaveGroupRequest)
    m.member_id = ""
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("members")
    n -= 1
    if n * 4 > end - p:
        raise count_error("members", n)
    left -= n
    if left < 0:
        raise limit_error("members")
    items: list[MemberIdentity] = []
    m.members = items
    for _ in range(n):
        item = MemberIdentity.__new__(MemberIdentity)
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
            item.group_instance_id = None
        else:
            e = p + n - 1
            item.group_instance_id = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.reason = None
        else:
            e = p + n - 1
            item.reason = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("MemberIdentity")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("LeaveGroupRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("LeaveGroupRequest")
    return m


def _encode_request_v0(m: LeaveGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_h(len(b1))
    out += b1
    return bytes(out)


def _encode_request_v3(m: LeaveGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    items = m.members
    out += _p_i(len(items))
    for item in items:
        b1 = item.member_id.encode()
        out += _p_h(len(b1))
        out += b1
        v2 = item.group_instance_id
        if v2 is None:
            out += b"\xff\xff"
        else:
            b2 = v2.encode()
            out += _p_h(len(b2))
            out += b2
    return bytes(out)


def _encode_request_v4(m: LeaveGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    items = m.members
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.member_id.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        v2 = item.group_instance_id
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


def _encode_request_v5(m: LeaveGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    items = m.members
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.member_id.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        v2 = item.group_instance_id
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
        v3 = item.reason
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
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], LeaveGroupRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v5,
}


_request_encoders: Final[dict[int, Callable[[LeaveGroupRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v5,
}


def decode_request(data: bytes | memoryview, version: int) -> LeaveGroupRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("LeaveGroupRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("LeaveGroupRequest", version) from None


def encode_request(message: LeaveGroupRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"LeaveGroupRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> LeaveGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = LeaveGroupResponse.__new__(LeaveGroupResponse)
    m.throttle_time_ms = 0
    m.members = []
    m.error_code, = _u_h(data, p)
    p += 2
    if p > end:
        raise end_error("LeaveGroupResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> LeaveGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = LeaveGroupResponse.__new__(LeaveGroupResponse)
    m.members = []
    m.throttle_time_ms, m.error_code = _u_ih(data, p)
    p += 6
    if p > end:
        raise end_error("LeaveGroupResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> LeaveGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = LeaveGroupResponse.__new__(LeaveGroupResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihi(data, p)
    p += 10
    if n < 0:
        raise null_error("members")
    if n * 6 > end - p:
        raise count_error("members", n)
    items: list[MemberResponse] = []
    m.members = items
    for _ in range(n):
        item = MemberResponse.__new__(MemberResponse)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("member_id")
        e = p + n
        item.member_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            item.group_instance_id = None
        else:
            e = p + n
            item.group_instance_id = data[p:e].decode("utf-8", "replace")
            p = e
        item.error_code, = _u_h(data, p)
        p += 2
        items.append(item)
    if p > end:
        raise end_error("LeaveGroupResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> LeaveGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = LeaveGroupResponse.__new__(LeaveGroupResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("members")
    n -= 1
    if n * 5 > end - p:
        raise count_error("members", n)
    items: list[MemberResponse] = []
    m.members = items
    for _ in range(n):
        item = MemberResponse.__new__(MemberResponse)
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
            item.group_instance_id = None
        else:
            e = p + n - 1
            item.group_instance_id = data[p:e].decode("utf-8", "replace")
            p = e
        item.error_code, n = _u_hB(data, p)
        p += 3
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
        raise end_error("LeaveGroupResponse")
    return m


def _encode_response_v0(m: LeaveGroupResponse) -> bytes:
    out = bytearray()
    out += _p_h(m.error_code)
    return bytes(out)


def _encode_response_v1(m: LeaveGroupResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    return bytes(out)


def _encode_response_v3(m: LeaveGroupResponse) -> bytes:
    out = bytearray()
    items = m.members
    out += _p_ihi(m.throttle_time_ms, m.error_code, len(items))
    for item in items:
        b = item.member_id.encode()
        out += _p_h(len(b))
        out += b
        v1 = item.group_instance_id
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
        out += _p_h(item.error_code)
    return bytes(out)


def _encode_response_v4(m: LeaveGroupResponse) -> bytes:
    out = bytearray()
    items = m.members
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.member_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        v1 = item.group_instance_id
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
        out += _p_hx(item.error_code)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], LeaveGroupResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v4,
}


_response_encoders: Final[dict[int, Callable[[LeaveGroupResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v4,
}


def decode_response(data: bytes | memoryview, version: int) -> LeaveGroupResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("LeaveGroupResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("LeaveGroupResponse", version) from None


def encode_response(message: LeaveGroupResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"LeaveGroupResponse has no version {version} here")
    return encode(message)
