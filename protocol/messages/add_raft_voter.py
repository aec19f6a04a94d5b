"""AddRaftVoter, API key 80, versions 0 to 1, flexible from 0.

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

API_KEY: Final = 80
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hx: Final = _Struct(">Hx").pack
_p_ih: Final = _Struct(">ih").pack
_p_iiu: Final = _Struct(">ii16s").pack
_p_zx: Final = _Struct(">?x").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iiuB: Final = _Struct(">ii16sB").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class Listener(Message):
    """Part of AddRaftVoterRequest, versions 0-1."""

    __slots__ = (
        "name",
        "host",
        "port",
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port


class AddRaftVoterRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "cluster_id",
        "timeout_ms",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "ack_when_committed",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: UUID = NIL_UUID,
        listeners: list[Listener] = EMPTY,
        ack_when_committed: bool = True,  # versions 1
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.timeout_ms: int = timeout_ms
        self.voter_id: int = voter_id
        self.voter_directory_id: UUID = voter_directory_id
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners
        self.ack_when_committed: bool = ack_when_committed


class AddRaftVoterResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _decode_request_v0(view: bytes | memoryview) -> AddRaftVoterRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AddRaftVoterRequest.__new__(AddRaftVoterRequest)
    m.ack_when_committed = True
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.cluster_id = None
    else:
        e = p + n - 1
        m.cluster_id = data[p:e].decode()
        p = e
    m.timeout_ms, m.voter_id, u, n = _u_iiuB(data, p)
    p += 25
    m.voter_directory_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("listeners")
    n -= 1
    if n * 5 > end - p:
        raise count_error("listeners", n)
    left -= n
    if left < 0:
        raise limit_error("listeners")
    items: list[Listener] = []
    m.listeners = items
    for _ in range(n):
        item = Listener.__new__(Listener)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode()
        p = e
        item.port, n = _u_HB(data, p)
        p += 3
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Listener")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AddRaftVoterRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AddRaftVoterRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> AddRaftVoterRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AddRaftVoterRequest.__new__(AddRaftVoterRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.cluster_id = None
    else:
        e = p + n - 1
        m.cluster_id = data[p:e].decode()
        p = e
    m.timeout_ms, m.voter_id, u, n = _u_iiuB(data, p)
    p += 25
    m.voter_directory_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("listeners")
    n -= 1
    if n * 5 > end - p:
        raise count_error("listeners", n)
    left -= n
    if left < 0:
        raise limit_error("listeners")
    items: list[Listener] = []
    m.listeners = items
    for _ in range(n):
        item = Listener.__new__(Listener)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode()
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode()
        p = e
        item.port, n = _u_HB(data, p)
        p += 3
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Listener")
            p = skip_fields(data, p, n)
        items.append(item)
    m.ack_when_committed, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AddRaftVoterRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AddRaftVoterRequest")
    return m


def _encode_request_v0(m: AddRaftVoterRequest) -> bytes:
    out = bytearray()
    v = m.cluster_id
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
    items = m.listeners
    out += _p_iiu(m.timeout_ms, m.voter_id, m.voter_directory_id.bytes)
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
        b2 = item.host.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_Hx(item.port)
    out += b"\x00"
    return bytes(out)


def _encode_request_v1(m: AddRaftVoterRequest) -> bytes:
    out = bytearray()
    v = m.cluster_id
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
    items = m.listeners
    out += _p_iiu(m.timeout_ms, m.voter_id, m.voter_directory_id.bytes)
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
        b2 = item.host.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_Hx(item.port)
    out += _p_zx(m.ack_when_committed)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AddRaftVoterRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[AddRaftVoterRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> AddRaftVoterRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AddRaftVoterRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("AddRaftVoterRequest", version, error) from None


def encode_request(message: AddRaftVoterRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AddRaftVoterRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AddRaftVoterResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AddRaftVoterResponse.__new__(AddRaftVoterResponse)
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.error_message = None
    else:
        e = p + n - 1
        m.error_message = data[p:e].decode()
        p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AddRaftVoterResponse")
    return m


def _encode_response_v0(m: AddRaftVoterResponse) -> bytes:
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
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AddRaftVoterResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[AddRaftVoterResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> AddRaftVoterResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AddRaftVoterResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("AddRaftVoterResponse", version, error) from None


def encode_response(message: AddRaftVoterResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AddRaftVoterResponse has no version {version} here")
    return encode(message)
