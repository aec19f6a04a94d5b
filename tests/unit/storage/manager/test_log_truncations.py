"""Truncations of logs that follow: compaction is stopped, checkpoints go down with the log."""

import errno
import threading
from typing import Any

import pytest

from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from storage.checkpoints.log_directory import LogDirectory
from storage.errors import DiskError
from storage.log.truncation import StateBelow
from storage.producers.snapshot import encode_rows
from tests.code_path import python_only
from tests.fakes.filesystem import KEEP_ALL
from tests.unit.storage.log.log_model import read_records, small_segments
from tests.unit.storage.manager.log_disk import A0, A1, CONFIG, ID_A, Disk, append


def test_checkpoints_go_down_with_the_log() -> None:
    """A crash right after the next append must not find records below a recovery point unread."""
    manager = Disk("/one").manager()
    manager.startup.load(lambda _topic: CONFIG)
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    (directory,) = manager.directories
    append(log, 10)
    log.flusher.flush()
    manager.checkpoints.write()
    directory.write_checkpoint(CLEANER_CHECKPOINT, lambda _: {A0: 8})
    manager.truncation.truncate_to(log, 4)
    assert log.log_end_offset == 4
    assert directory.checkpointed(RECOVERY_POINT_CHECKPOINT, A0) == 4
    assert directory.checkpointed(CLEANER_CHECKPOINT, A0) == 4
    manager.truncation.start_at(log, 20)
    assert (log.log_start_offset, log.log_end_offset) == (20, 20)


@pytest.mark.parametrize("starts_anew", [True, False])
def test_what_is_fetched_below_the_former_log_start_is_there_after_a_crash(
    starts_anew: bool,
) -> None:
    """Its leader begins lower than it did: the checkpoint, a minute old, would hide records."""
    disk = Disk("/one")
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 10)
    log.flusher.flush()
    log.delete_records(8)
    manager.checkpoints.write()
    if starts_anew:
        manager.truncation.start_at(log, 3)
    else:
        manager.truncation.truncate_to(log, 3)
    append(log, 10)
    log.flusher.flush()
    disk.filesystem.crash()
    found = disk.started().get(A0)
    assert found is not None
    assert (found.log_start_offset, found.log_end_offset) == (3, 13)


def test_a_log_that_begins_behind_its_remote_part_does_so_after_a_crash() -> None:
    """Also where its settings do not say (any more) that it has one."""
    disk = Disk("/one")
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    below = StateBelow(20, [(0, 0)], encode_rows([], 0))
    manager.truncation.start_behind(
        log,
        lambda it: it.truncation.start_behind(below, log_start_offset=0, now_ms=0),
    )
    append(log, 3)
    disk.filesystem.crash()
    found = disk.started().get(A0)
    assert found is not None
    assert (found.log_start_offset, found.local_log_start_offset) == (0, 20)


@pytest.mark.parametrize(("code", "starts_anew"), [(errno.EMFILE, False), (errno.ENOSPC, True)])
def test_nothing_is_cut_before_the_recovery_point_is_lower(code: int, starts_anew: bool) -> None:
    """There is no room for its checkpoint: the log could go on, and lose power."""
    config = small_segments(300)
    disk = Disk("/one")
    manager = disk.started(config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    append(log, 20)
    log.flusher.flush()
    manager.checkpoints.write()

    def truncate() -> None:
        if starts_anew:
            manager.truncation.start_at(log, 5)
        else:
            manager.truncation.truncate_to(log, 5)

    disk.filesystem.fail("create", code, path=RECOVERY_POINT_CHECKPOINT)
    with pytest.raises(DiskError):
        truncate()
    assert (log.failure, log.log_end_offset) == (None, 20)
    for _ in range(2):
        manager.room.check()
    truncate()
    append(log, 10)
    assert log.segments.active.base_offset > 8
    # As with any file that is replaced there.
    disk.filesystem.sync_directory(log.directory)
    disk.filesystem.crash()
    found = disk.started(config).get(A0)
    assert found is not None
    assert found.log_end_offset == 5
    assert [record.offset for record in read_records(found)] == (
        [] if starts_anew else list(range(5))
    )


@pytest.mark.parametrize("starts_anew", [True, False])
def test_nothing_is_cut_before_the_log_start_is_lower(starts_anew: bool) -> None:
    """There is no room for its checkpoint: what is fetched next would count as deleted."""
    disk = Disk("/one")
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 10)
    log.delete_records(8)
    manager.checkpoints.write()
    truncate = manager.truncation.start_at if starts_anew else manager.truncation.truncate_to
    disk.filesystem.fail("create", errno.EMFILE, path=LOG_START_OFFSET_CHECKPOINT)
    with pytest.raises(DiskError):
        truncate(log, 3)
    assert (log.failure, log.log_start_offset, log.log_end_offset) == (None, 8, 10)
    truncate(log, 3)
    append(log, 10)
    disk.filesystem.crash(KEEP_ALL)
    found = disk.started().get(A0)
    assert found is not None
    assert (found.log_start_offset, found.log_end_offset) == (3, 13)


def test_a_checkpoint_that_is_being_written_does_not_put_it_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has chosen its logs, and waits for another directory's disk while one of them is cut."""
    manager = Disk("/one", "/two").manager()
    manager.startup.load(lambda _topic: CONFIG)
    for partition in (A0, A1):
        append(manager.creation.get_or_create(partition, ID_A, CONFIG), 10)
    (log,) = manager.logs_in(manager.directories[1])
    log.flusher.flush()
    write = LogDirectory.write_checkpoint

    def cut_first(directory: LogDirectory, name: str, change: Any) -> bool:
        if directory.path == "/two":
            monkeypatch.undo()
            manager.truncation.truncate_to(log, 4)
        return write(directory, name, change)

    monkeypatch.setattr(LogDirectory, "write_checkpoint", cut_first)
    manager.checkpoints.write_recovery_points()
    checkpointed = manager.directories[1].checkpointed
    assert checkpointed(RECOVERY_POINT_CHECKPOINT, log.topic_partition) == 4


@pytest.mark.parametrize("behind", [False, True])
def test_a_log_that_could_not_begin_anew_keeps_no_other_from_compaction(behind: bool) -> None:
    """It is out of service, as there was no descriptor for its file, and its directory serves."""
    config = small_segments(300, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.01)
    disk = Disk("/one")
    manager = disk.started(config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    other = manager.creation.get_or_create(A1, ID_A, config)
    for each in (log, other):
        append(each, 20)
        each.flusher.flush()
    append(log)
    disk.filesystem.fail("create", errno.EMFILE, path=f"{A0}/{25:020d}.log")
    below = StateBelow(25, [(0, 0)], encode_rows([], 0))

    def begin_anew() -> None:
        if behind:
            manager.truncation.start_behind(
                log,
                lambda it: it.truncation.start_behind(below, log_start_offset=0, now_ms=0),
            )
        else:
            manager.truncation.start_at(log, 25)

    with pytest.raises(DiskError):
        begin_anew()
    assert log.failure is not None
    assert manager.logs() == [log, other]
    # What looks at all logs, at intervals.
    assert log.flusher.flush_target() in (None, log.log_end_offset, log.active_base_offset)
    assert log.local_log_start_offset >= 0
    assert manager.compaction.clean_dirtiest() is not None


@python_only
def test_compaction_is_stopped_first_and_goes_on_afterwards() -> None:
    """A run that notices is waited for; none begins while the log is cut."""
    manager = Disk("/one").manager()
    manager.startup.load(lambda _topic: CONFIG)
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 10)
    cleaning = manager.cleaning
    cleaning._cleaning[A0] = log
    paused_while_cut: list[bool] = []
    truncate_to = log.truncation.truncate_to

    class Watched:
        def truncate_to(self, offset: int) -> None:
            paused_while_cut.append(not cleaning._is_idle(A0) and A0 not in cleaning._cleaning)
            truncate_to(offset)

    object.__setattr__(log, "truncation", Watched())
    thread = threading.Thread(target=manager.truncation.truncate_to, args=(log, 4))
    thread.start()
    while not cleaning.is_aborted(log):
        thread.join(0.001)
    assert thread.is_alive()
    assert log.log_end_offset == 10
    cleaning.done(log)
    thread.join(30)
    assert paused_while_cut == [True]
    assert log.log_end_offset == 4
    assert cleaning._is_idle(A0)
