"""A start on a disk that had failed: what the kernel passes for written is written again."""

import errno

import pytest

from config.topic import TopicConfig
from storage.checkpoints.partition_metadata import read_partition_metadata
from storage.errors import DiskError
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from tests.fakes.filesystem import KEEP_ALL
from tests.unit.storage.log.log_model import read_records
from tests.unit.storage.manager.test_log_manager import A0, B0, ID_A, ID_B, Disk, append

DURABLE = TopicConfig(flush_messages=1)


def failed(disk: Disk) -> tuple[LogManager, Log]:
    """A broker whose disk has failed a sync: of ten records it has five, whatever a read says."""
    disk.filesystem.forgets_failed_writes = True
    manager = disk.started(DURABLE)
    log = manager.creation.get_or_create(A0, ID_A, DURABLE)
    append(log, 5)
    log.flusher.flush()
    manager.checkpoints.write()
    append(log, 5)
    disk.filesystem.fail("sync", errno.EIO, path="a-0")
    with pytest.raises(DiskError) as caught:
        log.flusher.flush()
    manager.fail_log(log, caught.value)
    return manager, log


@pytest.mark.parametrize("stops", [True, False])
def test_what_a_failed_sync_has_left_in_memory_is_on_disk_before_it_is_served(stops: bool) -> None:
    """A producer who tries again is told that it is there, and consumers read it."""
    disk = Disk()
    manager, _ = failed(disk)
    if stops:
        manager.shutdown()
    else:
        manager.note_failures()
    disk.filesystem.crash(KEEP_ALL)
    disk.filesystem.forgets_failed_writes = True
    served = disk.started(DURABLE).get(A0)
    assert served is not None
    assert len(read_records(served)) == served.recovery_point == 10
    disk.filesystem.crash()
    again = disk.started(DURABLE).get(A0)
    assert again is not None
    assert len(read_records(again)) == 10


def test_side_files_are_written_again_too() -> None:
    """The topic's id and the leader epochs, of a log that was not flushed yet."""
    disk = Disk()
    manager, _ = failed(disk)
    manager.shutdown()
    disk.filesystem.crash(KEEP_ALL)
    for name in ("partition.metadata", "leader-epoch-checkpoint"):
        inode = disk.filesystem._file(f"/one/a-0/{name}", "lose")
        inode.durable = b""
    disk.started(DURABLE)
    disk.filesystem.crash()
    assert read_partition_metadata(disk.filesystem, "/one/a-0/partition.metadata") == ID_A
    assert disk.filesystem.peek("/one/a-0/leader-epoch-checkpoint") == b"0\n1\n0 0\n"


def test_once_all_is_loaded_the_next_start_reads_only() -> None:
    """Not before: a broker killed meanwhile finds the note again."""
    disk = Disk()
    manager = disk.started()
    append(manager.creation.get_or_create(B0, ID_B, DURABLE), 1)
    manager.shutdown()
    failed(disk)[0].shutdown()
    disk.filesystem.crash(KEEP_ALL)
    manager = disk.manager()
    first, second = manager.startup.load_jobs(lambda _topic: DURABLE)
    assert manager.directories[0].had_failed
    first()
    assert disk.filesystem.exists("/one/.disk-failed")
    second()
    assert not disk.filesystem.exists("/one/.disk-failed")


def test_a_sound_disk_is_not_written_to_again() -> None:
    disk = Disk()
    append(disk.started().creation.get_or_create(A0, ID_A, TopicConfig()), 5)
    disk.filesystem.crash(KEEP_ALL)
    manager = disk.manager()
    (job,) = manager.startup.load_jobs(lambda _topic: TopicConfig())
    disk.filesystem.fail("write", path="0.log")
    job()
    assert manager.get(A0) is not None
