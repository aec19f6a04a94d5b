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

from bisect import bisect_left
from struct import Struct
from typing import ClassVar, Final

from storage.index.reads import WAITING, Reads
from storage.index.sparse_index import SparseIndex
from storage.types.log_files import OFFSET_INDEX_SUFFIX

ENTRY_SIZE: Final = 8

_ENTRY: Final = Struct(">ii")
_unpack: Final = _ENTRY.unpack_from

# Steps that take entries to be equally far from each other, before halving what is left.
_GUESSES: Final = 5


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
            entries = self._load(reads) or self._tail or b""
        return self._entry_before(entries, _count_up_to(entries, field, limit))

    def _entry_before(self, entries: bytes | bytearray, at: int) -> tuple[int, int]:
        if at == 0:
            return self.base_offset, 0
        relative, position = _unpack(entries, (at - 1) * ENTRY_SIZE)
        return self.base_offset + relative, position

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


def _count_up_to(entries: bytes | bytearray, field: int, limit: int) -> int:
    """How many entries have at most `limit` in `field`.

    Batches of one log are mostly of about one size, so the first steps go where the limit would
    stand among entries that are equally far from each other, and most searches end with them.
    """
    if not entries:
        return 0
    at, end = 0, len(entries) // ENTRY_SIZE - 1
    below, above = _unpack(entries, 0)[field], _unpack(entries, end * ENTRY_SIZE)[field]
    if above <= limit:
        return end + 1
    if below > limit:
        return 0
    # From here on `below`, of entry `at`, <= limit < `above`, of entry `end`.
    guesses = _GUESSES
    while end - at > 1:
        if guesses:
            guesses -= 1
            middle = at + max(1, (limit - below) * (end - at) // (above - below))
        else:
            middle = (at + end) // 2
        found = _unpack(entries, middle * ENTRY_SIZE)[field]
        if found > limit:
            end, above = middle, found
        else:
            at, below = middle, found
    return end
