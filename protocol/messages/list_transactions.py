"""ListTransactions, API key 66, versions 0 to 2, flexible from 0.

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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
)

API_KEY: Final = 66
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ih: Final = _Struct(">ih").pack
_p_q: Final = _Struct(">q").pack
_p_qx: Final = _Struct(">qx").pack
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_qB: Final = _Struct(">qB").unpack_from


class ListTransactionsRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "state_filters",
        "producer_id_filters",
        "duration_filter",
        "transactional_id_pattern",
    )

    def __init__(
        self,
        *,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,  # versions 1-2
        transactional_id_pattern: str | None = None,  # versions 2
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters: list[int] = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter: int = duration_filter
        self.transactional_id_pattern: str | None = transactional_id_pattern


class TransactionState(Message):
    """Part of ListTransactionsResponse, versions 0-2."""

    __slots__ = (
        "transactional_id",
        "producer_id",
        "transaction_state",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.transaction_state: str = transaction_state


class ListTransactionsResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "unknown_state_filters",
        "transaction_states",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states: list[TransactionState] = [] if transaction_states is EMPTY else transaction_states


def _decode_request_v0(view: bytes | memoryview) -> ListTransactionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListTransactionsRequest.__new__(ListTransactionsRequest)
    m.duration_filter = -1
    m.transactional_id_pattern = None
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("state_filters")
    n -= 1
    if n > end - p:
        raise count_error("state_filters", n)
    left -= n
    if left < 0:
        raise limit_error("state_filters")
    items: list[str] = []
    m.state_filters = items
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("producer_id_filters")
    n -= 1
    if n * 8 > end - p:
        raise count_error("producer_id_filters", n)
    left -= n
    if left < 0:
        raise limit_error("producer_id_filters")
    m.producer_id_filters = list(unpack_from(f">{n}q", data, p))
    p += n * 8
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListTransactionsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListTransactionsRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> ListTransactionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListTransactionsRequest.__new__(ListTransactionsRequest)
    m.transactional_id_pattern = None
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("state_filters")
    n -= 1
    if n > end - p:
        raise count_error("state_filters", n)
    left -= n
    if left < 0:
        raise limit_error("state_filters")
    items: list[str] = []
    m.state_filters = items
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("producer_id_filters")
    n -= 1
    if n * 8 > end - p:
        raise count_error("producer_id_filters", n)
    left -= n
    if left < 0:
        raise limit_error("producer_id_filters")
    m.producer_id_filters = list(unpack_from(f">{n}q", data, p))
    p += n * 8
    m.duration_filter, n = _u_qB(data, p)
    p += 9
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListTransactionsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListTransactionsRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> ListTransactionsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = ListTransactionsRequest.__new__(ListTransactionsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("state_filters")
    n -= 1
    if n > end - p:
        raise count_error("state_filters", n)
    left -= n
    if left < 0:
        raise limit_error("state_filters")
    items: list[str] = []
    m.state_filters = items
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("producer_id_filters")
    n -= 1
    if n * 8 > end - p:
        raise count_error("producer_id_filters", n)
    left -= n
    if left < 0:
        raise limit_error("producer_id_filters")
    m.producer_id_filters = list(unpack_from(f">{n}q", data, p))
    p += n * 8
    m.duration_filter, n = _u_qB(data, p)
    p += 9
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.transactional_id_pattern = None
    else:
        e = p + n - 1
        m.transactional_id_pattern = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("ListTransactionsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("ListTransactionsRequest")
    return m


def _encode_request_v0(m: ListTransactionsRequest) -> bytes:
    out = bytearray()
    items = m.state_filters
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
    items1 = m.producer_id_filters
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    n = len(items1)
    out += pack(f">{n}q", *items1)
    out += b"\x00"
    return bytes(out)


def _encode_request_v1(m: ListTransactionsRequest) -> bytes:
    out = bytearray()
    items = m.state_filters
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
    items1 = m.producer_id_filters
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    n = len(items1)
    out += pack(f">{n}q", *items1)
    out += _p_qx(m.duration_filter)
    return bytes(out)


def _encode_request_v2(m: ListTransactionsRequest) -> bytes:
    out = bytearray()
    items = m.state_filters
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
    items1 = m.producer_id_filters
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    n = len(items1)
    out += pack(f">{n}q", *items1)
    out += _p_q(m.duration_filter)
    v1 = m.transactional_id_pattern
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
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], ListTransactionsRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[ListTransactionsRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> ListTransactionsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("ListTransactionsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListTransactionsRequest", version) from None


def encode_request(message: ListTransactionsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListTransactionsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> ListTransactionsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = ListTransactionsResponse.__new__(ListTransactionsResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("unknown_state_filters")
    n -= 1
    if n > end - p:
        raise count_error("unknown_state_filters", n)
    items: list[str] = []
    m.unknown_state_filters = items
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("transaction_states")
    n -= 1
    if n * 11 > end - p:
        raise count_error("transaction_states", n)
    items1: list[TransactionState] = []
    m.transaction_states = items1
    for _ in range(n):
        item1 = TransactionState.__new__(TransactionState)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("transactional_id")
        e = p + n - 1
        item1.transactional_id = data[p:e].decode("utf-8", "replace")
        p = e
        item1.producer_id, n = _u_qB(data, p)
        p += 9
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("transaction_state")
        e = p + n - 1
        item1.transaction_state = data[p:e].decode("utf-8", "replace")
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
    if p > end:
        raise end_error("ListTransactionsResponse")
    return m


def _encode_response_v0(m: ListTransactionsResponse) -> bytes:
    out = bytearray()
    items = m.unknown_state_filters
    out += _p_ih(m.throttle_time_ms, m.error_code)
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
    items1 = m.transaction_states
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        b1 = item1.transactional_id.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        b2 = item1.transaction_state.encode()
        out += _p_q(item1.producer_id)
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], ListTransactionsResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[ListTransactionsResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> ListTransactionsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("ListTransactionsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("ListTransactionsResponse", version) from None


def encode_response(message: ListTransactionsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"ListTransactionsResponse has no version {version} here")
    return encode(message)
