"""Chunk cache entry: a chunk of a remote segment on the disk, and its source for downloads."""

from collections.abc import Callable
from typing import Protocol

from storage.environment.filesystem import Filesystem
from storage.errors import DiskError
from tiered.format.chunk_file import ChunkFile, open_chunk
from tiered.format.chunk_reference import ChunkBytes, ReferencedChunk
from tiered.segment_metadata import RemoteLogSegmentMetadata


class ChunkSource(Protocol):
    """The segment that a chunk is of: `index_cache.RemoteSegment`."""

    metadata: RemoteLogSegmentMetadata

    @property
    def manifest_path(self) -> str:
        """File of the manifest."""
        ...

    def pin(self) -> None:
        """The manifest stays until `unpin`; raises when it is gone."""
        ...

    def unpin(self) -> None:
        """It may go."""
        ...

    def chunk_length(self, chunk: int) -> int:
        """Bytes of one chunk."""
        ...


class CachedChunk:
    """A chunk that is on the disk.

    Attributes:
        key: Which.
        path: Its file.
        name: What its file's name says.
        length: Its bytes.
        checked: The file was compared with its checksum since this process began.
        unread: Not read yet: it was prefetched, or its reader has left.
        prefetch: The prefetcher's callback, called with its bytes if it is evicted unread. None for
            what a reader waited for.
        used: For the pool of open files.
    """

    __slots__ = (
        "_file",
        "_filesystem",
        "checked",
        "key",
        "length",
        "name",
        "path",
        "prefetch",
        "unread",
        "used",
    )

    def __init__(self, filesystem: Filesystem, path: str, file: ChunkFile) -> None:
        self._filesystem = filesystem
        self.path = path
        self.name = file
        self.key = file.key
        self.length = file.length
        self.checked = False
        self.unread = False
        self.prefetch: Callable[[int], None] | None = None
        self.used = False
        self._file: ChunkBytes | None = None

    @property
    def file(self) -> ChunkBytes:
        """What to read; opened, and counted in the pool, if need be.

        Raises:
            DiskError: It is gone or cut off, or the object that it is a part of was changed.
        """
        file = self._file
        if file is None:
            file = open_chunk(self._filesystem, self.path, self.name)
            self.hold(file)
        elif isinstance(file, ReferencedChunk) and not file.is_current():
            raise DiskError("object was changed after it was compared", file.reference.path)
        if not isinstance(file, ReferencedChunk) and file.size() != self.length:
            # A slice beyond its end would close the connection, again and again.
            raise DiskError("chunk file was cut off", self.path)
        self.used = True
        return file

    def hold(self, file: ChunkBytes) -> None:
        """It has just been opened."""
        self._file = file
        self._filesystem.open_files.admit(self)

    def release(self) -> None:
        """Close the descriptor (called by the pool)."""
        self._file = None
