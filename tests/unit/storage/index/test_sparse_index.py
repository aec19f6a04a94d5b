"""What both indexes share: a tail that is written out, a file that is dropped and read again."""

import errno

import pytest

from storage.errors import CorruptFileError, DiskError
from storage.index.offset_index import OffsetIndex
from storage.index.sparse_index import TAIL_ENTRIES_MAX
from tests.fakes.filesystem import FakeFilesystem


def _index(filesystem: FakeFilesystem, *, is_new: bool = True) -> OffsetIndex:
    filesystem.mkdir("/d")
    return OffsetIndex("/d", 0, filesystem, max_bytes=1 << 20, is_new=is_new)


def test_a_full_tail_is_written_out() -> None:
    """Memory is bounded however long the segment gets."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    for number in range(1, TAIL_ENTRIES_MAX * 2 + 10):
        index.append(number, number * 10)
    assert filesystem.file_size(index.path) == TAIL_ENTRIES_MAX * 2 * 8
    assert index.lookup(5) == (5, 50)
    assert index.lookup(TAIL_ENTRIES_MAX * 2 + 5)[0] == TAIL_ENTRIES_MAX * 2 + 5


def test_the_pool_drops_what_can_be_read_again() -> None:
    """Look-ups go on working."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    index.append(1, 10)
    index.save()
    assert index.lookup(1) == (1, 10)
    assert filesystem.loaded_indexes.weight > 0
    index.release()
    assert index.lookup(1) == (1, 10)
    index.close()
    assert filesystem.loaded_indexes.weight == 0


def test_a_failed_save_can_be_repeated() -> None:
    """The entries stay in memory."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    index.append(1, 10)
    filesystem.fail("write", errno.ENOSPC)
    with pytest.raises(DiskError):
        index.save()
    assert index.save()
    assert _index(filesystem, is_new=False).entries() == [(1, 10)]


def test_a_new_index_takes_no_notice_of_an_old_file() -> None:
    """It may be left from before a crash."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.poke("/d/00000000000000000000.index", b"x" * 80)
    index = _index(filesystem)
    assert index.entries() == []
    index.save()
    assert filesystem.peek(index.path) == b""


def test_a_file_that_shrank_under_us_is_corrupt() -> None:
    """Entries that were there are not there any more."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    index.append(1, 10)
    index.append(2, 20)
    index.save()
    filesystem.poke(index.path, bytes(8))
    with pytest.raises(CorruptFileError):
        index.lookup(2)


def test_sync_makes_the_saved_entries_durable() -> None:
    """With the folder's sync, which is the caller's."""
    filesystem = FakeFilesystem()
    index = _index(filesystem)
    filesystem.sync_directory("/")
    index.append(1, 10)
    index.save()
    filesystem.sync_directory("/d")
    assert filesystem.after_crash().peek(index.path) == b""
    index.sync()
    assert len(filesystem.after_crash().peek(index.path)) == 8
