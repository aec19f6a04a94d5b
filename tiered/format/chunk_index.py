"""Chunk index: the position of each chunk in the segment's log and in the stored object.

The log is cut into chunks of one size, the last one shorter. Each is compressed and encrypted by
itself and stored behind the one before, so any of them can be fetched alone:

    original   |--- 0 ---|--- 1 ---|--- 2 ---|- 3 -|
    stored     |- 0 -|-- 1 --|- 2 -|3|

In a manifest, either of

    {"type":"fixed","originalChunkSize":4194304,"originalFileSize":9000000,
     "transformedChunkSize":4194332,"finalTransformedChunkSize":611420}
    {"type":"variable","originalChunkSize":4194304,"originalFileSize":9000000,
     "transformedChunks":"<base64 of one zstd frame of the bytes below>"}

    byte  size           field
       0     4           count        of chunks
       4     4           base         least stored size, the last chunk's not counted
       8     1           width        bytes per value, 1 .. 4
       9     width each  sizes        stored size - base, of all chunks but the last
       .     4           last size    the last chunk's stored size

Big-endian; with one chunk only count and last size are there, with none only the count.

Source: Aiven-Open/tiered-storage-for-apache-kafka, ChunkSizesBinaryCodec.java,
TransformedChunksSerializer.java, AbstractChunkIndex.java.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from itertools import accumulate
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

CHUNKS_MAX: Final = 1 << 18
"""Most chunks of a segment: 1 GiB in chunks of 4 KiB."""

_ENCODED_BYTES_MAX: Final = 13 + 4 * CHUNKS_MAX
_INT32_MAX: Final = (1 << 31) - 1
_INT32: Final = Struct(">i")
_HEAD: Final = Struct(">iiB")


class Chunk(NamedTuple):
    """One chunk: where it lies in the segment's log, and where in the stored object."""

    number: int
    original_position: int
    original_size: int
    stored_position: int
    stored_size: int


class ChunkIndex(Protocol):
    """See the module.

    Attributes:
        original_chunk_size: Of every chunk but the last.
        original_file_size: Of the segment's log.
        count: Of chunks.
        stored_file_size: Of the stored object.
    """

    original_chunk_size: int
    original_file_size: int
    count: int
    stored_file_size: int

    def chunk(self, number: int) -> Chunk:
        """A chunk by its number; IndexError outside 0 .. count - 1."""
        ...

    def number_at(self, position: int) -> int:
        """Which chunk holds this byte of the log; IndexError outside of it."""
        ...

    def to_json(self) -> dict[str, Any]:
        """As in a manifest."""
        ...


class _ChunkIndex:
    __slots__ = ("count", "original_chunk_size", "original_file_size", "stored_file_size")

    def __init__(self, original_chunk_size: int, original_file_size: int) -> None:
        _check("originalChunkSize", original_chunk_size, least=1)
        _check("originalFileSize", original_file_size)
        self.original_chunk_size = original_chunk_size
        self.original_file_size = original_file_size
        self.count = chunk_count(original_file_size, original_chunk_size)
        if self.count > CHUNKS_MAX:
            raise ValueError(f"{self.count} chunks are more than {CHUNKS_MAX}")
        self.stored_file_size = 0

    def number_at(self, position: int) -> int:
        """Which chunk holds this byte of the log; IndexError outside of it."""
        if not 0 <= position < self.original_file_size:
            raise IndexError(f"byte {position} of {self.original_file_size}")
        return position // self.original_chunk_size

    def _original(self, number: int) -> tuple[int, int]:
        if not 0 <= number < self.count:
            raise IndexError(f"chunk {number} of {self.count}")
        position = number * self.original_chunk_size
        return position, min(self.original_chunk_size, self.original_file_size - position)


class FixedChunkIndex(_ChunkIndex):
    """Every chunk but the last has one stored size: nothing is compressed."""

    __slots__ = ("final_stored_size", "stored_chunk_size")

    def __init__(
        self,
        original_chunk_size: int,
        original_file_size: int,
        stored_chunk_size: int,
        final_stored_size: int,
    ) -> None:
        """Raises ValueError for sizes that cannot be."""
        super().__init__(original_chunk_size, original_file_size)
        _check("transformedChunkSize", stored_chunk_size)
        _check("finalTransformedChunkSize", final_stored_size)
        self.stored_chunk_size = stored_chunk_size
        self.final_stored_size = final_stored_size
        if self.count:
            self.stored_file_size = (self.count - 1) * stored_chunk_size + final_stored_size

    def chunk(self, number: int) -> Chunk:
        """A chunk by its number; IndexError outside 0 .. count - 1."""
        position, size = self._original(number)
        is_last = number == self.count - 1
        stored_size = self.final_stored_size if is_last else self.stored_chunk_size
        return Chunk(number, position, size, number * self.stored_chunk_size, stored_size)

    def to_json(self) -> dict[str, Any]:
        """As in a manifest."""
        return {
            "type": "fixed",
            "originalChunkSize": self.original_chunk_size,
            "originalFileSize": self.original_file_size,
            "transformedChunkSize": self.stored_chunk_size,
            "finalTransformedChunkSize": self.final_stored_size,
        }


class VariableChunkIndex(_ChunkIndex):
    """Every chunk has a stored size of its own."""

    __slots__ = ("_ends", "_sizes")

    def __init__(
        self, original_chunk_size: int, original_file_size: int, stored_sizes: Sequence[int]
    ) -> None:
        """Raises ValueError for sizes that cannot be, or too many or few."""
        super().__init__(original_chunk_size, original_file_size)
        if len(stored_sizes) != self.count:
            raise ValueError(f"{len(stored_sizes)} stored sizes for {self.count} chunks")
        for size in stored_sizes:
            _check("transformedChunks", size)
        self._sizes = tuple(stored_sizes)
        self._ends = tuple(accumulate(stored_sizes))
        self.stored_file_size = self._ends[-1] if self._ends else 0

    def chunk(self, number: int) -> Chunk:
        """A chunk by its number; IndexError outside 0 .. count - 1."""
        position, size = self._original(number)
        stored_size = self._sizes[number]
        return Chunk(number, position, size, self._ends[number] - stored_size, stored_size)

    def to_json(self) -> dict[str, Any]:
        """As in a manifest."""
        import cramjam

        packed = bytes(cramjam.zstd.compress(encode_sizes(self._sizes)))
        return {
            "type": "variable",
            "originalChunkSize": self.original_chunk_size,
            "originalFileSize": self.original_file_size,
            "transformedChunks": base64.b64encode(packed).decode(),
        }


def chunk_count(file_size: int, chunk_size: int) -> int:
    """How many chunks a file has; an empty one has none."""
    return -(-file_size // chunk_size)


def chunk_index_from_json(fields: Mapping[str, Any]) -> ChunkIndex:
    """What `to_json` gave.

    Raises:
        KeyError, TypeError, ValueError: It is something else.
    """
    kind = fields["type"]
    chunk_size = fields["originalChunkSize"]
    file_size = fields["originalFileSize"]
    if kind == "fixed":
        return FixedChunkIndex(
            chunk_size,
            file_size,
            fields["transformedChunkSize"],
            fields["finalTransformedChunkSize"],
        )
    if kind == "variable":
        return VariableChunkIndex(chunk_size, file_size, _unpack(fields["transformedChunks"]))
    raise ValueError(f"unknown type of chunk index {str(kind)[:40]!r}")


def _unpack(text: str) -> list[int]:
    import cramjam

    try:
        packed = base64.b64decode(text, validate=True)
        room = bytearray(_ENCODED_BYTES_MAX)
        size = cramjam.zstd.decompress_into(packed, room)
    except (binascii.Error, cramjam.DecompressionError) as error:
        raise ValueError(f"transformedChunks cannot be unpacked: {error}") from error
    return decode_sizes(memoryview(room)[:size])


def encode_sizes(sizes: Sequence[int]) -> bytes:
    """Sizes in the bytes that the module shows."""
    count = len(sizes)
    if count < 2:
        return _INT32.pack(count) + b"".join(_INT32.pack(size) for size in sizes)
    *most, last = sizes
    base = min(most)
    width = max(1, ((max(most) - base).bit_length() + 7) // 8)
    return b"".join(
        (
            _HEAD.pack(count, base, width),
            *((size - base).to_bytes(width, "big") for size in most),
            _INT32.pack(last),
        )
    )


def decode_sizes(data: bytes | memoryview) -> list[int]:
    """The sizes in the bytes that the module shows; ValueError when they are something else."""
    if len(data) < _INT32.size:
        raise ValueError("chunk sizes are cut off")
    (count,) = _INT32.unpack_from(data)
    if count < 2:
        if count < 0 or len(data) != _INT32.size * (count + 1):
            raise ValueError(f"chunk sizes claim {count} chunks in {len(data)} bytes")
        return list(_INT32.unpack_from(data, _INT32.size)) if count else []
    if len(data) < _HEAD.size:
        raise ValueError("chunk sizes are cut off")
    _, base, width = _HEAD.unpack_from(data)
    end = _HEAD.size + (count - 1) * width
    if not 1 <= width <= 4 or len(data) != end + _INT32.size:
        raise ValueError(
            f"chunk sizes claim {count} chunks of {width} bytes each in {len(data)} bytes"
        )
    sizes = [
        base + int.from_bytes(data[at : at + width], "big") for at in range(_HEAD.size, end, width)
    ]
    return [*sizes, *_INT32.unpack_from(data, end)]


def _check(name: str, value: object, least: int = 0) -> None:
    if type(value) is not int or not least <= value <= _INT32_MAX:
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a number of {least} .. {_INT32_MAX}")
