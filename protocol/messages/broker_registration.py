"""BrokerRegistration, API key 62, versions 0 to 4, flexible from 0.

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

API_KEY: Final = 62
MIN_VERSION: Final = 0
MAX_VERSION: Final = 4
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hhx: Final = _Struct(">Hhx").pack
_p_hhx: Final = _Struct(">hhx").pack
_p_i: Final = _Struct(">i").pack
_p_ihqx: Final = _Struct(">ihqx").pack
_p_qx: Final = _Struct(">qx").pack
_p_u: Final = _Struct(">16s").pack
_p_z: Final = _Struct(">?").pack
_p_zx: Final = _Struct(">?x").pack
_u_HhB: Final = _Struct(">HhB").unpack_from
_u_hhB: Final = _Struct(">hhB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihqB: Final = _Struct(">ihqB").unpack_from
_u_qB: Final = _Struct(">qB").unpack_from
_u_u: Final = _Struct(">16s").unpack_from
_u_uB: Final = _Struct(">16sB").unpack_from
_u_zB: Final = _Struct(">?B").unpack_from


class Listener(Message):
    """Part of BrokerRegistrationRequest, versions 0-4."""

    __slots__ = (
        "name",
        "host",
        "port",
        "security_protocol",
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.security_protocol: int = security_protocol


class Feature(Message):
    """Part of BrokerRegistrationRequest, versions 0-4."""

    __slots__ = (
        "name",
        "min_supported_version",
        "max_supported_version",
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name: str = name
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version


class BrokerRegistrationRequest(Message):
    """Body of the request, versions 0-4."""

    __slots__ = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: UUID = NIL_UUID,
        listeners: list[Listener] = EMPTY,
        features: list[Feature] = EMPTY,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,  # versions 1-4
        log_dirs: list[UUID] = EMPTY,  # versions 2-4
        previous_broker_epoch: int = -1,  # versions 3-4
    ) -> None:
        self.broker_id: int = broker_id
        self.cluster_id: str = cluster_id
        self.incarnation_id: UUID = incarnation_id
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners
        self.features: list[Feature] = [] if features is EMPTY else features
        self.rack: str | None = rack
        self.is_migrating_zk_broker: bool = is_migrating_zk_broker
        self.log_dirs: list[UUID] = [] if log_dirs is EMPTY else log_dirs
        self.previous_broker_epoch: int = previous_broker_epoch


class BrokerRegistrationResponse(Message):
    """Body of the response, versions 0-4."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "broker_epoch",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.broker_epoch: int = broker_epoch


def _decode_request_v0(view: bytes | memoryview) -> BrokerRegistrationRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = BrokerRegistrationRequest.__new__(BrokerRegistrationRequest)
    m.is_migrating_zk_broker = False
    m.log_dirs = []
    m.previous_broker_epoch = -1
    m.broker_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("cluster_id")
    e = p + n - 1
    m.cluster_id = data[p:e].decode("utf-8", "replace")
    p = e
    u, n = _u_uB(data, p)
    p += 17
    m.incarnation_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("listeners")
    n -= 1
    if n * 7 > end - p:
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
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, item.security_protocol, n = _u_HhB(data, p)
        p += 5
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("features")
    n -= 1
    if n * 6 > end - p:
        raise count_error("features", n)
    left -= n
    if left < 0:
        raise limit_error("features")
    items1: list[Feature] = []
    m.features = items1
    for _ in range(n):
        item1 = Feature.__new__(Feature)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.min_supported_version, item1.max_supported_version, n = _u_hhB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Feature")
            p = skip_fields(data, p, n)
        items1.append(item1)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.rack = None
    else:
        e = p + n - 1
        m.rack = data[p:e].decode("utf-8", "replace")
        p = e
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("BrokerRegistrationRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("BrokerRegistrationRequest")
    return m


def _decode_request_v1(view: bytes | memoryview) -> BrokerRegistrationRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = BrokerRegistrationRequest.__new__(BrokerRegistrationRequest)
    m.log_dirs = []
    m.previous_broker_epoch = -1
    m.broker_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("cluster_id")
    e = p + n - 1
    m.cluster_id = data[p:e].decode("utf-8", "replace")
    p = e
    u, n = _u_uB(data, p)
    p += 17
    m.incarnation_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("listeners")
    n -= 1
    if n * 7 > end - p:
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
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, item.security_protocol, n = _u_HhB(data, p)
        p += 5
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("features")
    n -= 1
    if n * 6 > end - p:
        raise count_error("features", n)
    left -= n
    if left < 0:
        raise limit_error("features")
    items1: list[Feature] = []
    m.features = items1
    for _ in range(n):
        item1 = Feature.__new__(Feature)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.min_supported_version, item1.max_supported_version, n = _u_hhB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Feature")
            p = skip_fields(data, p, n)
        items1.append(item1)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.rack = None
    else:
        e = p + n - 1
        m.rack = data[p:e].decode("utf-8", "replace")
        p = e
    m.is_migrating_zk_broker, n = _u_zB(data, p)
    p += 2
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("BrokerRegistrationRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("BrokerRegistrationRequest")
    return m


def _decode_request_v2(view: bytes | memoryview) -> BrokerRegistrationRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = BrokerRegistrationRequest.__new__(BrokerRegistrationRequest)
    m.previous_broker_epoch = -1
    m.broker_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("cluster_id")
    e = p + n - 1
    m.cluster_id = data[p:e].decode("utf-8", "replace")
    p = e
    u, n = _u_uB(data, p)
    p += 17
    m.incarnation_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("listeners")
    n -= 1
    if n * 7 > end - p:
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
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, item.security_protocol, n = _u_HhB(data, p)
        p += 5
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("features")
    n -= 1
    if n * 6 > end - p:
        raise count_error("features", n)
    left -= n
    if left < 0:
        raise limit_error("features")
    items1: list[Feature] = []
    m.features = items1
    for _ in range(n):
        item1 = Feature.__new__(Feature)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.min_supported_version, item1.max_supported_version, n = _u_hhB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Feature")
            p = skip_fields(data, p, n)
        items1.append(item1)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.rack = None
    else:
        e = p + n - 1
        m.rack = data[p:e].decode("utf-8", "replace")
        p = e
    m.is_migrating_zk_broker, n = _u_zB(data, p)
    p += 2
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("log_dirs")
    n -= 1
    if n * 16 > end - p:
        raise count_error("log_dirs", n)
    left -= n
    if left < 0:
        raise limit_error("log_dirs")
    items2: list[UUID] = []
    m.log_dirs = items2
    for _ in range(n):
        u1, = _u_u(data, p)
        p += 16
        item2 = uuid_from_bytes(u1)
        items2.append(item2)
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("BrokerRegistrationRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("BrokerRegistrationRequest")
    return m


def _decode_request_v3(view: bytes | memoryview) -> BrokerRegistrationRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = BrokerRegistrationRequest.__new__(BrokerRegistrationRequest)
    m.broker_id, n = _u_iB(data, p)
    p += 5
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("cluster_id")
    e = p + n - 1
    m.cluster_id = data[p:e].decode("utf-8", "replace")
    p = e
    u, n = _u_uB(data, p)
    p += 17
    m.incarnation_id = uuid_from_bytes(u)
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("listeners")
    n -= 1
    if n * 7 > end - p:
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
        item.name = data[p:e].decode("utf-8", "replace")
        p = e
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("host")
        e = p + n - 1
        item.host = data[p:e].decode("utf-8", "replace")
        p = e
        item.port, item.security_protocol, n = _u_HhB(data, p)
        p += 5
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
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("features")
    n -= 1
    if n * 6 > end - p:
        raise count_error("features", n)
    left -= n
    if left < 0:
        raise limit_error("features")
    items1: list[Feature] = []
    m.features = items1
    for _ in range(n):
        item1 = Feature.__new__(Feature)
        n = data[p]
        p += 1
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        if n == 0:
            raise null_error("name")
        e = p + n - 1
        item1.name = data[p:e].decode("utf-8", "replace")
        p = e
        item1.min_supported_version, item1.max_supported_version, n = _u_hhB(data, p)
        p += 5
        if n:
            if n > 127:
                n, p = decode_unsigned_varint(data, p - 1)
            left -= n
            if left < 0:
                raise limit_error("Feature")
            p = skip_fields(data, p, n)
        items1.append(item1)
    n = data[p]
    p += 1
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        m.rack = None
    else:
        e = p + n - 1
        m.rack = data[p:e].decode("utf-8", "replace")
        p = e
    m.is_migrating_zk_broker, n = _u_zB(data, p)
    p += 2
    if n > 127:
        n, p = decode_unsigned_varint(data, p - 1)
    if n == 0:
        raise null_error("log_dirs")
    n -= 1
    if n * 16 > end - p:
        raise count_error("log_dirs", n)
    left -= n
    if left < 0:
        raise limit_error("log_dirs")
    items2: list[UUID] = []
    m.log_dirs = items2
    for _ in range(n):
        u1, = _u_u(data, p)
        p += 16
        item2 = uuid_from_bytes(u1)
        items2.append(item2)
    m.previous_broker_epoch, n = _u_qB(data, p)
    p += 9
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("BrokerRegistrationRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("BrokerRegistrationRequest")
    return m


def _encode_request_v0(m: BrokerRegistrationRequest) -> bytes:
    out = bytearray()
    b = m.cluster_id.encode()
    out += _p_i(m.broker_id)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    items = m.listeners
    out += _p_u(m.incarnation_id.bytes)
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
        out += _p_Hhx(item.port, item.security_protocol)
    items1 = m.features
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        b3 = item1.name.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += _p_hhx(item1.min_supported_version, item1.max_supported_version)
    v4 = m.rack
    if v4 is None:
        out += b"\x00"
    else:
        b4 = v4.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
    out += b"\x00"
    return bytes(out)


def _encode_request_v1(m: BrokerRegistrationRequest) -> bytes:
    out = bytearray()
    b = m.cluster_id.encode()
    out += _p_i(m.broker_id)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    items = m.listeners
    out += _p_u(m.incarnation_id.bytes)
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
        out += _p_Hhx(item.port, item.security_protocol)
    items1 = m.features
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        b3 = item1.name.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += _p_hhx(item1.min_supported_version, item1.max_supported_version)
    v4 = m.rack
    if v4 is None:
        out += b"\x00"
    else:
        b4 = v4.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
    out += _p_zx(m.is_migrating_zk_broker)
    return bytes(out)


def _encode_request_v2(m: BrokerRegistrationRequest) -> bytes:
    out = bytearray()
    b = m.cluster_id.encode()
    out += _p_i(m.broker_id)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    items = m.listeners
    out += _p_u(m.incarnation_id.bytes)
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
        out += _p_Hhx(item.port, item.security_protocol)
    items1 = m.features
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        b3 = item1.name.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += _p_hhx(item1.min_supported_version, item1.max_supported_version)
    v4 = m.rack
    if v4 is None:
        out += b"\x00"
    else:
        b4 = v4.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
    items2 = m.log_dirs
    out += _p_z(m.is_migrating_zk_broker)
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        out += _p_u(item2.bytes)
    out += b"\x00"
    return bytes(out)


def _encode_request_v3(m: BrokerRegistrationRequest) -> bytes:
    out = bytearray()
    b = m.cluster_id.encode()
    out += _p_i(m.broker_id)
    n = len(b) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    out += b
    items = m.listeners
    out += _p_u(m.incarnation_id.bytes)
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
        out += _p_Hhx(item.port, item.security_protocol)
    items1 = m.features
    n = len(items1) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item1 in items1:
        b3 = item1.name.encode()
        n = len(b3) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b3
        out += _p_hhx(item1.min_supported_version, item1.max_supported_version)
    v4 = m.rack
    if v4 is None:
        out += b"\x00"
    else:
        b4 = v4.encode()
        n = len(b4) + 1
        if n < 128:
            out.append(n)
        else:
            out += encode_unsigned_varint(n)
        out += b4
    items2 = m.log_dirs
    out += _p_z(m.is_migrating_zk_broker)
    n = len(items2) + 1
    if n < 128:
        out.append(n)
    else:
        out += encode_unsigned_varint(n)
    for item2 in items2:
        out += _p_u(item2.bytes)
    out += _p_qx(m.previous_broker_epoch)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], BrokerRegistrationRequest]]] = {
    0: _decode_request_v0,
    1: _decode_request_v1,
    2: _decode_request_v2,
    3: _decode_request_v3,
    4: _decode_request_v3,
}


_request_encoders: Final[dict[int, Callable[[BrokerRegistrationRequest], bytes]]] = {
    0: _encode_request_v0,
    1: _encode_request_v1,
    2: _encode_request_v2,
    3: _encode_request_v3,
    4: _encode_request_v3,
}


def decode_request(data: bytes | memoryview, version: int) -> BrokerRegistrationRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("BrokerRegistrationRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("BrokerRegistrationRequest", version) from None


def encode_request(message: BrokerRegistrationRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"BrokerRegistrationRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> BrokerRegistrationResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = BrokerRegistrationResponse.__new__(BrokerRegistrationResponse)
    m.throttle_time_ms, m.error_code, m.broker_epoch, n = _u_ihqB(data, p)
    p += 15
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("BrokerRegistrationResponse")
    return m


def _encode_response_v0(m: BrokerRegistrationResponse) -> bytes:
    out = bytearray()
    out += _p_ihqx(m.throttle_time_ms, m.error_code, m.broker_epoch)
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], BrokerRegistrationResponse]]] = {
    0: _decode_response_v0,
    1: _decode_response_v0,
    2: _decode_response_v0,
    3: _decode_response_v0,
    4: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[BrokerRegistrationResponse], bytes]]] = {
    0: _encode_response_v0,
    1: _encode_response_v0,
    2: _encode_response_v0,
    3: _encode_response_v0,
    4: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> BrokerRegistrationResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("BrokerRegistrationResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError):
        raise broken("BrokerRegistrationResponse", version) from None


def encode_response(message: BrokerRegistrationResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"BrokerRegistrationResponse has no version {version} here")
    return encode(message)
