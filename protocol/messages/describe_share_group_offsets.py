"""DescribeShareGroupOffsets, API key 90, versions 0 to 1, flexible from 0.

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

API_KEY: Final = 90
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_iqih: Final = _Struct(">iqih").pack
_p_iqiqh: Final = _Struct(">iqiqh").pack
_p_u: Final = _Struct(">16s").pack
_u_hB: Final = _Struct(">hB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_iqihB: Final = _Struct(">iqihB").unpack_from
_u_iqiqhB: Final = _Struct(">iqiqhB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class DescribeShareGroupOffsetsRequestTopic(Message):
    """Part of DescribeShareGroupOffsetsRequest, versions 0-1."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class DescribeShareGroupOffsetsRequestGroup(Message):
    """Part of DescribeShareGroupOffsetsRequest, versions 0-1."""

    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareGroupOffsetsRequestTopic] | None = [] if topics is EMPTY else topics


class DescribeShareGroupOffsetsRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "groups",
    )

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY,
    ) -> None:
        self.groups: list[DescribeShareGroupOffsetsRequestGroup] = [] if groups is EMPTY else groups


class DescribeShareGroupOffsetsResponsePartition(Message):
    """Part of DescribeShareGroupOffsetsResponse, versions 0-1."""

    __slots__ = (
        "partition_index",
        "start_offset",
        "leader_epoch",
        "lag",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,  # versions 1
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset
        self.leader_epoch: int = leader_epoch
        self.lag: int = lag
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DescribeShareGroupOffsetsResponseTopic(Message):
    """Part of DescribeShareGroupOffsetsResponse, versions 0-1."""

    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: UUID = NIL_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: UUID = topic_id
        self.partitions: list[DescribeShareGroupOffsetsResponsePartition] = [] if partitions is EMPTY else partitions


class DescribeShareGroupOffsetsResponseGroup(Message):
    """Part of DescribeShareGroupOffsetsResponse, versions 0-1."""

    __slots__ = (
        "group_id",
        "topics",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareGroupOffsetsResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DescribeShareGroupOffsetsResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "groups",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribeShareGroupOffsetsResponseGroup] = [] if groups is EMPTY else groups


def _decode_request_v0(view: bytes | memoryview) -> DescribeShareGroupOffsetsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeShareGroupOffsetsRequest.__new__(DescribeShareGroupOffsetsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 3 > end - p:
        raise count_error("groups", n)
    left -= n
    if left < 0:
        raise limit_error("groups")
    items: list[DescribeShareGroupOffsetsRequestGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribeShareGroupOffsetsRequestGroup.__new__(DescribeShareGroupOffsetsRequestGroup)
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
            item.topics = None
        else:
            n -= 1
            if n * 3 > end - p:
                raise count_error("topics", n)
            left -= n
            if left < 0:
                raise limit_error("topics")
            items1: list[DescribeShareGroupOffsetsRequestTopic] = []
            item.topics = items1
            for _ in range(n):
                item1 = DescribeShareGroupOffsetsRequestTopic.__new__(DescribeShareGroupOffsetsRequestTopic)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("topic_name")
                e = p + n - 1
                item1.topic_name = data[p:e].decode("utf-8", "replace")
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
                        raise limit_error("DescribeShareGroupOffsetsRequestTopic")
                    p = skip_fields(data, p, n)
                items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DescribeShareGroupOffsetsRequestGroup")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeShareGroupOffsetsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeShareGroupOffsetsRequest")
    return m


def _encode_request_v0(m: DescribeShareGroupOffsetsRequest) -> bytes:
    out = bytearray()
    items = m.groups
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
        items1 = item.topics
        if items1 is None:
            out += b"\x00"
        else:
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item1 in items1:
                b1 = item1.topic_name.encode()
                n = len(b1) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b1
                items2 = item1.partitions
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items2)
                out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
                out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeShareGroupOffsetsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[DescribeShareGroupOffsetsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeShareGroupOffsetsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeShareGroupOffsetsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeShareGroupOffsetsRequest", version) from None


def encode_request(message: DescribeShareGroupOffsetsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeShareGroupOffsetsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeShareGroupOffsetsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeShareGroupOffsetsResponse.__new__(DescribeShareGroupOffsetsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 6 > end - p:
        raise count_error("groups", n)
    items: list[DescribeShareGroupOffsetsResponseGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribeShareGroupOffsetsResponseGroup.__new__(DescribeShareGroupOffsetsResponseGroup)
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
            raise null_error("topics")
        n -= 1
        if n * 19 > end - p:
            raise count_error("topics", n)
        items1: list[DescribeShareGroupOffsetsResponseTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = DescribeShareGroupOffsetsResponseTopic.__new__(DescribeShareGroupOffsetsResponseTopic)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("topic_name")
            e = p + n - 1
            item1.topic_name = data[p:e].decode("utf-8", "replace")
            p = e
            u, n = _u_uB(data, p)
            p += 17
            item1.topic_id = uuid_from_bytes(u)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 20 > end - p:
                raise count_error("partitions", n)
            items2: list[DescribeShareGroupOffsetsResponsePartition] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = DescribeShareGroupOffsetsResponsePartition.__new__(DescribeShareGroupOffsetsResponsePartition)
                item2.lag = -1
                item2.partition_index, item2.start_offset, item2.leader_epoch, item2.error_code, n = _u_iqihB(data, p)
                p += 19
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item2.error_message = None
                else:
                    e = p + n - 1
                    item2.error_message = data[p:e].decode("utf-8", "replace")
                    p = e
                n = data[p]
                p += 1
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
            items1.append(item1)
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
        raise end_error("DescribeShareGroupOffsetsResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> DescribeShareGroupOffsetsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeShareGroupOffsetsResponse.__new__(DescribeShareGroupOffsetsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 6 > end - p:
        raise count_error("groups", n)
    items: list[DescribeShareGroupOffsetsResponseGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribeShareGroupOffsetsResponseGroup.__new__(DescribeShareGroupOffsetsResponseGroup)
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
            raise null_error("topics")
        n -= 1
        if n * 19 > end - p:
            raise count_error("topics", n)
        items1: list[DescribeShareGroupOffsetsResponseTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = DescribeShareGroupOffsetsResponseTopic.__new__(DescribeShareGroupOffsetsResponseTopic)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("topic_name")
            e = p + n - 1
            item1.topic_name = data[p:e].decode("utf-8", "replace")
            p = e
            u, n = _u_uB(data, p)
            p += 17
            item1.topic_id = uuid_from_bytes(u)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 28 > end - p:
                raise count_error("partitions", n)
            items2: list[DescribeShareGroupOffsetsResponsePartition] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = DescribeShareGroupOffsetsResponsePartition.__new__(DescribeShareGroupOffsetsResponsePartition)
                item2.partition_index, item2.start_offset, item2.leader_epoch, item2.lag, item2.error_code, n = _u_iqiqhB(data, p)
                p += 27
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item2.error_message = None
                else:
                    e = p + n - 1
                    item2.error_message = data[p:e].decode("utf-8", "replace")
                    p = e
                n = data[p]
                p += 1
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
            items1.append(item1)
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
        raise end_error("DescribeShareGroupOffsetsResponse")
    return m


def _encode_response_v0(m: DescribeShareGroupOffsetsResponse) -> bytes:
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
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b1 = item1.topic_name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items2 = item1.partitions
            out += _p_u(item1.topic_id.bytes)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqih(item2.partition_index, item2.start_offset, item2.leader_epoch, item2.error_code)
                v2 = item2.error_message
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
        out += _p_h(item.error_code)
        v3 = item.error_message
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


def _encode_response_v1(m: DescribeShareGroupOffsetsResponse) -> bytes:
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
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b1 = item1.topic_name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items2 = item1.partitions
            out += _p_u(item1.topic_id.bytes)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqiqh(item2.partition_index, item2.start_offset, item2.leader_epoch, item2.lag, item2.error_code)
                v2 = item2.error_message
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
        out += _p_h(item.error_code)
        v3 = item.error_message
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeShareGroupOffsetsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[DescribeShareGroupOffsetsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeShareGroupOffsetsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeShareGroupOffsetsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeShareGroupOffsetsResponse", version) from None


def encode_response(message: DescribeShareGroupOffsetsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeShareGroupOffsetsResponse has no version {version} here")
    return encode(message)
