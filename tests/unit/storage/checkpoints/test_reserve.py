"""The reserve: room that is really taken, given up at once, and taken again only beside as much."""

import errno
from pathlib import Path

import pytest

from storage.checkpoints.reserve import DISK_SHARE, FILES_MIN, PROBED_MIN, RESERVE_FILE, Reserve
from storage.environment.local_filesystem import LocalFilesystem
from storage.errors import DiskError
from tests.fakes.filesystem import FakeFilesystem

SIZE = 2 << 20
PATH = f"/d/{RESERVE_FILE}"


@pytest.fixture
def disk() -> FakeFilesystem:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    return filesystem


def test_its_blocks_are_taken(tmp_path: Path) -> None:
    """A file with a hole for its contents would hold nothing back."""
    reserve = Reserve(str(tmp_path), LocalFilesystem(), SIZE)
    reserve.hold()
    file = tmp_path / RESERVE_FILE
    assert file.stat().st_size == SIZE
    assert file.stat().st_blocks * 512 >= SIZE
    reserve.give_up()
    assert not file.exists()
    assert reserve.try_take()
    assert (file.stat().st_size, reserve.is_held) == (SIZE, True)


def test_on_a_small_disk_it_is_small(disk: FakeFilesystem) -> None:
    total = disk.volume("/d").total_bytes
    reserve = Reserve("/d", disk, total)
    disk.fail("allocate", errno.ENOSPC)
    with pytest.raises(DiskError):
        reserve.hold()
    assert reserve.size == total // DISK_SHARE
    assert not disk.exists(PATH)


def test_it_is_not_taken_again_while_the_disk_has_no_inodes(disk: FakeFilesystem) -> None:
    """The one that it had given back would be its own again, and the next roll fail."""
    reserve = Reserve("/d", disk, SIZE)
    reserve.hold()
    reserve.give_up()
    disk.free_files = FILES_MIN - 1
    assert not reserve.try_take()
    disk.free_files = FILES_MIN
    assert reserve.try_take()


def test_it_is_taken_again_only_with_as_much_room_beside_it(disk: FakeFilesystem) -> None:
    """Or the next record would find the disk full again."""
    reserve = Reserve("/d", disk, SIZE)
    reserve.hold()
    reserve.give_up()
    disk.free = 2 * SIZE - 1
    assert not reserve.try_take()
    disk.free = 2 * SIZE
    disk.fail("allocate", errno.EDQUOT)
    assert not reserve.try_take()
    assert not disk.exists(PATH)
    assert reserve.try_take()
    assert disk.file_size(PATH) == SIZE


def test_without_a_reserve_room_is_looked_for_all_the_same(disk: FakeFilesystem) -> None:
    reserve = Reserve("/d", disk, 0)
    reserve.hold()
    disk.free = PROBED_MIN - 1
    assert not reserve.try_take()
    disk.free = PROBED_MIN
    assert reserve.try_take()
    assert not disk.exists(PATH)
    assert not reserve.is_held


def test_what_a_crash_left_is_taken_up_again(disk: FakeFilesystem) -> None:
    Reserve("/d", disk, SIZE).hold()
    again = Reserve("/d", disk, SIZE)
    again.hold()
    assert again.is_held
    assert disk.file_size(PATH) == SIZE


def test_a_disk_that_refuses_to_delete_is_not_asked_twice(disk: FakeFilesystem) -> None:
    reserve = Reserve("/d", disk, SIZE)
    reserve.hold()
    disk.fail("unlink", errno.EIO)
    reserve.give_up()
    assert not reserve.is_held
