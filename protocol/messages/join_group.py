"""JoinGroup, API key 11, versions 0 to 9, flexible from 6.

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

API_KEY: Final = 11
MIN_VERSION: Final = 0
MAX_VERSION: Final = 9
FIRST_FLEXIBLE_VERSION: Final[int | None] = 6

_p_h: Final = _Struct(">h").pack
_p_hih: Final = _Struct(">hih").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihi: Final = _Struct(">ihi").pack
_p_ihih: Final = _Struct(">ihih").pack
_p_ii: Final = _Struct(">ii").pack
_p_iih: Final = _Struct(">iih").pack
_p_z: Final = _Struct(">?").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hih: Final = _Struct(">hih").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihiB: Final = _Struct(">ihiB").unpack_from
_u_ihih: Final = _Struct(">ihih").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_iih: Final = _Struct(">iih").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class JoinGroupRequestProtocol(Message):
    """Part of JoinGroupRequest, versions 0-9."""

    __slots__ = (
        "name",
        "metadata",
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b'',
    ) -> None:
        self.name: str = name
        self.metadata: bytes = metadata


class JoinGroupRequest(Message):
    """Body of the request, versions 0-9."""

    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,  # versions 1-9
        member_id: str = "",
        group_instance_id: str | None = None,  # versions 5-9
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,  # versions 8-9
    ) -> None:
        self.group_id: str = group_id
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str = protocol_type
        self.protocols: list[JoinGroupRequestProtocol] = [] if protocols is EMPTY else protocols
        self.reason: str | None = reason


class JoinGroupResponseMember(Message):
    """Part of JoinGroupResponse, versions 0-9."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "metadata",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,  # versions 5-9
        metadata: bytes = b'',
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.metadata: bytes = metadata


class JoinGroupResponse(Message):
    """Body of the response, versions 0-9."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 2-9
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,  # versions 7-9
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,  # versions 9
        member_id: str = "",
        members: list[JoinGroupResponseMember] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.generation_id: int = generation_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.leader: str = leader
        self.skip_assignment: bool = skip_assignment
        self.member_id: str = member_id
        self.members: list[JoinGroupResponseMember] = [] if members is EMPTY else members


def _decode_request_v0(view: bytes | memoryview) -> JoinGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = JoinGroupRequest.__new__(JoinGroupRequest)
    m.rebalance_timeout_ms = -1
    m.group_instance_id = None
    m.reason = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.session_timeout_ms, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("protocol_type")
    e = p + n
    m.protocol_type = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("protocols")
    if n * 6 > end - p:
        raise count_error("protocols", n)
    left -= n
    if left < 0:
        raise limit_error("protocols")
    items: list[JoinGroupRequestProtocol] = []
    m.protocols = items
    for _ in range(n):
        item = JoinGroupRequestProtocol.__new__(JoinGroupRequestProtocol)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("metadata")
        e = p + n
        item.metadata = data[p:e]
        p = e
        items.append(item)
    if p > end:
        raise end_error("JoinGroupRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> JoinGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = JoinGroupRequest.__new__(JoinGroupRequest)
    m.group_instance_id = None
    m.reason = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.session_timeout_ms, m.rebalance_timeout_ms, n = _u_iih(data, p)
    p += 10
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("protocol_type")
    e = p + n
    m.protocol_type = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("protocols")
    if n * 6 > end - p:
        raise count_error("protocols", n)
    left -= n
    if left < 0:
        raise limit_error("protocols")
    items: list[JoinGroupRequestProtocol] = []
    m.protocols = items
    for _ in range(n):
        item = JoinGroupRequestProtocol.__new__(JoinGroupRequestProtocol)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("metadata")
        e = p + n
        item.metadata = data[p:e]
        p = e
        items.append(item)
    if p > end:
        raise end_error("JoinGroupRequest")
    return m


def _decode_request_v5(view: bytes | memoryview) -> JoinGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = JoinGroupRequest.__new__(JoinGroupRequest)
    m.reason = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.session_timeout_ms, m.rebalance_timeout_ms, n = _u_iih(data, p)
    p += 10
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
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("protocol_type")
    e = p + n
    m.protocol_type = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("protocols")
    if n * 6 > end - p:
        raise count_error("protocols", n)
    left -= n
    if left < 0:
        raise limit_error("protocols")
    items: list[JoinGroupRequestProtocol] = []
    m.protocols = items
    for _ in range(n):
        item = JoinGroupRequestProtocol.__new__(JoinGroupRequestProtocol)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("metadata")
        e = p + n
        item.metadata = data[p:e]
        p = e
        items.append(item)
    if p > end:
        raise end_error("JoinGroupRequest")
    return m


def _decode_request_v6(view: bytes | memoryview) -> JoinGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = JoinGroupRequest.__new__(JoinGroupRequest)
    m.reason = None
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.session_timeout_ms, m.rebalance_timeout_ms, n = _u_iiB(data, p)
    p += 9
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
        raise null_error("protocol_type")
    e = p + n - 1
    m.protocol_type = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("protocols")
    n -= 1
    if n * 3 > end - p:
        raise count_error("protocols", n)
    left -= n
    if left < 0:
        raise limit_error("protocols")
    items: list[JoinGroupRequestProtocol] = []
    m.protocols = items
    for _ in range(n):
        item = JoinGroupRequestProtocol.__new__(JoinGroupRequestProtocol)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("metadata")
        e = p + n - 1
        item.metadata = data[p:e]
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("JoinGroupRequestProtocol")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("JoinGroupRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("JoinGroupRequest")
    return m


def _decode_request_v8(view: bytes | memoryview) -> JoinGroupRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = JoinGroupRequest.__new__(JoinGroupRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.session_timeout_ms, m.rebalance_timeout_ms, n = _u_iiB(data, p)
    p += 9
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
        raise null_error("protocol_type")
    e = p + n - 1
    m.protocol_type = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("protocols")
    n -= 1
    if n * 3 > end - p:
        raise count_error("protocols", n)
    left -= n
    if left < 0:
        raise limit_error("protocols")
    items: list[JoinGroupRequestProtocol] = []
    m.protocols = items
    for _ in range(n):
        item = JoinGroupRequestProtocol.__new__(JoinGroupRequestProtocol)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("metadata")
        e = p + n - 1
        item.metadata = data[p:e]
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("JoinGroupRequestProtocol")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.reason = None
    else:
        e = p + n - 1
        m.reason = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("JoinGroupRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("JoinGroupRequest")
    return m


def _encode_request_v0(m: JoinGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.session_timeout_ms, len(b1))
    out += b1
    b2 = m.protocol_type.encode()
    out += _p_h(len(b2))
    out += b2
    items = m.protocols
    out += _p_i(len(items))
    for item in items:
        b3 = item.name.encode()
        out += _p_h(len(b3))
        out += b3
        b4 = item.metadata
        out += _p_i(len(b4))
        out += b4
    return bytes(out)


def _encode_request_v1(m: JoinGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_iih(m.session_timeout_ms, m.rebalance_timeout_ms, len(b1))
    out += b1
    b2 = m.protocol_type.encode()
    out += _p_h(len(b2))
    out += b2
    items = m.protocols
    out += _p_i(len(items))
    for item in items:
        b3 = item.name.encode()
        out += _p_h(len(b3))
        out += b3
        b4 = item.metadata
        out += _p_i(len(b4))
        out += b4
    return bytes(out)


def _encode_request_v5(m: JoinGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_iih(m.session_timeout_ms, m.rebalance_timeout_ms, len(b1))
    out += b1
    v2 = m.group_instance_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    b3 = m.protocol_type.encode()
    out += _p_h(len(b3))
    out += b3
    items = m.protocols
    out += _p_i(len(items))
    for item in items:
        b4 = item.name.encode()
        out += _p_h(len(b4))
        out += b4
        b5 = item.metadata
        out += _p_i(len(b5))
        out += b5
    return bytes(out)


def _encode_request_v6(m: JoinGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    out += _p_ii(m.session_timeout_ms, m.rebalance_timeout_ms)
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
    b3 = m.protocol_type.encode()
    n = len(b3) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b3
    items = m.protocols
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b4 = item.name.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        b5 = item.metadata
        n = len(b5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b5
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v8(m: JoinGroupRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    out += _p_ii(m.session_timeout_ms, m.rebalance_timeout_ms)
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
    b3 = m.protocol_type.encode()
    n = len(b3) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b3
    items = m.protocols
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b4 = item.name.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        b5 = item.metadata
        n = len(b5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b5
        out += b"\x00"
    v6 = m.reason
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
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], JoinGroupRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v1,
    4: _decode_request_v1,
    5: _decode_request_v5,
    6: _decode_request_v6,
    7: _decode_request_v6,
    8: _decode_request_v8,
    9: _decode_request_v8,
}


_request_encoders: Final[dict[int, Callable[[JoinGroupRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v1,
    4: _encode_request_v1,
    5: _encode_request_v5,
    6: _encode_request_v6,
    7: _encode_request_v6,
    8: _encode_request_v8,
    9: _encode_request_v8,
}


def decode_request(data: bytes | memoryview, version: int) -> JoinGroupRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("JoinGroupRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("JoinGroupRequest", version) from None


def encode_request(message: JoinGroupRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"JoinGroupRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> JoinGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = JoinGroupResponse.__new__(JoinGroupResponse)
    m.throttle_time_ms = 0
    m.protocol_type = None
    m.skip_assignment = False
    m.error_code, m.generation_id, n = _u_hih(data, p)
    p += 8
    if n < 0:
        raise null_error("protocol_name")
    e = p + n
    m.protocol_name = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("leader")
    e = p + n
    m.leader = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("members")
    if n * 6 > end - p:
        raise count_error("members", n)
    items: list[JoinGroupResponseMember] = []
    m.members = items
    for _ in range(n):
        item = JoinGroupResponseMember.__new__(JoinGroupResponseMember)
        item.group_instance_id = None
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
            raise null_error("metadata")
        e = p + n
        item.metadata = data[p:e]
        p = e
        items.append(item)
    if p > end:
        raise end_error("JoinGroupResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> JoinGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = JoinGroupResponse.__new__(JoinGroupResponse)
    m.protocol_type = None
    m.skip_assignment = False
    m.throttle_time_ms, m.error_code, m.generation_id, n = _u_ihih(data, p)
    p += 12
    if n < 0:
        raise null_error("protocol_name")
    e = p + n
    m.protocol_name = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("leader")
    e = p + n
    m.leader = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("members")
    if n * 6 > end - p:
        raise count_error("members", n)
    items: list[JoinGroupResponseMember] = []
    m.members = items
    for _ in range(n):
        item = JoinGroupResponseMember.__new__(JoinGroupResponseMember)
        item.group_instance_id = None
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
            raise null_error("metadata")
        e = p + n
        item.metadata = data[p:e]
        p = e
        items.append(item)
    if p > end:
        raise end_error("JoinGroupResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> JoinGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = JoinGroupResponse.__new__(JoinGroupResponse)
    m.protocol_type = None
    m.skip_assignment = False
    m.throttle_time_ms, m.error_code, m.generation_id, n = _u_ihih(data, p)
    p += 12
    if n < 0:
        raise null_error("protocol_name")
    e = p + n
    m.protocol_name = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("leader")
    e = p + n
    m.leader = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("members")
    if n * 8 > end - p:
        raise count_error("members", n)
    items: list[JoinGroupResponseMember] = []
    m.members = items
    for _ in range(n):
        item = JoinGroupResponseMember.__new__(JoinGroupResponseMember)
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
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("metadata")
        e = p + n
        item.metadata = data[p:e]
        p = e
        items.append(item)
    if p > end:
        raise end_error("JoinGroupResponse")
    return m


def _decode_response_v6(view: bytes | memoryview) -> JoinGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = JoinGroupResponse.__new__(JoinGroupResponse)
    m.protocol_type = None
    m.skip_assignment = False
    m.throttle_time_ms, m.error_code, m.generation_id, n = _u_ihiB(data, p)
    p += 11
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("protocol_name")
    e = p + n - 1
    m.protocol_name = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("leader")
    e = p + n - 1
    m.leader = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
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
        raise null_error("members")
    n -= 1
    if n * 4 > end - p:
        raise count_error("members", n)
    items: list[JoinGroupResponseMember] = []
    m.members = items
    for _ in range(n):
        item = JoinGroupResponseMember.__new__(JoinGroupResponseMember)
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
            raise null_error("metadata")
        e = p + n - 1
        item.metadata = data[p:e]
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
        raise end_error("JoinGroupResponse")
    return m


def _decode_response_v7(view: bytes | memoryview) -> JoinGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = JoinGroupResponse.__new__(JoinGroupResponse)
    m.skip_assignment = False
    m.throttle_time_ms, m.error_code, m.generation_id, n = _u_ihiB(data, p)
    p += 11
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
        raise null_error("leader")
    e = p + n - 1
    m.leader = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
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
        raise null_error("members")
    n -= 1
    if n * 4 > end - p:
        raise count_error("members", n)
    items: list[JoinGroupResponseMember] = []
    m.members = items
    for _ in range(n):
        item = JoinGroupResponseMember.__new__(JoinGroupResponseMember)
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
            raise null_error("metadata")
        e = p + n - 1
        item.metadata = data[p:e]
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
        raise end_error("JoinGroupResponse")
    return m


def _decode_response_v9(view: bytes | memoryview) -> JoinGroupResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = JoinGroupResponse.__new__(JoinGroupResponse)
    m.throttle_time_ms, m.error_code, m.generation_id, n = _u_ihiB(data, p)
    p += 11
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
        raise null_error("leader")
    e = p + n - 1
    m.leader = data[p:e].decode("utf-8", "replace")
    p = e
    m.skip_assignment, n = _u_zB(data, p)
    p += 2
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
        raise null_error("members")
    n -= 1
    if n * 4 > end - p:
        raise count_error("members", n)
    items: list[JoinGroupResponseMember] = []
    m.members = items
    for _ in range(n):
        item = JoinGroupResponseMember.__new__(JoinGroupResponseMember)
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
            raise null_error("metadata")
        e = p + n - 1
        item.metadata = data[p:e]
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
        raise end_error("JoinGroupResponse")
    return m


def _encode_response_v0(m: JoinGroupResponse) -> bytes:
    out = bytearray()
    v = m.protocol_name
    if v is None:
        raise ValueError("protocol_name cannot be null in this version")
    b = v.encode()
    out += _p_hih(m.error_code, m.generation_id, len(b))
    out += b
    b1 = m.leader.encode()
    out += _p_h(len(b1))
    out += b1
    b2 = m.member_id.encode()
    out += _p_h(len(b2))
    out += b2
    items = m.members
    out += _p_i(len(items))
    for item in items:
        b3 = item.member_id.encode()
        out += _p_h(len(b3))
        out += b3
        b4 = item.metadata
        out += _p_i(len(b4))
        out += b4
    return bytes(out)


def _encode_response_v2(m: JoinGroupResponse) -> bytes:
    out = bytearray()
    v = m.protocol_name
    if v is None:
        raise ValueError("protocol_name cannot be null in this version")
    b = v.encode()
    out += _p_ihih(m.throttle_time_ms, m.error_code, m.generation_id, len(b))
    out += b
    b1 = m.leader.encode()
    out += _p_h(len(b1))
    out += b1
    b2 = m.member_id.encode()
    out += _p_h(len(b2))
    out += b2
    items = m.members
    out += _p_i(len(items))
    for item in items:
        b3 = item.member_id.encode()
        out += _p_h(len(b3))
        out += b3
        b4 = item.metadata
        out += _p_i(len(b4))
        out += b4
    return bytes(out)


def _encode_response_v5(m: JoinGroupResponse) -> bytes:
    out = bytearray()
    v = m.protocol_name
    if v is None:
        raise ValueError("protocol_name cannot be null in this version")
    b = v.encode()
    out += _p_ihih(m.throttle_time_ms, m.error_code, m.generation_id, len(b))
    out += b
    b1 = m.leader.encode()
    out += _p_h(len(b1))
    out += b1
    b2 = m.member_id.encode()
    out += _p_h(len(b2))
    out += b2
    items = m.members
    out += _p_i(len(items))
    for item in items:
        b3 = item.member_id.encode()
        out += _p_h(len(b3))
        out += b3
        v5 = item.group_instance_id
        if v5 is None:
            out += b"\xff\xff"
        else:
            b4 = v5.encode()
            out += _p_h(len(b4))
            out += b4
        b5 = item.metadata
        out += _p_i(len(b5))
        out += b5
    return bytes(out)


def _encode_response_v6(m: JoinGroupResponse) -> bytes:
    out = bytearray()
    v = m.protocol_name
    if v is None:
        raise ValueError("protocol_name cannot be null in this version")
    b = v.encode()
    out += _p_ihi(m.throttle_time_ms, m.error_code, m.generation_id)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.leader.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    b2 = m.member_id.encode()
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    items = m.members
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
        v5 = item.group_instance_id
        if v5 is None:
            out += b"\x00"
        else:
            b4 = v5.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
        b5 = item.metadata
        n = len(b5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b5
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v7(m: JoinGroupResponse) -> bytes:
    out = bytearray()
    out += _p_ihi(m.throttle_time_ms, m.error_code, m.generation_id)
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
    b2 = m.leader.encode()
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    b3 = m.member_id.encode()
    n = len(b3) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b3
    items = m.members
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b4 = item.member_id.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        v5 = item.group_instance_id
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
        b6 = item.metadata
        n = len(b6) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b6
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v9(m: JoinGroupResponse) -> bytes:
    out = bytearray()
    out += _p_ihi(m.throttle_time_ms, m.error_code, m.generation_id)
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
    b2 = m.leader.encode()
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    b3 = m.member_id.encode()
    out += _p_z(m.skip_assignment)
    n = len(b3) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b3
    items = m.members
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b4 = item.member_id.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        v5 = item.group_instance_id
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
        b6 = item.metadata
        n = len(b6) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b6
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], JoinGroupResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v2,
    5: _decode_response_v5,
    6: _decode_response_v6,
    7: _decode_response_v7,
    8: _decode_response_v7,
    9: _decode_response_v9,
}


_response_encoders: Final[dict[int, Callable[[JoinGroupResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v2,
    5: _encode_response_v5,
    6: _encode_response_v6,
    7: _encode_response_v7,
    8: _encode_response_v7,
    9: _encode_response_v9,
}


def decode_response(data: bytes | memoryview, version: int) -> JoinGroupResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("JoinGroupResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("JoinGroupResponse", version) from None


def encode_response(message: JoinGroupResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"JoinGroupResponse has no version {version} here")
    return encode(message)
