"""Key to latest offset in fixed memory."""

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.cleaner import offset_map as module
from storage.cleaner.offset_map import BYTES_PER_ENTRY, RECENT_KEY_BYTES, OffsetMap, hash_for

LONG = b"x" * RECENT_KEY_BYTES
FEW = st.sampled_from((b"", b"a", b"b", b"c", b"d", b"e"))
KEYS = FEW | st.binary(max_size=2) | FEW.map(lambda key: LONG + key)
PUTS = st.lists(st.lists(st.tuples(KEYS, st.integers(0, 2**62)), max_size=6), max_size=12)


@pytest.mark.parametrize("hash_of", [hash_for("siphash13", 64), hash_for("fnv", 64)])
@pytest.mark.parametrize("recent", [0, 3, 20, 1000])
@given(puts=PUTS, singly=st.sets(st.integers(0, 11)), looks=st.sets(st.integers(0, 11)))
def test_is_a_dictionary(
    hash_of: Callable[[bytes], tuple[int, int]],
    recent: int,
    puts: list[list[tuple[bytes, int]]],
    singly: set[int],
    looks: set[int],
) -> None:
    """Whether keys are kept or spilled, are long or short, come in batches or one by one.

    Also when nearly full, with probes that wrap around.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_hash", hash_of)
        offset_map = OffsetMap(BYTES_PER_ENTRY * 80, recent * 256)
        model: dict[bytes, int] = {}
        for at, batch in enumerate(puts):
            if at in singly:
                for key, offset in batch:
                    offset_map.put(key, offset)
            else:
                offset_map.put_all([key for key, _ in batch], [offset for _, offset in batch])
            model.update(batch)
            if at in looks:
                assert len(offset_map) == len(model)
                assert offset_map.get_all(list(model)) == list(model.values())
        assert sorted(o for some in offset_map.offsets() for o in some) == sorted(model.values())
        assert offset_map.has_room(0, len(offset_map))
        assert not offset_map.has_room(1, len(offset_map))
        assert len(offset_map) == len(model)
        for key, offset in model.items():
            assert offset_map.get(key) == offset
        assert offset_map.get(b"never put") == -1
        assert offset_map.get(LONG + b"never put") == -1
        others = [b"never put", LONG + b"never put"]
        assert not offset_map.is_disjoint([*others, *model]) or not model
        assert OffsetMap(0).is_disjoint(others)


def test_offset_zero_is_an_offset() -> None:
    """And no empty slot."""
    for recent_bytes in (0, 1 << 10):
        offset_map = OffsetMap(1 << 10, recent_bytes)
        offset_map.put(b"a", 0)
        assert offset_map.get(b"a") == 0
        assert len(offset_map) == 1


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
    with pytest.raises(ValueError, match="released"):
        offset_map.get(b"1")


def test_memory_of_recent_keys_is_bounded() -> None:
    """Of the longest that are kept: half of the slots' memory, a quarter of that once spilled."""
    offset_map = OffsetMap(2 << 20)
    most = {False: 0, True: 0}
    at_once = 100
    tracemalloc.start()
    try:
        for batch in range(200):
            start = batch * at_once
            keys = [b"%0*d" % (RECENT_KEY_BYTES, start + index) for index in range(at_once)]
            offset_map.put_all(keys, range(start, start + at_once))
            used = tracemalloc.get_traced_memory()[0]
            most[offset_map._is_spilled] = max(most[offset_map._is_spilled], used)
    finally:
        tracemalloc.stop()
    one_batch = at_once * 512
    assert (1 << 18) < most[False] < 1.1 * (1 << 20) + one_batch
    assert (1 << 16) < most[True] < 1.1 * (1 << 18) + one_batch
    assert len(offset_map) == 200 * at_once


def test_the_two_halves_of_a_hash_differ() -> None:
    """Of all keys, else they would be 64 bits."""
    for algorithm in ("siphash13", "fnv"):
        hash_of = hash_for(algorithm, 64)
        found = [hash_of(b"%d" % index) for index in range(1_000)]
        assert len({first ^ second for first, second in found}) == 1_000
    assert hash_for("siphash24", 32) is hash_for("fnv", 64)
