"""What leaves a log by retention and DeleteRecords."""

import pytest

from storage.errors import (
    OffsetNotLocalError,
    OffsetOutOfRangeError,
)
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
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
    assert log.retention.delete_old_segments() == 0
    clock.advance(1001)
    count = len(log.segment_facts())
    assert log.retention.delete_old_segments() == count
    assert (log.log_start_offset, log.log_end_offset, log.size()) == (5, 5, 0)
    names = [entry.name for entry in filesystem.list_directory(DIRECTORY)]
    assert sum(name.endswith(".log.deleted") for name in names) == count
    assert log.deletion.remove_deleted_files() == 0
    clock.advance(1000)
    assert log.deletion.remove_deleted_files() == count
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
        log.reader.read(3, max_bytes=9, end_offset=6, min_one_batch=True)
    assert log.retention.delete_old_segments() > 0
    assert [record.offset for record in read_records(log)] == [4, 5]


def test_a_copied_segment_leaves_the_disk_and_stays_in_the_log() -> None:
    """Local retention takes what was copied, no more; the log goes on starting where it did."""
    filesystem = FakeFilesystem()
    config = small_segments(150, remote_storage_enable=True, local_retention_bytes=0)
    log = open_log(filesystem, config)
    log.leader_epochs.assign(0, 0)
    for _ in range(6):
        append(log, make_batch(b"x" * 40))
    assert log.retention.delete_old_segments() == 0
    bases = [segment.base_offset for segment in log.segment_facts()]
    log.highest_remote_offset = bases[2] - 1
    assert log.retention.delete_old_segments() == 0
    # As soon as a start would know of it, whatever becomes of the settings.
    log.durable_remote_offset = bases[2] - 1
    assert log.retention.delete_old_segments() == 2
    assert (log.log_start_offset, log.local_log_start_offset) == (0, bases[2])
    for offset in (0, bases[2] - 1):
        with pytest.raises(OffsetNotLocalError):
            log.reader.read(offset, max_bytes=9, end_offset=6, min_one_batch=True)
    assert log.reader.read(bases[2], max_bytes=9, end_offset=6, min_one_batch=True) is not None
    log.close()

    again = open_log(filesystem, config, opened=Opened(0, 0))
    assert (again.log_start_offset, again.local_log_start_offset) == (0, bases[2])
    assert again.leader_epochs.entries() == [(0, 0)]
    assert again.high_watermark == bases[2]
    assert again.raise_log_start(1)
    assert not again.raise_log_start(1)
    assert again.raise_log_start(99)
    assert again.log_start_offset == again.high_watermark


@pytest.mark.parametrize("noted", [-1, 0, 1, 3])
def test_a_log_that_was_copied_begins_where_it_did_whatever_its_settings_say(noted: int) -> None:
    """Unless the note is of nothing above the log start, or remote storage is to be emptied."""
    filesystem = FakeFilesystem()
    config = small_segments(150, remote_storage_enable=True, local_retention_bytes=0)
    log = open_log(filesystem, config)
    log.leader_epochs.assign(0, 0)
    for _ in range(6):
        append(log, make_batch(b"x" * 40))
    log.highest_remote_offset = log.durable_remote_offset = 3
    assert log.retention.delete_old_segments() == 4
    assert log.delete_records(1) == 1
    log.close()
    lost = config.model_copy(update={"remote_storage_enable": False, "retention_bytes": 0})
    opened = Opened(0, 1, remote_offset=noted)

    again = open_log(filesystem, lost, opened=opened)
    is_kept = noted >= 1
    assert again.has_remote_part == is_kept
    assert (again.log_start_offset, again.local_log_start_offset) == (1 if is_kept else 4, 4)
    assert again.leader_epochs.entries() == [(0, 1 if is_kept else 4)]
    again.update_high_watermark(6)
    assert again.retention.delete_old_segments() > 0
    assert again.log_start_offset == (1 if is_kept else 6)
    again.close()

    emptied = lost.model_copy(update={"remote_log_delete_on_disable": True})
    begun_here = open_log(filesystem, emptied, opened=opened)
    assert begun_here.log_start_offset == begun_here.local_log_start_offset == 6
    begun_here.update_config(lost)
    assert not begun_here.has_remote_part


def test_without_copying_the_whole_retention_counts_here() -> None:
    """`remote.log.copy.disable`: segments go uncopied, and the log start with them (KIP-950)."""
    config = small_segments(
        150, remote_storage_enable=True, remote_log_copy_disable=True, retention_bytes=0
    )
    log = open_log(FakeFilesystem(), config)
    for _ in range(3):
        append(log, make_batch(b"x" * 40))
    assert log.retention.delete_old_segments() > 0
    assert log.log_start_offset == log.local_log_start_offset > 0


def test_what_was_not_copied_stays_when_its_time_has_come() -> None:
    """Local retention closes the active segment, so that it can be copied; no more than that."""
    clock = ManualClock(NOW_MS)
    config = small_segments(
        1000, remote_storage_enable=True, local_retention_ms=10, retention_ms=1_000_000
    )
    log = open_log(FakeFilesystem(clock), config, clock=clock)
    append(log, make_batch(b"x" * 40))
    clock.advance(11)
    assert log.retention.delete_old_segments() == 0
    assert len(log.segment_facts()) == 2
    assert (log.local_log_start_offset, log.log_end_offset) == (0, 1)
    assert log.retention.delete_old_segments() == 0
    log.highest_remote_offset = log.durable_remote_offset = 0
    assert log.retention.delete_old_segments() == 1
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 1)


def test_a_tiered_log_gives_up_only_what_a_crash_cannot_bring_back() -> None:
    """DeleteRecords moves the start at once; the files wait until a checkpoint says so too."""
    config = small_segments(150, remote_storage_enable=True)
    log = open_log(FakeFilesystem(), config)
    for _ in range(6):
        append(log, make_batch(b"x" * 40))
    log.delete_records(4)
    assert (log.log_start_offset, log.durable_log_start_offset) == (4, 0)
    assert log.retention.delete_old_segments() == 0
    log.durable_log_start_offset = 4
    assert log.retention.delete_old_segments() > 0
    assert log.local_log_start_offset == 4
