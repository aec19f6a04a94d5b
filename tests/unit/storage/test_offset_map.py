"""Key to latest offset in fixed memory."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.offset_map import BYTES_PER_ENTRY, OffsetMap


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 2**62)), max_size=60))
def test_is_a_dictionary(puts: list[tuple[bytes, int]]) -> None:
    """Also when nearly full, with probes that wrap around."""
    offset_map = OffsetMap(BYTES_PER_ENTRY * 64)
    model: dict[bytes, int] = {}
    for key, offset in puts:
        offset_map.put(key, offset)
        model[key] = offset
    assert len(offset_map) == len(model)
    for key, offset in model.items():
        assert offset_map.get(key) == offset
    assert offset_map.get(b"never put") == -1


def test_offset_zero_is_an_offset() -> None:
    """And no empty slot."""
    offset_map = OffsetMap(1 << 10)
    offset_map.put(b"a", 0)
    assert offset_map.get(b"a") == 0


def test_full_map_refuses() -> None:
    """One slot stays free, or a search for a missing key would never end."""
    offset_map = OffsetMap(BYTES_PER_ENTRY * 4)
    for key in (b"a", b"b", b"c"):
        offset_map.put(key, 1)
    assert offset_map.get(b"missing") == -1
    with pytest.raises(AssertionError, match="full"):
        offset_map.put(b"d", 1)


def test_memory_is_what_was_asked_for() -> None:
    """24 bytes a key, whatever the keys' size; nothing beside it, and nothing afterwards."""
    offset_map = OffsetMap(240_000)
    assert offset_map.slots == 10_000
    tracemalloc.start()
    try:
        for index in range(5_000):
            offset_map.put(b"%d" % index + b"x" * 200, index)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 20_000
    offset_map.close()
    with pytest.raises(ValueError, match="closed"):
        offset_map.get(b"1")
