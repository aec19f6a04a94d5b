"""OffsetDelete, API key 47, versions 0 alone.

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

API_KEY: Final = 47
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = None

_p_h: Final = _Struct(">h").pack
_p_hii: Final = _Struct(">hii").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hii: Final = _Struct(">hii").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from


class OffsetDeleteRequestPartition(Message):
    """Part of OffsetDeleteRequest, versions 0."""

    __slots__ = (
        "partition_index",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index


class OffsetDeleteRequestTopic(Message):
    """Part of OffsetDeleteRequest, versions 0."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteRequestPartition] = [] if partitions is EMPTY else partitions


class OffsetDeleteRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetDeleteRequestTopic] = [] if topics is EMPTY else topics


class OffsetDeleteResponsePartition(Message):
    """Part of OffsetDeleteResponse, versions 0."""

    __slots__ = (
        "partition_index",
        "error_code",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class OffsetDeleteResponseTopic(Message):
    """Part of OffsetDeleteResponse, versions 0."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteResponsePartition] = [] if partitions is EMPTY else partitions


class OffsetDeleteResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "error_code",
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetDeleteResponseTopic] = [] if topics is EMPTY else topics


def _decode_request_v0(view: bytes | memoryview) -> OffsetDeleteRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetDeleteRequest.__new__(OffsetDeleteRequest)
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
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[OffsetDeleteRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetDeleteRequestTopic.__new__(OffsetDeleteRequestTopic)
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
            raise null_error("partitions")
        if n * 4 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetDeleteRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetDeleteRequestPartition.__new__(OffsetDeleteRequestPartition)
            item1.partition_index, = _u_i(data, p)
            p += 4
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetDeleteRequest")
    return m


def _encode_request_v0(m: OffsetDeleteRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b1 = item.name.encode()
        out += _p_h(len(b1))
        out += b1
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_i(item1.partition_index)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], OffsetDeleteRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[OffsetDeleteRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> OffsetDeleteRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("OffsetDeleteRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("OffsetDeleteRequest", version) from None


def encode_request(message: OffsetDeleteRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"OffsetDeleteRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> OffsetDeleteResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetDeleteResponse.__new__(OffsetDeleteResponse)
    m.error_code, m.throttle_time_ms, n = _u_hii(data, p)
    p += 10
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[OffsetDeleteResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetDeleteResponseTopic.__new__(OffsetDeleteResponseTopic)
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
            raise null_error("partitions")
        if n * 6 > end - p:
            raise count_error("partitions", n)
        items1: list[OffsetDeleteResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetDeleteResponsePartition.__new__(OffsetDeleteResponsePartition)
            item1.partition_index, item1.error_code = _u_ih(data, p)
            p += 6
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetDeleteResponse")
    return m


def _encode_response_v0(m: OffsetDeleteResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_hii(m.error_code, m.throttle_time_ms, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ih(item1.partition_index, item1.error_code)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], OffsetDeleteResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[OffsetDeleteResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> OffsetDeleteResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("OffsetDeleteResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("OffsetDeleteResponse", version) from None


def encode_response(message: OffsetDeleteResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"OffsetDeleteResponse has no version {version} here")
    return encode(message)
