"""A ticket is disk calls and nothing else: the log is as it was until it is finished."""

import errno

import pytest

from storage.errors import DiskError
from storage.log.directory_pace import DirectoryPace
from storage.log.log import Log
from storage.log.write_ticket import AppendTicket, RollTicket
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import NOW_MS, make_batch, open_log, small_segments


@pytest.fixture
def log() -> Log:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    made = open_log(filesystem, small_segments(300))
    clock = ManualClock()
    made.disk_work.leave_to(DirectoryPace(clock.monotonic_ms, clock.monotonic_s))
    for _ in range(4):
        made.writer.append_as_leader(make_batch(b"x" * 60), leader_epoch=0, now_ms=NOW_MS)
    return made


def test_running_changes_files_only(log: Log) -> None:
    while (ticket := log.disk_work.begin()) is not None:
        before = (log.log_end_offset, log.size(), len(log.segment_facts()))
        ticket.run()
        assert (log.log_end_offset, log.size(), len(log.segment_facts())) == before
        log.disk_work.finish(ticket)
    assert log.log_end_offset == 4


def test_a_roll_that_fails_leaves_the_old_segment_active(log: Log) -> None:
    filesystem = log.filesystem
    assert isinstance(filesystem, FakeFilesystem)
    while not isinstance(ticket := log.disk_work.begin(), RollTicket):
        assert ticket is not None
        ticket.run()
        log.disk_work.finish(ticket)
    filesystem.fail("create", errno.EIO, path=".log")
    with pytest.raises(DiskError) as error:
        ticket.run()
    log.disk_work.finish(ticket, error.value)
    assert log.segment_facts() == (ticket.old,)


def test_what_could_not_be_cut_off_is_told(log: Log) -> None:
    filesystem = log.filesystem
    assert isinstance(filesystem, FakeFilesystem)
    filesystem.tear_failed_writes = True
    ticket = log.disk_work.begin()
    assert isinstance(ticket, AppendTicket)
    filesystem.fail("write", errno.EIO, path=".log")
    filesystem.fail("truncate", errno.EIO, path=".log")
    with pytest.raises(DiskError, match="write"):
        ticket.run()
    assert "truncate" in str(ticket.trim_failure)
