"""A remote segment's set of index files: on the disk, and loaded for reads."""

from typing import Final
from uuid import UUID

from tiered.cache.fair_queue import Client
from tiered.cache.index_files import MANIFEST_SUFFIX, RemoteIndexes
from tiered.errors import RemoteStorageError
from tiered.segment_metadata import RemoteLogSegmentMetadata

HINTS_MAX: Final = 32
"""Readers per segment whose next position is remembered."""


class IndexesEvictedError(RemoteStorageError):
    """A download waited so long that its segment's manifest has left the cache; retriable."""


class StoredSet:
    """A set on the disk.

    Attributes:
        id: Of the segment's copy.
        path: Directory and stem.
        size: Bytes of its files.
        remote: The set in memory, None while it is not.
        pins: Downloads that read its manifest now.
        evicted: Its files have gone, or are about to.
        used: For the pool of sets in memory.
    """

    __slots__ = (
        "client",
        "evicted",
        "id",
        "path",
        "pins",
        "protected",
        "remote",
        "size",
        "used",
        "used_ms",
    )

    def __init__(self, id_: UUID, path: str, size: int) -> None:
        self.id = id_
        self.path = path
        self.size = size
        self.remote: RemoteSegment | None = None
        self.pins = 0
        self.evicted = False
        self.used = False
        self.protected = False
        self.client: Client | None = None
        self.used_ms = 0.0

    def release(self) -> None:
        """Free the memory (called by the pool); readers that hold the set go on."""
        self.remote = None


class RemoteSegment:
    """A remote segment that can be read: its indexes are in memory.

    Attributes:
        metadata: What is known of it.
        indexes: See there.
        hints: Position of the batch that begins with an offset: where readers will go on.
    """

    __slots__ = ("_stored", "hints", "indexes", "metadata")

    def __init__(
        self, stored: StoredSet, metadata: RemoteLogSegmentMetadata, indexes: RemoteIndexes
    ) -> None:
        self._stored = stored
        self.metadata = metadata
        self.indexes = indexes
        self.hints: dict[int, int] = {}

    @property
    def manifest_path(self) -> str:
        """The manifest's file."""
        return self._stored.path + MANIFEST_SUFFIX

    @property
    def path(self) -> str:
        """Directory and stem of its files."""
        return self._stored.path

    def pin(self) -> None:
        """The manifest is about to be read: its file stays until `unpin`.

        Raises:
            IndexesEvictedError: It is gone already.
        """
        if self._stored.evicted:
            raise IndexesEvictedError(f"indexes {self.path} were evicted meanwhile")
        self._stored.pins += 1

    def unpin(self) -> None:
        """It was read."""
        self._stored.pins -= 1

    def chunk_length(self, chunk: int) -> int:
        """Bytes of one chunk."""
        return self.indexes.layout.chunk_length(chunk)

    def remember(self, offset: int, position: int) -> None:
        """The batch at `position` begins with `offset`."""
        hints = self.hints
        if len(hints) >= HINTS_MAX and offset not in hints:
            del hints[next(iter(hints))]
        hints[offset] = position
