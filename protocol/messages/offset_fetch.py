"""OffsetFetch, API key 9, versions 1 to 10, flexible from 6.

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

API_KEY: Final = 9
MIN_VERSION: Final = 1
MAX_VERSION: Final = 10
FIRST_FLEXIBLE_VERSION: Final[int | None] = 6

_p_h: Final = _Struct(">h").pack
_p_hx: Final = _Struct(">hx").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_iq: Final = _Struct(">iq").pack
_p_iqi: Final = _Struct(">iqi").pack
_p_u: Final = _Struct(">16s").pack
_p_zx: Final = _Struct(">?x").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iqh: Final = _Struct(">iqh").unpack_from
_u_iqiB: Final = _Struct(">iqiB").unpack_from
_u_iqih: Final = _Struct(">iqih").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class OffsetFetchRequestTopics(Message):
    """Part of OffsetFetchRequest, versions 8-10."""

    __slots__ = (
        "topic_id",
        "partition_indexes",
        "name",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 10
        partition_indexes: list[int] = EMPTY,
        name: str = "",  # versions 8-9
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes
        self.name: str = name


class OffsetFetchRequestGroup(Message):
    """Part of OffsetFetchRequest, versions 8-10."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "topics",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,  # versions 9-10
        member_epoch: int = -1,  # versions 9-10
        topics: list[OffsetFetchRequestTopics] | None = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.topics: list[OffsetFetchRequestTopics] | None = [] if topics is EMPTY else topics


class OffsetFetchRequestTopic(Message):
    """Part of OffsetFetchRequest, versions 1-7."""

    __slots__ = (
        "name",
        "partition_indexes",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


class OffsetFetchRequest(Message):
    """Body of the request, versions 1-10."""

    __slots__ = (
        "groups",
        "require_stable",
        "group_id",
        "topics",
    )

    def __init__(
        self,
        *,
        groups: list[OffsetFetchRequestGroup] = EMPTY,  # versions 8-10
        require_stable: bool = False,  # versions 7-10
        group_id: str = "",  # versions 1-7
        topics: list[OffsetFetchRequestTopic] | None = EMPTY,  # versions 1-7
    ) -> None:
        self.groups: list[OffsetFetchRequestGroup] = [] if groups is EMPTY else groups
        self.require_stable: bool = require_stable
        self.group_id: str = group_id
        self.topics: list[OffsetFetchRequestTopic] | None = [] if topics is EMPTY else topics


class OffsetFetchResponsePartitions(Message):
    """Part of OffsetFetchResponse, versions 8-10."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code


class OffsetFetchResponseTopics(Message):
    """Part of OffsetFetchResponse, versions 8-10."""

    __slots__ = (
        "topic_id",
        "partitions",
        "name",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 10
        partitions: list[OffsetFetchResponsePartitions] = EMPTY,
        name: str = "",  # versions 8-9
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[OffsetFetchResponsePartitions] = [] if partitions is EMPTY else partitions
        self.name: str = name


class OffsetFetchResponseGroup(Message):
    """Part of OffsetFetchResponse, versions 8-10."""

    __slots__ = (
        "group_id",
        "topics",
        "error_code",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] = EMPTY,
        error_code: int = 0,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchResponseTopics] = [] if topics is EMPTY else topics
        self.error_code: int = error_code


class OffsetFetchResponsePartition(Message):
    """Part of OffsetFetchResponse, versions 1-7."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # versions 5-7
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code


class OffsetFetchResponseTopic(Message):
    """Part of OffsetFetchResponse, versions 1-7."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetFetchResponsePartition] = [] if partitions is EMPTY else partitions


class OffsetFetchResponse(Message):
    """Body of the response, versions 1-10."""

    __slots__ = (
        "throttle_time_ms",
        "groups",
        "topics",
        "error_code",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 3-10
        groups: list[OffsetFetchResponseGroup] = EMPTY,  # versions 8-10
        topics: list[OffsetFetchResponseTopic] = EMPTY,  # versions 1-7
        error_code: int = 0,  # versions 2-7
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[OffsetFetchResponseGroup] = [] if groups is EMPTY else groups
        self.topics: list[OffsetFetchResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code


def _decode_request_v1(view: bytes | memoryview) -> OffsetFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetFetchRequest.__new__(OffsetFetchRequest)
    m.groups = []
    m.require_stable = False
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
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
    items: list[OffsetFetchRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetFetchRequestTopic.__new__(OffsetFetchRequestTopic)
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
            raise null_error("partition_indexes")
        if n * 4 > end - p:
            raise count_error("partition_indexes", n)
        left -= n
        if left < 0:
            raise limit_error("partition_indexes")
        item.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        items.append(item)
    if p > end:
        raise end_error("OffsetFetchRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> OffsetFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetFetchRequest.__new__(OffsetFetchRequest)
    m.groups = []
    m.require_stable = False
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        m.topics = None
    else:
        if n * 6 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[OffsetFetchRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = OffsetFetchRequestTopic.__new__(OffsetFetchRequestTopic)
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
                raise null_error("partition_indexes")
            if n * 4 > end - p:
                raise count_error("partition_indexes", n)
            left -= n
            if left < 0:
                raise limit_error("partition_indexes")
            item.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items.append(item)
    if p > end:
        raise end_error("OffsetFetchRequest")
    return m


def _decode_request_v6(view: bytes | memoryview) -> OffsetFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetFetchRequest.__new__(OffsetFetchRequest)
    m.groups = []
    m.require_stable = False
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topics = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[OffsetFetchRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = OffsetFetchRequestTopic.__new__(OffsetFetchRequestTopic)
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
                raise null_error("partition_indexes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partition_indexes", n)
            left -= n
            if left < 0:
                raise limit_error("partition_indexes")
            item.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("OffsetFetchRequestTopic")
                p = skip_fields(data, p, n)
            items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("OffsetFetchRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetFetchRequest")
    return m


def _decode_request_v7(view: bytes | memoryview) -> OffsetFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetFetchRequest.__new__(OffsetFetchRequest)
    m.groups = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.topics = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        left -= n
        if left < 0:
            raise limit_error("topics")
        items: list[OffsetFetchRequestTopic] = []
        m.topics = items
        for _ in range(n):
            item = OffsetFetchRequestTopic.__new__(OffsetFetchRequestTopic)
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
                raise null_error("partition_indexes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partition_indexes", n)
            left -= n
            if left < 0:
                raise limit_error("partition_indexes")
            item.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("OffsetFetchRequestTopic")
                p = skip_fields(data, p, n)
            items.append(item)
    m.require_stable, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("OffsetFetchRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetFetchRequest")
    return m


def _decode_request_v8(view: bytes | memoryview) -> OffsetFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetFetchRequest.__new__(OffsetFetchRequest)
    m.group_id = ""
    m.topics = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 3 > end - p:
        raise count_error("groups", n)
    left -= n
    if left < 0:
        raise limit_error("groups")
    items: list[OffsetFetchRequestGroup] = []
    m.groups = items
    for _ in range(n):
        item = OffsetFetchRequestGroup.__new__(OffsetFetchRequestGroup)
        item.member_id = None
        item.member_epoch = -1
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.topics = None
        else:
            n -= 1
            if n * 3 > end - p:
                raise count_error("topics", n)
            left -= n
            if left < 0:
                raise limit_error("topics")
            items1: list[OffsetFetchRequestTopics] = []
            item.topics = items1
            for _ in range(n):
                item1 = OffsetFetchRequestTopics.__new__(OffsetFetchRequestTopics)
                item1.topic_id = NIL_UUID
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("name")
                e = p + n - 1
                item1.name = data[p:e].decode("utf-8", "replace")
                p = e
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("partition_indexes")
                n -= 1
                if n * 4 > end - p:
                    raise count_error("partition_indexes", n)
                left -= n
                if left < 0:
                    raise limit_error("partition_indexes")
                item1.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("OffsetFetchRequestTopics")
                    p = skip_fields(data, p, n)
                items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("OffsetFetchRequestGroup")
            p = skip_fields(data, p, n)
        items.append(item)
    m.require_stable, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("OffsetFetchRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetFetchRequest")
    return m


def _decode_request_v9(view: bytes | memoryview) -> OffsetFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetFetchRequest.__new__(OffsetFetchRequest)
    m.group_id = ""
    m.topics = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 8 > end - p:
        raise count_error("groups", n)
    left -= n
    if left < 0:
        raise limit_error("groups")
    items: list[OffsetFetchRequestGroup] = []
    m.groups = items
    for _ in range(n):
        item = OffsetFetchRequestGroup.__new__(OffsetFetchRequestGroup)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.member_id = None
        else:
            e = p + n - 1
            item.member_id = data[p:e].decode("utf-8", "replace")
            p = e
        item.member_epoch, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.topics = None
        else:
            n -= 1
            if n * 3 > end - p:
                raise count_error("topics", n)
            left -= n
            if left < 0:
                raise limit_error("topics")
            items1: list[OffsetFetchRequestTopics] = []
            item.topics = items1
            for _ in range(n):
                item1 = OffsetFetchRequestTopics.__new__(OffsetFetchRequestTopics)
                item1.topic_id = NIL_UUID
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("name")
                e = p + n - 1
                item1.name = data[p:e].decode("utf-8", "replace")
                p = e
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("partition_indexes")
                n -= 1
                if n * 4 > end - p:
                    raise count_error("partition_indexes", n)
                left -= n
                if left < 0:
                    raise limit_error("partition_indexes")
                item1.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("OffsetFetchRequestTopics")
                    p = skip_fields(data, p, n)
                items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("OffsetFetchRequestGroup")
            p = skip_fields(data, p, n)
        items.append(item)
    m.require_stable, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("OffsetFetchRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetFetchRequest")
    return m


def _decode_request_v10(view: bytes | memoryview) -> OffsetFetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = OffsetFetchRequest.__new__(OffsetFetchRequest)
    m.group_id = ""
    m.topics = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 8 > end - p:
        raise count_error("groups", n)
    left -= n
    if left < 0:
        raise limit_error("groups")
    items: list[OffsetFetchRequestGroup] = []
    m.groups = items
    for _ in range(n):
        item = OffsetFetchRequestGroup.__new__(OffsetFetchRequestGroup)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.member_id = None
        else:
            e = p + n - 1
            item.member_id = data[p:e].decode("utf-8", "replace")
            p = e
        item.member_epoch, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.topics = None
        else:
            n -= 1
            if n * 18 > end - p:
                raise count_error("topics", n)
            left -= n
            if left < 0:
                raise limit_error("topics")
            items1: list[OffsetFetchRequestTopics] = []
            item.topics = items1
            for _ in range(n):
                item1 = OffsetFetchRequestTopics.__new__(OffsetFetchRequestTopics)
                item1.name = ""
                u, n = _u_uB(data, p)
                p += 17
                item1.topic_id = uuid_from_bytes(u)
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("partition_indexes")
                n -= 1
                if n * 4 > end - p:
                    raise count_error("partition_indexes", n)
                left -= n
                if left < 0:
                    raise limit_error("partition_indexes")
                item1.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("OffsetFetchRequestTopics")
                    p = skip_fields(data, p, n)
                items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("OffsetFetchRequestGroup")
            p = skip_fields(data, p, n)
        items.append(item)
    m.require_stable, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("OffsetFetchRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetFetchRequest")
    return m


def _encode_request_v1(m: OffsetFetchRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    v1 = m.topics
    if v1 is None:
        raise ValueError("topics cannot be null in this version")
    items = v1
    out += _p_i(len(items))
    for item in items:
        b1 = item.name.encode()
        out += _p_h(len(b1))
        out += b1
        items1 = item.partition_indexes
        out += _p_i(len(items1))
        n = len(items1)
        out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
    return bytes(out)


def _encode_request_v2(m: OffsetFetchRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    out += _p_h(len(b))
    out += b
    items = m.topics
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            b1 = item.name.encode()
            out += _p_h(len(b1))
            out += b1
            items1 = item.partition_indexes
            out += _p_i(len(items1))
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
    return bytes(out)


def _encode_request_v6(m: OffsetFetchRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
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
            b1 = item.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items1 = item.partition_indexes
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
            out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v7(m: OffsetFetchRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
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
            b1 = item.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items1 = item.partition_indexes
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items1)
            out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
            out += b"\x00"
    out += _p_zx(m.require_stable)
    return bytes(out)


def _encode_request_v8(m: OffsetFetchRequest) -> bytes:
    out = bytearray()
    items = m.groups
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        if items1 is None:
            out += b"\x00"
        else:
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item1 in items1:
                b1 = item1.name.encode()
                n = len(b1) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b1
                items2 = item1.partition_indexes
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items2)
                out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
                out += b"\x00"
        out += b"\x00"
    out += _p_zx(m.require_stable)
    return bytes(out)


def _encode_request_v9(m: OffsetFetchRequest) -> bytes:
    out = bytearray()
    items = m.groups
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        v1 = item.member_id
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
        items1 = item.topics
        out += _p_i(item.member_epoch)
        if items1 is None:
            out += b"\x00"
        else:
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item1 in items1:
                b2 = item1.name.encode()
                n = len(b2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b2
                items2 = item1.partition_indexes
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items2)
                out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
                out += b"\x00"
        out += b"\x00"
    out += _p_zx(m.require_stable)
    return bytes(out)


def _encode_request_v10(m: OffsetFetchRequest) -> bytes:
    out = bytearray()
    items = m.groups
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        v1 = item.member_id
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
        items1 = item.topics
        out += _p_i(item.member_epoch)
        if items1 is None:
            out += b"\x00"
        else:
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item1 in items1:
                items2 = item1.partition_indexes
                out += _p_u(item1.topic_id.bytes)
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items2)
                out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
                out += b"\x00"
        out += b"\x00"
    out += _p_zx(m.require_stable)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], OffsetFetchRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v2,
    5: _decode_request_v2,
    6: _decode_request_v6,
    7: _decode_request_v7,
    8: _decode_request_v8,
    9: _decode_request_v9,
    10: _decode_request_v10,
}


_request_encoders: Final[dict[int, Callable[[OffsetFetchRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v2,
    5: _encode_request_v2,
    6: _encode_request_v6,
    7: _encode_request_v7,
    8: _encode_request_v8,
    9: _encode_request_v9,
    10: _encode_request_v10,
}


def decode_request(data: bytes | memoryview, version: int) -> OffsetFetchRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("OffsetFetchRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("OffsetFetchRequest", version) from None


def encode_request(message: OffsetFetchRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"OffsetFetchRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> OffsetFetchResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetFetchResponse.__new__(OffsetFetchResponse)
    m.throttle_time_ms = 0
    m.groups = []
    m.error_code = 0
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[OffsetFetchResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetFetchResponseTopic.__new__(OffsetFetchResponseTopic)
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
        items1: list[OffsetFetchResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetFetchResponsePartition.__new__(OffsetFetchResponsePartition)
            item1.committed_leader_epoch = -1
            item1.partition_index, item1.committed_offset, n = _u_iqh(data, p)
            p += 14
            if n < 0:
                item1.metadata = None
            else:
                e = p + n
                item1.metadata = data[p:e].decode("utf-8", "replace")
                p = e
            item1.error_code, = _u_h(data, p)
            p += 2
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("OffsetFetchResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> OffsetFetchResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetFetchResponse.__new__(OffsetFetchResponse)
    m.throttle_time_ms = 0
    m.groups = []
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[OffsetFetchResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetFetchResponseTopic.__new__(OffsetFetchResponseTopic)
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
        items1: list[OffsetFetchResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetFetchResponsePartition.__new__(OffsetFetchResponsePartition)
            item1.committed_leader_epoch = -1
            item1.partition_index, item1.committed_offset, n = _u_iqh(data, p)
            p += 14
            if n < 0:
                item1.metadata = None
            else:
                e = p + n
                item1.metadata = data[p:e].decode("utf-8", "replace")
                p = e
            item1.error_code, = _u_h(data, p)
            p += 2
            items1.append(item1)
        items.append(item)
    m.error_code, = _u_h(data, p)
    p += 2
    if p > end:
        raise end_error("OffsetFetchResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> OffsetFetchResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetFetchResponse.__new__(OffsetFetchResponse)
    m.groups = []
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[OffsetFetchResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetFetchResponseTopic.__new__(OffsetFetchResponseTopic)
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
        items1: list[OffsetFetchResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetFetchResponsePartition.__new__(OffsetFetchResponsePartition)
            item1.committed_leader_epoch = -1
            item1.partition_index, item1.committed_offset, n = _u_iqh(data, p)
            p += 14
            if n < 0:
                item1.metadata = None
            else:
                e = p + n
                item1.metadata = data[p:e].decode("utf-8", "replace")
                p = e
            item1.error_code, = _u_h(data, p)
            p += 2
            items1.append(item1)
        items.append(item)
    m.error_code, = _u_h(data, p)
    p += 2
    if p > end:
        raise end_error("OffsetFetchResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> OffsetFetchResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetFetchResponse.__new__(OffsetFetchResponse)
    m.groups = []
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[OffsetFetchResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetFetchResponseTopic.__new__(OffsetFetchResponseTopic)
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
        if n * 20 > end - p:
            raise count_error("partitions", n)
        items1: list[OffsetFetchResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetFetchResponsePartition.__new__(OffsetFetchResponsePartition)
            item1.partition_index, item1.committed_offset, item1.committed_leader_epoch, n = _u_iqih(data, p)
            p += 18
            if n < 0:
                item1.metadata = None
            else:
                e = p + n
                item1.metadata = data[p:e].decode("utf-8", "replace")
                p = e
            item1.error_code, = _u_h(data, p)
            p += 2
            items1.append(item1)
        items.append(item)
    m.error_code, = _u_h(data, p)
    p += 2
    if p > end:
        raise end_error("OffsetFetchResponse")
    return m


def _decode_response_v6(view: bytes | memoryview) -> OffsetFetchResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetFetchResponse.__new__(OffsetFetchResponse)
    m.groups = []
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[OffsetFetchResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = OffsetFetchResponseTopic.__new__(OffsetFetchResponseTopic)
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
        if n * 20 > end - p:
            raise count_error("partitions", n)
        items1: list[OffsetFetchResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = OffsetFetchResponsePartition.__new__(OffsetFetchResponsePartition)
            item1.partition_index, item1.committed_offset, item1.committed_leader_epoch, n = _u_iqiB(data, p)
            p += 17
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.metadata = None
            else:
                e = p + n - 1
                item1.metadata = data[p:e].decode("utf-8", "replace")
                p = e
            item1.error_code, n = _u_hB(data, p)
            p += 3
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
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("OffsetFetchResponse")
    return m


def _decode_response_v8(view: bytes | memoryview) -> OffsetFetchResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetFetchResponse.__new__(OffsetFetchResponse)
    m.topics = []
    m.error_code = 0
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 5 > end - p:
        raise count_error("groups", n)
    items: list[OffsetFetchResponseGroup] = []
    m.groups = items
    for _ in range(n):
        item = OffsetFetchResponseGroup.__new__(OffsetFetchResponseGroup)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
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
        items1: list[OffsetFetchResponseTopics] = []
        item.topics = items1
        for _ in range(n):
            item1 = OffsetFetchResponseTopics.__new__(OffsetFetchResponseTopics)
            item1.topic_id = NIL_UUID
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item1.name = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 20 > end - p:
                raise count_error("partitions", n)
            items2: list[OffsetFetchResponsePartitions] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = OffsetFetchResponsePartitions.__new__(OffsetFetchResponsePartitions)
                item2.partition_index, item2.committed_offset, item2.committed_leader_epoch, n = _u_iqiB(data, p)
                p += 17
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item2.metadata = None
                else:
                    e = p + n - 1
                    item2.metadata = data[p:e].decode("utf-8", "replace")
                    p = e
                item2.error_code, n = _u_hB(data, p)
                p += 3
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items1.append(item1)
        item.error_code, n = _u_hB(data, p)
        p += 3
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
        raise end_error("OffsetFetchResponse")
    return m


def _decode_response_v10(view: bytes | memoryview) -> OffsetFetchResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = OffsetFetchResponse.__new__(OffsetFetchResponse)
    m.topics = []
    m.error_code = 0
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 5 > end - p:
        raise count_error("groups", n)
    items: list[OffsetFetchResponseGroup] = []
    m.groups = items
    for _ in range(n):
        item = OffsetFetchResponseGroup.__new__(OffsetFetchResponseGroup)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("group_id")
        e = p + n - 1
        item.group_id = data[p:e].decode("utf-8", "replace")
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
        items1: list[OffsetFetchResponseTopics] = []
        item.topics = items1
        for _ in range(n):
            item1 = OffsetFetchResponseTopics.__new__(OffsetFetchResponseTopics)
            item1.name = ""
            u, n = _u_uB(data, p)
            p += 17
            item1.topic_id = uuid_from_bytes(u)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 20 > end - p:
                raise count_error("partitions", n)
            items2: list[OffsetFetchResponsePartitions] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = OffsetFetchResponsePartitions.__new__(OffsetFetchResponsePartitions)
                item2.partition_index, item2.committed_offset, item2.committed_leader_epoch, n = _u_iqiB(data, p)
                p += 17
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    item2.metadata = None
                else:
                    e = p + n - 1
                    item2.metadata = data[p:e].decode("utf-8", "replace")
                    p = e
                item2.error_code, n = _u_hB(data, p)
                p += 3
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items1.append(item1)
        item.error_code, n = _u_hB(data, p)
        p += 3
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
        raise end_error("OffsetFetchResponse")
    return m


def _encode_response_v1(m: OffsetFetchResponse) -> bytes:
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
            out += _p_iq(item1.partition_index, item1.committed_offset)
            v1 = item1.metadata
            if v1 is None:
                out += b"\xff\xff"
            else:
                b1 = v1.encode()
                out += _p_h(len(b1))
                out += b1
            out += _p_h(item1.error_code)
    return bytes(out)


def _encode_response_v2(m: OffsetFetchResponse) -> bytes:
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
            out += _p_iq(item1.partition_index, item1.committed_offset)
            v1 = item1.metadata
            if v1 is None:
                out += b"\xff\xff"
            else:
                b1 = v1.encode()
                out += _p_h(len(b1))
                out += b1
            out += _p_h(item1.error_code)
    out += _p_h(m.error_code)
    return bytes(out)


def _encode_response_v3(m: OffsetFetchResponse) -> bytes:
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
            out += _p_iq(item1.partition_index, item1.committed_offset)
            v1 = item1.metadata
            if v1 is None:
                out += b"\xff\xff"
            else:
                b1 = v1.encode()
                out += _p_h(len(b1))
                out += b1
            out += _p_h(item1.error_code)
    out += _p_h(m.error_code)
    return bytes(out)


def _encode_response_v5(m: OffsetFetchResponse) -> bytes:
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
            out += _p_iqi(item1.partition_index, item1.committed_offset, item1.committed_leader_epoch)
            v1 = item1.metadata
            if v1 is None:
                out += b"\xff\xff"
            else:
                b1 = v1.encode()
                out += _p_h(len(b1))
                out += b1
            out += _p_h(item1.error_code)
    out += _p_h(m.error_code)
    return bytes(out)


def _encode_response_v6(m: OffsetFetchResponse) -> bytes:
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
            out += _p_iqi(item1.partition_index, item1.committed_offset, item1.committed_leader_epoch)
            v1 = item1.metadata
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
            out += _p_hx(item1.error_code)
        out += b"\x00"
    out += _p_hx(m.error_code)
    return bytes(out)


def _encode_response_v8(m: OffsetFetchResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b1 = item1.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items2 = item1.partitions
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqi(item2.partition_index, item2.committed_offset, item2.committed_leader_epoch)
                v2 = item2.metadata
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
                out += _p_hx(item2.error_code)
            out += b"\x00"
        out += _p_hx(item.error_code)
    out += b"\x00"
    return bytes(out)


def _encode_response_v10(m: OffsetFetchResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.group_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.partitions
            out += _p_u(item1.topic_id.bytes)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqi(item2.partition_index, item2.committed_offset, item2.committed_leader_epoch)
                v1 = item2.metadata
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
                out += _p_hx(item2.error_code)
            out += b"\x00"
        out += _p_hx(item.error_code)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], OffsetFetchResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v5,
    6: _decode_response_v6,
    7: _decode_response_v6,
    8: _decode_response_v8,
    9: _decode_response_v8,
    10: _decode_response_v10,
}


_response_encoders: Final[dict[int, Callable[[OffsetFetchResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v5,
    6: _encode_response_v6,
    7: _encode_response_v6,
    8: _encode_response_v8,
    9: _encode_response_v8,
    10: _encode_response_v10,
}


def decode_response(data: bytes | memoryview, version: int) -> OffsetFetchResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("OffsetFetchResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("OffsetFetchResponse", version) from None


def encode_response(message: OffsetFetchResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"OffsetFetchResponse has no version {version} here")
    return encode(message)
