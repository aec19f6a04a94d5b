"""One stored chunk, decrypted and decompressed part by part.

    stored parts ──CRC──> AES-GCM ──> zstd ──> slices of the original

What it gives is not to be believed before it has given all of it and raised nothing: the sum of the
stored bytes and the tag are compared at the end.
"""

from collections.abc import Generator, Iterator

import pyarrow as pa

from pipeline.read.bytes.byte_source import ByteSource
from pipeline.read.bytes.ranges_ahead import ranges_ahead
from protocol.records.batch import crc32c
from tiered.format.chunk_index import Chunk
from tiered.format.encryption import IV_SIZE, OVERHEAD
from tiered.format.transform import ChunkTransform


def slices_of_stored(
    source: ByteSource,
    chunk: Chunk,
    transform: ChunkTransform,
    stored_crc: int | None,
    into: memoryview,
) -> Generator[int, None, None]:
    """Fill `into` with slice after slice of the original chunk; gives how long each is.

    Args:
        source: Of the object.
        chunk: Which.
        transform: How its segment's chunks are stored.
        stored_crc: Of what is stored; None: not known.
        into: As long as each slice but the last.

    Raises:
        ValueError: It is no chunk of this segment, or its sum does not fit.
        ObjectNotFoundError: And others, as of `PendingBytes.wait`.
    """
    parts = _decrypted(source, chunk, transform, stored_crc, len(into))
    reader = _Reader(parts)
    try:
        if transform.compression:
            yield from _decompressed(reader, chunk.original_size, into)
        else:
            done = 0
            while count := reader.fill(into[: chunk.original_size - done]):
                done += count
                yield count
            if done != chunk.original_size:
                raise ValueError(f"it has {done} bytes, not {chunk.original_size}")
        # For the sums that are compared at the end.
        if reader.fill(memoryview(bytearray(1))):
            raise ValueError("there is more behind it")
    finally:
        parts.close()


def _decompressed(reader: "_Reader", size: int, into: memoryview) -> Iterator[int]:
    done = 0
    with pa.CompressedInputStream(pa.PythonFile(reader, mode="r"), "zstd") as stream:
        while True:
            count = 0
            wanted = min(len(into), size - done)
            try:
                while count < wanted:
                    read = stream.readinto(into[count:wanted])
                    if not read:
                        raise ValueError(f"it has {done + count} bytes, not {size}")
                    count += read
                if not wanted and stream.read(1):
                    raise ValueError(f"it has more than {size} bytes")
            except OSError as error:
                raise ValueError(f"it is not a zstd frame: {error}") from error
            if not wanted:
                return
            done += count
            yield count


def _decrypted(
    source: ByteSource,
    chunk: Chunk,
    transform: ChunkTransform,
    stored_crc: int | None,
    part_bytes: int,
) -> Generator[memoryview, None, None]:
    if transform.cipher is not None and chunk.stored_size < OVERHEAD:
        raise ValueError(f"an encrypted piece cannot have {chunk.stored_size} bytes")
    crc = 0
    head = tail = b""
    left = chunk.stored_size - OVERHEAD
    decryption = None
    room = memoryview(bytearray(0 if transform.cipher is None else part_bytes))
    for part in ranges_ahead(source, chunk.stored_position, chunk.stored_size, part_bytes):
        crc = crc32c(part, crc)
        if transform.cipher is None:
            yield part
            continue
        missing = IV_SIZE - len(head)
        head += bytes(part[:missing])
        body = part[missing:]
        if len(head) < IV_SIZE:
            continue
        if decryption is None:
            decryption = transform.cipher.decryption(head)
        tail += bytes(body[max(left, 0) :])
        body = body[: max(left, 0)]
        left -= len(body)
        if body:
            yield room[: decryption.update(body, room)]
    if stored_crc is not None and crc != stored_crc:
        raise ValueError("it fails its CRC")
    if decryption is not None:
        decryption.finish(tail)


class _Reader:
    """Parts as a file that is read once."""

    def __init__(self, parts: Iterator[memoryview]) -> None:
        self.closed = False
        self._parts = parts
        self._part = memoryview(b"")

    def fill(self, into: memoryview) -> int:
        """Fill `into`, less only at the end."""
        done = 0
        while done < len(into):
            if not self._part:
                part = next(self._parts, None)
                if part is None:
                    break
                self._part = part
                continue
            count = min(len(into) - done, len(self._part))
            into[done : done + count] = self._part[:count]
            self._part = self._part[count:]
            done += count
        return done

    def close(self) -> None:
        """Nothing more is read."""
        self.closed = True

    def read(self, size: int) -> bytes:
        """Up to `size` bytes."""
        data = bytearray(size)
        count = self.fill(memoryview(data))
        return bytes(memoryview(data)[:count])
