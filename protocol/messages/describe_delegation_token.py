"""DescribeDelegationToken, API key 41, versions 1 to 3, flexible from 2.

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

API_KEY: Final = 41
MIN_VERSION: Final = 1
MAX_VERSION: Final = 3
FIRST_FLEXIBLE_VERSION: Final[int | None] = 2

_p_h: Final = _Struct(">h").pack
_p_hi: Final = _Struct(">hi").pack
_p_i: Final = _Struct(">i").pack
_p_ix: Final = _Struct(">ix").pack
_p_qqq: Final = _Struct(">qqq").pack
_p_qqqh: Final = _Struct(">qqqh").pack
_u_h: Final = _Struct(">h").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_hi: Final = _Struct(">hi").unpack_from
_u_i: Final = _Struct(">i").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_qqqB: Final = _Struct(">qqqB").unpack_from
_u_qqqh: Final = _Struct(">qqqh").unpack_from
_NULL_INT32: Final = b"\xff\xff\xff\xff"


class DescribeDelegationTokenOwner(Message):
    """Part of DescribeDelegationTokenRequest, versions 1-3."""

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


class DescribeDelegationTokenRequest(Message):
    """Body of the request, versions 1-3."""

    __slots__ = (
        "owners",
    )

    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenOwner] | None = EMPTY,
    ) -> None:
        self.owners: list[DescribeDelegationTokenOwner] | None = [] if owners is EMPTY else owners


class DescribedDelegationTokenRenewer(Message):
    """Part of DescribeDelegationTokenResponse, versions 1-3."""

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


class DescribedDelegationToken(Message):
    """Part of DescribeDelegationTokenResponse, versions 1-3."""

    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",  # versions 3
        token_requester_principal_name: str = "",  # versions 3
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b'',
        renewers: list[DescribedDelegationTokenRenewer] = EMPTY,
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp: int = issue_timestamp
        self.expiry_timestamp: int = expiry_timestamp
        self.max_timestamp: int = max_timestamp
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.renewers: list[DescribedDelegationTokenRenewer] = [] if renewers is EMPTY else renewers


class DescribeDelegationTokenResponse(Message):
    """Body of the response, versions 1-3."""

    __slots__ = (
        "error_code",
        "tokens",
        "throttle_time_ms",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = EMPTY,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.tokens: list[DescribedDelegationToken] = [] if tokens is EMPTY else tokens
        self.throttle_time_ms: int = throttle_time_ms


def _decode_request_v1(view: bytes | memoryview) -> DescribeDelegationTokenRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeDelegationTokenRequest.__new__(DescribeDelegationTokenRequest)
    n, = _u_i(data, p)
    p += 4
    if n < 0:
        m.owners = None
    else:
        if n * 4 > end - p:
            raise count_error("owners", n)
        left -= n
        if left < 0:
            raise limit_error("owners")
        items: list[DescribeDelegationTokenOwner] = []
        m.owners = items
        for _ in range(n):
            item = DescribeDelegationTokenOwner.__new__(DescribeDelegationTokenOwner)
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
    if p > end:
        raise end_error("DescribeDelegationTokenRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> DescribeDelegationTokenRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeDelegationTokenRequest.__new__(DescribeDelegationTokenRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.owners = None
    else:
        n -= 1
        if n * 3 > end - p:
            raise count_error("owners", n)
        left -= n
        if left < 0:
            raise limit_error("owners")
        items: list[DescribeDelegationTokenOwner] = []
        m.owners = items
        for _ in range(n):
            item = DescribeDelegationTokenOwner.__new__(DescribeDelegationTokenOwner)
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
                    raise limit_error("DescribeDelegationTokenOwner")
                p = skip_fields(data, p, n)
            items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeDelegationTokenRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeDelegationTokenRequest")
    return m


def _encode_request_v1(m: DescribeDelegationTokenRequest) -> bytes:
    out = bytearray()
    items = m.owners
    if items is None:
        out += _NULL_INT32
    else:
        out += _p_i(len(items))
        for item in items:
            b = item.principal_type.encode()
            out += _p_h(len(b))
            out += b
            b1 = item.principal_name.encode()
            out += _p_h(len(b1))
            out += b1
    return bytes(out)


def _encode_request_v2(m: DescribeDelegationTokenRequest) -> bytes:
    out = bytearray()
    items = m.owners
    if items is None:
        out += b"\x00"
    else:
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
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeDelegationTokenRequest]]] = {
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[DescribeDelegationTokenRequest], bytes]]] = {
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeDelegationTokenRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeDelegationTokenRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeDelegationTokenRequest", version) from None


def encode_request(message: DescribeDelegationTokenRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeDelegationTokenRequest has no version {version} here")
    return encode(message)


def _decode_response_v1(view: bytes | memoryview) -> DescribeDelegationTokenResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeDelegationTokenResponse.__new__(DescribeDelegationTokenResponse)
    m.error_code, n = _u_hi(data, p)
    p += 6
    if n < 0:
        raise null_error("tokens")
    if n * 38 > end - p:
        raise count_error("tokens", n)
    items: list[DescribedDelegationToken] = []
    m.tokens = items
    for _ in range(n):
        item = DescribedDelegationToken.__new__(DescribedDelegationToken)
        item.token_requester_principal_type = ""
        item.token_requester_principal_name = ""
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
        item.issue_timestamp, item.expiry_timestamp, item.max_timestamp, n = _u_qqqh(data, p)
        p += 26
        if n < 0:
            raise null_error("token_id")
        e = p + n
        item.token_id = data[p:e].decode("utf-8", "replace")
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("hmac")
        e = p + n
        item.hmac = data[p:e]
        p = e
        n, = _u_i(data, p)
        p += 4
        if n < 0:
            raise null_error("renewers")
        if n * 4 > end - p:
            raise count_error("renewers", n)
        items1: list[DescribedDelegationTokenRenewer] = []
        item.renewers = items1
        for _ in range(n):
            item1 = DescribedDelegationTokenRenewer.__new__(DescribedDelegationTokenRenewer)
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("principal_type")
            e = p + n
            item1.principal_type = data[p:e].decode("utf-8", "replace")
            p = e
            n, = _u_h(data, p)
            p += 2
            if n < 0:
                raise null_error("principal_name")
            e = p + n
            item1.principal_name = data[p:e].decode("utf-8", "replace")
            p = e
            items1.append(item1)
        items.append(item)
    m.throttle_time_ms, = _u_i(data, p)
    p += 4
    if p > end:
        raise end_error("DescribeDelegationTokenResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> DescribeDelegationTokenResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeDelegationTokenResponse.__new__(DescribeDelegationTokenResponse)
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("tokens")
    n -= 1
    if n * 30 > end - p:
        raise count_error("tokens", n)
    items: list[DescribedDelegationToken] = []
    m.tokens = items
    for _ in range(n):
        item = DescribedDelegationToken.__new__(DescribedDelegationToken)
        item.token_requester_principal_type = ""
        item.token_requester_principal_name = ""
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
        item.issue_timestamp, item.expiry_timestamp, item.max_timestamp, n = _u_qqqB(data, p)
        p += 25
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("token_id")
        e = p + n - 1
        item.token_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("hmac")
        e = p + n - 1
        item.hmac = data[p:e]
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
        items1: list[DescribedDelegationTokenRenewer] = []
        item.renewers = items1
        for _ in range(n):
            item1 = DescribedDelegationTokenRenewer.__new__(DescribedDelegationTokenRenewer)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("principal_type")
            e = p + n - 1
            item1.principal_type = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("principal_name")
            e = p + n - 1
            item1.principal_name = data[p:e].decode("utf-8", "replace")
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
        items.append(item)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeDelegationTokenResponse")
    return m


def _decode_response_v3(view: bytes | memoryview) -> DescribeDelegationTokenResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeDelegationTokenResponse.__new__(DescribeDelegationTokenResponse)
    m.error_code, n = _u_hB(data, p)
    p += 3
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("tokens")
    n -= 1
    if n * 32 > end - p:
        raise count_error("tokens", n)
    items: list[DescribedDelegationToken] = []
    m.tokens = items
    for _ in range(n):
        item = DescribedDelegationToken.__new__(DescribedDelegationToken)
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("token_requester_principal_type")
        e = p + n - 1
        item.token_requester_principal_type = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("token_requester_principal_name")
        e = p + n - 1
        item.token_requester_principal_name = data[p:e].decode("utf-8", "replace")
        p = e
        item.issue_timestamp, item.expiry_timestamp, item.max_timestamp, n = _u_qqqB(data, p)
        p += 25
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("token_id")
        e = p + n - 1
        item.token_id = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("hmac")
        e = p + n - 1
        item.hmac = data[p:e]
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
        items1: list[DescribedDelegationTokenRenewer] = []
        item.renewers = items1
        for _ in range(n):
            item1 = DescribedDelegationTokenRenewer.__new__(DescribedDelegationTokenRenewer)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("principal_type")
            e = p + n - 1
            item1.principal_type = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("principal_name")
            e = p + n - 1
            item1.principal_name = data[p:e].decode("utf-8", "replace")
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
        items.append(item)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeDelegationTokenResponse")
    return m


def _encode_response_v1(m: DescribeDelegationTokenResponse) -> bytes:
    out = bytearray()
    items = m.tokens
    out += _p_hi(m.error_code, len(items))
    for item in items:
        b = item.principal_type.encode()
        out += _p_h(len(b))
        out += b
        b1 = item.principal_name.encode()
        out += _p_h(len(b1))
        out += b1
        b2 = item.token_id.encode()
        out += _p_qqqh(item.issue_timestamp, item.expiry_timestamp, item.max_timestamp, len(b2))
        out += b2
        b3 = item.hmac
        out += _p_i(len(b3))
        out += b3
        items1 = item.renewers
        out += _p_i(len(items1))
        for item1 in items1:
            b4 = item1.principal_type.encode()
            out += _p_h(len(b4))
            out += b4
            b5 = item1.principal_name.encode()
            out += _p_h(len(b5))
            out += b5
    out += _p_i(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v2(m: DescribeDelegationTokenResponse) -> bytes:
    out = bytearray()
    items = m.tokens
    out += _p_h(m.error_code)
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
        b2 = item.token_id.encode()
        out += _p_qqq(item.issue_timestamp, item.expiry_timestamp, item.max_timestamp)
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        b3 = item.hmac
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        items1 = item.renewers
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b4 = item1.principal_type.encode()
            n = len(b4) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b4
            b5 = item1.principal_name.encode()
            n = len(b5) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b5
            out += b"\x00"
        out += b"\x00"
    out += _p_ix(m.throttle_time_ms)
    return bytes(out)


def _encode_response_v3(m: DescribeDelegationTokenResponse) -> bytes:
    out = bytearray()
    items = m.tokens
    out += _p_h(m.error_code)
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
        b2 = item.token_requester_principal_type.encode()
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        b3 = item.token_requester_principal_name.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        b4 = item.token_id.encode()
        out += _p_qqq(item.issue_timestamp, item.expiry_timestamp, item.max_timestamp)
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
        b5 = item.hmac
        n = len(b5) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b5
        items1 = item.renewers
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            b6 = item1.principal_type.encode()
            n = len(b6) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b6
            b7 = item1.principal_name.encode()
            n = len(b7) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b7
            out += b"\x00"
        out += b"\x00"
    out += _p_ix(m.throttle_time_ms)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeDelegationTokenResponse]]] = {
    1: _decode_response_v1,
    2: _decode_response_v2,
    3: _decode_response_v3,
}


_response_encoders: Final[dict[int, Callable[[DescribeDelegationTokenResponse], bytes]]] = {
    1: _encode_response_v1,
    2: _encode_response_v2,
    3: _encode_response_v3,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeDelegationTokenResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeDelegationTokenResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeDelegationTokenResponse", version) from None


def encode_response(message: DescribeDelegationTokenResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeDelegationTokenResponse has no version {version} here")
    return encode(message)
