"""A flush: after `run`, and not before, a power cut costs nothing of what it covers."""

import errno

import pytest

from storage.errors import DiskError
from storage.log.log import Log
from tests.code_path import python_only
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    append,
    make_batch,
    open_log,
    read_batches,
    small_segments,
)


def _filled(filesystem: FakeFilesystem) -> Log:
    log = open_log(filesystem, small_segments(150))
    for _ in range(5):
        append(log, make_batch(b"x" * 40))
    return log


def test_everything_it_covers_survives() -> None:
    """Segments, indexes, snapshots and all their names."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    filesystem.sync_directory("/")
    log = _filled(filesystem)
    ticket = log.flusher.begin_flush()
    assert ticket is not None
    assert not filesystem.after_crash().exists(DIRECTORY)
    ticket.run()
    survived = filesystem.after_crash()
    names = {entry.name for entry in survived.list_directory(DIRECTORY)}
    assert names == {entry.name for entry in filesystem.list_directory(DIRECTORY)}
    for segment in log.segment_facts()[:-1]:
        for path in (segment.path, segment.offset_index.path, segment.time_index.path):
            assert survived.peek(path) == filesystem.peek(path)
    assert read_batches(open_log(survived)) == read_batches(log)


def test_it_only_syncs() -> None:
    """It runs beside the loop, so it must not change a thing."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    ticket = log.flusher.begin_flush()
    assert ticket is not None
    filesystem.events.clear()
    ticket.run()
    assert {event.kind for event in filesystem.events} == {"sync", "sync_directory"}


def test_the_active_segment_can_be_left_out() -> None:
    """What was rolled goes to disk without it."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    active = log.segment_facts()[-1]
    filesystem.events.clear()
    log.flusher.flush(log.active_base_offset)
    assert log.recovery_point == active.base_offset
    assert active.path not in {event.path for event in filesystem.events}


def test_deleted_files_are_no_error() -> None:
    """Retention may take a segment while its flush is under way."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    ticket = log.flusher.begin_flush()
    assert ticket is not None
    log.delete_records(4)
    assert log.retention.delete_old_segments() > 0
    ticket.run()
    log.flusher.finish_flush(ticket)
    assert log.recovery_point == 5


@python_only
def test_a_file_that_is_renamed_while_it_is_opened_is_no_error() -> None:
    """That it is there under its new name does not make the old one a failure."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    ticket = log.flusher.begin_flush()
    assert ticket is not None
    first = log.segment_facts()[0]

    class Leaving:
        """An index that retention renames between its path and its file."""

        path = first.offset_index.path

        def sync(self) -> None:
            first.rename_stage(".deleted")
            error = DiskError("cannot open", self.path, errno.ENOENT)
            self.path = first.offset_index.path
            assert filesystem.exists(self.path)
            raise error

    ticket.side_files = [Leaving()]  # type: ignore[list-item]  # looks like one
    ticket.run()


@pytest.mark.parametrize("kind", [".log", ".index", ".snapshot"])
def test_a_disk_that_refuses_is_an_error(kind: str) -> None:
    """Also for the small files: the recovery point may not move."""
    filesystem = FakeFilesystem()
    log = _filled(filesystem)
    filesystem.fail("sync", errno.EIO, path=kind)
    with pytest.raises(DiskError):
        log.flusher.flush()
    assert log.recovery_point == 0
