"""The files of a segment: stages, directories, removal."""

from storage.segment.segment import Segment
from storage.segment.segment_files import rename_files
from tests.fakes.filesystem import FakeFilesystem


def made(filesystem: FakeFilesystem) -> Segment:
    filesystem.mkdir("/d")
    segment = Segment.create(
        "/d", 7, filesystem, index_interval_bytes=10, index_max_bytes=100, created_ms=0
    )
    segment.append(b"x" * 70, 70, 7, 1)
    segment.append(b"x" * 70, 70, 8, 2)
    segment.seal()
    return segment


def names(filesystem: FakeFilesystem, directory: str = "/d") -> set[str]:
    return {entry.name for entry in filesystem.list_directory(directory)}


def test_all_files_get_the_stage_and_the_log_leaves_first() -> None:
    """A log file without indexes has them rebuilt; an index without a log file is removed."""
    filesystem = FakeFilesystem()
    segment = made(filesystem)
    before = names(filesystem)
    assert segment.renames(".deleted")[0][0] == segment.path
    segment.rename_stage(".deleted")
    assert names(filesystem) == {f"{name}.deleted" for name in before}
    assert segment.renames("")[-1][0] == segment.path
    segment.rename_stage("")
    assert names(filesystem) == before


def test_renaming_twice_is_renaming_once() -> None:
    """A thread may have done half of it."""
    filesystem = FakeFilesystem()
    renames = made(filesystem).renames(".deleted")
    rename_files(filesystem, renames[:1])
    rename_files(filesystem, renames)
    rename_files(filesystem, renames)
    assert all(name.endswith(".deleted") for name in names(filesystem))


def test_files_are_found_where_the_directory_went_and_removed_there() -> None:
    filesystem = FakeFilesystem()
    segment = made(filesystem)
    filesystem.rename("/d", "/e")
    segment.move_to("/e")
    assert segment.open_file().size() == 140
    segment.delete_files()
    assert names(filesystem, "/e") == set()
    segment.delete_files()
