"""DescribeTransactions, API key 65, versions 0 alone, flexible from 0.

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

API_KEY: Final = 65
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_iqqh: Final = _Struct(">iqqh").pack
_u_hB: Final = _Struct(">hB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_iqqhB: Final = _Struct(">iqqhB").unpack_from


class DescribeTransactionsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "transactional_ids",
    )

    def __init__(
        self,
        *,
        transactional_ids: list[str] = EMPTY,
    ) -> None:
        self.transactional_ids: list[str] = [] if transactional_ids is EMPTY else transactional_ids


class TopicData(Message):
    """Part of DescribeTransactionsResponse, versions 0."""

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


class TransactionState(Message):
    """Part of DescribeTransactionsResponse, versions 0."""

    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.transactional_id: str = transactional_id
        self.transaction_state: str = transaction_state
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_start_time_ms: int = transaction_start_time_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.topics: list[TopicData] = [] if topics is EMPTY else topics


class DescribeTransactionsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "transaction_states",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.transaction_states: list[TransactionState] = [] if transaction_states is EMPTY else transaction_states


def _decode_request_v0(view: bytes | memoryview) -> DescribeTransactionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeTransactionsRequest.__new__(DescribeTransactionsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("transactional_ids")
    n -= 1
    if n > end - p:
        raise count_error("transactional_ids", n)
    left -= n
    if left < 0:
        raise limit_error("transactional_ids")
    items: list[str] = []
    m.transactional_ids = items
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
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeTransactionsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeTransactionsRequest")
    return m


def _encode_request_v0(m: DescribeTransactionsRequest) -> bytes:
    out = bytearray()
    items = m.transactional_ids
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
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeTransactionsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[DescribeTransactionsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeTransactionsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeTransactionsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeTransactionsRequest", version) from None


def encode_request(message: DescribeTransactionsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeTransactionsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeTransactionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeTransactionsResponse.__new__(DescribeTransactionsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("transaction_states")
    n -= 1
    if n * 28 > end - p:
        raise count_error("transaction_states", n)
    items: list[TransactionState] = []
    m.transaction_states = items
    for _ in range(n):
        item = TransactionState.__new__(TransactionState)
        item.error_code, n = _u_hB(data, p)
        p += 3
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("transactional_id")
        e = p + n - 1
        item.transactional_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("transaction_state")
        e = p + n - 1
        item.transaction_state = data[p:e].decode("utf-8", "replace")
        p = e
        item.transaction_timeout_ms, item.transaction_start_time_ms, item.producer_id, item.producer_epoch, n = _u_iqqhB(data, p)
        p += 23
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topics")
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        items1: list[TopicData] = []
        item.topics = items1
        for _ in range(n):
            item1 = TopicData.__new__(TopicData)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("topic")
            e = p + n - 1
            item1.topic = data[p:e].decode("utf-8", "replace")
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
        raise end_error("DescribeTransactionsResponse")
    return m


def _encode_response_v0(m: DescribeTransactionsResponse) -> bytes:
    out = bytearray()
    items = m.transaction_states
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.transactional_id.encode()
        out += _p_h(item.error_code)
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        b1 = item.transaction_state.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        items1 = item.topics
        out += _p_iqqh(item.transaction_timeout_ms, item.transaction_start_time_ms, item.producer_id, item.producer_epoch)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b2 = item1.topic.encode()
            n = len(b2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b2
            items2 = item1.partitions
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeTransactionsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[DescribeTransactionsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeTransactionsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeTransactionsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeTransactionsResponse", version) from None


def encode_response(message: DescribeTransactionsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeTransactionsResponse has no version {version} here")
    return encode(message)
