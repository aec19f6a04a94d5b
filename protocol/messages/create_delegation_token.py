"""CreateDelegationToken, API key 38, versions 1 to 3, flexible from 2.

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

API_KEY: Final = 38
MIN_VERSION: Final = 1
MAX_VERSION: Final = 3
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_hh: Final = _Struct(">hh").pack
_p_i: Final = _Struct(">i").pack
_p_ix: Final = _Struct(">ix").pack
_p_q: Final = _Struct(">q").pack
_p_qqq: Final = _Struct(">qqq").pack
_p_qqqh: Final = _Struct(">qqqh").pack
_p_qx: Final = _Struct(">qx").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hh: Final = _Struct(">hh").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_q: Final = _Struct(">q").unpack_from
_u_qB: Final = _Struct(">qB").unpack_from
_u_qqqB: Final = _Struct(">qqqB").unpack_from
_u_qqqh: Final = _Struct(">qqqh").unpack_from


class CreatableRenewers(Message):
    """Part of CreateDelegationTokenRequest, versions 1-3."""

    __slots__ = (
        "principal_type",
        "principal_name",
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name


class CreateDelegationTokenRequest(Message):
    """Body of the request, versions 1-3."""

    __slots__ = (
        "owner_principal_type",
        "owner_principal_name",
        "renewers",
        "max_lifetime_ms",
    )

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",  # versions 3
        owner_principal_name: str | None = "",  # versions 3
        renewers: list[CreatableRenewers] = EMPTY,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type: str | None = owner_principal_type
        self.owner_principal_name: str | None = owner_principal_name
        self.renewers: list[CreatableRenewers] = [] if renewers is EMPTY else renewers
        self.max_lifetime_ms: int = max_lifetime_ms


class CreateDelegationTokenResponse(Message):
    """Body of the response, versions 1-3."""

    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",  # versions 3
        token_requester_principal_name: str = "",  # versions 3
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b'',
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp_ms: int = issue_timestamp_ms
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.max_timestamp_ms: int = max_timestamp_ms
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.throttle_time_ms: int = throttle_time_ms


def _decode_request_v1(view: bytes | memoryview) -> CreateDelegationTokenRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreateDelegationTokenRequest.__new__(CreateDelegationTokenRequest)
    m.owner_principal_type = ""
    m.owner_principal_name = ""
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("renewers")
    if n * 4 > end - p:
        raise count_error("renewers", n)
    left -= n
    if left < 0:
        raise limit_error("renewers")
    items: list[CreatableRenewers] = []
    m.renewers = items
    for _ in range(n):
        item = CreatableRenewers.__new__(CreatableRenewers)
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("principal_type")
        e = p + n
        item.principal_type = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_h(data, p)
        p += 2
        if n < 0:
            raise null_error("principal_name")
        e = p + n
        item.principal_name = data[p:e].decode("utf-8", "replace")
        p = e
        items.append(item)
    m.max_lifetime_ms, = _u_q(data, p)
    p += 8
    if p > end:
        raise end_error("CreateDelegationTokenRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> CreateDelegationTokenRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreateDelegationTokenRequest.__new__(CreateDelegationTokenRequest)
    m.owner_principal_type = ""
    m.owner_principal_name = ""
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("renewers")
    n -= 1
    if n * 3 > end - p:
        raise count_error("renewers", n)
    left -= n
    if left < 0:
        raise limit_error("renewers")
    items: list[CreatableRenewers] = []
    m.renewers = items
    for _ in range(n):
        item = CreatableRenewers.__new__(CreatableRenewers)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("principal_type")
        e = p + n - 1
        item.principal_type = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("principal_name")
        e = p + n - 1
        item.principal_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("CreatableRenewers")
            p = skip_fields(data, p, n)
        items.append(item)
    m.max_lifetime_ms, n = _u_qB(data, p)
    p += 9
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("CreateDelegationTokenRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreateDelegationTokenRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> CreateDelegationTokenRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = CreateDelegationTokenRequest.__new__(CreateDelegationTokenRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.owner_principal_type = None
    else:
        e = p + n - 1
        m.owner_principal_type = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.owner_principal_name = None
    else:
        e = p + n - 1
        m.owner_principal_name = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("renewers")
    n -= 1
    if n * 3 > end - p:
        raise count_error("renewers", n)
    left -= n
    if left < 0:
        raise limit_error("renewers")
    items: list[CreatableRenewers] = []
    m.renewers = items
    for _ in range(n):
        item = CreatableRenewers.__new__(CreatableRenewers)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("principal_type")
        e = p + n - 1
        item.principal_type = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("principal_name")
        e = p + n - 1
        item.principal_name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("CreatableRenewers")
            p = skip_fields(data, p, n)
        items.append(item)
    m.max_lifetime_ms, n = _u_qB(data, p)
    p += 9
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("CreateDelegationTokenRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreateDelegationTokenRequest")
    return m


def _encode_request_v1(m: CreateDelegationTokenRequest) -> bytes:
    out = bytearray()
    items = m.renewers
    out += _p_i(len(items))
    for item in items:
        b = item.principal_type.encode()
        out += _p_h(len(b))
        out += b
        b1 = item.principal_name.encode()
        out += _p_h(len(b1))
        out += b1
    out += _p_q(m.max_lifetime_ms)
    return bytes(out)


def _encode_request_v2(m: CreateDelegationTokenRequest) -> bytes:
    out = bytearray()
    items = m.renewers
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.principal_type.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        b1 = item.principal_name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += b"\x00"
    out += _p_qx(m.max_lifetime_ms)
    return bytes(out)


def _encode_request_v3(m: CreateDelegationTokenRequest) -> bytes:
    out = bytearray()
    v = m.owner_principal_type
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
    v1 = m.owner_principal_name
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
    items = m.renewers
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b2 = item.principal_type.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        b3 = item.principal_name.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += b"\x00"
    out += _p_qx(m.max_lifetime_ms)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], CreateDelegationTokenRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v3,
}


_request_encoders: Final[dict[int, Callable[[CreateDelegationTokenRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v3,
}


def decode_request(data: bytes | memoryview, version: int) -> CreateDelegationTokenRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("CreateDelegationTokenRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("CreateDelegationTokenRequest", version) from None


def encode_request(message: CreateDelegationTokenRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"CreateDelegationTokenRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> CreateDelegationTokenResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreateDelegationTokenResponse.__new__(CreateDelegationTokenResponse)
    m.token_requester_principal_type = ""
    m.token_requester_principal_name = ""
    m.error_code, n = _u_hh(data, p)
    p += 4
    if n < 0:
        raise null_error("principal_type")
    e = p + n
    m.principal_type = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_h(data, p)
    p += 2
    if n < 0:
        raise null_error("principal_name")
    e = p + n
    m.principal_name = data[p:e].decode("utf-8", "replace")
    p = e
    m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms, n = _u_qqqh(data, p)
    p += 26
    if n < 0:
        raise null_error("token_id")
    e = p + n
    m.token_id = data[p:e].decode("utf-8", "replace")
    p = e
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        raise null_error("hmac")
    e = p + n
    m.hmac = data[p:e]
    p = e
    m.throttle_time_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("CreateDelegationTokenResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> CreateDelegationTokenResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreateDelegationTokenResponse.__new__(CreateDelegationTokenResponse)
    m.token_requester_principal_type = ""
    m.token_requester_principal_name = ""
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("principal_type")
    e = p + n - 1
    m.principal_type = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("principal_name")
    e = p + n - 1
    m.principal_name = data[p:e].decode("utf-8", "replace")
    p = e
    m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms, n = _u_qqqB(data, p)
    p += 25
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("token_id")
    e = p + n - 1
    m.token_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("hmac")
    e = p + n - 1
    m.hmac = data[p:e]
    p = e
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreateDelegationTokenResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> CreateDelegationTokenResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = CreateDelegationTokenResponse.__new__(CreateDelegationTokenResponse)
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("principal_type")
    e = p + n - 1
    m.principal_type = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("principal_name")
    e = p + n - 1
    m.principal_name = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("token_requester_principal_type")
    e = p + n - 1
    m.token_requester_principal_type = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("token_requester_principal_name")
    e = p + n - 1
    m.token_requester_principal_name = data[p:e].decode("utf-8", "replace")
    p = e
    m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms, n = _u_qqqB(data, p)
    p += 25
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("token_id")
    e = p + n - 1
    m.token_id = data[p:e].decode("utf-8", "replace")
    p = e
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("hmac")
    e = p + n - 1
    m.hmac = data[p:e]
    p = e
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("CreateDelegationTokenResponse")
    return m


def _encode_response_v1(m: CreateDelegationTokenResponse) -> bytes:
    out = bytearray()
    b = m.principal_type.encode()
    out += _p_hh(m.error_code, len(b))
    out += b
    b1 = m.principal_name.encode()
    out += _p_h(len(b1))
    out += b1
    b2 = m.token_id.encode()
    out += _p_qqqh(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms, len(b2))
    out += b2
    b3 = m.hmac
    out += _p_i(len(b3))
    out += b3
    out += _p_i(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v2(m: CreateDelegationTokenResponse) -> bytes:
    out = bytearray()
    b = m.principal_type.encode()
    out += _p_h(m.error_code)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.principal_name.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    b2 = m.token_id.encode()
    out += _p_qqq(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms)
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    b3 = m.hmac
    n = len(b3) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b3
    out += _p_ix(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v3(m: CreateDelegationTokenResponse) -> bytes:
    out = bytearray()
    b = m.principal_type.encode()
    out += _p_h(m.error_code)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    b1 = m.principal_name.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    b2 = m.token_requester_principal_type.encode()
    n = len(b2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b2
    b3 = m.token_requester_principal_name.encode()
    n = len(b3) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b3
    b4 = m.token_id.encode()
    out += _p_qqq(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms)
    n = len(b4) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b4
    b5 = m.hmac
    n = len(b5) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b5
    out += _p_ix(m.throttle_time_ms)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], CreateDelegationTokenResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v3,
}


_response_encoders: Final[dict[int, Callable[[CreateDelegationTokenResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v3,
}


def decode_response(data: bytes | memoryview, version: int) -> CreateDelegationTokenResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("CreateDelegationTokenResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("CreateDelegationTokenResponse", version) from None


def encode_response(message: CreateDelegationTokenResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"CreateDelegationTokenResponse has no version {version} here")
    return encode(message)
