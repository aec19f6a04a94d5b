"""Request and response headers.

A frame is an int32 size and then a request or a response; these are the first bytes of what
follows the size:

    request header       v0        v1        v2
      request_api_key      int16     int16     int16
      request_api_version  int16     int16     int16
      correlation_id       int32     int32     int32
      client_id            -         STRING    STRING (nullable)
      tagged fields        -         -         yes

    response header      v0        v1
      correlation_id       int32     int32
      tagged fields        -         yes

Request header v2 and response header v1 go with the flexible versions of an API (KIP-482), with two
oddities: `client_id` stays a STRING with an int16 length in v2, and the answer to ApiVersions has
header v0 always, so that a client can read it before it knows what the broker speaks (KIP-511).
Request header v0 belonged to ControlledShutdown v0 alone, an API that is gone: nothing selects it.

Source: Kafka 4.2, RequestHeader.json, ResponseHeader.json, ApiMessageTypeGenerator.java.
"""

from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from protocol.api_keys import FIRST_FLEXIBLE_VERSION, ApiKey
from protocol.errors import DecodeError
from protocol.primitives import (
    Bytes,
    decode_unsigned_varint,
    encode_string,
    skip_fields,
    skip_tagged_fields,
)

_FIXED: Final = Struct(">hhi")
_FIXED_AND_LENGTH: Final = Struct(">hhih")
_CORRELATION_ID: Final = Struct(">i")
_CORRELATION_ID_AND_TAGS: Final = Struct(">ix")

_NEVER: Final = 0x8000
"""Above every version: where an API has no flexible one."""

_FLEXIBLE_FROM: Final = {int(key): FIRST_FLEXIBLE_VERSION.get(key, _NEVER) for key in ApiKey}


class RequestHeader(NamedTuple):
    """What stands before the body of a request.

    Attributes:
        api_key: Which API; one of `ApiKey`, but kept as a plain int.
        api_version: Version of the body; not checked against what is served.
        correlation_id: Echoed in the response.
        client_id: Name the client gave itself, or None.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


_NEW: Final = tuple.__new__
"""Makes a header without the call that a NamedTuple's own constructor takes; this is a hot path."""


def request_header_version(api_key: int, api_version: int) -> int:
    """Say which request header a version of an API has: 1 or 2.

    Raises:
        DecodeError: No such API.
    """
    try:
        return 2 if api_version >= _FLEXIBLE_FROM[api_key] else 1
    except KeyError:
        raise DecodeError(f"API key {api_key} is not known") from None


def response_header_version(api_key: int, api_version: int) -> int:
    """Say which response header a version of an API has: 0 or 1.

    Raises:
        DecodeError: No such API.
    """
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return request_header_version(api_key, api_version) - 1


def decode_request_header(data: Bytes, position: int = 0) -> tuple[RequestHeader, int]:
    """Read the header of a request.

    Args:
        data: A frame without its size prefix.
        position: Where the header begins.

    Returns:
        The header, and where the body begins.

    Raises:
        DecodeError: Too few bytes, an unknown API, or a malformed client id or tag section. There
            is nobody to answer: Kafka closes the connection, and so do we.
    """
    try:
        api_key, api_version, correlation_id, size = _FIXED_AND_LENGTH.unpack_from(data, position)
        flexible_from = _FLEXIBLE_FROM[api_key]
        position += 10
        client_id = None
        if size >= 0:
            end = position + size
            if end > len(data):
                raise DecodeError(f"client id of {size} bytes, {len(data) - position} are left")
            client_id = str(data[position:end], "utf-8")
            position = end
        elif size != -1:
            raise DecodeError(f"client id of length {size}")
        if api_version >= flexible_from:
            if data[position] == 0:
                position += 1
            else:
                count, position = decode_unsigned_varint(data, position)
                position = skip_fields(data, position, count)
    except (StructError, IndexError):
        raise DecodeError("request header ends early") from None
    except KeyError:
        raise DecodeError(f"API key {api_key} is not known") from None
    except UnicodeDecodeError:
        raise DecodeError("client id is not UTF-8") from None
    return _NEW(RequestHeader, (api_key, api_version, correlation_id, client_id)), position


def encode_request_header(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Write the header of a request, without the frame's size.

    Raises:
        DecodeError: No such API.
        ValueError: The client id is longer than 32,767 bytes.
    """
    version = request_header_version(api_key, api_version)
    fixed = _FIXED.pack(api_key, api_version, correlation_id)
    return fixed + encode_string(client_id) + (b"\x00" if version == 2 else b"")


def response_header_size(api_key: int, api_version: int) -> int:
    """Say how many bytes `encode_response_header` writes: 4 or 5.

    Raises:
        DecodeError: No such API.
    """
    return 4 + response_header_version(api_key, api_version)


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Write the header of a response, without the frame's size.

    Raises:
        DecodeError: No such API.
    """
    if response_header_version(api_key, api_version):
        return _CORRELATION_ID_AND_TAGS.pack(correlation_id)
    return _CORRELATION_ID.pack(correlation_id)


def decode_response_header(data: Bytes, api_key: int, api_version: int) -> tuple[int, int]:
    """Read the header of a response, as a client does.

    Returns:
        The correlation id, and where the body begins.

    Raises:
        DecodeError: Too few bytes, a malformed tag section, or no such API.
    """
    version = response_header_version(api_key, api_version)
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(data, 0)
        return correlation_id, skip_tagged_fields(data, 4) if version else 4
    except (StructError, IndexError):
        raise DecodeError("response header ends early") from None
