"""When a flush is due, what it covers, and what its failure means."""

import errno

import pytest

from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.errors import (
    DiskError,
    LogDirectoryOfflineError,
)
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    small_segments,
)


def test_a_flush_moves_the_recovery_point() -> None:
    """What was appended since it began is not covered."""
    log = open_log(FakeFilesystem(), small_segments(9999, flush_messages=2))
    append(log, make_batch(b"x"))
    assert not log.flusher.needs_flush
    append(log, make_batch(b"x"))
    assert log.flusher.needs_flush
    assert log.flusher.flush_target() == 2
    ticket = log.flusher.begin_flush()
    assert ticket is not None
    append(log, make_batch(b"x"))
    ticket.run()
    assert log.recovery_point == 0
    log.flusher.finish_flush(ticket)
    assert (log.recovery_point, log.log_end_offset) == (2, 3)
    assert log.flusher.begin_flush(2) is None


def test_a_flush_that_a_truncation_overtook_counts_for_nothing() -> None:
    """What it synced is not what is there now."""
    log = open_log(FakeFilesystem(), small_segments(9999))
    for _ in range(3):
        append(log, make_batch(b"x"))
    ticket = log.flusher.begin_flush()
    assert ticket is not None
    log.truncation.truncate_to(1)
    append(log, make_batch(b"y"))
    append(log, make_batch(b"y"))
    ticket.run()
    log.flusher.finish_flush(ticket)
    assert log.recovery_point <= 1


def test_rolled_segments_are_due_for_a_flush() -> None:
    """So are all records after `flush.ms`."""
    clock = ManualClock(NOW_MS)
    log = open_log(FakeFilesystem(), small_segments(150, flush_ms=500), clock=clock)
    append(log, make_batch(b"x" * 40))
    assert log.flusher.flush_target() is None
    append(log, make_batch(b"x" * 40))
    assert log.flusher.flush_target() == log.active_base_offset == 1
    log.flusher.flush(1)
    assert log.flusher.flush_target() is None
    clock.advance(500)
    assert log.flusher.flush_target() == 2
    log.flusher.flush(2)
    assert log.recovery_point == 2


def test_flush_ms_goes_on_when_the_wall_clock_is_set_back() -> None:
    """For hours nothing was synced, and a power cut would have taken it."""
    clock = ManualClock(NOW_MS)
    log = open_log(FakeFilesystem(), small_segments(1500, flush_ms=500), clock=clock)
    append(log, make_batch(b"x"))
    clock.set_now_ms(NOW_MS - 3_600_000)
    clock.advance(499)
    assert log.flusher.flush_target() is None
    clock.advance(1)
    assert log.flusher.flush_target() == 1


def test_a_failed_sync_takes_the_log_out_of_service() -> None:
    """The kernel may have dropped the pages: nothing after it can be believed."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem)
    append(log, make_batch(b"x"))
    filesystem.fail("sync", errno.EIO)
    with pytest.raises(DiskError):
        log.flusher.flush()
    assert log.recovery_point == 0
    with pytest.raises(LogDirectoryOfflineError):
        append(log, make_batch(b"y"))
    with pytest.raises(LogDirectoryOfflineError):
        log.reader.read(0, max_bytes=9, end_offset=1, min_one_batch=True)


def test_a_directory_that_a_killed_process_made_is_synced_with_the_first_flush() -> None:
    """Or a power cut takes the whole log, flushed as it is, with its name."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    filesystem.sync_directory("/")
    append(open_log(filesystem), make_batch(b"x"))
    filesystem.crash(KEEP_ALL)
    log = open_log(filesystem)
    append(log, make_batch(b"y"))
    log.flusher.flush()
    assert log.recovery_point == 2
    filesystem.crash()
    assert open_log(filesystem, opened=Opened(2)).log_end_offset == 2


def test_epochs_that_a_killed_process_wrote_are_synced_with_the_first_flush() -> None:
    """Or after a power cut the recovery point lies above records of an epoch that is not known."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem)
    append(log, make_batch(b"x"), leader_epoch=1)
    log.flusher.flush()
    filesystem.sync_directory("/data")
    filesystem.sync_directory("/")
    log.begin_epoch(3)
    append(log, make_batch(b"y"), leader_epoch=3)
    filesystem.crash(KEEP_ALL)
    log = open_log(filesystem, opened=Opened(1))
    assert log.leader_epochs.entries() == [(1, 0), (3, 1)]
    append(log, make_batch(b"z"), leader_epoch=3)
    log.flusher.flush()
    filesystem.crash()
    log = open_log(filesystem, opened=Opened(3))
    assert (log.log_end_offset, log.leader_epochs.entries()) == (3, [(1, 0), (3, 1)])


def test_an_epoch_without_records_is_on_disk_after_a_clean_stop() -> None:
    """The next life appends in it, and takes its checkpoint for synced: so has a power cut to."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem)
    append(log, make_batch(b"x"), leader_epoch=1)
    log.flusher.flush()
    filesystem.sync_directory("/")
    filesystem.crash(KEEP_ALL)
    log = open_log(filesystem, opened=Opened(1, clean_shutdown=True))
    log.begin_epoch(3)
    log.close()
    log = open_log(filesystem, opened=Opened(1, clean_shutdown=True))
    append(log, make_batch(b"y"), leader_epoch=3)
    log.close()
    filesystem.crash()
    log = open_log(filesystem, opened=Opened(2, clean_shutdown=True))
    assert log.leader_epochs.entries() == [(1, 0), (3, 1)]


def test_epochs_that_a_flush_could_not_sync_are_synced_with_the_next() -> None:
    """It had no descriptor for a file that goes with the log: that is no failure of the disk."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem)
    append(log, make_batch(b"x"), leader_epoch=1)
    log.flusher.flush()
    filesystem.sync_directory("/data")
    filesystem.sync_directory("/")
    log.begin_epoch(3)
    append(log, make_batch(b"y"), leader_epoch=3)
    ticket = log.flusher.begin_flush()
    assert ticket is not None
    log.flusher.abandon_flush(ticket)
    log.flusher.flush()
    filesystem.crash()
    log = open_log(filesystem, opened=Opened(2))
    assert (log.log_end_offset, log.leader_epochs.entries()) == (2, [(1, 0), (3, 1)])


def test_an_epoch_is_on_disk_before_the_recovery_point_passes_its_records() -> None:
    """Taking over writes no file; what a crash would not scan must be known without it."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(9999))
    append(log, make_batch(b"x"))
    filesystem.sync_directory("/")
    log.begin_to_lead(9)
    log.writer.append_as_leader(memoryview(make_batch(b"y")), leader_epoch=9, now_ms=NOW_MS)
    ticket = log.flusher.begin_flush()
    assert ticket is not None
    ticket.run()
    path = f"{log.directory}/leader-epoch-checkpoint"
    crashed = LeaderEpochCache(path, filesystem.after_crash(None))
    assert crashed.entries()[-1] == (9, 1)
    log.flusher.abandon_flush(ticket)
    again = log.flusher.begin_flush()
    assert again is not None
    assert again.epochs is not None
