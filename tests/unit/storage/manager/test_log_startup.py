"""A start: directories and their owners, the logs that are found, and what is no log of ours."""

import errno
from collections.abc import Callable, Sequence

import pytest

from storage.checkpoints.partition_metadata import encode_partition_metadata
from storage.errors import (
    InconsistentDirectoryError,
    LockedDirectoryError,
    LogDirectoryOfflineError,
    PartitionLoadingError,
    StorageError,
)
from storage.manager.log_manager import LogManager
from storage.types.topic_partition import TopicPartition
from tests.unit.storage.manager.log_disk import A0, A1, B0, CONFIG, ID_A, ID_B, Disk, append


def test_fresh_directory_gets_an_owner(disk: Disk) -> None:
    """meta.properties appears, with a directory id of its own; the next start keeps it."""
    manager = disk.started()
    meta = manager.directories[0].meta
    assert meta is not None
    assert (meta.cluster_id, meta.node_id) == ("cluster", 1)
    assert meta.directory_id is not None
    manager.shutdown()
    again = disk.manager(claim=False)
    again.startup.open_directories()
    assert again.startup.stored_cluster_id == "cluster"
    assert again.directories[0].meta == meta


@pytest.mark.parametrize(("cluster", "node"), [("other", 1), ("cluster", 2)])
def test_foreign_directory_is_refused(disk: Disk, cluster: str, node: int) -> None:
    """Two clusters' or nodes' data must not mix."""
    disk.started().shutdown()
    manager = disk.manager(claim=False)
    manager.startup.open_directories()
    with pytest.raises(InconsistentDirectoryError, match="belongs to"):
        manager.startup.claim(cluster, node)


def test_a_foreign_directory_leaves_the_others_as_they_were(disk: Disk) -> None:
    """A fresh one beside it gets no owner: the start is refused as a whole."""
    disk.started().shutdown()
    disk.directories = ("/fresh", *disk.directories)
    manager = disk.manager(claim=False)
    manager.startup.open_directories()
    with pytest.raises(InconsistentDirectoryError, match="belongs to node 1, this is 2"):
        manager.startup.claim("cluster", 2)
    assert not disk.filesystem.exists("/fresh/meta.properties")


def test_second_broker_is_refused(disk: Disk) -> None:
    """The lock is held until shutdown."""
    first = disk.started()
    with pytest.raises(LockedDirectoryError):
        disk.manager()
    first.shutdown()
    disk.manager()


@pytest.mark.parametrize(("is_ours", "told"), [(True, 1), (False, 0)])
def test_a_folder_that_is_gone_is_told_of(
    disk: Disk, caplog: pytest.LogCaptureFixture, is_ours: bool, told: int
) -> None:
    """Nothing else says that the partition's records are; one of no topic may be deleted."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 3)
    append(manager.creation.get_or_create(A1, ID_A, CONFIG), 3)
    manager.creation.get_or_create(B0, ID_B, CONFIG)
    manager.shutdown()
    for gone in ("a-0", "b-0"):
        disk.filesystem.rmtree(f"/one/{gone}")
    manager = disk.manager()
    here = manager.directories[0].id
    manager.assigned = lambda _: here if is_ours else None
    manager.startup.load(lambda _topic: CONFIG)
    lines = [one.message for one in caplog.records if "folder of a partition" in one.message]
    assert [line.rpartition("partition=")[2] for line in lines] == [
        "a-0 directory=/one known_end=3"
    ] * told


def test_clean_restart_brings_everything_back(disk: Disk) -> None:
    """Offsets, topic id, log start; and nothing is recovered."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 10)
    log.delete_records(4)
    manager.shutdown()
    assert disk.filesystem.exists("/one/.kafka_cleanshutdown")
    manager = disk.manager()
    jobs = manager.startup.load_jobs(lambda _topic: CONFIG)
    assert [job.recover_bytes for job in jobs] == [0]
    assert not disk.filesystem.exists("/one/.kafka_cleanshutdown")
    for job in jobs:
        job()
    found = manager.get(A0)
    assert found is not None
    assert (found.log_start_offset, found.log_end_offset, found.topic_id) == (4, 10, ID_A)
    assert found.high_watermark == 10


def test_unclean_restart_recovers_and_serves_one_by_one(disk: Disk) -> None:
    """What is above the recovery point is read again; each partition serves when it is done."""
    manager = disk.started()
    for tp in (A0, A1, TopicPartition("__consumer_offsets", 0)):
        append(manager.creation.get_or_create(tp, ID_A, CONFIG), 5 if tp == A0 else 1)
    disk.filesystem.crash("all")
    manager = disk.manager()
    loaded: list[TopicPartition] = []
    jobs = manager.startup.load_jobs(
        lambda _topic: CONFIG, on_loaded=lambda log: loaded.append(log.topic_partition)
    )
    order = [job.topic_partition for job in jobs]
    assert order[0].topic == "__consumer_offsets"
    assert order[-1] == A0
    assert manager.progress.bytes_total > 0
    for done, job in enumerate(jobs):
        assert manager.progress.partitions_done == done
        assert manager.get(job.topic_partition) is None
        with pytest.raises(PartitionLoadingError):
            manager.creation.get_or_create(job.topic_partition, ID_A, CONFIG)
        job()
        assert manager.get(job.topic_partition) is not None
    assert loaded == order
    assert manager.progress.is_complete
    assert manager.progress.bytes_done == manager.progress.bytes_total
    log = manager.get(A0)
    assert log is not None
    assert log.log_end_offset == 5


@pytest.mark.parametrize("is_there", [True, False])
def test_of_a_log_that_no_checkpoint_knows_a_gap_is_a_loss_if_there_is_one(
    disk: Disk, is_there: bool
) -> None:
    """It is younger than the checkpoint; without any it may have been compacted long ago."""
    config = CONFIG.model_copy(update={"segment_bytes": 200})
    log = disk.started(config).creation.get_or_create(A0, ID_A, config)
    append(log, 8)
    bases = [segment.base_offset for segment in log.segment_facts()]
    assert bases[:3] == [0, 2, 4]
    path = f"/one/a-0/{2:020d}.log"
    whole = disk.filesystem.peek(path)
    disk.filesystem.poke(path, whole[: len(whole) // 2])
    if not is_there:
        disk.filesystem.unlink("/one/recovery-point-offset-checkpoint")
    disk.filesystem.crash("all")
    found = disk.started(config).get(A0)
    assert found is not None
    assert found.log_end_offset == (3 if is_there else 8)


def test_no_marker_while_partitions_are_unrecovered(disk: Disk) -> None:
    """A stop during recovery must not look clean; and their checkpoint entries stay."""
    manager = disk.started()
    for tp in (A0, A1):
        append(manager.creation.get_or_create(tp, ID_A, CONFIG), 5)
    manager.creation.get_or_create(A1, ID_A, CONFIG).delete_records(2)
    manager.checkpoints.write()
    disk.filesystem.crash("all")
    manager = disk.manager()
    jobs = {job.topic_partition: job for job in manager.startup.load_jobs(lambda _topic: CONFIG)}
    jobs[A0]()
    manager.shutdown()
    assert not disk.filesystem.exists("/one/.kafka_cleanshutdown")
    assert disk.filesystem.peek("/one/log-start-offset-checkpoint") == b"0\n1\na 1 2\n"
    log = disk.started().get(A1)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (2, 5)


def after_delete_records(disk: Disk) -> bytes:
    """A broker was killed that had deleted records; returns its log start offsets."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    manager.creation.get_or_create(A0, ID_A, CONFIG).delete_records(2)
    manager.checkpoints.write()
    disk.filesystem.crash("all")
    return disk.filesystem.peek("/one/log-start-offset-checkpoint")


def test_failed_start_leaves_no_trace(disk: Disk) -> None:
    """Its port was taken, say: the next start still has to recover, and knows what was deleted."""
    offsets = after_delete_records(disk)
    disk.manager().shutdown()
    assert not disk.filesystem.exists("/one/.kafka_cleanshutdown")
    assert disk.filesystem.peek("/one/log-start-offset-checkpoint") == offsets
    log = disk.started().get(A0)
    assert log is not None
    assert log.log_start_offset == 2


def test_refused_broker_leaves_no_trace(disk: Disk) -> None:
    """The directory is another's, who may be killed the next moment."""
    after_delete_records(disk)
    first = disk.started()
    first.checkpoints.write()
    offsets = disk.filesystem.peek("/one/log-start-offset-checkpoint")
    second = disk.manager(claim=False)
    with pytest.raises(LockedDirectoryError):
        second.startup.open_directories()
    second.shutdown()
    assert not disk.filesystem.exists("/one/.kafka_cleanshutdown")
    assert disk.filesystem.peek("/one/log-start-offset-checkpoint") == offsets


def test_start_that_stops_at_a_listing_leaves_no_trace(disk: Disk) -> None:
    """A partition in two directories ends the start while others have not been looked at."""
    offsets = after_delete_records(disk)
    disk.directories = ("/two", "/one")
    disk.filesystem.mkdir("/two/a-0")
    manager = disk.manager()
    with pytest.raises(StorageError, match="both"):
        manager.startup.load(lambda _topic: CONFIG)
    manager.shutdown()
    assert not disk.filesystem.exists("/one/.kafka_cleanshutdown")
    assert disk.filesystem.peek("/one/log-start-offset-checkpoint") == offsets


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "a-0/partition.metadata",
    ],
)
@pytest.mark.parametrize("damage", [None, b"", b"garbage", b"\xff\xfe", b"0\n7\n"])
@pytest.mark.parametrize("clean", [True, False])
def test_side_files_may_be_missing_or_damaged(
    disk: Disk, name: str, damage: bytes | None, clean: bool
) -> None:
    """No record is lost, and the topic id is learnt again."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    manager.checkpoints.write()
    if clean:
        manager.shutdown()
    else:
        disk.filesystem.crash("all")
    if damage is None:
        disk.filesystem.remove(f"/one/{name}")
    else:
        disk.filesystem.poke(f"/one/{name}", damage)
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    assert (log.log_start_offset, log.log_end_offset, log.topic_id) == (0, 5, ID_A)
    assert manager.offline_directories == []


def test_what_is_no_partition_is_left_alone(disk: Disk) -> None:
    """Kafka's controller log, foreign folders and files."""
    for name in ("__cluster_metadata-0", "remote-log-index-cache", "lost+found"):
        disk.filesystem.mkdir(f"/one/{name}")
    disk.filesystem.poke("/one/metadata.sqlite", b"x")
    manager = disk.started()
    assert manager.logs() == []
    manager.shutdown()
    assert disk.filesystem.exists("/one/__cluster_metadata-0")


def test_same_partition_twice_stops_the_start(disk: Disk) -> None:
    """Which one is right only the operator knows."""
    disk.directories = ("/one", "/two")
    for path in disk.directories:
        disk.filesystem.mkdir(f"{path}/a-0")
    with pytest.raises(StorageError, match="both /one and /two"):
        disk.started()


def test_jobs_run_as_the_caller_likes(disk: Disk) -> None:
    """`run` gets all of them at once."""
    manager = disk.started()
    manager.creation.create_all([(TopicPartition("a", n), ID_A, CONFIG) for n in range(4)])
    manager.shutdown()
    manager = disk.manager()
    seen: list[int] = []

    def run(jobs: Sequence[Callable[[], None]]) -> None:
        seen.append(len(jobs))
        for job in reversed(jobs):
            job()

    manager.startup.load(lambda _topic: CONFIG, run=run)
    assert seen == [4]
    assert len(manager.logs()) == 4


def test_stray_partitions_are_set_aside(disk: Disk) -> None:
    """Of a topic that was deleted while the directory was away; nothing is destroyed."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    manager.creation.get_or_create(B0, ID_B, CONFIG)
    manager.shutdown()
    manager = disk.manager()
    manager.startup.load(lambda _topic: CONFIG, is_stray=lambda _tp, topic_id: topic_id == ID_A)
    assert [log.topic_partition for log in manager.logs()] == [B0]
    assert len(manager.stray) == 1
    assert manager.stray[0].endswith("-stray")
    assert disk.filesystem.exists(f"{manager.stray[0]}/00000000000000000000.log")


@pytest.mark.parametrize("content", [None, b"", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"])
def test_a_log_that_knows_no_topic_id_is_given_it(disk: Disk, content: bytes | None) -> None:
    """Else a topic that is created again before the next start would get its records."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 5)
    path = f"{log.directory}/partition.metadata"
    manager.shutdown()
    disk.filesystem.remove(path)
    if content is not None:
        disk.filesystem.replace_bytes(path, content)
    manager = disk.manager()
    for job in manager.startup.load_jobs(lambda _topic: CONFIG, topic_id_of=lambda _tp: ID_A):
        job()
    (log,) = manager.logs()
    assert (log.topic_id, log.log_end_offset) == (ID_A, 5)
    assert disk.filesystem.peek(path) == encode_partition_metadata(ID_A)


def test_a_log_is_served_although_there_is_no_room_for_its_topic_id(disk: Disk) -> None:
    """The id is known; the next start writes it."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 5)
    path = f"{log.directory}/partition.metadata"
    manager.shutdown()
    disk.filesystem.remove(path)
    manager = disk.manager()
    (job,) = manager.startup.load_jobs(lambda _topic: CONFIG, topic_id_of=lambda _tp: ID_A)
    disk.filesystem.fail("write", errno.ENOSPC, path="partition.metadata")
    job()
    (log,) = manager.logs()
    assert (log.topic_id, log.log_end_offset) == (ID_A, 5)
    assert not disk.filesystem.exists(path)


def test_replicas_that_other_brokers_have_are_deleted(disk: Disk) -> None:
    """At a start: only those of which that is known."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    manager.creation.get_or_create(B0, ID_B, CONFIG)
    manager.shutdown()
    manager = disk.manager()
    manager.startup.load(
        lambda _topic: CONFIG,
        is_stray=lambda _tp, _id: True,
        is_removed=lambda _tp, topic_id: topic_id == ID_A,
    )
    assert manager.logs() == []
    assert [path.rpartition("/")[2][:3] for path in manager.stray] == ["b-0"]
    assert manager.deletion.remove_deleted() == 1


def two_directories() -> tuple[Disk, LogManager, list[tuple[str, list[TopicPartition]]]]:
    disk = Disk("/one", "/two")
    manager = disk.started()
    failures: list[tuple[str, list[TopicPartition]]] = []
    manager.on_directory_failure = lambda path, partitions: failures.append((path, partitions))
    manager.creation.get_or_create(A0, ID_A, CONFIG)
    manager.creation.get_or_create(A1, ID_A, CONFIG)
    return disk, manager, failures


def test_directory_that_fails_at_start() -> None:
    """Broken when it is opened, listed, or while a log is loaded: the other one serves."""
    for kind, path in (("mkdir", "/one"), ("list", "/one"), ("list", "/one/a-0")):
        disk, manager, _ = two_directories()
        manager.shutdown()
        disk.filesystem.fail(kind, path=path, times=1)
        manager = disk.started()
        assert [d.path for d in manager.offline_directories] == ["/one"]
        assert [log.topic_partition for log in manager.logs()] == [A1]
        manager.shutdown()


def test_no_directory_left_stops_the_start(disk: Disk) -> None:
    """There is nothing a broker could serve."""
    disk.filesystem.fail("mkdir", path="/one")
    with pytest.raises(LogDirectoryOfflineError):
        disk.started()
