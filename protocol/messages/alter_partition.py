"""AlterPartition, API key 56, versions 2 to 3, flexible from 2.

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

API_KEY: Final = 56
MIN_VERSION: Final = 2
MAX_VERSION: Final = 3
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_bix: Final = _Struct(">bix").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihii: Final = _Struct(">ihii").pack
_p_ii: Final = _Struct(">ii").pack
_p_iq: Final = _Struct(">iq").pack
_p_iqx: Final = _Struct(">iqx").pack
_p_u: Final = _Struct(">16s").pack
_u_biB: Final = _Struct(">biB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihiiB: Final = _Struct(">ihiiB").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_iqB: Final = _Struct(">iqB").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from


class BrokerState(Message):
    """Part of AlterPartitionRequest, versions 3."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch


class AlterPartitionRequestPartitionData(Message):
    """Part of AlterPartitionRequest, versions 2-3."""

    __slots__ = (
        "partition_index",
        "leader_epoch",
        "new_isr_with_epochs",
        "leader_recovery_state",
        "partition_epoch",
        "new_isr",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr_with_epochs: list[BrokerState] = EMPTY,  # versions 3
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
        new_isr: list[int] = EMPTY,  # versions 2
    ) -> None:
        self.partition_index: int = partition_index
        self.leader_epoch: int = leader_epoch
        self.new_isr_with_epochs: list[BrokerState] = [] if new_isr_with_epochs is EMPTY else new_isr_with_epochs
        self.leader_recovery_state: int = leader_recovery_state
        self.partition_epoch: int = partition_epoch
        self.new_isr: list[int] = [] if new_isr is EMPTY else new_isr


class AlterPartitionRequestTopicData(Message):
    """Part of AlterPartitionRequest, versions 2-3."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[AlterPartitionRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[AlterPartitionRequestPartitionData] = [] if partitions is EMPTY else partitions


class AlterPartitionRequest(Message):
    """Body of the request, versions 2-3."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
        "topics",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequestTopicData] = EMPTY,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.topics: list[AlterPartitionRequestTopicData] = [] if topics is EMPTY else topics


class AlterPartitionResponsePartitionData(Message):
    """Part of AlterPartitionResponse, versions 2-3."""

    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
        "isr",
        "leader_recovery_state",
        "partition_epoch",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.isr: list[int] = [] if isr is EMPTY else isr
        self.leader_recovery_state: int = leader_recovery_state
        self.partition_epoch: int = partition_epoch


class AlterPartitionResponseTopicData(Message):
    """Part of AlterPartitionResponse, versions 2-3."""

    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        *,
        topic_id: UUID = NIL_UUID,
        partitions: list[AlterPartitionResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_id: UUID = topic_id
        self.partitions: list[AlterPartitionResponsePartitionData] = [] if partitions is EMPTY else partitions


class AlterPartitionResponse(Message):
    """Body of the response, versions 2-3."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponseTopicData] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: list[AlterPartitionResponseTopicData] = [] if topics is EMPTY else topics


def _decode_request_v2(view: bytes | memoryview) -> AlterPartitionRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterPartitionRequest.__new__(AlterPartitionRequest)
    m.broker_id, m.broker_epoch, n = _u_iqB(data, p)
    p += 13
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
    items: list[AlterPartitionRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = AlterPartitionRequestTopicData.__new__(AlterPartitionRequestTopicData)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 15 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[AlterPartitionRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AlterPartitionRequestPartitionData.__new__(AlterPartitionRequestPartitionData)
            item1.new_isr_with_epochs = []
            item1.partition_index, item1.leader_epoch, n = _u_iiB(data, p)
            p += 9
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("new_isr")
            n -= 1
            if n * 4 > end - p:
                raise count_error("new_isr", n)
            left -= n
            if left < 0:
                raise limit_error("new_isr")
            item1.new_isr = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            item1.leader_recovery_state, item1.partition_epoch, n = _u_biB(data, p)
            p += 6
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AlterPartitionRequestPartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AlterPartitionRequestTopicData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AlterPartitionRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AlterPartitionRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> AlterPartitionRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterPartitionRequest.__new__(AlterPartitionRequest)
    m.broker_id, m.broker_epoch, n = _u_iqB(data, p)
    p += 13
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
    items: list[AlterPartitionRequestTopicData] = []
    m.topics = items
    for _ in range(n):
        item = AlterPartitionRequestTopicData.__new__(AlterPartitionRequestTopicData)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 15 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[AlterPartitionRequestPartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AlterPartitionRequestPartitionData.__new__(AlterPartitionRequestPartitionData)
            item1.new_isr = []
            item1.partition_index, item1.leader_epoch, n = _u_iiB(data, p)
            p += 9
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("new_isr_with_epochs")
            n -= 1
            if n * 13 > end - p:
                raise count_error("new_isr_with_epochs", n)
            left -= n
            if left < 0:
                raise limit_error("new_isr_with_epochs")
            items2: list[BrokerState] = []
            item1.new_isr_with_epochs = items2
            for _ in range(n):
                item2 = BrokerState.__new__(BrokerState)
                item2.broker_id, item2.broker_epoch, n = _u_iqB(data, p)
                p += 13
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    left -= n
                    if left < 0:
                        raise limit_error("BrokerState")
                    p = skip_fields(data, p, n)
                items2.append(item2)
            item1.leader_recovery_state, item1.partition_epoch, n = _u_biB(data, p)
            p += 6
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AlterPartitionRequestPartitionData")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AlterPartitionRequestTopicData")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AlterPartitionRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AlterPartitionRequest")
    return m


def _encode_request_v2(m: AlterPartitionRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iq(m.broker_id, m.broker_epoch)
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
            items2 = item1.new_isr
            out += _p_ii(item1.partition_index, item1.leader_epoch)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += _p_bix(item1.leader_recovery_state, item1.partition_epoch)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v3(m: AlterPartitionRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iq(m.broker_id, m.broker_epoch)
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
            items2 = item1.new_isr_with_epochs
            out += _p_ii(item1.partition_index, item1.leader_epoch)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_iqx(item2.broker_id, item2.broker_epoch)
            out += _p_bix(item1.leader_recovery_state, item1.partition_epoch)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterPartitionRequest]]] = {
    2: _decode_request_v2,
    3: _decode_request_v3,
}


_request_encoders: Final[dict[int, Callable[[AlterPartitionRequest], bytes]]] = {
    2: _encode_request_v2,
    3: _encode_request_v3,
}


def decode_request(data: bytes | memoryview, version: int) -> AlterPartitionRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AlterPartitionRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterPartitionRequest", version) from None


def encode_request(message: AlterPartitionRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterPartitionRequest has no version {version} here")
    return encode(message)


def _decode_response_v2(view: bytes | memoryview) -> AlterPartitionResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterPartitionResponse.__new__(AlterPartitionResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 18 > end - p:
        raise count_error("topics", n)
    items: list[AlterPartitionResponseTopicData] = []
    m.topics = items
    for _ in range(n):
        item = AlterPartitionResponseTopicData.__new__(AlterPartitionResponseTopicData)
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("partitions")
        n -= 1
        if n * 21 > end - p:
            raise count_error("partitions", n)
        items1: list[AlterPartitionResponsePartitionData] = []
        item.partitions = items1
        for _ in range(n):
            item1 = AlterPartitionResponsePartitionData.__new__(AlterPartitionResponsePartitionData)
            item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch, n = _u_ihiiB(data, p)
            p += 15
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("isr")
            n -= 1
            if n * 4 > end - p:
                raise count_error("isr", n)
            item1.isr = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            item1.leader_recovery_state, item1.partition_epoch, n = _u_biB(data, p)
            p += 6
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
        raise end_error("AlterPartitionResponse")
    return m


def _encode_response_v2(m: AlterPartitionResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ih(m.throttle_time_ms, m.error_code)
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
            items2 = item1.isr
            out += _p_ihii(item1.partition_index, item1.error_code, item1.leader_id, item1.leader_epoch)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += _p_bix(item1.leader_recovery_state, item1.partition_epoch)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterPartitionResponse]]] = {
    2: _decode_response_v2,
    3: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[AlterPartitionResponse], bytes]]] = {
    2: _encode_response_v2,
    3: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> AlterPartitionResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AlterPartitionResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterPartitionResponse", version) from None


def encode_response(message: AlterPartitionResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterPartitionResponse has no version {version} here")
    return encode(message)
