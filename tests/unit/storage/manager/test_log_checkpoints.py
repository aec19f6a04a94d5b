"""Checkpoints of all logs: what they name, and when they are written."""

from typing import Any

import pytest

from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.partition_metadata import encode_partition_metadata
from tests.unit.storage.manager.log_disk import A0, B0, CONFIG, ID_A, ID_B, Disk, append, killed


def test_checkpoints_are_kafkas(disk: Disk) -> None:
    """Kafka's files, byte for byte; one that it lacks says what is in remote storage.

    And one row is of no partition, which Kafka passes over.
    """
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 3)
    manager.creation.get_or_create(B0, ID_B, CONFIG)
    manager.shutdown()
    peek = disk.filesystem.peek
    assert peek("/one/recovery-point-offset-checkpoint") == (
        b"0\n3\na 0 3\nb 0 0\nvarve:no-gaps-above 0 0\n"
    )
    assert peek("/one/replication-offset-checkpoint") == b"0\n2\na 0 3\nb 0 0\n"
    assert peek("/one/log-start-offset-checkpoint") == b"0\n0\n"
    assert peek("/one/remote-offset-checkpoint") == b"0\n0\n"
    assert peek("/one/a-0/partition.metadata") == encode_partition_metadata(ID_A)


def test_stale_checkpoint_entries_are_dropped_at_start(disk: Disk) -> None:
    """Also when the crash came between the deletion and its checkpoint."""
    disk.filesystem.mkdir("/one")
    disk.filesystem.poke("/one/log-start-offset-checkpoint", b"0\n1\na 0 7\n")
    manager = disk.started()
    assert disk.filesystem.peek("/one/log-start-offset-checkpoint") == b"0\n0\n"
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 2)
    disk.filesystem.crash("all")
    log = disk.started().get(A0)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)


def test_unchanged_checkpoints_are_not_rewritten(disk: Disk) -> None:
    """An idle broker leaves the disk alone."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    manager.checkpoints.write()
    before = disk.filesystem.changes
    manager.checkpoints.write()
    assert disk.filesystem.changes == before


def test_a_checkpoint_names_logs_that_open_while_it_is_gathered(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were loading when their offsets were read, and are not when it is written."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 5)
    log.delete_records(3)
    manager.checkpoints.write()
    killed(disk)
    manager = disk.manager()
    jobs = manager.startup.load_jobs(lambda _topic: CONFIG)
    write = LogDirectory.write_checkpoint

    def open_first(self: LogDirectory, name: str, offsets: Any) -> bool:
        while jobs:
            jobs.pop()()
        return write(self, name, offsets)

    monkeypatch.setattr(LogDirectory, "write_checkpoint", open_first)
    manager.checkpoints.write_log_start_offsets()
    assert manager.directories[0].checkpointed("log-start-offset-checkpoint", A0) == 3


def test_what_was_copied_is_noted_whatever_the_settings_become(disk: Disk) -> None:
    """An older copy of the metadata store says of the topic that it has no remote storage."""
    tiered = CONFIG.model_copy(update={"remote_storage_enable": True})
    manager = disk.started(tiered)
    log = manager.creation.get_or_create(A0, ID_A, tiered)
    append(log, 5)
    log.highest_remote_offset = 3
    manager.checkpoints.write_log_start_offsets()
    assert log.durable_remote_offset == 3
    assert disk.filesystem.peek("/one/remote-offset-checkpoint") == b"0\n1\na 0 3\n"
    for _ in range(2):
        killed(disk)
        manager = disk.started(CONFIG)
        found = manager.get(A0)
        assert found is not None
        assert (found.has_remote_part, found.durable_remote_offset) == (True, 3)
        manager.checkpoints.write()
    last = manager.get(A0)
    assert last is not None
    last.update_config(CONFIG.model_copy(update={"remote_log_delete_on_disable": True}))
    manager.checkpoints.write()
    assert disk.filesystem.peek("/one/remote-offset-checkpoint") == b"0\n0\n"
    assert not last.has_remote_part


def test_a_note_of_what_was_copied_goes_with_its_log(disk: Disk) -> None:
    """A new topic of the same name has no past."""
    tiered = CONFIG.model_copy(update={"remote_storage_enable": True})
    manager = disk.started(tiered)
    log = manager.creation.get_or_create(A0, ID_A, tiered)
    append(log, 5)
    log.highest_remote_offset = 3
    manager.checkpoints.write()
    manager.deletion.delete(A0)
    fresh = manager.creation.get_or_create(A0, ID_B, CONFIG)
    assert fresh.durable_remote_offset == -1
    assert disk.filesystem.peek("/one/remote-offset-checkpoint") == b"0\n0\n"
