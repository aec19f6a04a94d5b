"""DescribeUserScramCredentials, API key 50, versions 0 alone, flexible from 0.

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

API_KEY: Final = 50
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_bix: Final = _Struct(">bix").pack
_p_h: Final = _Struct(">h").pack
_p_ih: Final = _Struct(">ih").pack
_u_biB: Final = _Struct(">biB").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from


class UserName(Message):
    """Part of DescribeUserScramCredentialsRequest, versions 0."""

    __slots__ = (
        "name",
    )

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name: str = name


class DescribeUserScramCredentialsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "users",
    )

    def __init__(
        self,
        *,
        users: list[UserName] | None = EMPTY,
    ) -> None:
        self.users: list[UserName] | None = [] if users is EMPTY else users


class CredentialInfo(Message):
    """Part of DescribeUserScramCredentialsResponse, versions 0."""

    __slots__ = (
        "mechanism",
        "iterations",
    )

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism: int = mechanism
        self.iterations: int = iterations


class DescribeUserScramCredentialsResult(Message):
    """Part of DescribeUserScramCredentialsResponse, versions 0."""

    __slots__ = (
        "user",
        "error_code",
        "error_message",
        "credential_infos",
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] = EMPTY,
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.credential_infos: list[CredentialInfo] = [] if credential_infos is EMPTY else credential_infos


class DescribeUserScramCredentialsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[DescribeUserScramCredentialsResult] = [] if results is EMPTY else results


def _decode_request_v0(view: bytes | memoryview) -> DescribeUserScramCredentialsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeUserScramCredentialsRequest.__new__(DescribeUserScramCredentialsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.users = None
    else:
        n -= 1
        if n * 2 > end - p:
            raise count_error("users", n)
        left -= n
        if left < 0:
            raise limit_error("users")
        items: list[UserName] = []
        m.users = items
        for _ in range(n):
            item = UserName.__new__(UserName)
            n = data[p]
            p += 1
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            if n == 0:
                raise null_error("name")
            e = p + n - 1
            item.name = data[p:e].decode("utf-8", "replace")
            p = e
            n = data[p]
            p += 1
            if n:
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                left -= n
                if left < 0:
                    raise limit_error("UserName")
                p = skip_fields(data, p, n)
            items.append(item)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeUserScramCredentialsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeUserScramCredentialsRequest")
    return m


def _encode_request_v0(m: DescribeUserScramCredentialsRequest) -> bytes:
    out = bytearray()
    items = m.users
    if items is None:
        out += b"\x00"
    else:
        n = len(items) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item in items:
            b = item.name.encode()
            n = len(b) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b
            out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeUserScramCredentialsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[DescribeUserScramCredentialsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeUserScramCredentialsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeUserScramCredentialsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeUserScramCredentialsRequest", version) from None


def encode_request(message: DescribeUserScramCredentialsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeUserScramCredentialsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeUserScramCredentialsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeUserScramCredentialsResponse.__new__(DescribeUserScramCredentialsResponse)
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
        raise null_error("results")
    n -= 1
    if n * 6 > end - p:
        raise count_error("results", n)
    items: list[DescribeUserScramCredentialsResult] = []
    m.results = items
    for _ in range(n):
        item = DescribeUserScramCredentialsResult.__new__(DescribeUserScramCredentialsResult)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("user")
        e = p + n - 1
        item.user = data[p:e].decode("utf-8", "replace")
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
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("credential_infos")
        n -= 1
        if n * 6 > end - p:
            raise count_error("credential_infos", n)
        items1: list[CredentialInfo] = []
        item.credential_infos = items1
        for _ in range(n):
            item1 = CredentialInfo.__new__(CredentialInfo)
            item1.mechanism, item1.iterations, n = _u_biB(data, p)
            p += 6
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
        raise end_error("DescribeUserScramCredentialsResponse")
    return m


def _encode_response_v0(m: DescribeUserScramCredentialsResponse) -> bytes:
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
    items = m.results
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b1 = item.user.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        out += _p_h(item.error_code)
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
        items1 = item.credential_infos
        n = len(items1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        for item1 in items1:
            out += _p_bix(item1.mechanism, item1.iterations)
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeUserScramCredentialsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[DescribeUserScramCredentialsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeUserScramCredentialsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeUserScramCredentialsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeUserScramCredentialsResponse", version) from None


def encode_response(message: DescribeUserScramCredentialsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeUserScramCredentialsResponse has no version {version} here")
    return encode(message)
