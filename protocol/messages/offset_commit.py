"""OffsetCommit, API key 8, versions 2 to 10, flexible from 8.

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

API_KEY: Final = 8
MIN_VERSION: Final = 2
MAX_VERSION: Final = 10
FIRST_FLEXIBLE_VERSION: Final[int | None] = 8

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihx: Final = _Struct(">ihx").pack
_p_ii: Final = _Struct(">ii").pack
_p_iq: Final = _Struct(">iq").pack
_p_iqi: Final = _Struct(">iqi").pack
_p_qi: Final = _Struct(">qi").pack
_p_u: Final = _Struct(">16s").pack
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iqh: Final = _Struct(">iqh").unpack_from
_u_iqiB: Final = _Struct(">iqiB").unpack_from
_u_iqih: Final = _Struct(">iqih").unpack_from
_u_qi: Final = _Struct(">qi").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class OffsetCommitRequestPartition(Message):
    """Part of OffsetCommitRequest, versions 2-10."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # versions 6-10
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata


class OffsetCommitRequestTopic(Message):
    """Part of OffsetCommitRequest, versions 2-10."""

    __slots__ = (
        "topic_id",
        "partitions",
        "name",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 10
        partitions: list[OffsetCommitRequestPartition] = EMPTY,
        name: str = "",  # versions 2-9
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is EMPTY else partitions
        self.name: str = name


class OffsetCommitRequest(Message):
    """Body of the request, versions 2-10."""

    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "topics",
        "retention_time_ms",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,  # versions 7-10
        topics: list[OffsetCommitRequestTopic] = EMPTY,
        retention_time_ms: int = -1,  # versions 2-4
    ) -> None:
        self.group_id: str = group_id
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is EMPTY else topics
        self.retention_time_ms: int = retention_time_ms


class OffsetCommitResponsePartition(Message):
    """Part of OffsetCommitResponse, versions 2-10."""

    __slots__ = (
        "partition_index",
        "error_code",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code


class OffsetCommitResponseTopic(Message):
    """Part of OffsetCommitResponse, versions 2-10."""

    __slots__ = (
        "topic_id",
        "partitions",
        "name",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 10
        partitions: list[OffsetCommitResponsePartition] = EMPTY,
        name: str = "",  # versions 2-9
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is EMPTY else partitions
        self.name: str = name


class OffsetCommitResponse(Message):
    """Body of the response, versions 2-10."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 3-10
        topics: list[OffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is EMPTY else topics


def _decode_request_v2(view: bytes | memoryview) -> OffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetCommitRequest.__new__(OffsetCommitRequest)
    m.group_instance_id = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id_or_member_epoch, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.retention_time_ms, n = _u_qi(data, p)
    p += 12
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[OffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitRequestTopic.__new__(OffsetCommitRequestTopic)
        item.topic_id = NIL_UUID
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
        if n * 14 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitRequestPartition.__new__(OffsetCommitRequestPartition)
            item1.committed_leader_epoch = -1
            item1.partition_index, item1.committed_offset, n = _u_iqh(data, p)
            p += 14
            if n < 0:
                item1.committed_metadata = None
            else:
                e = p + n
                item1.committed_metadata = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetCommitRequest")
    return m


def _decode_request_v5(view: bytes | memoryview) -> OffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetCommitRequest.__new__(OffsetCommitRequest)
    m.group_instance_id = None
    m.retention_time_ms = -1
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id_or_member_epoch, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
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
    items: list[OffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitRequestTopic.__new__(OffsetCommitRequestTopic)
        item.topic_id = NIL_UUID
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
        if n * 14 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitRequestPartition.__new__(OffsetCommitRequestPartition)
            item1.committed_leader_epoch = -1
            item1.partition_index, item1.committed_offset, n = _u_iqh(data, p)
            p += 14
            if n < 0:
                item1.committed_metadata = None
            else:
                e = p + n
                item1.committed_metadata = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetCommitRequest")
    return m


def _decode_request_v6(view: bytes | memoryview) -> OffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetCommitRequest.__new__(OffsetCommitRequest)
    m.group_instance_id = None
    m.retention_time_ms = -1
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id_or_member_epoch, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
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
    items: list[OffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitRequestTopic.__new__(OffsetCommitRequestTopic)
        item.topic_id = NIL_UUID
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
        if n * 18 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitRequestPartition.__new__(OffsetCommitRequestPartition)
            item1.partition_index, item1.committed_offset, item1.committed_leader_epoch, n = _u_iqih(data, p)
            p += 18
            if n < 0:
                item1.committed_metadata = None
            else:
                e = p + n
                item1.committed_metadata = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetCommitRequest")
    return m


def _decode_request_v7(view: bytes | memoryview) -> OffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetCommitRequest.__new__(OffsetCommitRequest)
    m.retention_time_ms = -1
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id_or_member_epoch, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("member_id")
    e = p + n
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        m.group_instance_id = None
    else:
        e = p + n
        m.group_instance_id = data[p:e].decode("utf-8", "replace")
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
    items: list[OffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitRequestTopic.__new__(OffsetCommitRequestTopic)
        item.topic_id = NIL_UUID
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
        if n * 18 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitRequestPartition.__new__(OffsetCommitRequestPartition)
            item1.partition_index, item1.committed_offset, item1.committed_leader_epoch, n = _u_iqih(data, p)
            p += 18
            if n < 0:
                item1.committed_metadata = None
            else:
                e = p + n
                item1.committed_metadata = data[p:e].decode("utf-8", "replace")
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetCommitRequest")
    return m


def _decode_request_v8(view: bytes | memoryview) -> OffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetCommitRequest.__new__(OffsetCommitRequest)
    m.retention_time_ms = -1
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id_or_member_epoch, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("member_id")
    e = p + n - 1
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_instance_id = None
    else:
        e = p + n - 1
        m.group_instance_id = data[p:e].decode("utf-8", "replace")
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
    items: list[OffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitRequestTopic.__new__(OffsetCommitRequestTopic)
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 18 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitRequestPartition.__new__(OffsetCommitRequestPartition)
            item1.partition_index, item1.committed_offset, item1.committed_leader_epoch, n = _u_iqiB(data, p)
            p += 17
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.committed_metadata = None
            else:
                e = p + n - 1
                item1.committed_metadata = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("OffsetCommitRequestPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("OffsetCommitRequestTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("OffsetCommitRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetCommitRequest")
    return m


def _decode_request_v10(view: bytes | memoryview) -> OffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetCommitRequest.__new__(OffsetCommitRequest)
    m.retention_time_ms = -1
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.generation_id_or_member_epoch, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("member_id")
    e = p + n - 1
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_instance_id = None
    else:
        e = p + n - 1
        m.group_instance_id = data[p:e].decode("utf-8", "replace")
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
    items: list[OffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitRequestTopic.__new__(OffsetCommitRequestTopic)
        item.name = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 18 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[OffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitRequestPartition.__new__(OffsetCommitRequestPartition)
            item1.partition_index, item1.committed_offset, item1.committed_leader_epoch, n = _u_iqiB(data, p)
            p += 17
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.committed_metadata = None
            else:
                e = p + n - 1
                item1.committed_metadata = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("OffsetCommitRequestPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("OffsetCommitRequestTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("OffsetCommitRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetCommitRequest")
    return m


def _encode_request_v2(m: OffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.generation_id_or_member_epoch, len(b1))
    out += b1
    items = m.topics
    out += _p_qi(m.retention_time_ms, len(items))
    for item in items:
        b2 = item.name.encode()
        out += _p_h(len(b2))
        out += b2
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iq(item1.partition_index, item1.committed_offset)
            v3 = item1.committed_metadata
            if v3 is None:
                out += b"\xff\xff"
            else:
                b3 = v3.encode()
                out += _p_h(len(b3))
                out += b3
    return bytes(out)


def _encode_request_v5(m: OffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.generation_id_or_member_epoch, len(b1))
    out += b1
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b2 = item.name.encode()
        out += _p_h(len(b2))
        out += b2
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iq(item1.partition_index, item1.committed_offset)
            v3 = item1.committed_metadata
            if v3 is None:
                out += b"\xff\xff"
            else:
                b3 = v3.encode()
                out += _p_h(len(b3))
                out += b3
    return bytes(out)


def _encode_request_v6(m: OffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.generation_id_or_member_epoch, len(b1))
    out += b1
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b2 = item.name.encode()
        out += _p_h(len(b2))
        out += b2
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iqi(item1.partition_index, item1.committed_offset, item1.committed_leader_epoch)
            v3 = item1.committed_metadata
            if v3 is None:
                out += b"\xff\xff"
            else:
                b3 = v3.encode()
                out += _p_h(len(b3))
                out += b3
    return bytes(out)


def _encode_request_v7(m: OffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.member_id.encode()
    out += _p_ih(m.generation_id_or_member_epoch, len(b1))
    out += b1
    v2 = m.group_instance_id
    if v2 is None:
        out += b"\xff\xff"
    else:
        b2 = v2.encode()
        out += _p_h(len(b2))
        out += b2
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b3 = item.name.encode()
        out += _p_h(len(b3))
        out += b3
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iqi(item1.partition_index, item1.committed_offset, item1.committed_leader_epoch)
            v4 = item1.committed_metadata
            if v4 is None:
                out += b"\xff\xff"
            else:
                b4 = v4.encode()
                out += _p_h(len(b4))
                out += b4
    return bytes(out)


def _encode_request_v8(m: OffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    out += _p_i(m.generation_id_or_member_epoch)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    v2 = m.group_instance_id
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
    items = m.topics
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b3 = item.name.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_iqi(item1.partition_index, item1.committed_offset, item1.committed_leader_epoch)
            v4 = item1.committed_metadata
            if v4 is None:
                out += b"\x00"
            else:
                b4 = v4.encode()
                n = len(b4) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b4
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v10(m: OffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    out += _p_i(m.generation_id_or_member_epoch)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    v2 = m.group_instance_id
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
            out += _p_iqi(item1.partition_index, item1.committed_offset, item1.committed_leader_epoch)
            v3 = item1.committed_metadata
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
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], OffsetCommitRequest]]] = {
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v2,
    5: _decode_request_v5,
    6: _decode_request_v6,
    7: _decode_request_v7,
    8: _decode_request_v8,
    9: _decode_request_v8,
    10: _decode_request_v10,
}


_request_encoders: Final[dict[int, Callable[[OffsetCommitRequest], bytes]]] = {
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v2,
    5: _encode_request_v5,
    6: _encode_request_v6,
    7: _encode_request_v7,
    8: _encode_request_v8,
    9: _encode_request_v8,
    10: _encode_request_v10,
}


def decode_request(data: bytes | memoryview, version: int) -> OffsetCommitRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("OffsetCommitRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("OffsetCommitRequest", version) from None


def encode_request(message: OffsetCommitRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"OffsetCommitRequest has no version {version} here")
    return encode(message)


def _decode_response_v2(view: bytes | memoryview) -> OffsetCommitResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetCommitResponse.__new__(OffsetCommitResponse)
    m.throttle_time_ms = 0
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[OffsetCommitResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitResponseTopic.__new__(OffsetCommitResponseTopic)
        item.topic_id = NIL_UUID
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
        if n * 6 > end - p:
            raise count_error("partitions", n)
        items1: list[OffsetCommitResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitResponsePartition.__new__(OffsetCommitResponsePartition)
            item1.partition_index, item1.error_code = _u_ih(data, p)
            p += 6
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetCommitResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> OffsetCommitResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetCommitResponse.__new__(OffsetCommitResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[OffsetCommitResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitResponseTopic.__new__(OffsetCommitResponseTopic)
        item.topic_id = NIL_UUID
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
        if n * 6 > end - p:
            raise count_error("partitions", n)
        items1: list[OffsetCommitResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitResponsePartition.__new__(OffsetCommitResponsePartition)
            item1.partition_index, item1.error_code = _u_ih(data, p)
            p += 6
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetCommitResponse")
    return m


def _decode_response_v8(view: bytes | memoryview) -> OffsetCommitResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetCommitResponse.__new__(OffsetCommitResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[OffsetCommitResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitResponseTopic.__new__(OffsetCommitResponseTopic)
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 7 > end - p:
            raise count_error("partitions", n)
        items1: list[OffsetCommitResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitResponsePartition.__new__(OffsetCommitResponsePartition)
            item1.partition_index, item1.error_code, n = _u_ihB(data, p)
            p += 7
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
        raise end_error("OffsetCommitResponse")
    return m


def _decode_response_v10(view: bytes | memoryview) -> OffsetCommitResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetCommitResponse.__new__(OffsetCommitResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 18 > end - p:
        raise count_error("topics", n)
    items: list[OffsetCommitResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetCommitResponseTopic.__new__(OffsetCommitResponseTopic)
        item.name = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 7 > end - p:
            raise count_error("partitions", n)
        items1: list[OffsetCommitResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetCommitResponsePartition.__new__(OffsetCommitResponsePartition)
            item1.partition_index, item1.error_code, n = _u_ihB(data, p)
            p += 7
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
        raise end_error("OffsetCommitResponse")
    return m


def _encode_response_v2(m: OffsetCommitResponse) -> bytes:
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
            out += _p_ih(item1.partition_index, item1.error_code)
    return bytes(out)


def _encode_response_v3(m: OffsetCommitResponse) -> bytes:
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
            out += _p_ih(item1.partition_index, item1.error_code)
    return bytes(out)


def _encode_response_v8(m: OffsetCommitResponse) -> bytes:
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
            out += _p_ihx(item1.partition_index, item1.error_code)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v10(m: OffsetCommitResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(m.throttle_time_ms)
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
            out += _p_ihx(item1.partition_index, item1.error_code)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], OffsetCommitResponse]]] = {
    2: _decode_response_v2,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v3,
    6: _decode_response_v3,
    7: _decode_response_v3,
    8: _decode_response_v8,
    9: _decode_response_v8,
    10: _decode_response_v10,
}


_response_encoders: Final[dict[int, Callable[[OffsetCommitResponse], bytes]]] = {
    2: _encode_response_v2,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v3,
    6: _encode_response_v3,
    7: _encode_response_v3,
    8: _encode_response_v8,
    9: _encode_response_v8,
    10: _encode_response_v10,
}


def decode_response(data: bytes | memoryview, version: int) -> OffsetCommitResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("OffsetCommitResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("OffsetCommitResponse", version) from None


def encode_response(message: OffsetCommitResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"OffsetCommitResponse has no version {version} here")
    return encode(message)
