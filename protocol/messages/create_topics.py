"""CreateTopics, API key 19, versions 2 to 7, flexible from 5.

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

API_KEY: Final = 19
MIN_VERSION: Final = 2
MAX_VERSION: Final = 7
FIRST_FLEXIBLE_VERSION: Final[int | None] = 5

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihi: Final = _Struct(">ihi").pack
_p_ii: Final = _Struct(">ii").pack
_p_iz: Final = _Struct(">i?").pack
_p_izx: Final = _Struct(">i?x").pack
_p_uh: Final = _Struct(">16sh").pack
_p_zbzx: Final = _Struct(">?b?x").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihi: Final = _Struct(">ihi").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_iz: Final = _Struct(">i?").unpack_from
_u_izB: Final = _Struct(">i?B").unpack_from
_u_uhB: Final = _Struct(">16shB").unpack_from
_u_zbzB: Final = _Struct(">?b?B").unpack_from


class CreatableReplicaAssignment(Message):
    """Part of CreateTopicsRequest, versions 2-7."""

    __slots__ = (
        "partition_index",
        "broker_ids",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] = EMPTY,
    ) -> None:
        self.partition_index: int = partition_index
        self.broker_ids: list[int] = [] if broker_ids is EMPTY else broker_ids


class CreatableTopicConfig(Message):
    """Part of CreateTopicsRequest, versions 2-7."""

    __slots__ = (
        "name",
        "value",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name: str = name
        self.value: str | None = value


class CreatableTopic(Message):
    """Part of CreateTopicsRequest, versions 2-7."""

    __slots__ = (
        "name",
        "num_partitions",
        "replication_factor",
        "assignments",
        "configs",
    )

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = EMPTY,
        configs: list[CreatableTopicConfig] = EMPTY,
    ) -> None:
        self.name: str = name
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.assignments: list[CreatableReplicaAssignment] = [] if assignments is EMPTY else assignments
        self.configs: list[CreatableTopicConfig] = [] if configs is EMPTY else configs


class CreateTopicsRequest(Message):
    """Body of the request, versions 2-7."""

    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] = EMPTY,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatableTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only


class CreatableTopicConfigs(Message):
    """Part of CreateTopicsResponse, versions 5-7."""

    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive


class CreatableTopicResult(Message):
    """Part of CreateTopicsResponse, versions 2-7."""

    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID = NIL_UUID,  # versions 7
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,  # versions 5-7, tag 0
        num_partitions: int = -1,  # versions 5-7
        replication_factor: int = -1,  # versions 5-7
        configs: list[CreatableTopicConfigs] | None = EMPTY,  # versions 5-7
    ) -> None:
        self.name: str = name
        self.topic_id: UUID = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topic_config_error_code: int = topic_config_error_code
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.configs: list[CreatableTopicConfigs] | None = [] if configs is EMPTY else configs


class CreateTopicsResponse(Message):
    """Body of the response, versions 2-7."""

    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[CreatableTopicResult] = [] if topics is EMPTY else topics


def _decode_request_v2(view: bytes | memoryview) -> CreateTopicsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreateTopicsRequest.__new__(CreateTopicsRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topics")
    if n * 16 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[CreatableTopic] = []
    m.topics = items
    for _ in range(n):
        item = CreatableTopic.__new__(CreatableTopic)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.num_partitions, item.replication_factor, n = _u_ihi(data, p)
        p += 10
        if n < 0:
            raise null_error("assignments")
        if n * 8 > end - p:
            raise count_error("assignments", n)
        left -= n
        if left < 0:
            raise limit_error("assignments")
        items1: list[CreatableReplicaAssignment] = []
        item.assignments = items1
        for _ in range(n):
            item1 = CreatableReplicaAssignment.__new__(CreatableReplicaAssignment)
            item1.partition_index, n = _u_ii(data, p)
            p += 8
            if n < 0:
                raise null_error("broker_ids")
            if n * 4 > end - p:
                raise count_error("broker_ids", n)
            left -= n
            if left < 0:
                raise limit_error("broker_ids")
            item1.broker_ids = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            items1.append(item1)
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("configs")
        if n * 4 > end - p:
            raise count_error("configs", n)
        left -= n
        if left < 0:
            raise limit_error("configs")
        items2: list[CreatableTopicConfig] = []
        item.configs = items2
        for _ in range(n):
            item2 = CreatableTopicConfig.__new__(CreatableTopicConfig)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("name")
            e = p + n
            item2.name = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                item2.value = None
            else:
                e = p + n
                item2.value = data[p:e].decode("utf-8", "replace")
                p = e
            items2.append(item2)
        items.append(item)
    m.timeout_ms, m.validate_only = _u_iz(data, p)
    p += 5
    if p > end:
        raise end_error("CreateTopicsRequest")
    return m


def _decode_request_v5(view: bytes | memoryview) -> CreateTopicsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreateTopicsRequest.__new__(CreateTopicsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 10 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[CreatableTopic] = []
    m.topics = items
    for _ in range(n):
        item = CreatableTopic.__new__(CreatableTopic)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.num_partitions, item.replication_factor, n = _u_ihB(data, p)
        p += 7
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("assignments")
        n -= 1
        if n * 6 > end - p:
            raise count_error("assignments", n)
        left -= n
        if left < 0:
            raise limit_error("assignments")
        items1: list[CreatableReplicaAssignment] = []
        item.assignments = items1
        for _ in range(n):
            item1 = CreatableReplicaAssignment.__new__(CreatableReplicaAssignment)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("broker_ids")
            n -= 1
            if n * 4 > end - p:
                raise count_error("broker_ids", n)
            left -= n
            if left < 0:
                raise limit_error("broker_ids")
            item1.broker_ids = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("CreatableReplicaAssignment")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("configs")
        n -= 1
        if n * 3 > end - p:
            raise count_error("configs", n)
        left -= n
        if left < 0:
            raise limit_error("configs")
        items2: list[CreatableTopicConfig] = []
        item.configs = items2
        for _ in range(n):
            item2 = CreatableTopicConfig.__new__(CreatableTopicConfig)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item2.name = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item2.value = None
            else:
                e = p + n - 1
                item2.value = data[p:e].decode("utf-8", "replace")
                p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("CreatableTopicConfig")
                p = skip_fields(data, p, n)
            items2.append(item2)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("CreatableTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    m.timeout_ms, m.validate_only, n = _u_izB(data, p)
    p += 6
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("CreateTopicsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreateTopicsRequest")
    return m


def _encode_request_v2(m: CreateTopicsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.assignments
        out += _p_ihi(item.num_partitions, item.replication_factor, len(items1))
        for item1 in items1:
            items2 = item1.broker_ids
            out += _p_ii(item1.partition_index, len(items2))
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
        items3 = item.configs
        out += _p_i(len(items3))
        for item2 in items3:
            b1 = item2.name.encode()
            out += _p_h(len(b1))
            out += b1
            v2 = item2.value
            if v2 is None:
                out += b"\xff\xff"
            else:
                b2 = v2.encode()
                out += _p_h(len(b2))
                out += b2
    out += _p_iz(m.timeout_ms, m.validate_only)
    return bytes(out)


def _encode_request_v5(m: CreateTopicsRequest) -> bytes:
    out = bytearray()
    items = m.topics
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
        items1 = item.assignments
        out += _p_ih(item.num_partitions, item.replication_factor)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            items2 = item1.broker_ids
            out += _p_i(item1.partition_index)
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
        items3 = item.configs
        n = len(items3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item2 in items3:
            b1 = item2.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            v2 = item2.value
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
            out += b"\x00"
        out += b"\x00"
    out += _p_izx(m.timeout_ms, m.validate_only)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], CreateTopicsRequest]]] = {
    2: _decode_request_v2,
    3: _decode_request_v2,
    4: _decode_request_v2,
    5: _decode_request_v5,
    6: _decode_request_v5,
    7: _decode_request_v5,
}


_request_encoders: Final[dict[int, Callable[[CreateTopicsRequest], bytes]]] = {
    2: _encode_request_v2,
    3: _encode_request_v2,
    4: _encode_request_v2,
    5: _encode_request_v5,
    6: _encode_request_v5,
    7: _encode_request_v5,
}


def decode_request(data: bytes | memoryview, version: int) -> CreateTopicsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("CreateTopicsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("CreateTopicsRequest", version) from None


def encode_request(message: CreateTopicsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"CreateTopicsRequest has no version {version} here")
    return encode(message)


def _decode_response_v2(view: bytes | memoryview) -> CreateTopicsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreateTopicsResponse.__new__(CreateTopicsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("topics")
    if n * 6 > end - p:
        raise count_error("topics", n)
    items: list[CreatableTopicResult] = []
    m.topics = items
    for _ in range(n):
        item = CreatableTopicResult.__new__(CreatableTopicResult)
        item.topic_id = NIL_UUID
        item.topic_config_error_code = 0
        item.num_partitions = -1
        item.replication_factor = -1
        item.configs = []
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.error_code, n = _u_hh(data, p)
        p += 4
        if n < 0:
            item.error_message = None
        else:
            e = p + n
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        items.append(item)
    if p > end:
        raise end_error("CreateTopicsResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> CreateTopicsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreateTopicsResponse.__new__(CreateTopicsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 12 > end - p:
        raise count_error("topics", n)
    items: list[CreatableTopicResult] = []
    m.topics = items
    for _ in range(n):
        item = CreatableTopicResult.__new__(CreatableTopicResult)
        item.topic_id = NIL_UUID
        item.topic_config_error_code = 0
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
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
        item.num_partitions, item.replication_factor, n = _u_ihB(data, p)
        p += 7
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.configs = None
        else:
            n -= 1
            if n * 6 > end - p:
                raise count_error("configs", n)
            items1: list[CreatableTopicConfigs] = []
            item.configs = items1
            for _ in range(n):
                item1 = CreatableTopicConfigs.__new__(CreatableTopicConfigs)
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
                    item1.value = None
                else:
                    e = p + n - 1
                    item1.value = data[p:e].decode("utf-8", "replace")
                    p = e
                item1.read_only, item1.config_source, item1.is_sensitive, n = _u_zbzB(data, p)
                p += 4
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
            for _ in range(n):
                tag, p = decode_unsigned_varint(data, p)
                limit, p = decode_unsigned_varint(data, p)
                limit += p
                if tag == 0:
                    item.topic_config_error_code, = _u_h(data, p)
                    p += 2
                    if p > limit:
                        raise end_error("topic_config_error_code")
                if limit > end:
                    raise end_error("CreatableTopicResult")
                p = limit
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreateTopicsResponse")
    return m


def _decode_response_v7(view: bytes | memoryview) -> CreateTopicsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreateTopicsResponse.__new__(CreateTopicsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 28 > end - p:
        raise count_error("topics", n)
    items: list[CreatableTopicResult] = []
    m.topics = items
    for _ in range(n):
        item = CreatableTopicResult.__new__(CreatableTopicResult)
        item.topic_config_error_code = 0
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        u, item.error_code, n = _u_uhB(data, p)
        p += 19
        item.topic_id = uuid_from_bytes(u)
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.error_message = None
        else:
            e = p + n - 1
            item.error_message = data[p:e].decode("utf-8", "replace")
            p = e
        item.num_partitions, item.replication_factor, n = _u_ihB(data, p)
        p += 7
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.configs = None
        else:
            n -= 1
            if n * 6 > end - p:
                raise count_error("configs", n)
            items1: list[CreatableTopicConfigs] = []
            item.configs = items1
            for _ in range(n):
                item1 = CreatableTopicConfigs.__new__(CreatableTopicConfigs)
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
                    item1.value = None
                else:
                    e = p + n - 1
                    item1.value = data[p:e].decode("utf-8", "replace")
                    p = e
                item1.read_only, item1.config_source, item1.is_sensitive, n = _u_zbzB(data, p)
                p += 4
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
            for _ in range(n):
                tag, p = decode_unsigned_varint(data, p)
                limit, p = decode_unsigned_varint(data, p)
                limit += p
                if tag == 0:
                    item.topic_config_error_code, = _u_h(data, p)
                    p += 2
                    if p > limit:
                        raise end_error("topic_config_error_code")
                if limit > end:
                    raise end_error("CreatableTopicResult")
                p = limit
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreateTopicsResponse")
    return m


def _encode_response_v2(m: CreateTopicsResponse) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        out += _p_h(item.error_code)
        v1 = item.error_message
        if v1 is None:
            out += b"\xff\xff"
        else:
            b1 = v1.encode()
            out += _p_h(len(b1))
            out += b1
    return bytes(out)


def _encode_response_v5(m: CreateTopicsResponse) -> bytes:
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
        out += _p_h(item.error_code)
        v1 = item.error_message
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
        items1 = item.configs
        out += _p_ih(item.num_partitions, item.replication_factor)
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
                v3 = item1.value
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
                out += _p_zbzx(item1.read_only, item1.config_source, item1.is_sensitive)
        count = 0
        section = bytearray()
        t = item.topic_config_error_code
        if t != 0:
            count += 1
            content = bytearray()
            content += _p_h(t)
            section += encode_unsigned_varint(0)
            section += encode_unsigned_varint(len(content))
            section += content
        out += encode_unsigned_varint(count)
        out += section
    out += b"\x00"
    return bytes(out)


def _encode_response_v7(m: CreateTopicsResponse) -> bytes:
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
        out += _p_uh(item.topic_id.bytes, item.error_code)
        v1 = item.error_message
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
        items1 = item.configs
        out += _p_ih(item.num_partitions, item.replication_factor)
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
                v3 = item1.value
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
                out += _p_zbzx(item1.read_only, item1.config_source, item1.is_sensitive)
        count = 0
        section = bytearray()
        t = item.topic_config_error_code
        if t != 0:
            count += 1
            content = bytearray()
            content += _p_h(t)
            section += encode_unsigned_varint(0)
            section += encode_unsigned_varint(len(content))
            section += content
        out += encode_unsigned_varint(count)
        out += section
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], CreateTopicsResponse]]] = {
    2: _decode_response_v2,
    3: _decode_response_v2,
    4: _decode_response_v2,
    5: _decode_response_v5,
    6: _decode_response_v5,
    7: _decode_response_v7,
}


_response_encoders: Final[dict[int, Callable[[CreateTopicsResponse], bytes]]] = {
    2: _encode_response_v2,
    3: _encode_response_v2,
    4: _encode_response_v2,
    5: _encode_response_v5,
    6: _encode_response_v5,
    7: _encode_response_v7,
}


def decode_response(data: bytes | memoryview, version: int) -> CreateTopicsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("CreateTopicsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("CreateTopicsResponse", version) from None


def encode_response(message: CreateTopicsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"CreateTopicsResponse has no version {version} here")
    return encode(message)
