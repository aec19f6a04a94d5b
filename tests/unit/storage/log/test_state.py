"""The state that all parts of a log share: descriptors, and whether the log takes records."""

import errno

import pytest

from storage.errors import DiskError, LogDirectoryFullError, LogDirectoryOfflineError
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import append, make_batch, open_log, read_records

FULL = DiskError("no space left", "/data/t-0", errno.ENOSPC)


def test_a_refusal_ends_when_appends_are_accepted() -> None:
    log = open_log(FakeFilesystem())
    log.refuse_appends(FULL)
    with pytest.raises(LogDirectoryFullError):
        append(log, make_batch(b"a"))
    assert log.accept_appends()
    append(log, make_batch(b"a"))


def test_a_refusal_said_during_a_rollback_holds_after_it() -> None:
    """And one that was taken back meanwhile does not: the rollback itself refuses till its end."""
    for is_accepted in (False, True):
        log = open_log(FakeFilesystem())
        log.begin_rollback(FULL)
        log.refuse_appends(FULL)
        if is_accepted:
            assert not log.accept_appends()
        with pytest.raises(LogDirectoryFullError):
            append(log, make_batch(b"a"))
        log.end_rollback()
        assert (log.refusal is None) == is_accepted


def test_a_failure_is_for_good() -> None:
    log = open_log(FakeFilesystem())
    log.fail(DiskError("cannot sync", "/data/t-0", errno.EIO))
    assert not log.accept_appends()
    with pytest.raises(LogDirectoryOfflineError):
        append(log, make_batch(b"a"))


def test_few_files_are_open_at_once() -> None:
    """However many logs there are; all of them go on working."""
    filesystem = FakeFilesystem(open_files_max=4)
    logs = [open_log(filesystem, directory=f"/data/t-{number}") for number in range(20)]
    assert filesystem.descriptors == 0
    for _ in range(3):
        for log in logs:
            append(log, make_batch(b"x"))
    assert filesystem.descriptors <= 4
    assert filesystem.open_files.evicted > 0
    assert all(len(read_records(log)) == 3 for log in logs)
