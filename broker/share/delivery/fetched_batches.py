"""Scan of the batches that a share fetch has read: their offsets and producers.

Only headers are read, a few kilobytes at a time; the records stay where they are, and are sent as a
slice of the file that begins and ends with the acquired batches.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from protocol.records.batch import (
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
)
from storage.index.reads import WAITING, Reads
from storage.types.file_slice import FileSlice
from tiered.remote_read import RemoteRecords

Records = FileSlice | RemoteRecords
"""Where records lie: in a segment, or in cache files of remote storage."""

_CHUNK = 16 * 1024

# Of the header: base offset, length, attributes, last offset delta, producer id.
_FIELDS = Struct(">qi9xhi16xq")

_ABORT_KEY = b"\x00\x00\x00\x00"
"""Key of an abort marker: version 0, type 0."""


class FetchedBatch(NamedTuple):
    """One batch; `position` counts from the begin of the slice, `last_offset` is inclusive."""

    base_offset: int
    last_offset: int
    position: int
    size: int
    producer_id: int
    is_transactional: bool
    is_control: bool


def scan(records: Records, last_offset: int, reads: Reads = WAITING) -> list[FetchedBatch]:
    """The batches of a slice, up to the one that holds `last_offset`.

    Raises:
        WouldBlockError: `reads` do not wait, and headers are not in memory.
    """
    batches: list[FetchedBatch] = []
    position = chunk_position = 0
    chunk = b""
    while position + HEADER_SIZE <= records.length:
        at = position - chunk_position
        if at < 0 or at + HEADER_SIZE > len(chunk):
            size = min(_CHUNK, records.length - position)
            chunk = _read(records, position, size, reads)
            chunk_position, at = position, 0
            if len(chunk) < HEADER_SIZE:
                break
        base_offset, length, attributes, delta, producer_id = _FIELDS.unpack_from(chunk, at)
        size = LOG_OVERHEAD + length
        if size < HEADER_SIZE or position + size > records.length:
            # Cut off by the size that was asked for.
            break
        batches.append(
            FetchedBatch(
                base_offset,
                base_offset + delta,
                position,
                size,
                producer_id,
                attributes & TRANSACTIONAL_BIT != 0,
                attributes & CONTROL_BIT != 0,
            )
        )
        if base_offset + delta >= last_offset:
            break
        position += size
    return batches


def part_of(records: Records, batches: Sequence[FetchedBatch], first: int, last: int) -> Records:
    """The batches that hold first to last."""
    wanted = [b for b in batches if b.last_offset >= first and b.base_offset <= last]
    begin = wanted[0].position
    end = wanted[-1].position + wanted[-1].size
    if begin == 0 and end == records.length:
        return records
    if isinstance(records, RemoteRecords):
        return RemoteRecords(list(_cut(records.slices, begin, end)), ())
    return FileSlice(records.file, records.position + begin, end - begin)


def _cut(slices: Iterable[FileSlice], begin: int, end: int) -> Iterable[FileSlice]:
    """The part between two positions of consecutive slices."""
    for piece in slices:
        first, last = max(begin, 0), min(end, piece.length)
        if first < last:
            yield FileSlice(piece.file, piece.position + first, last - first)
        begin -= piece.length
        end -= piece.length


def _read(records: Records, position: int, size: int, reads: Reads) -> bytes:
    """Read some bytes of the records."""
    if isinstance(records, FileSlice):
        return bytes(reads.of(records.file).read_at(size, records.position + position))
    return b"".join(
        reads.of(piece.file).read_at(piece.length, piece.position)
        for piece in _cut(records.slices, position, position + size)
    )


def aborted_ranges(
    records: Records,
    batches: Iterable[FetchedBatch],
    transactions: Iterable[tuple[int, int]],
    reads: Reads = WAITING,
) -> list[tuple[int, int]]:
    """First and last offset of each batch that belongs to an aborted transaction.

    Args:
        records: Where the batches lie.
        batches: In order.
        transactions: Producer id and first offset of the aborted transactions among them.
        reads: As for `scan`.
    """
    waiting = sorted(transactions, key=lambda one: one[1], reverse=True)
    aborted: set[int] = set()
    ranges = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1][1] <= batch.last_offset:
            aborted.add(waiting.pop()[0])
        if batch.is_control:
            if _is_abort_marker(records, batch, reads):
                aborted.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in aborted:
            ranges.append((batch.base_offset, batch.last_offset))
    return ranges


def _is_abort_marker(records: Records, batch: FetchedBatch, reads: Reads) -> bool:
    """A marker's batch has one record: sizes and deltas of a byte each, then its key."""
    raw = _read(records, batch.position + HEADER_SIZE, batch.size - HEADER_SIZE, reads)
    # length, attributes, timestamp delta, offset delta, key length (4 as a varint is 8)
    return raw[4:5] == b"\x08" and raw[5:9] == _ABORT_KEY
