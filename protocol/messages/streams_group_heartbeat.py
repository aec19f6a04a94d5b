"""StreamsGroupHeartbeat, API key 88, versions 0 alone, flexible from 0.

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

API_KEY: Final = 88
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hx: Final = _Struct(">Hx").pack
_p_b: Final = _Struct(">b").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ii: Final = _Struct(">ii").pack
_p_iiii: Final = _Struct(">iiii").pack
_p_iqx: Final = _Struct(">iqx").pack
_p_zx: Final = _Struct(">?x").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_b: Final = _Struct(">b").unpack_from
_u_bB: Final = _Struct(">bB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ib: Final = _Struct(">ib").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_iiiiB: Final = _Struct(">iiiiB").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class KeyValue(Message):
    """Part of StreamsGroupHeartbeatRequest, versions 0."""

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
    """Part of StreamsGroupHeartbeatRequest, versions 0."""

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


class CopartitionGroup(Message):
    """Part of StreamsGroupHeartbeatRequest, versions 0."""

    __slots__ = (
        "source_topics",
        "source_topic_regex",
        "repartition_source_topics",
    )

    def __init__(
        self,
        *,
        source_topics: list[int] = EMPTY,
        source_topic_regex: list[int] = EMPTY,
        repartition_source_topics: list[int] = EMPTY,
    ) -> None:
        self.source_topics: list[int] = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex: list[int] = [] if source_topic_regex is EMPTY else source_topic_regex
        self.repartition_source_topics: list[int] = [] if repartition_source_topics is EMPTY else repartition_source_topics


class Subtopology(Message):
    """Part of StreamsGroupHeartbeatRequest, versions 0."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        source_topic_regex: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY,
        copartition_groups: list[CopartitionGroup] = EMPTY,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex: list[str] = [] if source_topic_regex is EMPTY else source_topic_regex
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.repartition_source_topics: list[TopicInfo] = [] if repartition_source_topics is EMPTY else repartition_source_topics
        self.copartition_groups: list[CopartitionGroup] = [] if copartition_groups is EMPTY else copartition_groups


class Topology(Message):
    """Part of StreamsGroupHeartbeatRequest, versions 0."""

    __slots__ = (
        "epoch",
        "subtopologies",
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] = EMPTY,
    ) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[Subtopology] = [] if subtopologies is EMPTY else subtopologies


class StreamsGroupHeartbeatRequestTaskIds(Message):
    """Part of StreamsGroupHeartbeatRequest, versions 0."""

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


class StreamsGroupHeartbeatRequestEndpoint(Message):
    """Part of StreamsGroupHeartbeatRequest, versions 0."""

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
    """Part of StreamsGroupHeartbeatRequest, versions 0."""

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


class StreamsGroupHeartbeatRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = EMPTY,
        standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = EMPTY,
        warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = EMPTY,
        process_id: str | None = None,
        user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None,
        client_tags: list[KeyValue] | None = EMPTY,
        task_offsets: list[TaskOffset] | None = EMPTY,
        task_end_offsets: list[TaskOffset] | None = EMPTY,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.topology: Topology | None = topology
        self.active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = [] if warmup_tasks is EMPTY else warmup_tasks
        self.process_id: str | None = process_id
        self.user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = user_endpoint
        self.client_tags: list[KeyValue] | None = [] if client_tags is EMPTY else client_tags
        self.task_offsets: list[TaskOffset] | None = [] if task_offsets is EMPTY else task_offsets
        self.task_end_offsets: list[TaskOffset] | None = [] if task_end_offsets is EMPTY else task_end_offsets
        self.shutdown_application: bool = shutdown_application


class Status(Message):
    """Part of StreamsGroupHeartbeatResponse, versions 0."""

    __slots__ = (
        "status_code",
        "status_detail",
    )

    def __init__(
        self,
        *,
        status_code: int = 0,
        status_detail: str = "",
    ) -> None:
        self.status_code: int = status_code
        self.status_detail: str = status_detail


class StreamsGroupHeartbeatResponseTaskIds(Message):
    """Part of StreamsGroupHeartbeatResponse, versions 0."""

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


class StreamsGroupHeartbeatResponseEndpoint(Message):
    """Part of StreamsGroupHeartbeatResponse, versions 0."""

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


class TopicPartition(Message):
    """Part of StreamsGroupHeartbeatResponse, versions 0."""

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


class EndpointToPartitions(Message):
    """Part of StreamsGroupHeartbeatResponse, versions 0."""

    __slots__ = (
        "user_endpoint",
        "active_partitions",
        "standby_partitions",
    )

    def __init__(
        self,
        *,
        user_endpoint: StreamsGroupHeartbeatResponseEndpoint | None = None,
        active_partitions: list[TopicPartition] = EMPTY,
        standby_partitions: list[TopicPartition] = EMPTY,
    ) -> None:
        self.user_endpoint: StreamsGroupHeartbeatResponseEndpoint = StreamsGroupHeartbeatResponseEndpoint() if user_endpoint is None else user_endpoint
        self.active_partitions: list[TopicPartition] = [] if active_partitions is EMPTY else active_partitions
        self.standby_partitions: list[TopicPartition] = [] if standby_partitions is EMPTY else standby_partitions


class StreamsGroupHeartbeatResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag",
        "task_offset_interval_ms",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = EMPTY,
        active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = EMPTY,
        standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = EMPTY,
        warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = EMPTY,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.acceptable_recovery_lag: int = acceptable_recovery_lag
        self.task_offset_interval_ms: int = task_offset_interval_ms
        self.status: list[Status] | None = [] if status is EMPTY else status
        self.active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = [] if warmup_tasks is EMPTY else warmup_tasks
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.partitions_by_user_endpoint: list[EndpointToPartitions] | None = [] if partitions_by_user_endpoint is EMPTY else partitions_by_user_endpoint


def _decode_request_v0(view: bytes | memoryview) -> StreamsGroupHeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = StreamsGroupHeartbeatRequest.__new__(StreamsGroupHeartbeatRequest)
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
        raise null_error("member_id")
    e = p + n - 1
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.member_epoch, m.endpoint_information_epoch, n = _u_iiB(data, p)
    p += 9
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.instance_id = None
    else:
        e = p + n - 1
        m.instance_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.rack_id = None
    else:
        e = p + n - 1
        m.rack_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.rebalance_timeout_ms, n = _u_ib(data, p)
    p += 5
    if n < 0:
        m.topology = None
    else:
        s = Topology.__new__(Topology)
        s.epoch, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("subtopologies")
        n -= 1
        if n * 8 > end - p:
            raise count_error("subtopologies", n)
        left -= n
        if left < 0:
            raise limit_error("subtopologies")
        items: list[Subtopology] = []
        s.subtopologies = items
        for _ in range(n):
            item = Subtopology.__new__(Subtopology)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("subtopology_id")
            e = p + n - 1
            item.subtopology_id = data[p:e].decode("utf-8", "replace")
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
            left -= n
            if left < 0:
                raise limit_error("source_topics")
            items1: list[str] = []
            item.source_topics = items1
            for _ in range(n):
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("item1")
                e = p + n - 1
                item1 = data[p:e].decode("utf-8", "replace")
                p = e
                items1.append(item1)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("source_topic_regex")
            n -= 1
            if n > end - p:
                raise count_error("source_topic_regex", n)
            left -= n
            if left < 0:
                raise limit_error("source_topic_regex")
            items2: list[str] = []
            item.source_topic_regex = items2
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
                raise null_error("state_changelog_topics")
            n -= 1
            if n * 9 > end - p:
                raise count_error("state_changelog_topics", n)
            left -= n
            if left < 0:
                raise limit_error("state_changelog_topics")
            items3: list[TopicInfo] = []
            item.state_changelog_topics = items3
            for _ in range(n):
                item3 = TopicInfo.__new__(TopicInfo)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("name")
                e = p + n - 1
                item3.name = data[p:e].decode("utf-8", "replace")
                p = e
                item3.partitions, item3.replication_factor, n = _u_ihB(data, p)
                p += 7
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("topic_configs")
                n -= 1
                if n * 3 > end - p:
                    raise count_error("topic_configs", n)
                left -= n
                if left < 0:
                    raise limit_error("topic_configs")
                items4: list[KeyValue] = []
                item3.topic_configs = items4
                for _ in range(n):
                    item4 = KeyValue.__new__(KeyValue)
                    n = data[p]
                    p += 1
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("key")
                    e = p + n - 1
                    item4.key = data[p:e].decode("utf-8", "replace")
                    p = e
                    n = data[p]
                    p += 1
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("value")
                    e = p + n - 1
                    item4.value = data[p:e].decode("utf-8", "replace")
                    p = e
                    n = data[p]
                    p += 1
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        left -= n
                        if left < 0:
                            raise limit_error("KeyValue")
                        p = skip_fields(data, p, n)
                    items4.append(item4)
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("TopicInfo")
                    p = skip_fields(data, p, n)
                items3.append(item3)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("repartition_sink_topics")
            n -= 1
            if n > end - p:
                raise count_error("repartition_sink_topics", n)
            left -= n
            if left < 0:
                raise limit_error("repartition_sink_topics")
            items5: list[str] = []
            item.repartition_sink_topics = items5
            for _ in range(n):
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("item5")
                e = p + n - 1
                item5 = data[p:e].decode("utf-8", "replace")
                p = e
                items5.append(item5)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("repartition_source_topics")
            n -= 1
            if n * 9 > end - p:
                raise count_error("repartition_source_topics", n)
            left -= n
            if left < 0:
                raise limit_error("repartition_source_topics")
            items6: list[TopicInfo] = []
            item.repartition_source_topics = items6
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
                left -= n
                if left < 0:
                    raise limit_error("topic_configs")
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
                        left -= n
                        if left < 0:
                            raise limit_error("KeyValue")
                        p = skip_fields(data, p, n)
                    items7.append(item7)
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("TopicInfo")
                    p = skip_fields(data, p, n)
                items6.append(item6)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("copartition_groups")
            n -= 1
            if n * 4 > end - p:
                raise count_error("copartition_groups", n)
            left -= n
            if left < 0:
                raise limit_error("copartition_groups")
            items8: list[CopartitionGroup] = []
            item.copartition_groups = items8
            for _ in range(n):
                item8 = CopartitionGroup.__new__(CopartitionGroup)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("source_topics")
                n -= 1
                if n * 2 > end - p:
                    raise count_error("source_topics", n)
                left -= n
                if left < 0:
                    raise limit_error("source_topics")
                item8.source_topics = list(unpack_from(f">{n}h", data, p))
                p += n * 2
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("source_topic_regex")
                n -= 1
                if n * 2 > end - p:
                    raise count_error("source_topic_regex", n)
                left -= n
                if left < 0:
                    raise limit_error("source_topic_regex")
                item8.source_topic_regex = list(unpack_from(f">{n}h", data, p))
                p += n * 2
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("repartition_source_topics")
                n -= 1
                if n * 2 > end - p:
                    raise count_error("repartition_source_topics", n)
                left -= n
                if left < 0:
                    raise limit_error("repartition_source_topics")
                item8.repartition_source_topics = list(unpack_from(f">{n}h", data, p))
                p += n * 2
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("CopartitionGroup")
                    p = skip_fields(data, p, n)
                items8.append(item8)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("Subtopology")
                p = skip_fields(data, p, n)
            items.append(item)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Topology")
            p = skip_fields(data, p, n)
        m.topology = s
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.active_tasks = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("active_tasks", n)
        left -= n
        if left < 0:
            raise limit_error("active_tasks")
        items9: list[StreamsGroupHeartbeatRequestTaskIds] = []
        m.active_tasks = items9
        for _ in range(n):
            item9 = StreamsGroupHeartbeatRequestTaskIds.__new__(StreamsGroupHeartbeatRequestTaskIds)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("subtopology_id")
            e = p + n - 1
            item9.subtopology_id = data[p:e].decode("utf-8", "replace")
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
            item9.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("StreamsGroupHeartbeatRequestTaskIds")
                p = skip_fields(data, p, n)
            items9.append(item9)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.standby_tasks = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("standby_tasks", n)
        left -= n
        if left < 0:
            raise limit_error("standby_tasks")
        items10: list[StreamsGroupHeartbeatRequestTaskIds] = []
        m.standby_tasks = items10
        for _ in range(n):
            item10 = StreamsGroupHeartbeatRequestTaskIds.__new__(StreamsGroupHeartbeatRequestTaskIds)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("subtopology_id")
            e = p + n - 1
            item10.subtopology_id = data[p:e].decode("utf-8", "replace")
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
            item10.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("StreamsGroupHeartbeatRequestTaskIds")
                p = skip_fields(data, p, n)
            items10.append(item10)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.warmup_tasks = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("warmup_tasks", n)
        left -= n
        if left < 0:
            raise limit_error("warmup_tasks")
        items11: list[StreamsGroupHeartbeatRequestTaskIds] = []
        m.warmup_tasks = items11
        for _ in range(n):
            item11 = StreamsGroupHeartbeatRequestTaskIds.__new__(StreamsGroupHeartbeatRequestTaskIds)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("subtopology_id")
            e = p + n - 1
            item11.subtopology_id = data[p:e].decode("utf-8", "replace")
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
            item11.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("StreamsGroupHeartbeatRequestTaskIds")
                p = skip_fields(data, p, n)
            items11.append(item11)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.process_id = None
    else:
        e = p + n - 1
        m.process_id = data[p:e].decode("utf-8", "replace")
        p = e
    n, = _u_b(data, p)
    p += 1
    if n < 0:
        m.user_endpoint = None
    else:
        s1 = StreamsGroupHeartbeatRequestEndpoint.__new__(StreamsGroupHeartbeatRequestEndpoint)
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
            left -= n
            if left < 0:
                raise limit_error("StreamsGroupHeartbeatRequestEndpoint")
            p = skip_fields(data, p, n)
        m.user_endpoint = s1
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.client_tags = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("client_tags", n)
        left -= n
        if left < 0:
            raise limit_error("client_tags")
        items12: list[KeyValue] = []
        m.client_tags = items12
        for _ in range(n):
            item12 = KeyValue.__new__(KeyValue)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("key")
            e = p + n - 1
            item12.key = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("value")
            e = p + n - 1
            item12.value = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("KeyValue")
                p = skip_fields(data, p, n)
            items12.append(item12)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.task_offsets = None
    else:
        n -= 1
        if n * 14 > end - p:
            raise count_error("task_offsets", n)
        left -= n
        if left < 0:
            raise limit_error("task_offsets")
        items13: list[TaskOffset] = []
        m.task_offsets = items13
        for _ in range(n):
            item13 = TaskOffset.__new__(TaskOffset)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("subtopology_id")
            e = p + n - 1
            item13.subtopology_id = data[p:e].decode("utf-8", "replace")
            p = e
            item13.partition, item13.offset, n = _u_iqB(data, p)
            p += 13
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("TaskOffset")
                p = skip_fields(data, p, n)
            items13.append(item13)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.task_end_offsets = None
    else:
        n -= 1
        if n * 14 > end - p:
            raise count_error("task_end_offsets", n)
        left -= n
        if left < 0:
            raise limit_error("task_end_offsets")
        items14: list[TaskOffset] = []
        m.task_end_offsets = items14
        for _ in range(n):
            item14 = TaskOffset.__new__(TaskOffset)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("subtopology_id")
            e = p + n - 1
            item14.subtopology_id = data[p:e].decode("utf-8", "replace")
            p = e
            item14.partition, item14.offset, n = _u_iqB(data, p)
            p += 13
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("TaskOffset")
                p = skip_fields(data, p, n)
            items14.append(item14)
    m.shutdown_application, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("StreamsGroupHeartbeatRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("StreamsGroupHeartbeatRequest")
    return m


def _encode_request_v0(m: StreamsGroupHeartbeatRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.member_id.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    out += _p_ii(m.member_epoch, m.endpoint_information_epoch)
    v2 = m.instance_id
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
    v3 = m.rack_id
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
    s = m.topology
    out += _p_i(m.rebalance_timeout_ms)
    if s is None:
        out += b"\xff"
    else:
        out += b"\x01"
        items = s.subtopologies
        out += _p_i(s.epoch)
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            b4 = item.subtopology_id.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
            items1 = item.source_topics
            n = len(items1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item1 in items1:
                b5 = item1.encode()
                n = len(b5) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b5
            items2 = item.source_topic_regex
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                b6 = item2.encode()
                n = len(b6) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b6
            items3 = item.state_changelog_topics
            n = len(items3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item3 in items3:
                b7 = item3.name.encode()
                n = len(b7) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b7
                items4 = item3.topic_configs
                out += _p_ih(item3.partitions, item3.replication_factor)
                n = len(items4) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                for item4 in items4:
                    b8 = item4.key.encode()
                    n = len(b8) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    out += b8
                    b9 = item4.value.encode()
                    n = len(b9) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    out += b9
                    out += b"\x00"
                out += b"\x00"
            items5 = item.repartition_sink_topics
            n = len(items5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item5 in items5:
                b10 = item5.encode()
                n = len(b10) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b10
            items6 = item.repartition_source_topics
            n = len(items6) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item6 in items6:
                b11 = item6.name.encode()
                n = len(b11) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b11
                items7 = item6.topic_configs
                out += _p_ih(item6.partitions, item6.replication_factor)
                n = len(items7) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                for item7 in items7:
                    b12 = item7.key.encode()
                    n = len(b12) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    out += b12
                    b13 = item7.value.encode()
                    n = len(b13) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        out += encode_unsigned_varint(n)
                    out += b13
                    out += b"\x00"
                out += b"\x00"
            items8 = item.copartition_groups
            n = len(items8) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item8 in items8:
                items9 = item8.source_topics
                n = len(items9) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items9)
                out += pack(f">{n}h", *items9)
                items10 = item8.source_topic_regex
                n = len(items10) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items10)
                out += pack(f">{n}h", *items10)
                items11 = item8.repartition_source_topics
                n = len(items11) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items11)
                out += pack(f">{n}h", *items11)
                out += b"\x00"
            out += b"\x00"
        out += b"\x00"
    items12 = m.active_tasks
    if items12 is None:
        out += b"\x00"
    else:
        n = len(items12) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item9 in items12:
            b14 = item9.subtopology_id.encode()
            n = len(b14) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b14
            items13 = item9.partitions
            n = len(items13) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items13)
            out += PACK_INT32[n](*items13) if n < SMALL else pack(f">{n}i", *items13)
            out += b"\x00"
    items14 = m.standby_tasks
    if items14 is None:
        out += b"\x00"
    else:
        n = len(items14) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item10 in items14:
            b15 = item10.subtopology_id.encode()
            n = len(b15) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b15
            items15 = item10.partitions
            n = len(items15) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items15)
            out += PACK_INT32[n](*items15) if n < SMALL else pack(f">{n}i", *items15)
            out += b"\x00"
    items16 = m.warmup_tasks
    if items16 is None:
        out += b"\x00"
    else:
        n = len(items16) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item11 in items16:
            b16 = item11.subtopology_id.encode()
            n = len(b16) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b16
            items17 = item11.partitions
            n = len(items17) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items17)
            out += PACK_INT32[n](*items17) if n < SMALL else pack(f">{n}i", *items17)
            out += b"\x00"
    v17 = m.process_id
    if v17 is None:
        out += b"\x00"
    else:
        b17 = v17.encode()
        n = len(b17) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b17
    s1 = m.user_endpoint
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
    items18 = m.client_tags
    if items18 is None:
        out += b"\x00"
    else:
        n = len(items18) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item12 in items18:
            b19 = item12.key.encode()
            n = len(b19) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b19
            b20 = item12.value.encode()
            n = len(b20) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b20
            out += b"\x00"
    items19 = m.task_offsets
    if items19 is None:
        out += b"\x00"
    else:
        n = len(items19) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item13 in items19:
            b21 = item13.subtopology_id.encode()
            n = len(b21) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b21
            out += _p_iqx(item13.partition, item13.offset)
    items20 = m.task_end_offsets
    if items20 is None:
        out += b"\x00"
    else:
        n = len(items20) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item14 in items20:
            b22 = item14.subtopology_id.encode()
            n = len(b22) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b22
            out += _p_iqx(item14.partition, item14.offset)
    out += _p_zx(m.shutdown_application)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], StreamsGroupHeartbeatRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[StreamsGroupHeartbeatRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> StreamsGroupHeartbeatRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("StreamsGroupHeartbeatRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("StreamsGroupHeartbeatRequest", version) from None


def encode_request(message: StreamsGroupHeartbeatRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"StreamsGroupHeartbeatRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> StreamsGroupHeartbeatResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = StreamsGroupHeartbeatResponse.__new__(StreamsGroupHeartbeatResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
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
        raise null_error("member_id")
    e = p + n - 1
    m.member_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.member_epoch, m.heartbeat_interval_ms, m.acceptable_recovery_lag, m.task_offset_interval_ms, n = _u_iiiiB(data, p)
    p += 17
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.status = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("status", n)
        items: list[Status] = []
        m.status = items
        for _ in range(n):
            item = Status.__new__(Status)
            item.status_code, n = _u_bB(data, p)
            p += 2
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("status_detail")
            e = p + n - 1
            item.status_detail = data[p:e].decode("utf-8", "replace")
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
        m.active_tasks = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("active_tasks", n)
        items1: list[StreamsGroupHeartbeatResponseTaskIds] = []
        m.active_tasks = items1
        for _ in range(n):
            item1 = StreamsGroupHeartbeatResponseTaskIds.__new__(StreamsGroupHeartbeatResponseTaskIds)
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
                raise null_error("partitions")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partitions", n)
            item1.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items1.append(item1)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.standby_tasks = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("standby_tasks", n)
        items2: list[StreamsGroupHeartbeatResponseTaskIds] = []
        m.standby_tasks = items2
        for _ in range(n):
            item2 = StreamsGroupHeartbeatResponseTaskIds.__new__(StreamsGroupHeartbeatResponseTaskIds)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("subtopology_id")
            e = p + n - 1
            item2.subtopology_id = data[p:e].decode("utf-8", "replace")
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
            item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
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
        m.warmup_tasks = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("warmup_tasks", n)
        items3: list[StreamsGroupHeartbeatResponseTaskIds] = []
        m.warmup_tasks = items3
        for _ in range(n):
            item3 = StreamsGroupHeartbeatResponseTaskIds.__new__(StreamsGroupHeartbeatResponseTaskIds)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("subtopology_id")
            e = p + n - 1
            item3.subtopology_id = data[p:e].decode("utf-8", "replace")
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
            item3.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            items3.append(item3)
    m.endpoint_information_epoch, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.partitions_by_user_endpoint = None
    else:
        n -= 1
        if n * 7 > end - p:
            raise count_error("partitions_by_user_endpoint", n)
        items4: list[EndpointToPartitions] = []
        m.partitions_by_user_endpoint = items4
        for _ in range(n):
            item4 = EndpointToPartitions.__new__(EndpointToPartitions)
            s = StreamsGroupHeartbeatResponseEndpoint.__new__(StreamsGroupHeartbeatResponseEndpoint)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("host")
            e = p + n - 1
            s.host = data[p:e].decode("utf-8", "replace")
            p = e
            s.port, n = _u_HB(data, p)
            p += 3
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item4.user_endpoint = s
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("active_partitions")
            n -= 1
            if n * 3 > end - p:
                raise count_error("active_partitions", n)
            items5: list[TopicPartition] = []
            item4.active_partitions = items5
            for _ in range(n):
                item5 = TopicPartition.__new__(TopicPartition)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("topic")
                e = p + n - 1
                item5.topic = data[p:e].decode("utf-8", "replace")
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
                item5.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                items5.append(item5)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("standby_partitions")
            n -= 1
            if n * 3 > end - p:
                raise count_error("standby_partitions", n)
            items6: list[TopicPartition] = []
            item4.standby_partitions = items6
            for _ in range(n):
                item6 = TopicPartition.__new__(TopicPartition)
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("topic")
                e = p + n - 1
                item6.topic = data[p:e].decode("utf-8", "replace")
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
                item6.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
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
            items4.append(item4)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("StreamsGroupHeartbeatResponse")
    return m


def _encode_response_v0(m: StreamsGroupHeartbeatResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
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
    b1 = m.member_id.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    items = m.status
    out += _p_iiii(m.member_epoch, m.heartbeat_interval_ms, m.acceptable_recovery_lag, m.task_offset_interval_ms)
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            b2 = item.status_detail.encode()
            out += _p_b(item.status_code)
            n = len(b2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b2
            out += b"\x00"
    items1 = m.active_tasks
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
            items2 = item1.partitions
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
    items3 = m.standby_tasks
    if items3 is None:
        out += b"\x00"
    else:
        n = len(items3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item2 in items3:
            b4 = item2.subtopology_id.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
            items4 = item2.partitions
            n = len(items4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items4)
            out += PACK_INT32[n](*items4) if n < SMALL else pack(f">{n}i", *items4)
            out += b"\x00"
    items5 = m.warmup_tasks
    if items5 is None:
        out += b"\x00"
    else:
        n = len(items5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item3 in items5:
            b5 = item3.subtopology_id.encode()
            n = len(b5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b5
            items6 = item3.partitions
            n = len(items6) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items6)
            out += PACK_INT32[n](*items6) if n < SMALL else pack(f">{n}i", *items6)
            out += b"\x00"
    items7 = m.partitions_by_user_endpoint
    out += _p_i(m.endpoint_information_epoch)
    if items7 is None:
        out += b"\x00"
    else:
        n = len(items7) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item4 in items7:
            s = item4.user_endpoint
            b6 = s.host.encode()
            n = len(b6) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b6
            items8 = item4.active_partitions
            out += _p_Hx(s.port)
            n = len(items8) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item5 in items8:
                b7 = item5.topic.encode()
                n = len(b7) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b7
                items9 = item5.partitions
                n = len(items9) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items9)
                out += PACK_INT32[n](*items9) if n < SMALL else pack(f">{n}i", *items9)
                out += b"\x00"
            items10 = item4.standby_partitions
            n = len(items10) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item6 in items10:
                b8 = item6.topic.encode()
                n = len(b8) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b8
                items11 = item6.partitions
                n = len(items11) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items11)
                out += PACK_INT32[n](*items11) if n < SMALL else pack(f">{n}i", *items11)
                out += b"\x00"
            out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], StreamsGroupHeartbeatResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[StreamsGroupHeartbeatResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> StreamsGroupHeartbeatResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("StreamsGroupHeartbeatResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("StreamsGroupHeartbeatResponse", version) from None


def encode_response(message: StreamsGroupHeartbeatResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"StreamsGroupHeartbeatResponse has no version {version} here")
    return encode(message)
