"""Offset index: where in a segment's file an offset begins.

File `<base offset, 20 digits>.index`, big-endian entries of 8 bytes, ascending in both fields:

    byte  size  field
       0     4  relative offset   last offset of the batch that starts at `position` - base offset
       4     4  position          bytes from the start of the .log file

Sparse: an entry is added for the batch that is appended after more than `index.interval.bytes` of
log since the entry before; never for position 0. A look-up gives the greatest entry at or below the
offset, the caller walks forward from there.

Source: Kafka, OffsetIndex.java, AbstractIndex.java.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import ClassVar, Final, cast

from storage.index.reads import WAITING, Reads
from storage.index.sparse_index import SparseIndex
from storage.types.log_files import OFFSET_INDEX_SUFFIX

ENTRY_SIZE: Final = 8

_ENTRY: Final = Struct(">ii")
_unpack: Final = _ENTRY.unpack_from

Columns = tuple["array[int]", "array[int]"]


class OffsetIndex(SparseIndex):
    """The offset index of one segment."""

    __slots__ = ()

    KIND: ClassVar[str] = OFFSET_INDEX_SUFFIX
    ENTRY_SIZE: ClassVar[int] = ENTRY_SIZE

    def append(self, offset: int, position: int, *, save: bool = True) -> None:
        """Add an entry; both fields are above those of the last one.

        Args:
            offset: Last offset of the batch, absolute.
            position: Where that batch starts.
            save: Write the unsaved entries out if they have become many.
        """
        self._append(_ENTRY.pack(offset - self.base_offset, position), save)

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above `offset`; in the file at the next save."""
        entries = self._all()
        keep = bisect_left(
            range(len(entries) // ENTRY_SIZE),
            offset - self.base_offset,
            key=lambda at: _unpack(entries, at * ENTRY_SIZE)[0],
        )
        if keep * ENTRY_SIZE < len(entries):
            self._keep(entries[: keep * ENTRY_SIZE])

    def lookup(self, offset: int, reads: Reads = WAITING) -> tuple[int, int]:
        """The greatest entry at or below `offset`.

        Returns:
            (offset, position) of it, (base offset, 0) when there is none.

        Raises:
            CorruptFileError: The file is missing or cut off: rebuild it.
            WouldBlockError: See `storage.index.reads`.
        """
        return self._last_below(0, offset - self.base_offset, reads)

    def last_entry_up_to(self, position: int, reads: Reads = WAITING) -> tuple[int, int]:
        """The greatest entry whose position is not above `position`, as `lookup` gives it.

        A batch starts there, so a read that ends there ends with a whole batch.
        """
        return self._last_below(1, position, reads)

    def _last_below(self, field: int, limit: int, reads: Reads) -> tuple[int, int]:
        entries: bytes | bytearray | None = self._tail
        if not entries or _unpack(entries, 0)[field] > limit:
            entries = self._load(reads)
            if entries:
                at = bisect_right(self._columns(entries)[field], limit)
                return self._entry_before(entries, at)
            entries = self._tail or b""
        # `bisect_right`, without a function that is made for each look-up and called at each step.
        at, end = 0, len(entries) // ENTRY_SIZE
        while at < end:
            middle = (at + end) // 2
            if _unpack(entries, middle * ENTRY_SIZE)[field] > limit:
                end = middle
            else:
                at = middle + 1
        return self._entry_before(entries, at)

    def _entry_before(self, entries: bytes | bytearray, at: int) -> tuple[int, int]:
        if at == 0:
            return self.base_offset, 0
        relative, position = _unpack(entries, (at - 1) * ENTRY_SIZE)
        return self.base_offset + relative, position

    def _columns(self, entries: bytes) -> Columns:
        """The two fields of the loaded entries in the machine's own byte order.

        A search in them is a call of C; in the entries as they are it is one of Python for every
        step, which a reader of history pays with each fetch.
        """
        columns = self.columns
        if columns is None:
            both = array("i", entries)
            if sys.byteorder == "little":
                both.byteswap()
            columns = self.columns = (both[0::2], both[1::2])
        return cast("Columns", columns)

    def first_entry_from(self, position: int, reads: Reads = WAITING) -> tuple[int, int] | None:
        """The least entry whose position is not below `position`; None without one."""
        entries = self._all(reads)
        at = bisect_left(
            range(len(entries) // ENTRY_SIZE),
            position,
            key=lambda at: _unpack(entries, at * ENTRY_SIZE)[1],
        )
        if at * ENTRY_SIZE == len(entries):
            return None
        relative, found = _unpack(entries, at * ENTRY_SIZE)
        return self.base_offset + relative, found

    @property
    def last_entry(self) -> tuple[int, int]:
        """(offset, position) of the last entry, (base offset, 0) without one."""
        entries = self._last or self._tail or self._load() or self._tail
        if not entries:
            return self.base_offset, 0
        relative, position = _unpack(entries, len(entries) - ENTRY_SIZE)
        return self.base_offset + relative, position

    def entries(self) -> list[tuple[int, int]]:
        """All (offset, position), ascending."""
        loaded = self._all()
        return [(self.base_offset + entry[0], entry[1]) for entry in _ENTRY.iter_unpack(loaded)]
