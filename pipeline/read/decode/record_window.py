"""Windows over the records of one large batch: some MiB at a time, each ending where a record does.

    stream    [piece][piece][piece][piece] ...      decompressed, see `inflate`
    window    [r][r][r][r][r]..                     what is whole is walked and given out
                      [..r][r][r][r]..              what is not begins the next window

A record larger than a window makes it grow: it comes out alone, and takes as much memory as it has,
twice while the next is read. Before memory is taken for a very large one its first fields are
checked: a false length is mostly found by them.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from pipeline.read.decode.plain_kernel import BatchFacts, find_records
from pipeline.read.decode.record_table import BUFFER_MAX, Blocks, Bytes, Kernel, RecordTable
from protocol.errors import DecodeError
from protocol.records.varint import read_varint, read_varlong

WINDOW_BYTES: Final = 2 << 20
"""Decompressed bytes that are walked at once."""

LARGE_RECORD_BYTES: Final = 32 << 20
"""Of a record whose first fields are checked: two of them, the one that is given out and the
next, are held beside all else in 256 MiB."""

RECORD_MAX: Final = BUFFER_MAX - (4 << 20)
"""Most bytes of a record: with what else is in the window, positions in it are int32."""


_VARINT_BYTES: Final = 5


class RecordWindows:
    """Walks one batch, whose pieces come one by one."""

    def __init__(
        self,
        pieces: Iterator[bytes | memoryview],
        facts: BatchFacts,
        records: int,
        kernel: Kernel,
        table: RecordTable,
        *,
        record_max: int = RECORD_MAX,
    ) -> None:
        """Prepare to find `records` records in `pieces`.

        Args:
            pieces: The block.
            facts: From the batch's header.
            records: As the header claims.
            kernel: Finds them.
            table: Refilled for each window.
            record_max: Most bytes of a record.
        """
        self._pieces = pieces
        self._facts = facts
        self._left = records
        self._kernel = kernel
        self._table = table
        self._record_max = record_max
        self._previous_offset = facts.base_offset - 1
        self._window = bytearray()
        self._is_last = False

    def __iter__(self) -> Iterator[tuple[Bytes, int]]:
        """Give (bytes of a window, rows in the table); never 0 rows.

        The bytes stay as they are, so that a large row may point into them.

        Raises:
            DecodeError: The block is damaged, not so many records, or one too large. Rows before
                the damage were given.
        """
        wanted = WINDOW_BYTES
        while self._left:
            self._fill(wanted)
            data = np.frombuffer(self._window, np.uint8)
            rows, position, broken = self._walk(data)
            if rows:
                self._left -= rows
                self._previous_offset = int(self._table.offset[rows - 1])
                yield data, rows
            # A window that was given out must not grow: the next window is another one.
            self._window = bytearray(data.data[position:]) if position else self._window
            del data
            if broken or (self._is_last and not rows):
                self._refuse()
            wanted = WINDOW_BYTES if rows else self._size_of_first()
        rest = len(self._window) + sum(map(len, self._pieces))
        if rest:
            raise DecodeError(f"{rest} bytes after the last record")

    def _fill(self, size: int) -> None:
        while not self._is_last and len(self._window) < size:
            piece = next(self._pieces, None)
            if piece is None:
                self._is_last = True
            else:
                self._window += piece

    def _size_of_first(self) -> int:
        """Bytes of the record that the window begins with, and does not hold whole."""
        length, position = read_varint(self._window, 0)
        if length > LARGE_RECORD_BYTES:
            self._check_large(position, length)
        if length > self._record_max:
            raise DecodeError(
                f"record after offset {self._previous_offset} says that it has {length} bytes; "
                f"{self._record_max} are the most"
            )
        return position + length

    def _check_large(self, position: int, length: int) -> None:
        """Whether a record's key, value or headers may have as many bytes as it says.

        Raises:
            DecodeError: They have not.
        """
        end = position + length
        position += 1  # attributes
        _, position = read_varlong(self._window, position)
        _, position = read_varint(self._window, position)
        for _ in ("key", "value"):
            size, position = read_varint(self._window, position)
            position += max(size, 0)
            if position > end:
                break
            if position + _VARINT_BYTES > len(self._window):
                return  # it reaches beyond what has come
        else:
            headers, _ = read_varint(self._window, position)
            if headers > 0:
                return
        raise DecodeError(
            f"record after offset {self._previous_offset} says that it has {length} bytes, and its "
            "fields have fewer"
        )

    def _walk(self, data: Bytes) -> tuple[int, int, bool]:
        facts = self._facts
        fields = (
            0,
            len(data),
            self._left,
            facts.base_offset,
            facts.last_offset,
            facts.base_timestamp,
            facts.append_timestamp is not None,
            facts.append_timestamp or 0,
        )
        blocks = Blocks(*(np.array([field], np.int64) for field in fields))
        return self._kernel.walk_window(data, blocks, self._previous_offset, self._table)

    def _refuse(self) -> None:
        """Raise what is wrong with the record that the window begins with."""
        window = bytes(self._window)
        find_records(window, 0, 1, self._facts, self._previous_offset, [], whole=True)
        raise DecodeError("its records are damaged")


__all__ = ["RECORD_MAX", "WINDOW_BYTES", "RecordWindows"]
