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

What a client needs is here. A broker makes a request's context of the header, and a response's
header of that: see `broker.requests.kafka_apis` and `broker.requests.reply`.

Source: Kafka 4.2, RequestHeader.json, ResponseHeader.json, ApiMessageTypeGenerator.java.
"""

from struct import Struct
from struct import error as StructError
from typing import Final

from protocol.api_keys import FIRST_FLEXIBLE_VERSION, ApiKey
from protocol.errors import DecodeError
from protocol.primitives import (
    Bytes,
    encode_string,
    skip_tagged_fields,
)

_FIXED: Final = Struct(">hhi")
_FRAME: Final = Struct(">ihhi")
_CORRELATION_ID: Final = Struct(">i")

_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
"""Looked up once: a member of an enumeration costs a call of Python's each time."""

_NEVER: Final = 0x8000
"""Above every version: where an API has no flexible one."""

_FLEXIBLE_FROM: Final = {int(key): FIRST_FLEXIBLE_VERSION.get(key, _NEVER) for key in ApiKey}


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
    if api_key == _API_VERSIONS:
        return 0
    return request_header_version(api_key, api_version) - 1


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


def encode_request_frame(
    api_key: int, api_version: int, correlation_id: int, client_id: bytes, body: bytes
) -> bytes:
    """Write a whole request: its size, its header, its body.

    Args:
        api_key: Of the API.
        api_version: Of the request.
        correlation_id: Comes back with the answer.
        client_id: As `encode_string` writes it: a connection's is always the same.
        body: Of the request.

    Raises:
        DecodeError: No such API.
    """
    rest = client_id + b"\0" if request_header_version(api_key, api_version) == 2 else client_id
    # The key, the version and the correlation id are eight bytes.
    size = 8 + len(rest) + len(body)
    return _FRAME.pack(size, api_key, api_version, correlation_id) + rest + body


def response_body_at(data: Bytes, api_key: int, api_version: int) -> int:
    """Where the body of a response begins, for who has read its correlation id.

    Raises:
        DecodeError: Too few bytes, a malformed tag section, or no such API.
    """
    if response_header_version(api_key, api_version) == 0:
        return 4
    try:
        return 5 if data[4] == 0 else skip_tagged_fields(data, 4)
    except IndexError:
        raise DecodeError("response header ends early") from None


def decode_response_header(data: Bytes, api_key: int, api_version: int) -> tuple[int, int]:
    """Read the header of a response, as a client does.

    Returns:
        The correlation id, and where the body begins.

    Raises:
        DecodeError: Too few bytes, a malformed tag section, or no such API.
    """
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(data, 0)
    except StructError:
        raise DecodeError("response header ends early") from None
    return correlation_id, response_body_at(data, api_key, api_version)
