"""BrokerHeartbeat, API key 63, versions 0 to 1, flexible from 0.

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
    decode_unsigned_varint,
    encode_unsigned_varint,
    skip_fields,
    uuid_from_bytes,
)

API_KEY: Final = 63
MIN_VERSION: Final = 0
MAX_VERSION: Final = 1
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_ihzzzx: Final = _Struct(">ih???x").pack
_p_iqqzz: Final = _Struct(">iqq??").pack
_p_iqqzzx: Final = _Struct(">iqq??x").pack
_p_u: Final = _Struct(">16s").pack
_u_ihzzzB: Final = _Struct(">ih???B").unpack_from
_u_iqqzzB: Final = _Struct(">iqq??B").unpack_from
_u_u: Final = _Struct(">16s").unpack_from


class BrokerHeartbeatRequest(Message):
    """Body of the request, versions 0-1."""

    __slots__ = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[UUID] = EMPTY,  # versions 1, tag 0
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.current_metadata_offset: int = current_metadata_offset
        self.want_fence: bool = want_fence
        self.want_shut_down: bool = want_shut_down
        self.offline_log_dirs: list[UUID] = [] if offline_log_dirs is EMPTY else offline_log_dirs


class BrokerHeartbeatResponse(Message):
    """Body of the response, versions 0-1."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "is_caught_up",
        "is_fenced",
        "should_shut_down",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.is_caught_up: bool = is_caught_up
        self.is_fenced: bool = is_fenced
        self.should_shut_down: bool = should_shut_down


def _decode_request_v0(view: bytes | memoryview) -> BrokerHeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = BrokerHeartbeatRequest.__new__(BrokerHeartbeatRequest)
    m.offline_log_dirs = []
    m.broker_id, m.broker_epoch, m.current_metadata_offset, m.want_fence, m.want_shut_down, n = _u_iqqzzB(data, p)
    p += 23
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("BrokerHeartbeatRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("BrokerHeartbeatRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> BrokerHeartbeatRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = BrokerHeartbeatRequest.__new__(BrokerHeartbeatRequest)
    m.offline_log_dirs = []
    m.broker_id, m.broker_epoch, m.current_metadata_offset, m.want_fence, m.want_shut_down, n = _u_iqqzzB(data, p)
    p += 23
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("BrokerHeartbeatRequest")
        for _ in range(n):
            tag, p = decode_unsigned_varint(data, p)
            limit, p = decode_unsigned_varint(data, p)
            limit += p
            if tag == 0:
                n = data[p]
                p += 1
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("offline_log_dirs")
                n -= 1
                if n * 16 > end - p:
                    raise count_error("offline_log_dirs", n)
                left -= n
                if left < 0:
                    raise limit_error("offline_log_dirs")
                items: list[UUID] = []
                m.offline_log_dirs = items
                for _ in range(n):
                    u, = _u_u(data, p)
                    p += 16
                    item = uuid_from_bytes(u)
                    items.append(item)
                if p > limit:
                    raise end_error("offline_log_dirs")
            if limit > end:
                raise end_error("BrokerHeartbeatRequest")
            p = limit
    if p > end:
        raise end_error("BrokerHeartbeatRequest")
    return m


def _encode_request_v0(m: BrokerHeartbeatRequest) -> bytes:
    out = bytearray()
    out += _p_iqqzzx(m.broker_id, m.broker_epoch, m.current_metadata_offset, m.want_fence, m.want_shut_down)
    return bytes(out)


def _encode_request_v1(m: BrokerHeartbeatRequest) -> bytes:
    out = bytearray()
    out += _p_iqqzz(m.broker_id, m.broker_epoch, m.current_metadata_offset, m.want_fence, m.want_shut_down)
    count = 0
    section = bytearray()
    t = m.offline_log_dirs
    if t:
        count += 1
        content = bytearray()
        items = t
        n = len(items) + 1
        if n < 128:
            content.append(n)
        else:
            content += encode_unsigned_varint(n)
        for item in items:
            content += _p_u(item.bytes)
        section += encode_unsigned_varint(0)
        section += encode_unsigned_varint(len(content))
        section += content
    out += encode_unsigned_varint(count)
    out += section
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], BrokerHeartbeatRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
}


_request_encoders: Final[dict[int, Callable[[BrokerHeartbeatRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
}


def decode_request(data: bytes | memoryview, version: int) -> BrokerHeartbeatRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("BrokerHeartbeatRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("BrokerHeartbeatRequest", version, error) from None


def encode_request(message: BrokerHeartbeatRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"BrokerHeartbeatRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> BrokerHeartbeatResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = BrokerHeartbeatResponse.__new__(BrokerHeartbeatResponse)
    m.throttle_time_ms, m.error_code, m.is_caught_up, m.is_fenced, m.should_shut_down, n = _u_ihzzzB(data, p)
    p += 10
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("BrokerHeartbeatResponse")
    return m


def _encode_response_v0(m: BrokerHeartbeatResponse) -> bytes:
    out = bytearray()
    out += _p_ihzzzx(m.throttle_time_ms, m.error_code, m.is_caught_up, m.is_fenced, m.should_shut_down)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], BrokerHeartbeatResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[BrokerHeartbeatResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> BrokerHeartbeatResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("BrokerHeartbeatResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("BrokerHeartbeatResponse", version, error) from None


def encode_response(message: BrokerHeartbeatResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"BrokerHeartbeatResponse has no version {version} here")
    return encode(message)
