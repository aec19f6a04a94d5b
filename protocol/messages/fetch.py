"""Fetch, API key 1, versions 4 to 18, flexible from 12.

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

API_KEY: Final = 1
MIN_VERSION: Final = 4
MAX_VERSION: Final = 18
FIRST_FLEXIBLE_VERSION: Final[int | None] = 12

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ihi: Final = _Struct(">ihi").pack
_p_ihii: Final = _Struct(">ihii").pack
_p_ihqq: Final = _Struct(">ihqq").pack
_p_ihqqq: Final = _Struct(">ihqqq").pack
_p_ii: Final = _Struct(">ii").pack
_p_iiibii: Final = _Struct(">iiibii").pack
_p_iiiibi: Final = _Struct(">iiiibi").pack
_p_iiiibii: Final = _Struct(">iiiibii").pack
_p_iiiibiii: Final = _Struct(">iiiibiii").pack
_p_iiqiqi: Final = _Struct(">iiqiqi").pack
_p_iiqiqix: Final = _Struct(">iiqiqix").pack
_p_iiqqi: Final = _Struct(">iiqqi").pack
_p_iix: Final = _Struct(">iix").pack
_p_iqi: Final = _Struct(">iqi").pack
_p_iqqi: Final = _Struct(">iqqi").pack
_p_iqx: Final = _Struct(">iqx").pack
_p_q: Final = _Struct(">q").pack
_p_qix: Final = _Struct(">qix").pack
_p_qq: Final = _Struct(">qq").pack
_p_qqx: Final = _Struct(">qqx").pack
_p_u: Final = _Struct(">16s").pack
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihiB: Final = _Struct(">ihiB").unpack_from
_u_ihii: Final = _Struct(">ihii").unpack_from
_u_ihqqi: Final = _Struct(">ihqqi").unpack_from
_u_ihqqqB: Final = _Struct(">ihqqqB").unpack_from
_u_ihqqqi: Final = _Struct(">ihqqqi").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_iiibiiB: Final = _Struct(">iiibiiB").unpack_from
_u_iiiibi: Final = _Struct(">iiiibi").unpack_from
_u_iiiibiiB: Final = _Struct(">iiiibiiB").unpack_from
_u_iiiibiii: Final = _Struct(">iiiibiii").unpack_from
_u_iiqiqiB: Final = _Struct(">iiqiqiB").unpack_from
_u_iiqqi: Final = _Struct(">iiqqi").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_iqi: Final = _Struct(">iqi").unpack_from
_u_iqqi: Final = _Struct(">iqqi").unpack_from
_u_q: Final = _Struct(">q").unpack_from
_u_qiB: Final = _Struct(">qiB").unpack_from
_u_qq: Final = _Struct(">qq").unpack_from
_u_qqB: Final = _Struct(">qqB").unpack_from
_u_u: Final = _Struct(">16s").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class ReplicaState(Message):
    """Part of FetchRequest, versions 15-18."""

    __slots__ = (
        "replica_id",
        "replica_epoch",
    )

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_epoch: int = replica_epoch


class FetchPartition(Message):
    """Part of FetchRequest, versions 4-18."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,  # versions 9-18
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,  # versions 12-18
        log_start_offset: int = -1,  # versions 5-18
        partition_max_bytes: int = 0,
        replica_directory_id: UUID = NIL_UUID,  # versions 17-18, tag 0
        high_watermark: int = 9223372036854775807,  # versions 18, tag 1
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.fetch_offset: int = fetch_offset
        self.last_fetched_epoch: int = last_fetched_epoch
        self.log_start_offset: int = log_start_offset
        self.partition_max_bytes: int = partition_max_bytes
        self.replica_directory_id: UUID = replica_directory_id
        self.high_watermark: int = high_watermark


class FetchTopic(Message):
    """Part of FetchRequest, versions 4-18."""

    __slots__ = (
        "topic_id",
        "partitions",
        "topic",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 13-18
        partitions: list[FetchPartition] = EMPTY,
        topic: str = "",  # versions 4-12
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is EMPTY else partitions
        self.topic: str = topic


class ForgottenTopic(Message):
    """Part of FetchRequest, versions 7-18."""

    __slots__ = (
        "topic_id",
        "partitions",
        "topic",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 13-18
        partitions: list[int] = EMPTY,
        topic: str = "",  # versions 7-12
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.topic: str = topic


class FetchRequest(Message):
    """Body of the request, versions 4-18."""

    __slots__ = (
        "cluster_id",
        "replica_state",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
        "replica_id",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = None,  # versions 12-18, tag 0
        replica_state: ReplicaState | None = None,  # versions 15-18, tag 1
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,  # versions 7-18
        session_epoch: int = -1,  # versions 7-18
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,  # versions 7-18
        rack_id: str = "",  # versions 11-18
        replica_id: int = -1,  # versions 4-14
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_state: ReplicaState | None = replica_state
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.isolation_level: int = isolation_level
        self.session_id: int = session_id
        self.session_epoch: int = session_epoch
        self.topics: list[FetchTopic] = [] if topics is EMPTY else topics
        self.forgotten_topics_data: list[ForgottenTopic] = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.rack_id: str = rack_id
        self.replica_id: int = replica_id


class EpochEndOffset(Message):
    """Part of FetchResponse, versions 12-18."""

    __slots__ = (
        "epoch",
        "end_offset",
    )

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch: int = epoch
        self.end_offset: int = end_offset


class LeaderIdAndEpoch(Message):
    """Part of FetchResponse, versions 12-18."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch


class SnapshotId(Message):
    """Part of FetchResponse, versions 12-18."""

    __slots__ = (
        "end_offset",
        "epoch",
    )

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch


class AbortedTransaction(Message):
    """Part of FetchResponse, versions 4-18."""

    __slots__ = (
        "producer_id",
        "first_offset",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        self.first_offset: int = first_offset


class PartitionData(Message):
    """Part of FetchResponse, versions 4-18."""

    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,  # versions 5-18
        diverging_epoch: EpochEndOffset | None = None,  # versions 12-18, tag 0
        current_leader: LeaderIdAndEpoch | None = None,  # versions 12-18, tag 1
        snapshot_id: SnapshotId | None = None,  # versions 12-18, tag 2
        aborted_transactions: list[AbortedTransaction] | None = EMPTY,
        preferred_read_replica: int = -1,  # versions 11-18
        records: bytes | bytearray | memoryview | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.high_watermark: int = high_watermark
        self.last_stable_offset: int = last_stable_offset
        self.log_start_offset: int = log_start_offset
        self.diverging_epoch: EpochEndOffset | None = diverging_epoch
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        self.snapshot_id: SnapshotId | None = snapshot_id
        self.aborted_transactions: list[AbortedTransaction] | None = [] if aborted_transactions is EMPTY else aborted_transactions
        self.preferred_read_replica: int = preferred_read_replica
        self.records: bytes | bytearray | memoryview | None = records


class FetchableTopicResponse(Message):
    """Part of FetchResponse, versions 4-18."""

    __slots__ = (
        "topic_id",
        "partitions",
        "topic",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,  # versions 13-18
        partitions: list[PartitionData] = EMPTY,
        topic: str = "",  # versions 4-12
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[PartitionData] = [] if partitions is EMPTY else partitions
        self.topic: str = topic


class NodeEndpoint(Message):
    """Part of FetchResponse, versions 16-18."""

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
        rack: str | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack


class FetchResponse(Message):
    """Body of the response, versions 4-18."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "session_id",
        "responses",
        "node_endpoints",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # versions 7-18
        session_id: int = 0,  # versions 7-18
        responses: list[FetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # versions 16-18, tag 0
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.session_id: int = session_id
        self.responses: list[FetchableTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _decode_request_v4(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.session_id = 0
    m.session_epoch = -1
    m.forgotten_topics_data = []
    m.rack_id = ""
    m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, n = _u_iiiibi(data, p)
    p += 21
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = data[p:e].decode("utf-8", "replace")
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
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.current_leader_epoch = -1
            item1.last_fetched_epoch = -1
            item1.log_start_offset = -1
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.fetch_offset, item1.partition_max_bytes = _u_iqi(data, p)
            p += 16
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v5(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.session_id = 0
    m.session_epoch = -1
    m.forgotten_topics_data = []
    m.rack_id = ""
    m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, n = _u_iiiibi(data, p)
    p += 21
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 24 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.current_leader_epoch = -1
            item1.last_fetched_epoch = -1
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.fetch_offset, item1.log_start_offset, item1.partition_max_bytes = _u_iqqi(data, p)
            p += 24
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v7(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.rack_id = ""
    m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n = _u_iiiibiii(data, p)
    p += 29
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 24 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.current_leader_epoch = -1
            item1.last_fetched_epoch = -1
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.fetch_offset, item1.log_start_offset, item1.partition_max_bytes = _u_iqqi(data, p)
            p += 24
            items1.append(item1)
        items.append(item)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("forgotten_topics_data")
    if n * 6 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items2: list[ForgottenTopic] = []
    m.forgotten_topics_data = items2
    for _ in range(n):
        item2 = ForgottenTopic.__new__(ForgottenTopic)
        item2.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item2.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 4 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        items2.append(item2)
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v9(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.rack_id = ""
    m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n = _u_iiiibiii(data, p)
    p += 29
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 28 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.last_fetched_epoch = -1
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.log_start_offset, item1.partition_max_bytes = _u_iiqqi(data, p)
            p += 28
            items1.append(item1)
        items.append(item)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("forgotten_topics_data")
    if n * 6 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items2: list[ForgottenTopic] = []
    m.forgotten_topics_data = items2
    for _ in range(n):
        item2 = ForgottenTopic.__new__(ForgottenTopic)
        item2.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item2.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 4 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        items2.append(item2)
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v11(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n = _u_iiiibiii(data, p)
    p += 29
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 28 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.last_fetched_epoch = -1
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.log_start_offset, item1.partition_max_bytes = _u_iiqqi(data, p)
            p += 28
            items1.append(item1)
        items.append(item)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("forgotten_topics_data")
    if n * 6 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items2: list[ForgottenTopic] = []
    m.forgotten_topics_data = items2
    for _ in range(n):
        item2 = ForgottenTopic.__new__(ForgottenTopic)
        item2.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item2.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 4 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        items2.append(item2)
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("rack_id")
    e = p + n
    m.rack_id = data[p:e].decode("utf-8", "replace")
    p = e
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v12(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n = _u_iiiibiiB(data, p)
    p += 26
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
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic_id = NIL_UUID
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic")
        e = p + n - 1
        item.topic = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 33 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes, n = _u_iiqiqiB(data, p)
            p += 33
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("forgotten_topics_data")
    n -= 1
    if n * 3 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items2: list[ForgottenTopic] = []
    m.forgotten_topics_data = items2
    for _ in range(n):
        item2 = ForgottenTopic.__new__(ForgottenTopic)
        item2.topic_id = NIL_UUID
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic")
        e = p + n - 1
        item2.topic = data[p:e].decode("utf-8", "replace")
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
        item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ForgottenTopic")
            p = skip_fields(data, p, n)
        items2.append(item2)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("rack_id")
    e = p + n - 1
    m.rack_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("FetchRequest")
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
                    m.cluster_id = data[p:e].decode("utf-8", "replace")
                    p = e
                if p > limit:
                    raise end_error("cluster_id")
            if limit > end:
                raise end_error("FetchRequest")
            p = limit
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v13(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n = _u_iiiibiiB(data, p)
    p += 26
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
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 33 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes, n = _u_iiqiqiB(data, p)
            p += 33
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("forgotten_topics_data")
    n -= 1
    if n * 18 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items2: list[ForgottenTopic] = []
    m.forgotten_topics_data = items2
    for _ in range(n):
        item2 = ForgottenTopic.__new__(ForgottenTopic)
        item2.topic = ""
        u1, n = _u_uB(data, p)
        p += 17
        item2.topic_id = uuid_from_bytes(u1)
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
        item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ForgottenTopic")
            p = skip_fields(data, p, n)
        items2.append(item2)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("rack_id")
    e = p + n - 1
    m.rack_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("FetchRequest")
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
                    m.cluster_id = data[p:e].decode("utf-8", "replace")
                    p = e
                if p > limit:
                    raise end_error("cluster_id")
            if limit > end:
                raise end_error("FetchRequest")
            p = limit
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v15(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.replica_id = -1
    m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n = _u_iiibiiB(data, p)
    p += 22
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
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 33 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes, n = _u_iiqiqiB(data, p)
            p += 33
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("forgotten_topics_data")
    n -= 1
    if n * 18 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items2: list[ForgottenTopic] = []
    m.forgotten_topics_data = items2
    for _ in range(n):
        item2 = ForgottenTopic.__new__(ForgottenTopic)
        item2.topic = ""
        u1, n = _u_uB(data, p)
        p += 17
        item2.topic_id = uuid_from_bytes(u1)
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
        item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ForgottenTopic")
            p = skip_fields(data, p, n)
        items2.append(item2)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("rack_id")
    e = p + n - 1
    m.rack_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("FetchRequest")
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
                    m.cluster_id = data[p:e].decode("utf-8", "replace")
                    p = e
                if p > limit:
                    raise end_error("cluster_id")
            elif tag == 1:
                s = ReplicaState.__new__(ReplicaState)
                s.replica_id, s.replica_epoch, n = _u_iqB(data, p)
                p += 13
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("ReplicaState")
                    p = skip_fields(data, p, n)
                m.replica_state = s
                if p > limit:
                    raise end_error("replica_state")
            if limit > end:
                raise end_error("FetchRequest")
            p = limit
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v17(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.replica_id = -1
    m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n = _u_iiibiiB(data, p)
    p += 22
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
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 33 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes, n = _u_iiqiqiB(data, p)
            p += 33
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchPartition")
                for _ in range(n):
                    tag, p = decode_unsigned_varint(data, p)
                    limit, p = decode_unsigned_varint(data, p)
                    limit += p
                    if tag == 0:
                        u1, = _u_u(data, p)
                        p += 16
                        item1.replica_directory_id = uuid_from_bytes(u1)
                        if p > limit:
                            raise end_error("replica_directory_id")
                    if limit > end:
                        raise end_error("FetchPartition")
                    p = limit
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("forgotten_topics_data")
    n -= 1
    if n * 18 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items2: list[ForgottenTopic] = []
    m.forgotten_topics_data = items2
    for _ in range(n):
        item2 = ForgottenTopic.__new__(ForgottenTopic)
        item2.topic = ""
        u2, n = _u_uB(data, p)
        p += 17
        item2.topic_id = uuid_from_bytes(u2)
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
        item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ForgottenTopic")
            p = skip_fields(data, p, n)
        items2.append(item2)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("rack_id")
    e = p + n - 1
    m.rack_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("FetchRequest")
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
                    m.cluster_id = data[p:e].decode("utf-8", "replace")
                    p = e
                if p > limit1:
                    raise end_error("cluster_id")
            elif tag == 1:
                s = ReplicaState.__new__(ReplicaState)
                s.replica_id, s.replica_epoch, n = _u_iqB(data, p)
                p += 13
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("ReplicaState")
                    p = skip_fields(data, p, n)
                m.replica_state = s
                if p > limit1:
                    raise end_error("replica_state")
            if limit1 > end:
                raise end_error("FetchRequest")
            p = limit1
    if p > end:
        raise end_error("FetchRequest")
    return m


def _decode_request_v18(view: bytes | memoryview) -> FetchRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FetchRequest.__new__(FetchRequest)
    m.cluster_id = None
    m.replica_state = None
    m.replica_id = -1
    m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, n = _u_iiibiiB(data, p)
    p += 22
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
    items: list[FetchTopic] = []
    m.topics = items
    for _ in range(n):
        item = FetchTopic.__new__(FetchTopic)
        item.topic = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 33 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[FetchPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = FetchPartition.__new__(FetchPartition)
            item1.replica_directory_id = NIL_UUID
            item1.high_watermark = 9223372036854775807
            item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes, n = _u_iiqiqiB(data, p)
            p += 33
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("FetchPartition")
                for _ in range(n):
                    tag, p = decode_unsigned_varint(data, p)
                    limit, p = decode_unsigned_varint(data, p)
                    limit += p
                    if tag == 0:
                        u1, = _u_u(data, p)
                        p += 16
                        item1.replica_directory_id = uuid_from_bytes(u1)
                        if p > limit:
                            raise end_error("replica_directory_id")
                    elif tag == 1:
                        item1.high_watermark, = _u_q(data, p)
                        p += 8
                        if p > limit:
                            raise end_error("high_watermark")
                    if limit > end:
                        raise end_error("FetchPartition")
                    p = limit
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("FetchTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("forgotten_topics_data")
    n -= 1
    if n * 18 > end - p:
        raise count_error("forgotten_topics_data", n)
    left -= n
    if left < 0:
        raise limit_error("forgotten_topics_data")
    items2: list[ForgottenTopic] = []
    m.forgotten_topics_data = items2
    for _ in range(n):
        item2 = ForgottenTopic.__new__(ForgottenTopic)
        item2.topic = ""
        u2, n = _u_uB(data, p)
        p += 17
        item2.topic_id = uuid_from_bytes(u2)
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
        item2.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ForgottenTopic")
            p = skip_fields(data, p, n)
        items2.append(item2)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("rack_id")
    e = p + n - 1
    m.rack_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("FetchRequest")
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
                    m.cluster_id = data[p:e].decode("utf-8", "replace")
                    p = e
                if p > limit1:
                    raise end_error("cluster_id")
            elif tag == 1:
                s = ReplicaState.__new__(ReplicaState)
                s.replica_id, s.replica_epoch, n = _u_iqB(data, p)
                p += 13
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("ReplicaState")
                    p = skip_fields(data, p, n)
                m.replica_state = s
                if p > limit1:
                    raise end_error("replica_state")
            if limit1 > end:
                raise end_error("FetchRequest")
            p = limit1
    if p > end:
        raise end_error("FetchRequest")
    return m


def _encode_request_v4(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiiibi(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iqi(item1.partition, item1.fetch_offset, item1.partition_max_bytes)
    return bytes(out)


def _encode_request_v5(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiiibi(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iqqi(item1.partition, item1.fetch_offset, item1.log_start_offset, item1.partition_max_bytes)
    return bytes(out)


def _encode_request_v7(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiiibiii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iqqi(item1.partition, item1.fetch_offset, item1.log_start_offset, item1.partition_max_bytes)
    items2 = m.forgotten_topics_data
    out += _p_i(len(items2))
    for item2 in items2:
        b1 = item2.topic.encode()
        out += _p_h(len(b1))
        out += b1
        items3 = item2.partitions
        out += _p_i(len(items3))
        n = len(items3)
        out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
    return bytes(out)


def _encode_request_v9(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiiibiii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iiqqi(item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.log_start_offset, item1.partition_max_bytes)
    items2 = m.forgotten_topics_data
    out += _p_i(len(items2))
    for item2 in items2:
        b1 = item2.topic.encode()
        out += _p_h(len(b1))
        out += b1
        items3 = item2.partitions
        out += _p_i(len(items3))
        n = len(items3)
        out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
    return bytes(out)


def _encode_request_v11(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiiibiii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_iiqqi(item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.log_start_offset, item1.partition_max_bytes)
    items2 = m.forgotten_topics_data
    out += _p_i(len(items2))
    for item2 in items2:
        b1 = item2.topic.encode()
        out += _p_h(len(b1))
        out += b1
        items3 = item2.partitions
        out += _p_i(len(items3))
        n = len(items3)
        out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
    b2 = m.rack_id.encode()
    out += _p_h(len(b2))
    out += b2
    return bytes(out)


def _encode_request_v12(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiiibii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.topic.encode()
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
            out += _p_iiqiqix(item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes)
        out += b"\x00"
    items2 = m.forgotten_topics_data
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        b1 = item2.topic.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items3 = item2.partitions
        n = len(items3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        n = len(items3)
        out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
        out += b"\x00"
    b2 = m.rack_id.encode()
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    count = 0
    section = bytearray()
    t = m.cluster_id
    if t is not None:
        count += 1
        content = bytearray()
        b3 = t.encode()
        n = len(b3) + 1
        if n < 128:
            content.append(n)
        else:
            content += encode_unsigned_varint(n)
        content += b3
        section += encode_unsigned_varint(0)
        section += encode_unsigned_varint(len(content))
        section += content
    out += encode_unsigned_varint(count)
    out += section
    return bytes(out)


def _encode_request_v13(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiiibii(m.replica_id, m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
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
            out += _p_iiqiqix(item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes)
        out += b"\x00"
    items2 = m.forgotten_topics_data
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        items3 = item2.partitions
        out += _p_u(item2.topic_id.bytes)
        n = len(items3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        n = len(items3)
        out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
        out += b"\x00"
    b = m.rack_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
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


def _encode_request_v15(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiibii(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
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
            out += _p_iiqiqix(item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes)
        out += b"\x00"
    items2 = m.forgotten_topics_data
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        items3 = item2.partitions
        out += _p_u(item2.topic_id.bytes)
        n = len(items3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        n = len(items3)
        out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
        out += b"\x00"
    b = m.rack_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
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
    t1 = m.replica_state
    if t1 is not None and (t1.replica_id != -1 or t1.replica_epoch != -1):
        count += 1
        content1 = bytearray()
        content1 += _p_iqx(t1.replica_id, t1.replica_epoch)
        section += encode_unsigned_varint(1)
        section += encode_unsigned_varint(len(content1))
        section += content1
    out += encode_unsigned_varint(count)
    out += section
    return bytes(out)


def _encode_request_v17(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiibii(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
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
            out += _p_iiqiqi(item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes)
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
    items2 = m.forgotten_topics_data
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        items3 = item2.partitions
        out += _p_u(item2.topic_id.bytes)
        n = len(items3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        n = len(items3)
        out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
        out += b"\x00"
    b = m.rack_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
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
    t2 = m.replica_state
    if t2 is not None and (t2.replica_id != -1 or t2.replica_epoch != -1):
        count1 += 1
        content2 = bytearray()
        content2 += _p_iqx(t2.replica_id, t2.replica_epoch)
        section1 += encode_unsigned_varint(1)
        section1 += encode_unsigned_varint(len(content2))
        section1 += content2
    out += encode_unsigned_varint(count1)
    out += section1
    return bytes(out)


def _encode_request_v18(m: FetchRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iiibii(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level, m.session_id, m.session_epoch)
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
            out += _p_iiqiqi(item1.partition, item1.current_leader_epoch, item1.fetch_offset, item1.last_fetched_epoch, item1.log_start_offset, item1.partition_max_bytes)
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
            t1 = item1.high_watermark
            if t1 != 9223372036854775807:
                count += 1
                content1 = bytearray()
                content1 += _p_q(t1)
                section += encode_unsigned_varint(1)
                section += encode_unsigned_varint(len(content1))
                section += content1
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    items2 = m.forgotten_topics_data
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        items3 = item2.partitions
        out += _p_u(item2.topic_id.bytes)
        n = len(items3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        n = len(items3)
        out += PACK_INT32[n](*items3) if n < SMALL else pack(f">{n}i", *items3)
        out += b"\x00"
    b = m.rack_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    count1 = 0
    section1 = bytearray()
    t2 = m.cluster_id
    if t2 is not None:
        count1 += 1
        content2 = bytearray()
        b1 = t2.encode()
        n = len(b1) + 1
        if n < 128:
            content2.append(n)
        else:
            content2 += encode_unsigned_varint(n)
        content2 += b1
        section1 += encode_unsigned_varint(0)
        section1 += encode_unsigned_varint(len(content2))
        section1 += content2
    t3 = m.replica_state
    if t3 is not None and (t3.replica_id != -1 or t3.replica_epoch != -1):
        count1 += 1
        content3 = bytearray()
        content3 += _p_iqx(t3.replica_id, t3.replica_epoch)
        section1 += encode_unsigned_varint(1)
        section1 += encode_unsigned_varint(len(content3))
        section1 += content3
    out += encode_unsigned_varint(count1)
    out += section1
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], FetchRequest]]] = {
    4: _decode_request_v4,
    5: _decode_request_v5,
    6: _decode_request_v5,
    7: _decode_request_v7,
    8: _decode_request_v7,
    9: _decode_request_v9,
    10: _decode_request_v9,
    11: _decode_request_v11,
    12: _decode_request_v12,
    13: _decode_request_v13,
    14: _decode_request_v13,
    15: _decode_request_v15,
    16: _decode_request_v15,
    17: _decode_request_v17,
    18: _decode_request_v18,
}


_request_encoders: Final[dict[int, Callable[[FetchRequest], bytes]]] = {
    4: _encode_request_v4,
    5: _encode_request_v5,
    6: _encode_request_v5,
    7: _encode_request_v7,
    8: _encode_request_v7,
    9: _encode_request_v9,
    10: _encode_request_v9,
    11: _encode_request_v11,
    12: _encode_request_v12,
    13: _encode_request_v13,
    14: _encode_request_v13,
    15: _encode_request_v15,
    16: _encode_request_v15,
    17: _encode_request_v17,
    18: _encode_request_v18,
}


def decode_request(data: bytes | memoryview, version: int) -> FetchRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("FetchRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("FetchRequest", version) from None


def encode_request(message: FetchRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"FetchRequest has no version {version} here")
    return encode(message)


def _decode_response_v4(view: bytes | memoryview) -> FetchResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchResponse.__new__(FetchResponse)
    m.error_code = 0
    m.session_id = 0
    m.node_endpoints = []
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("responses")
    if n * 6 > end - p:
        raise count_error("responses", n)
    items: list[FetchableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = FetchableTopicResponse.__new__(FetchableTopicResponse)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = str(data[p:e], "utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 30 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.log_start_offset = -1
            item1.diverging_epoch = None
            item1.current_leader = None
            item1.snapshot_id = None
            item1.preferred_read_replica = -1
            item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, n = _u_ihqqi(data, p)
            p += 26
            if n < 0:
                item1.aborted_transactions = None
            else:
                if n * 16 > end - p:
                    raise count_error("aborted_transactions", n)
                items2: list[AbortedTransaction] = []
                item1.aborted_transactions = items2
                for _ in range(n):
                    item2 = AbortedTransaction.__new__(AbortedTransaction)
                    item2.producer_id, item2.first_offset = _u_qq(data, p)
                    p += 16
                    items2.append(item2)
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                item1.records = None
            else:
                e = p + n
                item1.records = data[p:e]
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("FetchResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> FetchResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchResponse.__new__(FetchResponse)
    m.error_code = 0
    m.session_id = 0
    m.node_endpoints = []
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("responses")
    if n * 6 > end - p:
        raise count_error("responses", n)
    items: list[FetchableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = FetchableTopicResponse.__new__(FetchableTopicResponse)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = str(data[p:e], "utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 38 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.diverging_epoch = None
            item1.current_leader = None
            item1.snapshot_id = None
            item1.preferred_read_replica = -1
            item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset, n = _u_ihqqqi(data, p)
            p += 34
            if n < 0:
                item1.aborted_transactions = None
            else:
                if n * 16 > end - p:
                    raise count_error("aborted_transactions", n)
                items2: list[AbortedTransaction] = []
                item1.aborted_transactions = items2
                for _ in range(n):
                    item2 = AbortedTransaction.__new__(AbortedTransaction)
                    item2.producer_id, item2.first_offset = _u_qq(data, p)
                    p += 16
                    items2.append(item2)
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                item1.records = None
            else:
                e = p + n
                item1.records = data[p:e]
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("FetchResponse")
    return m


def _decode_response_v7(view: bytes | memoryview) -> FetchResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchResponse.__new__(FetchResponse)
    m.node_endpoints = []
    m.throttle_time_ms, m.error_code, m.session_id, n = _u_ihii(data, p)
    p += 14
    if n < 0:
        raise null_error("responses")
    if n * 6 > end - p:
        raise count_error("responses", n)
    items: list[FetchableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = FetchableTopicResponse.__new__(FetchableTopicResponse)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = str(data[p:e], "utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 38 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.diverging_epoch = None
            item1.current_leader = None
            item1.snapshot_id = None
            item1.preferred_read_replica = -1
            item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset, n = _u_ihqqqi(data, p)
            p += 34
            if n < 0:
                item1.aborted_transactions = None
            else:
                if n * 16 > end - p:
                    raise count_error("aborted_transactions", n)
                items2: list[AbortedTransaction] = []
                item1.aborted_transactions = items2
                for _ in range(n):
                    item2 = AbortedTransaction.__new__(AbortedTransaction)
                    item2.producer_id, item2.first_offset = _u_qq(data, p)
                    p += 16
                    items2.append(item2)
            n, = _u_i(data, p)
            p += 4
            if n < 0:
                item1.records = None
            else:
                e = p + n
                item1.records = data[p:e]
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("FetchResponse")
    return m


def _decode_response_v11(view: bytes | memoryview) -> FetchResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchResponse.__new__(FetchResponse)
    m.node_endpoints = []
    m.throttle_time_ms, m.error_code, m.session_id, n = _u_ihii(data, p)
    p += 14
    if n < 0:
        raise null_error("responses")
    if n * 6 > end - p:
        raise count_error("responses", n)
    items: list[FetchableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = FetchableTopicResponse.__new__(FetchableTopicResponse)
        item.topic_id = NIL_UUID
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("topic")
        e = p + n
        item.topic = str(data[p:e], "utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("partitions")
        if n * 42 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.diverging_epoch = None
            item1.current_leader = None
            item1.snapshot_id = None
            item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset, n = _u_ihqqqi(data, p)
            p += 34
            if n < 0:
                item1.aborted_transactions = None
            else:
                if n * 16 > end - p:
                    raise count_error("aborted_transactions", n)
                items2: list[AbortedTransaction] = []
                item1.aborted_transactions = items2
                for _ in range(n):
                    item2 = AbortedTransaction.__new__(AbortedTransaction)
                    item2.producer_id, item2.first_offset = _u_qq(data, p)
                    p += 16
                    items2.append(item2)
            item1.preferred_read_replica, n = _u_ii(data, p)
            p += 8
            if n < 0:
                item1.records = None
            else:
                e = p + n
                item1.records = data[p:e]
                p = e
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("FetchResponse")
    return m


def _decode_response_v12(view: bytes | memoryview) -> FetchResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchResponse.__new__(FetchResponse)
    m.node_endpoints = []
    m.throttle_time_ms, m.error_code, m.session_id, n = _u_ihiB(data, p)
    p += 11
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 3 > end - p:
        raise count_error("responses", n)
    items: list[FetchableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = FetchableTopicResponse.__new__(FetchableTopicResponse)
        item.topic_id = NIL_UUID
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic")
        e = p + n - 1
        item.topic = str(data[p:e], "utf-8", "replace")
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
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.diverging_epoch = None
            item1.current_leader = None
            item1.snapshot_id = None
            item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset, n = _u_ihqqqB(data, p)
            p += 31
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.aborted_transactions = None
            else:
                n -= 1
                if n * 17 > end - p:
                    raise count_error("aborted_transactions", n)
                items2: list[AbortedTransaction] = []
                item1.aborted_transactions = items2
                for _ in range(n):
                    item2 = AbortedTransaction.__new__(AbortedTransaction)
                    item2.producer_id, item2.first_offset, n = _u_qqB(data, p)
                    p += 17
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items2.append(item2)
            item1.preferred_read_replica, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.records = None
            else:
                e = p + n - 1
                item1.records = data[p:e]
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
                        s = EpochEndOffset.__new__(EpochEndOffset)
                        s.epoch, s.end_offset, n = _u_iqB(data, p)
                        p += 13
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.diverging_epoch = s
                        if p > limit:
                            raise end_error("diverging_epoch")
                    elif tag == 1:
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
                    elif tag == 2:
                        s2 = SnapshotId.__new__(SnapshotId)
                        s2.end_offset, s2.epoch, n = _u_qiB(data, p)
                        p += 13
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.snapshot_id = s2
                        if p > limit:
                            raise end_error("snapshot_id")
                    if limit > end:
                        raise end_error("PartitionData")
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
        raise end_error("FetchResponse")
    return m


def _decode_response_v13(view: bytes | memoryview) -> FetchResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchResponse.__new__(FetchResponse)
    m.node_endpoints = []
    m.throttle_time_ms, m.error_code, m.session_id, n = _u_ihiB(data, p)
    p += 11
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 18 > end - p:
        raise count_error("responses", n)
    items: list[FetchableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = FetchableTopicResponse.__new__(FetchableTopicResponse)
        item.topic = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 37 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.diverging_epoch = None
            item1.current_leader = None
            item1.snapshot_id = None
            item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset, n = _u_ihqqqB(data, p)
            p += 31
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.aborted_transactions = None
            else:
                n -= 1
                if n * 17 > end - p:
                    raise count_error("aborted_transactions", n)
                items2: list[AbortedTransaction] = []
                item1.aborted_transactions = items2
                for _ in range(n):
                    item2 = AbortedTransaction.__new__(AbortedTransaction)
                    item2.producer_id, item2.first_offset, n = _u_qqB(data, p)
                    p += 17
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items2.append(item2)
            item1.preferred_read_replica, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.records = None
            else:
                e = p + n - 1
                item1.records = data[p:e]
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
                        s = EpochEndOffset.__new__(EpochEndOffset)
                        s.epoch, s.end_offset, n = _u_iqB(data, p)
                        p += 13
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.diverging_epoch = s
                        if p > limit:
                            raise end_error("diverging_epoch")
                    elif tag == 1:
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
                    elif tag == 2:
                        s2 = SnapshotId.__new__(SnapshotId)
                        s2.end_offset, s2.epoch, n = _u_qiB(data, p)
                        p += 13
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.snapshot_id = s2
                        if p > limit:
                            raise end_error("snapshot_id")
                    if limit > end:
                        raise end_error("PartitionData")
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
        raise end_error("FetchResponse")
    return m


def _decode_response_v16(view: bytes | memoryview) -> FetchResponse:
    data = memoryview(view)
    end = len(data)
    p = 0
    m = FetchResponse.__new__(FetchResponse)
    m.node_endpoints = []
    m.throttle_time_ms, m.error_code, m.session_id, n = _u_ihiB(data, p)
    p += 11
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 18 > end - p:
        raise count_error("responses", n)
    items: list[FetchableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = FetchableTopicResponse.__new__(FetchableTopicResponse)
        item.topic = ""
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 37 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.diverging_epoch = None
            item1.current_leader = None
            item1.snapshot_id = None
            item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset, n = _u_ihqqqB(data, p)
            p += 31
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.aborted_transactions = None
            else:
                n -= 1
                if n * 17 > end - p:
                    raise count_error("aborted_transactions", n)
                items2: list[AbortedTransaction] = []
                item1.aborted_transactions = items2
                for _ in range(n):
                    item2 = AbortedTransaction.__new__(AbortedTransaction)
                    item2.producer_id, item2.first_offset, n = _u_qqB(data, p)
                    p += 17
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items2.append(item2)
            item1.preferred_read_replica, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.records = None
            else:
                e = p + n - 1
                item1.records = data[p:e]
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
                        s = EpochEndOffset.__new__(EpochEndOffset)
                        s.epoch, s.end_offset, n = _u_iqB(data, p)
                        p += 13
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.diverging_epoch = s
                        if p > limit:
                            raise end_error("diverging_epoch")
                    elif tag == 1:
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
                    elif tag == 2:
                        s2 = SnapshotId.__new__(SnapshotId)
                        s2.end_offset, s2.epoch, n = _u_qiB(data, p)
                        p += 13
                        if n:
                            if n > 127:
                                n, p = decode_unsigned_varint(data, p - 1)
                            p = skip_fields(data, p, n)
                        item1.snapshot_id = s2
                        if p > limit:
                            raise end_error("snapshot_id")
                    if limit > end:
                        raise end_error("PartitionData")
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
                if n * 11 > end - p:
                    raise count_error("node_endpoints", n)
                items3: list[NodeEndpoint] = []
                m.node_endpoints = items3
                for _ in range(n):
                    item3 = NodeEndpoint.__new__(NodeEndpoint)
                    item3.node_id, n = _u_iB(data, p)
                    p += 5
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        raise null_error("host")
                    e = p + n - 1
                    item3.host = str(data[p:e], "utf-8", "replace")
                    p = e
                    item3.port, n = _u_iB(data, p)
                    p += 5
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    if n == 0:
                        item3.rack = None
                    else:
                        e = p + n - 1
                        item3.rack = str(data[p:e], "utf-8", "replace")
                        p = e
                    n = data[p]
                    p += 1
                    if n:
                        if n > 127:
                            n, p = decode_unsigned_varint(data, p - 1)
                        p = skip_fields(data, p, n)
                    items3.append(item3)
                if p > limit1:
                    raise end_error("node_endpoints")
            if limit1 > end:
                raise end_error("FetchResponse")
            p = limit1
    if p > end:
        raise end_error("FetchResponse")
    return m


def _encode_response_v4(m: FetchResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            items2 = item1.aborted_transactions
            out += _p_ihqq(item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset)
            if items2 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(items2))
                for item2 in items2:
                    out += _p_qq(item2.producer_id, item2.first_offset)
            v1 = item1.records
            if v1 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(v1))
                out += v1
    return bytes(out)


def _encode_response_v5(m: FetchResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            items2 = item1.aborted_transactions
            out += _p_ihqqq(item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset)
            if items2 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(items2))
                for item2 in items2:
                    out += _p_qq(item2.producer_id, item2.first_offset)
            v1 = item1.records
            if v1 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(v1))
                out += v1
    return bytes(out)


def _encode_response_v7(m: FetchResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_ihii(m.throttle_time_ms, m.error_code, m.session_id, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            items2 = item1.aborted_transactions
            out += _p_ihqqq(item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset)
            if items2 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(items2))
                for item2 in items2:
                    out += _p_qq(item2.producer_id, item2.first_offset)
            v1 = item1.records
            if v1 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(v1))
                out += v1
    return bytes(out)


def _encode_response_v11(m: FetchResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_ihii(m.throttle_time_ms, m.error_code, m.session_id, len(items))
    for item in items:
        b = item.topic.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.partitions
        out += _p_i(len(items1))
        for item1 in items1:
            items2 = item1.aborted_transactions
            out += _p_ihqqq(item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset)
            if items2 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(items2))
                for item2 in items2:
                    out += _p_qq(item2.producer_id, item2.first_offset)
            out += _p_i(item1.preferred_read_replica)
            v1 = item1.records
            if v1 is None:
                out += _NULL_INT32
            else:
                out += _p_i(len(v1))
                out += v1
    return bytes(out)


def _encode_response_v12(m: FetchResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_ihi(m.throttle_time_ms, m.error_code, m.session_id)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.topic.encode()
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
            items2 = item1.aborted_transactions
            out += _p_ihqqq(item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset)
            if items2 is None:
                out += b"\x00"
            else:
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                for item2 in items2:
                    out += _p_qqx(item2.producer_id, item2.first_offset)
            out += _p_i(item1.preferred_read_replica)
            v1 = item1.records
            if v1 is None:
                out += b"\x00"
            else:
                n = len(v1) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += v1
            count = 0
            section = bytearray()
            t = item1.diverging_epoch
            if t is not None and (t.epoch != -1 or t.end_offset != -1):
                count += 1
                content = bytearray()
                content += _p_iqx(t.epoch, t.end_offset)
                section += encode_unsigned_varint(0)
                section += encode_unsigned_varint(len(content))
                section += content
            t1 = item1.current_leader
            if t1 is not None and (t1.leader_id != -1 or t1.leader_epoch != -1):
                count += 1
                content1 = bytearray()
                content1 += _p_iix(t1.leader_id, t1.leader_epoch)
                section += encode_unsigned_varint(1)
                section += encode_unsigned_varint(len(content1))
                section += content1
            t2 = item1.snapshot_id
            if t2 is not None and (t2.end_offset != -1 or t2.epoch != -1):
                count += 1
                content2 = bytearray()
                content2 += _p_qix(t2.end_offset, t2.epoch)
                section += encode_unsigned_varint(2)
                section += encode_unsigned_varint(len(content2))
                section += content2
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v13(m: FetchResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_ihi(m.throttle_time_ms, m.error_code, m.session_id)
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
            items2 = item1.aborted_transactions
            out += _p_ihqqq(item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset)
            if items2 is None:
                out += b"\x00"
            else:
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                for item2 in items2:
                    out += _p_qqx(item2.producer_id, item2.first_offset)
            out += _p_i(item1.preferred_read_replica)
            v = item1.records
            if v is None:
                out += b"\x00"
            else:
                n = len(v) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += v
            count = 0
            section = bytearray()
            t = item1.diverging_epoch
            if t is not None and (t.epoch != -1 or t.end_offset != -1):
                count += 1
                content = bytearray()
                content += _p_iqx(t.epoch, t.end_offset)
                section += encode_unsigned_varint(0)
                section += encode_unsigned_varint(len(content))
                section += content
            t1 = item1.current_leader
            if t1 is not None and (t1.leader_id != -1 or t1.leader_epoch != -1):
                count += 1
                content1 = bytearray()
                content1 += _p_iix(t1.leader_id, t1.leader_epoch)
                section += encode_unsigned_varint(1)
                section += encode_unsigned_varint(len(content1))
                section += content1
            t2 = item1.snapshot_id
            if t2 is not None and (t2.end_offset != -1 or t2.epoch != -1):
                count += 1
                content2 = bytearray()
                content2 += _p_qix(t2.end_offset, t2.epoch)
                section += encode_unsigned_varint(2)
                section += encode_unsigned_varint(len(content2))
                section += content2
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v16(m: FetchResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_ihi(m.throttle_time_ms, m.error_code, m.session_id)
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
            items2 = item1.aborted_transactions
            out += _p_ihqqq(item1.partition_index, item1.error_code, item1.high_watermark, item1.last_stable_offset, item1.log_start_offset)
            if items2 is None:
                out += b"\x00"
            else:
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                for item2 in items2:
                    out += _p_qqx(item2.producer_id, item2.first_offset)
            out += _p_i(item1.preferred_read_replica)
            v = item1.records
            if v is None:
                out += b"\x00"
            else:
                n = len(v) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += v
            count = 0
            section = bytearray()
            t = item1.diverging_epoch
            if t is not None and (t.epoch != -1 or t.end_offset != -1):
                count += 1
                content = bytearray()
                content += _p_iqx(t.epoch, t.end_offset)
                section += encode_unsigned_varint(0)
                section += encode_unsigned_varint(len(content))
                section += content
            t1 = item1.current_leader
            if t1 is not None and (t1.leader_id != -1 or t1.leader_epoch != -1):
                count += 1
                content1 = bytearray()
                content1 += _p_iix(t1.leader_id, t1.leader_epoch)
                section += encode_unsigned_varint(1)
                section += encode_unsigned_varint(len(content1))
                section += content1
            t2 = item1.snapshot_id
            if t2 is not None and (t2.end_offset != -1 or t2.epoch != -1):
                count += 1
                content2 = bytearray()
                content2 += _p_qix(t2.end_offset, t2.epoch)
                section += encode_unsigned_varint(2)
                section += encode_unsigned_varint(len(content2))
                section += content2
            out += encode_unsigned_varint(count)
            out += section
        out += b"\x00"
    count1 = 0
    section1 = bytearray()
    t3 = m.node_endpoints
    if t3:
        count1 += 1
        content3 = bytearray()
        items3 = t3
        n = len(items3) + 1
        if n < 128:
            content3.append(n)
        else:
            content3 += encode_unsigned_varint(n)
        for item3 in items3:
            b1 = item3.host.encode()
            content3 += _p_i(item3.node_id)
            n = len(b1) + 1
            if n < 128:
                content3.append(n)
            else:
                content3 += encode_unsigned_varint(n)
            content3 += b1
            content3 += _p_i(item3.port)
            v2 = item3.rack
            if v2 is None:
                content3 += b"\x00"
            else:
                b2 = v2.encode()
                n = len(b2) + 1
                if n < 128:
                    content3.append(n)
                else:
                    content3 += encode_unsigned_varint(n)
                content3 += b2
            content3 += b"\x00"
        section1 += encode_unsigned_varint(0)
        section1 += encode_unsigned_varint(len(content3))
        section1 += content3
    out += encode_unsigned_varint(count1)
    out += section1
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], FetchResponse]]] = {
    4: _decode_response_v4,
    5: _decode_response_v5,
    6: _decode_response_v5,
    7: _decode_response_v7,
    8: _decode_response_v7,
    9: _decode_response_v7,
    10: _decode_response_v7,
    11: _decode_response_v11,
    12: _decode_response_v12,
    13: _decode_response_v13,
    14: _decode_response_v13,
    15: _decode_response_v13,
    16: _decode_response_v16,
    17: _decode_response_v16,
    18: _decode_response_v16,
}


_response_encoders: Final[dict[int, Callable[[FetchResponse], bytes]]] = {
    4: _encode_response_v4,
    5: _encode_response_v5,
    6: _encode_response_v5,
    7: _encode_response_v7,
    8: _encode_response_v7,
    9: _encode_response_v7,
    10: _encode_response_v7,
    11: _encode_response_v11,
    12: _encode_response_v12,
    13: _encode_response_v13,
    14: _encode_response_v13,
    15: _encode_response_v13,
    16: _encode_response_v16,
    17: _encode_response_v16,
    18: _encode_response_v16,
}


def decode_response(data: bytes | memoryview, version: int) -> FetchResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("FetchResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("FetchResponse", version) from None


def encode_response(message: FetchResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"FetchResponse has no version {version} here")
    return encode(message)
