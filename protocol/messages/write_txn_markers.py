"""WriteTxnMarkers, API key 27, versions 1 to 2, flexible from 1.

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

API_KEY: Final = 27
MIN_VERSION: Final = 1
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 1

_p_ibx: Final = _Struct(">ibx").pack
_p_ihx: Final = _Struct(">ihx").pack
_p_ix: Final = _Struct(">ix").pack
_p_q: Final = _Struct(">q").pack
_p_qhz: Final = _Struct(">qh?").pack
_u_iB: Final = _Struct(">iB").unpack_from
_u_ibB: Final = _Struct(">ibB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_qB: Final = _Struct(">qB").unpack_from
_u_qhzB: Final = _Struct(">qh?B").unpack_from


class WritableTxnMarkerTopic(Message):
    """Part of WriteTxnMarkersRequest, versions 1-2."""

    __slots__ = (
        "name",
        "partition_indexes",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes


class WritableTxnMarker(Message):
    """Part of WriteTxnMarkersRequest, versions 1-2."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = EMPTY,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,  # versions 2
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.transaction_result: bool = transaction_result
        self.topics: list[WritableTxnMarkerTopic] = [] if topics is EMPTY else topics
        self.coordinator_epoch: int = coordinator_epoch
        self.transaction_version: int = transaction_version


class WriteTxnMarkersRequest(Message):
    """Body of the request, versions 1-2."""

    __slots__ = (
        "markers",
    )

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] = EMPTY,
    ) -> None:
        self.markers: list[WritableTxnMarker] = [] if markers is EMPTY else markers


class WritableTxnMarkerPartitionResult(Message):
    """Part of WriteTxnMarkersResponse, versions 1-2."""

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


class WritableTxnMarkerTopicResult(Message):
    """Part of WriteTxnMarkersResponse, versions 1-2."""

    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[WritableTxnMarkerPartitionResult] = [] if partitions is EMPTY else partitions


class WritableTxnMarkerResult(Message):
    """Part of WriteTxnMarkersResponse, versions 1-2."""

    __slots__ = (
        "producer_id",
        "topics",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = EMPTY,
    ) -> None:
        self.producer_id: int = producer_id
        self.topics: list[WritableTxnMarkerTopicResult] = [] if topics is EMPTY else topics


class WriteTxnMarkersResponse(Message):
    """Body of the response, versions 1-2."""

    __slots__ = (
        "markers",
    )

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] = EMPTY,
    ) -> None:
        self.markers: list[WritableTxnMarkerResult] = [] if markers is EMPTY else markers


def _decode_request_v1(view: bytes | memoryview) -> WriteTxnMarkersRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = WriteTxnMarkersRequest.__new__(WriteTxnMarkersRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("markers")
    n -= 1
    if n * 17 > end - p:
        raise count_error("markers", n)
    left -= n
    if left < 0:
        raise limit_error("markers")
    items: list[WritableTxnMarker] = []
    m.markers = items
    for _ in range(n):
        item = WritableTxnMarker.__new__(WritableTxnMarker)
        item.transaction_version = 0
        item.producer_id, item.producer_epoch, item.transaction_result, n = _u_qhzB(data, p)
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
        items1: list[WritableTxnMarkerTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = WritableTxnMarkerTopic.__new__(WritableTxnMarkerTopic)
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
                raise null_error("partition_indexes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partition_indexes", n)
            left -= n
            if left < 0:
                raise limit_error("partition_indexes")
            item1.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("WritableTxnMarkerTopic")
                p = skip_fields(data, p, n)
            items1.append(item1)
        item.coordinator_epoch, n = _u_iB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("WritableTxnMarker")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("WriteTxnMarkersRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("WriteTxnMarkersRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> WriteTxnMarkersRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = WriteTxnMarkersRequest.__new__(WriteTxnMarkersRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("markers")
    n -= 1
    if n * 18 > end - p:
        raise count_error("markers", n)
    left -= n
    if left < 0:
        raise limit_error("markers")
    items: list[WritableTxnMarker] = []
    m.markers = items
    for _ in range(n):
        item = WritableTxnMarker.__new__(WritableTxnMarker)
        item.producer_id, item.producer_epoch, item.transaction_result, n = _u_qhzB(data, p)
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
        items1: list[WritableTxnMarkerTopic] = []
        item.topics = items1
        for _ in range(n):
            item1 = WritableTxnMarkerTopic.__new__(WritableTxnMarkerTopic)
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
                raise null_error("partition_indexes")
            n -= 1
            if n * 4 > end - p:
                raise count_error("partition_indexes", n)
            left -= n
            if left < 0:
                raise limit_error("partition_indexes")
            item1.partition_indexes = list(UNPACK_INT32[n](data, p)) if n < SMALL else list(unpack_from(f">{n}i", data, p))
            p += n * 4
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("WritableTxnMarkerTopic")
                p = skip_fields(data, p, n)
            items1.append(item1)
        item.coordinator_epoch, item.transaction_version, n = _u_ibB(data, p)
        p += 6
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("WritableTxnMarker")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("WriteTxnMarkersRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("WriteTxnMarkersRequest")
    return m


def _encode_request_v1(m: WriteTxnMarkersRequest) -> bytes:
    out = bytearray()
    items = m.markers
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.topics
        out += _p_qhz(item.producer_id, item.producer_epoch, item.transaction_result)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b = item1.name.encode()
            n = len(b) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b
            items2 = item1.partition_indexes
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
        out += _p_ix(item.coordinator_epoch)
    out += b"\x00"
    return bytes(out)


def _encode_request_v2(m: WriteTxnMarkersRequest) -> bytes:
    out = bytearray()
    items = m.markers
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.topics
        out += _p_qhz(item.producer_id, item.producer_epoch, item.transaction_result)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b = item1.name.encode()
            n = len(b) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b
            items2 = item1.partition_indexes
            n = len(items2) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            n = len(items2)
            out += PACK_INT32[n](*items2) if n < SMALL else pack(f">{n}i", *items2)
            out += b"\x00"
        out += _p_ibx(item.coordinator_epoch, item.transaction_version)
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], WriteTxnMarkersRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[WriteTxnMarkersRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> WriteTxnMarkersRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("WriteTxnMarkersRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("WriteTxnMarkersRequest", version) from None


def encode_request(message: WriteTxnMarkersRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"WriteTxnMarkersRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> WriteTxnMarkersResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = WriteTxnMarkersResponse.__new__(WriteTxnMarkersResponse)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("markers")
    n -= 1
    if n * 10 > end - p:
        raise count_error("markers", n)
    items: list[WritableTxnMarkerResult] = []
    m.markers = items
    for _ in range(n):
        item = WritableTxnMarkerResult.__new__(WritableTxnMarkerResult)
        item.producer_id, n = _u_qB(data, p)
        p += 9
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topics")
        n -= 1
        if n * 3 > end - p:
            raise count_error("topics", n)
        items1: list[WritableTxnMarkerTopicResult] = []
        item.topics = items1
        for _ in range(n):
            item1 = WritableTxnMarkerTopicResult.__new__(WritableTxnMarkerTopicResult)
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
            if n * 7 > end - p:
                raise count_error("partitions", n)
            items2: list[WritableTxnMarkerPartitionResult] = []
            item1.partitions = items2
            for _ in range(n):
                item2 = WritableTxnMarkerPartitionResult.__new__(WritableTxnMarkerPartitionResult)
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
        raise end_error("WriteTxnMarkersResponse")
    return m


def _encode_response_v1(m: WriteTxnMarkersResponse) -> bytes:
    out = bytearray()
    items = m.markers
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        items1 = item.topics
        out += _p_q(item.producer_id)
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b = item1.name.encode()
            n = len(b) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b
            items2 = item1.partitions
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], WriteTxnMarkersResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v1,
}


_response_encoders: Final[dict[int, Callable[[WriteTxnMarkersResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v1,
}


def decode_response(data: bytes | memoryview, version: int) -> WriteTxnMarkersResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("WriteTxnMarkersResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("WriteTxnMarkersResponse", version) from None


def encode_response(message: WriteTxnMarkersResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"WriteTxnMarkersResponse has no version {version} here")
    return encode(message)
