"""Disks that fail: their directory goes offline, and the next start writes again what was lost."""

import errno
from collections.abc import Callable

import pytest

from config.topic import TopicConfig
from storage.checkpoints.partition_metadata import read_partition_metadata
from storage.errors import DiskError, LogDirectoryOfflineError
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from storage.types.topic_partition import TopicPartition
from tests.fakes.filesystem import KEEP_ALL
from tests.unit.storage.log.log_model import read_records
from tests.unit.storage.manager.log_disk import A0, A1, B0, CONFIG, ID_A, ID_B, Disk, append

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


def two_directories() -> tuple[Disk, LogManager, list[tuple[str, list[TopicPartition]]]]:
    disk = Disk("/one", "/two")
    manager = disk.started()
    failures: list[tuple[str, list[TopicPartition]]] = []
    manager.on_directory_failure = lambda path, partitions: failures.append((path, partitions))
    manager.creation.get_or_create(A0, ID_A, CONFIG)
    manager.creation.get_or_create(A1, ID_A, CONFIG)
    return disk, manager, failures


def test_failing_directory_goes_offline_and_the_other_serves() -> None:
    """Its partitions are gone, and are not made anew elsewhere; new ones go to the other."""
    disk, manager, failures = two_directories()
    log = manager.get(A0)
    assert log is not None
    manager.fail_log(log, DiskError("cannot write", "/one/a-0"))
    manager.fail_log(log, DiskError("cannot write", "/one/a-0"))
    assert failures == [("/one", [A0])]
    assert [d.path for d in manager.offline_directories] == ["/one"]
    assert manager.get(A0) is None
    with pytest.raises(LogDirectoryOfflineError):
        manager.creation.get_or_create(A0, ID_A, CONFIG)
    with pytest.raises(LogDirectoryOfflineError):
        append(log)
    survivor = manager.get(A1)
    assert survivor is not None
    append(survivor)
    assert manager.creation.get_or_create(B0, ID_B, CONFIG).directory == "/two/b-0"
    manager.shutdown()
    assert not disk.filesystem.exists("/one/.kafka_cleanshutdown")
    assert disk.filesystem.exists("/two/.kafka_cleanshutdown")


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename", "sync_directory"])
def test_checkpoint_failure_takes_only_its_directory(kind: str) -> None:
    """Whatever step of it fails."""
    disk, manager, failures = two_directories()
    for log in manager.logs():
        append(log, 3)
    disk.filesystem.fail(kind, path="/two", times=1)
    manager.checkpoints.write_high_watermarks()
    assert failures == [("/two", [A1])]
    assert disk.filesystem.peek("/one/replication-offset-checkpoint") == b"0\n1\na 0 3\n"


def test_failed_flush_at_shutdown_leaves_no_marker(disk: Disk) -> None:
    """It was no clean shutdown."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 3)
    disk.filesystem.fail("sync", path="a-0", times=1)
    manager.shutdown()
    assert not disk.filesystem.exists("/one/.kafka_cleanshutdown")


def test_unclean_shutdown_leaves_the_disk_as_it_is(disk: Disk) -> None:
    """For tests of crashes, and for a broker that must go at once."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 3)
    before = disk.filesystem.changes
    manager.shutdown(clean=False)
    assert disk.filesystem.changes == before
    disk.started()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_a_want_of_descriptors_takes_no_directory_offline(
    disk: Disk, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever was to be opened: creating, checkpoints, flushing, removing. It is said once."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log)

    def refused(path: str, act: Callable[[], object]) -> None:
        disk.filesystem.fail("open", code, path=path)
        with pytest.raises(DiskError) as caught:
            act()
        assert caught.value.is_descriptor_limit

    refused("b-0", lambda: manager.creation.get_or_create(B0, ID_B, CONFIG))
    disk.filesystem.fail("open", code, path="checkpoint")
    manager.checkpoints.write()
    for segment in log.segment_facts():
        segment.close()
    refused(".log", log.flusher.flush)
    assert len([one for one in caplog.records if "descriptors" in one.message]) == 1
    disk.filesystem.fail("rmtree", code)
    manager.deletion.delete(A1)
    manager.creation.get_or_create(A1, ID_A, CONFIG)
    manager.deletion.delete(A1)
    disk.clock.advance(CONFIG.file_delete_delay_ms)
    assert manager.deletion.remove_deleted() == 0
    assert manager.offline_directories == []
    assert log.failure is None
    assert manager.deletion.remove_deleted() == 1
    log.flusher.flush()
    manager.checkpoints.write()
    assert manager.creation.get_or_create(B0, ID_B, CONFIG).log_end_offset == 0
    append(log)
    assert log.log_end_offset == 2
