"""Transaction index: the aborted transactions that ended in a segment.

File `<base offset, 20 digits>.txnindex`, big-endian entries of 34 bytes, in order of their markers:

    byte  size  field
       0     2  version             0
       2     8  producer id
      10     8  first offset        of the transaction's first record in this partition
      18     8  last offset         of its abort marker; ascending from entry to entry
      26     8  last stable offset  when the marker was written; never falls

The file exists only when there is an entry. No checksum: recovery rebuilds it from the log.

A consumer that reads committed records gets, with each fetch, the aborted transactions that overlap
it. They may have ended in a later segment, so a search goes on into the next one until an entry's
last stable offset reaches the end of the fetch: no later abort can begin below it.

A transaction that stays open for long holds the last stable offset of all that are aborted
meanwhile, and so the search back: each fetch below it must know that none of perhaps a hundred
thousand began in its range. What has been searched once is remembered by blocks, as the least first
offset in each, and passed over from then on.

Source: Kafka, TransactionIndex.java, AbortedTxn.java.
"""

from collections.abc import Sequence
from contextlib import closing
from struct import Struct
from typing import Final, NamedTuple

from storage.errors import CorruptFileError, DiskError
from storage.filesystem import File, Filesystem

TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
VERSION: Final = 0
ENTRY_SIZE: Final = 34

_ENTRY: Final = Struct(">hqqqq")
BLOCK_ENTRIES: Final = 1024
"""Entries that are read, and remembered, together: 34 KiB, a tenth of a millisecond."""


class AbortedTxn(NamedTuple):
    """One aborted transaction. Both offsets are inclusive; the last one is the abort marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one segment.

    Entries stay on disk and the file is open only during a call: aborts are rare, and a broker may
    have tens of thousands of segments.

    Attributes:
        path: The file, whether it exists or not.
        unwritten: Entries that found no room in the file, after those in it: their markers are in
            the log, so that they count all the same. The log takes no records before
            `write_unwritten` has worked.
    """

    __slots__ = ("_blocks", "_count", "_filesystem", "_last_offset", "path", "unwritten")

    def __init__(self, path: str, filesystem: Filesystem, *, exists: bool | None = None) -> None:
        """Touch nothing yet.

        Args:
            path: The file.
            filesystem: Where it is.
            exists: Whether there is such a file, if the caller has listed the directory.
        """
        self.path = path
        self.unwritten: tuple[AbortedTxn, ...] = ()
        self._filesystem = filesystem
        # Whole entries in the file; None until looked at.
        self._count: int | None = 0 if exists is False else None
        self._last_offset = -1
        # Whole blocks that were searched: the least first offset, and the last stable offset of
        # the last entry.
        self._blocks: dict[int, tuple[int, int]] = {}

    @property
    def entry_count(self) -> int:
        """Whole entries in the file, and those that are to be."""
        return self._entry_count() + len(self.unwritten)

    def append(self, txn: AbortedTxn) -> None:
        """Add a transaction whose abort marker was just written; creates the file if need be.

        Raises:
            DiskError: The disk refused; the entry is not counted.
        """
        self.extend((txn,))

    def extend(self, txns: Sequence[AbortedTxn]) -> None:
        """Add transactions whose abort markers were just written, in their order; see `append`."""
        count = self._entry_count()
        data = bytearray()
        last_offset = self._last_offset
        for txn in txns:
            assert txn.last_offset > last_offset, (txn, last_offset)
            last_offset = txn.last_offset
            data += _ENTRY.pack(VERSION, *txn)
        with self._opened(create=True) as file:
            file.write_at(data, count * ENTRY_SIZE)
        self._count = count + len(txns)
        self._last_offset = last_offset

    def keep(self, txns: Sequence[AbortedTxn]) -> None:
        """Remember transactions that `extend` found no room for."""
        self.unwritten += tuple(txns)

    def write_unwritten(self) -> None:
        """Write what was kept, if anything was.

        Raises:
            DiskError: The disk refused; it is kept.
        """
        txns, self.unwritten = self.unwritten, ()
        if txns:
            try:
                self.extend(txns)
            except DiskError:
                self.unwritten = txns
                raise

    def collect(self, start: int, end: int) -> tuple[list[AbortedTxn], bool]:
        """The aborted transactions that overlap a fetch of [start, end).

        Returns:
            They, and whether that is all; if not, the next segment's index must be asked too.
        """
        found, is_all = self._collect_written(start, end)
        for txn in self.unwritten:
            if is_all:
                break
            if txn.last_offset >= start:
                if txn.first_offset < end:
                    found.append(txn)
                is_all = txn.last_stable_offset >= end
        return found, is_all

    def _collect_written(self, start: int, end: int) -> tuple[list[AbortedTxn], bool]:
        count = self._entry_count()
        found: list[AbortedTxn] = []
        if count == 0 or self._last_offset < start:
            # A last stable offset is at most the marker + 1, so none of these ends the search.
            return found, False
        with self._opened() as file:
            at = self._first_ending_at(file, start)
            while at < count:
                block, before = divmod(at, BLOCK_ENTRIES)
                known = None if before else self._blocks.get(block)
                if known is not None and known[0] >= end:
                    if known[1] >= end:
                        return found, True
                    at += BLOCK_ENTRIES
                    continue
                size = min(BLOCK_ENTRIES - before, count - at)
                least = stable = -1
                for version, producer_id, first, last, stable in _ENTRY.iter_unpack(
                    self._read_bytes(file, at, size)
                ):
                    if version != VERSION:
                        raise self._unknown_version(version)
                    if first < end:
                        found.append(AbortedTxn(producer_id, first, last, stable))
                    if stable >= end:
                        return found, True
                    if first < least or least < 0:
                        least = first
                if size == BLOCK_ENTRIES:
                    self._blocks[block] = (least, stable)
                at += size
        return found, False

    def entries(self) -> list[AbortedTxn]:
        """All entries, in order."""
        count = self._entry_count()
        if count == 0:
            return list(self.unwritten)
        with self._opened() as file:
            return [*self._read(file, 0, count), *self.unwritten]

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose marker lies at `offset` or above."""
        self.unwritten = tuple(txn for txn in self.unwritten if txn.last_offset < offset)
        if self._entry_count() == 0 or self._last_offset < offset:
            return
        with self._opened() as file:
            keep = self._first_ending_at(file, offset)
            file.truncate(keep * ENTRY_SIZE)
            self._count = keep
            self._blocks.clear()
            self._last_offset = self._read(file, keep - 1, 1)[0].last_offset if keep else -1

    def reset(self) -> None:
        """Drop all entries, before they are rebuilt from the log."""
        self.unwritten = ()
        if self._count != 0 and self._filesystem.exists(self.path):
            with self._opened() as file:
                file.truncate(0)
        self._blocks.clear()
        self._count = 0
        self._last_offset = -1

    def sanity_check(self, start_offset: int) -> None:
        """Look for damage.

        Args:
            start_offset: The segment's base offset.

        Raises:
            CorruptFileError: A cut-off entry, an unknown version, markers before the segment or
                not ascending. The index must be rebuilt.
        """
        if self._count == 0:
            return
        if not self._filesystem.exists(self.path):
            self._count = 0
            return
        with self._opened() as file:
            size = file.size()
            data = file.read_at(size, 0)
        if size % ENTRY_SIZE or len(data) != size:
            raise CorruptFileError(f"transaction index {self.path} ends within an entry")
        previous = start_offset - 1
        for version, *fields in _ENTRY.iter_unpack(data):
            if version != VERSION:
                raise CorruptFileError(f"transaction index {self.path} has version {version}")
            _, first_offset, last_offset, _ = fields
            if last_offset <= previous or first_offset > last_offset:
                raise CorruptFileError(
                    f"transaction index {self.path} has a marker at {last_offset}"
                    f" for a transaction from {first_offset}, after {previous}"
                )
            previous = last_offset
        self._count = size // ENTRY_SIZE
        self._last_offset = previous if self._count else -1

    def flush(self) -> None:
        """Wait until the entries are on disk."""
        self.write_unwritten()
        if self._entry_count():
            with self._opened() as file:
                file.sync()

    def rename_to(self, path: str) -> None:
        """Move the file, if there is one, and go on under its new name."""
        if self._count != 0 and self._filesystem.exists(self.path):
            self._filesystem.rename(self.path, path)
        self.path = path

    def delete(self) -> None:
        """Delete the file, if there is one."""
        if self._count != 0:
            self._filesystem.unlink(self.path, missing_ok=True)
        self._blocks.clear()
        self._count = 0
        self._last_offset = -1

    def close(self) -> None:
        """Nothing is kept open between calls."""

    # ----------------------------------------------------------------------------------------

    def _entry_count(self) -> int:
        if self._count is None:
            count = 0
            if self._filesystem.exists(self.path):
                with self._opened() as file:
                    count = file.size() // ENTRY_SIZE
                    if count:
                        self._last_offset = self._read(file, count - 1, 1)[0].last_offset
            self._count = count
        return self._count

    def _opened(self, *, create: bool = False) -> "closing[File]":
        return closing(self._filesystem.open(self.path, create=create))

    def _read(self, file: File, first: int, count: int) -> list[AbortedTxn]:
        data = self._read_bytes(file, first, count)
        entries = []
        for version, producer_id, first_offset, last_offset, stable in _ENTRY.iter_unpack(data):
            if version != VERSION:
                raise self._unknown_version(version)
            entries.append(AbortedTxn(producer_id, first_offset, last_offset, stable))
        return entries

    def _read_bytes(self, file: File, first: int, count: int) -> bytes:
        data = file.read_at(count * ENTRY_SIZE, first * ENTRY_SIZE)
        if len(data) != count * ENTRY_SIZE:
            raise CorruptFileError(f"transaction index {self.path} has shrunk")
        return data

    def _unknown_version(self, version: int) -> CorruptFileError:
        return CorruptFileError(f"transaction index {self.path} has version {version}")

    def _first_ending_at(self, file: File, offset: int) -> int:
        """Index of the first entry whose marker lies at `offset` or above."""
        low, high = 0, self._entry_count()
        while low < high:
            middle = (low + high) // 2
            if self._read(file, middle, 1)[0].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low
