"""The walks in C, by ctypes: `native/record_rules.c`, whose head says what it promises.

What is given to it are addresses and lengths of bytes that this module has made or measured; a
mistake here would be one in memory. A walk of a large block lets go of the interpreter's lock. A
short one keeps it: who lets go may wait 5 ms (`sys.getswitchinterval`) until another thread does.
"""

import ctypes
from struct import Struct
from typing import Any, Final, NamedTuple

from native.library import RECORD_RULES, load_wanted

CONTRACT: Final = 1
"""`CONTRACT` of the source that this module is written for."""

SHORT_BLOCK_BYTES: Final = 64 * 1024
"""A block up to this is walked in microseconds."""

_NUMBER: Final = ctypes.c_int64
_ADDRESS: Final = ctypes.c_void_p
_TIMES: Final = Struct("=5q")
"""`struct times`."""

_Cut: Final = _NUMBER * 3
"""`struct cut`."""

_Mapped: Final = _NUMBER * 5
"""`struct mapped`."""


class MapStruct(ctypes.Structure):
    """`struct offset_map`."""

    _fields_ = (
        ("slots", _NUMBER),
        ("count", _NUMBER),
        ("key", ctypes.c_uint64 * 2),
        ("words", _ADDRESS),
    )


class Times(NamedTuple):
    """What the times of a batch are, and what they are to count from.

    Attributes:
        old_base: Base timestamp, ms.
        append_time: Of all records, ms; None: each has its own.
        new_base: Base timestamp that is to be, ms; None: the first kept record's time.
    """

    old_base: int
    append_time: int | None
    new_base: int | None


class CutBlock(NamedTuple):
    """What is left of a block: uncompressed, and its times in ms."""

    block: bytes | bytearray
    base_timestamp: int
    max_timestamp: int


class MappedBlock(NamedTuple):
    """What went into the offset map of a block.

    Attributes:
        tombstones: How many values are null.
        keyless: How many keys are null.
        last_delta: The last record's offset - the batch's base offset, -1 without records.
        records_read: Up to and with the one for which there was no room.
        full_at: Offset of that record, -1 where all are in.
    """

    tombstones: int
    keyless: int
    last_delta: int
    records_read: int
    full_at: int


class CompiledWalks:
    """Walks in C. They say yes, or None or False: then Python is to decide."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Take the functions from a library that was loaded.

        Raises:
            ValueError: It is of another contract.
        """
        contract = library.varve_rules_contract
        contract.restype = _NUMBER
        if contract() != CONTRACT:
            raise ValueError(f"record_rules.c has contract {contract()}, this module {CONTRACT}")
        self._check = _both_ways(library, "varve_check_records", _ADDRESS, *[_NUMBER] * 6)
        self._cut = _both_ways(
            library,
            "varve_cut_records",
            _ADDRESS, _NUMBER, _NUMBER, _ADDRESS, _ADDRESS, _ADDRESS, _NUMBER, _ADDRESS,
        )  # fmt: skip
        self._map_records = _unlocked(
            library,
            "varve_map_records",
            _ADDRESS, _NUMBER, _NUMBER, _NUMBER, _NUMBER, _NUMBER, _ADDRESS, _ADDRESS,
        )  # fmt: skip
        self._latest_records = _unlocked(
            library,
            "varve_latest_records",
            _ADDRESS, _NUMBER, _NUMBER, _NUMBER, _ADDRESS, _ADDRESS, _ADDRESS,
        )  # fmt: skip
        self._map_mark = _unlocked(library, "varve_map_mark", _ADDRESS, _NUMBER, _ADDRESS, _NUMBER)
        self._map_put = _locked(library, "varve_map_put", _ADDRESS, _ADDRESS, _NUMBER, _NUMBER)
        self._map_get = _locked(library, "varve_map_get", _ADDRESS, _ADDRESS, _NUMBER)

    def check_block(
        self,
        block: bytes,
        count: int,
        base_timestamp: int,
        timestamp_min: int,
        timestamp_max: int,
        require_key: bool,
    ) -> bool:
        """Whether a block has nothing but `count` records that no rule of produced ones forbids.

        Args:
            block: Decompressed.
            count: By the batch's header.
            base_timestamp: By the batch's header, ms.
            timestamp_min: Earliest time allowed, ms; 64 bits.
            timestamp_max: Latest time allowed, ms; 64 bits.
            require_key: Whether each needs a key.
        """
        size = len(block)
        check = self._check[size > SHORT_BLOCK_BYTES]
        return bool(
            check(block, size, count, base_timestamp, timestamp_min, timestamp_max, require_key) > 0
        )

    def cut_block(
        self, block: bytes, count: int, kept: bytes | None, times: Times
    ) -> CutBlock | None:
        """The records of a block that are kept, with times that count from another base.

        Args:
            block: Decompressed.
            count: By the batch's header.
            kept: A bit for each record, lowest first; None: all stay.
            times: Of the batch. All are 64 bits.

        Raises:
            ValueError: There are not bits enough.
        """
        if kept is not None and len(kept) * 8 < count:
            raise ValueError(f"{len(kept)} bytes of bits are too few for {count} records")
        size = len(block)
        cut = self._cut[size > SHORT_BLOCK_BYTES]
        packed = _TIMES.pack(
            times.old_base,
            times.append_time or 0,
            times.append_time is not None,
            times.new_base or 0,
            times.new_base is not None,
        )
        found = _Cut()
        needed = cut(block, size, count, kept, packed, None, 0, found)
        if needed < 0:
            return None
        base_timestamp, max_timestamp, as_it_was = found
        if needed == size and as_it_was:
            return CutBlock(block, base_timestamp, max_timestamp)
        output = bytearray(needed)
        room = ctypes.c_char.from_buffer(output)
        written = cut(block, size, count, kept, packed, ctypes.addressof(room), needed, found)
        if written != needed:
            raise ValueError(f"{written} bytes of records were written instead of {needed}")
        return CutBlock(output, base_timestamp, max_timestamp)

    # Of the offset map: `storage.cleaner.compiled_offset_map` has the slots, and they stay where
    # they are for as long as it is in use.

    def put_key(self, slots: MapStruct, key: bytes, offset: int) -> bool:
        """Set the offset of a key; False: there is no room."""
        return bool(self._map_put(ctypes.byref(slots), key, len(key), offset) > 0)

    def get_key(self, slots: MapStruct, key: bytes) -> int:
        """The offset of a key, -1 if it was never put."""
        return int(self._map_get(ctypes.byref(slots), key, len(key)))

    def map_block(
        self,
        slots: MapStruct,
        block: bytes,
        count: int,
        base_offset: int,
        start: int,
        keys_max: int,
    ) -> MappedBlock | None:
        """Put the keys of a block into the map; None: nothing was, and Python is to.

        Args:
            slots: Of the map.
            block: Decompressed.
            count: By the batch's header.
            base_offset: By the batch's header.
            start: Offset of the first record whose key counts.
            keys_max: How many keys the map may have.
        """
        found = _Mapped()
        done = self._map_records(
            block, len(block), count, base_offset, start, keys_max, ctypes.byref(slots), found
        )
        return MappedBlock(*found) if done > 0 else None

    def latest_in_block(
        self, slots: MapStruct, block: bytes, count: int, base_offset: int
    ) -> tuple[int, int] | None:
        """(not older than their keys' last, tombstones): bits of records, the first one's is 1.

        None where a key is null, or Python is to decide.
        """
        size = (count + 7) // 8
        kept, tombstones = (ctypes.c_uint8 * size)(), (ctypes.c_uint8 * size)()
        done = self._latest_records(
            block, len(block), count, base_offset, ctypes.byref(slots), kept, tombstones
        )
        if done < 0:
            return None
        return int.from_bytes(kept, "little"), int.from_bytes(tombstones, "little")

    def mark_offsets(self, slots: MapStruct, start: int, bits: bytearray) -> None:
        """Set the bit `offset - start` for each key's offset, where there is one."""
        room = ctypes.c_char.from_buffer(bits)
        self._map_mark(ctypes.byref(slots), start, ctypes.addressof(room), len(bits))


def _locked(library: ctypes.CDLL, name: str, *arguments: Any) -> Any:
    """A function that keeps the interpreter's lock."""
    return ctypes.PYFUNCTYPE(_NUMBER, *arguments)((name, library))


def _unlocked(library: ctypes.CDLL, name: str, *arguments: Any) -> Any:
    """A function that lets go of it."""
    return ctypes.CFUNCTYPE(_NUMBER, *arguments)((name, library))


def _both_ways(library: ctypes.CDLL, name: str, *arguments: Any) -> tuple[Any, Any]:
    return _locked(library, name, *arguments), _unlocked(library, name, *arguments)


def load_compiled() -> tuple[CompiledWalks | None, str]:
    """The compiled walks, or None and a sentence that says why there are none."""
    library = load_wanted(RECORD_RULES)
    if library.handle is None:
        return None, library.problem
    return CompiledWalks(library.handle), ""


__all__ = ["CompiledWalks", "CutBlock", "MapStruct", "MappedBlock", "Times", "load_compiled"]
