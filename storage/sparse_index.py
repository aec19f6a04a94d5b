"""What the offset index and the time index have in common: an ascending file of small entries.

Entries live in two parts, so that an idle segment holds none of them in memory:

    [ saved: in the file, read in when looked at, dropped by the pool ][ tail: not yet saved ]

The tail is written out at a roll, at a clean close and whenever it is full; the segment that is
written to is scanned after a crash anyway, so its index need not be on disk. Both parts are the
file's own bytes, no entry becomes an object before it is used. A file that Kafka did not close ends
in zeros, which are no entries.

There is no checksum: whoever uses an entry looks whether the batch it names is there, and has the
index rebuilt from the log when it is not (`CorruptFileError`).
"""

from typing import ClassVar, Final

from storage.errors import CorruptFileError
from storage.filesystem import Filesystem
from storage.log_files import log_file_name

TAIL_ENTRIES_MAX: Final = 2048
"""Unsaved entries held before they are written out; at 4 KiB between them, 8 MiB of log."""


class SparseIndex:
    """One index file of one segment.

    Attributes:
        directory: Where the file is; follows when the partition's folder is renamed.
        stage: Suffix of the file name while the segment is not a live one, see `log_files`.
        base_offset: Of the segment.
        used: For the pool.
        columns: What a subclass makes of the loaded entries for its look-ups; goes with them.
    """

    __slots__ = (
        "_filesystem",
        "_loaded",
        "_max_entries",
        "_rewrite",
        "_saved",
        "_tail",
        "base_offset",
        "columns",
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
        # Entries in the file; -1: not looked yet.
        self._saved = 0 if is_new else -1
        self._loaded: bytes | None = None
        self.columns: object | None = None
        self._tail: bytearray | None = None
        # The file, if any, is to be cut to nothing before the next save.
        self._rewrite = is_new

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

    def _append(self, entry: bytes) -> None:
        tail = self._tail
        if tail is None:
            tail = self._tail = bytearray()
        tail += entry
        if len(tail) >= TAIL_ENTRIES_MAX * self.ENTRY_SIZE:
            self.save()

    def save(self) -> bool:
        """Write unsaved entries to the page cache; creates the file, empty if there are none.

        Returns:
            Whether the file was changed, so that it needs a `sync` to be durable.

        Raises:
            DiskError: The disk refused; the entries stay unsaved.
        """
        tail = self._tail
        if not tail and not self._rewrite:
            return False
        if self._saved < 0:
            self._load()
        file = self._filesystem.open(self.path, create=True)
        try:
            if self._rewrite:
                file.truncate(0)
                self._rewrite = False
            if tail:
                file.write_at(bytes(tail), self._saved * self.ENTRY_SIZE)
        finally:
            file.close()
        if tail:
            self._saved += len(tail) // self.ENTRY_SIZE
            self._tail = None
            self.close()
        return True

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
        self._rewrite = True

    # -- reading -----------------------------------------------------------------------------

    def release(self) -> None:
        """Drop the entries that are in the file (the pool asks for it)."""
        self._loaded = None
        self.columns = None

    def close(self) -> None:
        """Give memory back; unsaved entries stay."""
        self.release()
        self._filesystem.loaded_indexes.discard(self)

    def reload(self) -> None:
        """The file was written anew by somebody else: what is known here counts no more.

        Entries that were added meanwhile are lost, which makes the index a little sparser.
        """
        self._saved = -1
        self._tail = None
        self._rewrite = False
        self.close()

    def _all(self) -> bytes:
        """All entries as bytes, saved ones first."""
        loaded = self._load()
        return loaded + self._tail if self._tail else loaded

    def _load(self) -> bytes:
        """The saved entries' bytes, read in if need be."""
        loaded = self._loaded
        if loaded is not None:
            self.used = True
            return loaded
        if self._saved == 0:
            return b""
        path = self.path
        if not self._filesystem.exists(path):
            raise CorruptFileError(f"index {path} is missing")
        data = self._filesystem.read_bytes(path)
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
        self.columns = None
        # Twice: once as bytes, once as what look-ups make of them.
        self._filesystem.loaded_indexes.admit(self, 2 * len(data) + 1)
        return data
