"""What leaves a log: retention, DeleteRecords, truncation; and who may still be reading it."""

import pytest

from storage.errors import (
    OffsetOutOfRangeError,
)
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log_model import (
    DIRECTORY,
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    read_records,
    small_segments,
)


def test_retention_takes_the_oldest_and_never_the_active_segment() -> None:
    """By time here: the active segment is rolled first, then all old ones go."""
    clock = ManualClock(NOW_MS)
    filesystem = FakeFilesystem(clock)
    log = open_log(filesystem, small_segments(150, retention_ms=1000), clock=clock)
    for _ in range(5):
        append(log, make_batch(b"x" * 40))
    assert log.delete_old_segments() == 0
    clock.advance(1001)
    count = len(log.segment_facts())
    assert log.delete_old_segments() == count
    assert (log.log_start_offset, log.log_end_offset, log.size()) == (5, 5, 0)
    names = [entry.name for entry in filesystem.list_directory(DIRECTORY)]
    assert sum(name.endswith(".log.deleted") for name in names) == count
    assert log.remove_deleted_files() == 0
    clock.advance(1000)
    assert log.remove_deleted_files() == count
    assert append(log, make_batch(b"y")).first_offset == 5
    assert read_records(open_log(filesystem, opened=Opened(0, 5)))[0].offset == 5


def test_delete_records_moves_the_start() -> None:
    """Up to the high watermark; whole segments below go at the next pass."""
    log = open_log(FakeFilesystem(), small_segments(150))
    for _ in range(6):
        append(log, make_batch(b"x" * 40))
    with pytest.raises(OffsetOutOfRangeError):
        log.delete_records(7)
    assert log.delete_records(4) == 4
    assert log.delete_records(2) == 4
    with pytest.raises(OffsetOutOfRangeError):
        log.read(3, max_bytes=9, end_offset=6, min_one_batch=True)
    assert log.delete_old_segments() > 0
    assert [record.offset for record in read_records(log)] == [4, 5]


def test_a_slice_outlives_its_segment() -> None:
    """Retention, truncation and the pool of open files leave readers alone."""
    filesystem = FakeFilesystem(open_files_max=1)
    log = open_log(filesystem, small_segments(150))
    for number in range(4):
        append(log, make_batch(bytes([65 + number]) * 40))
    found = log.read(0, max_bytes=999, end_offset=4, min_one_batch=True)
    assert found is not None
    log.truncate_fully_and_start_at(100)
    data = found.file.read_at(found.length, found.position)
    assert b"A" * 40 in data
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (100, 100, 100)
    assert append(log, make_batch(b"n")).first_offset == 100
