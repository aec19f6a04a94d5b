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

What was read is kept, block by block, in the pool of loaded indexes: a reader of history asks with
each fetch. The entries of the segment that is written to stay from the moment they are written.

A transaction that stays open for long holds the last stable offset of all that are aborted
meanwhile, and so the search back: each fetch below it must know that none of perhaps a hundred
thousand began in its range. What has been searched once is remembered by blocks, as the least first
offset in each, and passed over from then on.

Source: Kafka, TransactionIndex.java, AbortedTxn.java.
"""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from storage.environment.filesystem import File, Filesystem
from storage.errors import CorruptFileError
from storage.index.reads import WAITING, Reads

TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
VERSION: Final = 0
ENTRY_SIZE: Final = 34

_ENTRY: Final = Struct(">hqqqq")
BLOCK_ENTRIES: Final = 1024
"""Entries that are read, and remembered, together: 34 KiB, a tenth of a millisecond."""

KEPT_BLOCKS_MAX: Final = 64
"""Blocks of one index that are kept: 2 MiB, 65,536 aborted transactions in one segment."""


class AbortedTxn(NamedTuple):
    """One aborted transaction. Both offsets are inclusive; the last one is the abort marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one segment.

    The file is open only during a call, and its entries are in memory as long as the pool has room:
    aborts are rare, and a broker may have tens of thousands of segments.

    Attributes:
        path: The file, whether it exists or not.
        unwritten: Entries that found no room in the file, after those in it: their markers are in
            the log, so that they count all the same. The log takes no records before
            `write_unwritten` has worked.
        used: For the pool.
    """

    __slots__ = (
        "_blocks",
        "_count",
        "_filesystem",
        "_kept",
        "_last_offset",
        "path",
        "unwritten",
        "used",
    )

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
        # Whole entries in the file; None until it is read.
        self._count: int | None = 0 if exists is False else None
        self._last_offset = -1
        # Whole blocks that were searched: the least first offset; the last entry's last stable
        # offset and marker.
        self._blocks: dict[int, tuple[int, int, int]] = {}
        # Entries of blocks, as far as they have been written: only the last block is ever short.
        self._kept: dict[int, bytes] = {}
        self.used = False

    @property
    def entry_count(self) -> int:
        """Whole entries in the file, and those that are to be."""
        return self._entry_count() + len(self.unwritten)

    def release(self) -> None:
        """Drop the entries that are in memory (the pool asks for it)."""
        self._kept = {}

    def _forget(self) -> None:
        """The file has changed in another way than by growing."""
        self._blocks.clear()
        self._kept = {}
        self._filesystem.loaded_indexes.discard(self)

    def _keep(self, block: int, entries: bytes) -> None:
        kept = self._kept
        if block not in kept and len(kept) >= KEPT_BLOCKS_MAX:
            del kept[next(iter(kept))]
        kept[block] = entries
        self._filesystem.loaded_indexes.admit(self, sum(map(len, kept.values())))

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
        self._keep_appended(count, bytes(data))

    def keep(self, txns: Sequence[AbortedTxn]) -> None:
        """Remember transactions that `extend` found no room for."""
        self.unwritten += tuple(txns)

    def write_unwritten(self) -> None:
        """Write what was kept, if anything was.

        Raises:
            DiskError: The disk refused; it is kept.
        """
        txns = self.unwritten
        if txns:
            self.extend(txns)
            # Not earlier: another thread asks what is not in the file.
            self.unwritten = ()

    def _keep_appended(self, count: int, data: bytes) -> None:
        """Take what was written behind `count` entries into the blocks that are in memory."""
        block, before = divmod(count, BLOCK_ENTRIES)
        begun = self._kept.get(block, b"") if before else b""
        if len(begun) != before * ENTRY_SIZE:
            # The beginning of the block is not here: it is read when it is asked for.
            self._kept.pop(block, None)
            return
        data = begun + data
        size = BLOCK_ENTRIES * ENTRY_SIZE
        for at in range(0, len(data), size):
            self._keep(block, data[at : at + size])
            block += 1

    def collect(
        self, start: int, end: int, reads: Reads = WAITING
    ) -> tuple[list[AbortedTxn], bool]:
        """The aborted transactions that overlap a fetch of [start, end).

        Returns:
            They, and whether that is all; if not, the next segment's index must be asked too.

        Raises:
            WouldBlockError: `reads` do not wait, and what is needed is not in memory.
        """
        found, is_all = self._collect_written(start, end, reads)
        for txn in self.unwritten:
            if is_all:
                break
            if txn.last_offset >= start:
                if txn.first_offset < end:
                    found.append(txn)
                is_all = txn.last_stable_offset >= end
        return found, is_all

    def _collect_written(self, start: int, end: int, reads: Reads) -> tuple[list[AbortedTxn], bool]:
        count = self._entry_count(reads)
        found: list[AbortedTxn] = []
        if count == 0 or self._last_offset < start:
            # A last stable offset is at most the marker + 1, so none of these ends the search.
            return found, False
        at = self._first_ending_at(start, reads)
        while at < count:
            block, before = divmod(at, BLOCK_ENTRIES)
            known = None if before else self._blocks.get(block)
            if known is not None and known[0] >= end:
                if known[1] >= end:
                    return found, True
                at += BLOCK_ENTRIES
                continue
            size = min(BLOCK_ENTRIES - before, count - at)
            least = stable = last = -1
            entries = memoryview(self._block(block, count, reads))[before * ENTRY_SIZE :]
            for version, producer_id, first, last, stable in _ENTRY.iter_unpack(entries):
                if version != VERSION:
                    raise self._unknown_version(version)
                if first < end:
                    found.append(AbortedTxn(producer_id, first, last, stable))
                if stable >= end:
                    return found, True
                if first < least or least < 0:
                    least = first
            if size == BLOCK_ENTRIES:
                self._blocks[block] = (least, stable, last)
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
        """Drop the entries whose marker lies at `offset` or above; waits until they are gone."""
        self.unwritten = tuple(txn for txn in self.unwritten if txn.last_offset < offset)
        if self._entry_count() == 0 or self._last_offset < offset:
            return
        keep = self._first_ending_at(offset)
        self._forget()
        with self._opened() as file:
            file.truncate(keep * ENTRY_SIZE)
            # No flush syncs a file that has no entries: what came back after a crash would hide
            # committed records of other transactions.
            file.sync()
            self._count = keep
            self._last_offset = self._read(file, keep - 1, 1)[0].last_offset if keep else -1

    def reset(self) -> None:
        """Drop all entries, before they are rebuilt from the log; `sync` follows."""
        self.unwritten = ()
        if self._count != 0 and self._filesystem.exists(self.path):
            with self._opened() as file:
                file.truncate(0)
        self._forget()
        self._count = 0
        self._last_offset = -1

    def sanity_check(self, start_offset: int) -> None:
        """Check the file for damage.

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

    def sync(self) -> None:
        """Wait until the file is on disk as it is, also if all of its entries have gone."""
        if self._filesystem.exists(self.path):
            with self._opened() as file:
                file.sync()

    @property
    def may_be_there(self) -> bool:
        """Whether there may be a file."""
        return self._count != 0

    def delete(self) -> None:
        """Delete the file, if there is one."""
        if self._count != 0:
            self._filesystem.unlink(self.path, missing_ok=True)
        self._forget()
        self._count = 0
        self._last_offset = -1

    def close(self) -> None:
        """Give memory back; nothing is kept open between calls. May be used again."""
        self._kept = {}
        self._filesystem.loaded_indexes.discard(self)

    # ----------------------------------------------------------------------------------------

    def _entry_count(self, reads: Reads = WAITING) -> int:
        if self._count is None:
            self._count, self._last_offset = reads.call((self, "end"), self._read_end)
        return self._count

    def _read_end(self) -> tuple[int, int]:
        """Whole entries in the file, and the last one's marker."""
        if not self._filesystem.exists(self.path):
            return 0, -1
        with self._opened() as file:
            count = file.size() // ENTRY_SIZE
            return count, self._read(file, count - 1, 1)[0].last_offset if count else -1

    def _block(self, block: int, count: int, reads: Reads) -> bytes:
        """The entries of a block, of `count` in the file."""
        first = block * BLOCK_ENTRIES
        size = min(BLOCK_ENTRIES, count - first)
        entries = self._kept.get(block)
        if entries is not None and len(entries) == size * ENTRY_SIZE:
            self.used = True
            return entries
        entries = reads.call((self, block, size), partial(self._read_block, first, size))
        self._keep(block, entries)
        return entries

    def _read_block(self, first: int, size: int) -> bytes:
        with self._opened() as file:
            return self._read_bytes(file, first, size)

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

    def _first_ending_at(self, offset: int, reads: Reads = WAITING) -> int:
        """Index of the first entry whose marker lies at `offset` or above."""
        count = self._entry_count(reads)
        block = bisect_left(
            range(-(-count // BLOCK_ENTRIES)),
            offset,
            key=lambda block: self._last_marker(block, count, reads),
        )
        first = block * BLOCK_ENTRIES
        if first >= count:
            return count
        entries = self._block(block, count, reads)
        return first + bisect_left(
            range(len(entries) // ENTRY_SIZE),
            offset,
            key=lambda place: self._marker(entries, place),
        )

    def _last_marker(self, block: int, count: int, reads: Reads) -> int:
        known = self._blocks.get(block)
        if known is not None:
            return known[2]
        entries = self._block(block, count, reads)
        return self._marker(entries, len(entries) // ENTRY_SIZE - 1)

    def _marker(self, entries: bytes, place: int) -> int:
        version, _, _, last_offset, _ = _ENTRY.unpack_from(entries, place * ENTRY_SIZE)
        if version != VERSION:
            raise self._unknown_version(version)
        found: int = last_offset
        return found
