"""DeleteShareGroupOffsets, API key 92, versions 0 alone, flexible from 0.

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

API_KEY: Final = 92
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ih: Final = _Struct(">ih").pack
_p_uh: Final = _Struct(">16sh").pack
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_uhB: Final = _Struct(">16shB").unpack_from


class DeleteShareGroupOffsetsRequestTopic(Message):
    """Part of DeleteShareGroupOffsetsRequest, versions 0."""

    __slots__ = (
        "topic_name",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name: str = topic_name


class DeleteShareGroupOffsetsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DeleteShareGroupOffsetsRequestTopic] = [] if topics is EMPTY else topics


class DeleteShareGroupOffsetsResponseTopic(Message):
    """Part of DeleteShareGroupOffsetsResponse, versions 0."""

    __slots__ = (
        "topic_name",
        "topic_id",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: UUID = NIL_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: UUID = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class DeleteShareGroupOffsetsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[DeleteShareGroupOffsetsResponseTopic] = [] if responses is EMPTY else responses


def _decode_request_v0(view: bytes | memoryview) -> DeleteShareGroupOffsetsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DeleteShareGroupOffsetsRequest.__new__(DeleteShareGroupOffsetsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("group_id")
    e = p + n - 1
    m.group_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("topics")
    n -= 1
    if n * 2 > end - p:
        raise count_error("topics", n)
    left -= n
    if left < 0:
        raise limit_error("topics")
    items: list[DeleteShareGroupOffsetsRequestTopic] = []
    m.topics = items
    for _ in range(n):
        item = DeleteShareGroupOffsetsRequestTopic.__new__(DeleteShareGroupOffsetsRequestTopic)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        item.topic_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("DeleteShareGroupOffsetsRequestTopic")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DeleteShareGroupOffsetsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DeleteShareGroupOffsetsRequest")
    return m


def _encode_request_v0(m: DeleteShareGroupOffsetsRequest) -> bytes:
    out = bytearray()
    b = m.group_id.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    items = m.topics
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.topic_name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteShareGroupOffsetsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[DeleteShareGroupOffsetsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> DeleteShareGroupOffsetsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DeleteShareGroupOffsetsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteShareGroupOffsetsRequest", version) from None


def encode_request(message: DeleteShareGroupOffsetsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteShareGroupOffsetsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DeleteShareGroupOffsetsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DeleteShareGroupOffsetsResponse.__new__(DeleteShareGroupOffsetsResponse)
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
    if n * 21 > end - p:
        raise count_error("responses", n)
    items: list[DeleteShareGroupOffsetsResponseTopic] = []
    m.responses = items
    for _ in range(n):
        item = DeleteShareGroupOffsetsResponseTopic.__new__(DeleteShareGroupOffsetsResponseTopic)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("topic_name")
        e = p + n - 1
        item.topic_name = data[p:e].decode("utf-8", "replace")
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
        raise end_error("DeleteShareGroupOffsetsResponse")
    return m


def _encode_response_v0(m: DeleteShareGroupOffsetsResponse) -> bytes:
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
        b1 = item.topic_name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += _p_uh(item.topic_id.bytes, item.error_code)
        v2 = item.error_message
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
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DeleteShareGroupOffsetsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[DeleteShareGroupOffsetsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> DeleteShareGroupOffsetsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DeleteShareGroupOffsetsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DeleteShareGroupOffsetsResponse", version) from None


def encode_response(message: DeleteShareGroupOffsetsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DeleteShareGroupOffsetsResponse has no version {version} here")
    return encode(message)
