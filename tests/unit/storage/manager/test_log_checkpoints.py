"""Checkpoints of all logs: what they name, and when they are written."""

from typing import Any

import pytest

from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.partition_metadata import encode_partition_metadata
from tests.unit.storage.manager.log_disk import A0, B0, CONFIG, ID_A, ID_B, Disk, append, killed


def test_checkpoints_are_kafkas(disk: Disk) -> None:
    """The four files, byte for byte."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 3)
    manager.creation.get_or_create(B0, ID_B, CONFIG)
    manager.shutdown()
    peek = disk.filesystem.peek
    assert peek("/one/recovery-point-offset-checkpoint") == b"0\n2\na 0 3\nb 0 0\n"
    assert peek("/one/replication-offset-checkpoint") == b"0\n2\na 0 3\nb 0 0\n"
    assert peek("/one/log-start-offset-checkpoint") == b"0\n0\n"
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
