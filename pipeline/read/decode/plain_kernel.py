"""The kernel in plain Python: slow, and the one that can say what is wrong with a record."""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from pipeline.read.decode.gather import take_bytes
from pipeline.read.decode.record_table import (
    Blocks,
    Bytes,
    HeaderTable,
    Int32s,
    Int64s,
    RecordTable,
    Walked,
)
from protocol.errors import DecodeError
from protocol.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_POSITION
from protocol.records.varint import read_varint, read_varlong

FIELDS: Final = 9
"""Numbers of a record, in the order of `RecordTable`'s attributes."""

ROWS_AT_ONCE: Final = 4096
"""Kept as Python's numbers until they are in a table: 2 MB."""

LENGTH_POSITION: Final = 8

_LENGTH: Final = Struct(">i")
_WRAP = 1 << 64
_SIGN = 1 << 63


class BatchFacts(NamedTuple):
    """Header fields that its records need; as in `Blocks`."""

    base_offset: int
    last_offset: int
    base_timestamp: int
    append_timestamp: int | None


class PlainKernel:
    """Finds records one by one."""

    name = "plain"
    group_bytes = 1 << 20

    def walk(self, data: Bytes, blocks: Blocks, table: RecordTable) -> int:
        """See `Kernel`."""
        row = 0
        for index in range(len(blocks.start)):
            start = int(blocks.start[index])
            block = data[start : int(blocks.end[index])].tobytes()
            records = int(blocks.records[index])
            facts = facts_of(blocks, index)
            try:
                walk_rest(block, start, records, facts, facts.base_offset - 1, table, row)
            except DecodeError:
                return index
            row += records
        return len(blocks.start)

    def walk_window(
        self, data: Bytes, blocks: Blocks, previous_offset: int, table: RecordTable
    ) -> Walked:
        """See `Kernel`."""
        start = int(blocks.start[0])
        window = data[start : int(blocks.end[0])].tobytes()
        count = min(int(blocks.records[0]), table.capacity)
        facts = facts_of(blocks, 0)
        found = position = 0
        broken = False
        while found < count and not broken:
            rows: list[int] = []
            wanted = min(count - found, ROWS_AT_ONCE)
            try:
                position = find_records(
                    window, position, wanted, facts, previous_offset, rows, whole=False
                )
            except WindowError as error:
                position = error.position
                broken = True
            store_rows(table, found, rows, start)
            found += len(rows) // FIELDS
            if len(rows) < wanted * FIELDS:
                break
            previous_offset = rows[-FIELDS]
        return Walked(found, start + position, broken)

    def find_headers(self, data: Bytes, starts: Int32s, counts: Int32s) -> HeaderTable:
        """See `Kernel`."""
        view = data.data
        found: list[tuple[int, int, int, int]] = []
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
            if count:
                walk_headers(view, start, count, len(view), found.append)
        columns = np.array(found, np.int32).reshape(-1, 4).T
        return HeaderTable(*(np.ascontiguousarray(column) for column in columns))

    def gather(self, data: Bytes, starts: Int32s, sizes: Int32s) -> Any:
        """See `Kernel`."""
        return take_bytes(data, starts, sizes)

    def find_batches(self, data: memoryview, position: int, count: int) -> tuple[Int64s, bytearray]:
        """See `Kernel`."""
        positions: list[int] = []
        headers = bytearray()
        end = len(data)
        read_length = _LENGTH.unpack_from
        while end - position >= HEADER_SIZE and len(positions) < count:
            size = read_length(data, position + LENGTH_POSITION)[0] + LOG_OVERHEAD
            if (
                data[position + MAGIC_POSITION] != MAGIC
                or not HEADER_SIZE <= size <= end - position
            ):
                break
            positions.append(position)
            headers += data[position : position + HEADER_SIZE]
            position += size
        return np.array(positions, np.int64), headers


class WindowError(DecodeError):
    """A record that is none; `position` is where it begins in the window."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(problem)
        self.position = position


def facts_of(blocks: Blocks, index: int) -> BatchFacts:
    """Header fields of one batch of the blocks."""
    return BatchFacts(
        int(blocks.base_offset[index]),
        int(blocks.last_offset[index]),
        int(blocks.base_timestamp[index]),
        int(blocks.max_timestamp[index]) if blocks.append_time[index] else None,
    )


def store_rows(table: RecordTable, row: int, rows: list[int], start: int) -> None:
    """Put rows with positions in a block that begins at `start` into the table at `row`."""
    if not rows:
        return
    columns = np.array(rows, np.int64).reshape(-1, FIELDS).T
    columns[2::2] += start
    end = row + len(rows) // FIELDS
    table.offset[row:end] = columns[0]
    table.timestamp[row:end] = columns[1]
    table.key_start[row:end] = columns[2]
    table.key_size[row:end] = columns[3]
    table.value_start[row:end] = columns[4]
    table.value_size[row:end] = columns[5]
    table.headers_start[row:end] = columns[6]
    table.header_count[row:end] = columns[7]
    table.end[row:end] = columns[8]


def walk_rest(
    block: bytes,
    start: int,
    count: int,
    facts: BatchFacts,
    previous_offset: int,
    table: RecordTable,
    row: int,
) -> None:
    """Find the last `count` records of a block, of which `block` is what they lie in.

    Args:
        block: From a record's beginning to the block's end.
        start: Where that is in the kernel's data.
        count: Records.
        facts: From the batch's header.
        previous_offset: Of the record before.
        table: Takes them, from `row`.
        row: See there.

    Raises:
        DecodeError: The bytes are not `count` records and nothing else.
    """
    position = 0
    while count:
        rows: list[int] = []
        wanted = min(count, ROWS_AT_ONCE)
        position = find_records(block, position, wanted, facts, previous_offset, rows, whole=True)
        store_rows(table, row, rows, start)
        row += wanted
        count -= wanted
        previous_offset = rows[-FIELDS]
    if position != len(block):
        raise DecodeError(f"{len(block) - position} bytes after the last record")


def find_records(
    block: bytes,
    position: int,
    count: int,
    facts: BatchFacts,
    previous_offset: int,
    found: list[int],
    *,
    whole: bool,
) -> int:
    """Find up to `count` records from `position`.

    Args:
        block: Records, back to back.
        position: Where a record begins.
        count: How many.
        facts: From the batch's header.
        previous_offset: Offset of the record before; the next must be above.
        found: Gets `FIELDS` numbers of each record, with positions in `block`.
        whole: Nothing follows: a record that is cut off is broken. Otherwise it ends the walk.

    Returns:
        Byte after the last record found.

    Raises:
        WindowError: What is at its `position` is no record.
    """
    size = len(block)
    base_offset, last_offset, base_timestamp, append_timestamp = facts
    timestamp = append_timestamp or 0
    begin = position
    try:
        for _ in range(count):
            # Varints of one byte, and of two where usual, are read in place: a call costs more.
            begin = position
            try:
                byte = block[position]
                position += 1
                if byte > 127:
                    second = block[position]
                    if second < 128:
                        byte = byte & 0x7F | second << 7
                        length = (byte >> 1) ^ -(byte & 1)
                        position += 1
                    else:
                        length, position = read_varint(block, begin)
                else:
                    length = (byte >> 1) ^ -(byte & 1)
            except IndexError:
                if whole:
                    raise
                return begin
            end = position + length
            if length < 0:
                raise DecodeError(f"record of {length} bytes")
            if end > size:
                if not whole:
                    return begin
                raise DecodeError(f"record of {length} bytes, {size - position} are left")
            byte = block[position + 1]
            position += 2
            if byte > 127:
                delta, position = read_varlong(block, position - 1)
            else:
                delta = (byte >> 1) ^ -(byte & 1)
            if append_timestamp is None:
                timestamp = base_timestamp + delta
                if not -_SIGN <= timestamp < _SIGN:
                    timestamp = (timestamp + _SIGN) % _WRAP - _SIGN
            byte = block[position]
            position += 1
            if byte > 127:
                second = block[position]
                if second < 128:
                    byte = byte & 0x7F | second << 7
                    delta = (byte >> 1) ^ -(byte & 1)
                    position += 1
                else:
                    delta, position = read_varint(block, position - 1)
            else:
                delta = (byte >> 1) ^ -(byte & 1)
            offset = base_offset + delta
            byte = block[position]
            position += 1
            if byte > 127:
                key_size, position = read_varint(block, position - 1)
            else:
                key_size = (byte >> 1) ^ -(byte & 1)
            key_start = position
            if key_size > 0:
                position += key_size
            byte = block[position] if position < end else _refuse_field(key_size, key_start, end)
            position += 1
            if byte > 127:
                second = block[position]
                if second < 128:
                    byte = byte & 0x7F | second << 7
                    value_size = (byte >> 1) ^ -(byte & 1)
                    position += 1
                else:
                    value_size, position = read_varint(block, position - 1)
            else:
                value_size = (byte >> 1) ^ -(byte & 1)
            value_start = position
            if value_size > 0:
                position += value_size
            if key_size < -1 or value_size < -1 or position >= end:
                _refuse_field(key_size, key_start, end)
                _refuse_field(value_size, value_start, end)
            byte = block[position]
            position += 1
            if byte:
                headers, position = read_varint(block, position - 1)
                headers_start = position
                if headers < 0 or headers * 2 > end - position:
                    raise DecodeError(f"record claims {headers} headers in {end - position} bytes")
                position = walk_headers(block, position, headers, end, None)
            else:
                headers = 0
                headers_start = position
            if position != end:
                raise DecodeError(f"record's length is off by {position - end} bytes")
            if not previous_offset < offset <= last_offset:
                raise DecodeError(
                    f"record has offset {offset}, after {previous_offset} and at most "
                    f"{last_offset} is possible"
                )
            previous_offset = offset
            found += (
                offset,
                timestamp,
                key_start,
                key_size,
                value_start,
                value_size,
                headers_start,
                headers,
                end,
            )
    except IndexError:
        raise WindowError("record is cut off", begin) from None
    except DecodeError as error:
        raise WindowError(str(error), begin) from None
    return position


def _refuse_field(length: int, position: int, end: int) -> int:
    """Raise what is wrong with a nullable field that begins at `position`.

    If it ends where its record does, what follows is missing.
    """
    _after(length, position, end)
    if position + max(length, 0) >= end:
        raise DecodeError("record ends before its headers")
    return 0


def _after(length: int, position: int, end: int) -> int:
    """Byte after a nullable field that begins at `position`."""
    if length == -1:
        return position
    if length < 0 or position + length > end:
        raise DecodeError(f"record has a field of {length} bytes, {end - position} are left")
    return position + length


def walk_headers(
    block: bytes | memoryview,
    position: int,
    count: int,
    end: int,
    found: Callable[[tuple[int, int, int, int]], None] | None,
) -> int:
    """Find a record's headers: (key start, key size, value start, value size); byte after them.

    Raises:
        DecodeError: A length is wrong. IndexError: `block` ends within.
    """
    for _ in range(count):
        key_size, key_start = read_varint(block, position)
        if key_size < 0 or key_start + key_size > end:
            raise DecodeError(f"record header has a key of {key_size} bytes")
        value_size, value_start = read_varint(block, key_start + key_size)
        position = _after(value_size, value_start, end)
        if found is not None:
            found((key_start, key_size, value_start, value_size))
    return position


__all__ = [
    "FIELDS",
    "BatchFacts",
    "PlainKernel",
    "WindowError",
    "facts_of",
    "find_records",
    "store_rows",
    "walk_headers",
    "walk_rest",
]
