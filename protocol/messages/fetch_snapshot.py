"""FetchSnapshot, API key 59, versions 0 to 1, flexible from 0.

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

API_KEY: Final = 59
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hx: Final = _Struct(">Hx").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihqixqq: Final = _Struct(">ihqixqq").pack
_p_ii: Final = _Struct(">ii").pack
_p_iiqixq: Final = _Struct(">iiqixq").pack
_p_iiqixqx: Final = _Struct(">iiqixqx").pack
_p_iix: Final = _Struct(">iix").pack
_p_u: Final = _Struct(">16s").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihqiB: Final = _Struct(">ihqiB").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_iiqiB: Final = _Struct(">iiqiB").unpack_from
_u_qB: Final = _Struct(">qB").unpack_from
_u_qqB: Final = _Struct(">qqB").unpack_from
_u_u: Final = _Struct(">16s").unpack_from


class FetchSnapshotRequestSnapshotId(Message):
    """Part of FetchSnapshotRequest, versions 0-1."""

    __slots__ = (
        "end_offset",
        "epoch",
    )

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch


class FetchSnapshotRequestPartitionSnapshot(Message):
    """Part of FetchSnapshotRequest, versions 0-1."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "snapshot_id",
        "position",
        "replica_directory_id",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: FetchSnapshotRequestSnapshotId | None = None,
        position: int = 0,
        replica_directory_id: UUID = NIL_UUID,  # versions 1, tag 0
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.snapshot_id: FetchSnapshotRequestSnapshotId = FetchSnapshotRequestSnapshotId() if snapshot_id is None else snapshot_id
        self.position: int = position
        self.replica_directory_id: UUID = replica_directory_id


class FetchSnapshotRequestTopicSnapshot(Message):
    """Part of FetchSnapshotRequest, versions 0-1."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotRequestPartitionSnapshot] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[FetchSnapshotRequestPartitionSnapshot] = [] if partitions is EMPTY else partitions


class FetchSnapshotRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "cluster_id",
        "replica_id",
        "max_bytes",
        "topics",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,  # tag 0
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequestTopicSnapshot] = EMPTY,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_id: int = replica_id
        self.max_bytes: int = max_bytes
        self.topics: list[FetchSnapshotRequestTopicSnapshot] = [] if topics is EMPTY else topics


class FetchSnapshotResponseSnapshotId(Message):
    """Part of FetchSnapshotResponse, versions 0-1."""

    __slots__ = (
        "end_offset",
        "epoch",
    )

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch


class LeaderIdAndEpoch(Message):
    """Part of FetchSnapshotResponse, versions 0-1."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class FetchSnapshotResponsePartitionSnapshot(Message):
    """Part of FetchSnapshotResponse, versions 0-1."""

    __slots__ = (
        "index",
        "error_code",
        "snapshot_id",
        "current_leader",
        "size",
        "position",
        "unaligned_records",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: FetchSnapshotResponseSnapshotId | None = None,
        current_leader: LeaderIdAndEpoch | None = None,  # tag 0
        size: int = 0,
        position: int = 0,
        unaligned_records: bytes | bytearray | memoryview = b'',
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.snapshot_id: FetchSnapshotResponseSnapshotId = FetchSnapshotResponseSnapshotId() if snapshot_id is None else snapshot_id
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        self.size: int = size
        self.position: int = position
        self.unaligned_records: bytes | bytearray | memoryview = unaligned_records


class FetchSnapshotResponseTopicSnapshot(Message):
    """Part of FetchSnapshotResponse, versions 0-1."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotResponsePartitionSnapshot] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[FetchSnapshotResponsePartitionSnapshot] = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """Part of FetchSnapshotResponse, versions 1."""

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


class FetchSnapshotResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "topics",
        "node_endpoints",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponseTopicSnapshot] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # versions 1, tag 0
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: list[FetchSnapshotResponseTopicSnapshot] = [] if topics is EMPTY else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _decode_request_v0(view: bytes | memoryview) -> FetchSnapshotRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchSnapshotRequest.__new__(FetchSnapshotRequest)
    m.cluster_id = None
    m.replica_id, m.max_bytes, n = _u_iiB(data, p)
    p += 9
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
    items: list[FetchSnapshotRequestTopicSnapshot] = []
    m.topics = items
    for _ in range(n):
        item = FetchSnapshotRequestTopicSnapshot.__new__(FetchSnapshotRequestTopicSnapshot)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 30 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchSnapshotRequestPartitionSnapshot] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchSnapshotRequestPartitionSnapshot.__new__(FetchSnapshotRequestPartitionSnapshot)
            item1.replica_directory_id = NIL_UUID
            s = FetchSnapshotRequestSnapshotId.__new__(FetchSnapshotRequestSnapshotId)
            item1.partition, item1.current_leader_epoch, s.end_offset, s.epoch, n = _u_iiqiB(data, p)
            p += 21
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchSnapshotRequestSnapshotId")
                p = skip_fields(data, p, n)
            item1.snapshot_id = s
            item1.position, n = _u_qB(data, p)
            p += 9
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchSnapshotRequestPartitionSnapshot")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchSnapshotRequestTopicSnapshot")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("FetchSnapshotRequest")
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
                    m.cluster_id = None
                else:
                    e = p + n - 1
                    m.cluster_id = data[p:e].decode()
                    p = e
                if p > limit:
                    raise end_error("cluster_id")
            if limit > end:
                raise end_error("FetchSnapshotRequest")
            p = limit
    if p > end:
        raise end_error("FetchSnapshotRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> FetchSnapshotRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchSnapshotRequest.__new__(FetchSnapshotRequest)
    m.cluster_id = None
    m.replica_id, m.max_bytes, n = _u_iiB(data, p)
    p += 9
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
    items: list[FetchSnapshotRequestTopicSnapshot] = []
    m.topics = items
    for _ in range(n):
        item = FetchSnapshotRequestTopicSnapshot.__new__(FetchSnapshotRequestTopicSnapshot)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 30 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchSnapshotRequestPartitionSnapshot] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchSnapshotRequestPartitionSnapshot.__new__(FetchSnapshotRequestPartitionSnapshot)
            item1.replica_directory_id = NIL_UUID
            s = FetchSnapshotRequestSnapshotId.__new__(FetchSnapshotRequestSnapshotId)
            item1.partition, item1.current_leader_epoch, s.end_offset, s.epoch, n = _u_iiqiB(data, p)
            p += 21
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchSnapshotRequestSnapshotId")
                p = skip_fields(data, p, n)
            item1.snapshot_id = s
            item1.position, n = _u_qB(data, p)
            p += 9
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchSnapshotRequestPartitionSnapshot")
                for _ in range(n):
                    tag, p = decode_unsigned_varint(data, p)
                    limit, p = decode_unsigned_varint(data, p)
                    limit += p
                    if tag == 0:
                        u, = _u_u(data, p)
                        p += 16
                        item1.replica_directory_id = uuid_from_bytes(u)
                        if p > limit:
                            raise end_error("replica_directory_id")
                    if limit > end:
                        raise end_error("FetchSnapshotRequestPartitionSnapshot")
                    p = limit
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchSnapshotRequestTopicSnapshot")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("FetchSnapshotRequest")
        for _ in range(n):
            tag, p = decode_unsigned_varint(data, p)
            limit1, p = decode_unsigned_varint(data, p)
            limit1 += p
            if tag == 0:
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
                if p > limit1:
                    raise end_error("cluster_id")
            if limit1 > end:
                raise end_error("FetchSnapshotRequest")
            p = limit1
    if p > end:
        raise end_error("FetchSnapshotRequest")
    return m


def _encode_request_v0(m: FetchSnapshotRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.replica_id, m.max_bytes)
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
            s = item1.snapshot_id
            out += _p_iiqixqx(item1.partition, item1.current_leader_epoch, s.end_offset, s.epoch, item1.position)
        out += b"\x00"
    count = 0
    section = bytearray()
    t = m.cluster_id
    if t is not None:
        count += 1
        content = bytearray()
        b1 = t.encode()
        n = len(b1) + 1
        if n < 128:
            content.append(n)
        else:
            content += encode_unsigned_varint(n)
        content += b1
        section += encode_unsigned_varint(0)
        section += encode_unsigned_varint(len(content))
        section += content
    out += encode_unsigned_varint(count)
    out += section
    return bytes(out)


def _encode_request_v1(m: FetchSnapshotRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.replica_id, m.max_bytes)
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
            s = item1.snapshot_id
            out += _p_iiqixq(item1.partition, item1.current_leader_epoch, s.end_offset, s.epoch, item1.position)
            count = 0
            section = bytearray()
            t = item1.replica_directory_id
            if t.int:
                count += 1
                content = bytearray()
                content += _p_u(t.bytes)
                section += encode_unsigned_varint(0)
                section += encode_unsigned_varint(len(content))
                section += content
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    count1 = 0
    section1 = bytearray()
    t1 = m.cluster_id
    if t1 is not None:
        count1 += 1
        content1 = bytearray()
        b1 = t1.encode()
        n = len(b1) + 1
        if n < 128:
            content1.append(n)
        else:
            content1 += encode_unsigned_varint(n)
        content1 += b1
        section1 += encode_unsigned_varint(0)
        section1 += encode_unsigned_varint(len(content1))
        section1 += content1
    out += encode_unsigned_varint(count1)
    out += section1
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], FetchSnapshotRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[FetchSnapshotRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> FetchSnapshotRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("FetchSnapshotRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("FetchSnapshotRequest", version, error) from None


def encode_request(message: FetchSnapshotRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"FetchSnapshotRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> FetchSnapshotResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchSnapshotResponse.__new__(FetchSnapshotResponse)
    m.node_endpoints = []
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[FetchSnapshotResponseTopicSnapshot] = []
    m.topics = items
    for _ in range(n):
        item = FetchSnapshotResponseTopicSnapshot.__new__(FetchSnapshotResponseTopicSnapshot)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = str(data[p:e], "utf-8")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 37 > end - p:
            raise count_error("partitions", n)
        items1: list[FetchSnapshotResponsePartitionSnapshot] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchSnapshotResponsePartitionSnapshot.__new__(FetchSnapshotResponsePartitionSnapshot)
            item1.current_leader = None
            s = FetchSnapshotResponseSnapshotId.__new__(FetchSnapshotResponseSnapshotId)
            item1.index, item1.error_code, s.end_offset, s.epoch, n = _u_ihqiB(data, p)
            p += 19
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item1.snapshot_id = s
            item1.size, item1.position, n = _u_qqB(data, p)
            p += 17
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("unaligned_records")
            e = p + n - 1
            item1.unaligned_records = data[p:e]
            p = e
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
                        s1 = LeaderIdAndEpoch.__new__(LeaderIdAndEpoch)
                        s1.leader_id, s1.leader_epoch, n = _u_iiB(data, p)
                        p += 9
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.current_leader = s1
                        if p > limit:
                            raise end_error("current_leader")
                    if limit > end:
                        raise end_error("FetchSnapshotResponsePartitionSnapshot")
                    p = limit
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
        raise end_error("FetchSnapshotResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> FetchSnapshotResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchSnapshotResponse.__new__(FetchSnapshotResponse)
    m.node_endpoints = []
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[FetchSnapshotResponseTopicSnapshot] = []
    m.topics = items
    for _ in range(n):
        item = FetchSnapshotResponseTopicSnapshot.__new__(FetchSnapshotResponseTopicSnapshot)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = str(data[p:e], "utf-8")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 37 > end - p:
            raise count_error("partitions", n)
        items1: list[FetchSnapshotResponsePartitionSnapshot] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchSnapshotResponsePartitionSnapshot.__new__(FetchSnapshotResponsePartitionSnapshot)
            item1.current_leader = None
            s = FetchSnapshotResponseSnapshotId.__new__(FetchSnapshotResponseSnapshotId)
            item1.index, item1.error_code, s.end_offset, s.epoch, n = _u_ihqiB(data, p)
            p += 19
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item1.snapshot_id = s
            item1.size, item1.position, n = _u_qqB(data, p)
            p += 17
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("unaligned_records")
            e = p + n - 1
            item1.unaligned_records = data[p:e]
            p = e
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
                        s1 = LeaderIdAndEpoch.__new__(LeaderIdAndEpoch)
                        s1.leader_id, s1.leader_epoch, n = _u_iiB(data, p)
                        p += 9
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.current_leader = s1
                        if p > limit:
                            raise end_error("current_leader")
                    if limit > end:
                        raise end_error("FetchSnapshotResponsePartitionSnapshot")
                    p = limit
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
            limit1, p = decode_unsigned_varint(data, p)
            limit1 += p
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
                    item2.host = str(data[p:e], "utf-8")
                    p = e
                    item2.port, n = _u_HB(data, p)
                    p += 3
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items2.append(item2)
                if p > limit1:
                    raise end_error("node_endpoints")
            if limit1 > end:
                raise end_error("FetchSnapshotResponse")
            p = limit1
    if p > end:
        raise end_error("FetchSnapshotResponse")
    return m


def _encode_response_v0(m: FetchSnapshotResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ih(m.throttle_time_ms, m.error_code)
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
            s = item1.snapshot_id
            b1 = item1.unaligned_records
            out += _p_ihqixqq(item1.index, item1.error_code, s.end_offset, s.epoch, item1.size, item1.position)
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            count = 0
            section = bytearray()
            t = item1.current_leader
            if t is not None and (t.leader_id != 0 or t.leader_epoch != 0):
                count += 1
                content = bytearray()
                content += _p_iix(t.leader_id, t.leader_epoch)
                section += encode_unsigned_varint(0)
                section += encode_unsigned_varint(len(content))
                section += content
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v1(m: FetchSnapshotResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ih(m.throttle_time_ms, m.error_code)
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
            s = item1.snapshot_id
            b1 = item1.unaligned_records
            out += _p_ihqixqq(item1.index, item1.error_code, s.end_offset, s.epoch, item1.size, item1.position)
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            count = 0
            section = bytearray()
            t = item1.current_leader
            if t is not None and (t.leader_id != 0 or t.leader_epoch != 0):
                count += 1
                content = bytearray()
                content += _p_iix(t.leader_id, t.leader_epoch)
                section += encode_unsigned_varint(0)
                section += encode_unsigned_varint(len(content))
                section += content
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    count1 = 0
    section1 = bytearray()
    t1 = m.node_endpoints
    if t1:
        count1 += 1
        content1 = bytearray()
        items2 = t1
        n = len(items2) + 1
        if n < 128:
            content1.append(n)
        else:
            content1 += encode_unsigned_varint(n)
        for item2 in items2:
            b2 = item2.host.encode()
            content1 += _p_i(item2.node_id)
            n = len(b2) + 1
            if n < 128:
                content1.append(n)
            else:
                content1 += encode_unsigned_varint(n)
            content1 += b2
            content1 += _p_Hx(item2.port)
        section1 += encode_unsigned_varint(0)
        section1 += encode_unsigned_varint(len(content1))
        section1 += content1
    out += encode_unsigned_varint(count1)
    out += section1
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], FetchSnapshotResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[FetchSnapshotResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> FetchSnapshotResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("FetchSnapshotResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("FetchSnapshotResponse", version, error) from None


def encode_response(message: FetchSnapshotResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"FetchSnapshotResponse has no version {version} here")
    return encode(message)
