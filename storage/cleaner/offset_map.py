"""Offset map: the latest offset of every key, in a fixed amount of memory.

Keys come by the batch, and most come again soon. The first ones are kept in a dictionary, which
takes a whole batch in one call:

    recent    dict, key -> offset      short keys, as many as half of the memory could hold
    slots     one block, see below     everything else: long keys, and all that is spilled when
                                       there are too many recent ones

A topic with fewer keys than the dictionary holds never touches the slots. Once spilled, the
dictionary, a quarter as large, gathers what comes next and is spilled again and again, so that a
key that is written often costs one search of the slots for many records.

Slots are of fixed size, with open addressing; native integers:

    byte  size  field
       0     8  hash of the key
       8     8  hash of the key and a salt
      16     8  offset + 1            0: an empty slot

Keys themselves are not kept there: two keys with the same 128 bits would be taken for the same, as
in Kafka, which takes MD5. Here it is the interpreter's SipHash under a key that is new in each
process: no client can make two such keys, and for the recent ones half of it is known already. An
interpreter with another hash gets MD5. A block of n bytes holds n / 24 keys. It lies in anonymous
memory of its own, which the system zeroes page by page as slots are touched (zeroing 128 MiB at
once would hold up the event loop for 60 ms) and takes back as a whole.

Source: Kafka, SkimpyOffsetMap.java.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import md5
from itertools import repeat
from mmap import mmap
from struct import Struct
from typing import Final

BYTES_PER_ENTRY: Final = 24

RECENT_KEY_BYTES: Final = 128
"""Longest key that is kept itself."""

RECENT_SHARE: Final = 2
"""Of the slots' memory, what recent keys may take while the slots take nothing."""

_SPILLED_SHARE: Final = 4
"""Of that, what they may take afterwards, beside the slots."""

_RECENT_BYTES: Final = 256
"""What a recent key takes at most: itself, its offset, their place in the dictionary."""

_SALT: Final = b"varve"
_WORDS: Final = BYTES_PER_ENTRY // 8
_LISTED_SLOTS: Final = 4096
_MD5_WORDS: Final = Struct("=qq")


def _by_siphash(key: bytes) -> tuple[int, int]:
    return hash(key), hash(key + _SALT)


def _by_md5(key: bytes) -> tuple[int, int]:
    first, second = _MD5_WORDS.unpack(md5(key, usedforsecurity=False).digest())
    return first, second


def hash_for(algorithm: str, width: int) -> Callable[[bytes], tuple[int, int]]:
    """128 bits of a key, where `hash` is of this algorithm and so many bits wide."""
    return _by_siphash if algorithm.startswith("siphash") and width == 64 else _by_md5


_hash = hash_for(sys.hash_info.algorithm, sys.hash_info.width)


class OffsetMap:
    """Key to latest offset.

    Attributes:
        slots: Entries there is room for.
        latest_offset: Greatest offset up to which the log has been read into the map, -1 at first.
    """

    __slots__ = (
        "_bytes",
        "_count",
        "_is_spilled",
        "_recent",
        "_recent_max",
        "_words",
        "latest_offset",
        "slots",
    )

    def __init__(self, memory_bytes: int, recent_bytes: int | None = None) -> None:
        """Make an empty map.

        Args:
            memory_bytes: Of the slots.
            recent_bytes: For recent keys; None: a share of that.
        """
        self.slots = max(memory_bytes // BYTES_PER_ENTRY, 2)
        self._bytes = mmap(-1, self.slots * BYTES_PER_ENTRY)
        self._words = memoryview(self._bytes).cast("q")
        # Entries of the slots.
        self._count = 0
        self._recent: dict[bytes, int] = {}
        if recent_bytes is None:
            recent_bytes = memory_bytes // RECENT_SHARE
        self._recent_max = recent_bytes // _RECENT_BYTES
        # Whether keys of the slots may be recent, too.
        self._is_spilled = False
        self.latest_offset = -1

    def __len__(self) -> int:
        if self._is_spilled:
            self._spill()
        return self._count + len(self._recent)

    def close(self) -> None:
        """Give the memory back; not to be used again."""
        self._recent.clear()
        self._is_spilled = True  # so that a later call raises
        self._words.release()
        self._bytes.close()

    def has_room(self, count: int, keys_max: int) -> bool:
        """Whether so many more keys cannot make it more than `keys_max`; counted roughly."""
        return self._count + len(self._recent) + count <= keys_max

    def put(self, key: bytes, offset: int) -> None:
        """Set the key's offset. The map must have a free slot."""
        if not self._is_spilled and len(key) <= RECENT_KEY_BYTES:
            assert key in self._recent or len(self) < self.slots - 1, "offset map is full"
            self._recent[key] = offset
            if len(self._recent) > self._recent_max:
                self._spill()
        else:
            self._recent.pop(key, None)
            self._put_slots(((key, offset),))

    def put_all(self, keys: Sequence[bytes], offsets: Iterable[int]) -> None:
        """Set the offsets of many keys; of those that come twice, the later one. See `put`."""
        if not keys:
            return
        if self._recent_max and max(map(len, keys)) <= RECENT_KEY_BYTES:
            self._recent.update(zip(keys, offsets, strict=True))
            if len(self._recent) > self._recent_max:
                self._spill()
        elif min(map(len, keys)) > RECENT_KEY_BYTES:
            self._put_slots(zip(keys, offsets, strict=True))
        else:
            for key, offset in zip(keys, offsets, strict=True):
                self.put(key, offset)

    def get(self, key: bytes) -> int:
        """The key's offset, -1 if it was never put."""
        return self.get_all((key,))[0]

    def get_all(self, keys: Sequence[bytes]) -> list[int]:
        """The keys' offsets, -1 where one was never put."""
        recent = self._recent
        if not self._is_spilled:
            if not self._count:
                return list(map(recent.get, keys, repeat(-1)))
            return [
                recent.get(key, -1) if len(key) <= RECENT_KEY_BYTES else self._get_slot(key)
                for key in keys
            ]
        if recent:
            self._spill()
        return list(map(self._get_slot, keys))

    def is_disjoint(self, keys: Sequence[bytes]) -> bool:
        """Whether none of the keys was put, where that is cheap; False may mean anything."""
        return not self._is_spilled and not self._count and self._recent.keys().isdisjoint(keys)

    def offsets(self) -> Iterator[list[int]]:
        """All keys' offsets, in no order, some thousands at a time."""
        if self._is_spilled:
            self._spill()
        yield list(self._recent.values())
        if self._count:
            with self._words[_WORDS - 1 :: _WORDS] as column:
                for first in range(0, self.slots, _LISTED_SLOTS):
                    found = column[first : first + _LISTED_SLOTS].tolist()
                    yield [offset - 1 for offset in found if offset]

    # -- slots -------------------------------------------------------------------------------

    def _spill(self) -> None:
        if not self._is_spilled:
            self._is_spilled = True
            self._recent_max //= _SPILLED_SHARE
        recent, self._recent = self._recent, {}
        self._put_slots(recent.items())

    def _put_slots(self, entries: Iterable[tuple[bytes, int]]) -> None:
        # Written for speed: where keys do not come again, this is what compaction's time goes to.
        words = self._words
        capacity = self.slots
        end = capacity * _WORDS
        hash_of = _hash
        for key, offset in entries:
            first, second = hash_of(key)
            at = first % capacity * _WORDS
            while found := words[at + 2]:
                if words[at] == first and words[at + 1] == second:
                    break
                at += _WORDS
                if at == end:
                    at = 0
            if not found:
                assert self._count < capacity - 1, "offset map is full"
                words[at] = first
                words[at + 1] = second
                self._count += 1
            words[at + 2] = offset + 1

    def _get_slot(self, key: bytes) -> int:
        words = self._words
        first, second = _hash(key)
        at = first % self.slots * _WORDS
        end = self.slots * _WORDS
        while (found := words[at + 2]) and (words[at] != first or words[at + 1] != second):
            at += _WORDS
            if at == end:
                at = 0
        return found - 1
