"""ShareGroupHeartbeat, API key 76, versions 1 alone, flexible from 1.

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

API_KEY: Final = 76
MIN_VERSION: Final = 1
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ii: Final = _Struct(">ii").pack
_p_u: Final = _Struct(">16s").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iib: Final = _Struct(">iib").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class ShareGroupHeartbeatRequest(Message):
    """Body of the request, versions 1."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "rack_id",
        "subscribed_topic_names",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.rack_id: str | None = rack_id
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names


class TopicPartitions(Message):
    """Part of ShareGroupHeartbeatResponse, versions 1."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class Assignment(Message):
    """Part of ShareGroupHeartbeatResponse, versions 1."""

    __slots__ = (
        "topic_partitions",
    )

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is EMPTY else topic_partitions


class ShareGroupHeartbeatResponse(Message):
    """Body of the response, versions 1."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.assignment: Assignment | None = assignment


def _decode_request_v1(view: bytes | memoryview) -> ShareGroupHeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ShareGroupHeartbeatRequest.__new__(ShareGroupHeartbeatRequest)
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
        raise null_error("member_id")
    e = p + n - 1
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.member_epoch, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.rack_id = None
    else:
        e = p + n - 1
        m.rack_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.subscribed_topic_names = None
    else:
        n -= 1
        if n > end - p:
            raise count_error("subscribed_topic_names", n)
        left -= n
        if left < 0:
            raise limit_error("subscribed_topic_names")
        items: list[str] = []
        m.subscribed_topic_names = items
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
            raise limit_error("ShareGroupHeartbeatRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ShareGroupHeartbeatRequest")
    return m


def _encode_request_v1(m: ShareGroupHeartbeatRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    out += _p_i(m.member_epoch)
    v2 = m.rack_id
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
    items = m.subscribed_topic_names
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            b3 = item.encode()
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ShareGroupHeartbeatRequest]]] = {
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[ShareGroupHeartbeatRequest], bytes]]] = {
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> ShareGroupHeartbeatRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ShareGroupHeartbeatRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ShareGroupHeartbeatRequest", version) from None


def encode_request(message: ShareGroupHeartbeatRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ShareGroupHeartbeatRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> ShareGroupHeartbeatResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ShareGroupHeartbeatResponse.__new__(ShareGroupHeartbeatResponse)
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
        m.member_id = None
    else:
        e = p + n - 1
        m.member_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.member_epoch, m.heartbeat_interval_ms, n = _u_iib(data, p)
    p += 9
    if n < 0:
        m.assignment = None
    else:
        s = Assignment.__new__(Assignment)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_partitions")
        n -= 1
        if n * 18 > end - p:
            raise count_error("topic_partitions", n)
        items: list[TopicPartitions] = []
        s.topic_partitions = items
        for _ in range(n):
            item = TopicPartitions.__new__(TopicPartitions)
            u, n = _u_uB(data, p)
            p += 17
            item.topic_id = uuid_from_bytes(u)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partitions", n)
            item.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
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
        m.assignment = s
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ShareGroupHeartbeatResponse")
    return m


def _encode_response_v1(m: ShareGroupHeartbeatResponse) -> bytes:
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
    v1 = m.member_id
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
    s = m.assignment
    out += _p_ii(m.member_epoch, m.heartbeat_interval_ms)
    if s is None:
        out += b"\xff"
    else:
        out += b"\x01"
        items = s.topic_partitions
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            items1 = item.partitions
            out += _p_u(item.topic_id.bytes)
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ShareGroupHeartbeatResponse]]] = {
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[ShareGroupHeartbeatResponse], bytes]]] = {
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> ShareGroupHeartbeatResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ShareGroupHeartbeatResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ShareGroupHeartbeatResponse", version) from None


def encode_response(message: ShareGroupHeartbeatResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ShareGroupHeartbeatResponse has no version {version} here")
    return encode(message)
