"""Check of the batches' own CRCs, where a manifest has no sums.

Objects that another program wrote (Aiven's plugin for Kafka) have none for chunks. But every batch
of a log has a CRC-32C, so the check can go on from wherever a batch is known to begin:

    chunk    |...........[--batch--][----batch----][--ba|
                         ^ an entry of the offset index says so; in the first chunk position 0 does

What lies across the border of a chunk is only compared when the whole segment is verified; clients
compare every batch anyway.
"""

import sys
from array import array
from bisect import bisect_left
from typing import Final

from protocol.records.batch import CRC_START, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, crc32c
from storage.environment.filesystem import Filesystem
from storage.index.offset_index import ENTRY_SIZE

_unpack: Final = HEADER.unpack_from


class BatchWalk:
    """Given pieces of a log in order, from a batch's beginning on, compares every whole batch.

    Attributes:
        position: Bytes taken so far.
        batches: Compared so far.
    """

    __slots__ = ("_crc", "_expected", "_header", "_left", "batches", "position")

    def __init__(self) -> None:
        self.position = 0
        self.batches = 0
        self._header = b""
        self._left = 0
        self._crc = 0
        self._expected = 0

    def feed(self, data: memoryview) -> None:
        """Take the next bytes; they are not kept.

        Raises:
            ValueError: A batch fails its CRC, or is none.
        """
        at = 0
        while at < len(data):
            if self._left:
                end = min(at + self._left, len(data))
                self._crc = crc32c(data[at:end], self._crc)
                self._left -= end - at
                self.position += end - at
                at = end
                self._ended()
                continue
            count = min(HEADER_SIZE - len(self._header), len(data) - at)
            self._header += bytes(data[at : at + count])
            at += count
            self.position += count
            if len(self._header) == HEADER_SIZE:
                self._begin()

    def _begin(self) -> None:
        _, length, _, magic, self._expected, *_ = _unpack(self._header)
        size = length + LOG_OVERHEAD
        if magic != MAGIC or size < HEADER_SIZE:
            raise ValueError(f"no batch at {self.position - HEADER_SIZE}")
        self._crc = crc32c(self._header[CRC_START:])
        self._left = size - HEADER_SIZE
        self._header = b""
        self._ended()

    def _ended(self) -> None:
        if not self._left:
            if self._crc != self._expected:
                raise ValueError(f"the batch before {self.position} fails its CRC")
            self.batches += 1

    def finish(self) -> None:
        """There is no more.

        Raises:
            ValueError: It ends within a batch.
        """
        if self._left or self._header:
            raise ValueError(f"the log ends at {self.position}, within a batch")


def first_batch_in(filesystem: Filesystem, index: str, position: int, size: int) -> int:
    """Where in [position, position + size) of a log a batch begins for certain; -1: unknown.

    Args:
        filesystem: Where the offset index is.
        index: Its path.
        position: Where the part begins.
        size: Of the part.

    Raises:
        DiskError: It cannot be read.
    """
    if position == 0:
        return 0
    entries = filesystem.read_bytes(index)
    both = array("i", entries[: len(entries) // ENTRY_SIZE * ENTRY_SIZE])
    if sys.byteorder == "little":
        both.byteswap()
    positions = [at for at in both[1::2] if at > 0]
    found = bisect_left(positions, position)
    inside = found < len(positions) and positions[found] < position + size
    return positions[found] if inside else -1
