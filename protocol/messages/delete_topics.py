"""DeleteTopics, API key 20, versions 1 to 6, flexible from 4.

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

API_KEY: Final = 20
MIN_VERSION: Final = 1
MAX_VERSION: Final = 6
FIRST_FLEXIBLE_VERSION: Final[int | None] = 4

_p_h: Final = _Struct(">h").pack
_p_hx: Final = _Struct(">hx").pack
_p_i: Final = _Struct(">i").pack
_p_ii: Final = _Struct(">ii").pack
_p_ix: Final = _Struct(">ix").pack
_p_uh: Final = _Struct(">16sh").pack
_p_ux: Final = _Struct(">16sx").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ii: Final = _Struct(">ii").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from
_u_uhB: Final = _Struct(">16shB").unpack_from


class DeleteTopicState(Message):
    """Part of DeleteTopicsRequest, versions 6."""

    __slots__ = (
        "name",
        "topic_id",
    )

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: UUID = NIL_UUID,
    ) -> None:
        self.name: str | None = name
        self.topic_id: UUID = topic_id


class DeleteTopicsRequest(Message):
    """Body of the request, versions 1-6."""

    __slots__ = (
        "topics",
        "timeout_ms",
        "topic_names",
    )

    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] = EMPTY,  # versions 6
        timeout_ms: int = 0,
        topic_names: list[str] = EMPTY,  # versions 1-5
    ) -> None:
        self.topics: list[DeleteTopicState] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.topic_names: list[str] = [] if topic_names is EMPTY else topic_names


class DeletableTopicResult(Message):
    """Part of DeleteTopicsResponse, versions 1-6."""

    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: UUID = NIL_UUID,  # versions 6
        error_code: int = 0,
        error_message: str | None = None,  # versions 5-6
    ) -> None:
        self.name: str | None = name
        self.topic_id: UUID = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DeleteTopicsResponse(Message):
    """Body of the response, versions 1-6."""

    __slots__ = (
        "throttle_time_ms",
        "responses",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[DeletableTopicResult] = [] if responses is EMPTY else responses


def _decode_request_v1(view: bytes | memoryview) -> DeleteTopicsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteTopicsRequest.__new__(DeleteTopicsRequest)
    m.topics = []
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("topic_names")
    if n * 2 > end - p:
        raise count_error("topic_names", n)
    left -= n
    if left < 0:
        raise limit_error("topic_names")
    items: list[str] = []
    m.topic_names = items
    for _ in range(n):
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("item")
        e = p + n
        item = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    m.timeout_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("DeleteTopicsRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> DeleteTopicsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteTopicsRequest.__new__(DeleteTopicsRequest)
    m.topics = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topic_names")
    n -= 1
    if n > end - p:
        raise count_error("topic_names", n)
    left -= n
    if left < 0:
        raise limit_error("topic_names")
    items: list[str] = []
    m.topic_names = items
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
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DeleteTopicsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DeleteTopicsRequest")
    return m


def _decode_request_v6(view: bytes | memoryview) -> DeleteTopicsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteTopicsRequest.__new__(DeleteTopicsRequest)
    m.topic_names = []
    n = data[p]
    p += 1
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
    items: list[DeleteTopicState] = []
    m.topics = items
    for _ in range(n):
        item = DeleteTopicState.__new__(DeleteTopicState)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.name = None
        else:
            e = p + n - 1
            item.name = data[p:e].decode("utf-8", "replace")
            p = e
        u, n = _u_uB(data, p)
        p += 17
        item.topic_id = uuid_from_bytes(u)
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DeleteTopicState")
            p = skip_fields(data, p, n)
        items.append(item)
    m.timeout_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DeleteTopicsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DeleteTopicsRequest")
    return m


def _encode_request_v1(m: DeleteTopicsRequest) -> bytes:
    out = bytearray()
    items = m.topic_names
    out += _p_i(len(items))
    for item in items:
        b = item.encode()
        out += _p_h(len(b))
        out += b
    out += _p_i(m.timeout_ms)
    return bytes(out)


def _encode_request_v4(m: DeleteTopicsRequest) -> bytes:
    out = bytearray()
    items = m.topic_names
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
    out += _p_ix(m.timeout_ms)
    return bytes(out)


def _encode_request_v6(m: DeleteTopicsRequest) -> bytes:
    out = bytearray()
    items = m.topics
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        v = item.name
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
        out += _p_ux(item.topic_id.bytes)
    out += _p_ix(m.timeout_ms)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteTopicsRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v1,
    4: _decode_request_v4,
    5: _decode_request_v4,
    6: _decode_request_v6,
}


_request_encoders: Final[dict[int, Callable[[DeleteTopicsRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v1,
    4: _encode_request_v4,
    5: _encode_request_v4,
    6: _encode_request_v6,
}


def decode_request(data: bytes | memoryview, version: int) -> DeleteTopicsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DeleteTopicsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteTopicsRequest", version) from None


def encode_request(message: DeleteTopicsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteTopicsRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> DeleteTopicsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteTopicsResponse.__new__(DeleteTopicsResponse)
    m.throttle_time_ms, n = _u_ii(data, p)
    p += 8
    if n < 0:
        raise null_error("responses")
    if n * 4 > end - p:
        raise count_error("responses", n)
    items: list[DeletableTopicResult] = []
    m.responses = items
    for _ in range(n):
        item = DeletableTopicResult.__new__(DeletableTopicResult)
        item.topic_id = NIL_UUID
        item.error_message = None
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("name")
        e = p + n
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.error_code, = _u_h(data, p)
        p += 2
        items.append(item)
    if p > end:
        raise end_error("DeleteTopicsResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> DeleteTopicsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteTopicsResponse.__new__(DeleteTopicsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 4 > end - p:
        raise count_error("responses", n)
    items: list[DeletableTopicResult] = []
    m.responses = items
    for _ in range(n):
        item = DeletableTopicResult.__new__(DeletableTopicResult)
        item.topic_id = NIL_UUID
        item.error_message = None
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
        raise end_error("DeleteTopicsResponse")
    return m


def _decode_response_v5(view: bytes | memoryview) -> DeleteTopicsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteTopicsResponse.__new__(DeleteTopicsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 5 > end - p:
        raise count_error("responses", n)
    items: list[DeletableTopicResult] = []
    m.responses = items
    for _ in range(n):
        item = DeletableTopicResult.__new__(DeletableTopicResult)
        item.topic_id = NIL_UUID
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
        raise end_error("DeleteTopicsResponse")
    return m


def _decode_response_v6(view: bytes | memoryview) -> DeleteTopicsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteTopicsResponse.__new__(DeleteTopicsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("responses")
    n -= 1
    if n * 21 > end - p:
        raise count_error("responses", n)
    items: list[DeletableTopicResult] = []
    m.responses = items
    for _ in range(n):
        item = DeletableTopicResult.__new__(DeletableTopicResult)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.name = None
        else:
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
        raise end_error("DeleteTopicsResponse")
    return m


def _encode_response_v1(m: DeleteTopicsResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_ii(m.throttle_time_ms, len(items))
    for item in items:
        v = item.name
        if v is None:
            raise ValueError("name cannot be null in this version")
        b = v.encode()
        out += _p_h(len(b))
        out += b
        out += _p_h(item.error_code)
    return bytes(out)


def _encode_response_v4(m: DeleteTopicsResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        v = item.name
        if v is None:
            raise ValueError("name cannot be null in this version")
        b = v.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_hx(item.error_code)
    out += b"\x00"
    return bytes(out)


def _encode_response_v5(m: DeleteTopicsResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        v = item.name
        if v is None:
            raise ValueError("name cannot be null in this version")
        b = v.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_h(item.error_code)
        v2 = item.error_message
        if v2 is None:
            out += b"\x00"
        else:
            b1 = v2.encode()
            n = len(b1) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b1
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


def _encode_response_v6(m: DeleteTopicsResponse) -> bytes:
    out = bytearray()
    items = m.responses
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        v = item.name
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
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteTopicsResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v1,
    4: _decode_response_v4,
    5: _decode_response_v5,
    6: _decode_response_v6,
}


_response_encoders: Final[dict[int, Callable[[DeleteTopicsResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v1,
    4: _encode_response_v4,
    5: _encode_response_v5,
    6: _encode_response_v6,
}


def decode_response(data: bytes | memoryview, version: int) -> DeleteTopicsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DeleteTopicsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteTopicsResponse", version) from None


def encode_response(message: DeleteTopicsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteTopicsResponse has no version {version} here")
    return encode(message)
