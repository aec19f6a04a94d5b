"""FindCoordinator, API key 10, versions 0 to 6, flexible from 3.

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

API_KEY: Final = 10
MIN_VERSION: Final = 0
MAX_VERSION: Final = 6
FIRST_FLEXIBLE_VERSION: Final[int | None] = 3

_p_b: Final = _Struct(">b").pack
_p_bx: Final = _Struct(">bx").pack
_p_h: Final = _Struct(">h").pack
_p_hih: Final = _Struct(">hih").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ix: Final = _Struct(">ix").pack
_u_b: Final = _Struct(">b").unpack_from
_u_bB: Final = _Struct(">bB").unpack_from
_u_h: Final = _Struct(">h").unpack_from
_u_hih: Final = _Struct(">hih").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ih: Final = _Struct(">ih").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_ihh: Final = _Struct(">ihh").unpack_from


class FindCoordinatorRequest(Message):
    """Body of the request, versions 0-6."""

    __slots__ = (
        "key_type",
        "coordinator_keys",
        "key",
    )

    def __init__(
        self,
        *,
        key_type: int = 0,  # versions 1-6
        coordinator_keys: list[str] = EMPTY,  # versions 4-6
        key: str = "",  # versions 0-3
    ) -> None:
        self.key_type: int = key_type
        self.coordinator_keys: list[str] = [] if coordinator_keys is EMPTY else coordinator_keys
        self.key: str = key


class Coordinator(Message):
    """Part of FindCoordinatorResponse, versions 4-6."""

    __slots__ = (
        "key",
        "node_id",
        "host",
        "port",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key: str = key
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class FindCoordinatorResponse(Message):
    """Body of the response, versions 0-6."""

    __slots__ = (
        "throttle_time_ms",
        "coordinators",
        "error_code",
        "error_message",
        "node_id",
        "host",
        "port",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # versions 1-6
        coordinators: list[Coordinator] = EMPTY,  # versions 4-6
        error_code: int = 0,  # versions 0-3
        error_message: str | None = "",  # versions 1-3
        node_id: int = 0,  # versions 0-3
        host: str = "",  # versions 0-3
        port: int = 0,  # versions 0-3
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.coordinators: list[Coordinator] = [] if coordinators is EMPTY else coordinators
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port


def _decode_request_v0(view: bytes | memoryview) -> FindCoordinatorRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = FindCoordinatorRequest.__new__(FindCoordinatorRequest)
    m.key_type = 0
    m.coordinator_keys = []
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("key")
    e = p + n
    m.key = data[p:e].decode("utf-8", "replace")
    p = e
    if p > end:
        raise end_error("FindCoordinatorRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> FindCoordinatorRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    m = FindCoordinatorRequest.__new__(FindCoordinatorRequest)
    m.coordinator_keys = []
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("key")
    e = p + n
    m.key = data[p:e].decode("utf-8", "replace")
    p = e
    m.key_type, = _u_b(data, p)
    p += 1
    if p > end:
        raise end_error("FindCoordinatorRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> FindCoordinatorRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FindCoordinatorRequest.__new__(FindCoordinatorRequest)
    m.coordinator_keys = []
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("key")
    e = p + n - 1
    m.key = data[p:e].decode("utf-8", "replace")
    p = e
    m.key_type, n = _u_bB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("FindCoordinatorRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("FindCoordinatorRequest")
    return m


def _decode_request_v4(view: bytes | memoryview) -> FindCoordinatorRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = FindCoordinatorRequest.__new__(FindCoordinatorRequest)
    m.key = ""
    m.key_type, n = _u_bB(data, p)
    p += 2
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("coordinator_keys")
    n -= 1
    if n > end - p:
        raise count_error("coordinator_keys", n)
    left -= n
    if left < 0:
        raise limit_error("coordinator_keys")
    items: list[str] = []
    m.coordinator_keys = items
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
            raise limit_error("FindCoordinatorRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("FindCoordinatorRequest")
    return m


def _encode_request_v0(m: FindCoordinatorRequest) -> bytes:
    out = bytearray()
    b = m.key.encode()
    out += _p_h(len(b))
    out += b
    return bytes(out)


def _encode_request_v1(m: FindCoordinatorRequest) -> bytes:
    out = bytearray()
    b = m.key.encode()
    out += _p_h(len(b))
    out += b
    out += _p_b(m.key_type)
    return bytes(out)


def _encode_request_v3(m: FindCoordinatorRequest) -> bytes:
    out = bytearray()
    b = m.key.encode()
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    out += _p_bx(m.key_type)
    return bytes(out)


def _encode_request_v4(m: FindCoordinatorRequest) -> bytes:
    out = bytearray()
    items = m.coordinator_keys
    out += _p_b(m.key_type)
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


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], FindCoordinatorRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v1,
    3: _decode_request_v3,
    4: _decode_request_v4,
    5: _decode_request_v4,
    6: _decode_request_v4,
}


_request_encoders: Final[dict[int, Callable[[FindCoordinatorRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v1,
    3: _encode_request_v3,
    4: _encode_request_v4,
    5: _encode_request_v4,
    6: _encode_request_v4,
}


def decode_request(data: bytes | memoryview, version: int) -> FindCoordinatorRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("FindCoordinatorRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("FindCoordinatorRequest", version) from None


def encode_request(message: FindCoordinatorRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"FindCoordinatorRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> FindCoordinatorResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = FindCoordinatorResponse.__new__(FindCoordinatorResponse)
    m.throttle_time_ms = 0
    m.coordinators = []
    m.error_message = ""
    m.error_code, m.node_id, n = _u_hih(data, p)
    p += 8
    if n < 0:
        raise null_error("host")
    e = p + n
    m.host = data[p:e].decode("utf-8", "replace")
    p = e
    m.port, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("FindCoordinatorResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> FindCoordinatorResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = FindCoordinatorResponse.__new__(FindCoordinatorResponse)
    m.coordinators = []
    m.throttle_time_ms, m.error_code, n = _u_ihh(data, p)
    p += 8
    if n < 0:
        m.error_message = None
    else:
        e = p + n
        m.error_message = data[p:e].decode("utf-8", "replace")
        p = e
    m.node_id, n = _u_ih(data, p)
    p += 6
    if n < 0:
        raise null_error("host")
    e = p + n
    m.host = data[p:e].decode("utf-8", "replace")
    p = e
    m.port, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("FindCoordinatorResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> FindCoordinatorResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = FindCoordinatorResponse.__new__(FindCoordinatorResponse)
    m.coordinators = []
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
    m.node_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("host")
    e = p + n - 1
    m.host = data[p:e].decode("utf-8", "replace")
    p = e
    m.port, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("FindCoordinatorResponse")
    return m


def _decode_response_v4(view: bytes | memoryview) -> FindCoordinatorResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = FindCoordinatorResponse.__new__(FindCoordinatorResponse)
    m.error_code = 0
    m.error_message = ""
    m.node_id = 0
    m.host = ""
    m.port = 0
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("coordinators")
    n -= 1
    if n * 14 > end - p:
        raise count_error("coordinators", n)
    items: list[Coordinator] = []
    m.coordinators = items
    for _ in range(n):
        item = Coordinator.__new__(Coordinator)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("key")
        e = p + n - 1
        item.key = data[p:e].decode("utf-8", "replace")
        p = e
        item.node_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, item.error_code, n = _u_ihB(data, p)
        p += 7
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
        raise end_error("FindCoordinatorResponse")
    return m


def _encode_response_v0(m: FindCoordinatorResponse) -> bytes:
    out = bytearray()
    b = m.host.encode()
    out += _p_hih(m.error_code, m.node_id, len(b))
    out += b
    out += _p_i(m.port)
    return bytes(out)


def _encode_response_v1(m: FindCoordinatorResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    v = m.error_message
    if v is None:
        out += b"\xff\xff"
    else:
        b = v.encode()
        out += _p_h(len(b))
        out += b
    b1 = m.host.encode()
    out += _p_ih(m.node_id, len(b1))
    out += b1
    out += _p_i(m.port)
    return bytes(out)


def _encode_response_v3(m: FindCoordinatorResponse) -> bytes:
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
    b1 = m.host.encode()
    out += _p_i(m.node_id)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    out += _p_ix(m.port)
    return bytes(out)


def _encode_response_v4(m: FindCoordinatorResponse) -> bytes:
    out = bytearray()
    items = m.coordinators
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.key.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        b1 = item.host.encode()
        out += _p_i(item.node_id)
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += _p_ih(item.port, item.error_code)
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], FindCoordinatorResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v1,
    3: _decode_response_v3,
    4: _decode_response_v4,
    5: _decode_response_v4,
    6: _decode_response_v4,
}


_response_encoders: Final[dict[int, Callable[[FindCoordinatorResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v1,
    3: _encode_response_v3,
    4: _encode_response_v4,
    5: _encode_response_v4,
    6: _encode_response_v4,
}


def decode_response(data: bytes | memoryview, version: int) -> FindCoordinatorResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("FindCoordinatorResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("FindCoordinatorResponse", version) from None


def encode_response(message: FindCoordinatorResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"FindCoordinatorResponse has no version {version} here")
    return encode(message)
