"""Values in blocks to readers that take or refuse a block as a whole: the broken ones are found.

    [............x.......]   refused
    [.........] [..x.......]   the first half is taken
                [..x..] [.....]  ...

or at once around the row that the reader names.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from protocol.picklable_error import PicklableError

MAX_BLOCK_BYTES: Final = 2 * 1024 * 1024
"""Values that are parsed at once; a larger value is a block of its own."""

MAX_BLOCK_RECORDS: Final = 32_768
"""Arrow's JSON reader takes at most 100,000 rows from a block."""

Part = TypeVar("Part")


class BrokenBlockError(PicklableError):
    """At least one value of a block does not fit.

    Attributes:
        reason: The reader's; of a value alone it is the value's.
        row: Where the reader met it, if it says so; a hint only.
    """

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


def parse_in_blocks(
    values: pa.BinaryArray,
    read: Callable[[pa.BinaryArray], Part],
    max_block_bytes: int = MAX_BLOCK_BYTES,
) -> tuple[list[Part], dict[int, str]]:
    """Give all values to a reader, in blocks that it takes.

    Args:
        values: None is null.
        read: Raises `BrokenBlockError` for a block that it does not take.
        max_block_bytes: See `MAX_BLOCK_BYTES`.

    Returns:
        What the reader made of the blocks that it took, in the values' order; and reasons of the
        values that it took in none, by position, ascending.
    """
    parts: list[Part] = []
    reasons: dict[int, str] = {}
    for first, last in _blocks(values, max_block_bytes):
        ranges = [(first, last)]
        while ranges:
            start, end = ranges.pop()
            try:
                if end > start:
                    parts.append(read(values.slice(start, end - start)))
            except BrokenBlockError as error:
                if end - start == 1:
                    reasons[start] = error.reason
                # A hint counts what the reader saw, which may be more than the values are: it is
                # too large then, and the part before it is refused again, without such a one.
                elif error.row is not None and error.row < end - start:
                    at = start + error.row
                    ranges += [(at + 1, end), (at, at + 1), (start, at)]
                else:
                    middle = (start + end) // 2
                    ranges += [(middle, end), (start, middle)]
    return parts, reasons


def _blocks(values: pa.BinaryArray, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of values whose bytes, and one for each, are at most a block."""
    ends = pc.cumulative_sum(pc.add(pc.binary_length(values).cast(pa.int64()), 1)).to_numpy()
    start = 0
    while start < len(values):
        before = int(ends[start - 1]) if start else 0
        end = int(ends.searchsorted(before + max_bytes, "right"))
        end = min(max(end, start + 1), start + MAX_BLOCK_RECORDS)
        yield start, end
        start = end
