"""AlterUserScramCredentials, API key 51, versions 0 alone, flexible from 0.

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

API_KEY: Final = 51
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_bi: Final = _Struct(">bi").pack
_p_bx: Final = _Struct(">bx").pack
_p_h: Final = _Struct(">h").pack
_p_i: Final = _Struct(">i").pack
_u_bB: Final = _Struct(">bB").unpack_from
_u_biB: Final = _Struct(">biB").unpack_from
_u_hB: Final = _Struct(">hB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from


class ScramCredentialDeletion(Message):
    """Part of AlterUserScramCredentialsRequest, versions 0."""

    __slots__ = (
        "name",
        "mechanism",
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism


class ScramCredentialUpsertion(Message):
    """Part of AlterUserScramCredentialsRequest, versions 0."""

    __slots__ = (
        "name",
        "mechanism",
        "iterations",
        "salt",
        "salted_password",
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b'',
        salted_password: bytes = b'',
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.salt: bytes = salt
        self.salted_password: bytes = salted_password


class AlterUserScramCredentialsRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "deletions",
        "upsertions",
    )

    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] = EMPTY,
        upsertions: list[ScramCredentialUpsertion] = EMPTY,
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = [] if deletions is EMPTY else deletions
        self.upsertions: list[ScramCredentialUpsertion] = [] if upsertions is EMPTY else upsertions


class AlterUserScramCredentialsResult(Message):
    """Part of AlterUserScramCredentialsResponse, versions 0."""

    __slots__ = (
        "user",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class AlterUserScramCredentialsResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterUserScramCredentialsResult] = [] if results is EMPTY else results


def _decode_request_v0(view: bytes | memoryview) -> AlterUserScramCredentialsRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = AlterUserScramCredentialsRequest.__new__(AlterUserScramCredentialsRequest)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("deletions")
    n -= 1
    if n * 3 > end - p:
        raise count_error("deletions", n)
    left -= n
    if left < 0:
        raise limit_error("deletions")
    items: list[ScramCredentialDeletion] = []
    m.deletions = items
    for _ in range(n):
        item = ScramCredentialDeletion.__new__(ScramCredentialDeletion)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        item.mechanism, n = _u_bB(data, p)
        p += 2
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ScramCredentialDeletion")
            p = skip_fields(data, p, n)
        items.append(item)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("upsertions")
    n -= 1
    if n * 9 > end - p:
        raise count_error("upsertions", n)
    left -= n
    if left < 0:
        raise limit_error("upsertions")
    items1: list[ScramCredentialUpsertion] = []
    m.upsertions = items1
    for _ in range(n):
        item1 = ScramCredentialUpsertion.__new__(ScramCredentialUpsertion)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.mechanism, item1.iterations, n = _u_biB(data, p)
        p += 6
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("salt")
        e = p + n - 1
        item1.salt = data[p:e]
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("salted_password")
        e = p + n - 1
        item1.salted_password = data[p:e]
        p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("ScramCredentialUpsertion")
            p = skip_fields(data, p, n)
        items1.append(item1)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("AlterUserScramCredentialsRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("AlterUserScramCredentialsRequest")
    return m


def _encode_request_v0(m: AlterUserScramCredentialsRequest) -> bytes:
    out = bytearray()
    items = m.deletions
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
        out += _p_bx(item.mechanism)
    items1 = m.upsertions
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        b1 = item1.name.encode()
        n = len(b1) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b1
        b2 = item1.salt
        out += _p_bi(item1.mechanism, item1.iterations)
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        b3 = item1.salted_password
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += b"\x00"
    out += b"\x00"
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterUserScramCredentialsRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[AlterUserScramCredentialsRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> AlterUserScramCredentialsRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("AlterUserScramCredentialsRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterUserScramCredentialsRequest", version) from None


def encode_request(message: AlterUserScramCredentialsRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterUserScramCredentialsRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> AlterUserScramCredentialsResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = AlterUserScramCredentialsResponse.__new__(AlterUserScramCredentialsResponse)
    m.throttle_time_ms, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("results")
    n -= 1
    if n * 5 > end - p:
        raise count_error("results", n)
    items: list[AlterUserScramCredentialsResult] = []
    m.results = items
    for _ in range(n):
        item = AlterUserScramCredentialsResult.__new__(AlterUserScramCredentialsResult)
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
        raise end_error("AlterUserScramCredentialsResponse")
    return m


def _encode_response_v0(m: AlterUserScramCredentialsResponse) -> bytes:
    out = bytearray()
    items = m.results
    out += _p_i(m.throttle_time_ms)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b = item.user.encode()
        n = len(b) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b
        out += _p_h(item.error_code)
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


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], AlterUserScramCredentialsResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[AlterUserScramCredentialsResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> AlterUserScramCredentialsResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("AlterUserScramCredentialsResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("AlterUserScramCredentialsResponse", version) from None


def encode_response(message: AlterUserScramCredentialsResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"AlterUserScramCredentialsResponse has no version {version} here")
    return encode(message)
