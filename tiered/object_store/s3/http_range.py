"""Content ranges: the requested bytes within an HTTP body (RFC 9110, 14.4 and 15.3.7).

    206 + Content-Range: bytes 5-9/100      the body is the range
    200 + Content-Range: bytes 5-9/100      the body is the range (rclone, gofakes3)
    200                                     the body is the whole object: skip up to the range

A missing Content-Range with 206 is taken for the range when the length is right. Anything else is
not what was asked for.
"""

import re
from typing import Final, NamedTuple

from tiered.errors import StoreUnavailableError
from tiered.object_store.deadline import NotRetriedError

_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(?:\d+|\*)")


class BodyWindow(NamedTuple):
    """Where in a body of `body_bytes` the wanted bytes are: after `skip` others."""

    skip: int
    body_bytes: int


def body_window(
    status: int, content_range: str, content_length: int, position: int, length: int
) -> BodyWindow:
    """Where the bytes `position` to `position + length` are in the body.

    Args:
        status: 200 or 206.
        content_range: The header, "" without one.
        content_length: The header, -1 without one.
        position: First byte wanted, in the object.
        length: Bytes wanted, at least 1.

    Raises:
        NotRetriedError: The object ends before the range does.
        StoreUnavailableError: The answer does not fit the question.
    """
    if content_range or status == 206:
        first, body_bytes = position, content_length
        if content_range:
            match = _CONTENT_RANGE.fullmatch(content_range.strip())
            if match is None:
                raise StoreUnavailableError(f"bad Content-Range: {content_range[:100]}")
            first = int(match[1])
            body_bytes = int(match[2]) + 1 - first
        if first != position or content_length not in (-1, body_bytes) or body_bytes > length:
            raise StoreUnavailableError(
                f"asked for {length} bytes from {position}, "
                f"got {content_range or 'no Content-Range'} with {content_length} bytes"
            )
        if body_bytes < length:
            raise NotRetriedError(f"the object ends {length - body_bytes} bytes too early")
        return BodyWindow(0, body_bytes)
    if 0 <= content_length < position + length:
        raise NotRetriedError(f"the object has {content_length} bytes, not {position + length}")
    return BodyWindow(position, content_length)
