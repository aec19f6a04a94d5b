"""UpdateRaftVoter, API key 82, versions 0 alone, flexible from 0.

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

API_KEY: Final = 82
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FIRST_FLEXIBLE_VERSION: Final[int | None] = 0

_p_Hx: Final = _Struct(">Hx").pack
_p_hhxx: Final = _Struct(">hhxx").pack
_p_ih: Final = _Struct(">ih").pack
_p_ii: Final = _Struct(">ii").pack
_p_iiu: Final = _Struct(">ii16s").pack
_p_ix: Final = _Struct(">ix").pack
_u_HB: Final = _Struct(">HB").unpack_from
_u_hhB: Final = _Struct(">hhB").unpack_from
_u_iB: Final = _Struct(">iB").unpack_from
_u_ihB: Final = _Struct(">ihB").unpack_from
_u_iiB: Final = _Struct(">iiB").unpack_from
_u_iiuB: Final = _Struct(">ii16sB").unpack_from


class Listener(Message):
    """Part of UpdateRaftVoterRequest, versions 0."""

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


class KRaftVersionFeature(Message):
    """Part of UpdateRaftVoterRequest, versions 0."""

    __slots__ = (
        "min_supported_version",
        "max_supported_version",
    )

    def __init__(
        self,
        *,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version


class UpdateRaftVoterRequest(Message):
    """Body of the request, versions 0."""

    __slots__ = (
        "cluster_id",
        "current_leader_epoch",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "k_raft_version_feature",
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: UUID = NIL_UUID,
        listeners: list[Listener] = EMPTY,
        k_raft_version_feature: KRaftVersionFeature | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.current_leader_epoch: int = current_leader_epoch
        self.voter_id: int = voter_id
        self.voter_directory_id: UUID = voter_directory_id
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners
        self.k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature() if k_raft_version_feature is None else k_raft_version_feature


class CurrentLeader(Message):
    """Part of UpdateRaftVoterResponse, versions 0."""

    __slots__ = (
        "leader_id",
        "leader_epoch",
        "host",
        "port",
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.host: str = host
        self.port: int = port


class UpdateRaftVoterResponse(Message):
    """Body of the response, versions 0."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "current_leader",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader | None = None,  # tag 0
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.current_leader: CurrentLeader | None = current_leader


def _decode_request_v0(view: bytes | memoryview) -> UpdateRaftVoterRequest:
    data = bytes(view)
    end = len(data)
    p = 0
    left = REQUEST_ELEMENTS_MAX
    m = UpdateRaftVoterRequest.__new__(UpdateRaftVoterRequest)
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
    m.current_leader_epoch, m.voter_id, u, n = _u_iiuB(data, p)
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
    s = KRaftVersionFeature.__new__(KRaftVersionFeature)
    s.min_supported_version, s.max_supported_version, n = _u_hhB(data, p)
    p += 5
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("KRaftVersionFeature")
        p = skip_fields(data, p, n)
    m.k_raft_version_feature = s
    n = data[p]
    p += 1
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        left -= n
        if left < 0:
            raise limit_error("UpdateRaftVoterRequest")
        p = skip_fields(data, p, n)
    if p > end:
        raise end_error("UpdateRaftVoterRequest")
    return m


def _encode_request_v0(m: UpdateRaftVoterRequest) -> bytes:
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
    out += _p_iiu(m.current_leader_epoch, m.voter_id, m.voter_directory_id.bytes)
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
    s = m.k_raft_version_feature
    out += _p_hhxx(s.min_supported_version, s.max_supported_version)
    return bytes(out)


_request_decoders: Final[dict[int, Callable[[bytes | memoryview], UpdateRaftVoterRequest]]] = {
    0: _decode_request_v0,
}


_request_encoders: Final[dict[int, Callable[[UpdateRaftVoterRequest], bytes]]] = {
    0: _encode_request_v0,
}


def decode_request(data: bytes | memoryview, version: int) -> UpdateRaftVoterRequest:
    """Read the body of a request; DecodeError for bad bytes and for versions not listed above."""
    decode = _request_decoders.get(version)
    if decode is None:
        raise version_error("UpdateRaftVoterRequest", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("UpdateRaftVoterRequest", version, error) from None


def encode_request(message: UpdateRaftVoterRequest, version: int) -> bytes:
    """Write the body of a request; fields that the version lacks are left out."""
    encode = _request_encoders.get(version)
    if encode is None:
        raise ValueError(f"UpdateRaftVoterRequest has no version {version} here")
    return encode(message)


def _decode_response_v0(view: bytes | memoryview) -> UpdateRaftVoterResponse:
    data = bytes(view)
    end = len(data)
    p = 0
    m = UpdateRaftVoterResponse.__new__(UpdateRaftVoterResponse)
    m.current_leader = None
    m.throttle_time_ms, m.error_code, n = _u_ihB(data, p)
    p += 7
    if n:
        if n > 127:
            n, p = decode_unsigned_varint(data, p - 1)
        for _ in range(n):
            tag, p = decode_unsigned_varint(data, p)
            limit, p = decode_unsigned_varint(data, p)
            limit += p
            if tag == 0:
                s = CurrentLeader.__new__(CurrentLeader)
                s.leader_id, s.leader_epoch, n = _u_iiB(data, p)
                p += 9
                if n > 127:
                    n, p = decode_unsigned_varint(data, p - 1)
                if n == 0:
                    raise null_error("host")
                e = p + n - 1
                s.host = data[p:e].decode()
                p = e
                s.port, n = _u_iB(data, p)
                p += 5
                if n:
                    if n > 127:
                        n, p = decode_unsigned_varint(data, p - 1)
                    p = skip_fields(data, p, n)
                m.current_leader = s
                if p > limit:
                    raise end_error("current_leader")
            if limit > end:
                raise end_error("UpdateRaftVoterResponse")
            p = limit
    if p > end:
        raise end_error("UpdateRaftVoterResponse")
    return m


def _encode_response_v0(m: UpdateRaftVoterResponse) -> bytes:
    out = bytearray()
    out += _p_ih(m.throttle_time_ms, m.error_code)
    count = 0
    section = bytearray()
    t = m.current_leader
    if t is not None and (t.leader_id != -1 or t.leader_epoch != -1 or t.host != "" or t.port != 0):
        count += 1
        content = bytearray()
        b = t.host.encode()
        content += _p_ii(t.leader_id, t.leader_epoch)
        n = len(b) + 1
        if n < 128:
            content.append(n)
        else:
            content += encode_unsigned_varint(n)
        content += b
        content += _p_ix(t.port)
        section += encode_unsigned_varint(0)
        section += encode_unsigned_varint(len(content))
        section += content
    out += encode_unsigned_varint(count)
    out += section
    return bytes(out)


_response_decoders: Final[dict[int, Callable[[bytes | memoryview], UpdateRaftVoterResponse]]] = {
    0: _decode_response_v0,
}


_response_encoders: Final[dict[int, Callable[[UpdateRaftVoterResponse], bytes]]] = {
    0: _encode_response_v0,
}


def decode_response(data: bytes | memoryview, version: int) -> UpdateRaftVoterResponse:
    """Read the body of a response; DecodeError for bad bytes and for versions not listed above."""
    decode = _response_decoders.get(version)
    if decode is None:
        raise version_error("UpdateRaftVoterResponse", version)
    try:
        return decode(data)
    except (IndexError, _StructError, UnicodeDecodeError) as error:
        raise broken("UpdateRaftVoterResponse", version, error) from None


def encode_response(message: UpdateRaftVoterResponse, version: int) -> bytes:
    """Write the body of a response; fields that the version lacks are left out."""
    encode = _response_encoders.get(version)
    if encode is None:
        raise ValueError(f"UpdateRaftVoterResponse has no version {version} here")
    return encode(message)
