"""Scan of the batch headers of a `.log` file; records are not read.

A header costs 61 bytes of reading when batches are large, and small batches share one read. Sums
are not checked here: what lies below the recovery point was checked when it came in.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from protocol.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader

WINDOW_MIN: Final = 4096
WINDOW_MAX: Final = 256 * 1024


class Readable(Protocol):
    """What is scanned: a file, or a remote segment that is read like one, through its chunks."""

    def read_at(self, size: int, position: int) -> bytes | bytearray:
        """Up to `size` bytes; fewer than a header only at the end."""
        ...


def read_batch_header(file: Readable, position: int, end: int) -> BatchHeader | None:
    """The header of the batch at `position`, None where no whole batch can begin.

    `end` is where the log ends. None also for bytes that are no batch: what led here is wrong.
    """
    if position < 0 or end - position < HEADER_SIZE:
        return None
    data = file.read_at(HEADER_SIZE, position)
    return _header(data, 0, end - position) if len(data) == HEADER_SIZE else None


def scan_headers(file: Readable, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch from `position`, which must be a batch boundary, to `end`.

    Stops before the first bytes that are no whole batch.
    """
    window: bytes | bytearray = b""
    window_start = position
    window_size = WINDOW_MIN
    while end - position >= HEADER_SIZE:
        at = position - window_start
        if at + HEADER_SIZE > len(window):
            # Batches were small: read more at once. They were large: read headers only.
            window_size = min(window_size * 2, WINDOW_MAX) if at <= len(window) else WINDOW_MIN
            window = file.read_at(min(window_size, end - position), position)
            window_start = position
            at = 0
            if len(window) < HEADER_SIZE:
                return
        header = _header(window, at, end - position)
        if header is None:
            return
        yield position, header
        position += header.batch_length + LOG_OVERHEAD


def _header(data: bytes | bytearray, at: int, left: int) -> BatchHeader | None:
    header: BatchHeader = BatchHeader._make(HEADER.unpack_from(data, at))
    size = header.batch_length + LOG_OVERHEAD
    if header.magic != MAGIC or size < HEADER_SIZE or size > left or header.last_offset_delta < 0:
        return None
    return header
