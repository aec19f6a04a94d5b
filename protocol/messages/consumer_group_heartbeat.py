"""ConsumerGroupHeartbeat, API key 68, versions 0 to 1, flexible from 0.

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

API_KEY: Final = 68
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ii: Final = _Struct(">ii").pack
_p_u: Final = _Struct(">16s").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iib: Final = _Struct(">iib").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class ConsumerGroupHeartbeatRequestTopicPartitions(Message):
    """Part of ConsumerGroupHeartbeatRequest, versions 0-1."""

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


class ConsumerGroupHeartbeatRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,  # versions 1
        server_assignor: str | None = None,
        topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.server_assignor: str | None = server_assignor
        self.topic_partitions: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = [] if topic_partitions is EMPTY else topic_partitions


class ConsumerGroupHeartbeatResponseTopicPartitions(Message):
    """Part of ConsumerGroupHeartbeatResponse, versions 0-1."""

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
    """Part of ConsumerGroupHeartbeatResponse, versions 0-1."""

    __slots__ = (
        "topic_partitions",
    )

    def __init__(
        self,
        *,
        topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions: list[ConsumerGroupHeartbeatResponseTopicPartitions] = [] if topic_partitions is EMPTY else topic_partitions


class ConsumerGroupHeartbeatResponse(Message):
    """Body of the response, versions 0-1."""

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


def _decode_request_v0(view: bytes | memoryview) -> ConsumerGroupHeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ConsumerGroupHeartbeatRequest.__new__(ConsumerGroupHeartbeatRequest)
    m.subscribed_topic_regex = None
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
        m.instance_id = None
    else:
        e = p + n - 1
        m.instance_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.rack_id = None
    else:
        e = p + n - 1
        m.rack_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.rebalance_timeout_ms, n = _u_iB(data, p)
    p += 5
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.server_assignor = None
    else:
        e = p + n - 1
        m.server_assignor = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topic_partitions = None
    else:
        n -= 1
        if n * 18 > end - p:
            raise count_error("topic_partitions", n)
        left -= n
        if left < 0:
            raise limit_error("topic_partitions")
        items1: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []
        m.topic_partitions = items1
        for _ in range(n):
            item1 = ConsumerGroupHeartbeatRequestTopicPartitions.__new__(ConsumerGroupHeartbeatRequestTopicPartitions)
            u, n = _u_uB(data, p)
            p += 17
            item1.topic_id = uuid_from_bytes(u)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item1.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("ConsumerGroupHeartbeatRequestTopicPartitions")
                p = skip_fields(data, p, n)
            items1.append(item1)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ConsumerGroupHeartbeatRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ConsumerGroupHeartbeatRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> ConsumerGroupHeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ConsumerGroupHeartbeatRequest.__new__(ConsumerGroupHeartbeatRequest)
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
        m.instance_id = None
    else:
        e = p + n - 1
        m.instance_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.rack_id = None
    else:
        e = p + n - 1
        m.rack_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.rebalance_timeout_ms, n = _u_iB(data, p)
    p += 5
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.subscribed_topic_regex = None
    else:
        e = p + n - 1
        m.subscribed_topic_regex = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.server_assignor = None
    else:
        e = p + n - 1
        m.server_assignor = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topic_partitions = None
    else:
        n -= 1
        if n * 18 > end - p:
            raise count_error("topic_partitions", n)
        left -= n
        if left < 0:
            raise limit_error("topic_partitions")
        items1: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []
        m.topic_partitions = items1
        for _ in range(n):
            item1 = ConsumerGroupHeartbeatRequestTopicPartitions.__new__(ConsumerGroupHeartbeatRequestTopicPartitions)
            u, n = _u_uB(data, p)
            p += 17
            item1.topic_id = uuid_from_bytes(u)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item1.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("ConsumerGroupHeartbeatRequestTopicPartitions")
                p = skip_fields(data, p, n)
            items1.append(item1)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ConsumerGroupHeartbeatRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ConsumerGroupHeartbeatRequest")
    return m


def _encode_request_v0(m: ConsumerGroupHeartbeatRequest) -> bytes:
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
    v2 = m.instance_id
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
    v3 = m.rack_id
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
    items = m.subscribed_topic_names
    out += _p_i(m.rebalance_timeout_ms)
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            b4 = item.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
    v5 = m.server_assignor
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
    items1 = m.topic_partitions
    if items1 is None:
        out += b"\x00"
    else:
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.partitions
            out += _p_u(item1.topic_id.bytes)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v1(m: ConsumerGroupHeartbeatRequest) -> bytes:
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
    v2 = m.instance_id
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
    v3 = m.rack_id
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
    items = m.subscribed_topic_names
    out += _p_i(m.rebalance_timeout_ms)
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            b4 = item.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
    v5 = m.subscribed_topic_regex
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
    v6 = m.server_assignor
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
    items1 = m.topic_partitions
    if items1 is None:
        out += b"\x00"
    else:
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.partitions
            out += _p_u(item1.topic_id.bytes)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ConsumerGroupHeartbeatRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[ConsumerGroupHeartbeatRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> ConsumerGroupHeartbeatRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ConsumerGroupHeartbeatRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ConsumerGroupHeartbeatRequest", version) from None


def encode_request(message: ConsumerGroupHeartbeatRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ConsumerGroupHeartbeatRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ConsumerGroupHeartbeatResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ConsumerGroupHeartbeatResponse.__new__(ConsumerGroupHeartbeatResponse)
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
        items: list[ConsumerGroupHeartbeatResponseTopicPartitions] = []
        s.topic_partitions = items
        for _ in range(n):
            item = ConsumerGroupHeartbeatResponseTopicPartitions.__new__(ConsumerGroupHeartbeatResponseTopicPartitions)
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
        raise end_error("ConsumerGroupHeartbeatResponse")
    return m


def _encode_response_v0(m: ConsumerGroupHeartbeatResponse) -> bytes:
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ConsumerGroupHeartbeatResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[ConsumerGroupHeartbeatResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> ConsumerGroupHeartbeatResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ConsumerGroupHeartbeatResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ConsumerGroupHeartbeatResponse", version) from None


def encode_response(message: ConsumerGroupHeartbeatResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ConsumerGroupHeartbeatResponse has no version {version} here")
    return encode(message)
