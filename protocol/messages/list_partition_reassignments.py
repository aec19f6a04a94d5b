"""ListPartitionReassignments, API key 46, versions 0 alone, flexible from 0.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from struct import pack, unpack_from
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
    PACK_INT32,
    SMALL,
    UNPACK_INT32,
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
)

API_KEY: Final = 46
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from


class ListPartitionReassignmentsTopics(Message):
    """Part of ListPartitionReassignmentsRequest, versions 0."""

    __slots__ = (
        "name",
        "partition_indexes",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


class ListPartitionReassignmentsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "timeout_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = EMPTY,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.topics: list[ListPartitionReassignmentsTopics] | None = [] if topics is EMPTY else topics


class OngoingPartitionReassignment(Message):
    """Part of ListPartitionReassignmentsResponse, versions 0."""

    __slots__ = (
        "partition_index",
        "replicas",
        "adding_replicas",
        "removing_replicas",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] = [] if replicas is EMPTY else replicas
        self.adding_replicas: list[int] = [] if adding_replicas is EMPTY else adding_replicas
        self.removing_replicas: list[int] = [] if removing_replicas is EMPTY else removing_replicas


class OngoingTopicReassignment(Message):
    """Part of ListPartitionReassignmentsResponse, versions 0."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[OngoingPartitionReassignment] = [] if partitions is EMPTY else partitions


class ListPartitionReassignmentsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[OngoingTopicReassignment] = [] if topics is EMPTY else topics


def _decode_request_v0(view: bytes | memoryview) -> ListPartitionReassignmentsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListPartitionReassignmentsRequest.__new__(ListPartitionReassignmentsRequest)
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topics = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[ListPartitionReassignmentsTopics] = []
        m.topics = items
        for _ in range(n):
            item = ListPartitionReassignmentsTopics.__new__(ListPartitionReassignmentsTopics)
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
                raise null_error("partition_indexes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partition_indexes", n)
            left -= n
            if left < 0:
                raise limit_error("partition_indexes")
            item.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("ListPartitionReassignmentsTopics")
                p = skip_fields(data, p, n)
            items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListPartitionReassignmentsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListPartitionReassignmentsRequest")
    return m


def _encode_request_v0(m: ListPartitionReassignmentsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(m.timeout_ms)
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            b = item.name.encode()
            n = len(b) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b
            items1 = item.partition_indexes
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
            out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ListPartitionReassignmentsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[ListPartitionReassignmentsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> ListPartitionReassignmentsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ListPartitionReassignmentsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListPartitionReassignmentsRequest", version) from None


def encode_request(message: ListPartitionReassignmentsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListPartitionReassignmentsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ListPartitionReassignmentsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListPartitionReassignmentsResponse.__new__(ListPartitionReassignmentsResponse)
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
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[OngoingTopicReassignment] = []
    m.topics = items
    for _ in range(n):
        item = OngoingTopicReassignment.__new__(OngoingTopicReassignment)
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
            raise null_error("partitions")
        n -= 1
        if n * 8 > end - p:
            raise count_error("partitions", n)
        items1: list[OngoingPartitionReassignment] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OngoingPartitionReassignment.__new__(OngoingPartitionReassignment)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("replicas", n)
            item1.replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("adding_replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("adding_replicas", n)
            item1.adding_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("removing_replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("removing_replicas", n)
            item1.removing_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
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
        raise end_error("ListPartitionReassignmentsResponse")
    return m


def _encode_response_v0(m: ListPartitionReassignmentsResponse) -> bytes:
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
    items = m.topics
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.replicas
            out += _p_i(item1.partition_index)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            items3 = item1.adding_replicas
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item1.removing_replicas
            n = len(items4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ListPartitionReassignmentsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[ListPartitionReassignmentsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> ListPartitionReassignmentsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ListPartitionReassignmentsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListPartitionReassignmentsResponse", version) from None


def encode_response(message: ListPartitionReassignmentsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListPartitionReassignmentsResponse has no version {version} here")
    return encode(message)
