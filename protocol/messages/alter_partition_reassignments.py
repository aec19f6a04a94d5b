"""AlterPartitionReassignments, API key 45, versions 0 to 1, flexible from 0.

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

API_KEY: Final = 45
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_iz: Final = _Struct(">i?").pack
_p_izh: Final = _Struct(">i?h").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_izB: Final = _Struct(">i?B").unpack_from
_u_izhB: Final = _Struct(">i?hB").unpack_from


class ReassignablePartition(Message):
    """Part of AlterPartitionReassignmentsRequest, versions 0-1."""

    __slots__ = (
        "partition_index",
        "replicas",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] | None = replicas


class ReassignableTopic(Message):
    """Part of AlterPartitionReassignmentsRequest, versions 0-1."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartition] = [] if partitions is EMPTY else partitions


class AlterPartitionReassignmentsRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "timeout_ms",
        "allow_replication_factor_change",
        "topics",
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,  # versions 1
        topics: list[ReassignableTopic] = EMPTY,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.topics: list[ReassignableTopic] = [] if topics is EMPTY else topics


class ReassignablePartitionResponse(Message):
    """Part of AlterPartitionReassignmentsResponse, versions 0-1."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class ReassignableTopicResponse(Message):
    """Part of AlterPartitionReassignmentsResponse, versions 0-1."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartitionResponse] = [] if partitions is EMPTY else partitions


class AlterPartitionReassignmentsResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,  # versions 1
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[ReassignableTopicResponse] = [] if responses is EMPTY else responses


def _decode_request_v0(view: bytes | memoryview) -> AlterPartitionReassignmentsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterPartitionReassignmentsRequest.__new__(AlterPartitionReassignmentsRequest)
    m.allow_replication_factor_change = True
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
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
    items: list[ReassignableTopic] = []
    m.topics = items
    for _ in range(n):
        item = ReassignableTopic.__new__(ReassignableTopic)
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
        if n * 6 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[ReassignablePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ReassignablePartition.__new__(ReassignablePartition)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.replicas = None
            else:
                n -= 1
                if n * 4 > end - p:
                    raise count_error("replicas", n)
                left -= n
                if left < 0:
                    raise limit_error("replicas")
                item1.replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("ReassignablePartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ReassignableTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AlterPartitionReassignmentsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AlterPartitionReassignmentsRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> AlterPartitionReassignmentsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterPartitionReassignmentsRequest.__new__(AlterPartitionReassignmentsRequest)
    m.timeout_ms, m.allow_replication_factor_change, n = _u_izB(data, p)
    p += 6
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
    items: list[ReassignableTopic] = []
    m.topics = items
    for _ in range(n):
        item = ReassignableTopic.__new__(ReassignableTopic)
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
        if n * 6 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        items1: list[ReassignablePartition] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ReassignablePartition.__new__(ReassignablePartition)
            item1.partition_index, n = _u_iB(data, p)
            p += 5
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                item1.replicas = None
            else:
                n -= 1
                if n * 4 > end - p:
                    raise count_error("replicas", n)
                left -= n
                if left < 0:
                    raise limit_error("replicas")
                item1.replicas = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
                p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("ReassignablePartition")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ReassignableTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AlterPartitionReassignmentsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AlterPartitionReassignmentsRequest")
    return m


def _encode_request_v0(m: AlterPartitionReassignmentsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_i(m.timeout_ms)
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
            items2 = item1.replicas
            out += _p_i(item1.partition_index)
            if items2 is None:
                out += b"\x00"
            else:
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items2)
                out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v1(m: AlterPartitionReassignmentsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    out += _p_iz(m.timeout_ms, m.allow_replication_factor_change)
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
            items2 = item1.replicas
            out += _p_i(item1.partition_index)
            if items2 is None:
                out += b"\x00"
            else:
                n = len(items2) + 1
                if n < 128:
                    out.append(n)
                else:
                    out += encode_unsigned_varint(n)
                n = len(items2)
                out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterPartitionReassignmentsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[AlterPartitionReassignmentsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> AlterPartitionReassignmentsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AlterPartitionReassignmentsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterPartitionReassignmentsRequest", version) from None


def encode_request(message: AlterPartitionReassignmentsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterPartitionReassignmentsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AlterPartitionReassignmentsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterPartitionReassignmentsResponse.__new__(AlterPartitionReassignmentsResponse)
    m.allow_replication_factor_change = True
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
    if n * 3 > end - p:
        raise count_error("responses", n)
    items: list[ReassignableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = ReassignableTopicResponse.__new__(ReassignableTopicResponse)
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
        if n * 8 > end - p:
            raise count_error("partitions", n)
        items1: list[ReassignablePartitionResponse] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ReassignablePartitionResponse.__new__(ReassignablePartitionResponse)
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
        raise end_error("AlterPartitionReassignmentsResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> AlterPartitionReassignmentsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterPartitionReassignmentsResponse.__new__(AlterPartitionReassignmentsResponse)
    m.throttle_time_ms, m.allow_replication_factor_change, m.error_code, n = _u_izhB(data, p)
    p += 8
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
    if n * 3 > end - p:
        raise count_error("responses", n)
    items: list[ReassignableTopicResponse] = []
    m.responses = items
    for _ in range(n):
        item = ReassignableTopicResponse.__new__(ReassignableTopicResponse)
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
        if n * 8 > end - p:
            raise count_error("partitions", n)
        items1: list[ReassignablePartitionResponse] = []
        item.partitions = items1
        for _ in range(n):
            item1 = ReassignablePartitionResponse.__new__(ReassignablePartitionResponse)
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
        raise end_error("AlterPartitionReassignmentsResponse")
    return m


def _encode_response_v0(m: AlterPartitionReassignmentsResponse) -> bytes:
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
        b1 = item.name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_ih(item1.partition_index, item1.error_code)
            v2 = item1.error_message
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
    out += b"\x00"
    return bytes(out)


def _encode_response_v1(m: AlterPartitionReassignmentsResponse) -> bytes:
    out = bytearray()
    out += _p_izh(m.throttle_time_ms, m.allow_replication_factor_change, m.error_code)
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
        b1 = item.name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items1 = item.partitions
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_ih(item1.partition_index, item1.error_code)
            v2 = item1.error_message
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
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterPartitionReassignmentsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[AlterPartitionReassignmentsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> AlterPartitionReassignmentsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AlterPartitionReassignmentsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterPartitionReassignmentsResponse", version) from None


def encode_response(message: AlterPartitionReassignmentsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterPartitionReassignmentsResponse has no version {version} here")
    return encode(message)
