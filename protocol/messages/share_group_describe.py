"""ShareGroupDescribe, API key 77, versions 1 alone, flexible from 1.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from struct import pack, unpack_from
from typing import Final
from uuid import UUID

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
    NIL_UUID,
    PACK_INT32,
    SMALL,
    UNPACK_INT32,
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 77
MIN_VERSION: Final = 1
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_ix: Final = _Struct(">ix").pack
_p_u: Final = _Struct(">16s").pack
_p_zx: Final = _Struct(">?x").pack
_u_hB: Final = _Struct(">hB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class ShareGroupDescribeRequest(Message):
    """Body of the request, versions 1."""

    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations: bool = include_authorized_operations


class TopicPartitions(Message):
    """Part of ShareGroupDescribeResponse, versions 1."""

    __slots__ = (
        "topic_id",
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class Assignment(Message):
    """Part of ShareGroupDescribeResponse, versions 1."""

    __slots__ = (
        "topic_partitions",
    )

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is EMPTY else topic_partitions


class Member(Message):
    """Part of ShareGroupDescribeResponse, versions 1."""

    __slots__ = (
        "member_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "assignment",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        assignment: Assignment | None = None,
    ) -> None:
        self.member_id: str = member_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.assignment: Assignment = Assignment() if assignment is None else assignment


class DescribedGroup(Message):
    """Part of ShareGroupDescribeResponse, versions 1."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.assignor_name: str = assignor_name
        self.members: list[Member] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations


class ShareGroupDescribeResponse(Message):
    """Body of the response, versions 1."""

    __slots__ = (
        "throttle_time_ms",
        "groups",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is EMPTY else groups


def _decode_request_v1(view: bytes | memoryview) -> ShareGroupDescribeRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ShareGroupDescribeRequest.__new__(ShareGroupDescribeRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_ids")
    n -= 1
    if n > end - p:
        raise count_error("group_ids", n)
    left -= n
    if left < 0:
        raise limit_error("group_ids")
    items: list[str] = []
    m.group_ids = items
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
            raise limit_error("ShareGroupDescribeRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ShareGroupDescribeRequest")
    return m


def _encode_request_v1(m: ShareGroupDescribeRequest) -> bytes:
    out = bytearray()
    items = m.group_ids
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


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ShareGroupDescribeRequest]]] = {
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[ShareGroupDescribeRequest], bytes]]] = {
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> ShareGroupDescribeRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ShareGroupDescribeRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ShareGroupDescribeRequest", version) from None


def encode_request(message: ShareGroupDescribeRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ShareGroupDescribeRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> ShareGroupDescribeResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ShareGroupDescribeResponse.__new__(ShareGroupDescribeResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 20 > end - p:
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
        item.group_epoch, item.assignment_epoch, n = _u_iiB(data, p)
        p += 9
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("assignor_name")
        e = p + n - 1
        item.assignor_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("members")
        n -= 1
        if n * 12 > end - p:
            raise count_error("members", n)
        items1: list[Member] = []
        item.members = items1
        for _ in range(n):
            item1 = Member.__new__(Member)
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
                item1.rack_id = None
            else:
                e = p + n - 1
                item1.rack_id = data[p:e].decode("utf-8", "replace")
                p = e
            item1.member_epoch, n = _u_iB(data, p)
            p += 5
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
                raise null_error("subscribed_topic_names")
            n -= 1
            if n > end - p:
                raise count_error("subscribed_topic_names", n)
            items2: list[str] = []
            item1.subscribed_topic_names = items2
            for _ in range(n):
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("item2")
                e = p + n - 1
                item2 = data[p:e].decode("utf-8", "replace")
                p = e
                items2.append(item2)
            s = Assignment.__new__(Assignment)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("topic_partitions")
            n -= 1
            if n * 19 > end - p:
                raise count_error("topic_partitions", n)
            items3: list[TopicPartitions] = []
            s.topic_partitions = items3
            for _ in range(n):
                item3 = TopicPartitions.__new__(TopicPartitions)
                u, n = _u_uB(data, p)
                p += 17
                item3.topic_id = uuid_from_bytes(u)
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("topic_name")
                e = p + n - 1
                item3.topic_name = data[p:e].decode("utf-8", "replace")
                p = e
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("partitions")
                n -= 1
                if n * 4 > end - p:
                    raise count_error("partitions", n)
                item3.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items3.append(item3)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item1.assignment = s
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
        raise end_error("ShareGroupDescribeResponse")
    return m


def _encode_response_v1(m: ShareGroupDescribeResponse) -> bytes:
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
        b3 = item.assignor_name.encode()
        out += _p_ii(item.group_epoch, item.assignment_epoch)
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
            v5 = item1.rack_id
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
            out += _p_i(item1.member_epoch)
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
            items2 = item1.subscribed_topic_names
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                b8 = item2.encode()
                n = len(b8) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b8
            s = item1.assignment
            items3 = s.topic_partitions
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item3 in items3:
                b9 = item3.topic_name.encode()
                out += _p_u(item3.topic_id.bytes)
                n = len(b9) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b9
                items4 = item3.partitions
                n = len(items4) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items4)
                out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
                out += b"\x00"
            out += b"\x00\x00"
        out += _p_ix(item.authorized_operations)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ShareGroupDescribeResponse]]] = {
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[ShareGroupDescribeResponse], bytes]]] = {
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> ShareGroupDescribeResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ShareGroupDescribeResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ShareGroupDescribeResponse", version) from None


def encode_response(message: ShareGroupDescribeResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ShareGroupDescribeResponse has no version {version} here")
    return encode(message)
