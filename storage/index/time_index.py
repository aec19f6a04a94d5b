"""Time index: up to which offset a segment holds nothing newer than a timestamp.

File `<base offset, 20 digits>.timeindex`, big-endian entries of 12 bytes, ascending in time:

    byte  size  field
       0     8  timestamp         greatest max timestamp of all batches so far, ms since 1970 UTC
       8     4  relative offset   last offset of the first batch that had it - base offset

An entry is added together with one of the offset index, if time has moved since the last; a final
one at a roll, a clean close and after recovery. Its meaning: no batch before this one has a
timestamp as great, so a search for a later time may begin there.

Source: Kafka, TimeIndex.java.
"""

from bisect import bisect_left
from struct import Struct
from typing import ClassVar, Final

from typing_extensions import override

from storage.errors import CorruptFileError
from storage.index.reads import WAITING, Reads
from storage.index.sparse_index import SparseIndex
from storage.types.log_files import TIME_INDEX_SUFFIX

ENTRY_SIZE: Final = 12
NO_TIMESTAMP: Final = -1

_ENTRY: Final = Struct(">qi")
_unpack = _ENTRY.unpack_from


class TimeIndex(SparseIndex):
    """The time index of one segment."""

    __slots__ = ()

    KIND: ClassVar[str] = TIME_INDEX_SUFFIX
    ENTRY_SIZE: ClassVar[int] = ENTRY_SIZE

    @property
    @override
    def is_full(self) -> bool:
        """Room for one entry is left: the one that is added when the segment is rolled."""
        return self.entry_count >= self._max_entries - 1

    def maybe_append(self, timestamp: int, offset: int, *, save: bool = True) -> None:
        """Add an entry, if `timestamp` is above that of the last one.

        Args:
            timestamp: Greatest timestamp of the segment so far, ms; -1 when no record has one.
            offset: Last offset of the first batch that has it.
            save: Write the unsaved entries out if they have become many.
        """
        last_timestamp, last_offset = self.last_entry
        if timestamp > last_timestamp:
            assert offset >= last_offset, (self.path, offset, last_offset)
            self._append(_ENTRY.pack(timestamp, offset - self.base_offset), save)

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above `offset`; in the file at the next save."""
        entries = self._all()
        keep = bisect_left(
            range(len(entries) // ENTRY_SIZE),
            offset - self.base_offset,
            key=lambda at: _unpack(entries, at * ENTRY_SIZE)[1],
        )
        if keep * ENTRY_SIZE < len(entries):
            self._keep(entries[: keep * ENTRY_SIZE])

    def lookup_before(self, timestamp: int) -> tuple[int, int] | None:
        """The greatest entry below `timestamp`, as (timestamp, offset); None without one.

        The first batch that reaches `timestamp` does not lie before that offset's batch.

        Raises:
            CorruptFileError: The file is missing or cut off: rebuild it.
        """
        entries: bytes | bytearray | None = self._tail
        if not entries or _unpack(entries, 0)[0] >= timestamp:
            entries = self._load() or self._tail or b""
        at = bisect_left(
            range(len(entries) // ENTRY_SIZE),
            timestamp,
            key=lambda at: _unpack(entries, at * ENTRY_SIZE)[0],
        )
        if at == 0:
            return None
        found, relative = _unpack(entries, (at - 1) * ENTRY_SIZE)
        if at * ENTRY_SIZE < len(entries) and _unpack(entries, at * ENTRY_SIZE)[1] <= relative:
            raise CorruptFileError(f"index {self.path} is not ascending")
        return found, self.base_offset + relative

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry, (-1, base offset) without one."""
        return self.find_last_entry(WAITING)

    def find_last_entry(self, reads: Reads) -> tuple[int, int]:
        """As `last_entry`; WouldBlockError where `reads` do not wait."""
        entries = self._last or self._tail or self._load(reads) or self._tail
        if not entries:
            return NO_TIMESTAMP, self.base_offset
        timestamp, relative = _unpack(entries, len(entries) - ENTRY_SIZE)
        return timestamp, self.base_offset + relative

    def entries(self) -> list[tuple[int, int]]:
        """All (timestamp, offset), ascending."""
        loaded = self._all()
        return [(entry[0], self.base_offset + entry[1]) for entry in _ENTRY.iter_unpack(loaded)]
