"""Making logs: in which directory, once each, and under which topic."""

import errno
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.checkpoints.partition_metadata import read_partition_metadata
from storage.errors import DiskError, InconsistentTopicIdError
from storage.manager.preferred_directories import PREFERRED_MAX
from storage.types.topic_partition import TopicPartition
from tests.unit.storage.manager.log_disk import A0, A1, B0, CONFIG, ID_A, ID_B, Disk


def test_new_partitions_spread(disk: Disk) -> None:
    """Each goes where the fewest are, also counting those found at start."""
    disk.directories = ("/one", "/two", "/three")
    manager = disk.started()
    for index in range(7):
        manager.creation.get_or_create(TopicPartition("a", index), ID_A, CONFIG)
    assert [len(manager.logs_in(directory)) for directory in manager.directories] == [3, 2, 2]
    manager.deletion.delete_all([TopicPartition("a", 0), TopicPartition("a", 3)])
    manager.shutdown()
    manager = disk.started()
    log = manager.creation.get_or_create(B0, ID_B, CONFIG)
    directory = manager.directory_of(log)
    assert directory is not None
    assert directory.path == "/one"


def test_a_new_log_is_made_where_it_was_asked_for_once(disk: Disk) -> None:
    """Made, deleted and made again it goes where the fewest are."""
    disk.directories = ("/one", "/two")
    manager = disk.started()
    manager.preferred.note(A0, manager.directories[1])
    manager.preferred.note(A1, manager.directories[1])
    one, two = (directory.id for directory in manager.directories)
    choose = manager.placement()
    assert [choose(A0), choose(A1), choose(B0), choose(B0), choose(B0)] == [two, two, one, one, one]
    assert manager.creation.get_or_create(A0, ID_A, CONFIG).directory == "/two/a-0"
    assert manager.creation.get_or_create(A1, ID_A, CONFIG).directory == "/two/a-1"
    assert len(manager.preferred) == 0
    manager.deletion.delete_all([A0, A1])
    assert manager.creation.get_or_create(A0, ID_A, CONFIG).directory == "/one/a-0"


def test_a_directory_that_takes_no_logs_is_not_insisted_on(disk: Disk) -> None:
    """A full one may have room when the log is made; one that has failed is forgotten."""
    disk.directories = ("/one", "/two", "/three")
    manager = disk.started()
    _, two, three = manager.directories
    manager.preferred.note(A0, two)
    manager.preferred.note(A1, three)
    manager.out_of_room(two, DiskError("no room", "/two", errno.ENOSPC))
    manager.fail(three, DiskError("broken", "/three", errno.EIO))
    assert len(manager.preferred) == 2
    assert manager.creation.get_or_create(A1, ID_A, CONFIG).directory == "/one/a-1"
    two.full_error = None
    assert manager.creation.get_or_create(A0, ID_A, CONFIG).directory == "/two/a-0"
    assert len(manager.preferred) == 0


def test_of_many_that_were_asked_for_the_oldest_is_forgotten(disk: Disk) -> None:
    """Whoever asks may name partitions that never come."""
    disk.directories = ("/one", "/two")
    manager = disk.started()
    for index in range(PREFERRED_MAX + 1):
        manager.preferred.note(TopicPartition("a", index), manager.directories[1])
        manager.preferred.note(A0, manager.directories[1])
    assert len(manager.preferred) == PREFERRED_MAX
    assert manager.preferred.of(A1) is None
    assert manager.preferred.of(A0) is manager.directories[1]


def test_existing_log_is_returned(disk: Disk) -> None:
    """Twice asked, once made."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    assert manager.creation.get_or_create(A0, ID_A, CONFIG) is log
    assert manager.directories[0].partition_count == 1


def test_other_topic_of_the_same_name_is_refused(disk: Disk) -> None:
    """The old one's records must not show up in the new one."""
    manager = disk.started()
    manager.creation.get_or_create(A0, ID_A, CONFIG)
    with pytest.raises(InconsistentTopicIdError):
        manager.creation.get_or_create(A0, ID_B, CONFIG)


def test_failed_creation_takes_the_directory_offline(disk: Disk) -> None:
    """The caller hears of it, and the next partition goes elsewhere."""
    disk.directories = ("/one", "/two")
    manager = disk.started()
    disk.filesystem.fail("mkdir", path="/one/a-0")
    with pytest.raises(DiskError):
        manager.creation.get_or_create(A0, ID_A, CONFIG)
    assert [d.path for d in manager.offline_directories] == ["/one"]
    assert manager.creation.get_or_create(A1, ID_A, CONFIG).directory == "/two/a-1"


def test_the_lock_is_not_held_while_a_log_is_made(disk: Disk) -> None:
    """The loop takes it, too; and two who want the same log get the same."""
    manager = disk.started()
    making, go_on = threading.Event(), threading.Event()
    mkdir = disk.filesystem.mkdir

    def slow_mkdir(path: str) -> None:
        if path.endswith("a-0"):
            making.set()
            assert go_on.wait(60)
        mkdir(path)

    disk.filesystem.mkdir = slow_mkdir  # type: ignore[method-assign]  # a disk that takes its time
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(manager.creation.get_or_create, A0, ID_A, CONFIG)
        assert making.wait(60)
        second = pool.submit(manager.creation.get_or_create, A0, ID_A, CONFIG)
        other = threading.Thread(target=manager.deletion.forget_offline, args=([B0],))
        other.start()
        other.join(30)
        is_held = other.is_alive()
        go_on.set()
        assert first.result(60) is second.result(60)
    assert not is_held
    assert manager.directories[0].partition_count == 1


def test_a_log_that_could_not_be_made_leaves_its_name_free(disk: Disk) -> None:
    """Who waits for it tries for itself."""
    disk.directories = ("/one", "/two")
    manager = disk.started()
    disk.filesystem.fail("mkdir", errno.EIO, path="/one/a-0")
    with pytest.raises(DiskError):
        manager.creation.get_or_create(A0, ID_A, CONFIG)
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    assert log.directory == "/two/a-0"


def test_a_topics_id_is_on_disk_before_any_record_is(disk: Disk) -> None:
    """Without it they would be taken for those of a topic that was created again meanwhile."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    disk.filesystem.crash(None)
    path = f"{log.directory}/partition.metadata"
    assert read_partition_metadata(disk.filesystem, path) == ID_A
