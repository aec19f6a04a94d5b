"""DescribeGroups, API key 15, versions 0 to 6, flexible from 5.

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

API_KEY: Final = 15
MIN_VERSION: Final = 0
MAX_VERSION: Final = 6
FIRST_FLEXIBLE_VERSION: Final[int | None] = 5

_p_h: Final = _Struct(">h").pack
_p_hh: Final = _Struct(">hh").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_ix: Final = _Struct(">ix").pack
_p_z: Final = _Struct(">?").pack
_p_zx: Final = _Struct(">?x").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_z: Final = _Struct(">?").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class DescribeGroupsRequest(Message):
    """Body of the request, versions 0-6."""

    __slots__ = (
        "groups",
        "include_authorized_operations",
    )

    def __init__(
        self,
        *,
        groups: list[str] = EMPTY,
        include_authorized_operations: bool = False,  # versions 3-6
    ) -> None:
        self.groups: list[str] = [] if groups is EMPTY else groups
        self.include_authorized_operations: bool = include_authorized_operations


class DescribedGroupMember(Message):
    """Part of DescribeGroupsResponse, versions 0-6."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "member_metadata",
        "member_assignment",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,  # versions 4-6
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b'',
        member_assignment: bytes = b'',
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.member_metadata: bytes = member_metadata
        self.member_assignment: bytes = member_assignment


class DescribedGroup(Message):
    """Part of DescribeGroupsResponse, versions 0-6."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,  # versions 6
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,  # versions 3-6
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.protocol_type: str = protocol_type
        self.protocol_data: str = protocol_data
        self.members: list[DescribedGroupMember] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations


class DescribeGroupsResponse(Message):
    """Body of the response, versions 0-6."""

    __slots__ = (
        "throttle_time_ms",
        "groups",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 1-6
        groups: list[DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is EMPTY else groups


def _decode_request_v0(view: bytes | memoryview) -> DescribeGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeGroupsRequest.__new__(DescribeGroupsRequest)
    m.include_authorized_operations = False
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("groups")
    if n * 2 > end - p:
        raise count_error("groups", n)
    left -= n
    if left < 0:
        raise limit_error("groups")
    items: list[str] = []
    m.groups = items
    for _ in range(n):
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("item")
        e = p + n
        item = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    if p > end:
        raise end_error("DescribeGroupsRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> DescribeGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeGroupsRequest.__new__(DescribeGroupsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("groups")
    if n * 2 > end - p:
        raise count_error("groups", n)
    left -= n
    if left < 0:
        raise limit_error("groups")
    items: list[str] = []
    m.groups = items
    for _ in range(n):
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("item")
        e = p + n
        item = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    m.include_authorized_operations, = _u_z(data, p)
    p += 1
    if p > end:
        raise end_error("DescribeGroupsRequest")
    return m


def _decode_request_v5(view: bytes | memoryview) -> DescribeGroupsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeGroupsRequest.__new__(DescribeGroupsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n > end - p:
        raise count_error("groups", n)
    left -= n
    if left < 0:
        raise limit_error("groups")
    items: list[str] = []
    m.groups = items
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
    m.include_authorized_operations, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeGroupsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeGroupsRequest")
    return m


def _encode_request_v0(m: DescribeGroupsRequest) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_i(len(items))
    for item in items:
        b = item.encode()
        out += _p_h(len(b))
        out += b
    return bytes(out)


def _encode_request_v3(m: DescribeGroupsRequest) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_i(len(items))
    for item in items:
        b = item.encode()
        out += _p_h(len(b))
        out += b
    out += _p_z(m.include_authorized_operations)
    return bytes(out)


def _encode_request_v5(m: DescribeGroupsRequest) -> bytes:
    out = bytearray()
    items = m.groups
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
    out += _p_zx(m.include_authorized_operations)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeGroupsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v5,
    6: _decode_request_v5,
}


_request_encoders: Final[dict[int, Callable[[DescribeGroupsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v5,
    6: _encode_request_v5,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeGroupsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeGroupsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeGroupsRequest", version) from None


def encode_request(message: DescribeGroupsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeGroupsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeGroupsResponse.__new__(DescribeGroupsResponse)
    m.throttle_time_ms = 0
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("groups")
    if n * 14 > end - p:
        raise count_error("groups", n)
    items: list[DescribedGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribedGroup.__new__(DescribedGroup)
        item.error_message = None
        item.authorized_operations = -2147483648
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("group_id")
        e = p + n
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("group_state")
        e = p + n
        item.group_state = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_type")
        e = p + n
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_data")
        e = p + n
        item.protocol_data = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("members")
        if n * 14 > end - p:
            raise count_error("members", n)
        items1: list[DescribedGroupMember] = []
        item.members = items1
        for _ in range(n):
            item1 = DescribedGroupMember.__new__(DescribedGroupMember)
            item1.group_instance_id = None
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("member_id")
            e = p + n
            item1.member_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("client_id")
            e = p + n
            item1.client_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("client_host")
            e = p + n
            item1.client_host = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("member_metadata")
            e = p + n
            item1.member_metadata = data[p:e]
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("member_assignment")
            e = p + n
            item1.member_assignment = data[p:e]
            p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("DescribeGroupsResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> DescribeGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeGroupsResponse.__new__(DescribeGroupsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("groups")
    if n * 14 > end - p:
        raise count_error("groups", n)
    items: list[DescribedGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribedGroup.__new__(DescribedGroup)
        item.error_message = None
        item.authorized_operations = -2147483648
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("group_id")
        e = p + n
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("group_state")
        e = p + n
        item.group_state = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_type")
        e = p + n
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_data")
        e = p + n
        item.protocol_data = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("members")
        if n * 14 > end - p:
            raise count_error("members", n)
        items1: list[DescribedGroupMember] = []
        item.members = items1
        for _ in range(n):
            item1 = DescribedGroupMember.__new__(DescribedGroupMember)
            item1.group_instance_id = None
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("member_id")
            e = p + n
            item1.member_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("client_id")
            e = p + n
            item1.client_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("client_host")
            e = p + n
            item1.client_host = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("member_metadata")
            e = p + n
            item1.member_metadata = data[p:e]
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("member_assignment")
            e = p + n
            item1.member_assignment = data[p:e]
            p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("DescribeGroupsResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> DescribeGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeGroupsResponse.__new__(DescribeGroupsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("groups")
    if n * 18 > end - p:
        raise count_error("groups", n)
    items: list[DescribedGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribedGroup.__new__(DescribedGroup)
        item.error_message = None
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("group_id")
        e = p + n
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("group_state")
        e = p + n
        item.group_state = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_type")
        e = p + n
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_data")
        e = p + n
        item.protocol_data = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("members")
        if n * 14 > end - p:
            raise count_error("members", n)
        items1: list[DescribedGroupMember] = []
        item.members = items1
        for _ in range(n):
            item1 = DescribedGroupMember.__new__(DescribedGroupMember)
            item1.group_instance_id = None
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("member_id")
            e = p + n
            item1.member_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("client_id")
            e = p + n
            item1.client_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("client_host")
            e = p + n
            item1.client_host = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("member_metadata")
            e = p + n
            item1.member_metadata = data[p:e]
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("member_assignment")
            e = p + n
            item1.member_assignment = data[p:e]
            p = e
            items1.append(item1)
        item.authorized_operations, = _u_i(data, p)
        p += 4
        items.append(item)
    if p > end:
        raise end_error("DescribeGroupsResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> DescribeGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeGroupsResponse.__new__(DescribeGroupsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("groups")
    if n * 18 > end - p:
        raise count_error("groups", n)
    items: list[DescribedGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribedGroup.__new__(DescribedGroup)
        item.error_message = None
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("group_id")
        e = p + n
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("group_state")
        e = p + n
        item.group_state = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_type")
        e = p + n
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("protocol_data")
        e = p + n
        item.protocol_data = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("members")
        if n * 16 > end - p:
            raise count_error("members", n)
        items1: list[DescribedGroupMember] = []
        item.members = items1
        for _ in range(n):
            item1 = DescribedGroupMember.__new__(DescribedGroupMember)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("member_id")
            e = p + n
            item1.member_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                item1.group_instance_id = None
            else:
                e = p + n
                item1.group_instance_id = data[p:e].decode("utf-8", "replace")
                p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("client_id")
            e = p + n
            item1.client_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("client_host")
            e = p + n
            item1.client_host = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("member_metadata")
            e = p + n
            item1.member_metadata = data[p:e]
            p = e
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("member_assignment")
            e = p + n
            item1.member_assignment = data[p:e]
            p = e
            items1.append(item1)
        item.authorized_operations, = _u_i(data, p)
        p += 4
        items.append(item)
    if p > end:
        raise end_error("DescribeGroupsResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> DescribeGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeGroupsResponse.__new__(DescribeGroupsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 12 > end - p:
        raise count_error("groups", n)
    items: list[DescribedGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribedGroup.__new__(DescribedGroup)
        item.error_message = None
        item.error_code, n = _u_hB(data, p)
        p += 3
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
            raise null_error("group_state")
        e = p + n - 1
        item.group_state = data[p:e].decode("utf-8", "replace")
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
            raise null_error("protocol_data")
        e = p + n - 1
        item.protocol_data = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("members")
        n -= 1
        if n * 7 > end - p:
            raise count_error("members", n)
        items1: list[DescribedGroupMember] = []
        item.members = items1
        for _ in range(n):
            item1 = DescribedGroupMember.__new__(DescribedGroupMember)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("member_id")
            e = p + n - 1
            item1.member_id = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.group_instance_id = None
            else:
                e = p + n - 1
                item1.group_instance_id = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("client_id")
            e = p + n - 1
            item1.client_id = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("client_host")
            e = p + n - 1
            item1.client_host = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("member_metadata")
            e = p + n - 1
            item1.member_metadata = data[p:e]
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("member_assignment")
            e = p + n - 1
            item1.member_assignment = data[p:e]
            p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items1.append(item1)
        item.authorized_operations, n = _u_iB(data, p)
        p += 5
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
        raise end_error("DescribeGroupsResponse")
    return m


def _decode_response_v6(view: bytes | memoryview) -> DescribeGroupsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeGroupsResponse.__new__(DescribeGroupsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 13 > end - p:
        raise count_error("groups", n)
    items: list[DescribedGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribedGroup.__new__(DescribedGroup)
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
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
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
            raise null_error("protocol_type")
        e = p + n - 1
        item.protocol_type = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("protocol_data")
        e = p + n - 1
        item.protocol_data = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("members")
        n -= 1
        if n * 7 > end - p:
            raise count_error("members", n)
        items1: list[DescribedGroupMember] = []
        item.members = items1
        for _ in range(n):
            item1 = DescribedGroupMember.__new__(DescribedGroupMember)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("member_id")
            e = p + n - 1
            item1.member_id = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.group_instance_id = None
            else:
                e = p + n - 1
                item1.group_instance_id = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("client_id")
            e = p + n - 1
            item1.client_id = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("client_host")
            e = p + n - 1
            item1.client_host = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("member_metadata")
            e = p + n - 1
            item1.member_metadata = data[p:e]
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("member_assignment")
            e = p + n - 1
            item1.member_assignment = data[p:e]
            p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items1.append(item1)
        item.authorized_operations, n = _u_iB(data, p)
        p += 5
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
        raise end_error("DescribeGroupsResponse")
    return m


def _encode_response_v0(m: DescribeGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_i(len(items))
    for item in items:
        b = item.group_id.encode()
        out += _p_hh(item.error_code, len(b))
        out += b
        b1 = item.group_state.encode()
        out += _p_h(len(b1))
        out += b1
        b2 = item.protocol_type.encode()
        out += _p_h(len(b2))
        out += b2
        b3 = item.protocol_data.encode()
        out += _p_h(len(b3))
        out += b3
        items1 = item.members
        out += _p_i(len(items1))
        for item1 in items1:
            b4 = item1.member_id.encode()
            out += _p_h(len(b4))
            out += b4
            b5 = item1.client_id.encode()
            out += _p_h(len(b5))
            out += b5
            b6 = item1.client_host.encode()
            out += _p_h(len(b6))
            out += b6
            b7 = item1.member_metadata
            out += _p_i(len(b7))
            out += b7
            b8 = item1.member_assignment
            out += _p_i(len(b8))
            out += b8
    return bytes(out)


def _encode_response_v1(m: DescribeGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.group_id.encode()
        out += _p_hh(item.error_code, len(b))
        out += b
        b1 = item.group_state.encode()
        out += _p_h(len(b1))
        out += b1
        b2 = item.protocol_type.encode()
        out += _p_h(len(b2))
        out += b2
        b3 = item.protocol_data.encode()
        out += _p_h(len(b3))
        out += b3
        items1 = item.members
        out += _p_i(len(items1))
        for item1 in items1:
            b4 = item1.member_id.encode()
            out += _p_h(len(b4))
            out += b4
            b5 = item1.client_id.encode()
            out += _p_h(len(b5))
            out += b5
            b6 = item1.client_host.encode()
            out += _p_h(len(b6))
            out += b6
            b7 = item1.member_metadata
            out += _p_i(len(b7))
            out += b7
            b8 = item1.member_assignment
            out += _p_i(len(b8))
            out += b8
    return bytes(out)


def _encode_response_v3(m: DescribeGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.group_id.encode()
        out += _p_hh(item.error_code, len(b))
        out += b
        b1 = item.group_state.encode()
        out += _p_h(len(b1))
        out += b1
        b2 = item.protocol_type.encode()
        out += _p_h(len(b2))
        out += b2
        b3 = item.protocol_data.encode()
        out += _p_h(len(b3))
        out += b3
        items1 = item.members
        out += _p_i(len(items1))
        for item1 in items1:
            b4 = item1.member_id.encode()
            out += _p_h(len(b4))
            out += b4
            b5 = item1.client_id.encode()
            out += _p_h(len(b5))
            out += b5
            b6 = item1.client_host.encode()
            out += _p_h(len(b6))
            out += b6
            b7 = item1.member_metadata
            out += _p_i(len(b7))
            out += b7
            b8 = item1.member_assignment
            out += _p_i(len(b8))
            out += b8
        out += _p_i(item.authorized_operations)
    return bytes(out)


def _encode_response_v4(m: DescribeGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.group_id.encode()
        out += _p_hh(item.error_code, len(b))
        out += b
        b1 = item.group_state.encode()
        out += _p_h(len(b1))
        out += b1
        b2 = item.protocol_type.encode()
        out += _p_h(len(b2))
        out += b2
        b3 = item.protocol_data.encode()
        out += _p_h(len(b3))
        out += b3
        items1 = item.members
        out += _p_i(len(items1))
        for item1 in items1:
            b4 = item1.member_id.encode()
            out += _p_h(len(b4))
            out += b4
            v5 = item1.group_instance_id
            if v5 is None:
                out += b"\xff\xff"
            else:
                b5 = v5.encode()
                out += _p_h(len(b5))
                out += b5
            b6 = item1.client_id.encode()
            out += _p_h(len(b6))
            out += b6
            b7 = item1.client_host.encode()
            out += _p_h(len(b7))
            out += b7
            b8 = item1.member_metadata
            out += _p_i(len(b8))
            out += b8
            b9 = item1.member_assignment
            out += _p_i(len(b9))
            out += b9
        out += _p_i(item.authorized_operations)
    return bytes(out)


def _encode_response_v5(m: DescribeGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        out += _p_h(item.error_code)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        b1 = item.group_state.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        b2 = item.protocol_type.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        b3 = item.protocol_data.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        items1 = item.members
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b4 = item1.member_id.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
            v5 = item1.group_instance_id
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
            b6 = item1.client_id.encode()
            n = len(b6) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b6
            b7 = item1.client_host.encode()
            n = len(b7) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b7
            b8 = item1.member_metadata
            n = len(b8) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b8
            b9 = item1.member_assignment
            n = len(b9) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b9
            out += b"\x00"
        out += _p_ix(item.authorized_operations)
    out += b"\x00"
    return bytes(out)


def _encode_response_v6(m: DescribeGroupsResponse) -> bytes:
    out = bytearray()
    items = m.groups
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
        b1 = item.group_id.encode()
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
        b3 = item.protocol_type.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        b4 = item.protocol_data.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        items1 = item.members
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b5 = item1.member_id.encode()
            n = len(b5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b5
            v6 = item1.group_instance_id
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
            b7 = item1.client_id.encode()
            n = len(b7) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b7
            b8 = item1.client_host.encode()
            n = len(b8) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b8
            b9 = item1.member_metadata
            n = len(b9) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b9
            b10 = item1.member_assignment
            n = len(b10) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b10
            out += b"\x00"
        out += _p_ix(item.authorized_operations)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeGroupsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v5,
    6: _decode_response_v6,
}


_response_encoders: Final[dict[int, Callable[[DescribeGroupsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v5,
    6: _encode_response_v6,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeGroupsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeGroupsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeGroupsResponse", version) from None


def encode_response(message: DescribeGroupsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeGroupsResponse has no version {version} here")
    return encode(message)
