"""DescribeQuorum, API key 55, versions 0 to 2, flexible from 0.

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

API_KEY: Final = 55
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hx: Final = _Struct(">Hx").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihiiq: Final = _Struct(">ihiiq").pack
_p_iiq: Final = _Struct(">iiq").pack
_p_iqqqx: Final = _Struct(">iqqqx").pack
_p_iqx: Final = _Struct(">iqx").pack
_p_iuqqqx: Final = _Struct(">i16sqqqx").pack
_p_ix: Final = _Struct(">ix").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihiiqB: Final = _Struct(">ihiiqB").unpack_from
_u_iiqB: Final = _Struct(">iiqB").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_iqqqB: Final = _Struct(">iqqqB").unpack_from
_u_iuqqqB: Final = _Struct(">i16sqqqB").unpack_from


class DescribeQuorumRequestPartitionData(Message):
    """Part of DescribeQuorumRequest, versions 0-2."""

    __slots__ = (
        "partition_index",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index


class DescribeQuorumRequestTopicData(Message):
    """Part of DescribeQuorumRequest, versions 0-2."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[DescribeQuorumRequestPartitionData] = [] if partitions is EMPTY else partitions


class DescribeQuorumRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "topics",
    )

    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequestTopicData] = EMPTY,
    ) -> None:
        self.topics: list[DescribeQuorumRequestTopicData] = [] if topics is EMPTY else topics


class ReplicaState(Message):
    """Part of DescribeQuorumResponse, versions 0-2."""

    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: UUID = NIL_UUID,  # versions 2
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,  # versions 1-2
        last_caught_up_timestamp: int = -1,  # versions 1-2
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_directory_id: UUID = replica_directory_id
        self.log_end_offset: int = log_end_offset
        self.last_fetch_timestamp: int = last_fetch_timestamp
        self.last_caught_up_timestamp: int = last_caught_up_timestamp


class DescribeQuorumResponsePartitionData(Message):
    """Part of DescribeQuorumResponse, versions 0-2."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",  # versions 2
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = EMPTY,
        observers: list[ReplicaState] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.high_watermark: int = high_watermark
        self.current_voters: list[ReplicaState] = [] if current_voters is EMPTY else current_voters
        self.observers: list[ReplicaState] = [] if observers is EMPTY else observers


class DescribeQuorumResponseTopicData(Message):
    """Part of DescribeQuorumResponse, versions 0-2."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[DescribeQuorumResponsePartitionData] = [] if partitions is EMPTY else partitions


class Listener(Message):
    """Part of DescribeQuorumResponse, versions 2."""

    __slots__ = (
        "name",
        "host",
        "port",
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port


class Node(Message):
    """Part of DescribeQuorumResponse, versions 2."""

    __slots__ = (
        "node_id",
        "listeners",
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        listeners: list[Listener] = EMPTY,
    ) -> None:
        self.node_id: int = node_id
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners


class DescribeQuorumResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "error_code",
        "error_message",
        "topics",
        "nodes",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",  # versions 2
        topics: list[DescribeQuorumResponseTopicData] = EMPTY,
        nodes: list[Node] = EMPTY,  # versions 2
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[DescribeQuorumResponseTopicData] = [] if topics is EMPTY else topics
        self.nodes: list[Node] = [] if nodes is EMPTY else nodes


def _decode_request_v0(view: bytes | memoryview) -> DescribeQuorumRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeQuorumRequest.__new__(DescribeQuorumRequest)
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
    items: list[DescribeQuorumRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = DescribeQuorumRequestTopicData.__new__(DescribeQuorumRequestTopicData)
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
        if n * 5 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[DescribeQuorumRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DescribeQuorumRequestPartitionData.__new__(DescribeQuorumRequestPartitionData)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("DescribeQuorumRequestPartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DescribeQuorumRequestTopicData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeQuorumRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeQuorumRequest")
    return m


def _encode_request_v0(m: DescribeQuorumRequest) -> bytes:
    out = bytearray()
    items = m.topics
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.topic_name.encode()
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
            out += _p_ix(item1.partition_index)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeQuorumRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[DescribeQuorumRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeQuorumRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeQuorumRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeQuorumRequest", version) from None


def encode_request(message: DescribeQuorumRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeQuorumRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeQuorumResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeQuorumResponse.__new__(DescribeQuorumResponse)
    m.error_message = ""
    m.nodes = []
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[DescribeQuorumResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = DescribeQuorumResponseTopicData.__new__(DescribeQuorumResponseTopicData)
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
        if n * 25 > end - p:
            raise count_error("partitions", n)
        items1: list[DescribeQuorumResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DescribeQuorumResponsePartitionData.__new__(DescribeQuorumResponsePartitionData)
            item1.error_message = ""
            item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, item1.high_watermark, n = _u_ihiiqB(data, p)
            p += 23
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("current_voters")
            n -= 1
            if n * 13 > end - p:
                raise count_error("current_voters", n)
            items2: list[ReplicaState] = []
            item1.current_voters = items2
            for _ in range(n):
                item2 = ReplicaState.__new__(ReplicaState)
                item2.replica_directory_id = NIL_UUID
                item2.last_fetch_timestamp = -1
                item2.last_caught_up_timestamp = -1
                item2.replica_id, item2.log_end_offset, n = _u_iqB(data, p)
                p += 13
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("observers")
            n -= 1
            if n * 13 > end - p:
                raise count_error("observers", n)
            items3: list[ReplicaState] = []
            item1.observers = items3
            for _ in range(n):
                item3 = ReplicaState.__new__(ReplicaState)
                item3.replica_directory_id = NIL_UUID
                item3.last_fetch_timestamp = -1
                item3.last_caught_up_timestamp = -1
                item3.replica_id, item3.log_end_offset, n = _u_iqB(data, p)
                p += 13
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items3.append(item3)
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
        raise end_error("DescribeQuorumResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> DescribeQuorumResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeQuorumResponse.__new__(DescribeQuorumResponse)
    m.error_message = ""
    m.nodes = []
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[DescribeQuorumResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = DescribeQuorumResponseTopicData.__new__(DescribeQuorumResponseTopicData)
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
        if n * 25 > end - p:
            raise count_error("partitions", n)
        items1: list[DescribeQuorumResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DescribeQuorumResponsePartitionData.__new__(DescribeQuorumResponsePartitionData)
            item1.error_message = ""
            item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, item1.high_watermark, n = _u_ihiiqB(data, p)
            p += 23
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("current_voters")
            n -= 1
            if n * 29 > end - p:
                raise count_error("current_voters", n)
            items2: list[ReplicaState] = []
            item1.current_voters = items2
            for _ in range(n):
                item2 = ReplicaState.__new__(ReplicaState)
                item2.replica_directory_id = NIL_UUID
                item2.replica_id, item2.log_end_offset, item2.last_fetch_timestamp, item2.last_caught_up_timestamp, n = _u_iqqqB(data, p)
                p += 29
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("observers")
            n -= 1
            if n * 29 > end - p:
                raise count_error("observers", n)
            items3: list[ReplicaState] = []
            item1.observers = items3
            for _ in range(n):
                item3 = ReplicaState.__new__(ReplicaState)
                item3.replica_directory_id = NIL_UUID
                item3.replica_id, item3.log_end_offset, item3.last_fetch_timestamp, item3.last_caught_up_timestamp, n = _u_iqqqB(data, p)
                p += 29
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items3.append(item3)
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
        raise end_error("DescribeQuorumResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> DescribeQuorumResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeQuorumResponse.__new__(DescribeQuorumResponse)
    m.error_code, n = _u_hB(data, p)
    p += 3
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
    items: list[DescribeQuorumResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = DescribeQuorumResponseTopicData.__new__(DescribeQuorumResponseTopicData)
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
        if n * 26 > end - p:
            raise count_error("partitions", n)
        items1: list[DescribeQuorumResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = DescribeQuorumResponsePartitionData.__new__(DescribeQuorumResponsePartitionData)
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
            item1.leader_id, item1.leader_epoch, item1.high_watermark, n = _u_iiqB(data, p)
            p += 17
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("current_voters")
            n -= 1
            if n * 45 > end - p:
                raise count_error("current_voters", n)
            items2: list[ReplicaState] = []
            item1.current_voters = items2
            for _ in range(n):
                item2 = ReplicaState.__new__(ReplicaState)
                item2.replica_id, u, item2.log_end_offset, item2.last_fetch_timestamp, item2.last_caught_up_timestamp, n = _u_iuqqqB(data, p)
                p += 45
                item2.replica_directory_id = uuid_from_bytes(u)
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("observers")
            n -= 1
            if n * 45 > end - p:
                raise count_error("observers", n)
            items3: list[ReplicaState] = []
            item1.observers = items3
            for _ in range(n):
                item3 = ReplicaState.__new__(ReplicaState)
                item3.replica_id, u1, item3.log_end_offset, item3.last_fetch_timestamp, item3.last_caught_up_timestamp, n = _u_iuqqqB(data, p)
                p += 45
                item3.replica_directory_id = uuid_from_bytes(u1)
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items3.append(item3)
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("nodes")
    n -= 1
    if n * 6 > end - p:
        raise count_error("nodes", n)
    items4: list[Node] = []
    m.nodes = items4
    for _ in range(n):
        item4 = Node.__new__(Node)
        item4.node_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("listeners")
        n -= 1
        if n * 5 > end - p:
            raise count_error("listeners", n)
        items5: list[Listener] = []
        item4.listeners = items5
        for _ in range(n):
            item5 = Listener.__new__(Listener)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item5.name = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("host")
            e = p + n - 1
            item5.host = data[p:e].decode("utf-8", "replace")
            p = e
            item5.port, n = _u_HB(data, p)
            p += 3
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items5.append(item5)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items4.append(item4)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeQuorumResponse")
    return m


def _encode_response_v0(m: DescribeQuorumResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_h(m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.topic_name.encode()
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
            items2 = item1.current_voters
            out += _p_ihiiq(item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, item1.high_watermark)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqx(item2.replica_id, item2.log_end_offset)
            items3 = item1.observers
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item3 in items3:
                out += _p_iqx(item3.replica_id, item3.log_end_offset)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v1(m: DescribeQuorumResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_h(m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.topic_name.encode()
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
            items2 = item1.current_voters
            out += _p_ihiiq(item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, item1.high_watermark)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqqqx(item2.replica_id, item2.log_end_offset, item2.last_fetch_timestamp, item2.last_caught_up_timestamp)
            items3 = item1.observers
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item3 in items3:
                out += _p_iqqqx(item3.replica_id, item3.log_end_offset, item3.last_fetch_timestamp, item3.last_caught_up_timestamp)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v2(m: DescribeQuorumResponse) -> bytes:
    out = bytearray()
    out += _p_h(m.error_code)
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
            items2 = item1.current_voters
            out += _p_iiq(item1.leader_id, item1.leader_epoch, item1.high_watermark)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iuqqqx(item2.replica_id, item2.replica_directory_id.bytes, item2.log_end_offset, item2.last_fetch_timestamp, item2.last_caught_up_timestamp)
            items3 = item1.observers
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item3 in items3:
                out += _p_iuqqqx(item3.replica_id, item3.replica_directory_id.bytes, item3.log_end_offset, item3.last_fetch_timestamp, item3.last_caught_up_timestamp)
            out += b"\x00"
        out += b"\x00"
    items4 = m.nodes
    n = len(items4) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item4 in items4:
        items5 = item4.listeners
        out += _p_i(item4.node_id)
        n = len(items5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item5 in items5:
            b3 = item5.name.encode()
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
            b4 = item5.host.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
            out += _p_Hx(item5.port)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeQuorumResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[DescribeQuorumResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeQuorumResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeQuorumResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeQuorumResponse", version) from None


def encode_response(message: DescribeQuorumResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeQuorumResponse has no version {version} here")
    return encode(message)
