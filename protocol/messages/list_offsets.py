"""ListOffsets, API key 2, versions 1 to 11, flexible from 6.

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

API_KEY: Final = 2
MIN_VERSION: Final = 1
MAX_VERSION: Final = 11
FIRST_FLEXIBLE_VERSION: Final[int | None] = 6

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ib: Final = _Struct(">ib").pack
_p_ibi: Final = _Struct(">ibi").pack
_p_ihqq: Final = _Struct(">ihqq").pack
_p_ihqqi: Final = _Struct(">ihqqi").pack
_p_ihqqix: Final = _Struct(">ihqqix").pack
_p_ii: Final = _Struct(">ii").pack
_p_iiq: Final = _Struct(">iiq").pack
_p_iiqx: Final = _Struct(">iiqx").pack
_p_iq: Final = _Struct(">iq").pack
_p_ix: Final = _Struct(">ix").pack
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ibB: Final = _Struct(">ibB").unpack_from
_u_ibi: Final = _Struct(">ibi").unpack_from
_u_ihqq: Final = _Struct(">ihqq").unpack_from
_u_ihqqi: Final = _Struct(">ihqqi").unpack_from
_u_ihqqiB: Final = _Struct(">ihqqiB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iiq: Final = _Struct(">iiq").unpack_from
_u_iiqB: Final = _Struct(">iiqB").unpack_from
_u_iq: Final = _Struct(">iq").unpack_from


class ListOffsetsPartition(Message):
    """Part of ListOffsetsRequest, versions 1-11."""

    __slots__ = (
        "partition_index",
        "current_leader_epoch",
        "timestamp",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,  # versions 4-11
        timestamp: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.current_leader_epoch: int = current_leader_epoch
        self.timestamp: int = timestamp


class ListOffsetsTopic(Message):
    """Part of ListOffsetsRequest, versions 1-11."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartition] = [] if partitions is EMPTY else partitions


class ListOffsetsRequest(Message):
    """Body of the request, versions 1-11."""

    __slots__ = (
        "replica_id",
        "isolation_level",
        "topics",
        "timeout_ms",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,  # versions 2-11
        topics: list[ListOffsetsTopic] = EMPTY,
        timeout_ms: int = 0,  # versions 10-11
    ) -> None:
        self.replica_id: int = replica_id
        self.isolation_level: int = isolation_level
        self.topics: list[ListOffsetsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms


class ListOffsetsPartitionResponse(Message):
    """Part of ListOffsetsResponse, versions 1-11."""

    __slots__ = (
        "partition_index",
        "error_code",
        "timestamp",
        "offset",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,  # versions 4-11
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.timestamp: int = timestamp
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch


class ListOffsetsTopicResponse(Message):
    """Part of ListOffsetsResponse, versions 1-11."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartitionResponse] = [] if partitions is EMPTY else partitions


class ListOffsetsResponse(Message):
    """Body of the response, versions 1-11."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 2-11
        topics: list[ListOffsetsTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[ListOffsetsTopicResponse] = [] if topics is EMPTY else topics


def _decode_request_v1(view: bytes | memoryview) -> ListOffsetsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListOffsetsRequest.__new__(ListOffsetsRequest)
    m.isolation_level = 0
    m.timeout_ms = 0
    m.replica_id, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[ListOffsetsTopic] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopic.__new__(ListOffsetsTopic)
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
        if n * 12 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[ListOffsetsPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartition.__new__(ListOffsetsPartition)
            item1.current_leader_epoch = -1
            item1.partition_index, item1.timestamp = _u_iq(data, p)
            p += 12
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ListOffsetsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> ListOffsetsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListOffsetsRequest.__new__(ListOffsetsRequest)
    m.timeout_ms = 0
    m.replica_id, m.isolation_level, n = _u_ibi(data, p)
    p += 9
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[ListOffsetsTopic] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopic.__new__(ListOffsetsTopic)
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
        if n * 12 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[ListOffsetsPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartition.__new__(ListOffsetsPartition)
            item1.current_leader_epoch = -1
            item1.partition_index, item1.timestamp = _u_iq(data, p)
            p += 12
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ListOffsetsRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> ListOffsetsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListOffsetsRequest.__new__(ListOffsetsRequest)
    m.timeout_ms = 0
    m.replica_id, m.isolation_level, n = _u_ibi(data, p)
    p += 9
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[ListOffsetsTopic] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopic.__new__(ListOffsetsTopic)
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
        if n * 16 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[ListOffsetsPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartition.__new__(ListOffsetsPartition)
            item1.partition_index, item1.current_leader_epoch, item1.timestamp = _u_iiq(data, p)
            p += 16
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ListOffsetsRequest")
    return m


def _decode_request_v6(view: bytes | memoryview) -> ListOffsetsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListOffsetsRequest.__new__(ListOffsetsRequest)
    m.timeout_ms = 0
    m.replica_id, m.isolation_level, n = _u_ibB(data, p)
    p += 6
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
    items: list[ListOffsetsTopic] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopic.__new__(ListOffsetsTopic)
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
        if n * 17 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[ListOffsetsPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartition.__new__(ListOffsetsPartition)
            item1.partition_index, item1.current_leader_epoch, item1.timestamp, n = _u_iiqB(data, p)
            p += 17
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("ListOffsetsPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ListOffsetsTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListOffsetsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListOffsetsRequest")
    return m


def _decode_request_v10(view: bytes | memoryview) -> ListOffsetsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListOffsetsRequest.__new__(ListOffsetsRequest)
    m.replica_id, m.isolation_level, n = _u_ibB(data, p)
    p += 6
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
    items: list[ListOffsetsTopic] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopic.__new__(ListOffsetsTopic)
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
        if n * 17 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[ListOffsetsPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartition.__new__(ListOffsetsPartition)
            item1.partition_index, item1.current_leader_epoch, item1.timestamp, n = _u_iiqB(data, p)
            p += 17
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("ListOffsetsPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ListOffsetsTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListOffsetsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListOffsetsRequest")
    return m


def _encode_request_v1(m: ListOffsetsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.replica_id, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iq(item1.partition_index, item1.timestamp)
    return bytes(out)


def _encode_request_v2(m: ListOffsetsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ibi(m.replica_id, m.isolation_level, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iq(item1.partition_index, item1.timestamp)
    return bytes(out)


def _encode_request_v4(m: ListOffsetsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ibi(m.replica_id, m.isolation_level, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iiq(item1.partition_index, item1.current_leader_epoch, item1.timestamp)
    return bytes(out)


def _encode_request_v6(m: ListOffsetsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ib(m.replica_id, m.isolation_level)
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
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_iiqx(item1.partition_index, item1.current_leader_epoch, item1.timestamp)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v10(m: ListOffsetsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ib(m.replica_id, m.isolation_level)
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
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_iiqx(item1.partition_index, item1.current_leader_epoch, item1.timestamp)
        out += b"\x00"
    out += _p_ix(m.timeout_ms)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ListOffsetsRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v4,
    5: _decode_request_v4,
    6: _decode_request_v6,
    7: _decode_request_v6,
    8: _decode_request_v6,
    9: _decode_request_v6,
    10: _decode_request_v10,
    11: _decode_request_v10,
}


_request_encoders: Final[dict[int, Callable[[ListOffsetsRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v4,
    5: _encode_request_v4,
    6: _encode_request_v6,
    7: _encode_request_v6,
    8: _encode_request_v6,
    9: _encode_request_v6,
    10: _encode_request_v10,
    11: _encode_request_v10,
}


def decode_request(data: bytes | memoryview, version: int) -> ListOffsetsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ListOffsetsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListOffsetsRequest", version) from None


def encode_request(message: ListOffsetsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListOffsetsRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> ListOffsetsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListOffsetsResponse.__new__(ListOffsetsResponse)
    m.throttle_time_ms = 0
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[ListOffsetsTopicResponse] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopicResponse.__new__(ListOffsetsTopicResponse)
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
        if n * 22 > end - p:
            raise count_error("partitions", n)
        items1: list[ListOffsetsPartitionResponse] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartitionResponse.__new__(ListOffsetsPartitionResponse)
            item1.leader_epoch = -1
            item1.partition_index, item1.error_code, item1.timestamp, item1.offset = _u_ihqq(data, p)
            p += 22
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ListOffsetsResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> ListOffsetsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListOffsetsResponse.__new__(ListOffsetsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[ListOffsetsTopicResponse] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopicResponse.__new__(ListOffsetsTopicResponse)
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
        if n * 22 > end - p:
            raise count_error("partitions", n)
        items1: list[ListOffsetsPartitionResponse] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartitionResponse.__new__(ListOffsetsPartitionResponse)
            item1.leader_epoch = -1
            item1.partition_index, item1.error_code, item1.timestamp, item1.offset = _u_ihqq(data, p)
            p += 22
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ListOffsetsResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> ListOffsetsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListOffsetsResponse.__new__(ListOffsetsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[ListOffsetsTopicResponse] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopicResponse.__new__(ListOffsetsTopicResponse)
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
        if n * 26 > end - p:
            raise count_error("partitions", n)
        items1: list[ListOffsetsPartitionResponse] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartitionResponse.__new__(ListOffsetsPartitionResponse)
            item1.partition_index, item1.error_code, item1.timestamp, item1.offset, item1.leader_epoch = _u_ihqqi(data, p)
            p += 26
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ListOffsetsResponse")
    return m


def _decode_response_v6(view: bytes | memoryview) -> ListOffsetsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListOffsetsResponse.__new__(ListOffsetsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[ListOffsetsTopicResponse] = []
    m.topics = items
    for _ in range(n):
        item = ListOffsetsTopicResponse.__new__(ListOffsetsTopicResponse)
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
        if n * 27 > end - p:
            raise count_error("partitions", n)
        items1: list[ListOffsetsPartitionResponse] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ListOffsetsPartitionResponse.__new__(ListOffsetsPartitionResponse)
            item1.partition_index, item1.error_code, item1.timestamp, item1.offset, item1.leader_epoch, n = _u_ihqqiB(data, p)
            p += 27
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
        raise end_error("ListOffsetsResponse")
    return m


def _encode_response_v1(m: ListOffsetsResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ihqq(item1.partition_index, item1.error_code, item1.timestamp, item1.offset)
    return bytes(out)


def _encode_response_v2(m: ListOffsetsResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ihqq(item1.partition_index, item1.error_code, item1.timestamp, item1.offset)
    return bytes(out)


def _encode_response_v4(m: ListOffsetsResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ihqqi(item1.partition_index, item1.error_code, item1.timestamp, item1.offset, item1.leader_epoch)
    return bytes(out)


def _encode_response_v6(m: ListOffsetsResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(m.throttle_time_ms)
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
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_ihqqix(item1.partition_index, item1.error_code, item1.timestamp, item1.offset, item1.leader_epoch)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ListOffsetsResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v4,
    5: _decode_response_v4,
    6: _decode_response_v6,
    7: _decode_response_v6,
    8: _decode_response_v6,
    9: _decode_response_v6,
    10: _decode_response_v6,
    11: _decode_response_v6,
}


_response_encoders: Final[dict[int, Callable[[ListOffsetsResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v4,
    5: _encode_response_v4,
    6: _encode_response_v6,
    7: _encode_response_v6,
    8: _encode_response_v6,
    9: _encode_response_v6,
    10: _encode_response_v6,
    11: _encode_response_v6,
}


def decode_response(data: bytes | memoryview, version: int) -> ListOffsetsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ListOffsetsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListOffsetsResponse", version) from None


def encode_response(message: ListOffsetsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListOffsetsResponse has no version {version} here")
    return encode(message)
