"""RemoveRaftVoter, API key 81, versions 0 alone, flexible from 0.

Written by protocol.codegen; do not edit.
"""

from collections.abc import Callable
from struct import Struct as _Struct
from struct import error as _StructError
from typing import Final
from uuid import UUID

from protocol.message import (
    REQUEST_ELEMENTS_MAX,
    Message,
    broken,
    end_error,
    limit_error,
    version_error,
)
from protocol.primitives import (
    NIL_UUID,
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 81
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ih: Final = _Struct(">ih").pack
_p_iux: Final = _Struct(">i16sx").pack
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iuB: Final = _Struct(">i16sB").unpack_from


class RemoveRaftVoterRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "cluster_id",
        "voter_id",
        "voter_directory_id",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: UUID = NIL_UUID,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.voter_directory_id: UUID = voter_directory_id


class RemoveRaftVoterResponse(Message):
    """Body of the response, versions 0."""

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


def _decode_request_v0(view: bytes | memoryview) -> RemoveRaftVoterRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = RemoveRaftVoterRequest.__new__(RemoveRaftVoterRequest)
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
    m.voter_id, u, n = _u_iuB(data, p)
    p += 21
    m.voter_directory_id = uuid_from_bytes(u)
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("RemoveRaftVoterRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("RemoveRaftVoterRequest")
    return m


def _encode_request_v0(m: RemoveRaftVoterRequest) -> bytes:
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
    out += _p_iux(m.voter_id, m.voter_directory_id.bytes)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], RemoveRaftVoterRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[RemoveRaftVoterRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> RemoveRaftVoterRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("RemoveRaftVoterRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("RemoveRaftVoterRequest", version, error) from None


def encode_request(message: RemoveRaftVoterRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"RemoveRaftVoterRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> RemoveRaftVoterResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = RemoveRaftVoterResponse.__new__(RemoveRaftVoterResponse)
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
        raise end_error("RemoveRaftVoterResponse")
    return m


def _encode_response_v0(m: RemoveRaftVoterResponse) -> bytes:
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], RemoveRaftVoterResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[RemoveRaftVoterResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> RemoveRaftVoterResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("RemoveRaftVoterResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("RemoveRaftVoterResponse", version, error) from None


def encode_response(message: RemoveRaftVoterResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"RemoveRaftVoterResponse has no version {version} here")
    return encode(message)
