"""DescribeCluster, API key 60, versions 0 to 2, flexible from 0.

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

API_KEY: Final = 60
MIN_VERSION: Final = 0
MAX_VERSION: Final = 2
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_b: Final = _Struct(">b").pack
_p_i: Final = _Struct(">i").pack
_p_ih: Final = _Struct(">ih").pack
_p_ix: Final = _Struct(">ix").pack
_p_zbx: Final = _Struct(">?bx").pack
_p_zbzx: Final = _Struct(">?b?x").pack
_p_zx: Final = _Struct(">?x").pack
_u_bB: Final = _Struct(">bB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from
_u_zbB: Final = _Struct(">?bB").unpack_from
_u_zbzB: Final = _Struct(">?b?B").unpack_from


class DescribeClusterRequest(Message):
    """Body of the request, versions 0-2."""

    __slots__ = (
        "include_cluster_authorized_operations",
        "endpoint_type",
        "include_fenced_brokers",
    )

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,  # versions 1-2
        include_fenced_brokers: bool = False,  # versions 2
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.endpoint_type: int = endpoint_type
        self.include_fenced_brokers: bool = include_fenced_brokers


class DescribeClusterBroker(Message):
    """Part of DescribeClusterResponse, versions 0-2."""

    __slots__ = (
        "broker_id",
        "host",
        "port",
        "rack",
        "is_fenced",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,  # versions 2
    ) -> None:
        self.broker_id: int = broker_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.is_fenced: bool = is_fenced


class DescribeClusterResponse(Message):
    """Body of the response, versions 0-2."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,  # versions 1-2
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.endpoint_type: int = endpoint_type
        self.cluster_id: str = cluster_id
        self.controller_id: int = controller_id
        self.brokers: list[DescribeClusterBroker] = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations: int = cluster_authorized_operations


def _decode_request_v0(view: bytes | memoryview) -> DescribeClusterRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeClusterRequest.__new__(DescribeClusterRequest)
    m.endpoint_type = 1
    m.include_fenced_brokers = False
    m.include_cluster_authorized_operations, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeClusterRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeClusterRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> DescribeClusterRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeClusterRequest.__new__(DescribeClusterRequest)
    m.include_fenced_brokers = False
    m.include_cluster_authorized_operations, m.endpoint_type, n = _u_zbB(data, p)
    p += 3
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeClusterRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeClusterRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> DescribeClusterRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = DescribeClusterRequest.__new__(DescribeClusterRequest)
    m.include_cluster_authorized_operations, m.endpoint_type, m.include_fenced_brokers, n = _u_zbzB(data, p)
    p += 4
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("DescribeClusterRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeClusterRequest")
    return m


def _encode_request_v0(m: DescribeClusterRequest) -> bytes:
    out = bytearray()
    out += _p_zx(m.include_cluster_authorized_operations)
    return bytes(out)


def _encode_request_v1(m: DescribeClusterRequest) -> bytes:
    out = bytearray()
    out += _p_zbx(m.include_cluster_authorized_operations, m.endpoint_type)
    return bytes(out)


def _encode_request_v2(m: DescribeClusterRequest) -> bytes:
    out = bytearray()
    out += _p_zbzx(m.include_cluster_authorized_operations, m.endpoint_type, m.include_fenced_brokers)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeClusterRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v2,
}


_request_encoders: Final[dict[int, Callable[[DescribeClusterRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v2,
}


def decode_request(data: bytes | memoryview, version: int) -> DescribeClusterRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("DescribeClusterRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeClusterRequest", version) from None


def encode_request(message: DescribeClusterRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeClusterRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> DescribeClusterResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeClusterResponse.__new__(DescribeClusterResponse)
    m.endpoint_type = 1
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
        raise null_error("cluster_id")
    e = p + n - 1
    m.cluster_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.controller_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("brokers")
    n -= 1
    if n * 11 > end - p:
        raise count_error("brokers", n)
    items: list[DescribeClusterBroker] = []
    m.brokers = items
    for _ in range(n):
        item = DescribeClusterBroker.__new__(DescribeClusterBroker)
        item.is_fenced = False
        item.broker_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.rack = None
        else:
            e = p + n - 1
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    m.cluster_authorized_operations, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeClusterResponse")
    return m


def _decode_response_v1(view: bytes | memoryview) -> DescribeClusterResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeClusterResponse.__new__(DescribeClusterResponse)
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
    m.endpoint_type, n = _u_bB(data, p)
    p += 2
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("cluster_id")
    e = p + n - 1
    m.cluster_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.controller_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("brokers")
    n -= 1
    if n * 11 > end - p:
        raise count_error("brokers", n)
    items: list[DescribeClusterBroker] = []
    m.brokers = items
    for _ in range(n):
        item = DescribeClusterBroker.__new__(DescribeClusterBroker)
        item.is_fenced = False
        item.broker_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.rack = None
        else:
            e = p + n - 1
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        n = data[p]
        p += 1
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    m.cluster_authorized_operations, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeClusterResponse")
    return m


def _decode_response_v2(view: bytes | memoryview) -> DescribeClusterResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = DescribeClusterResponse.__new__(DescribeClusterResponse)
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
    m.endpoint_type, n = _u_bB(data, p)
    p += 2
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("cluster_id")
    e = p + n - 1
    m.cluster_id = data[p:e].decode("utf-8", "replace")
    p = e
    m.controller_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("brokers")
    n -= 1
    if n * 12 > end - p:
        raise count_error("brokers", n)
    items: list[DescribeClusterBroker] = []
    m.brokers = items
    for _ in range(n):
        item = DescribeClusterBroker.__new__(DescribeClusterBroker)
        item.broker_id, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, n = _u_iB(data, p)
        p += 5
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            item.rack = None
        else:
            e = p + n - 1
            item.rack = data[p:e].decode("utf-8", "replace")
            p = e
        item.is_fenced, n = _u_zB(data, p)
        p += 2
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            p = skip_fields(data, p, n)
        items.append(item)
    m.cluster_authorized_operations, n = _u_iB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("DescribeClusterResponse")
    return m


def _encode_response_v0(m: DescribeClusterResponse) -> bytes:
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
    b1 = m.cluster_id.encode()
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    items = m.brokers
    out += _p_i(m.controller_id)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b2 = item.host.encode()
        out += _p_i(item.broker_id)
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_i(item.port)
        v3 = item.rack
        if v3 is None:
            out += b"\x00"
        else:
            b3 = v3.encode()
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
        out += b"\x00"
    out += _p_ix(m.cluster_authorized_operations)
    return bytes(out)


def _encode_response_v1(m: DescribeClusterResponse) -> bytes:
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
    b1 = m.cluster_id.encode()
    out += _p_b(m.endpoint_type)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    items = m.brokers
    out += _p_i(m.controller_id)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b2 = item.host.encode()
        out += _p_i(item.broker_id)
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_i(item.port)
        v3 = item.rack
        if v3 is None:
            out += b"\x00"
        else:
            b3 = v3.encode()
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
        out += b"\x00"
    out += _p_ix(m.cluster_authorized_operations)
    return bytes(out)


def _encode_response_v2(m: DescribeClusterResponse) -> bytes:
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
    b1 = m.cluster_id.encode()
    out += _p_b(m.endpoint_type)
    n = len(b1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b1
    items = m.brokers
    out += _p_i(m.controller_id)
    n = len(items) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item in items:
        b2 = item.host.encode()
        out += _p_i(item.broker_id)
        n = len(b2) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b2
        out += _p_i(item.port)
        v3 = item.rack
        if v3 is None:
            out += b"\x00"
        else:
            b3 = v3.encode()
            n = len(b3) + 1
            if n < 128:
                out.append(n)
            else:
                out += encode_unsigned_varint(n)
            out += b3
        out += _p_zx(item.is_fenced)
    out += _p_ix(m.cluster_authorized_operations)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], DescribeClusterResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v1,
    2: _decode_response_v2,
}


_response_encoders: Final[dict[int, Callable[[DescribeClusterResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v1,
    2: _encode_response_v2,
}


def decode_response(data: bytes | memoryview, version: int) -> DescribeClusterResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("DescribeClusterResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("DescribeClusterResponse", version) from None


def encode_response(message: DescribeClusterResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"DescribeClusterResponse has no version {version} here")
    return encode(message)
