"""Producer snapshot files of a partition: which there are, which are deleted."""

from storage.producers.snapshot_files import SnapshotFiles
from tests.fakes.filesystem import FakeFilesystem


def files(filesystem: FakeFilesystem, *offsets: int) -> SnapshotFiles:
    filesystem.mkdir("/d")
    found = SnapshotFiles("/d", filesystem)
    for offset in offsets:
        filesystem.poke(found.path(offset), b"%d" % offset)
    return found


def test_strays_go_but_not_the_newest() -> None:
    """The one above all segments is of a clean shutdown."""
    filesystem = FakeFilesystem()
    snapshots = files(filesystem, 1, 2, 3, 4)
    snapshots.remove_strays({0, 2})
    assert snapshots.offsets() == [2, 4]
    assert not filesystem.exists(snapshots.path(3))
    snapshots.remove_strays({0, 9})
    assert snapshots.latest_offset is None


def test_the_newest_is_the_newest_whose_file_is_there() -> None:
    """Another process may have removed one since the directory was listed."""
    filesystem = FakeFilesystem()
    snapshots = files(filesystem, 5, 7)
    assert snapshots.newest() == (7, b"7")
    filesystem.unlink(snapshots.path(7))
    assert snapshots.newest() == (5, b"5")
    assert snapshots.offsets() == [5]


def test_a_retired_snapshot_is_renamed_and_one_that_is_not_there_is_nothing() -> None:
    filesystem = FakeFilesystem()
    snapshots = files(filesystem, 5)
    snapshots.retire(5)
    snapshots.retire(6)
    assert [entry.name for entry in filesystem.list_directory("/d")] == [
        "00000000000000000005.snapshot.deleted"
    ]
    assert snapshots.offsets() == []


def test_what_replaces_all_is_the_only_one() -> None:
    filesystem = FakeFilesystem()
    snapshots = files(filesystem, 5, 7)
    snapshots.add(6)
    snapshots.add(6)
    assert snapshots.offsets() == [5, 6, 7]
    snapshots.replace_all(9, b"x")
    assert snapshots.newest() == (9, b"x")
    assert snapshots.offsets() == [9]
