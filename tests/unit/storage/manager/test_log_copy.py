"""The copy of a log's directory; moves and crashes are in `test_log_moves.py`."""

from collections.abc import Callable

import pytest

from storage.errors import DiskError
from storage.manager.log_copy import PIECE_BYTES, CopyCancelledError, LogCopy, SegmentSize
from tests.fakes.filesystem import FakeFilesystem

FIRST, SECOND = "00000000000000000000.log", "00000000000000000007.log"


@pytest.fixture
def filesystem() -> FakeFilesystem:
    made = FakeFilesystem()
    made.mkdir("/log")
    made.mkdir("/copy")
    return made


def test_only_what_the_log_vouches_for_is_copied(filesystem: FakeFilesystem) -> None:
    """What lies behind may be a write that is about to be undone."""
    copy = LogCopy(filesystem, "/log", "/copy")
    filesystem.poke(f"/log/{FIRST}", b"abcdefUNDONE")
    assert copy.copy([SegmentSize(0, 6)], 3) == 6
    assert filesystem.peek(f"/copy/{FIRST}") == b"abcdef"
    filesystem.poke(f"/log/{FIRST}", b"abcdefghi")
    filesystem.poke(f"/log/{SECOND}", b"x")
    assert copy.copy([SegmentSize(0, 9), SegmentSize(7, 1)], 8) == 4
    assert filesystem.peek(f"/copy/{FIRST}") == b"abcdefghi"
    assert (copy.size_bytes, copy.end_offset) == (10, 8)
    assert copy.copy([SegmentSize(0, 9), SegmentSize(7, 1)], 8) == 0


def test_the_end_makes_it_whole(filesystem: FakeFilesystem) -> None:
    """Side files as they are last; nothing that is on its way out, nothing that is gone."""
    copy = LogCopy(filesystem, "/log", "/copy")
    for name in (FIRST, SECOND):
        filesystem.poke(f"/log/{name}", b"log of " + name.encode())
    copy.copy([SegmentSize(0, 5), SegmentSize(7, 3)], 9)
    filesystem.remove(f"/log/{FIRST}")
    others = ("00000000000000000007.index", "leader-epoch-checkpoint", "partition.metadata")
    for name in (*others, f"{FIRST}.deleted", "leader-epoch-checkpoint.tmp"):
        filesystem.poke(f"/log/{name}", name.encode())
    copy.finish()
    names = {entry.name for entry in filesystem.list_directory("/copy")}
    assert names == {SECOND, *others}
    assert filesystem.peek(f"/copy/{SECOND}") == b"log of " + SECOND.encode()
    after = filesystem.after_crash()
    assert after.exists("/copy") is False or after.peek(f"/copy/{SECOND}")


def test_a_copy_may_be_called_off_in_the_middle(filesystem: FakeFilesystem) -> None:
    filesystem.poke(f"/log/{FIRST}", bytes(3 * PIECE_BYTES))
    copy = LogCopy(filesystem, "/log", "/copy")
    copy.cancelled = True
    with pytest.raises(CopyCancelledError):
        copy.copy([SegmentSize(0, 3 * PIECE_BYTES)], 1)


def test_a_segment_that_retention_takes_meanwhile_is_left_out(filesystem: FakeFilesystem) -> None:
    """Another trouble with the file is a trouble."""
    copy = LogCopy(filesystem, "/log", "/copy")
    assert copy.copy([SegmentSize(0, 6)], 3) == 0
    filesystem.poke(f"/log/{FIRST}", b"abcdef")
    filesystem.fail("open", path=FIRST)
    with pytest.raises(DiskError):
        copy.copy([SegmentSize(0, 6)], 3)


def test_segments_set_aside_go_along(filesystem: FakeFilesystem) -> None:
    """The source's folder is removed with all that is in it."""
    filesystem.mkdir("/log/set-aside-1")
    filesystem.poke(f"/log/set-aside-1/{SECOND}", b"kept")
    filesystem.poke(f"/log/{FIRST}", b"log")
    copy = LogCopy(filesystem, "/log", "/copy")
    for _ in range(2):
        copy.copy([SegmentSize(0, 3)], 1)
        copy.finish()
        assert filesystem.peek(f"/copy/set-aside-1/{SECOND}") == b"kept"
    assert copy.size_bytes == 3 + len(b"kept")


def test_a_throttle_is_told_of_each_piece_until_it_is_urgent(filesystem: FakeFilesystem) -> None:
    """What waits in it ends with the copy."""
    told: list[int] = []

    def throttle(size: int, check_wanted: Callable[[], None]) -> None:
        told.append(size)
        check_wanted()

    filesystem.poke(f"/log/{FIRST}", bytes(PIECE_BYTES + 3))
    copy = LogCopy(filesystem, "/log", "/copy", throttle)
    copy.copy([SegmentSize(0, PIECE_BYTES + 1)], 1)
    assert told == [PIECE_BYTES, 1]
    copy.hurry()
    copy.finish()
    assert told == [PIECE_BYTES, 1]
    assert filesystem.file_size(f"/copy/{FIRST}") == PIECE_BYTES + 3


def test_a_file_shorter_than_was_said_is_copied_on_later(filesystem: FakeFilesystem) -> None:
    """Nothing is made up in between."""
    copy = LogCopy(filesystem, "/log", "/copy")
    filesystem.poke(f"/log/{FIRST}", b"abc")
    assert copy.copy([SegmentSize(0, 6)], 3) == 3
    filesystem.poke(f"/log/{FIRST}", b"abcdef")
    assert copy.copy([SegmentSize(0, 6)], 3) == 3
    assert filesystem.peek(f"/copy/{FIRST}") == b"abcdef"
