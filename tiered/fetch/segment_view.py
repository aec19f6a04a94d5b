"""View of a remote segment's log through the chunks that are cached.

    log       |--batch--|------batch------|--batch--|-batch-|
    chunks    [      0      |      1      |      2      |  3 ]

Reads like a file (`storage.index.batch_scan` walks it), except that a part may not be there yet.
Files are held open from first use, so eviction cannot take a chunk away within a read.
"""

from collections.abc import Callable

from protocol.picklable_error import PicklableError
from protocol.records.batch import HEADER_SIZE
from storage.errors import CorruptFileError
from storage.types.file_slice import FileSlice
from tiered.cache.remote_segment import RemoteSegment
from tiered.format.chunk_reference import ChunkBytes, ReferencedChunk


class ChunkMissingError(PicklableError):
    """A chunk must come first. `position` is what was to be read."""

    def __init__(self, chunk: int, position: int) -> None:
        super().__init__(f"chunk {chunk} is not here")
        self.chunk = chunk
        self.position = position


class SegmentView:
    """See the module.

    Attributes:
        segment: Which.
        chunk_bytes: Of every chunk but the last.
        log_bytes: Of the log.
        files: The chunks held, open, by number.
    """

    __slots__ = ("_find", "chunk_bytes", "files", "log_bytes", "path", "segment")

    def __init__(
        self, segment: RemoteSegment, find: Callable[[int], ChunkBytes | None] | None
    ) -> None:
        """Hold no file yet.

        Args:
            segment: Which.
            find: Gives a chunk's file if it is here; None: only `files` is used, which may then be
                done in a thread.
        """
        self.segment = segment
        self.chunk_bytes, self.log_bytes = segment.indexes.layout
        self.files: dict[int, ChunkBytes] = {}
        self._find = find
        self.path = segment.path

    def file(self, chunk: int) -> ChunkBytes | None:
        """The file of a chunk, if it is here."""
        file = self.files.get(chunk)
        if file is None and self._find is not None:
            file = self._find(chunk)
            if file is not None:
                self.files[chunk] = file
        return file

    def cached_end(self, position: int, end: int) -> int:
        """Up to where, at most `end`, all is here from `position` on."""
        chunk_bytes = self.chunk_bytes
        chunk = position // chunk_bytes
        while chunk * chunk_bytes < end:
            if self.file(chunk) is None:
                return max(position, chunk * chunk_bytes)
            chunk += 1
        return end

    def missing(self, position: int, end: int) -> list[int]:
        """Chunks of [position, end) that are not here."""
        chunks = range(position // self.chunk_bytes, -(-end // self.chunk_bytes))
        return [chunk for chunk in chunks if self.file(chunk) is None]

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer at the end of the log and of a chunk, but a header at least.

        Nothing is an answer too: at the end of the log, which no chunk need hold.

        Raises:
            ChunkMissingError: Not even a header is here.
            CorruptFileError: A chunk's file is too short.
        """
        size = min(size, self.log_bytes - position)
        if size <= 0:
            return b""
        data = self._read(size, position, position)
        while len(data) < size and len(data) < HEADER_SIZE:
            data += self._read(size - len(data), position + len(data), position)
        return data

    def read_whole(self, size: int, position: int) -> bytes:
        """All of `size` bytes; raises as `read_at`."""
        parts = []
        at = position
        while at < position + size:
            parts.append(self._read(position + size - at, at, position))
            at += len(parts[-1])
        return b"".join(parts)

    def _read(self, size: int, position: int, wanted: int) -> bytes:
        chunk, at = divmod(position, self.chunk_bytes)
        file = self.files.get(chunk) or self.file(chunk)
        if file is None:
            raise ChunkMissingError(chunk, wanted)
        size = min(size, self.chunk_bytes - at)
        data = file.read_at(size, at)
        if len(data) != size:
            raise CorruptFileError(f"chunk {chunk} of {self.path} ends at {at + len(data)}")
        return data

    def slices(self, position: int, end: int) -> list[FileSlice]:
        """[position, end) as parts of the held files."""
        slices = []
        while position < end:
            chunk, at = divmod(position, self.chunk_bytes)
            length = min(self.chunk_bytes - at, end - position)
            file = self.files[chunk]
            if isinstance(file, ReferencedChunk):
                slices.append(file.slice(at, length))
            else:
                slices.append(FileSlice(file, at, length))
            position += length
        return slices
