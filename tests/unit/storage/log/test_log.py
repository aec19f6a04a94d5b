"""Opening, renaming and deleting a log; its parts have test modules of their own."""

from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    append,
    make_batch,
    open_log,
    read_records,
    small_segments,
)


def test_a_renamed_folder_keeps_serving() -> None:
    """Deleting a topic begins with a new name."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(150))
    for _ in range(4):
        append(log, make_batch(b"x" * 40))
    log.rename_directory(f"{DIRECTORY}.0-delete")
    assert len(read_records(log)) == 4
    for segment in log.segment_facts():
        segment.close()
    assert len(read_records(log)) == 4
    log.delete()
    assert not filesystem.exists(f"{DIRECTORY}.0-delete")
