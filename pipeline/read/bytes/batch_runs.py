"""Whole batches out of a stream of bytes: found by their lengths, handed on where they lie.

    memory    [....][batch][batch][bat        what is whole is a run; the rest is carried
    memory                      [bat|ch][batch] ...

A batch that is larger than what is ever carried gets memory of its own: rows may point into that
for as long as they like. Structure is checked as far as lengths go; what is in a batch is the
decoder's.

Where the bucket has no sums of chunks (another program wrote it), batches are compared with their
own. Those leave out the base offset, the length and the leader epoch, so it is also checked
whether offsets ascend and stay within the segment. Of two overlapping batches it is unknown which
one lies: neither is given, so a batch waits for the one behind it.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from pipeline.read.bytes.chunk_stream import CARRY_BYTES_MAX, LogBytes
from pipeline.read.read_errors import DamagedBatchError, ReadError
from protocol.records.batch import (
    CRC_POSITION,
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    crc32c,
)

BATCH_BYTES_MAX: Final = 1 << 30
"""Largest batch that is read; it takes as much memory."""

_length: Final = Struct(">i").unpack_from
_crc: Final = Struct(">I").unpack_from
_offset: Final = Struct(">q").unpack_from
_delta: Final = Struct(">i").unpack_from
_LENGTH_POSITION: Final = 8
_DELTA_POSITION: Final = 23
_NOTHING: Final = memoryview(b"")


class BatchRun(NamedTuple):
    """Whole batches that lie one behind the other.

    Attributes:
        position: Of the first, in the segment's log.
        data: Valid until the next run is asked for.
        first_offset: Base offset of the first batch.
        next_offset: After the last batch.
    """

    position: int
    data: memoryview
    first_offset: int
    next_offset: int


class OffsetBounds(NamedTuple):
    """Between which offsets batches without other sums may lie; `end` exclusive."""

    start: int
    end: int


def batch_runs(
    stream: LogBytes,
    key: str,
    position: int,
    end_position: int,
    bounds: OffsetBounds | None = None,
) -> Iterator[BatchRun]:
    """All batches of [position, end_position), both of which are borders of batches.

    Args:
        stream: Gives the bytes.
        key: The object, for errors.
        position: Where the first begins.
        end_position: Where the last ends.
        bounds: Compare batches with their own sums, and offsets with these.

    Raises:
        DamagedBatchError: There is no batch where one should be; all before was yielded.
        DamagedDataError: And others, as `LogBytes.next`.
        ReadError: A batch has more than BATCH_BYTES_MAX bytes.
    """
    cutter = _Cutter(key, end_position, bounds)
    rest = _NOTHING
    while (data := stream.next(rest)) is not None:
        while True:
            end = cutter.whole_bytes(data, position)
            if bounds is not None and position + end < end_position:
                end = cutter.held_back(end, len(data))
            if end:
                yield cutter.run(data[:end], position)
                position += end
            if cutter.damage is not None:
                raise cutter.damage
            rest = data[end:]
            if len(rest) < LOG_OVERHEAD or cutter.size_at(rest, position) <= CARRY_BYTES_MAX:
                break
            view = memoryview(bytearray(cutter.size_at(rest, position)))
            filled = 0
            data = rest
            while True:
                count = min(len(view) - filled, len(data))
                view[filled : filled + count] = data[:count]
                filled += count
                if filled == len(view):
                    break
                more = stream.next(_NOTHING)
                if more is None:
                    raise cutter.broken(position, "the log ends within a batch")
                data = more
            data = data[count:]
            yield cutter.large_run(view, position)
            position += len(view)
            del view
    if rest:
        raise cutter.broken(position, "the log ends within a batch")


class _Cutter:
    """Finds batches by their lengths; `damage` is what stands where it found no further one."""

    def __init__(self, key: str, end_position: int, bounds: OffsetBounds | None) -> None:
        self.damage: DamagedBatchError | None = None
        self._key = key
        self._end = end_position
        self._bounds = bounds
        self._least = 0 if bounds is None else bounds.start
        # Beginnings of the last whole batch and of the one before it, and what was least there.
        self._last = 0
        self._before = 0
        self._least_before = self._least

    def broken(self, position: int, problem: str) -> DamagedBatchError:
        """The error for a batch."""
        return DamagedBatchError(self._key, position, problem, position, position + 1)

    def size_at(self, data: memoryview, position: int) -> int:
        """Bytes of the batch that begins `data`, whose length is there."""
        size: int = _length(data, _LENGTH_POSITION)[0] + LOG_OVERHEAD
        if size < HEADER_SIZE:
            raise self.broken(position, f"a batch claims {size} bytes, less than its header")
        if position + size > self._end:
            problem = f"a batch claims {size} bytes, {self._end - position} are left"
            raise self.broken(position, problem)
        if size > BATCH_BYTES_MAX:
            raise ReadError(
                f"{self._key} has a batch of {size} bytes at byte {position} of its log, "
                f"more than {BATCH_BYTES_MAX}"
            )
        return size

    def whole_bytes(self, data: memoryview, position: int) -> int:
        """Bytes of `data` that are whole batches, up to the first large or damaged one."""
        at = 0
        left = len(data)
        try:
            while left >= LOG_OVERHEAD:
                size = _length(data, at + _LENGTH_POSITION)[0] + LOG_OVERHEAD
                if size > left or not HEADER_SIZE <= size <= CARRY_BYTES_MAX:
                    self.size_at(data[at:], position + at)
                    break
                if self._bounds is not None:
                    self._compare(data[at : at + size], position + at, self._bounds)
                self._before, self._last = self._last, at
                at += size
                left -= size
        except _OverlapError as error:
            self.damage = error
            if at:
                at = self._without_last()
                self.damage = self.broken(position + at, error.problem)
        except DamagedBatchError as error:
            self.damage = error
        return at

    def held_back(self, end: int, size: int) -> int:
        """Number of bytes of the whole batches, `end` of them, given before the next have come.

        All but the last, which is carried if there is room for it; `size` bytes are there.
        """
        if not end or self.damage is not None or size - self._last > CARRY_BYTES_MAX:
            return end
        return self._without_last()

    def _without_last(self) -> int:
        last, self._last, self._least = self._last, self._before, self._least_before
        return last

    def run(self, data: memoryview, position: int) -> BatchRun:
        """Of what `whole_bytes` has checked."""
        last = _offset(data, self._last)[0] + _delta(data, self._last + _DELTA_POSITION)[0]
        return BatchRun(position, data, _offset(data, 0)[0], last + 1)

    def large_run(self, data: memoryview, position: int) -> BatchRun:
        """Of one batch that is whole now."""
        if self._bounds is not None:
            self._compare(data, position, self._bounds)
        self._last = 0
        return self.run(data, position)

    def _compare(self, batch: memoryview, position: int, bounds: OffsetBounds) -> None:
        if batch[MAGIC_POSITION] != MAGIC:
            raise self.broken(position, f"a batch has magic {batch[MAGIC_POSITION]}")
        if crc32c(batch[CRC_START:]) != _crc(batch, CRC_POSITION)[0]:
            raise self.broken(position, "a batch fails its CRC")
        first: int = _offset(batch, 0)[0]
        end = first + _delta(batch, _DELTA_POSITION)[0] + 1
        if not self._least <= first < end <= bounds.end:
            problem = f"a batch has offsets {first} to {end - 1} where {self._least} or more to "
            problem += f"{bounds.end - 1} may be"
            if bounds.start <= first < self._least:
                raise _OverlapError(self._key, position, problem, position, position + 1)
            raise self.broken(position, problem)
        self._least_before, self._least = self._least, end


class _OverlapError(DamagedBatchError):
    """A batch and the one before it."""
