"""Frames: what one request or response is wrapped in.

    byte  size  field
       0     4  size of what follows, int32
       4     n  header and body

Memory follows bytes that arrived, never a size that was announced: `check_frame_size` is called
with the four bytes at hand, before anything is set aside for the rest.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from protocol.errors import DecodeError

SIZE: Final = Struct(">i")
"""The prefix."""

FRAME_SIZE_MIN: Final = 8
"""The smallest request: API key, version, correlation id."""


def check_frame_size(size: int, *, frame_size_max: int) -> int:
    """Refuse a frame that is too small to be a request or larger than allowed.

    Args:
        size: As read from the prefix, possibly negative.
        frame_size_max: `socket.request.max.bytes`.

    Raises:
        DecodeError: The connection is to be closed; Kafka does the same and sends nothing.
    """
    if size > frame_size_max:
        raise DecodeError(f"frame of {size} bytes, at most {frame_size_max} are allowed")
    if size < FRAME_SIZE_MIN:
        raise DecodeError(f"frame of {size} bytes is no request")
    return size


def frame(*pieces: bytes) -> bytes:
    """Join header and body and put their size before them."""
    return b"".join((SIZE.pack(sum(map(len, pieces))), *pieces))


def frame_size(buffers: Sequence[bytes | bytearray | memoryview]) -> int:
    """Add up the bytes of a response that is kept in pieces."""
    return sum(map(len, buffers))
