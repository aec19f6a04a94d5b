"""The dirty part of a log, as a compaction run reads it before it rewrites anything.

    |-- clean --|---------- dirty ----------|-- uncleanable --|
              start                   map.latest_offset

Into the offset map: the last record of every key. And for the second reading of the same batches,
so that most of them need not be decoded again: a bit for each offset, set where the record is
its key's last, and which batches hold anything that does not follow from a key.
"""

from collections.abc import Sequence
from itertools import compress, count
from operator import lt
from typing import Final

from protocol.records.batch import BatchHeader
from protocol.records.keys import RecordKeys, read_keys
from protocol.records.record import records_block
from storage.cleaner.cleaning import CleanerStats
from storage.cleaner.compiled_offset_map import CompiledOffsetMap
from storage.cleaner.offset_map import BYTES_PER_ENTRY, OffsetMap
from storage.records.compiled_walks import MappedBlock

DECOMPRESSED_SIZE_MAX: Final = 256 << 20
"""Largest batch the cleaner unpacks, in bytes; above it the partition is uncleanable.

Far above what honest producers reach with `max.message.bytes` of 1 MiB, far below what would take
a broker down.
"""

_MARKS: Final = 1 << 16
"""Batches are marked by their base offset modulo this: one marked for another is decoded."""

_HAS_TOMBSTONE: Final = 1
_HAS_KEYLESS: Final = 2

_BITS_SHARE: Final = 8
"""Of the map's memory at most, what a bit for each offset may take."""

_BIT: Final = tuple(1 << bit for bit in range(8))
_DIGITS: Final = bytes.maketrans(b"01", b"\0\1")


class DirtyPart:
    """The dirty part of one log, from its first batch on.

    Args:
        offset_map: Empty.
        keys_max: To be put into it at most.
        start: First dirty offset.
        stats: Where the records are counted.
    """

    def __init__(
        self, offset_map: OffsetMap, keys_max: int, start: int, stats: CleanerStats
    ) -> None:
        self.map = offset_map
        self.start = start
        self._keys_max = keys_max
        self._stats = stats
        self._bits_max = offset_map.slots * BYTES_PER_ENTRY // _BITS_SHARE
        self._marks = bytearray(_MARKS)
        self._end = -1
        self._in_order = True
        self._bits: bytearray | None = None

    def add(self, header: BatchHeader, batch: memoryview) -> bool:
        """Read a data batch that counts; True: the map is full, and ends within the batch.

        Raises:
            DecodeError: Records do not parse, or are beyond `DECOMPRESSED_SIZE_MAX`.
        """
        block = records_block(batch, header, max_size=DECOMPRESSED_SIZE_MAX)
        if isinstance(self.map, CompiledOffsetMap):
            mapped = self.map.put_block(header, block, self.start, self._keys_max)
            if mapped is not None:
                return self._note(header, mapped)
        found = read_keys(block, header.records_count)
        keys, deltas, tombstones, keyless = found
        base = header.base_offset
        without_gaps = found.is_without_gaps
        if tombstones:
            self._marks[base % _MARKS] |= _HAS_TOMBSTONE
        if keyless:
            self._marks[base % _MARKS] |= _HAS_KEYLESS
        if base < self._end or not (without_gaps or _rise(deltas)) or _leave(deltas, header):
            self._in_order = False
        self._end = header.next_offset
        if keyless or base < self.start or not self.map.has_room(len(keys), self._keys_max):
            return self._add_singly(base, found)
        self._stats.map_records_read += len(keys)
        self.map.put_all(
            keys,
            range(base, base + len(keys)) if without_gaps else [base + delta for delta in deltas],
        )
        return False

    def _note(self, header: BatchHeader, mapped: MappedBlock) -> bool:
        """What `add` notes of a batch whose keys are in the map."""
        base = header.base_offset
        if mapped.tombstones:
            self._marks[base % _MARKS] |= _HAS_TOMBSTONE
        if mapped.keyless:
            self._marks[base % _MARKS] |= _HAS_KEYLESS
        if base < self._end or mapped.last_delta > header.last_offset_delta:
            self._in_order = False
        self._end = header.next_offset
        self._stats.map_records_read += mapped.records_read
        if mapped.full_at < 0:
            return False
        # All before it are in: go on from here in the next run.
        self.map.latest_offset = max(self.map.latest_offset, mapped.full_at - 1)
        return True

    def _add_singly(self, base: int, found: RecordKeys) -> bool:
        offset_map = self.map
        keyless = set(found.keyless)
        for index, (key, delta) in enumerate(zip(found.keys, found.deltas, strict=True)):
            offset = base + delta
            self._stats.map_records_read += 1
            if index not in keyless and offset >= self.start:
                if len(offset_map) >= self._keys_max:
                    # All before it are in: go on from here in the next run.
                    offset_map.latest_offset = max(offset_map.latest_offset, offset - 1)
                    return True
                offset_map.put(key, offset)
        return False

    def finish(self) -> None:
        """All that is to be read was read."""
        size = (self.map.latest_offset - self.start >> 3) + 1
        if not self._in_order or not 0 < size <= self._bits_max:
            return
        bits = bytearray(size)
        start = self.start
        if isinstance(self.map, CompiledOffsetMap):
            self.map.mark(start, bits)
            self._bits = bits
            return
        masks = _BIT
        for offsets in self.map.offsets():
            for offset in offsets:
                offset -= start
                bits[offset >> 3] |= masks[offset & 7]
        self._bits = bits

    def latest_within(self, header: BatchHeader) -> Sequence[int] | None:
        """Offset deltas of a batch's records that are their keys' last, ascending.

        None as of `latest_bits`.
        """
        found = self.latest_bits(header)
        if found is None:
            return None
        if found.bit_count() == header.last_offset_delta + 1:
            return range(header.last_offset_delta + 1)
        # Lowest first, as a row of bytes that are false or true.
        digits = format(found, "b")[::-1].encode().translate(_DIGITS)
        return list(compress(count(), digits))

    def latest_bits(self, header: BatchHeader) -> int | None:
        """A bit for each offset delta of a batch, set where its record is its key's last.

        None where the records must be decoded: the batch is older or newer than what was read, a
        record that may stay is a tombstone, some have no key, offsets are too sparse for a bit
        each; or it is transactional, since then it may have been skipped.
        """
        bits = self._bits
        base = header.base_offset
        if (
            bits is None
            or base < self.start
            or header.last_offset > self.map.latest_offset
            or header.is_transactional
        ):
            return None
        begin = base - self.start
        end = begin + header.last_offset_delta + 1
        found = int.from_bytes(bits[begin >> 3 : (end + 7) >> 3], "little") >> (begin & 7)
        found &= (1 << end - begin) - 1
        mark = self._marks[base % _MARKS]
        if mark & _HAS_KEYLESS or (mark and found):
            return None
        return found


def _rise(deltas: list[int]) -> bool:
    return all(map(lt, deltas, deltas[1:]))


def _leave(deltas: list[int], header: BatchHeader) -> bool:
    """Whether rising deltas are beyond what the batch says it spans."""
    return bool(deltas) and (deltas[0] < 0 or deltas[-1] > header.last_offset_delta)
