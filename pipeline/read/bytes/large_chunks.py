"""A segment's log out of chunks that are too large to be held: each is read twice, in slices.

    first     slice 0, slice 1, ...   the chunk's sums are compared; of each slice a sum is noted
    then      slice 0 ─> given, slice 1 ─> given ...    each is compared with what was noted

A chunk has one sum for all of it (two: stored and original), so none of it may be given before
its last byte has come, and with `rsm.config.chunk.size` at a segment's size that is a gigabyte. To
believe the batches' own sums instead would leave their offsets unchecked. So such chunks cost twice
the reading, decrypting and decompressing; those of the default size, and up to
WHOLE_CHUNK_BYTES_MAX, are held in memory and read once (`chunk_stream`).

Where another program has copied the segment there are no sums of chunks; then the second reading is
the only one, and batches are compared with their own (`batch_runs`).

A read whose sum does not match is repeated, as the network may have been the reason.
"""

from array import array
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Final

from pipeline.read.bytes.byte_source import ByteSource
from pipeline.read.bytes.chunk_stream import CARRY_BYTES_MAX, Room
from pipeline.read.bytes.open_segment import OpenSegment
from pipeline.read.bytes.ranges_ahead import ranges_ahead
from pipeline.read.bytes.stored_chunk import slices_of_stored
from pipeline.read.read_errors import DamagedDataError
from protocol.records.batch import crc32c
from tiered.errors import CorruptRemoteDataError
from tiered.format.chunk_index import Chunk

SLICE_BYTES: Final = 4 * 1024 * 1024
"""Of the log, held at once; and asked for in one request."""


class LargeChunkStream:
    """`chunk_stream.LogBytes` of large chunks; see the module."""

    def __init__(
        self,
        segment: OpenSegment,
        source: ByteSource,
        position: int,
        end_position: int,
        slice_bytes: int = SLICE_BYTES,
    ) -> None:
        """Ask for nothing yet; [position, end_position) of the log is at least a byte."""
        self._segment = segment
        self._source = source
        self._position = position
        self._end = end_position
        self._slice_bytes = slice_bytes
        self._room = Room()
        self._parts = self._all()
        self._is_over = False

    def next(self, carry: memoryview) -> memoryview | None:
        """As `LogBytes.next`."""
        if self._is_over:
            return None
        memory = self._room.take(self._slice_bytes)
        begin = CARRY_BYTES_MAX - len(carry)
        memory[begin:CARRY_BYTES_MAX] = carry
        start, end = next(self._parts)
        if start:
            # Only of the first slice, and nothing is carried into that.
            return memory[CARRY_BYTES_MAX + start : CARRY_BYTES_MAX + end]
        return memory[begin : CARRY_BYTES_MAX + end]

    def close(self) -> None:
        """Nothing more is wanted."""
        self._parts.close()

    def _all(self) -> Generator[tuple[int, int], None, None]:
        """Puts slice after slice behind the room in front; gives what of each is wanted."""
        index = self._segment.manifest.chunk_index
        first, last = index.number_at(self._position), index.number_at(self._end - 1)
        for number in range(first, last + 1):
            yield from self._chunk(index.chunk(number))

    def _chunk(self, chunk: Chunk) -> Iterator[tuple[int, int]]:
        sums = self._sums(chunk) if self._segment.manifest.has_sums else None
        wanted = max(self._position - chunk.original_position, 0) // self._slice_bytes
        end = min(self._end - chunk.original_position, chunk.original_size)
        memory = self._room.take(self._slice_bytes)[CARRY_BYTES_MAX:]
        for attempt in (1, 2):
            try:
                with closing(self._slices(chunk, memory, wanted)) as slices:
                    for number, size in slices:
                        if sums is not None and crc32c(memory[:size]) != sums[number]:
                            raise ValueError("two reads of it differ")
                        if number < wanted:
                            continue
                        at = number * self._slice_bytes
                        self._is_over = chunk.original_position + at + size >= self._end
                        start = max(self._position - chunk.original_position - at, 0)
                        yield start, min(size, end - at)
                        wanted = number + 1
                        if at + size >= end:
                            return
            except (ValueError, CorruptRemoteDataError) as error:
                if attempt == 2:
                    raise self._damaged(chunk, error) from error

    def _sums(self, chunk: Chunk) -> "array[int]":
        """The sum of every slice of a chunk, whose own sums fit."""
        manifest = self._segment.manifest
        memory = self._room.take(self._slice_bytes)[CARRY_BYTES_MAX:]
        for attempt in (1, 2):
            sums = array("I")
            total = 0
            try:
                for _, size in self._slices(chunk, memory, 0):
                    total = crc32c(memory[:size], total)
                    sums.append(crc32c(memory[:size]))
                if manifest.chunk_crcs is not None and total != manifest.chunk_crcs[chunk.number]:
                    raise ValueError("it is not the one that was copied")
            except (ValueError, CorruptRemoteDataError) as error:
                if attempt == 2:
                    raise self._damaged(chunk, error) from error
            else:
                return sums
        raise AssertionError("not reached")

    def _slices(
        self, chunk: Chunk, memory: memoryview, first: int
    ) -> Generator[tuple[int, int], None, None]:
        """Put slice after slice into memory, from `first` on if they can be read alone.

        Raises:
            ValueError: The chunk is not what the manifest says.
            CorruptRemoteDataError: The object is too short.
        """
        opened = self._segment.opened
        crcs = opened.manifest.stored_crcs
        crc = None if crcs is None else crcs[chunk.number]
        if not opened.transform.is_plain:
            stored = slices_of_stored(self._source, chunk, opened.transform, crc, memory)
            yield from enumerate(stored)
            return
        start = first * self._slice_bytes
        parts = ranges_ahead(
            self._source,
            chunk.stored_position + start,
            chunk.stored_size - start,
            self._slice_bytes,
        )
        total = 0
        for number, part in enumerate(parts, first):
            total = crc32c(part, total)
            memory[: len(part)] = part
            yield number, len(part)
        if not first and crc is not None and total != crc:
            raise ValueError("it fails its CRC")

    def _damaged(self, chunk: Chunk, error: Exception) -> DamagedDataError:
        position, problem = chunk.stored_position, f"chunk {chunk.number}: {error}"
        if isinstance(error, CorruptRemoteDataError):
            position, problem = error.position, error.problem
        end = chunk.original_position + chunk.original_size
        return DamagedDataError(
            self._segment.keys.log, position, problem, chunk.original_position, end
        )
