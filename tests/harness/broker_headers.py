"""A broker's half of the headers: reads those of requests, writes those of responses.

The broker's own is part of its router, where a request's context is made of it.
"""

from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from protocol.errors import DecodeError
from protocol.headers import request_header_version, response_header_version
from protocol.primitives import Bytes, skip_tagged_fields

_FIXED_AND_LENGTH: Final = Struct(">hhih")
_CORRELATION_ID: Final = Struct(">i")


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


def decode_request_header(data: Bytes) -> tuple[RequestHeader, int]:
    """A request's header, and where its body begins; DecodeError when it is malformed."""
    try:
        api_key, api_version, correlation_id, size = _FIXED_AND_LENGTH.unpack_from(data)
        position = _FIXED_AND_LENGTH.size + max(size, 0)
        if size < -1 or position > len(data):
            raise DecodeError(f"client id of {size} bytes")
        client_id = None if size < 0 else str(data[_FIXED_AND_LENGTH.size : position], "utf-8")
        if request_header_version(api_key, api_version) == 2:
            position = skip_tagged_fields(data, position)
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"malformed request header: {error}") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The header of a response, without the frame's size."""
    tags = b"\x00" if response_header_version(api_key, api_version) else b""
    return _CORRELATION_ID.pack(correlation_id) + tags
