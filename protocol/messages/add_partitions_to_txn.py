"""AddPartitionsToTxn, API key 24, versions 0 to 5, flexible from 3.

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

API_KEY: Final = 24
MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FIRST_FLEXIBLE_VERSION: Final[int | None] = 3

_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ihx: Final = _Struct(">ihx").pack
_p_ii: Final = _Struct(">ii").pack
_p_qh: Final = _Struct(">qh").pack
_p_qhi: Final = _Struct(">qhi").pack
_p_qhz: Final = _Struct(">qh?").pack
_u_h: Final = _Struct(">h").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_qhB: Final = _Struct(">qhB").unpack_from
_u_qhi: Final = _Struct(">qhi").unpack_from
_u_qhzB: Final = _Struct(">qh?B").unpack_from


class AddPartitionsToTxnTopic(Message):
    """Part of AddPartitionsToTxnRequest, versions 0-5."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions


class AddPartitionsToTxnTransaction(Message):
    """Part of AddPartitionsToTxnRequest, versions 4-5."""

    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "verify_only",
        "topics",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.verify_only: bool = verify_only
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is EMPTY else topics


class AddPartitionsToTxnRequest(Message):
    """Body of the request, versions 0-5."""

    __slots__ = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY,  # versions 4-5
        v3_and_below_transactional_id: str = "",  # versions 0-3
        v3_and_below_producer_id: int = 0,  # versions 0-3
        v3_and_below_producer_epoch: int = 0,  # versions 0-3
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY,  # versions 0-3
    ) -> None:
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is EMPTY else transactions
        self.v3_and_below_transactional_id: str = v3_and_below_transactional_id
        self.v3_and_below_producer_id: int = v3_and_below_producer_id
        self.v3_and_below_producer_epoch: int = v3_and_below_producer_epoch
        self.v3_and_below_topics: list[AddPartitionsToTxnTopic] = [] if v3_and_below_topics is EMPTY else v3_and_below_topics


class AddPartitionsToTxnPartitionResult(Message):
    """Part of AddPartitionsToTxnResponse, versions 0-5."""

    __slots__ = (
        "partition_index",
        "partition_error_code",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_error_code: int = partition_error_code


class AddPartitionsToTxnTopicResult(Message):
    """Part of AddPartitionsToTxnResponse, versions 0-5."""

    __slots__ = (
        "name",
        "results_by_partition",
    )

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY,
    ) -> None:
        self.name: str = name
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = [] if results_by_partition is EMPTY else results_by_partition


class AddPartitionsToTxnResult(Message):
    """Part of AddPartitionsToTxnResponse, versions 4-5."""

    __slots__ = (
        "transactional_id",
        "topic_results",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.topic_results: list[AddPartitionsToTxnTopicResult] = [] if topic_results is EMPTY else topic_results


class AddPartitionsToTxnResponse(Message):
    """Body of the response, versions 0-5."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results_by_transaction",
        "results_by_topic_v3_and_below",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # versions 4-5
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY,  # versions 4-5
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY,  # versions 0-3
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results_by_transaction: list[AddPartitionsToTxnResult] = [] if results_by_transaction is EMPTY else results_by_transaction
        self.results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = [] if results_by_topic_v3_and_below is EMPTY else results_by_topic_v3_and_below


def _decode_request_v0(view: bytes | memoryview) -> AddPartitionsToTxnRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AddPartitionsToTxnRequest.__new__(AddPartitionsToTxnRequest)
    m.transactions = []
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("v3_and_below_transactional_id")
    e = p + n
    m.v3_and_below_transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.v3_and_below_producer_id, m.v3_and_below_producer_epoch, n = _u_qhi(data, p)
    p += 14
    if n < 0:
        raise null_error("v3_and_below_topics")
    if n * 6 > end - p:
        raise count_error("v3_and_below_topics", n)
    left -= n
    if left < 0:
        raise limit_error("v3_and_below_topics")
    items: list[AddPartitionsToTxnTopic] = []
    m.v3_and_below_topics = items
    for _ in range(n):
        item = AddPartitionsToTxnTopic.__new__(AddPartitionsToTxnTopic)
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
        if n * 4 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        item.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        items.append(item)
    if p > end:
        raise end_error("AddPartitionsToTxnRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> AddPartitionsToTxnRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AddPartitionsToTxnRequest.__new__(AddPartitionsToTxnRequest)
    m.transactions = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("v3_and_below_transactional_id")
    e = p + n - 1
    m.v3_and_below_transactional_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.v3_and_below_producer_id, m.v3_and_below_producer_epoch, n = _u_qhB(data, p)
    p += 11
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("v3_and_below_topics")
    n -= 1
    if n * 3 > end - p:
        raise count_error("v3_and_below_topics", n)
    left -= n
    if left < 0:
        raise limit_error("v3_and_below_topics")
    items: list[AddPartitionsToTxnTopic] = []
    m.v3_and_below_topics = items
    for _ in range(n):
        item = AddPartitionsToTxnTopic.__new__(AddPartitionsToTxnTopic)
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
        if n * 4 > end - p:
            raise count_error("partitions", n)
        left -= n
        if left < 0:
            raise limit_error("partitions")
        item.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
        p += n * 4
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AddPartitionsToTxnTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AddPartitionsToTxnRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AddPartitionsToTxnRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> AddPartitionsToTxnRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AddPartitionsToTxnRequest.__new__(AddPartitionsToTxnRequest)
    m.v3_and_below_transactional_id = ""
    m.v3_and_below_producer_id = 0
    m.v3_and_below_producer_epoch = 0
    m.v3_and_below_topics = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("transactions")
    n -= 1
    if n * 14 > end - p:
        raise count_error("transactions", n)
    left -= n
    if left < 0:
        raise limit_error("transactions")
    items: list[AddPartitionsToTxnTransaction] = []
    m.transactions = items
    for _ in range(n):
        item = AddPartitionsToTxnTransaction.__new__(AddPartitionsToTxnTransaction)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("transactional_id")
        e = p + n - 1
        item.transactional_id = data[p:e].decode("utf-8", "replace")
        p = e
        item.producer_id, item.producer_epoch, item.verify_only, n = _u_qhzB(data, p)
        p += 12
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
        items1: list[AddPartitionsToTxnTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = AddPartitionsToTxnTopic.__new__(AddPartitionsToTxnTopic)
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
                raise null_error("partitions")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partitions", n)
            left -= n
            if left < 0:
                raise limit_error("partitions")
            item1.partitions = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("AddPartitionsToTxnTopic")
                p = skip_fields(data, p, n)
            items1.append(item1)
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("AddPartitionsToTxnTransaction")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AddPartitionsToTxnRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AddPartitionsToTxnRequest")
    return m


def _encode_request_v0(m: AddPartitionsToTxnRequest) -> bytes:
    out = bytearray()
    b = m.v3_and_below_transactional_id.encode()
    out += _p_h(len(b))
    out += b
    items = m.v3_and_below_topics
    out += _p_qhi(m.v3_and_below_producer_id, m.v3_and_below_producer_epoch, len(items))
    for item in items:
        b1 = item.name.encode()
        out += _p_h(len(b1))
        out += b1
        items1 = item.partitions
        out += _p_i(len(items1))
        n = len(items1)
        out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
    return bytes(out)


def _encode_request_v3(m: AddPartitionsToTxnRequest) -> bytes:
    out = bytearray()
    b = m.v3_and_below_transactional_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    items = m.v3_and_below_topics
    out += _p_qh(m.v3_and_below_producer_id, m.v3_and_below_producer_epoch)
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
        n = len(items1)
        out += PACK_INT32[n](*items1) if n < SMALL else pack(f">{n}i", *items1)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_request_v4(m: AddPartitionsToTxnRequest) -> bytes:
    out = bytearray()
    items = m.transactions
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.transactional_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topics
        out += _p_qhz(item.producer_id, item.producer_epoch, item.verify_only)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b1 = item1.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
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


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AddPartitionsToTxnRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v0,
    2: _decode_request_v0,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v4,
}


_request_encoders: Final[dict[int, Callable[[AddPartitionsToTxnRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v0,
    2: _encode_request_v0,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v4,
}


def decode_request(data: bytes | memoryview, version: int) -> AddPartitionsToTxnRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AddPartitionsToTxnRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AddPartitionsToTxnRequest", version) from None


def encode_request(message: AddPartitionsToTxnRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AddPartitionsToTxnRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AddPartitionsToTxnResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AddPartitionsToTxnResponse.__new__(AddPartitionsToTxnResponse)
    m.error_code = 0
    m.results_by_transaction = []
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("results_by_topic_v3_and_below")
    if n * 6 > end - p:
        raise count_error("results_by_topic_v3_and_below", n)
    items: list[AddPartitionsToTxnTopicResult] = []
    m.results_by_topic_v3_and_below = items
    for _ in range(n):
        item = AddPartitionsToTxnTopicResult.__new__(AddPartitionsToTxnTopicResult)
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
            raise null_error("results_by_partition")
        if n * 6 > end - p:
            raise count_error("results_by_partition", n)
        items1: list[AddPartitionsToTxnPartitionResult] = []
        item.results_by_partition = items1
        for _ in range(n):
            item1 = AddPartitionsToTxnPartitionResult.__new__(AddPartitionsToTxnPartitionResult)
            item1.partition_index, item1.partition_error_code = _u_ih(data, p)
            p += 6
            items1.append(item1)
        items.append(item)
    if p > end:
        raise end_error("AddPartitionsToTxnResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> AddPartitionsToTxnResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AddPartitionsToTxnResponse.__new__(AddPartitionsToTxnResponse)
    m.error_code = 0
    m.results_by_transaction = []
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results_by_topic_v3_and_below")
    n -= 1
    if n * 3 > end - p:
        raise count_error("results_by_topic_v3_and_below", n)
    items: list[AddPartitionsToTxnTopicResult] = []
    m.results_by_topic_v3_and_below = items
    for _ in range(n):
        item = AddPartitionsToTxnTopicResult.__new__(AddPartitionsToTxnTopicResult)
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
            raise null_error("results_by_partition")
        n -= 1
        if n * 7 > end - p:
            raise count_error("results_by_partition", n)
        items1: list[AddPartitionsToTxnPartitionResult] = []
        item.results_by_partition = items1
        for _ in range(n):
            item1 = AddPartitionsToTxnPartitionResult.__new__(AddPartitionsToTxnPartitionResult)
            item1.partition_index, item1.partition_error_code, n = _u_ihB(data, p)
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
        raise end_error("AddPartitionsToTxnResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> AddPartitionsToTxnResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AddPartitionsToTxnResponse.__new__(AddPartitionsToTxnResponse)
    m.results_by_topic_v3_and_below = []
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results_by_transaction")
    n -= 1
    if n * 3 > end - p:
        raise count_error("results_by_transaction", n)
    items: list[AddPartitionsToTxnResult] = []
    m.results_by_transaction = items
    for _ in range(n):
        item = AddPartitionsToTxnResult.__new__(AddPartitionsToTxnResult)
        n = data[p]
        p += 1
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
            raise null_error("topic_results")
        n -= 1
        if n * 3 > end - p:
            raise count_error("topic_results", n)
        items1: list[AddPartitionsToTxnTopicResult] = []
        item.topic_results = items1
        for _ in range(n):
            item1 = AddPartitionsToTxnTopicResult.__new__(AddPartitionsToTxnTopicResult)
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
                raise null_error("results_by_partition")
            n -= 1
            if n * 7 > end - p:
                raise count_error("results_by_partition", n)
            items2: list[AddPartitionsToTxnPartitionResult] = []
            item1.results_by_partition = items2
            for _ in range(n):
                item2 = AddPartitionsToTxnPartitionResult.__new__(AddPartitionsToTxnPartitionResult)
                item2.partition_index, item2.partition_error_code, n = _u_ihB(data, p)
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
        raise end_error("AddPartitionsToTxnResponse")
    return m


def _encode_response_v0(m: AddPartitionsToTxnResponse) -> bytes:
    out = bytearray()
    items = m.results_by_topic_v3_and_below
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        b = item.name.encode()
        out += _p_h(len(b))
        out += b
        items1 = item.results_by_partition
        out += _p_i(len(items1))
        for item1 in items1:
            out += _p_ih(item1.partition_index, item1.partition_error_code)
    return bytes(out)


def _encode_response_v3(m: AddPartitionsToTxnResponse) -> bytes:
    out = bytearray()
    items = m.results_by_topic_v3_and_below
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
        items1 = item.results_by_partition
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_ihx(item1.partition_index, item1.partition_error_code)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v4(m: AddPartitionsToTxnResponse) -> bytes:
    out = bytearray()
    items = m.results_by_transaction
    out += _p_ih(m.throttle_time_ms, m.error_code)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.transactional_id.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        items1 = item.topic_results
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b1 = item1.name.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
            items2 = item1.results_by_partition
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            for item2 in items2:
                out += _p_ihx(item2.partition_index, item2.partition_error_code)
            out += b"\x00"
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AddPartitionsToTxnResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v4,
}


_response_encoders: Final[dict[int, Callable[[AddPartitionsToTxnResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v4,
}


def decode_response(data: bytes | memoryview, version: int) -> AddPartitionsToTxnResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AddPartitionsToTxnResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AddPartitionsToTxnResponse", version) from None


def encode_response(message: AddPartitionsToTxnResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AddPartitionsToTxnResponse has no version {version} here")
    return encode(message)
