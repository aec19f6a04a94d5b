"""Metadata, API key 3, versions 0 to 13, flexible from 9.

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

API_KEY: Final = 3
MIN_VERSION: Final = 0
MAX_VERSION: Final = 13
FIRST_FLEXIBLE_VERSION: Final[int | None] = 9

_p_h: Final = _Struct(">h").pack
_p_hh: Final = _Struct(">hh").pack
_p_hiii: Final = _Struct(">hiii").pack
_p_hiiii: Final = _Struct(">hiiii").pack
_p_hx: Final = _Struct(">hx").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ii: Final = _Struct(">ii").pack
_p_ix: Final = _Struct(">ix").pack
_p_u: Final = _Struct(">16s").pack
_p_uz: Final = _Struct(">16s?").pack
_p_z: Final = _Struct(">?").pack
_p_zi: Final = _Struct(">?i").pack
_p_zzx: Final = _Struct(">??x").pack
_p_zzz: Final = _Struct(">???").pack
_p_zzzx: Final = _Struct(">???x").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_hiii: Final = _Struct(">hiii").unpack_from
_u_hiiiB: Final = _Struct(">hiiiB").unpack_from
_u_hiiii: Final = _Struct(">hiiii").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from
_u_uzB: Final = _Struct(">16s?B").unpack_from
_u_z: Final = _Struct(">?").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from
_u_zi: Final = _Struct(">?i").unpack_from
_u_zzB: Final = _Struct(">??B").unpack_from
_u_zzz: Final = _Struct(">???").unpack_from
_u_zzzB: Final = _Struct(">???B").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class MetadataRequestTopic(Message):
    """Part of MetadataRequest, versions 0-13."""

    __slots__ = (
        "topic_id",
        "name",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 10-13
        name: str | None = "",
    ) -> None:
        self.topic_id: UUID = topic_id
        self.name: str | None = name


class MetadataRequest(Message):
    """Body of the request, versions 0-13."""

    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_topic_authorized_operations",
        "include_cluster_authorized_operations",
    )

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,  # versions 4-13
        include_topic_authorized_operations: bool = False,  # versions 8-13
        include_cluster_authorized_operations: bool = False,  # versions 8-10
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations


class MetadataResponseBroker(Message):
    """Part of MetadataResponse, versions 0-13."""

    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,  # versions 1-13
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class MetadataResponsePartition(Message):
    """Part of MetadataResponse, versions 0-13."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,  # versions 7-13
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        offline_replicas: list[int] = EMPTY,  # versions 5-13
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
        self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas


class MetadataResponseTopic(Message):
    """Part of MetadataResponse, versions 0-13."""

    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: UUID = NIL_UUID,  # versions 10-13
        is_internal: bool = False,  # versions 1-13
        partitions: list[MetadataResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,  # versions 8-13
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: UUID = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[MetadataResponsePartition] = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations: int = topic_authorized_operations


class MetadataResponse(Message):
    """Body of the response, versions 0-13."""

    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "error_code",
        "cluster_authorized_operations",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 3-13
        brokers: list[MetadataResponseBroker] = EMPTY,
        cluster_id: str | None = None,  # versions 2-13
        controller_id: int = -1,  # versions 1-13
        topics: list[MetadataResponseTopic] = EMPTY,
        error_code: int = 0,  # versions 13
        cluster_authorized_operations: int = -2147483648,  # versions 8-10
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.brokers: list[MetadataResponseBroker] = [] if brokers is EMPTY else brokers
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.topics: list[MetadataResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.cluster_authorized_operations: int = cluster_authorized_operations


def _decode_request_v0(view: bytes | memoryview) -> MetadataRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = MetadataRequest.__new__(MetadataRequest)
    m.allow_auto_topic_creation = True
    m.include_topic_authorized_operations = False
    m.include_cluster_authorized_operations = False
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 2 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[MetadataRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = MetadataRequestTopic.__new__(MetadataRequestTopic)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    if p > end:
        raise end_error("MetadataRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> MetadataRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = MetadataRequest.__new__(MetadataRequest)
    m.allow_auto_topic_creation = True
    m.include_topic_authorized_operations = False
    m.include_cluster_authorized_operations = False
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        m.topics = None
    else:
        if n * 2 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[MetadataRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = MetadataRequestTopic.__new__(MetadataRequestTopic)
            item.topic_id = NIL_UUID
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("name")
            e = p + n
            item.name = data[p:e].decode("utf-8", "replace")
            p = e
            items.append(item)
    if p > end:
        raise end_error("MetadataRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> MetadataRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = MetadataRequest.__new__(MetadataRequest)
    m.include_topic_authorized_operations = False
    m.include_cluster_authorized_operations = False
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        m.topics = None
    else:
        if n * 2 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[MetadataRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = MetadataRequestTopic.__new__(MetadataRequestTopic)
            item.topic_id = NIL_UUID
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("name")
            e = p + n
            item.name = data[p:e].decode("utf-8", "replace")
            p = e
            items.append(item)
    m.allow_auto_topic_creation, = _u_z(data, p)
    p += 1
    if p > end:
        raise end_error("MetadataRequest")
    return m


def _decode_request_v8(view: bytes | memoryview) -> MetadataRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = MetadataRequest.__new__(MetadataRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        m.topics = None
    else:
        if n * 2 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[MetadataRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = MetadataRequestTopic.__new__(MetadataRequestTopic)
            item.topic_id = NIL_UUID
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("name")
            e = p + n
            item.name = data[p:e].decode("utf-8", "replace")
            p = e
            items.append(item)
    m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations = _u_zzz(data, p)
    p += 3
    if p > end:
        raise end_error("MetadataRequest")
    return m


def _decode_request_v9(view: bytes | memoryview) -> MetadataRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = MetadataRequest.__new__(MetadataRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topics = None
    else:
        n -= 1
        if n * 2 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[MetadataRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = MetadataRequestTopic.__new__(MetadataRequestTopic)
            item.topic_id = NIL_UUID
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
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("MetadataRequestTopic")
                p = skip_fields(data, p, n)
            items.append(item)
    m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations, n = _u_zzzB(data, p)
    p += 4
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("MetadataRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("MetadataRequest")
    return m


def _decode_request_v10(view: bytes | memoryview) -> MetadataRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = MetadataRequest.__new__(MetadataRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topics = None
    else:
        n -= 1
        if n * 18 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[MetadataRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = MetadataRequestTopic.__new__(MetadataRequestTopic)
            u, n = _u_uB(data, p)
            p += 17
            item.topic_id = uuid_from_bytes(u)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item.name = None
            else:
                e = p + n - 1
                item.name = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("MetadataRequestTopic")
                p = skip_fields(data, p, n)
            items.append(item)
    m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations, n = _u_zzzB(data, p)
    p += 4
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("MetadataRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("MetadataRequest")
    return m


def _decode_request_v11(view: bytes | memoryview) -> MetadataRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = MetadataRequest.__new__(MetadataRequest)
    m.include_cluster_authorized_operations = False
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topics = None
    else:
        n -= 1
        if n * 18 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[MetadataRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = MetadataRequestTopic.__new__(MetadataRequestTopic)
            u, n = _u_uB(data, p)
            p += 17
            item.topic_id = uuid_from_bytes(u)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item.name = None
            else:
                e = p + n - 1
                item.name = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("MetadataRequestTopic")
                p = skip_fields(data, p, n)
            items.append(item)
    m.allow_auto_topic_creation, m.include_topic_authorized_operations, n = _u_zzB(data, p)
    p += 3
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("MetadataRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("MetadataRequest")
    return m


def _encode_request_v0(m: MetadataRequest) -> bytes:
    out = bytearray()
    v = m.topics
    if v is None:
        raise ValueError("topics cannot be null in this version")
    items = v
    out += _p_i(len(items))
    for item in items:
        v1 = item.name
        if v1 is None:
            raise ValueError("name cannot be null in this version")
        b = v1.encode()
        out += _p_h(len(b))
        out += b
    return bytes(out)


def _encode_request_v1(m: MetadataRequest) -> bytes:
    out = bytearray()
    items = m.topics
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            v = item.name
            if v is None:
                raise ValueError("name cannot be null in this version")
            b = v.encode()
            out += _p_h(len(b))
            out += b
    return bytes(out)


def _encode_request_v4(m: MetadataRequest) -> bytes:
    out = bytearray()
    items = m.topics
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            v = item.name
            if v is None:
                raise ValueError("name cannot be null in this version")
            b = v.encode()
            out += _p_h(len(b))
            out += b
    out += _p_z(m.allow_auto_topic_creation)
    return bytes(out)


def _encode_request_v8(m: MetadataRequest) -> bytes:
    out = bytearray()
    items = m.topics
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            v = item.name
            if v is None:
                raise ValueError("name cannot be null in this version")
            b = v.encode()
            out += _p_h(len(b))
            out += b
    out += _p_zzz(m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations)
    return bytes(out)


def _encode_request_v9(m: MetadataRequest) -> bytes:
    out = bytearray()
    items = m.topics
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            v = item.name
            if v is None:
                raise ValueError("name cannot be null in this version")
            b = v.encode()
            n = len(b) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b
            out += b"\x00"
    out += _p_zzzx(m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations)
    return bytes(out)


def _encode_request_v10(m: MetadataRequest) -> bytes:
    out = bytearray()
    items = m.topics
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            out += _p_u(item.topic_id.bytes)
            v = item.name
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
    out += _p_zzzx(m.allow_auto_topic_creation, m.include_cluster_authorized_operations, m.include_topic_authorized_operations)
    return bytes(out)


def _encode_request_v11(m: MetadataRequest) -> bytes:
    out = bytearray()
    items = m.topics
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            out += _p_u(item.topic_id.bytes)
            v = item.name
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
    out += _p_zzx(m.allow_auto_topic_creation, m.include_topic_authorized_operations)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], MetadataRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v1,
    4: _decode_request_v4,
    5: _decode_request_v4,
    6: _decode_request_v4,
    7: _decode_request_v4,
    8: _decode_request_v8,
    9: _decode_request_v9,
    10: _decode_request_v10,
    11: _decode_request_v11,
    12: _decode_request_v11,
    13: _decode_request_v11,
}


_request_encoders: Final[dict[int, Callable[[MetadataRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v1,
    4: _encode_request_v4,
    5: _encode_request_v4,
    6: _encode_request_v4,
    7: _encode_request_v4,
    8: _encode_request_v8,
    9: _encode_request_v9,
    10: _encode_request_v10,
    11: _encode_request_v11,
    12: _encode_request_v11,
    13: _encode_request_v11,
}


def decode_request(data: bytes | memoryview, version: int) -> MetadataRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("MetadataRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("MetadataRequest", version) from None


def encode_request(message: MetadataRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"MetadataRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.throttle_time_ms = 0
    m.cluster_id = None
    m.controller_id = -1
    m.error_code = 0
    m.cluster_authorized_operations = -2147483648
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("brokers")
    if n * 10 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.rack = None
        item.node_id, n = _u_ih(data, p)
        p += 6
        if n < 0:
            raise null_error("host")
        e = p + n
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, = _u_i(data, p)
        p += 4
        items.append(item)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 8 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.topic_id = NIL_UUID
        item1.is_internal = False
        item1.topic_authorized_operations = -2147483648
        item1.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("name")
        e = p + n
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.leader_epoch = -1
            item2.offline_replicas = []
            item2.error_code, item2.partition_index, item2.leader_id, n = _u_hiii(data, p)
            p += 14
            if n < 0:
                raise null_error("replica_nodes")
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("isr_nodes")
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items2.append(item2)
        items1.append(item1)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.throttle_time_ms = 0
    m.cluster_id = None
    m.error_code = 0
    m.cluster_authorized_operations = -2147483648
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("brokers")
    if n * 12 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_ih(data, p)
        p += 6
        if n < 0:
            raise null_error("host")
        e = p + n
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_ih(data, p)
        p += 6
        if n < 0:
            item.rack = None
        else:
            e = p + n
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    m.controller_id, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 9 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.topic_id = NIL_UUID
        item1.topic_authorized_operations = -2147483648
        item1.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("name")
        e = p + n
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.is_internal, n = _u_zi(data, p)
        p += 5
        if n < 0:
            raise null_error("partitions")
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.leader_epoch = -1
            item2.offline_replicas = []
            item2.error_code, item2.partition_index, item2.leader_id, n = _u_hiii(data, p)
            p += 14
            if n < 0:
                raise null_error("replica_nodes")
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("isr_nodes")
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items2.append(item2)
        items1.append(item1)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.throttle_time_ms = 0
    m.error_code = 0
    m.cluster_authorized_operations = -2147483648
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("brokers")
    if n * 12 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_ih(data, p)
        p += 6
        if n < 0:
            raise null_error("host")
        e = p + n
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_ih(data, p)
        p += 6
        if n < 0:
            item.rack = None
        else:
            e = p + n
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.cluster_id = None
    else:
        e = p + n
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 9 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.topic_id = NIL_UUID
        item1.topic_authorized_operations = -2147483648
        item1.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("name")
        e = p + n
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.is_internal, n = _u_zi(data, p)
        p += 5
        if n < 0:
            raise null_error("partitions")
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.leader_epoch = -1
            item2.offline_replicas = []
            item2.error_code, item2.partition_index, item2.leader_id, n = _u_hiii(data, p)
            p += 14
            if n < 0:
                raise null_error("replica_nodes")
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("isr_nodes")
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items2.append(item2)
        items1.append(item1)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.error_code = 0
    m.cluster_authorized_operations = -2147483648
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("brokers")
    if n * 12 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_ih(data, p)
        p += 6
        if n < 0:
            raise null_error("host")
        e = p + n
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_ih(data, p)
        p += 6
        if n < 0:
            item.rack = None
        else:
            e = p + n
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.cluster_id = None
    else:
        e = p + n
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 9 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.topic_id = NIL_UUID
        item1.topic_authorized_operations = -2147483648
        item1.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("name")
        e = p + n
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.is_internal, n = _u_zi(data, p)
        p += 5
        if n < 0:
            raise null_error("partitions")
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.leader_epoch = -1
            item2.offline_replicas = []
            item2.error_code, item2.partition_index, item2.leader_id, n = _u_hiii(data, p)
            p += 14
            if n < 0:
                raise null_error("replica_nodes")
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("isr_nodes")
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items2.append(item2)
        items1.append(item1)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.error_code = 0
    m.cluster_authorized_operations = -2147483648
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("brokers")
    if n * 12 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_ih(data, p)
        p += 6
        if n < 0:
            raise null_error("host")
        e = p + n
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_ih(data, p)
        p += 6
        if n < 0:
            item.rack = None
        else:
            e = p + n
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.cluster_id = None
    else:
        e = p + n
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 9 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.topic_id = NIL_UUID
        item1.topic_authorized_operations = -2147483648
        item1.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("name")
        e = p + n
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.is_internal, n = _u_zi(data, p)
        p += 5
        if n < 0:
            raise null_error("partitions")
        if n * 22 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.leader_epoch = -1
            item2.error_code, item2.partition_index, item2.leader_id, n = _u_hiii(data, p)
            p += 14
            if n < 0:
                raise null_error("replica_nodes")
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("isr_nodes")
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("offline_replicas")
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item2.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items2.append(item2)
        items1.append(item1)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v7(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.error_code = 0
    m.cluster_authorized_operations = -2147483648
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("brokers")
    if n * 12 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_ih(data, p)
        p += 6
        if n < 0:
            raise null_error("host")
        e = p + n
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_ih(data, p)
        p += 6
        if n < 0:
            item.rack = None
        else:
            e = p + n
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.cluster_id = None
    else:
        e = p + n
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 9 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.topic_id = NIL_UUID
        item1.topic_authorized_operations = -2147483648
        item1.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("name")
        e = p + n
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.is_internal, n = _u_zi(data, p)
        p += 5
        if n < 0:
            raise null_error("partitions")
        if n * 26 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, n = _u_hiiii(data, p)
            p += 18
            if n < 0:
                raise null_error("replica_nodes")
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("isr_nodes")
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("offline_replicas")
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item2.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items2.append(item2)
        items1.append(item1)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v8(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.error_code = 0
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("brokers")
    if n * 12 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_ih(data, p)
        p += 6
        if n < 0:
            raise null_error("host")
        e = p + n
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_ih(data, p)
        p += 6
        if n < 0:
            item.rack = None
        else:
            e = p + n
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.cluster_id = None
    else:
        e = p + n
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 13 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.topic_id = NIL_UUID
        item1.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            raise null_error("name")
        e = p + n
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.is_internal, n = _u_zi(data, p)
        p += 5
        if n < 0:
            raise null_error("partitions")
        if n * 26 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, n = _u_hiiii(data, p)
            p += 18
            if n < 0:
                raise null_error("replica_nodes")
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("isr_nodes")
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                raise null_error("offline_replicas")
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item2.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items2.append(item2)
        item1.topic_authorized_operations, = _u_i(data, p)
        p += 4
        items1.append(item1)
    m.cluster_authorized_operations, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v9(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.error_code = 0
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("brokers")
    n -= 1
    if n * 11 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.rack = None
        else:
            e = p + n - 1
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
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
        m.cluster_id = None
    else:
        e = p + n - 1
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 10 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.topic_id = NIL_UUID
        item1.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.is_internal, n = _u_zB(data, p)
        p += 2
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, n = _u_hiiiB(data, p)
            p += 15
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("replica_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("isr_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("offline_replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item2.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items2.append(item2)
        item1.topic_authorized_operations, n = _u_iB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items1.append(item1)
    m.cluster_authorized_operations, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v10(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.error_code = 0
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("brokers")
    n -= 1
    if n * 11 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.rack = None
        else:
            e = p + n - 1
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
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
        m.cluster_id = None
    else:
        e = p + n - 1
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 26 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        u, item1.is_internal, n = _u_uzB(data, p)
        p += 18
        item1.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, n = _u_hiiiB(data, p)
            p += 15
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("replica_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("isr_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("offline_replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item2.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items2.append(item2)
        item1.topic_authorized_operations, n = _u_iB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items1.append(item1)
    m.cluster_authorized_operations, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v11(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.error_code = 0
    m.cluster_authorized_operations = -2147483648
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("brokers")
    n -= 1
    if n * 11 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.rack = None
        else:
            e = p + n - 1
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
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
        m.cluster_id = None
    else:
        e = p + n - 1
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 26 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        u, item1.is_internal, n = _u_uzB(data, p)
        p += 18
        item1.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, n = _u_hiiiB(data, p)
            p += 15
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("replica_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("isr_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("offline_replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item2.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items2.append(item2)
        item1.topic_authorized_operations, n = _u_iB(data, p)
        p += 5
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
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v12(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.error_code = 0
    m.cluster_authorized_operations = -2147483648
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("brokers")
    n -= 1
    if n * 11 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.rack = None
        else:
            e = p + n - 1
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
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
        m.cluster_id = None
    else:
        e = p + n - 1
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 26 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item1.name = None
        else:
            e = p + n - 1
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
        u, item1.is_internal, n = _u_uzB(data, p)
        p += 18
        item1.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, n = _u_hiiiB(data, p)
            p += 15
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("replica_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("isr_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("offline_replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item2.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items2.append(item2)
        item1.topic_authorized_operations, n = _u_iB(data, p)
        p += 5
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
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _decode_response_v13(view: bytes | memoryview) -> MetadataResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = MetadataResponse.__new__(MetadataResponse)
    m.cluster_authorized_operations = -2147483648
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("brokers")
    n -= 1
    if n * 11 > end - p:
        raise count_error("brokers", n)
    items: list[MetadataResponseBroker] = []
    m.brokers = items
    for _ in range(n):
        item = MetadataResponseBroker.__new__(MetadataResponseBroker)
        item.node_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.rack = None
        else:
            e = p + n - 1
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
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
        m.cluster_id = None
    else:
        e = p + n - 1
        m.cluster_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.controller_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 26 > end - p:
        raise count_error("topics", n)
    items1: list[MetadataResponseTopic] = []
    m.topics = items1
    for _ in range(n):
        item1 = MetadataResponseTopic.__new__(MetadataResponseTopic)
        item1.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item1.name = None
        else:
            e = p + n - 1
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
        u, item1.is_internal, n = _u_uzB(data, p)
        p += 18
        item1.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 18 > end - p:
            raise count_error("partitions", n)
        items2: list[MetadataResponsePartition] = []
        item1.partitions = items2
        for _ in range(n):
            item2 = MetadataResponsePartition.__new__(MetadataResponsePartition)
            item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, n = _u_hiiiB(data, p)
            p += 15
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("replica_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("replica_nodes", n)
            item2.replica_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("isr_nodes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("isr_nodes", n)
            item2.isr_nodes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("offline_replicas")
            n -= 1
            if n * 4 > end - p:
                raise count_error("offline_replicas", n)
            item2.offline_replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items2.append(item2)
        item1.topic_authorized_operations, n = _u_iB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items1.append(item1)
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("MetadataResponse")
    return m


def _encode_response_v0(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_i(len(items))
    for item in items:
        b = item.host.encode()
        out += _p_ih(item.node_id, len(b))
        out += b
        out += _p_i(item.port)
    items1 = m.topics
    out += _p_i(len(items1))
    for item1 in items1:
        v1 = item1.name
        if v1 is None:
            raise ValueError("name cannot be null in this version")
        b1 = v1.encode()
        out += _p_hh(item1.error_code, len(b1))
        out += b1
        items2 = item1.partitions
        out += _p_i(len(items2))
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, len(items3))
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            out += _p_i(len(items4))
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
    return bytes(out)


def _encode_response_v1(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_i(len(items))
    for item in items:
        b = item.host.encode()
        out += _p_ih(item.node_id, len(b))
        out += b
        out += _p_i(item.port)
        v1 = item.rack
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    items1 = m.topics
    out += _p_ii(m.controller_id, len(items1))
    for item1 in items1:
        v2 = item1.name
        if v2 is None:
            raise ValueError("name cannot be null in this version")
        b2 = v2.encode()
        out += _p_hh(item1.error_code, len(b2))
        out += b2
        items2 = item1.partitions
        out += _p_zi(item1.is_internal, len(items2))
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, len(items3))
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            out += _p_i(len(items4))
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
    return bytes(out)


def _encode_response_v2(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_i(len(items))
    for item in items:
        b = item.host.encode()
        out += _p_ih(item.node_id, len(b))
        out += b
        out += _p_i(item.port)
        v1 = item.rack
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    v2 = m.cluster_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    items1 = m.topics
    out += _p_ii(m.controller_id, len(items1))
    for item1 in items1:
        v3 = item1.name
        if v3 is None:
            raise ValueError("name cannot be null in this version")
        b3 = v3.encode()
        out += _p_hh(item1.error_code, len(b3))
        out += b3
        items2 = item1.partitions
        out += _p_zi(item1.is_internal, len(items2))
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, len(items3))
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            out += _p_i(len(items4))
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
    return bytes(out)


def _encode_response_v3(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.host.encode()
        out += _p_ih(item.node_id, len(b))
        out += b
        out += _p_i(item.port)
        v1 = item.rack
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    v2 = m.cluster_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    items1 = m.topics
    out += _p_ii(m.controller_id, len(items1))
    for item1 in items1:
        v3 = item1.name
        if v3 is None:
            raise ValueError("name cannot be null in this version")
        b3 = v3.encode()
        out += _p_hh(item1.error_code, len(b3))
        out += b3
        items2 = item1.partitions
        out += _p_zi(item1.is_internal, len(items2))
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, len(items3))
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            out += _p_i(len(items4))
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
    return bytes(out)


def _encode_response_v5(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.host.encode()
        out += _p_ih(item.node_id, len(b))
        out += b
        out += _p_i(item.port)
        v1 = item.rack
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    v2 = m.cluster_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    items1 = m.topics
    out += _p_ii(m.controller_id, len(items1))
    for item1 in items1:
        v3 = item1.name
        if v3 is None:
            raise ValueError("name cannot be null in this version")
        b3 = v3.encode()
        out += _p_hh(item1.error_code, len(b3))
        out += b3
        items2 = item1.partitions
        out += _p_zi(item1.is_internal, len(items2))
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, len(items3))
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            out += _p_i(len(items4))
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item2.offline_replicas
            out += _p_i(len(items5))
            n = len(items5)
            out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
    return bytes(out)


def _encode_response_v7(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.host.encode()
        out += _p_ih(item.node_id, len(b))
        out += b
        out += _p_i(item.port)
        v1 = item.rack
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    v2 = m.cluster_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    items1 = m.topics
    out += _p_ii(m.controller_id, len(items1))
    for item1 in items1:
        v3 = item1.name
        if v3 is None:
            raise ValueError("name cannot be null in this version")
        b3 = v3.encode()
        out += _p_hh(item1.error_code, len(b3))
        out += b3
        items2 = item1.partitions
        out += _p_zi(item1.is_internal, len(items2))
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiiii(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, len(items3))
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            out += _p_i(len(items4))
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item2.offline_replicas
            out += _p_i(len(items5))
            n = len(items5)
            out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
    return bytes(out)


def _encode_response_v8(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.host.encode()
        out += _p_ih(item.node_id, len(b))
        out += b
        out += _p_i(item.port)
        v1 = item.rack
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    v2 = m.cluster_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    items1 = m.topics
    out += _p_ii(m.controller_id, len(items1))
    for item1 in items1:
        v3 = item1.name
        if v3 is None:
            raise ValueError("name cannot be null in this version")
        b3 = v3.encode()
        out += _p_hh(item1.error_code, len(b3))
        out += b3
        items2 = item1.partitions
        out += _p_zi(item1.is_internal, len(items2))
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiiii(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch, len(items3))
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            out += _p_i(len(items4))
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item2.offline_replicas
            out += _p_i(len(items5))
            n = len(items5)
            out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
        out += _p_i(item1.topic_authorized_operations)
    out += _p_i(m.cluster_authorized_operations)
    return bytes(out)


def _encode_response_v9(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.host.encode()
        out += _p_i(item.node_id)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_i(item.port)
        v1 = item.rack
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
    v2 = m.cluster_id
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
    items1 = m.topics
    out += _p_i(m.controller_id)
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        v3 = item1.name
        if v3 is None:
            raise ValueError("name cannot be null in this version")
        b3 = v3.encode()
        out += _p_h(item1.error_code)
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        items2 = item1.partitions
        out += _p_z(item1.is_internal)
        n = len(items2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch)
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            n = len(items4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item2.offline_replicas
            n = len(items5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items5)
            out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
            out += b"\x00"
        out += _p_ix(item1.topic_authorized_operations)
    out += _p_ix(m.cluster_authorized_operations)
    return bytes(out)


def _encode_response_v10(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.host.encode()
        out += _p_i(item.node_id)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_i(item.port)
        v1 = item.rack
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
    v2 = m.cluster_id
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
    items1 = m.topics
    out += _p_i(m.controller_id)
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        v3 = item1.name
        if v3 is None:
            raise ValueError("name cannot be null in this version")
        b3 = v3.encode()
        out += _p_h(item1.error_code)
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        items2 = item1.partitions
        out += _p_uz(item1.topic_id.bytes, item1.is_internal)
        n = len(items2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch)
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            n = len(items4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item2.offline_replicas
            n = len(items5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items5)
            out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
            out += b"\x00"
        out += _p_ix(item1.topic_authorized_operations)
    out += _p_ix(m.cluster_authorized_operations)
    return bytes(out)


def _encode_response_v11(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.host.encode()
        out += _p_i(item.node_id)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_i(item.port)
        v1 = item.rack
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
    v2 = m.cluster_id
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
    items1 = m.topics
    out += _p_i(m.controller_id)
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        v3 = item1.name
        if v3 is None:
            raise ValueError("name cannot be null in this version")
        b3 = v3.encode()
        out += _p_h(item1.error_code)
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        items2 = item1.partitions
        out += _p_uz(item1.topic_id.bytes, item1.is_internal)
        n = len(items2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch)
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            n = len(items4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item2.offline_replicas
            n = len(items5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items5)
            out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
            out += b"\x00"
        out += _p_ix(item1.topic_authorized_operations)
    out += b"\x00"
    return bytes(out)


def _encode_response_v12(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.host.encode()
        out += _p_i(item.node_id)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_i(item.port)
        v1 = item.rack
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
    v2 = m.cluster_id
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
    items1 = m.topics
    out += _p_i(m.controller_id)
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        out += _p_h(item1.error_code)
        v3 = item1.name
        if v3 is None:
            out += b"\x00"
        else:
            b3 = v3.encode()
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
        items2 = item1.partitions
        out += _p_uz(item1.topic_id.bytes, item1.is_internal)
        n = len(items2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch)
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            n = len(items4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item2.offline_replicas
            n = len(items5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items5)
            out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
            out += b"\x00"
        out += _p_ix(item1.topic_authorized_operations)
    out += b"\x00"
    return bytes(out)


def _encode_response_v13(m: MetadataResponse) -> bytes:
    out = bytearray()
    items = m.brokers
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.host.encode()
        out += _p_i(item.node_id)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_i(item.port)
        v1 = item.rack
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
    v2 = m.cluster_id
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
    items1 = m.topics
    out += _p_i(m.controller_id)
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        out += _p_h(item1.error_code)
        v3 = item1.name
        if v3 is None:
            out += b"\x00"
        else:
            b3 = v3.encode()
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
        items2 = item1.partitions
        out += _p_uz(item1.topic_id.bytes, item1.is_internal)
        n = len(items2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item2 in items2:
            items3 = item2.replica_nodes
            out += _p_hiii(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch)
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items3)
            out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
            items4 = item2.isr_nodes
            n = len(items4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            items5 = item2.offline_replicas
            n = len(items5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items5)
            out += PACK_INT32[n](*items5) if n < SMALL else pack(f">{n}i", *items5)
            out += b"\x00"
        out += _p_ix(item1.topic_authorized_operations)
    out += _p_hx(m.error_code)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], MetadataResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v5,
    6: _decode_response_v5,
    7: _decode_response_v7,
    8: _decode_response_v8,
    9: _decode_response_v9,
    10: _decode_response_v10,
    11: _decode_response_v11,
    12: _decode_response_v12,
    13: _decode_response_v13,
}


_response_encoders: Final[dict[int, Callable[[MetadataResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v5,
    6: _encode_response_v5,
    7: _encode_response_v7,
    8: _encode_response_v8,
    9: _encode_response_v9,
    10: _encode_response_v10,
    11: _encode_response_v11,
    12: _encode_response_v12,
    13: _encode_response_v13,
}


def decode_response(data: bytes | memoryview, version: int) -> MetadataResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("MetadataResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("MetadataResponse", version) from None


def encode_response(message: MetadataResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"MetadataResponse has no version {version} here")
    return encode(message)
