"""AlterShareGroupOffsets, API key 91, versions 0 alone, flexible from 0.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 91
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ih: Final = _Struct(">ih").pack
_p_iqx: Final = _Struct(">iqx").pack
_p_u: Final = _Struct(">16s").pack
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class AlterShareGroupOffsetsRequestPartition(Message):
    """Part of AlterShareGroupOffsetsRequest, versions 0."""

    __slots__ = (
        "partition_index",
        "start_offset",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset


class AlterShareGroupOffsetsRequestTopic(Message):
    """Part of AlterShareGroupOffsetsRequest, versions 0."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterShareGroupOffsetsRequestPartition] = [] if partitions is EMPTY else partitions


class AlterShareGroupOffsetsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[AlterShareGroupOffsetsRequestTopic] = [] if topics is EMPTY else topics


class AlterShareGroupOffsetsResponsePartition(Message):
    """Part of AlterShareGroupOffsetsResponse, versions 0."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class AlterShareGroupOffsetsResponseTopic(Message):
    """Part of AlterShareGroupOffsetsResponse, versions 0."""

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
        partitions: list[AlterShareGroupOffsetsResponsePartition] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: UUID = topic_id
        self.partitions: list[AlterShareGroupOffsetsResponsePartition] = [] if partitions is EMPTY else partitions


class AlterShareGroupOffsetsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[AlterShareGroupOffsetsResponseTopic] = [] if responses is EMPTY else responses


def _decode_request_v0(view: bytes | memoryview) -> AlterShareGroupOffsetsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterShareGroupOffsetsRequest.__new__(AlterShareGroupOffsetsRequest)
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
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[AlterShareGroupOffsetsRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = AlterShareGroupOffsetsRequestTopic.__new__(AlterShareGroupOffsetsRequestTopic)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        item.topic_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 13 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[AlterShareGroupOffsetsRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AlterShareGroupOffsetsRequestPartition.__new__(AlterShareGroupOffsetsRequestPartition)
            item1.partition_index, item1.start_offset, n = _u_iqB(data, p)
            p += 13
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AlterShareGroupOffsetsRequestPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AlterShareGroupOffsetsRequestTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AlterShareGroupOffsetsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AlterShareGroupOffsetsRequest")
    return m


def _encode_request_v0(m: AlterShareGroupOffsetsRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
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
        b1 = item.topic_name.encode()
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
            out += _p_iqx(item1.partition_index, item1.start_offset)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterShareGroupOffsetsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[AlterShareGroupOffsetsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> AlterShareGroupOffsetsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AlterShareGroupOffsetsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterShareGroupOffsetsRequest", version) from None


def encode_request(message: AlterShareGroupOffsetsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterShareGroupOffsetsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AlterShareGroupOffsetsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterShareGroupOffsetsResponse.__new__(AlterShareGroupOffsetsResponse)
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
        raise null_error("responses")
    n -= 1
    if n * 19 > end - p:
        raise count_error("responses", n)
    items: list[AlterShareGroupOffsetsResponseTopic] = []
    m.responses = items
    for _ in range(n):
        item = AlterShareGroupOffsetsResponseTopic.__new__(AlterShareGroupOffsetsResponseTopic)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        item.topic_name = data[p:e].decode("utf-8", "replace")
        p = e
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 8 > end - p:
            raise count_error("partitions", n)
        items1: list[AlterShareGroupOffsetsResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AlterShareGroupOffsetsResponsePartition.__new__(AlterShareGroupOffsetsResponsePartition)
            item1.partition_index, item1.error_code, n = _u_ihB(data, p)
            p += 7
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.error_message = None
            else:
                e = p + n - 1
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
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
        raise end_error("AlterShareGroupOffsetsResponse")
    return m


def _encode_response_v0(m: AlterShareGroupOffsetsResponse) -> bytes:
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
    items = m.responses
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.topic_name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items1 = item.partitions
        out += _p_u(item.topic_id.bytes)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_ih(item1.partition_index, item1.error_code)
            v2 = item1.error_message
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
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterShareGroupOffsetsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[AlterShareGroupOffsetsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> AlterShareGroupOffsetsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AlterShareGroupOffsetsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterShareGroupOffsetsResponse", version) from None


def encode_response(message: AlterShareGroupOffsetsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterShareGroupOffsetsResponse has no version {version} here")
    return encode(message)
