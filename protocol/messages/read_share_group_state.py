"""ReadShareGroupState, API key 84, versions 0 alone, flexible from 0.

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

API_KEY: Final = 84
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ih: Final = _Struct(">ih").pack
_p_iix: Final = _Struct(">iix").pack
_p_iq: Final = _Struct(">iq").pack
_p_qqbhx: Final = _Struct(">qqbhx").pack
_p_u: Final = _Struct(">16s").pack
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_qqbhB: Final = _Struct(">qqbhB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class PartitionData(Message):
    """Part of ReadShareGroupStateRequest, versions 0."""

    __slots__ = (
        "partition",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch


class ReadStateData(Message):
    """Part of ReadShareGroupStateRequest, versions 0."""

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


class ReadShareGroupStateRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateData] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[ReadStateData] = [] if topics is EMPTY else topics


class StateBatch(Message):
    """Part of ReadShareGroupStateResponse, versions 0."""

    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_state",
        "delivery_count",
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count


class PartitionResult(Message):
    """Part of ReadShareGroupStateResponse, versions 0."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "start_offset",
        "state_batches",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] = EMPTY,
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.state_epoch: int = state_epoch
        self.start_offset: int = start_offset
        self.state_batches: list[StateBatch] = [] if state_batches is EMPTY else state_batches


class ReadStateResult(Message):
    """Part of ReadShareGroupStateResponse, versions 0."""

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


class ReadShareGroupStateResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "results",
    )

    def __init__(
        self,
        *,
        results: list[ReadStateResult] = EMPTY,
    ) -> None:
        self.results: list[ReadStateResult] = [] if results is EMPTY else results


def _decode_request_v0(view: bytes | memoryview) -> ReadShareGroupStateRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ReadShareGroupStateRequest.__new__(ReadShareGroupStateRequest)
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
    items: list[ReadStateData] = []
    m.topics = items
    for _ in range(n):
        item = ReadStateData.__new__(ReadStateData)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 9 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.partition, item1.leader_epoch, n = _u_iiB(data, p)
            p += 9
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
                raise limit_error("ReadStateData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ReadShareGroupStateRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ReadShareGroupStateRequest")
    return m


def _encode_request_v0(m: ReadShareGroupStateRequest) -> bytes:
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
            out += _p_iix(item1.partition, item1.leader_epoch)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ReadShareGroupStateRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[ReadShareGroupStateRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> ReadShareGroupStateRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ReadShareGroupStateRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ReadShareGroupStateRequest", version) from None


def encode_request(message: ReadShareGroupStateRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ReadShareGroupStateRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ReadShareGroupStateResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ReadShareGroupStateResponse.__new__(ReadShareGroupStateResponse)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 18 > end - p:
        raise count_error("results", n)
    items: list[ReadStateResult] = []
    m.results = items
    for _ in range(n):
        item = ReadStateResult.__new__(ReadStateResult)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 21 > end - p:
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
            item1.state_epoch, item1.start_offset, n = _u_iqB(data, p)
            p += 13
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("state_batches")
            n -= 1
            if n * 20 > end - p:
                raise count_error("state_batches", n)
            items2: list[StateBatch] = []
            item1.state_batches = items2
            for _ in range(n):
                item2 = StateBatch.__new__(StateBatch)
                item2.first_offset, item2.last_offset, item2.delivery_state, item2.delivery_count, n = _u_qqbhB(data, p)
                p += 20
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
        raise end_error("ReadShareGroupStateResponse")
    return m


def _encode_response_v0(m: ReadShareGroupStateResponse) -> bytes:
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
            items2 = item1.state_batches
            out += _p_iq(item1.state_epoch, item1.start_offset)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_qqbhx(item2.first_offset, item2.last_offset, item2.delivery_state, item2.delivery_count)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ReadShareGroupStateResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[ReadShareGroupStateResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> ReadShareGroupStateResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ReadShareGroupStateResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ReadShareGroupStateResponse", version) from None


def encode_response(message: ReadShareGroupStateResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ReadShareGroupStateResponse has no version {version} here")
    return encode(message)
