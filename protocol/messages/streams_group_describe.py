"""StreamsGroupDescribe, API key 89, versions 0 alone, flexible from 0.

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

API_KEY: Final = 89
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hx: Final = _Struct(">Hx").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ii: Final = _Struct(">ii").pack
_p_iqx: Final = _Struct(">iqx").pack
_p_ix: Final = _Struct(">ix").pack
_p_xzx: Final = _Struct(">x?x").pack
_p_zx: Final = _Struct(">?x").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_b: Final = _Struct(">b").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iib: Final = _Struct(">iib").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class StreamsGroupDescribeRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations: bool = include_authorized_operations


class KeyValue(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "key",
        "value",
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key: str = key
        self.value: str = value


class TopicInfo(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "name",
        "partitions",
        "replication_factor",
        "topic_configs",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: int = partitions
        self.replication_factor: int = replication_factor
        self.topic_configs: list[KeyValue] = [] if topic_configs is EMPTY else topic_configs


class Subtopology(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is EMPTY else source_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_source_topics: list[TopicInfo] = [] if repartition_source_topics is EMPTY else repartition_source_topics


class Topology(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "epoch",
        "subtopologies",
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = EMPTY,
    ) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[Subtopology] | None = [] if subtopologies is EMPTY else subtopologies


class Endpoint(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "host",
        "port",
    )

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host: str = host
        self.port: int = port


class TaskOffset(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "subtopology_id",
        "partition",
        "offset",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partition: int = partition
        self.offset: int = offset


class TaskIds(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "subtopology_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class Assignment(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
    )

    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] = EMPTY,
        standby_tasks: list[TaskIds] = EMPTY,
        warmup_tasks: list[TaskIds] = EMPTY,
    ) -> None:
        self.active_tasks: list[TaskIds] = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks: list[TaskIds] = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks: list[TaskIds] = [] if warmup_tasks is EMPTY else warmup_tasks


class Member(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = EMPTY,
        task_offsets: list[TaskOffset] = EMPTY,
        task_end_offsets: list[TaskOffset] = EMPTY,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
    ) -> None:
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.topology_epoch: int = topology_epoch
        self.process_id: str = process_id
        self.user_endpoint: Endpoint | None = user_endpoint
        self.client_tags: list[KeyValue] = [] if client_tags is EMPTY else client_tags
        self.task_offsets: list[TaskOffset] = [] if task_offsets is EMPTY else task_offsets
        self.task_end_offsets: list[TaskOffset] = [] if task_end_offsets is EMPTY else task_end_offsets
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        self.target_assignment: Assignment = Assignment() if target_assignment is None else target_assignment
        self.is_classic: bool = is_classic


class DescribedGroup(Message):
    """Part of StreamsGroupDescribeResponse, versions 0."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.topology: Topology | None = topology
        self.members: list[Member] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations


class StreamsGroupDescribeResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "groups",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is EMPTY else groups


def _decode_request_v0(view: bytes | memoryview) -> StreamsGroupDescribeRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = StreamsGroupDescribeRequest.__new__(StreamsGroupDescribeRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_ids")
    n -= 1
    if n > end - p:
        raise count_error("group_ids", n)
    left -= n
    if left < 0:
        raise limit_error("group_ids")
    items: list[str] = []
    m.group_ids = items
    for _ in range(n):
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("item")
        e = p + n - 1
        item = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    m.include_authorized_operations, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("StreamsGroupDescribeRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("StreamsGroupDescribeRequest")
    return m


def _encode_request_v0(m: StreamsGroupDescribeRequest) -> bytes:
    out = bytearray()
    items = m.group_ids
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
    out += _p_zx(m.include_authorized_operations)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], StreamsGroupDescribeRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[StreamsGroupDescribeRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> StreamsGroupDescribeRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("StreamsGroupDescribeRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("StreamsGroupDescribeRequest", version) from None


def encode_request(message: StreamsGroupDescribeRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"StreamsGroupDescribeRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> StreamsGroupDescribeResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = StreamsGroupDescribeResponse.__new__(StreamsGroupDescribeResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("groups")
    n -= 1
    if n * 20 > end - p:
        raise count_error("groups", n)
    items: list[DescribedGroup] = []
    m.groups = items
    for _ in range(n):
        item = DescribedGroup.__new__(DescribedGroup)
        item.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.error_message = None
        else:
            e = p + n - 1
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
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
            raise null_error("group_state")
        e = p + n - 1
        item.group_state = data[p:e].decode("utf-8", "replace")
        p = e
        item.group_epoch, item.assignment_epoch, n = _u_iib(data, p)
        p += 9
        if n < 0:
            item.topology = None
        else:
            s = Topology.__new__(Topology)
            s.epoch, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                s.subtopologies = None
            else:
                n -= 1
                if n * 6 > end - p:
                    raise count_error("subtopologies", n)
                items1: list[Subtopology] = []
                s.subtopologies = items1
                for _ in range(n):
                    item1 = Subtopology.__new__(Subtopology)
                    n = data[p]
                    p += 1
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("subtopology_id")
                    e = p + n - 1
                    item1.subtopology_id = data[p:e].decode("utf-8", "replace")
                    p = e
                    n = data[p]
                    p += 1
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("source_topics")
                    n -= 1
                    if n > end - p:
                        raise count_error("source_topics", n)
                    items2: list[str] = []
                    item1.source_topics = items2
                    for _ in range(n):
                        n = data[p]
                        p += 1
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        if n == 0:
                            raise null_error("item2")
                        e = p + n - 1
                        item2 = data[p:e].decode("utf-8", "replace")
                        p = e
                        items2.append(item2)
                    n = data[p]
                    p += 1
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("repartition_sink_topics")
                    n -= 1
                    if n > end - p:
                        raise count_error("repartition_sink_topics", n)
                    items3: list[str] = []
                    item1.repartition_sink_topics = items3
                    for _ in range(n):
                        n = data[p]
                        p += 1
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        if n == 0:
                            raise null_error("item3")
                        e = p + n - 1
                        item3 = data[p:e].decode("utf-8", "replace")
                        p = e
                        items3.append(item3)
                    n = data[p]
                    p += 1
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("state_changelog_topics")
                    n -= 1
                    if n * 9 > end - p:
                        raise count_error("state_changelog_topics", n)
                    items4: list[TopicInfo] = []
                    item1.state_changelog_topics = items4
                    for _ in range(n):
                        item4 = TopicInfo.__new__(TopicInfo)
                        n = data[p]
                        p += 1
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        if n == 0:
                            raise null_error("name")
                        e = p + n - 1
                        item4.name = data[p:e].decode("utf-8", "replace")
                        p = e
                        item4.partitions, item4.replication_factor, n = _u_ihB(data, p)
                        p += 7
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        if n == 0:
                            raise null_error("topic_configs")
                        n -= 1
                        if n * 3 > end - p:
                            raise count_error("topic_configs", n)
                        items5: list[KeyValue] = []
                        item4.topic_configs = items5
                        for _ in range(n):
                            item5 = KeyValue.__new__(KeyValue)
                            n = data[p]
                            p += 1
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            if n == 0:
                                raise null_error("key")
                            e = p + n - 1
                            item5.key = data[p:e].decode("utf-8", "replace")
                            p = e
                            n = data[p]
                            p += 1
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            if n == 0:
                                raise null_error("value")
                            e = p + n - 1
                            item5.value = data[p:e].decode("utf-8", "replace")
                            p = e
                            n = data[p]
                            p += 1
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
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("repartition_source_topics")
                    n -= 1
                    if n * 9 > end - p:
                        raise count_error("repartition_source_topics", n)
                    items6: list[TopicInfo] = []
                    item1.repartition_source_topics = items6
                    for _ in range(n):
                        item6 = TopicInfo.__new__(TopicInfo)
                        n = data[p]
                        p += 1
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        if n == 0:
                            raise null_error("name")
                        e = p + n - 1
                        item6.name = data[p:e].decode("utf-8", "replace")
                        p = e
                        item6.partitions, item6.replication_factor, n = _u_ihB(data, p)
                        p += 7
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        if n == 0:
                            raise null_error("topic_configs")
                        n -= 1
                        if n * 3 > end - p:
                            raise count_error("topic_configs", n)
                        items7: list[KeyValue] = []
                        item6.topic_configs = items7
                        for _ in range(n):
                            item7 = KeyValue.__new__(KeyValue)
                            n = data[p]
                            p += 1
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            if n == 0:
                                raise null_error("key")
                            e = p + n - 1
                            item7.key = data[p:e].decode("utf-8", "replace")
                            p = e
                            n = data[p]
                            p += 1
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            if n == 0:
                                raise null_error("value")
                            e = p + n - 1
                            item7.value = data[p:e].decode("utf-8", "replace")
                            p = e
                            n = data[p]
                            p += 1
                            if n:
                                if n > 127:
                                    n, p = decode_unsigned_varint(data, p - 1)
                                p = skip_fields(data, p, n)
                            items7.append(item7)
                        n = data[p]
                        p += 1
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        items6.append(item6)
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
            item.topology = s
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("members")
        n -= 1
        if n * 28 > end - p:
            raise count_error("members", n)
        items8: list[Member] = []
        item.members = items8
        for _ in range(n):
            item8 = Member.__new__(Member)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("member_id")
            e = p + n - 1
            item8.member_id = data[p:e].decode("utf-8", "replace")
            p = e
            item8.member_epoch, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item8.instance_id = None
            else:
                e = p + n - 1
                item8.instance_id = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item8.rack_id = None
            else:
                e = p + n - 1
                item8.rack_id = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("client_id")
            e = p + n - 1
            item8.client_id = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("client_host")
            e = p + n - 1
            item8.client_host = data[p:e].decode("utf-8", "replace")
            p = e
            item8.topology_epoch, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("process_id")
            e = p + n - 1
            item8.process_id = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_b(data, p)
            p += 1
            if n < 0:
                item8.user_endpoint = None
            else:
                s1 = Endpoint.__new__(Endpoint)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("host")
                e = p + n - 1
                s1.host = data[p:e].decode("utf-8", "replace")
                p = e
                s1.port, n = _u_HB(data, p)
                p += 3
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                item8.user_endpoint = s1
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("client_tags")
            n -= 1
            if n * 3 > end - p:
                raise count_error("client_tags", n)
            items9: list[KeyValue] = []
            item8.client_tags = items9
            for _ in range(n):
                item9 = KeyValue.__new__(KeyValue)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("key")
                e = p + n - 1
                item9.key = data[p:e].decode("utf-8", "replace")
                p = e
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("value")
                e = p + n - 1
                item9.value = data[p:e].decode("utf-8", "replace")
                p = e
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items9.append(item9)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("task_offsets")
            n -= 1
            if n * 14 > end - p:
                raise count_error("task_offsets", n)
            items10: list[TaskOffset] = []
            item8.task_offsets = items10
            for _ in range(n):
                item10 = TaskOffset.__new__(TaskOffset)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("subtopology_id")
                e = p + n - 1
                item10.subtopology_id = data[p:e].decode("utf-8", "replace")
                p = e
                item10.partition, item10.offset, n = _u_iqB(data, p)
                p += 13
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items10.append(item10)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("task_end_offsets")
            n -= 1
            if n * 14 > end - p:
                raise count_error("task_end_offsets", n)
            items11: list[TaskOffset] = []
            item8.task_end_offsets = items11
            for _ in range(n):
                item11 = TaskOffset.__new__(TaskOffset)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("subtopology_id")
                e = p + n - 1
                item11.subtopology_id = data[p:e].decode("utf-8", "replace")
                p = e
                item11.partition, item11.offset, n = _u_iqB(data, p)
                p += 13
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items11.append(item11)
            s2 = Assignment.__new__(Assignment)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("active_tasks")
            n -= 1
            if n * 3 > end - p:
                raise count_error("active_tasks", n)
            items12: list[TaskIds] = []
            s2.active_tasks = items12
            for _ in range(n):
                item12 = TaskIds.__new__(TaskIds)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("subtopology_id")
                e = p + n - 1
                item12.subtopology_id = data[p:e].decode("utf-8", "replace")
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
                item12.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items12.append(item12)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("standby_tasks")
            n -= 1
            if n * 3 > end - p:
                raise count_error("standby_tasks", n)
            items13: list[TaskIds] = []
            s2.standby_tasks = items13
            for _ in range(n):
                item13 = TaskIds.__new__(TaskIds)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("subtopology_id")
                e = p + n - 1
                item13.subtopology_id = data[p:e].decode("utf-8", "replace")
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
                item13.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items13.append(item13)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("warmup_tasks")
            n -= 1
            if n * 3 > end - p:
                raise count_error("warmup_tasks", n)
            items14: list[TaskIds] = []
            s2.warmup_tasks = items14
            for _ in range(n):
                item14 = TaskIds.__new__(TaskIds)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("subtopology_id")
                e = p + n - 1
                item14.subtopology_id = data[p:e].decode("utf-8", "replace")
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
                item14.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items14.append(item14)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item8.assignment = s2
            s3 = Assignment.__new__(Assignment)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("active_tasks")
            n -= 1
            if n * 3 > end - p:
                raise count_error("active_tasks", n)
            items15: list[TaskIds] = []
            s3.active_tasks = items15
            for _ in range(n):
                item15 = TaskIds.__new__(TaskIds)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("subtopology_id")
                e = p + n - 1
                item15.subtopology_id = data[p:e].decode("utf-8", "replace")
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
                item15.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items15.append(item15)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("standby_tasks")
            n -= 1
            if n * 3 > end - p:
                raise count_error("standby_tasks", n)
            items16: list[TaskIds] = []
            s3.standby_tasks = items16
            for _ in range(n):
                item16 = TaskIds.__new__(TaskIds)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("subtopology_id")
                e = p + n - 1
                item16.subtopology_id = data[p:e].decode("utf-8", "replace")
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
                item16.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items16.append(item16)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("warmup_tasks")
            n -= 1
            if n * 3 > end - p:
                raise count_error("warmup_tasks", n)
            items17: list[TaskIds] = []
            s3.warmup_tasks = items17
            for _ in range(n):
                item17 = TaskIds.__new__(TaskIds)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("subtopology_id")
                e = p + n - 1
                item17.subtopology_id = data[p:e].decode("utf-8", "replace")
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
                item17.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items17.append(item17)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item8.target_assignment = s3
            item8.is_classic, n = _u_zB(data, p)
            p += 2
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items8.append(item8)
        item.authorized_operations, n = _u_iB(data, p)
        p += 5
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
        raise end_error("StreamsGroupDescribeResponse")
    return m


def _encode_response_v0(m: StreamsGroupDescribeResponse) -> bytes:
    out = bytearray()
    items = m.groups
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        out += _p_h(item.error_code)
        v = item.error_message
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
        b1 = item.group_id.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        b2 = item.group_state.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        s = item.topology
        out += _p_ii(item.group_epoch, item.assignment_epoch)
        if s is None:
            out += b"\xff"
        else:
            out += b"\x01"
            items1 = s.subtopologies
            out += _p_i(s.epoch)
            if items1 is None:
                out += b"\x00"
            else:
                n = len(items1) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                for item1 in items1:
                    b3 = item1.subtopology_id.encode()
                    n = len(b3) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    out += b3
                    items2 = item1.source_topics
                    n = len(items2) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    for item2 in items2:
                        b4 = item2.encode()
                        n = len(b4) + 1
                        if n < 128:
                            out.append(n)
                        else:
                            out += encode_unsigned_varint(n)
                        out += b4
                    items3 = item1.repartition_sink_topics
                    n = len(items3) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    for item3 in items3:
                        b5 = item3.encode()
                        n = len(b5) + 1
                        if n < 128:
                            out.append(n)
                        else:
                            out += encode_unsigned_varint(n)
                        out += b5
                    items4 = item1.state_changelog_topics
                    n = len(items4) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    for item4 in items4:
                        b6 = item4.name.encode()
                        n = len(b6) + 1
                        if n < 128:
                            out.append(n)
                        else:
                            out += encode_unsigned_varint(n)
                        out += b6
                        items5 = item4.topic_configs
                        out += _p_ih(item4.partitions, item4.replication_factor)
                        n = len(items5) + 1
                        if n < 128:
                            out.append(n)
                        else:
                            out += encode_unsigned_varint(n)
                        for item5 in items5:
                            b7 = item5.key.encode()
                            n = len(b7) + 1
                            if n < 128:
                                out.append(n)
                            else:
                                out += encode_unsigned_varint(n)
                            out += b7
                            b8 = item5.value.encode()
                            n = len(b8) + 1
                            if n < 128:
                                out.append(n)
                            else:
                                out += encode_unsigned_varint(n)
                            out += b8
                            out += b"\x00"
                        out += b"\x00"
                    items6 = item1.repartition_source_topics
                    n = len(items6) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    for item6 in items6:
                        b9 = item6.name.encode()
                        n = len(b9) + 1
                        if n < 128:
                            out.append(n)
                        else:
                            out += encode_unsigned_varint(n)
                        out += b9
                        items7 = item6.topic_configs
                        out += _p_ih(item6.partitions, item6.replication_factor)
                        n = len(items7) + 1
                        if n < 128:
                            out.append(n)
                        else:
                            out += encode_unsigned_varint(n)
                        for item7 in items7:
                            b10 = item7.key.encode()
                            n = len(b10) + 1
                            if n < 128:
                                out.append(n)
                            else:
                                out += encode_unsigned_varint(n)
                            out += b10
                            b11 = item7.value.encode()
                            n = len(b11) + 1
                            if n < 128:
                                out.append(n)
                            else:
                                out += encode_unsigned_varint(n)
                            out += b11
                            out += b"\x00"
                        out += b"\x00"
                    out += b"\x00"
            out += b"\x00"
        items8 = item.members
        n = len(items8) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item8 in items8:
            b12 = item8.member_id.encode()
            n = len(b12) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b12
            out += _p_i(item8.member_epoch)
            v13 = item8.instance_id
            if v13 is None:
                out += b"\x00"
            else:
                b13 = v13.encode()
                n = len(b13) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b13
            v14 = item8.rack_id
            if v14 is None:
                out += b"\x00"
            else:
                b14 = v14.encode()
                n = len(b14) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b14
            b15 = item8.client_id.encode()
            n = len(b15) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b15
            b16 = item8.client_host.encode()
            n = len(b16) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b16
            b17 = item8.process_id.encode()
            out += _p_i(item8.topology_epoch)
            n = len(b17) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b17
            s1 = item8.user_endpoint
            if s1 is None:
                out += b"\xff"
            else:
                out += b"\x01"
                b18 = s1.host.encode()
                n = len(b18) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b18
                out += _p_Hx(s1.port)
            items9 = item8.client_tags
            n = len(items9) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item9 in items9:
                b19 = item9.key.encode()
                n = len(b19) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b19
                b20 = item9.value.encode()
                n = len(b20) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b20
                out += b"\x00"
            items10 = item8.task_offsets
            n = len(items10) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item10 in items10:
                b21 = item10.subtopology_id.encode()
                n = len(b21) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b21
                out += _p_iqx(item10.partition, item10.offset)
            items11 = item8.task_end_offsets
            n = len(items11) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item11 in items11:
                b22 = item11.subtopology_id.encode()
                n = len(b22) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b22
                out += _p_iqx(item11.partition, item11.offset)
            s2 = item8.assignment
            items12 = s2.active_tasks
            n = len(items12) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item12 in items12:
                b23 = item12.subtopology_id.encode()
                n = len(b23) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b23
                items13 = item12.partitions
                n = len(items13) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items13)
                out += PACK_INT32[n](*items13) if n < SMALL else pack(f">{n}i", *items13)
                out += b"\x00"
            items14 = s2.standby_tasks
            n = len(items14) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item13 in items14:
                b24 = item13.subtopology_id.encode()
                n = len(b24) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b24
                items15 = item13.partitions
                n = len(items15) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items15)
                out += PACK_INT32[n](*items15) if n < SMALL else pack(f">{n}i", *items15)
                out += b"\x00"
            items16 = s2.warmup_tasks
            n = len(items16) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item14 in items16:
                b25 = item14.subtopology_id.encode()
                n = len(b25) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b25
                items17 = item14.partitions
                n = len(items17) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items17)
                out += PACK_INT32[n](*items17) if n < SMALL else pack(f">{n}i", *items17)
                out += b"\x00"
            s3 = item8.target_assignment
            items18 = s3.active_tasks
            out += b"\x00"
            n = len(items18) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item15 in items18:
                b26 = item15.subtopology_id.encode()
                n = len(b26) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b26
                items19 = item15.partitions
                n = len(items19) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items19)
                out += PACK_INT32[n](*items19) if n < SMALL else pack(f">{n}i", *items19)
                out += b"\x00"
            items20 = s3.standby_tasks
            n = len(items20) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item16 in items20:
                b27 = item16.subtopology_id.encode()
                n = len(b27) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b27
                items21 = item16.partitions
                n = len(items21) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items21)
                out += PACK_INT32[n](*items21) if n < SMALL else pack(f">{n}i", *items21)
                out += b"\x00"
            items22 = s3.warmup_tasks
            n = len(items22) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item17 in items22:
                b28 = item17.subtopology_id.encode()
                n = len(b28) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b28
                items23 = item17.partitions
                n = len(items23) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items23)
                out += PACK_INT32[n](*items23) if n < SMALL else pack(f">{n}i", *items23)
                out += b"\x00"
            out += _p_xzx(item8.is_classic)
        out += _p_ix(item.authorized_operations)
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], StreamsGroupDescribeResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[StreamsGroupDescribeResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> StreamsGroupDescribeResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("StreamsGroupDescribeResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("StreamsGroupDescribeResponse", version) from None


def encode_response(message: StreamsGroupDescribeResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"StreamsGroupDescribeResponse has no version {version} here")
    return encode(message)
