"""The offset map in C: the slots of `offset_map`, filled and searched by a whole block of records.

Keys are not made objects, and none is kept: 24 bytes a key, whether it comes again or not. The
hash is SipHash-1-3 with 128 bits of output (`native/record_rules.c`) under a key that is derived
from the interpreter's secret, so that no client can make two keys with one hash here either.
"""

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from typing_extensions import override

from protocol.records.batch import BatchHeader
from storage.cleaner.offset_map import OffsetMap
from storage.records.compiled_walks import CompiledWalks, MappedBlock, MapStruct

_SECRETS: Final = (b"varve offset map, first", b"varve offset map, second")
_BIAS: Final = 1 << 63
_WORDS: Final = 3
_LISTED_SLOTS: Final = 4096


class CompiledOffsetMap(OffsetMap):
    """Key to latest offset, as `OffsetMap`; offsets are of 63 bits."""

    __slots__ = ("_slots", "_walks")

    def __init__(self, walks: CompiledWalks, memory_bytes: int) -> None:
        """Make an empty map of so much memory."""
        super().__init__(memory_bytes, 0)
        self._walks = walks
        secrets = (hash(secret) % 2**64 for secret in _SECRETS)
        room = ctypes.c_char.from_buffer(self._bytes)
        # The memory stays where it is until `close`; an exported buffer would keep it from that.
        self._slots = MapStruct(
            self.slots, 0, (ctypes.c_uint64 * 2)(*secrets), ctypes.addressof(room)
        )

    @override
    def __len__(self) -> int:
        return int(self._slots.count)

    @override
    def close(self) -> None:
        self._slots = MapStruct(0, 0)
        super().close()

    @override
    def has_room(self, count: int, keys_max: int) -> bool:
        return len(self) + count <= keys_max

    @override
    def put(self, key: bytes, offset: int) -> None:
        self._check_open()
        assert self._walks.put_key(self._slots, key, offset), "offset map is full"

    @override
    def put_all(self, keys: Sequence[bytes], offsets: Iterable[int]) -> None:
        for key, offset in zip(keys, offsets, strict=True):
            self.put(key, offset)

    @override
    def get(self, key: bytes) -> int:
        self._check_open()
        return self._walks.get_key(self._slots, key)

    @override
    def get_all(self, keys: Sequence[bytes]) -> list[int]:
        return list(map(self.get, keys))

    @override
    def is_disjoint(self, keys: Sequence[bytes]) -> bool:
        return not len(self)

    @override
    def offsets(self) -> Iterator[list[int]]:
        with self._words[_WORDS - 1 :: _WORDS] as column:
            for first in range(0, self.slots, _LISTED_SLOTS):
                found = column[first : first + _LISTED_SLOTS].tolist()
                yield [word % (2 * _BIAS) - _BIAS for word in found if word]

    def put_block(
        self, header: BatchHeader, block: bytes, start: int, keys_max: int
    ) -> MappedBlock | None:
        """Put the keys of a batch's records; None: nothing was put, they are to be put singly.

        Args:
            header: Of the batch.
            block: Its records, decompressed.
            start: Offset of the first record whose key counts.
            keys_max: How many keys the map may have.
        """
        self._check_open()
        return self._walks.map_block(
            self._slots, block, header.records_count, header.base_offset, start, keys_max
        )

    def latest_in(self, header: BatchHeader, block: bytes) -> tuple[int, int] | None:
        """(records not older than their keys' last, tombstones): a bit for each, the first's is 1.

        None: the records are to be looked up singly.
        """
        self._check_open()
        return self._walks.latest_in_block(
            self._slots, block, header.records_count, header.base_offset
        )

    def mark(self, start: int, bits: bytearray) -> None:
        """Set the bit `offset - start` of each key's offset, lowest first."""
        self._check_open()
        self._walks.mark_offsets(self._slots, start, bits)

    def _check_open(self) -> None:
        if not self._slots.words:
            raise ValueError("the offset map is closed")


__all__ = ["CompiledOffsetMap"]
