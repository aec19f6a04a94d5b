"""TxnOffsetCommit, API key 28, versions 0 to 5, flexible from 3.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
)

API_KEY: Final = 28
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FIRST_FLEXIBLE_VERSION: Final[int | None] = 3

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihx: Final = _Struct(">ihx").pack
_p_ii: Final = _Struct(">ii").pack
_p_iq: Final = _Struct(">iq").pack
_p_iqi: Final = _Struct(">iqi").pack
_p_qhi: Final = _Struct(">qhi").pack
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iqh: Final = _Struct(">iqh").unpack_from
_u_iqiB: Final = _Struct(">iqiB").unpack_from
_u_iqih: Final = _Struct(">iqih").unpack_from
_u_qhi: Final = _Struct(">qhi").unpack_from
_u_qhiB: Final = _Struct(">qhiB").unpack_from


class TxnOffsetCommitRequestPartition(Message):
    """Part of TxnOffsetCommitRequest, versions 0-5."""

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
        committed_leader_epoch: int = -1,  # versions 2-5
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata


class TxnOffsetCommitRequestTopic(Message):
    """Part of TxnOffsetCommitRequest, versions 0-5."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[TxnOffsetCommitRequestPartition] = [] if partitions is EMPTY else partitions


class TxnOffsetCommitRequest(Message):
    """Body of the request, versions 0-5."""

    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,  # versions 3-5
        member_id: str = "",  # versions 3-5
        group_instance_id: str | None = None,  # versions 3-5
        topics: list[TxnOffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.group_id: str = group_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.topics: list[TxnOffsetCommitRequestTopic] = [] if topics is EMPTY else topics


class TxnOffsetCommitResponsePartition(Message):
    """Part of TxnOffsetCommitResponse, versions 0-5."""

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


class TxnOffsetCommitResponseTopic(Message):
    """Part of TxnOffsetCommitResponse, versions 0-5."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[TxnOffsetCommitResponsePartition] = [] if partitions is EMPTY else partitions


class TxnOffsetCommitResponse(Message):
    """Body of the response, versions 0-5."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TxnOffsetCommitResponseTopic] = [] if topics is EMPTY else topics


def _decode_request_v0(view: bytes | memoryview) -> TxnOffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = TxnOffsetCommitRequest.__new__(TxnOffsetCommitRequest)
    m.generation_id = -1
    m.member_id = ""
    m.group_instance_id = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("transactional_id")
    e = p + n
    m.transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.producer_id, m.producer_epoch, n = _u_qhi(data, p)
    p += 14
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[TxnOffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = TxnOffsetCommitRequestTopic.__new__(TxnOffsetCommitRequestTopic)
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
        items1: list[TxnOffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = TxnOffsetCommitRequestPartition.__new__(TxnOffsetCommitRequestPartition)
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
        raise end_error("TxnOffsetCommitRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> TxnOffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = TxnOffsetCommitRequest.__new__(TxnOffsetCommitRequest)
    m.generation_id = -1
    m.member_id = ""
    m.group_instance_id = None
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("transactional_id")
    e = p + n
    m.transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("group_id")
    e = p + n
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.producer_id, m.producer_epoch, n = _u_qhi(data, p)
    p += 14
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[TxnOffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = TxnOffsetCommitRequestTopic.__new__(TxnOffsetCommitRequestTopic)
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
        items1: list[TxnOffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = TxnOffsetCommitRequestPartition.__new__(TxnOffsetCommitRequestPartition)
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
        raise end_error("TxnOffsetCommitRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> TxnOffsetCommitRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = TxnOffsetCommitRequest.__new__(TxnOffsetCommitRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("transactional_id")
    e = p + n - 1
    m.transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.producer_id, m.producer_epoch, m.generation_id, n = _u_qhiB(data, p)
    p += 15
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
    items: list[TxnOffsetCommitRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = TxnOffsetCommitRequestTopic.__new__(TxnOffsetCommitRequestTopic)
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
        items1: list[TxnOffsetCommitRequestPartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = TxnOffsetCommitRequestPartition.__new__(TxnOffsetCommitRequestPartition)
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
                    raise limit_error("TxnOffsetCommitRequestPartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("TxnOffsetCommitRequestTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("TxnOffsetCommitRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("TxnOffsetCommitRequest")
    return m


def _encode_request_v0(m: TxnOffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.transactional_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.group_id.encode()
    out += _p_h(len(b1))
    out += b1
    items = m.topics
    out += _p_qhi(m.producer_id, m.producer_epoch, len(items))
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


def _encode_request_v2(m: TxnOffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.transactional_id.encode()
    out += _p_h(len(b))
    out += b
    b1 = m.group_id.encode()
    out += _p_h(len(b1))
    out += b1
    items = m.topics
    out += _p_qhi(m.producer_id, m.producer_epoch, len(items))
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


def _encode_request_v3(m: TxnOffsetCommitRequest) -> bytes:
    out = bytearray()
    b = m.transactional_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.group_id.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    b2 = m.member_id.encode()
    out += _p_qhi(m.producer_id, m.producer_epoch, m.generation_id)
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    v3 = m.group_instance_id
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
    items = m.topics
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b4 = item.name.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_iqi(item1.partition_index, item1.committed_offset, item1.committed_leader_epoch)
            v5 = item1.committed_metadata
            if v5 is None:
                out += b"\x00"
            else:
                b5 = v5.encode()
                n = len(b5) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                out += b5
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], TxnOffsetCommitRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v2,
    3: _decode_request_v3,
    4: _decode_request_v3,
    5: _decode_request_v3,
}


_request_encoders: Final[dict[int, Callable[[TxnOffsetCommitRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v2,
    3: _encode_request_v3,
    4: _encode_request_v3,
    5: _encode_request_v3,
}


def decode_request(data: bytes | memoryview, version: int) -> TxnOffsetCommitRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("TxnOffsetCommitRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("TxnOffsetCommitRequest", version) from None


def encode_request(message: TxnOffsetCommitRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"TxnOffsetCommitRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> TxnOffsetCommitResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = TxnOffsetCommitResponse.__new__(TxnOffsetCommitResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[TxnOffsetCommitResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = TxnOffsetCommitResponseTopic.__new__(TxnOffsetCommitResponseTopic)
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
        items1: list[TxnOffsetCommitResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = TxnOffsetCommitResponsePartition.__new__(TxnOffsetCommitResponsePartition)
            item1.partition_index, item1.error_code = _u_ih(data, p)
            p += 6
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("TxnOffsetCommitResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> TxnOffsetCommitResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = TxnOffsetCommitResponse.__new__(TxnOffsetCommitResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("topics", n)
    items: list[TxnOffsetCommitResponseTopic] = []
    m.topics = items
    for _ in range(n):
        item = TxnOffsetCommitResponseTopic.__new__(TxnOffsetCommitResponseTopic)
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
        items1: list[TxnOffsetCommitResponsePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = TxnOffsetCommitResponsePartition.__new__(TxnOffsetCommitResponsePartition)
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
        raise end_error("TxnOffsetCommitResponse")
    return m


def _encode_response_v0(m: TxnOffsetCommitResponse) -> bytes:
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


def _encode_response_v3(m: TxnOffsetCommitResponse) -> bytes:
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], TxnOffsetCommitResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
    3: _decode_response_v3,
    4: _decode_response_v3,
    5: _decode_response_v3,
}


_response_encoders: Final[dict[int, Callable[[TxnOffsetCommitResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
    3: _encode_response_v3,
    4: _encode_response_v3,
    5: _encode_response_v3,
}


def decode_response(data: bytes | memoryview, version: int) -> TxnOffsetCommitResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("TxnOffsetCommitResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("TxnOffsetCommitResponse", version) from None


def encode_response(message: TxnOffsetCommitResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"TxnOffsetCommitResponse has no version {version} here")
    return encode(message)
