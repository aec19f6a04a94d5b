"""Positions of the records of many batches: the arrays that kernels fill, and their interface.

A block is a batch's records, decompressed; layout in `protocol.records.record`. Blocks of several
batches lie in one buffer, with or without other bytes between them. A kernel finds every field's
position and length and judges the structure, all as `protocol.records.record.iterate_records` does,
headers included, but for two things: header keys need not be UTF-8 (the JVM replaces what is not),
and offsets must ascend within [base offset, last offset] of the batch, so that a row is there once
and a range of offsets is a range of rows. The content is not copied.
"""

from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]

BUFFER_MAX: Final = 2**31 - 1
"""Most bytes of one buffer: positions in it are int32."""


class Blocks(NamedTuple):
    """Blocks in one buffer, ascending, an int64 of each kind per block.

    Attributes:
        start, end: Bytes of the block in the buffer.
        records: How many; at most a seventh of the block's bytes (`RECORD_SIZE_MIN`).
        base_offset, last_offset: Of the batch, inclusive.
        base_timestamp: ms.
        append_time: Not 0: every record has `max_timestamp`.
        max_timestamp: ms.
    """

    start: Int64s
    end: Int64s
    records: Int64s
    base_offset: Int64s
    last_offset: Int64s
    base_timestamp: Int64s
    append_time: Int64s
    max_timestamp: Int64s


class RecordTable:
    """Room for `capacity` records; a kernel fills rows 0, 1, ...

    Attributes:
        offset, timestamp: int64; ms, wrapped to 64 bits as the JVM does.
        key_start, key_size, value_start, value_size: int32; size -1 is null. Starts ascend.
        headers_start: Byte after the header count.
        header_count: Headers of the record.
        end: Byte after the record.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.offset: Int64s = np.empty(capacity, np.int64)
        self.timestamp: Int64s = np.empty(capacity, np.int64)
        self.key_start: Int32s = np.empty(capacity, np.int32)
        self.key_size: Int32s = np.empty(capacity, np.int32)
        self.value_start: Int32s = np.empty(capacity, np.int32)
        self.value_size: Int32s = np.empty(capacity, np.int32)
        self.headers_start: Int32s = np.empty(capacity, np.int32)
        self.header_count: Int32s = np.empty(capacity, np.int32)
        self.end: Int32s = np.empty(capacity, np.int32)


class HeaderTable(NamedTuple):
    """Positions of headers, as many as records have together; keys are never null."""

    key_start: Int32s
    key_size: Int32s
    value_start: Int32s
    value_size: Int32s


class Walked(NamedTuple):
    """Progress of a kernel in a window.

    Attributes:
        rows: Records found.
        position: Byte after the last of them.
        broken: What follows is no record, however many more bytes there are.
    """

    rows: int
    position: int
    broken: bool


class Kernel(Protocol):
    """One way to find records; all give the same arrays.

    Attributes:
        name: `compiled`, `numpy` or `plain`.
        group_bytes: Blocks that it likes to be given at once, at least one of `BLOCK_MAX`.
    """

    @property
    def name(self) -> str:
        """As said."""
        ...

    @property
    def group_bytes(self) -> int:
        """As said."""
        ...

    def walk(self, data: Bytes, blocks: Blocks, table: RecordTable) -> int:
        """Find all records of the blocks.

        Returns:
            How many blocks are well formed before the first that is not; the rows of those are
            in the table, back to back.
        """
        ...

    def walk_window(
        self, data: Bytes, blocks: Blocks, previous_offset: int, table: RecordTable
    ) -> Walked:
        """Find records of a block that is seen through windows; `blocks` is of length 1.

        `start` and `end` are the window's, which begins where a record does and may end within
        one: that stays for the next window. `records` are those that are left, of which at
        most the table's capacity are found.

        Args:
            data: Holds the window.
            blocks: As said; `end` of the last window is the block's end.
            previous_offset: Of the record before; base offset - 1 before the first.
            table: What to fill.
        """
        ...

    def find_headers(self, data: Bytes, starts: Int32s, counts: Int32s) -> HeaderTable:
        """Headers of records that `walk` found, those of all records back to back."""
        ...

    def gather(self, data: Bytes, starts: Int32s, sizes: Int32s) -> Any:
        """An Arrow binary array of fields, ascending; size -1 is null. They are copied."""
        ...

    def find_batches(self, data: memoryview, position: int, count: int) -> tuple[Int64s, Any]:
        """Positions and headers (61 bytes each, back to back) of batches from `position` on.

        At most `count`, up to the first that is not of magic 2 or does not lie whole in the data.
        """
        ...


__all__ = [
    "BUFFER_MAX",
    "Blocks",
    "Bytes",
    "HeaderTable",
    "Int32s",
    "Int64s",
    "Kernel",
    "RecordTable",
    "Walked",
]
