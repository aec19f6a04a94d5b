"""ShareAcknowledge, API key 79, versions 1 to 2, flexible from 1.

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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 79
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_iixx: Final = _Struct(">iixx").pack
_p_iz: Final = _Struct(">i?").pack
_p_qq: Final = _Struct(">qq").pack
_p_u: Final = _Struct(">16s").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_izB: Final = _Struct(">i?B").unpack_from
_u_qqB: Final = _Struct(">qqB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class AcknowledgementBatch(Message):
    """Part of ShareAcknowledgeRequest, versions 1-2."""

    __slots__ = (
        "first_offset",
        "last_offset",
        "acknowledge_types",
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = EMPTY,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.acknowledge_types: list[int] = [] if acknowledge_types is EMPTY else acknowledge_types


class AcknowledgePartition(Message):
    """Part of ShareAcknowledgeRequest, versions 1-2."""

    __slots__ = (
        "partition_index",
        "acknowledgement_batches",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.acknowledgement_batches: list[AcknowledgementBatch] = [] if acknowledgement_batches is EMPTY else acknowledgement_batches


class AcknowledgeTopic(Message):
    """Part of ShareAcknowledgeRequest, versions 1-2."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[AcknowledgePartition] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[AcknowledgePartition] = [] if partitions is EMPTY else partitions


class ShareAcknowledgeRequest(Message):
    """Body of the request, versions 1-2."""

    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "is_renew_ack",
        "topics",
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,  # versions 2
        topics: list[AcknowledgeTopic] = EMPTY,
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[AcknowledgeTopic] = [] if topics is EMPTY else topics


class LeaderIdAndEpoch(Message):
    """Part of ShareAcknowledgeResponse, versions 1-2."""

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


class PartitionData(Message):
    """Part of ShareAcknowledgeResponse, versions 1-2."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "current_leader",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader


class ShareAcknowledgeTopicResponse(Message):
    """Part of ShareAcknowledgeResponse, versions 1-2."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[PartitionData] = [] if partitions is EMPTY else partitions


class NodeEndpoint(Message):
    """Part of ShareAcknowledgeResponse, versions 1-2."""

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


class ShareAcknowledgeResponse(Message):
    """Body of the response, versions 1-2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,  # versions 2
        responses: list[ShareAcknowledgeTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: list[ShareAcknowledgeTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _decode_request_v1(view: bytes | memoryview) -> ShareAcknowledgeRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ShareAcknowledgeRequest.__new__(ShareAcknowledgeRequest)
    m.is_renew_ack = False
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_id = None
    else:
        e = p + n - 1
        m.group_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.member_id = None
    else:
        e = p + n - 1
        m.member_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.share_session_epoch, n = _u_iB(data, p)
    p += 5
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
    items: list[AcknowledgeTopic] = []
    m.topics = items
    for _ in range(n):
        item = AcknowledgeTopic.__new__(AcknowledgeTopic)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 6 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[AcknowledgePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AcknowledgePartition.__new__(AcknowledgePartition)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("acknowledgement_batches")
            n -= 1
            if n * 18 > end - p:
                raise count_error("acknowledgement_batches", n)
            left -= n
            if left < 0:
                raise limit_error("acknowledgement_batches")
            items2: list[AcknowledgementBatch] = []
            item1.acknowledgement_batches = items2
            for _ in range(n):
                item2 = AcknowledgementBatch.__new__(AcknowledgementBatch)
                item2.first_offset, item2.last_offset, n = _u_qqB(data, p)
                p += 17
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("acknowledge_types")
                n -= 1
                if n > end - p:
                    raise count_error("acknowledge_types", n)
                left -= n
                if left < 0:
                    raise limit_error("acknowledge_types")
                item2.acknowledge_types = list(unpack_from(f">{n}b", data, p))
                p += n
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("AcknowledgementBatch")
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AcknowledgePartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AcknowledgeTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ShareAcknowledgeRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ShareAcknowledgeRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> ShareAcknowledgeRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ShareAcknowledgeRequest.__new__(ShareAcknowledgeRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.group_id = None
    else:
        e = p + n - 1
        m.group_id = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.member_id = None
    else:
        e = p + n - 1
        m.member_id = data[p:e].decode("utf-8", "replace")
        p = e
    m.share_session_epoch, m.is_renew_ack, n = _u_izB(data, p)
    p += 6
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
    items: list[AcknowledgeTopic] = []
    m.topics = items
    for _ in range(n):
        item = AcknowledgeTopic.__new__(AcknowledgeTopic)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 6 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[AcknowledgePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AcknowledgePartition.__new__(AcknowledgePartition)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("acknowledgement_batches")
            n -= 1
            if n * 18 > end - p:
                raise count_error("acknowledgement_batches", n)
            left -= n
            if left < 0:
                raise limit_error("acknowledgement_batches")
            items2: list[AcknowledgementBatch] = []
            item1.acknowledgement_batches = items2
            for _ in range(n):
                item2 = AcknowledgementBatch.__new__(AcknowledgementBatch)
                item2.first_offset, item2.last_offset, n = _u_qqB(data, p)
                p += 17
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("acknowledge_types")
                n -= 1
                if n > end - p:
                    raise count_error("acknowledge_types", n)
                left -= n
                if left < 0:
                    raise limit_error("acknowledge_types")
                item2.acknowledge_types = list(unpack_from(f">{n}b", data, p))
                p += n
                n = data[p]
                p += 1
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("AcknowledgementBatch")
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AcknowledgePartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AcknowledgeTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ShareAcknowledgeRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ShareAcknowledgeRequest")
    return m


def _encode_request_v1(m: ShareAcknowledgeRequest) -> bytes:
    out = bytearray()
    v = m.group_id
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
    v1 = m.member_id
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
    items = m.topics
    out += _p_i(m.share_session_epoch)
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
            items2 = item1.acknowledgement_batches
            out += _p_i(item1.partition_index)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                items3 = item2.acknowledge_types
                out += _p_qq(item2.first_offset, item2.last_offset)
                n = len(items3) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items3)
                out += pack(f">{n}b", *items3)
                out += b"\x00"
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v2(m: ShareAcknowledgeRequest) -> bytes:
    out = bytearray()
    v = m.group_id
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
    v1 = m.member_id
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
    items = m.topics
    out += _p_iz(m.share_session_epoch, m.is_renew_ack)
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
            items2 = item1.acknowledgement_batches
            out += _p_i(item1.partition_index)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                items3 = item2.acknowledge_types
                out += _p_qq(item2.first_offset, item2.last_offset)
                n = len(items3) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items3)
                out += pack(f">{n}b", *items3)
                out += b"\x00"
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ShareAcknowledgeRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[ShareAcknowledgeRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> ShareAcknowledgeRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ShareAcknowledgeRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ShareAcknowledgeRequest", version) from None


def encode_request(message: ShareAcknowledgeRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ShareAcknowledgeRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> ShareAcknowledgeResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ShareAcknowledgeResponse.__new__(ShareAcknowledgeResponse)
    m.acquisition_lock_timeout_ms = 0
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
        raise null_error("responses")
    n -= 1
    if n * 18 > end - p:
        raise count_error("responses", n)
    items: list[ShareAcknowledgeTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = ShareAcknowledgeTopicResponse.__new__(ShareAcknowledgeTopicResponse)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 17 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.partition_index, item1.error_code, n = _u_ihB(data, p)
            p += 7
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.error_message = None
            else:
                e = p + n - 1
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            s = LeaderIdAndEpoch.__new__(LeaderIdAndEpoch)
            s.leader_id, s.leader_epoch, n = _u_iiB(data, p)
            p += 9
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item1.current_leader = s
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
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("node_endpoints")
    n -= 1
    if n * 11 > end - p:
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
        item2.host = data[p:e].decode("utf-8", "replace")
        p = e
        item2.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item2.rack = None
        else:
            e = p + n - 1
            item2.rack = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
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
    if p > end:
        raise end_error("ShareAcknowledgeResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> ShareAcknowledgeResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ShareAcknowledgeResponse.__new__(ShareAcknowledgeResponse)
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
    m.acquisition_lock_timeout_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 18 > end - p:
        raise count_error("responses", n)
    items: list[ShareAcknowledgeTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = ShareAcknowledgeTopicResponse.__new__(ShareAcknowledgeTopicResponse)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 17 > end - p:
            raise count_error("partitions", n)
        items1: list[PartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = PartitionData.__new__(PartitionData)
            item1.partition_index, item1.error_code, n = _u_ihB(data, p)
            p += 7
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.error_message = None
            else:
                e = p + n - 1
                item1.error_message = data[p:e].decode("utf-8", "replace")
                p = e
            s = LeaderIdAndEpoch.__new__(LeaderIdAndEpoch)
            s.leader_id, s.leader_epoch, n = _u_iiB(data, p)
            p += 9
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                p = skip_fields(data, p, n)
            item1.current_leader = s
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
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("node_endpoints")
    n -= 1
    if n * 11 > end - p:
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
        item2.host = data[p:e].decode("utf-8", "replace")
        p = e
        item2.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item2.rack = None
        else:
            e = p + n - 1
            item2.rack = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
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
    if p > end:
        raise end_error("ShareAcknowledgeResponse")
    return m


def _encode_response_v1(m: ShareAcknowledgeResponse) -> bytes:
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
    items = m.responses
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
            out += _p_ih(item1.partition_index, item1.error_code)
            v1 = item1.error_message
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
            s = item1.current_leader
            out += _p_iixx(s.leader_id, s.leader_epoch)
        out += b"\x00"
    items2 = m.node_endpoints
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        b2 = item2.host.encode()
        out += _p_i(item2.node_id)
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_i(item2.port)
        v3 = item2.rack
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
    return bytes(out)


def _encode_response_v2(m: ShareAcknowledgeResponse) -> bytes:
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
    items = m.responses
    out += _p_i(m.acquisition_lock_timeout_ms)
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
            out += _p_ih(item1.partition_index, item1.error_code)
            v1 = item1.error_message
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
            s = item1.current_leader
            out += _p_iixx(s.leader_id, s.leader_epoch)
        out += b"\x00"
    items2 = m.node_endpoints
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        b2 = item2.host.encode()
        out += _p_i(item2.node_id)
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_i(item2.port)
        v3 = item2.rack
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
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ShareAcknowledgeResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[ShareAcknowledgeResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> ShareAcknowledgeResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ShareAcknowledgeResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ShareAcknowledgeResponse", version) from None


def encode_response(message: ShareAcknowledgeResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ShareAcknowledgeResponse has no version {version} here")
    return encode(message)
