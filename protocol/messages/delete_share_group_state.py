"""DeleteShareGroupState, API key 86, versions 0 alone, flexible from 0.

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

API_KEY: Final = 86
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ih: Final = _Struct(">ih").pack
_p_ix: Final = _Struct(">ix").pack
_p_u: Final = _Struct(">16s").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class PartitionData(Message):
    """Part of DeleteShareGroupStateRequest, versions 0."""

    __slots__ = (
        "partition",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
    ) -> None:
        self.partition: int = partition


class DeleteStateData(Message):
    """Part of DeleteShareGroupStateRequest, versions 0."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[PartitionData] = [] if partitions is EMPTY else partitions


class DeleteShareGroupStateRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteStateData] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DeleteStateData] = [] if topics is EMPTY else topics


class PartitionResult(Message):
    """Part of DeleteShareGroupStateResponse, versions 0."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DeleteStateResult(Message):
    """Part of DeleteShareGroupStateResponse, versions 0."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[PartitionResult] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[PartitionResult] = [] if partitions is EMPTY else partitions


class DeleteShareGroupStateResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "results",
    )

    def __init__(
        self,
        *,
        results: list[DeleteStateResult] = EMPTY,
    ) -> None:
        self.results: list[DeleteStateResult] = [] if results is EMPTY else results


def _decode_request_v0(view: bytes | memoryview) -> DeleteShareGroupStateRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteShareGroupStateRequest.__new__(DeleteShareGroupStateRequest)
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
    if n * 18 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[DeleteStateData] = []
    m.topics = items
    for _ in range(n):
        item = DeleteStateData.__new__(DeleteStateData)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 5 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.partition, n = _u_iB(data, p)
            p += 5
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("PartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DeleteStateData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DeleteShareGroupStateRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DeleteShareGroupStateRequest")
    return m


def _encode_request_v0(m: DeleteShareGroupStateRequest) -> bytes:
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
        items1 = item.partitions
        out += _p_u(item.topic_id.bytes)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_ix(item1.partition)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteShareGroupStateRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[DeleteShareGroupStateRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> DeleteShareGroupStateRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DeleteShareGroupStateRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteShareGroupStateRequest", version) from None


def encode_request(message: DeleteShareGroupStateRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteShareGroupStateRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DeleteShareGroupStateResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteShareGroupStateResponse.__new__(DeleteShareGroupStateResponse)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 18 > end - p:
        raise count_error("results", n)
    items: list[DeleteStateResult] = []
    m.results = items
    for _ in range(n):
        item = DeleteStateResult.__new__(DeleteStateResult)
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
        items1: list[PartitionResult] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionResult.__new__(PartitionResult)
            item1.partition, item1.error_code, n = _u_ihB(data, p)
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
        raise end_error("DeleteShareGroupStateResponse")
    return m


def _encode_response_v0(m: DeleteShareGroupStateResponse) -> bytes:
    out = bytearray()
    items = m.results
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
        for item1 in items1:
            out += _p_ih(item1.partition, item1.error_code)
            v = item1.error_message
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
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteShareGroupStateResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[DeleteShareGroupStateResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> DeleteShareGroupStateResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DeleteShareGroupStateResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteShareGroupStateResponse", version) from None


def encode_response(message: DeleteShareGroupStateResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteShareGroupStateResponse has no version {version} here")
    return encode(message)
