"""Files of segments that have left the log: renamed, and removed later."""

from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    small_segments,
)


def test_retention_only_renames() -> None:
    """What frees blocks, or waits for the disk, is left for later, also where no thread writes."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(150, retention_bytes=0))
    for _ in range(6):
        append(log, make_batch(b"x" * 40))
    log.flusher.flush()
    old = [segment.base_offset for segment in log.segment_facts()[1:]]
    kinds = []
    filesystem.observer = lambda event: kinds.append(event.kind)
    assert log.retention.delete_old_segments() > 2
    assert "rename" in kinds
    assert not {"unlink", "sync", "sync_directory"} & set(kinds)
    names = {entry.name for entry in filesystem.list_directory(DIRECTORY)}
    assert {f"{base:020d}.snapshot.deleted" for base in old} <= names
    assert not {f"{base:020d}.snapshot" for base in old} & names
    log.deletion.remove_deleted_files(now=True)
    assert not any(".deleted" in entry.name for entry in filesystem.list_directory(DIRECTORY))


def test_a_start_finishes_what_retention_began() -> None:
    """Also the snapshots that only had their new names."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(150, retention_bytes=0))
    for _ in range(6):
        append(log, make_batch(b"x" * 40))
    assert log.retention.delete_old_segments() > 2
    restarted = open_log(filesystem, opened=Opened(0, log.log_start_offset))
    assert (restarted.log_start_offset, restarted.log_end_offset) == (
        log.log_start_offset,
        log.log_end_offset,
    )
    assert not any(".deleted" in entry.name for entry in filesystem.list_directory(DIRECTORY))


def test_files_are_removed_when_their_delay_is_over() -> None:
    """`file.delete.delay.ms` after they left, wherever the directory is by then."""
    filesystem = FakeFilesystem()
    clock = ManualClock(NOW_MS)
    log = open_log(filesystem, small_segments(150, retention_bytes=0), clock=clock)
    for _ in range(3):
        append(log, make_batch(b"x" * 40))
    count = log.retention.delete_old_segments()
    assert count >= 2
    assert log.deletion.remove_deleted_files() == 0
    log.rename_directory("/data/t-0-moved")
    clock.advance(1000)
    assert log.deletion.remove_deleted_files() == count
    names = [entry.name for entry in filesystem.list_directory("/data/t-0-moved")]
    assert not any(".deleted" in name for name in names)
