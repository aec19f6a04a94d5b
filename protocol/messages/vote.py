"""Vote, API key 52, versions 0 to 2, flexible from 0.

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

API_KEY: Final = 52
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hx: Final = _Struct(">Hx").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ihiizx: Final = _Struct(">ihii?x").pack
_p_iiiiqx: Final = _Struct(">iiiiqx").pack
_p_iiiuuiqx: Final = _Struct(">iii16s16siqx").pack
_p_iiiuuiqzx: Final = _Struct(">iii16s16siq?x").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihiizB: Final = _Struct(">ihii?B").unpack_from
_u_iiiiqB: Final = _Struct(">iiiiqB").unpack_from
_u_iiiuuiqB: Final = _Struct(">iii16s16siqB").unpack_from
_u_iiiuuiqzB: Final = _Struct(">iii16s16siq?B").unpack_from


class VoteRequestPartitionData(Message):
    """Part of VoteRequest, versions 0-2."""

    __slots__ = (
        "partition_index",
        "replica_epoch",
        "replica_id",
        "replica_directory_id",
        "voter_directory_id",
        "last_offset_epoch",
        "last_offset",
        "pre_vote",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: UUID = NIL_UUID,  # versions 1-2
        voter_directory_id: UUID = NIL_UUID,  # versions 1-2
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,  # versions 2
    ) -> None:
        self.partition_index: int = partition_index
        self.replica_epoch: int = replica_epoch
        self.replica_id: int = replica_id
        self.replica_directory_id: UUID = replica_directory_id
        self.voter_directory_id: UUID = voter_directory_id
        self.last_offset_epoch: int = last_offset_epoch
        self.last_offset: int = last_offset
        self.pre_vote: bool = pre_vote


class VoteRequestTopicData(Message):
    """Part of VoteRequest, versions 0-2."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[VoteRequestPartitionData] = [] if partitions is EMPTY else partitions


class VoteRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "cluster_id",
        "voter_id",
        "topics",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,  # versions 1-2
        topics: list[VoteRequestTopicData] = EMPTY,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: list[VoteRequestTopicData] = [] if topics is EMPTY else topics


class VoteResponsePartitionData(Message):
    """Part of VoteResponse, versions 0-2."""

    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
        "vote_granted",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        vote_granted: bool = False,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.vote_granted: bool = vote_granted


class VoteResponseTopicData(Message):
    """Part of VoteResponse, versions 0-2."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[VoteResponsePartitionData] = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """Part of VoteResponse, versions 1-2."""

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


class VoteResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "error_code",
        "topics",
        "node_endpoints",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[VoteResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # versions 1-2, tag 0
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[VoteResponseTopicData] = [] if topics is EMPTY else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _decode_request_v0(view: bytes | memoryview) -> VoteRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = VoteRequest.__new__(VoteRequest)
    m.voter_id = -1
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
    items: list[VoteRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = VoteRequestTopicData.__new__(VoteRequestTopicData)
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
        if n * 25 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[VoteRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = VoteRequestPartitionData.__new__(VoteRequestPartitionData)
            item1.replica_directory_id = NIL_UUID
            item1.voter_directory_id = NIL_UUID
            item1.pre_vote = False
            item1.partition_index, item1.replica_epoch, item1.replica_id, item1.last_offset_epoch, item1.last_offset, n = _u_iiiiqB(data, p)
            p += 25
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("VoteRequestPartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("VoteRequestTopicData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("VoteRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("VoteRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> VoteRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = VoteRequest.__new__(VoteRequest)
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
    m.voter_id, n = _u_iB(data, p)
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
    items: list[VoteRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = VoteRequestTopicData.__new__(VoteRequestTopicData)
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
        if n * 57 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[VoteRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = VoteRequestPartitionData.__new__(VoteRequestPartitionData)
            item1.pre_vote = False
            item1.partition_index, item1.replica_epoch, item1.replica_id, u, u1, item1.last_offset_epoch, item1.last_offset, n = _u_iiiuuiqB(data, p)
            p += 57
            item1.replica_directory_id = uuid_from_bytes(u)
            item1.voter_directory_id = uuid_from_bytes(u1)
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("VoteRequestPartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("VoteRequestTopicData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("VoteRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("VoteRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> VoteRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = VoteRequest.__new__(VoteRequest)
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
    m.voter_id, n = _u_iB(data, p)
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
    items: list[VoteRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = VoteRequestTopicData.__new__(VoteRequestTopicData)
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
        if n * 58 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[VoteRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = VoteRequestPartitionData.__new__(VoteRequestPartitionData)
            item1.partition_index, item1.replica_epoch, item1.replica_id, u, u1, item1.last_offset_epoch, item1.last_offset, item1.pre_vote, n = _u_iiiuuiqzB(data, p)
            p += 58
            item1.replica_directory_id = uuid_from_bytes(u)
            item1.voter_directory_id = uuid_from_bytes(u1)
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("VoteRequestPartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("VoteRequestTopicData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("VoteRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("VoteRequest")
    return m


def _encode_request_v0(m: VoteRequest) -> bytes:
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
            out += _p_iiiiqx(item1.partition_index, item1.replica_epoch, item1.replica_id, item1.last_offset_epoch, item1.last_offset)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v1(m: VoteRequest) -> bytes:
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
    out += _p_i(m.voter_id)
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
            out += _p_iiiuuiqx(item1.partition_index, item1.replica_epoch, item1.replica_id, item1.replica_directory_id.bytes, item1.voter_directory_id.bytes, item1.last_offset_epoch, item1.last_offset)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v2(m: VoteRequest) -> bytes:
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
    out += _p_i(m.voter_id)
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
            out += _p_iiiuuiqzx(item1.partition_index, item1.replica_epoch, item1.replica_id, item1.replica_directory_id.bytes, item1.voter_directory_id.bytes, item1.last_offset_epoch, item1.last_offset, item1.pre_vote)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], VoteRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[VoteRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> VoteRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("VoteRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("VoteRequest", version, error) from None


def encode_request(message: VoteRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"VoteRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> VoteResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = VoteResponse.__new__(VoteResponse)
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
    items: list[VoteResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = VoteResponseTopicData.__new__(VoteResponseTopicData)
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
        if n * 16 > end - p:
            raise count_error("partitions", n)
        items1: list[VoteResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = VoteResponsePartitionData.__new__(VoteResponsePartitionData)
            item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, item1.vote_granted, n = _u_ihiizB(data, p)
            p += 16
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
        raise end_error("VoteResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> VoteResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = VoteResponse.__new__(VoteResponse)
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
    items: list[VoteResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = VoteResponseTopicData.__new__(VoteResponseTopicData)
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
        if n * 16 > end - p:
            raise count_error("partitions", n)
        items1: list[VoteResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = VoteResponsePartitionData.__new__(VoteResponsePartitionData)
            item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, item1.vote_granted, n = _u_ihiizB(data, p)
            p += 16
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
                raise end_error("VoteResponse")
            p = limit
    if p > end:
        raise end_error("VoteResponse")
    return m


def _encode_response_v0(m: VoteResponse) -> bytes:
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
            out += _p_ihiizx(item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, item1.vote_granted)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v1(m: VoteResponse) -> bytes:
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
            out += _p_ihiizx(item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, item1.vote_granted)
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], VoteResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[VoteResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> VoteResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("VoteResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("VoteResponse", version, error) from None


def encode_response(message: VoteResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"VoteResponse has no version {version} here")
    return encode(message)
