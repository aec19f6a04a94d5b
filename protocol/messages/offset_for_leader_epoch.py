"""OffsetForLeaderEpoch, API key 23, versions 2 to 4, flexible from 4.

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

API_KEY: Final = 23
MIN_VERSION: Final = 2
MAX_VERSION: Final = 4
FIRST_FLEXIBLE_VERSION: Final[int | None] = 4

_p_h: Final = _Struct(">h").pack
_p_hiiq: Final = _Struct(">hiiq").pack
_p_hiiqx: Final = _Struct(">hiiqx").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_iii: Final = _Struct(">iii").pack
_p_iiix: Final = _Struct(">iiix").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hiiq: Final = _Struct(">hiiq").unpack_from
_u_hiiqB: Final = _Struct(">hiiqB").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iii: Final = _Struct(">iii").unpack_from
_u_iiiB: Final = _Struct(">iiiB").unpack_from


class OffsetForLeaderPartition(Message):
    """Part of OffsetForLeaderEpochRequest, versions 2-4."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.leader_epoch: int = leader_epoch


class OffsetForLeaderTopic(Message):
    """Part of OffsetForLeaderEpochRequest, versions 2-4."""

    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = EMPTY,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[OffsetForLeaderPartition] = [] if partitions is EMPTY else partitions


class OffsetForLeaderEpochRequest(Message):
    """Body of the request, versions 2-4."""

    __slots__ = (
        "replica_id",
        "topics",
    )

    def __init__(
        self,
        *,
        replica_id: int = -2,  # versions 3-4
        topics: list[OffsetForLeaderTopic] = EMPTY,
    ) -> None:
        self.replica_id: int = replica_id
        self.topics: list[OffsetForLeaderTopic] = [] if topics is EMPTY else topics


class EpochEndOffset(Message):
    """Part of OffsetForLeaderEpochResponse, versions 2-4."""

    __slots__ = (
        "error_code",
        "partition",
        "leader_epoch",
        "end_offset",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code: int = error_code
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.end_offset: int = end_offset


class OffsetForLeaderTopicResult(Message):
    """Part of OffsetForLeaderEpochResponse, versions 2-4."""

    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] = EMPTY,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[EpochEndOffset] = [] if partitions is EMPTY else partitions


class OffsetForLeaderEpochResponse(Message):
    """Body of the response, versions 2-4."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetForLeaderTopicResult] = [] if topics is EMPTY else topics


def _decode_request_v2(view: bytes | memoryview) -> OffsetForLeaderEpochRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetForLeaderEpochRequest.__new__(OffsetForLeaderEpochRequest)
    m.replica_id = -2
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[OffsetForLeaderTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetForLeaderTopic.__new__(OffsetForLeaderTopic)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 12 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetForLeaderPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetForLeaderPartition.__new__(OffsetForLeaderPartition)
            item1.partition, item1.current_leader_epoch, item1.leader_epoch = _u_iii(data, p)
            p += 12
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetForLeaderEpochRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> OffsetForLeaderEpochRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetForLeaderEpochRequest.__new__(OffsetForLeaderEpochRequest)
    m.replica_id, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[OffsetForLeaderTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetForLeaderTopic.__new__(OffsetForLeaderTopic)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 12 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetForLeaderPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetForLeaderPartition.__new__(OffsetForLeaderPartition)
            item1.partition, item1.current_leader_epoch, item1.leader_epoch = _u_iii(data, p)
            p += 12
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetForLeaderEpochRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> OffsetForLeaderEpochRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetForLeaderEpochRequest.__new__(OffsetForLeaderEpochRequest)
    m.replica_id, n = _u_iB(data, p)
    p += 5
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
    items: list[OffsetForLeaderTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetForLeaderTopic.__new__(OffsetForLeaderTopic)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic")
        e = p + n - 1
        item.topic = data[p:e].decode("utf-8", "replace")
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
        items1: list[OffsetForLeaderPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetForLeaderPartition.__new__(OffsetForLeaderPartition)
            item1.partition, item1.current_leader_epoch, item1.leader_epoch, n = _u_iiiB(data, p)
            p += 13
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("OffsetForLeaderPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("OffsetForLeaderTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("OffsetForLeaderEpochRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetForLeaderEpochRequest")
    return m


def _encode_request_v2(m: OffsetForLeaderEpochRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iii(item1.partition, item1.current_leader_epoch, item1.leader_epoch)
    return bytes(out)


def _encode_request_v3(m: OffsetForLeaderEpochRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.replica_id, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iii(item1.partition, item1.current_leader_epoch, item1.leader_epoch)
    return bytes(out)


def _encode_request_v4(m: OffsetForLeaderEpochRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(m.replica_id)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.topic.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_iiix(item1.partition, item1.current_leader_epoch, item1.leader_epoch)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], OffsetForLeaderEpochRequest]]] = {
    2: _decode_request_v2,
    3: _decode_request_v3,
    4: _decode_request_v4,
}


_request_encoders: Final[dict[int, Callable[[OffsetForLeaderEpochRequest], bytes]]] = {
    2: _encode_request_v2,
    3: _encode_request_v3,
    4: _encode_request_v4,
}


def decode_request(data: bytes | memoryview, version: int) -> OffsetForLeaderEpochRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("OffsetForLeaderEpochRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("OffsetForLeaderEpochRequest", version) from None


def encode_request(message: OffsetForLeaderEpochRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"OffsetForLeaderEpochRequest has no version {version} here")
    return encode(message)


def _decode_response_v2(view: bytes | memoryview) -> OffsetForLeaderEpochResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetForLeaderEpochResponse.__new__(OffsetForLeaderEpochResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[OffsetForLeaderTopicResult] = []
    m.topics = items
    for _ in range(n):
        item = OffsetForLeaderTopicResult.__new__(OffsetForLeaderTopicResult)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items1: list[EpochEndOffset] = []
        item.partitions = items1
        for _ in range(n):
            item1 = EpochEndOffset.__new__(EpochEndOffset)
            item1.error_code, item1.partition, item1.leader_epoch, item1.end_offset = _u_hiiq(data, p)
            p += 18
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetForLeaderEpochResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> OffsetForLeaderEpochResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetForLeaderEpochResponse.__new__(OffsetForLeaderEpochResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[OffsetForLeaderTopicResult] = []
    m.topics = items
    for _ in range(n):
        item = OffsetForLeaderTopicResult.__new__(OffsetForLeaderTopicResult)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic")
        e = p + n - 1
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 19 > end - p:
            raise count_error("partitions", n)
        items1: list[EpochEndOffset] = []
        item.partitions = items1
        for _ in range(n):
            item1 = EpochEndOffset.__new__(EpochEndOffset)
            item1.error_code, item1.partition, item1.leader_epoch, item1.end_offset, n = _u_hiiqB(data, p)
            p += 19
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
        raise end_error("OffsetForLeaderEpochResponse")
    return m


def _encode_response_v2(m: OffsetForLeaderEpochResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_hiiq(item1.error_code, item1.partition, item1.leader_epoch, item1.end_offset)
    return bytes(out)


def _encode_response_v4(m: OffsetForLeaderEpochResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.topic.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_hiiqx(item1.error_code, item1.partition, item1.leader_epoch, item1.end_offset)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], OffsetForLeaderEpochResponse]]] = {
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v4,
}


_response_encoders: Final[dict[int, Callable[[OffsetForLeaderEpochResponse], bytes]]] = {
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v4,
}


def decode_response(data: bytes | memoryview, version: int) -> OffsetForLeaderEpochResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("OffsetForLeaderEpochResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("OffsetForLeaderEpochResponse", version) from None


def encode_response(message: OffsetForLeaderEpochResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"OffsetForLeaderEpochResponse has no version {version} here")
    return encode(message)
