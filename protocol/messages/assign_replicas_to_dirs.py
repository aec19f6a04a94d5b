"""AssignReplicasToDirs, API key 73, versions 0 alone, flexible from 0.

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

API_KEY: Final = 73
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ih: Final = _Struct(">ih").pack
_p_ihx: Final = _Struct(">ihx").pack
_p_iq: Final = _Struct(">iq").pack
_p_ix: Final = _Struct(">ix").pack
_p_u: Final = _Struct(">16s").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class AssignReplicasToDirsRequestPartitionData(Message):
    """Part of AssignReplicasToDirsRequest, versions 0."""

    __slots__ = (
        "partition_index",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index


class AssignReplicasToDirsRequestTopicData(Message):
    """Part of AssignReplicasToDirsRequest, versions 0."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[AssignReplicasToDirsRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[AssignReplicasToDirsRequestPartitionData] = [] if partitions is EMPTY else partitions


class AssignReplicasToDirsRequestDirectoryData(Message):
    """Part of AssignReplicasToDirsRequest, versions 0."""

    __slots__ = (
        "id_",
        "topics",
    )

    def __init__(
        self,
        *,
        id_: UUID = NIL_UUID,
        topics: list[AssignReplicasToDirsRequestTopicData] = EMPTY,
    ) -> None:
        self.id_: UUID = id_
        self.topics: list[AssignReplicasToDirsRequestTopicData] = [] if topics is EMPTY else topics


class AssignReplicasToDirsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
        "directories",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequestDirectoryData] = EMPTY,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.directories: list[AssignReplicasToDirsRequestDirectoryData] = [] if directories is EMPTY else directories


class AssignReplicasToDirsResponsePartitionData(Message):
    """Part of AssignReplicasToDirsResponse, versions 0."""

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


class AssignReplicasToDirsResponseTopicData(Message):
    """Part of AssignReplicasToDirsResponse, versions 0."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[AssignReplicasToDirsResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[AssignReplicasToDirsResponsePartitionData] = [] if partitions is EMPTY else partitions


class AssignReplicasToDirsResponseDirectoryData(Message):
    """Part of AssignReplicasToDirsResponse, versions 0."""

    __slots__ = (
        "id_",
        "topics",
    )

    def __init__(
        self,
        *,
        id_: UUID = NIL_UUID,
        topics: list[AssignReplicasToDirsResponseTopicData] = EMPTY,
    ) -> None:
        self.id_: UUID = id_
        self.topics: list[AssignReplicasToDirsResponseTopicData] = [] if topics is EMPTY else topics


class AssignReplicasToDirsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "directories",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponseDirectoryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.directories: list[AssignReplicasToDirsResponseDirectoryData] = [] if directories is EMPTY else directories


def _decode_request_v0(view: bytes | memoryview) -> AssignReplicasToDirsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AssignReplicasToDirsRequest.__new__(AssignReplicasToDirsRequest)
    m.broker_id, m.broker_epoch, n = _u_iqB(data, p)
    p += 13
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("directories")
    n -= 1
    if n * 18 > end - p:
        raise count_error("directories", n)
    left -= n
    if left < 0:
        raise limit_error("directories")
    items: list[AssignReplicasToDirsRequestDirectoryData] = []
    m.directories = items
    for _ in range(n):
        item = AssignReplicasToDirsRequestDirectoryData.__new__(AssignReplicasToDirsRequestDirectoryData)
        u, n = _u_uB(data, p)
        p += 17
        item.id_ = uuid_from_bytes(u)
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
        items1: list[AssignReplicasToDirsRequestTopicData] = []
        item.topics = items1
        for _ in range(n):
            item1 = AssignReplicasToDirsRequestTopicData.__new__(AssignReplicasToDirsRequestTopicData)
            u1, n = _u_uB(data, p)
            p += 17
            item1.topic_id = uuid_from_bytes(u1)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 5 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            items2: list[AssignReplicasToDirsRequestPartitionData] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = AssignReplicasToDirsRequestPartitionData.__new__(AssignReplicasToDirsRequestPartitionData)
                item2.partition_index, n = _u_iB(data, p)
                p += 5
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("AssignReplicasToDirsRequestPartitionData")
                    p = skip_fields(data, p, n)
                items2.append(item2)
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AssignReplicasToDirsRequestTopicData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AssignReplicasToDirsRequestDirectoryData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AssignReplicasToDirsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AssignReplicasToDirsRequest")
    return m


def _encode_request_v0(m: AssignReplicasToDirsRequest) -> bytes:
    out = bytearray()
    items = m.directories
    out += _p_iq(m.broker_id, m.broker_epoch)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.topics
        out += _p_u(item.id_.bytes)
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
                out += _p_ix(item2.partition_index)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AssignReplicasToDirsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[AssignReplicasToDirsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> AssignReplicasToDirsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AssignReplicasToDirsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AssignReplicasToDirsRequest", version) from None


def encode_request(message: AssignReplicasToDirsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AssignReplicasToDirsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AssignReplicasToDirsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AssignReplicasToDirsResponse.__new__(AssignReplicasToDirsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("directories")
    n -= 1
    if n * 18 > end - p:
        raise count_error("directories", n)
    items: list[AssignReplicasToDirsResponseDirectoryData] = []
    m.directories = items
    for _ in range(n):
        item = AssignReplicasToDirsResponseDirectoryData.__new__(AssignReplicasToDirsResponseDirectoryData)
        u, n = _u_uB(data, p)
        p += 17
        item.id_ = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topics")
        n -= 1
        if n * 18 > end - p:
            raise count_error("topics", n)
        items1: list[AssignReplicasToDirsResponseTopicData] = []
        item.topics = items1
        for _ in range(n):
            item1 = AssignReplicasToDirsResponseTopicData.__new__(AssignReplicasToDirsResponseTopicData)
            u1, n = _u_uB(data, p)
            p += 17
            item1.topic_id = uuid_from_bytes(u1)
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("partitions")
            n -= 1
            if n * 7 > end - p:
                raise count_error("partitions", n)
            items2: list[AssignReplicasToDirsResponsePartitionData] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = AssignReplicasToDirsResponsePartitionData.__new__(AssignReplicasToDirsResponsePartitionData)
                item2.partition_index, item2.error_code, n = _u_ihB(data, p)
                p += 7
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
        raise end_error("AssignReplicasToDirsResponse")
    return m


def _encode_response_v0(m: AssignReplicasToDirsResponse) -> bytes:
    out = bytearray()
    items = m.directories
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.topics
        out += _p_u(item.id_.bytes)
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
                out += _p_ihx(item2.partition_index, item2.error_code)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AssignReplicasToDirsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[AssignReplicasToDirsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> AssignReplicasToDirsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AssignReplicasToDirsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AssignReplicasToDirsResponse", version) from None


def encode_response(message: AssignReplicasToDirsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AssignReplicasToDirsResponse has no version {version} here")
    return encode(message)
