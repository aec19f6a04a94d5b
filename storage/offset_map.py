"""Offset map: the latest offset of every key, in a fixed amount of memory.

One block of slots, open addressing:

    byte  size  field
       0    16  MD5 of the key      all zeros and offset 0: an empty slot
      16     8  offset + 1, native

Keys themselves are not kept: two keys with one MD5 would be taken for the same, as in Kafka. A map
of n bytes holds n / 24 keys. It lies in anonymous memory of its own, which the system zeroes page
by page as slots are touched (zeroing 128 MiB at once would hold up the event loop for 60 ms) and
takes back as a whole.

Source: Kafka, SkimpyOffsetMap.java.
"""

from hashlib import md5
from mmap import mmap
from struct import Struct
from typing import Final

BYTES_PER_ENTRY: Final = 24
_HASH_SIZE: Final = 16
_OFFSET: Final = Struct("=q")
_EMPTY: Final = bytes(8)


class OffsetMap:
    """Key to latest offset.

    Attributes:
        slots: Entries there is room for.
        latest_offset: Greatest offset up to which the log has been read into the map, -1 at first.
    """

    __slots__ = ("_bytes", "_count", "latest_offset", "slots")

    def __init__(self, memory_bytes: int) -> None:
        self.slots = max(memory_bytes // BYTES_PER_ENTRY, 2)
        self._bytes = mmap(-1, self.slots * BYTES_PER_ENTRY)
        self._count = 0
        self.latest_offset = -1

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Give the memory back; not to be used again."""
        self._bytes.close()

    def put(self, key: bytes | memoryview, offset: int) -> None:
        """Set the key's offset. The map must have a free slot."""
        digest = md5(key, usedforsecurity=False).digest()
        position, is_new = self._find(digest)
        if is_new:
            assert self._count < self.slots - 1, "offset map is full"
            self._bytes[position : position + _HASH_SIZE] = digest
            self._count += 1
        _OFFSET.pack_into(self._bytes, position + _HASH_SIZE, offset + 1)

    def get(self, key: bytes | memoryview) -> int:
        """The key's offset, -1 if it was never put."""
        position, _ = self._find(md5(key, usedforsecurity=False).digest())
        offset: int = _OFFSET.unpack_from(self._bytes, position + _HASH_SIZE)[0]
        return offset - 1

    def _find(self, digest: bytes) -> tuple[int, bool]:
        """Position of the key's slot, or of the empty one where it would go."""
        slots = self._bytes
        position = int.from_bytes(digest[:8], "little") % self.slots * BYTES_PER_ENTRY
        end = self.slots * BYTES_PER_ENTRY
        while True:
            if slots[position : position + _HASH_SIZE] == digest:
                return position, False
            if slots[position + _HASH_SIZE : position + BYTES_PER_ENTRY] == _EMPTY:
                return position, True
            position += BYTES_PER_ENTRY
            if position == end:
                position = 0
