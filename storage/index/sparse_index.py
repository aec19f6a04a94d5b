"""Sparse index, the base of the offset and the time index: an ascending file of small entries.

Entries live in two parts, so that an idle segment holds none of them in memory:

    [ saved: in the file, read in when needed, dropped by the pool ][ tail: not yet saved ]

The tail is written out at a roll, at a clean close and whenever it is full; the segment that is
written to is scanned after a crash anyway, so its index need not be on disk. Both parts are the
file's own bytes, no entry becomes an object before it is used. A file that Kafka did not close ends
in zeros, which are no entries.

    begin_save()    with the log's owner: what is to be written, and where
    IndexWrite.run  in any thread: writes it
    finish_save()   with the log's owner: what was written counts as saved

`save` is all three. The entries stay in the tail until the end, so look-ups go on meanwhile.

There is no checksum: a look-up checks whether the batch that an entry names is there, and has the
index rebuilt from the log when it is not (`CorruptFileError`).
"""

from functools import partial
from typing import ClassVar, Final

from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError
from storage.index.reads import WAITING, Reads
from storage.types.log_files import log_file_name

TAIL_ENTRIES_MAX: Final = 2048
"""Unsaved entries held before they are written out; at 4 KiB between them, 8 MiB of log."""


class IndexWrite:
    """Entries on their way into an index file."""

    __slots__ = ("_data", "_filesystem", "_path", "_position", "_rewrite", "count")

    def __init__(
        self,
        filesystem: Filesystem,
        path: str,
        *,
        rewrite: bool,
        data: bytes,
        position: int,
        count: int,
    ) -> None:
        self._filesystem = filesystem
        self._path = path
        self._rewrite = rewrite
        self._data = data
        self._position = position
        self.count = count

    def run(self) -> None:
        """Write to the page cache; creates the file, empty if there are no entries. Blocks.

        Raises:
            DiskError: The disk refused; the entries stay unsaved.
        """
        file = self._filesystem.open(self._path, create=True)
        try:
            if self._rewrite:
                file.truncate(0)
            if self._data:
                file.write_at(self._data, self._position)
        finally:
            file.close()


class SparseIndex:
    """One index file of one segment.

    Attributes:
        directory: Where the file is; follows when the partition's folder is renamed.
        stage: Suffix of the file name while the segment is not a live one, see `log_files`.
        base_offset: Of the segment.
        used: For the pool.
    """

    __slots__ = (
        "_filesystem",
        "_last",
        "_loaded",
        "_max_entries",
        "_rewrite",
        "_saved",
        "_saving",
        "_tail",
        "base_offset",
        "directory",
        "stage",
        "used",
    )

    KIND: ClassVar[str]
    ENTRY_SIZE: ClassVar[int]

    def __init__(
        self,
        directory: str,
        base_offset: int,
        filesystem: Filesystem,
        *,
        max_bytes: int,
        is_new: bool,
        stage: str = "",
    ) -> None:
        """Touch nothing yet.

        Args:
            directory: Of the partition.
            base_offset: Of the segment.
            filesystem: Where it is.
            max_bytes: `segment.index.bytes`, rounded down to whole entries.
            is_new: What the file holds, if there is one, counts for nothing.
            stage: See `log_files`.
        """
        self.directory = directory
        self.base_offset = base_offset
        self.stage = stage
        self.used = False
        self._filesystem = filesystem
        self._max_entries = max_bytes // self.ENTRY_SIZE
        # Entries in the file; -1: not read yet.
        self._saved = 0 if is_new else -1
        self._loaded: bytes | None = None
        self._tail: bytearray | None = None
        # The file, if any, is to be cut to nothing before the next save.
        self._rewrite = is_new
        # The last entry, so that appending never reads the file; None: not known, or there is none.
        self._last: bytes | None = None
        self._saving: IndexWrite | None = None

    @property
    def path(self) -> str:
        """The file, whether it exists or not."""
        return f"{self.directory}/{log_file_name(self.base_offset, self.KIND, self.stage)}"

    @property
    def max_bytes(self) -> int:
        """`segment.index.bytes`, in whole entries."""
        return self._max_entries * self.ENTRY_SIZE

    def set_max_bytes(self, max_bytes: int) -> None:
        """A new `segment.index.bytes`."""
        self._max_entries = max_bytes // self.ENTRY_SIZE

    @property
    def entry_count(self) -> int:
        """Entries, saved or not."""
        if self._saved < 0:
            self._load()
        return self._saved + (len(self._tail) // self.ENTRY_SIZE if self._tail else 0)

    @property
    def is_full(self) -> bool:
        """No entry fits any more (`segment.index.bytes`): the segment must be rolled."""
        return self.entry_count >= self._max_entries

    # -- writing -----------------------------------------------------------------------------

    def _append(self, entry: bytes, save: bool) -> None:
        tail = self._tail
        if tail is None:
            tail = self._tail = bytearray()
        tail += entry
        self._last = entry
        if save and len(tail) >= TAIL_ENTRIES_MAX * self.ENTRY_SIZE:
            self.save()

    @property
    def has_long_tail(self) -> bool:
        """So much is unsaved that it should be written out."""
        return self._tail is not None and len(self._tail) >= TAIL_ENTRIES_MAX * self.ENTRY_SIZE

    def save(self) -> bool:
        """Write unsaved entries to the page cache; creates the file, empty if there are none.

        Returns:
            Whether the file was changed, so that it needs a `sync` to be durable.

        Raises:
            DiskError: The disk refused; the entries stay unsaved.
        """
        write = self.begin_save()
        if write is None:
            return False
        write.run()
        self.finish_save(write)
        return True

    def begin_save(self) -> IndexWrite | None:
        """What has to be written for all entries to be in the file; None: they are.

        Reads the file if that was not done yet (`is_known`).
        """
        tail = self._tail
        if not tail and not self._rewrite:
            return None
        if self._saved < 0:
            self._load()
            tail = self._tail
        self._saving = IndexWrite(
            self._filesystem,
            self.path,
            rewrite=self._rewrite,
            data=bytes(tail or b""),
            position=self._saved * self.ENTRY_SIZE,
            count=len(tail or b"") // self.ENTRY_SIZE,
        )
        return self._saving

    def finish_save(self, write: IndexWrite) -> None:
        """What `begin_save` gave has been written."""
        if self._saving is not write:
            # Truncated or rebuilt meanwhile: the next save writes the file from its beginning.
            return
        self._saving = None
        self._rewrite = False
        if write.count and self._tail is not None:
            self._saved += write.count
            self._tail = self._tail[write.count * self.ENTRY_SIZE :] or None
            self.close()

    @property
    def is_known(self) -> bool:
        """Whether entries can be added without reading the file."""
        return self._saved >= 0 and bool(self._last or self._tail or self._saved == 0)

    def learn(self) -> None:
        """Find out how many entries the file holds, and which one is the last."""
        entries = self._all()
        self._last = entries[-self.ENTRY_SIZE :] or None

    def learn_from(self, other: "SparseIndex") -> None:
        """Take over what another object for the same file has learnt, if it is not known here."""
        if self.is_known or self._tail or self._rewrite:
            return
        if self._saved < 0:
            self._saved = other._saved
            self._tail = other._tail
            self._rewrite = other._rewrite
        self._last = other._last

    def sync(self) -> None:
        """Wait until the saved entries are on disk."""
        file = self._filesystem.open(self.path)
        try:
            file.sync()
        finally:
            file.close()

    def reset(self) -> None:
        """Drop all entries; the file is cut at the next save."""
        self._keep(b"")

    def _keep(self, entries: bytes) -> None:
        self.close()
        self._saved = 0
        self._tail = bytearray(entries)
        self._last = None
        self._saving = None
        self._rewrite = True

    # -- reading -----------------------------------------------------------------------------

    def release(self) -> None:
        """Drop the entries that are in the file (the pool asks for it)."""
        self._loaded = None

    def close(self) -> None:
        """Give memory back; unsaved entries stay."""
        self.release()
        self._filesystem.loaded_indexes.discard(self)

    def reload(self) -> None:
        """Forget what is known of the file, which another object has rewritten.

        Entries that were added meanwhile are lost, which makes the index a little sparser.
        """
        self._saved = -1
        self._tail = None
        self._rewrite = False
        self.close()

    def _all(self, reads: Reads = WAITING) -> bytes:
        """All entries as bytes, saved ones first."""
        loaded = self._load(reads)
        return loaded + self._tail if self._tail else loaded

    def _load(self, reads: Reads = WAITING) -> bytes:
        """The saved entries' bytes, read in if need be.

        A whole file at once, so on the loop it is left to a thread in any case.
        """
        loaded = self._loaded
        if loaded is not None:
            self.used = True
            return loaded
        if self._saved == 0:
            return b""
        path = self.path
        data = reads.call(self, partial(_read, self._filesystem, path))
        size = self.ENTRY_SIZE
        if self._saved < 0:
            if len(data) % size:
                raise CorruptFileError(f"index {path} ends within an entry")
            kept = data
            if data.endswith(bytes(size)):
                # Zeros that Kafka had preallocated: cut them, or the next entries come after them.
                kept = data[: -(-len(data.rstrip(b"\0")) // size) * size]
            if kept != data:
                self._keep(kept + (self._tail or b""))
                return b""
            self._saved = len(data) // size
        elif len(data) < self._saved * size:
            raise CorruptFileError(f"index {path} has lost entries")
        else:
            data = data[: self._saved * size]
        self._loaded = data
        self._filesystem.loaded_indexes.admit(self, len(data) + 1)
        return data


def _read(filesystem: Filesystem, path: str) -> bytes:
    if not filesystem.exists(path):
        raise CorruptFileError(f"index {path} is missing")
    return filesystem.read_bytes(path)
