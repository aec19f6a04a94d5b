"""Logs that are deleted: renamed at once, removed later, and in nobody's way."""

import errno
from typing import Any

import pytest

from storage.checkpoints.log_directory import LogDirectory
from storage.errors import DiskError, LogDirectoryFullError
from storage.log.log import Log
from tests.unit.storage.manager.log_disk import A0, A1, B0, CONFIG, ID_A, ID_B, Disk, append


def test_deleted_partition_goes_in_two_steps(disk: Disk) -> None:
    """Renamed at once, removed after `file.delete.delay.ms`."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    assert manager.deletion.delete(A0)
    assert not manager.deletion.delete(A0)
    assert manager.get(A0) is None
    names = [e.name for e in disk.filesystem.list_directory("/one") if e.is_directory]
    assert len(names) == 1
    assert names[0].startswith("a-0.")
    assert names[0].endswith("-delete")
    assert manager.deletion.deleted_count == 1
    disk.clock.advance(CONFIG.file_delete_delay_ms - 1)
    assert manager.deletion.remove_deleted() == 0
    disk.clock.advance(1)
    assert manager.deletion.remove_deleted() == 1
    assert [e for e in disk.filesystem.list_directory("/one") if e.is_directory] == []


def test_deleted_partition_goes_when_the_wall_clock_is_set_back(disk: Disk) -> None:
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    manager.deletion.delete(A0)
    disk.clock.set_now_ms(disk.clock.now_ms() - 3_600_000)
    disk.clock.advance(CONFIG.file_delete_delay_ms)
    assert manager.deletion.remove_deleted() == 1


def test_recreated_topic_starts_over(disk: Disk) -> None:
    """No offset of the old one survives, not even through a crash right afterwards.

    An old log start offset would make the next start throw away the new records.
    """
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 9)
    log.delete_records(7)
    manager.checkpoints.write()
    manager.deletion.delete(A0)
    append(manager.creation.get_or_create(A0, ID_B, CONFIG), 2)
    disk.filesystem.crash("all")
    found = disk.started().get(A0)
    assert found is not None
    assert (found.log_start_offset, found.log_end_offset, found.topic_id) == (0, 2, ID_B)


@pytest.mark.parametrize(
    ("kind", "path", "code"),
    [
        ("create", "log-start-offset-checkpoint", errno.ENOSPC),
        ("create", "log-start-offset-checkpoint", errno.EMFILE),
        ("sync_directory", "/one", errno.EMFILE),
    ],
)
def test_a_topic_is_recreated_after_checkpoints_could_not_be_written(
    disk: Disk, kind: str, path: str, code: int
) -> None:
    """No descriptor or no room for them at the deletion: they are right before a log is made."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 9)
    log.delete_records(7)
    manager.checkpoints.write()
    disk.filesystem.fail(kind, code, path=path)
    with pytest.raises(DiskError):
        manager.deletion.delete(A0)
    disk.filesystem.heal()
    for _ in range(2):
        # The reserve is released, then taken again.
        manager.room.check()
    append(manager.creation.get_or_create(A0, ID_B, CONFIG), 2)
    disk.filesystem.crash("all")
    found = disk.started().get(A0)
    assert found is not None
    assert (found.log_start_offset, found.log_end_offset, found.topic_id) == (0, 2, ID_B)


def test_deletion_during_a_checkpoint_leaves_no_entry(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old log start offset would cut off a topic of the same name after a crash."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    manager.creation.get_or_create(A0, ID_A, CONFIG).delete_records(5)
    write = LogDirectory.write_checkpoint

    def delete_first(directory: LogDirectory, name: str, offsets: Any) -> bool:
        monkeypatch.undo()
        manager.deletion.delete(A0)
        append(manager.creation.get_or_create(A0, ID_B, CONFIG), 3)
        return write(directory, name, offsets)

    monkeypatch.setattr(LogDirectory, "write_checkpoint", delete_first)
    manager.checkpoints.write_log_start_offsets()
    disk.filesystem.crash("all")
    log = disk.started().get(A0)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (0, 3)


def test_interrupted_deletion_is_finished(disk: Disk) -> None:
    """A `-delete` directory found at start goes at the first pass."""
    disk.started().shutdown()
    disk.filesystem.mkdir("/one/a-0.0123456789abcdef0123456789abcdef-delete")
    manager = disk.started()
    assert manager.logs() == []
    assert manager.deletion.remove_deleted() == 1


def test_one_log_that_cannot_be_deleted_does_not_keep_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their names would be taken until the next start."""
    disk = Disk("/one", "/two")
    manager = disk.started()
    for partition in (A0, A1, B0):
        append(manager.creation.get_or_create(partition, ID_A, CONFIG), 1)
    rename = Log.rename_directory

    def refuse(log: Log, directory: str) -> None:
        if log.topic_partition == A0:
            raise DiskError("cannot rename", log.directory, 5)
        rename(log, directory)

    monkeypatch.setattr(Log, "rename_directory", refuse)
    with pytest.raises(DiskError):
        manager.deletion.delete_all([A0, A1, B0])
    assert manager.logs() == []
    names = [
        e.name.split(".")[0]
        for path in disk.directories
        for e in disk.filesystem.list_directory(path)
        if e.name.endswith("-delete")
    ]
    assert sorted(names) == ["a-1", "b-0"]
    assert [d.path for d in manager.offline_directories] == ["/one"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_a_new_log_is_not_made_of_the_files_of_a_deleted_one(disk: Disk, code: int) -> None:
    """Its folder could not be renamed: records of the deleted topic were those of the new one."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    disk.filesystem.fail("rename", code, times=2)
    with pytest.raises(DiskError):
        manager.deletion.delete(A0)
    assert manager.get(A0) is None
    with pytest.raises(LogDirectoryFullError):
        manager.creation.get_or_create(A0, ID_B, CONFIG)
    assert manager.deletion.remove_deleted() == 0
    with pytest.raises(LogDirectoryFullError):
        manager.creation.get_or_create(A0, ID_B, CONFIG)
    assert manager.deletion.remove_deleted() == 1
    for _ in range(2):
        # The reserve is released, then taken again.
        manager.room.check()
    assert manager.creation.get_or_create(A0, ID_B, CONFIG).log_end_offset == 0
    names = [e.name for e in disk.filesystem.list_directory("/one") if e.is_directory]
    assert names == ["a-0"]
    assert not manager.offline_directories


def test_the_folder_of_a_deleted_log_may_be_removed_by_hand(disk: Disk) -> None:
    """To have room, while its rename is tried again: nothing is wrong with the disk."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    disk.filesystem.fail("rename", errno.EMFILE)
    with pytest.raises(DiskError):
        manager.deletion.delete(A0)
    disk.filesystem.rmtree("/one/a-0")
    assert manager.deletion.remove_deleted() == 0
    assert manager.creation.get_or_create(A0, ID_B, CONFIG).log_end_offset == 0
    assert not manager.offline_directories
