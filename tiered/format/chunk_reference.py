"""Chunk reference: in place of a copy in the cache, a pointer into a local object.

Where the object store is a directory here, and a segment is stored as it was (neither compressed
nor encrypted), a chunk is a range of a file. The tier process compares it with its checksum, as
ever, and leaves a reference instead of a copy; the range is then sent from the object. A copy would
cost ten times as much CPU where its pages are new, and the disk twice the bytes.

    <name of the chunk>.ref    JSON, UTF-8: {"path", "position", "size", "modified_ns"}

    path         of the object, absolute
    position     where the chunk begins in it
    size         of the object when it was compared
    modified_ns  when it had last been changed then, nanoseconds since 1970

Objects are never changed. One that has another size or time nevertheless is not the one that was
compared: the reference is dropped, and the chunk compared again. The object may be removed (its
segment expires) while it is read: readers that hold it open go on.
"""

import json
from typing import Final, NamedTuple, TypeAlias

from fastcrc import crc32

from storage.environment.filesystem import File, Filesystem
from storage.errors import DiskError
from storage.types.file_slice import FileSlice

REFERENCE_BYTES: Final = 16 * 1024
"""What a reference counts in the cache: what the file takes on a disk, and what is kept in memory.

So a cache of 1 GiB holds 65,536 of them."""

_READ_BYTES: Final = 1024 * 1024


class Reference(NamedTuple):
    """What such a file says."""

    path: str
    position: int
    size: int
    modified_ns: int

    def encode(self) -> bytes:
        """As written."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Reference":
        """As read.

        Raises:
            ValueError: It is none.
        """
        try:
            fields = json.loads(data)
            return cls(
                str(fields["path"]),
                int(fields["position"]),
                int(fields["size"]),
                int(fields["modified_ns"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"no reference to a chunk: {error!r}") from error


class ReferencedChunk:
    """A range of an open object, read like a file of its own.

    Attributes:
        reference: Where it is.
        length: Bytes of the range.
    """

    __slots__ = ("__weakref__", "_file", "length", "reference")

    def __init__(self, file: File, reference: Reference, length: int) -> None:
        self._file = file
        self.reference = reference
        self.length = length

    def is_current(self) -> bool:
        """Whether the object is still the one that was compared."""
        size, modified_ns = self._file.stamp()
        return size == self.reference.size and modified_ns == self.reference.modified_ns

    def of_same_object(self, reference: Reference, length: int) -> "ReferencedChunk":
        """Another range of the file that this one holds open."""
        return ReferencedChunk(self._file, reference, length)

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes of the chunk; fewer at its end."""
        size = min(size, self.length - position)
        return self._file.read_at(size, self.reference.position + position)

    def slice(self, position: int, length: int) -> FileSlice:
        """A part of the chunk, to be sent."""
        return FileSlice(self._file, self.reference.position + position, length)

    def crc(self) -> int:
        """CRC-32C of the chunk; reads all of it."""
        sum_ = 0
        done = 0
        buffer = memoryview(bytearray(min(self.length, _READ_BYTES)))
        while done < self.length:
            part = buffer[: self.length - done]
            count = self._file.read_into(part, self.reference.position + done)
            if count == 0:
                break
            sum_ = crc32.iscsi(part[:count], sum_)
            done += count
        return sum_


ChunkBytes: TypeAlias = File | ReferencedChunk
"""A chunk that is open: a file of the cache, or a range of an object."""


def open_reference(filesystem: Filesystem, path: str, length: int) -> ReferencedChunk:
    """Open what a reference file names.

    Raises:
        DiskError: The object is gone, or it is another one than was compared.
        ValueError: The file is no reference.
    """
    reference = Reference.decode(filesystem.read_bytes(path))
    chunk = ReferencedChunk(filesystem.open(reference.path, readonly=True), reference, length)
    if not chunk.is_current():
        raise DiskError("object was changed after it was compared", reference.path)
    return chunk
