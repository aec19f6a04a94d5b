"""BeginQuorumEpoch, API key 53, versions 0 to 1, flexible from 1.

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

API_KEY: Final = 53
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
_p_iuiix: Final = _Struct(">i16siix").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hi: Final = _Struct(">hi").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihii: Final = _Struct(">ihii").unpack_from
_u_ihiiB: Final = _Struct(">ihiiB").unpack_from
_u_iii: Final = _Struct(">iii").unpack_from
_u_iuiiB: Final = _Struct(">i16siiB").unpack_from


class BeginQuorumEpochRequestPartitionData(Message):
    """Part of BeginQuorumEpochRequest, versions 0-1."""

    __slots__ = (
        "partition_index",
        "voter_directory_id",
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        voter_directory_id: UUID = NIL_UUID,  # versions 1
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.voter_directory_id: UUID = voter_directory_id
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class BeginQuorumEpochRequestTopicData(Message):
    """Part of BeginQuorumEpochRequest, versions 0-1."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[BeginQuorumEpochRequestPartitionData] = [] if partitions is EMPTY else partitions


class LeaderEndpoint(Message):
    """Part of BeginQuorumEpochRequest, versions 1."""

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


class BeginQuorumEpochRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "cluster_id",
        "voter_id",
        "topics",
        "leader_endpoints",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,  # versions 1
        topics: list[BeginQuorumEpochRequestTopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,  # versions 1
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: list[BeginQuorumEpochRequestTopicData] = [] if topics is EMPTY else topics
        self.leader_endpoints: list[LeaderEndpoint] = [] if leader_endpoints is EMPTY else leader_endpoints


class BeginQuorumEpochResponsePartitionData(Message):
    """Part of BeginQuorumEpochResponse, versions 0-1."""

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


class BeginQuorumEpochResponseTopicData(Message):
    """Part of BeginQuorumEpochResponse, versions 0-1."""

    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[BeginQuorumEpochResponsePartitionData] = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """Part of BeginQuorumEpochResponse, versions 1."""

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


class BeginQuorumEpochResponse(Message):
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
        topics: list[BeginQuorumEpochResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # versions 1, tag 0
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[BeginQuorumEpochResponseTopicData] = [] if topics is EMPTY else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _decode_request_v0(view: bytes | memoryview) -> BeginQuorumEpochRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = BeginQuorumEpochRequest.__new__(BeginQuorumEpochRequest)
    m.voter_id = -1
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
    items: list[BeginQuorumEpochRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = BeginQuorumEpochRequestTopicData.__new__(BeginQuorumEpochRequestTopicData)
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
        if n * 12 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[BeginQuorumEpochRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = BeginQuorumEpochRequestPartitionData.__new__(BeginQuorumEpochRequestPartitionData)
            item1.voter_directory_id = NIL_UUID
            item1.partition_index, item1.leader_id, item1.leader_epoch = _u_iii(data, p)
            p += 12
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("BeginQuorumEpochRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> BeginQuorumEpochRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = BeginQuorumEpochRequest.__new__(BeginQuorumEpochRequest)
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
    items: list[BeginQuorumEpochRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = BeginQuorumEpochRequestTopicData.__new__(BeginQuorumEpochRequestTopicData)
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
        if n * 29 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[BeginQuorumEpochRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = BeginQuorumEpochRequestPartitionData.__new__(BeginQuorumEpochRequestPartitionData)
            item1.partition_index, u, item1.leader_id, item1.leader_epoch, n = _u_iuiiB(data, p)
            p += 29
            item1.voter_directory_id = uuid_from_bytes(u)
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("BeginQuorumEpochRequestPartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("BeginQuorumEpochRequestTopicData")
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
    items2: list[LeaderEndpoint] = []
    m.leader_endpoints = items2
    for _ in range(n):
        item2 = LeaderEndpoint.__new__(LeaderEndpoint)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item2.name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
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
            left -= n
            if left < 0:
                raise limit_error("LeaderEndpoint")
            p = skip_fields(data, p, n)
        items2.append(item2)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("BeginQuorumEpochRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("BeginQuorumEpochRequest")
    return m


def _encode_request_v0(m: BeginQuorumEpochRequest) -> bytes:
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
            out += _p_iii(item1.partition_index, item1.leader_id, item1.leader_epoch)
    return bytes(out)


def _encode_request_v1(m: BeginQuorumEpochRequest) -> bytes:
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
            out += _p_iuiix(item1.partition_index, item1.voter_directory_id.bytes, item1.leader_id, item1.leader_epoch)
        out += b"\x00"
    items2 = m.leader_endpoints
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        b2 = item2.name.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        b3 = item2.host.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += _p_Hx(item2.port)
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], BeginQuorumEpochRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[BeginQuorumEpochRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> BeginQuorumEpochRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("BeginQuorumEpochRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("BeginQuorumEpochRequest", version, error) from None


def encode_request(message: BeginQuorumEpochRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"BeginQuorumEpochRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> BeginQuorumEpochResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = BeginQuorumEpochResponse.__new__(BeginQuorumEpochResponse)
    m.node_endpoints = []
    m.error_code, n = _u_hi(data, p)
    p += 6
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[BeginQuorumEpochResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = BeginQuorumEpochResponseTopicData.__new__(BeginQuorumEpochResponseTopicData)
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
        items1: list[BeginQuorumEpochResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = BeginQuorumEpochResponsePartitionData.__new__(BeginQuorumEpochResponsePartitionData)
            item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch = _u_ihii(data, p)
            p += 14
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("BeginQuorumEpochResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> BeginQuorumEpochResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = BeginQuorumEpochResponse.__new__(BeginQuorumEpochResponse)
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
    items: list[BeginQuorumEpochResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = BeginQuorumEpochResponseTopicData.__new__(BeginQuorumEpochResponseTopicData)
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
        items1: list[BeginQuorumEpochResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = BeginQuorumEpochResponsePartitionData.__new__(BeginQuorumEpochResponsePartitionData)
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
                raise end_error("BeginQuorumEpochResponse")
            p = limit
    if p > end:
        raise end_error("BeginQuorumEpochResponse")
    return m


def _encode_response_v0(m: BeginQuorumEpochResponse) -> bytes:
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


def _encode_response_v1(m: BeginQuorumEpochResponse) -> bytes:
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], BeginQuorumEpochResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[BeginQuorumEpochResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> BeginQuorumEpochResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("BeginQuorumEpochResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("BeginQuorumEpochResponse", version, error) from None


def encode_response(message: BeginQuorumEpochResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"BeginQuorumEpochResponse has no version {version} here")
    return encode(message)
