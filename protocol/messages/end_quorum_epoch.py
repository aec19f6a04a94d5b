"""EndQuorumEpoch, API key 54, versions 0 to 1, flexible from 1.

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

API_KEY: Final = 54
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_Hx: Final = _Struct(">Hx").pack
_p_h: Final = _Struct(">h").pack
_p_hi: Final = _Struct(">hi").pack
_p_i: Final = _Struct(">i").pack
_p_ihii: Final = _Struct(">ihii").pack
_p_ihiix: Final = _Struct(">ihiix").pack
_p_iii: Final = _Struct(">iii").pack
_p_iiii: Final = _Struct(">iiii").pack
_p_iux: Final = _Struct(">i16sx").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hi: Final = _Struct(">hi").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihii: Final = _Struct(">ihii").unpack_from
_u_ihiiB: Final = _Struct(">ihiiB").unpack_from
_u_iiiB: Final = _Struct(">iiiB").unpack_from
_u_iiii: Final = _Struct(">iiii").unpack_from
_u_iuB: Final = _Struct(">i16sB").unpack_from


class ReplicaInfo(Message):
    """Part of EndQuorumEpochRequest, versions 1."""

    __slots__ = (
        "candidate_id",
        "candidate_directory_id",
    )

    def __init__(
        self,
        *,
        candidate_id: int = 0,
        candidate_directory_id: UUID = NIL_UUID,
    ) -> None:
        self.candidate_id: int = candidate_id
        self.candidate_directory_id: UUID = candidate_directory_id


class EndQuorumEpochRequestPartitionData(Message):
    """Part of EndQuorumEpochRequest, versions 0-1."""

    __slots__ = (
        "partition_index",
        "leader_id",
        "leader_epoch",
        "preferred_candidates",
        "preferred_successors",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        preferred_candidates: list[ReplicaInfo] = EMPTY,  # versions 1
        preferred_successors: list[int] = EMPTY,  # versions 0
    ) -> None:
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.preferred_candidates: list[ReplicaInfo] = [] if preferred_candidates is EMPTY else preferred_candidates
        self.preferred_successors: list[int] = [] if preferred_successors is EMPTY else preferred_successors


class EndQuorumEpochRequestTopicData(Message):
    """Part of EndQuorumEpochRequest, versions 0-1."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[EndQuorumEpochRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[EndQuorumEpochRequestPartitionData] = [] if partitions is EMPTY else partitions


class LeaderEndpoint(Message):
    """Part of EndQuorumEpochRequest, versions 1."""

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


class EndQuorumEpochRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "cluster_id",
        "topics",
        "leader_endpoints",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[EndQuorumEpochRequestTopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,  # versions 1
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.topics: list[EndQuorumEpochRequestTopicData] = [] if topics is EMPTY else topics
        self.leader_endpoints: list[LeaderEndpoint] = [] if leader_endpoints is EMPTY else leader_endpoints


class EndQuorumEpochResponsePartitionData(Message):
    """Part of EndQuorumEpochResponse, versions 0-1."""

    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class EndQuorumEpochResponseTopicData(Message):
    """Part of EndQuorumEpochResponse, versions 0-1."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[EndQuorumEpochResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[EndQuorumEpochResponsePartitionData] = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """Part of EndQuorumEpochResponse, versions 1."""

    __slots__ = (
        "node_id",
        "host",
        "port",
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port


class EndQuorumEpochResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "error_code",
        "topics",
        "node_endpoints",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[EndQuorumEpochResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # versions 1, tag 0
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[EndQuorumEpochResponseTopicData] = [] if topics is EMPTY else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _decode_request_v0(view: bytes | memoryview) -> EndQuorumEpochRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = EndQuorumEpochRequest.__new__(EndQuorumEpochRequest)
    m.leader_endpoints = []
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.cluster_id = None
    else:
        e = p + n
        m.cluster_id = data[p:e].decode()
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
    items: list[EndQuorumEpochRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = EndQuorumEpochRequestTopicData.__new__(EndQuorumEpochRequestTopicData)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic_name")
        e = p + n
        item.topic_name = data[p:e].decode()
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
        items1: list[EndQuorumEpochRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = EndQuorumEpochRequestPartitionData.__new__(EndQuorumEpochRequestPartitionData)
            item1.preferred_candidates = []
            item1.partition_index, item1.leader_id, item1.leader_epoch, n = _u_iiii(data, p)
            p += 16
            if n < 0:
                raise null_error("preferred_successors")
            if n * 4 > end - p:
                raise count_error("preferred_successors", n)
            left -= n
            if left < 0:
                raise limit_error("preferred_successors")
            item1.preferred_successors = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("EndQuorumEpochRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> EndQuorumEpochRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = EndQuorumEpochRequest.__new__(EndQuorumEpochRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.cluster_id = None
    else:
        e = p + n - 1
        m.cluster_id = data[p:e].decode()
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
    items: list[EndQuorumEpochRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = EndQuorumEpochRequestTopicData.__new__(EndQuorumEpochRequestTopicData)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        item.topic_name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 14 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[EndQuorumEpochRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = EndQuorumEpochRequestPartitionData.__new__(EndQuorumEpochRequestPartitionData)
            item1.preferred_successors = []
            item1.partition_index, item1.leader_id, item1.leader_epoch, n = _u_iiiB(data, p)
            p += 13
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("preferred_candidates")
            n -= 1
            if n * 21 > end - p:
                raise count_error("preferred_candidates", n)
            left -= n
            if left < 0:
                raise limit_error("preferred_candidates")
            items2: list[ReplicaInfo] = []
            item1.preferred_candidates = items2
            for _ in range(n):
                item2 = ReplicaInfo.__new__(ReplicaInfo)
                item2.candidate_id, u, n = _u_iuB(data, p)
                p += 21
                item2.candidate_directory_id = uuid_from_bytes(u)
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("ReplicaInfo")
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("EndQuorumEpochRequestPartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("EndQuorumEpochRequestTopicData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("leader_endpoints")
    n -= 1
    if n * 5 > end - p:
        raise count_error("leader_endpoints", n)
    left -= n
    if left < 0:
        raise limit_error("leader_endpoints")
    items3: list[LeaderEndpoint] = []
    m.leader_endpoints = items3
    for _ in range(n):
        item3 = LeaderEndpoint.__new__(LeaderEndpoint)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item3.name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item3.host = data[p:e].decode()
        p = e
        item3.port, n = _u_HB(data, p)
        p += 3
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("LeaderEndpoint")
            p = skip_fields(data, p, n)
        items3.append(item3)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("EndQuorumEpochRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("EndQuorumEpochRequest")
    return m


def _encode_request_v0(m: EndQuorumEpochRequest) -> bytes:
    out = bytearray()
    v = m.cluster_id
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b1 = item.topic_name.encode()
        out += _p_h(len(b1))
        out += b1
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            items2 = item1.preferred_successors
            out += _p_iiii(item1.partition_index, item1.leader_id, item1.leader_epoch, len(items2))
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
    return bytes(out)


def _encode_request_v1(m: EndQuorumEpochRequest) -> bytes:
    out = bytearray()
    v = m.cluster_id
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
            items2 = item1.preferred_candidates
            out += _p_iii(item1.partition_index, item1.leader_id, item1.leader_epoch)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iux(item2.candidate_id, item2.candidate_directory_id.bytes)
            out += b"\x00"
        out += b"\x00"
    items3 = m.leader_endpoints
    n = len(items3) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item3 in items3:
        b2 = item3.name.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        b3 = item3.host.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += _p_Hx(item3.port)
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], EndQuorumEpochRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[EndQuorumEpochRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> EndQuorumEpochRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("EndQuorumEpochRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("EndQuorumEpochRequest", version, error) from None


def encode_request(message: EndQuorumEpochRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"EndQuorumEpochRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> EndQuorumEpochResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = EndQuorumEpochResponse.__new__(EndQuorumEpochResponse)
    m.node_endpoints = []
    m.error_code, n = _u_hi(data, p)
    p += 6
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[EndQuorumEpochResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = EndQuorumEpochResponseTopicData.__new__(EndQuorumEpochResponseTopicData)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic_name")
        e = p + n
        item.topic_name = data[p:e].decode()
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 14 > end - p:
            raise count_error("partitions", n)
        items1: list[EndQuorumEpochResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = EndQuorumEpochResponsePartitionData.__new__(EndQuorumEpochResponsePartitionData)
            item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch = _u_ihii(data, p)
            p += 14
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("EndQuorumEpochResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> EndQuorumEpochResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = EndQuorumEpochResponse.__new__(EndQuorumEpochResponse)
    m.node_endpoints = []
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[EndQuorumEpochResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = EndQuorumEpochResponseTopicData.__new__(EndQuorumEpochResponseTopicData)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        item.topic_name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 15 > end - p:
            raise count_error("partitions", n)
        items1: list[EndQuorumEpochResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = EndQuorumEpochResponsePartitionData.__new__(EndQuorumEpochResponsePartitionData)
            item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, n = _u_ihiiB(data, p)
            p += 15
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
        for _ in range(n):
            tag, p = decode_unsigned_varint(data, p)
            limit, p = decode_unsigned_varint(data, p)
            limit += p
            if tag == 0:
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("node_endpoints")
                n -= 1
                if n * 8 > end - p:
                    raise count_error("node_endpoints", n)
                items2: list[NodeEndpoint] = []
                m.node_endpoints = items2
                for _ in range(n):
                    item2 = NodeEndpoint.__new__(NodeEndpoint)
                    item2.node_id, n = _u_iB(data, p)
                    p += 5
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("host")
                    e = p + n - 1
                    item2.host = data[p:e].decode()
                    p = e
                    item2.port, n = _u_HB(data, p)
                    p += 3
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items2.append(item2)
                if p > limit:
                    raise end_error("node_endpoints")
            if limit > end:
                raise end_error("EndQuorumEpochResponse")
            p = limit
    if p > end:
        raise end_error("EndQuorumEpochResponse")
    return m


def _encode_response_v0(m: EndQuorumEpochResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_hi(m.error_code, len(items))
    for item in items:
        b = item.topic_name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ihii(item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch)
    return bytes(out)


def _encode_response_v1(m: EndQuorumEpochResponse) -> bytes:
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
            out += _p_ihiix(item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch)
        out += b"\x00"
    count = 0
    section = bytearray()
    t = m.node_endpoints
    if t:
        count += 1
        content = bytearray()
        items2 = t
        n = len(items2) + 1
        if n < 128:
            content.append(n)
        else:
            content += encode_unsigned_varint(n)
        for item2 in items2:
            b1 = item2.host.encode()
            content += _p_i(item2.node_id)
            n = len(b1) + 1
            if n < 128:
                content.append(n)
            else:
                content += encode_unsigned_varint(n)
            content += b1
            content += _p_Hx(item2.port)
        section += encode_unsigned_varint(0)
        section += encode_unsigned_varint(len(content))
        section += content
    out += encode_unsigned_varint(count)
    out += section
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], EndQuorumEpochResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[EndQuorumEpochResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> EndQuorumEpochResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("EndQuorumEpochResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("EndQuorumEpochResponse", version, error) from None


def encode_response(message: EndQuorumEpochResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"EndQuorumEpochResponse has no version {version} here")
    return encode(message)
