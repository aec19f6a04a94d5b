"""The offset index: Kafka's bytes, look-ups, and both parts of it, saved and not."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError
from storage.index.offset_index import OffsetIndex
from tests.fakes.filesystem import FakeFilesystem

PATH = "/d/00000000000000000100.index"


def _index(filesystem: FakeFilesystem, *, is_new: bool = True, max_bytes: int = 80) -> OffsetIndex:
    filesystem.mkdir("/d")
    return OffsetIndex("/d", 100, filesystem, max_bytes=max_bytes, is_new=is_new)


def test_bytes_are_kafkas() -> None:
    """Two big-endian int32: relative offset, position."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    index.append(107, 4200)
    index.append(65_636, 70_000)
    assert index.save()
    assert filesystem.peek(PATH) == bytes.fromhex("00000007 00001068 00010000 00011170")
    assert not index.save()


# Mostly alike, as batches are, and now and then far apart.
_STEP = st.integers(1, 50) | st.integers(1, 9_000) | st.just(10_000_000)


@given(
    st.lists(st.tuples(_STEP, _STEP), max_size=100),
    st.integers(0, 100),
    st.booleans(),
)
def test_look_ups_are_those_of_a_list(
    steps: list[tuple[int, int]], saved: int, reopen: bool
) -> None:
    """By offset and by position, whatever part of it has been saved."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    offset, position = 100, 0
    entries = []
    for at, (by_offset, by_position) in enumerate(steps):
        offset, position = offset + by_offset, position + by_position
        index.append(offset, position)
        entries.append((offset, position))
        if at == saved:
            index.save()
    if reopen:
        index.save()
        index = _index(filesystem, is_new=False)
    assert index.entries() == entries
    assert index.entry_count == len(entries)
    assert index.last_entry == (entries[-1] if entries else (100, 0))
    for probe in {100, 101, offset + 1, *(e[0] + by for e in entries for by in (-1, 0))}:
        at = bisect_right([e[0] for e in entries], probe)
        assert index.lookup(probe) == (entries[at - 1] if at else (100, 0))
    for probe in {0, 1, position + 1, *(e[1] + by for e in entries for by in (-1, 0))}:
        at = bisect_right([e[1] for e in entries], probe)
        assert index.last_entry_up_to(probe) == (entries[at - 1] if at else (100, 0))
        assert index.first_entry_from(probe) == next((e for e in entries if e[1] >= probe), None)


def test_truncation_drops_entries_from_the_offset_on() -> None:
    """In the file too, at the next save."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    for number in range(1, 6):
        index.append(100 + number * 10, number * 100)
    index.save()
    index.truncate_to(130)
    assert index.entries() == [(110, 100), (120, 200)]
    index.append(131, 300)
    index.save()
    assert len(filesystem.peek(PATH)) == 24
    assert _index(filesystem, is_new=False).entries() == [(110, 100), (120, 200), (131, 300)]


def test_it_is_full_at_its_size() -> None:
    """`segment.index.bytes`, rounded down to whole entries."""
    index = _index(FakeFilesystem(), max_bytes=23)
    index.append(101, 10)
    assert not index.is_full
    index.append(102, 20)
    assert index.is_full
    index.set_max_bytes(80)
    assert not index.is_full


def test_preallocated_zeros_are_no_entries() -> None:
    """A file that Kafka did not close: its zeros are cut before an entry is added."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.poke(PATH, bytes.fromhex("0000000700001068") + bytes(800))
    index = _index(filesystem, is_new=False)
    assert index.entries() == [(107, 4200)]
    index.append(120, 9000)
    index.save()
    assert len(filesystem.peek(PATH)) == 16
    assert _index(filesystem, is_new=False).entries() == [(107, 4200), (120, 9000)]


def test_entries_added_before_the_file_was_read_stay() -> None:
    """Zeros included: what was appended comes after what is in the file."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.poke(PATH, bytes.fromhex("0000000700001068") + bytes(16))
    index = _index(filesystem, is_new=False)
    index.append(130, 9000)
    assert index.lookup(110) == (107, 4200)
    assert index.entries() == [(107, 4200), (130, 9000)]


@pytest.mark.parametrize("data", [b"\1" * 7, b"\1" * 9])
def test_a_cut_off_file_is_corrupt(data: bytes) -> None:
    """So is a missing one."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    with pytest.raises(CorruptFileError):
        _index(filesystem, is_new=False).lookup(101)
    filesystem.poke(PATH, data)
    with pytest.raises(CorruptFileError):
        _index(filesystem, is_new=False).lookup(101)
