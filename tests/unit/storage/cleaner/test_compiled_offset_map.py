"""The offset map in C is the dictionary that the one in Python is."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import HEADER_SIZE, read_header
from protocol.records.builder import build_batch
from storage.cleaner.compiled_offset_map import CompiledOffsetMap
from storage.cleaner.offset_map import BYTES_PER_ENTRY
from tests.unit.storage.records.compiled import COMPILED

pytestmark = pytest.mark.skipif(COMPILED is None, reason="it is not compiled")

SLOTS = 80
KEYS = st.none() | st.binary(max_size=2) | st.binary(max_size=20) | st.just(bytes(200))
ROWS = st.lists(st.lists(st.tuples(KEYS, st.none() | st.just(b"v")), max_size=20), max_size=12)
Rows = Sequence[tuple[bytes | None, bytes | None]]


def new_map(slots: int = SLOTS) -> CompiledOffsetMap:
    assert COMPILED is not None
    return CompiledOffsetMap(COMPILED, slots * BYTES_PER_ENTRY)


def put(offset_map: CompiledOffsetMap, offset: int, rows: Rows, **limits: int) -> Any:
    """Put a batch that begins at `offset`."""
    batch = build_batch([(key, value, (), 0) for key, value in rows], base_offset=offset)
    given = {"start": 0, "keys_max": SLOTS - 1, **limits}
    return offset_map.put_block(read_header(batch), bytes(batch[HEADER_SIZE:]), **given)


def latest(offset_map: CompiledOffsetMap, offset: int, rows: Rows) -> tuple[int, int] | None:
    batch = build_batch([(key, value, (), 0) for key, value in rows], base_offset=offset)
    return offset_map.latest_in(read_header(batch), bytes(batch[HEADER_SIZE:]))


@given(ROWS, st.integers(0, 30), st.integers(0, 2**62), st.integers(1, SLOTS - 1))
def test_is_a_dictionary(batches: list[Rows], start: int, base: int, keys_max: int) -> None:
    """By whole blocks: counts, offsets, records that are their keys' last; until it is full."""
    offset_map = new_map()
    model: dict[bytes, int] = {}
    offset, start = base, base + start
    done: list[tuple[int, Rows]] = []
    full = False
    for rows in filter(None, batches):
        mapped = put(offset_map, offset, rows, start=start, keys_max=keys_max)
        assert mapped is not None
        read, full_at = 0, -1
        for index, (key, _) in enumerate(rows):
            read += 1
            if key is not None and offset + index >= start:
                if len(model) >= keys_max:
                    full_at = offset + index
                    break
                model[key] = offset + index
        tombstones = sum(value is None for _, value in rows)
        keyless = sum(key is None for key, _ in rows)
        assert mapped == (tombstones, keyless, len(rows) - 1, read, full_at)
        done.append((offset, rows))
        offset += len(rows)
        if full_at >= 0:
            full = True
            break
    assert len(offset_map) == len(model)
    assert offset_map.get_all(list(model)) == list(model.values())
    assert sorted(o for some in offset_map.offsets() for o in some) == sorted(model.values())
    for first, rows in done:
        found = latest(offset_map, first, rows)
        if any(key is None for key, _ in rows):
            assert found is None
            continue
        expected = sum(
            1 << index
            for index, (key, _) in enumerate(rows)
            if first + index >= model.get(key or b"", -1)
        )
        tombstones = sum(1 << index for index, (_, value) in enumerate(rows) if value is None)
        assert found == (expected, tombstones)
    if not full:
        bits = bytearray((max(offset - start, 0) >> 3) + 1)
        offset_map.mark(start, bits)
        marks = sum(
            1 << (one - start) for one in model.values() if 0 <= one - start < 8 * len(bits)
        )
        assert int.from_bytes(bits, "little") == marks
    offset_map.close()


@given(st.lists(st.tuples(st.binary(max_size=2), st.integers(-(2**62), 2**62)), max_size=70))
def test_keys_one_by_one(puts: list[tuple[bytes, int]]) -> None:
    """Offsets of either sign, as the map in Python."""
    offset_map = new_map()
    offset_map.put_all([key for key, _ in puts], [offset for _, offset in puts])
    model = dict(puts)
    assert len(offset_map) == len(model)
    assert offset_map.get_all(list(model)) == list(model.values())
    assert sorted(o for some in offset_map.offsets() for o in some) == sorted(model.values())
    assert offset_map.get(b"never put") == -1
    assert offset_map.has_room(0, len(model))
    assert not offset_map.has_room(1, len(model))


def test_a_full_map_takes_no_other_key() -> None:
    """One slot stays empty, where searches end."""
    offset_map = new_map(4)
    offset_map.put_all([b"a", b"b", b"c"], [1, 2, 3])
    with pytest.raises(AssertionError, match="full"):
        offset_map.put(b"d", 4)
    offset_map.put(b"a", 5)
    assert offset_map.get_all([b"a", b"b", b"c", b"d"]) == [5, 2, 3, -1]
    assert put(offset_map, 9, [(b"e", b"v")], keys_max=4) is None


def test_a_closed_map_is_an_error() -> None:
    """Its memory is another's."""
    offset_map = new_map()
    offset_map.close()
    with pytest.raises(ValueError, match="closed"):
        offset_map.get(b"a")
    with pytest.raises(ValueError, match="closed"):
        put(offset_map, 0, [(b"a", b"v")])
    with pytest.raises(ValueError, match="closed"):
        offset_map.mark(0, bytearray(1))


def test_what_is_not_plain_is_not_put() -> None:
    """Damaged, or with offsets that do not rise: the rule in Python decides."""
    offset_map = new_map()
    batch = build_batch([(b"a", b"v", (), 0), (b"b", b"v", (), 0)])
    header = read_header(batch)
    block = bytes(batch[HEADER_SIZE:])
    half = len(block) // 2
    assert offset_map.put_block(header, block[:half] * 2, 0, 9) is None
    assert offset_map.put_block(header, block[:-1], 0, 9) is None
    assert offset_map.put_block(header, block + b"\0", 0, 9) is None
    assert offset_map.latest_in(header, block[:-1]) is None
    assert len(offset_map) == 0
    assert offset_map.put_block(header, block, 0, 9) is not None
    assert len(offset_map) == 2
