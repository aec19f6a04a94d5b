"""A long range of an object, part by part, with the next parts under way."""

from collections import deque
from collections.abc import Generator
from typing import Final

from pipeline.read.bytes.byte_source import ByteSource, PendingBytes

PARTS_AHEAD: Final = 2
"""Requested ahead of the one that is read; none of a file."""


def ranges_ahead(
    source: ByteSource, position: int, size: int, part_bytes: int
) -> Generator[memoryview, None, None]:
    """Parts in order, each valid until the next is asked for.

    Args:
        source: Of the object.
        position: Where the range begins.
        size: Of the range.
        part_bytes: Of each part but the last.

    Raises:
        ObjectNotFoundError: And others, as of `PendingBytes.wait`.
    """
    rooms = [bytearray(min(part_bytes, size)) for _ in range(_rooms(source, size, part_bytes))]
    starts = iter(range(0, size, part_bytes))
    pending: deque[tuple[bytearray, int, PendingBytes]] = deque()
    try:
        while True:
            while rooms and (start := next(starts, None)) is not None:
                room = rooms.pop()
                count = min(part_bytes, size - start)
                into = memoryview(room)[:count]
                pending.append((room, count, source.begin(position + start, into)))
            if not pending:
                return
            room, count, one = pending.popleft()
            one.wait()
            yield memoryview(room)[:count]
            rooms.append(room)
    finally:
        for _, _, one in pending:
            one.cancel()


def _rooms(source: ByteSource, size: int, part_bytes: int) -> int:
    return min(1 if source.is_local else 1 + PARTS_AHEAD, -(-size // part_bytes))
