"""ElectLeaders, API key 43, versions 0 to 2, flexible from 2.

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

API_KEY: Final = 43
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_b: Final = _Struct(">b").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihi: Final = _Struct(">ihi").pack
_p_ii: Final = _Struct(">ii").pack
_p_ix: Final = _Struct(">ix").pack
_u_bB: Final = _Struct(">bB").unpack_from
_u_bi: Final = _Struct(">bi").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihh: Final = _Struct(">ihh").unpack_from
_u_ihi: Final = _Struct(">ihi").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class TopicPartitions(Message):
    """Part of ElectLeadersRequest, versions 0-2."""

    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class ElectLeadersRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "election_type",
        "topic_partitions",
        "timeout_ms",
    )

    def __init__(
        self,
        *,
        election_type: int = 0,  # versions 1-2
        topic_partitions: list[TopicPartitions] | None = EMPTY,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type: int = election_type
        self.topic_partitions: list[TopicPartitions] | None = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms: int = timeout_ms


class PartitionResult(Message):
    """Part of ElectLeadersResponse, versions 0-2."""

    __slots__ = (
        "partition_id",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id: int = partition_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class ReplicaElectionResult(Message):
    """Part of ElectLeadersResponse, versions 0-2."""

    __slots__ = (
        "topic",
        "partition_result",
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] = EMPTY,
    ) -> None:
        self.topic: str = topic
        self.partition_result: list[PartitionResult] = [] if partition_result is EMPTY else partition_result


class ElectLeadersResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "replica_election_results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # versions 1-2
        replica_election_results: list[ReplicaElectionResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: list[ReplicaElectionResult] = [] if replica_election_results is EMPTY else replica_election_results


def _decode_request_v0(view: bytes | memoryview) -> ElectLeadersRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ElectLeadersRequest.__new__(ElectLeadersRequest)
    m.election_type = 0
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        m.topic_partitions = None
    else:
        if n * 6 > end - p:
            raise count_error("topic_partitions", n)
        left -= n
        if left < 0:
            raise limit_error("topic_partitions")
        items: list[TopicPartitions] = []
        m.topic_partitions = items
        for _ in range(n):
            item = TopicPartitions.__new__(TopicPartitions)
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
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items.append(item)
    m.timeout_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("ElectLeadersRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> ElectLeadersRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ElectLeadersRequest.__new__(ElectLeadersRequest)
    m.election_type, n = _u_bi(data, p)
    p += 5
    if n < 0:
        m.topic_partitions = None
    else:
        if n * 6 > end - p:
            raise count_error("topic_partitions", n)
        left -= n
        if left < 0:
            raise limit_error("topic_partitions")
        items: list[TopicPartitions] = []
        m.topic_partitions = items
        for _ in range(n):
            item = TopicPartitions.__new__(TopicPartitions)
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
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items.append(item)
    m.timeout_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("ElectLeadersRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> ElectLeadersRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ElectLeadersRequest.__new__(ElectLeadersRequest)
    m.election_type, n = _u_bB(data, p)
    p += 2
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topic_partitions = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("topic_partitions", n)
        left -= n
        if left < 0:
            raise limit_error("topic_partitions")
        items: list[TopicPartitions] = []
        m.topic_partitions = items
        for _ in range(n):
            item = TopicPartitions.__new__(TopicPartitions)
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
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("TopicPartitions")
                p = skip_fields(data, p, n)
            items.append(item)
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ElectLeadersRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ElectLeadersRequest")
    return m


def _encode_request_v0(m: ElectLeadersRequest) -> bytes:
    out = bytearray()
    items = m.topic_partitions
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            b = item.topic.encode()
            out += _p_h(len(b))
            out += b
            items1 = item.partitions
            out += _p_i(len(items1))
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
    out += _p_i(m.timeout_ms)
    return bytes(out)


def _encode_request_v1(m: ElectLeadersRequest) -> bytes:
    out = bytearray()
    items = m.topic_partitions
    out += _p_b(m.election_type)
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            b = item.topic.encode()
            out += _p_h(len(b))
            out += b
            items1 = item.partitions
            out += _p_i(len(items1))
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
    out += _p_i(m.timeout_ms)
    return bytes(out)


def _encode_request_v2(m: ElectLeadersRequest) -> bytes:
    out = bytearray()
    items = m.topic_partitions
    out += _p_b(m.election_type)
    if items is None:
        out += b"\x00"
    else:
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
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
            out += b"\x00"
    out += _p_ix(m.timeout_ms)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ElectLeadersRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[ElectLeadersRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> ElectLeadersRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ElectLeadersRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ElectLeadersRequest", version) from None


def encode_request(message: ElectLeadersRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ElectLeadersRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ElectLeadersResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ElectLeadersResponse.__new__(ElectLeadersResponse)
    m.error_code = 0
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("replica_election_results")
    if n * 6 > end - p:
        raise count_error("replica_election_results", n)
    items: list[ReplicaElectionResult] = []
    m.replica_election_results = items
    for _ in range(n):
        item = ReplicaElectionResult.__new__(ReplicaElectionResult)
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
            raise null_error("partition_result")
        if n * 8 > end - p:
            raise count_error("partition_result", n)
        items1: list[PartitionResult] = []
        item.partition_result = items1
        for _ in range(n):
            item1 = PartitionResult.__new__(PartitionResult)
            item1.partition_id, item1.error_code, n = _u_ihh(data, p)
            p += 8
            if n < 0:
                item1.error_message = None
            else:
                e = p + n
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ElectLeadersResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> ElectLeadersResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ElectLeadersResponse.__new__(ElectLeadersResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihi(data, p)
    p += 10
    if n < 0:
        raise null_error("replica_election_results")
    if n * 6 > end - p:
        raise count_error("replica_election_results", n)
    items: list[ReplicaElectionResult] = []
    m.replica_election_results = items
    for _ in range(n):
        item = ReplicaElectionResult.__new__(ReplicaElectionResult)
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
            raise null_error("partition_result")
        if n * 8 > end - p:
            raise count_error("partition_result", n)
        items1: list[PartitionResult] = []
        item.partition_result = items1
        for _ in range(n):
            item1 = PartitionResult.__new__(PartitionResult)
            item1.partition_id, item1.error_code, n = _u_ihh(data, p)
            p += 8
            if n < 0:
                item1.error_message = None
            else:
                e = p + n
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("ElectLeadersResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> ElectLeadersResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ElectLeadersResponse.__new__(ElectLeadersResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("replica_election_results")
    n -= 1
    if n * 3 > end - p:
        raise count_error("replica_election_results", n)
    items: list[ReplicaElectionResult] = []
    m.replica_election_results = items
    for _ in range(n):
        item = ReplicaElectionResult.__new__(ReplicaElectionResult)
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
            raise null_error("partition_result")
        n -= 1
        if n * 8 > end - p:
            raise count_error("partition_result", n)
        items1: list[PartitionResult] = []
        item.partition_result = items1
        for _ in range(n):
            item1 = PartitionResult.__new__(PartitionResult)
            item1.partition_id, item1.error_code, n = _u_ihB(data, p)
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
        raise end_error("ElectLeadersResponse")
    return m


def _encode_response_v0(m: ElectLeadersResponse) -> bytes:
    out = bytearray()
    items = m.replica_election_results
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partition_result
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ih(item1.partition_id, item1.error_code)
            v1 = item1.error_message
            if v1 is None:
                out += b"\xff\xff"
            else:
                b1 = v1.encode()
                out += _p_h(len(b1))
                out += b1
    return bytes(out)


def _encode_response_v1(m: ElectLeadersResponse) -> bytes:
    out = bytearray()
    items = m.replica_election_results
    out += _p_ihi(m.throttle_time_ms, m.error_code, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partition_result
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ih(item1.partition_id, item1.error_code)
            v1 = item1.error_message
            if v1 is None:
                out += b"\xff\xff"
            else:
                b1 = v1.encode()
                out += _p_h(len(b1))
                out += b1
    return bytes(out)


def _encode_response_v2(m: ElectLeadersResponse) -> bytes:
    out = bytearray()
    items = m.replica_election_results
    out += _p_ih(m.throttle_time_ms, m.error_code)
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
        items1 = item.partition_result
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_ih(item1.partition_id, item1.error_code)
            v1 = item1.error_message
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
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ElectLeadersResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[ElectLeadersResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> ElectLeadersResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ElectLeadersResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ElectLeadersResponse", version) from None


def encode_response(message: ElectLeadersResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ElectLeadersResponse has no version {version} here")
    return encode(message)
