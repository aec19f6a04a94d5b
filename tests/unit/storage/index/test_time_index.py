"""The time index: Kafka's bytes and rules."""

import pytest

from storage.errors import CorruptFileError
from storage.index.time_index import TimeIndex
from tests.fakes.filesystem import FakeFilesystem

PATH = "/d/00000000000000000100.timeindex"


def _index(filesystem: FakeFilesystem, *, is_new: bool = True) -> TimeIndex:
    filesystem.mkdir("/d")
    return TimeIndex("/d", 100, filesystem, max_bytes=1200, is_new=is_new)


def test_bytes_are_kafkas() -> None:
    """Big-endian int64 timestamp, int32 relative offset."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    index.maybe_append(1_700_000_000_000, 107)
    index.save()
    assert filesystem.peek(PATH) == bytes.fromhex("0000018bcfe56800 00000007")


def test_only_a_later_time_makes_an_entry() -> None:
    """-1 is no time; an equal one adds nothing."""
    index = _index(FakeFilesystem())
    index.maybe_append(-1, 100)
    assert index.entries() == []
    assert index.last_entry == (-1, 100)
    index.maybe_append(50, 101)
    index.maybe_append(50, 105)
    index.maybe_append(60, 109)
    assert index.entries() == [(50, 101), (60, 109)]


def test_look_up_gives_the_entry_before_the_time() -> None:
    """A batch that reaches the time cannot lie before that entry's."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    for number in range(1, 5):
        index.maybe_append(number * 10, 100 + number)
        if number == 2:
            index.save()
    for probed in (index, _saved(index, filesystem)):
        assert probed.lookup_before(10) is None
        assert probed.lookup_before(11) == (10, 101)
        assert probed.lookup_before(30) == (20, 102)
        assert probed.lookup_before(31) == (30, 103)
        assert probed.lookup_before(99) == (40, 104)


def _saved(index: TimeIndex, filesystem: FakeFilesystem) -> TimeIndex:
    index.save()
    return _index(filesystem, is_new=False)


def test_truncation_goes_by_offset() -> None:
    """Entries at or above it go."""
    index = _index(FakeFilesystem())
    for number in range(1, 5):
        index.maybe_append(number * 10, 100 + number)
    index.truncate_to(103)
    assert index.entries() == [(10, 101), (20, 102)]


def test_offsets_that_fall_are_corrupt() -> None:
    """The neighbours of an entry that is used must fit."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    data = b"".join(
        time.to_bytes(8, "big") + offset.to_bytes(4, "big") for time, offset in ((10, 9), (20, 3))
    )
    filesystem.poke(PATH, data)
    with pytest.raises(CorruptFileError):
        _index(filesystem, is_new=False).lookup_before(15)
