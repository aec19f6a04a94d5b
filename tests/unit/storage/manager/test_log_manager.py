"""All logs of a broker, over several directories."""

import errno
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, TypeVar
from uuid import UUID

import pytest

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.checkpoints.checkpoint_files import CLEANER_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.partition_metadata import (
    encode_partition_metadata,
    read_partition_metadata,
)
from storage.environment.randomness import SeededRandomness
from storage.errors import (
    DiskError,
    InconsistentDirectoryError,
    InconsistentTopicIdError,
    LockedDirectoryError,
    LogDirectoryFullError,
    LogDirectoryOfflineError,
    PartitionLoadingError,
    StorageError,
)
from storage.log.log import Log
from storage.manager.log_manager import LogManager, LogManagerSettings
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import KEEP_ALL, Event, FakeFilesystem
from tests.unit.storage.log.log_model import read_records, small_segments

T = TypeVar("T")
CONFIG = TopicConfig()
A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
B0 = TopicPartition("b", 0)
ID_A = UUID(int=1 << 100)
ID_B = UUID(int=2 << 100)


def unthrottled(_size: int, _check_done: Callable[[], None]) -> None:
    pass


class Disk:
    """A machine that brokers come up on, one after the other."""

    def __init__(self, *directories: str) -> None:
        self.clock = ManualClock()
        self.filesystem = FakeFilesystem(self.clock)
        self.directories = directories or ("/one",)
        self.seed = 0

    def manager(
        self,
        *,
        claim: bool = True,
        cleaner_throttle: Callable[[int, Callable[[], None]], None] = unthrottled,
        **settings: Any,
    ) -> LogManager:
        """A broker's logs before `load`."""
        self.seed += 1
        manager = LogManager(
            FakeEnvironment(
                filesystem=self.filesystem,
                clock=self.clock,
                randomness=SeededRandomness(self.seed),
            ),
            self.directories,
            settings=LogManagerSettings(log_cleaner_dedupe_buffer_size=1 << 16, **settings),
            cleaner_throttle=cleaner_throttle,
        )
        if claim:
            manager.startup.open_directories()
            manager.startup.claim("cluster", 1)
        return manager

    def started(self, config: TopicConfig = CONFIG) -> LogManager:
        """A broker's logs, serving."""
        manager = self.manager()
        manager.startup.load(lambda _topic: config)
        return manager


@pytest.fixture
def disk() -> Disk:
    return Disk()


def append(log: Log, count: int = 1, *, key: bytes = b"k", value: bytes | None = b"v") -> None:
    """Write records and commit them."""
    for _ in range(count):
        batch = build_batch([(key, value, (), 1_700_000_000_000)])
        log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=1_700_000_000_000)
    log.update_high_watermark(log.log_end_offset)


def append_durably(log: Log, count: int) -> None:
    """As `append`, and flush them: they may be compacted."""
    append(log, count)
    log.flusher.flush()


# -- directories -----------------------------------------------------------------------------


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


# -- restart ---------------------------------------------------------------------------------


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


# -- topics come and go ----------------------------------------------------------------------


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


def test_interrupted_deletion_is_finished(disk: Disk) -> None:
    """A `-delete` directory found at start goes at the first pass."""
    disk.started().shutdown()
    disk.filesystem.mkdir("/one/a-0.0123456789abcdef0123456789abcdef-delete")
    manager = disk.started()
    assert manager.logs() == []
    assert manager.deletion.remove_deleted() == 1


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


# -- passes ----------------------------------------------------------------------------------


def test_expired_producers_are_forgotten(disk: Disk) -> None:
    """After `producer.id.expiration.ms`."""
    manager = disk.manager(producer_id_expiration_ms=5_000)
    manager.startup.load(lambda _topic: CONFIG)
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    now_ms = disk.clock.now_ms()
    batch = build_batch(
        [(None, b"v", (), now_ms)], producer_id=4, producer_epoch=0, base_sequence=0
    )
    log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=now_ms)
    disk.clock.advance(4_999)
    assert log.producer_state.remove_expired(disk.clock.now_ms()) == 0
    disk.clock.advance(1)
    assert log.producer_state.remove_expired(disk.clock.now_ms()) == 1


def test_unchanged_checkpoints_are_not_rewritten(disk: Disk) -> None:
    """An idle broker leaves the disk alone."""
    manager = disk.started()
    append(manager.creation.get_or_create(A0, ID_A, CONFIG), 5)
    manager.checkpoints.write()
    before = disk.filesystem.changes
    manager.checkpoints.write()
    assert disk.filesystem.changes == before


def test_compaction_pass(disk: Disk) -> None:
    """The dirtiest log is compacted, the checkpoint says how far, and it is then clean."""
    config = TopicConfig(
        cleanup_policy=("compact",), segment_bytes=300, min_cleanable_dirty_ratio=0.1
    )
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, config)
    append_durably(log, 40)
    before = log.size()
    stats = manager.compaction.clean_dirtiest()
    assert stats is not None
    assert log.size() < before / 3
    assert manager.directories[0].checkpointed("cleaner-offset-checkpoint", A0) == stats.end_offset
    assert stats.end_offset == log.active_base_offset
    assert manager.compaction.clean_dirtiest() is None
    log.retention.delete_old_segments()
    manager.shutdown()
    again = disk.started(config)
    assert again.compaction.clean_dirtiest() is None


@pytest.mark.parametrize("hangs_at_batch", [1, 3, 30, 60])
def test_a_log_is_deleted_under_its_compaction(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, hangs_at_batch: int
) -> None:
    """Nobody waits for a run that hangs, and whatever it does afterwards harms no namesake."""
    config = TopicConfig(
        cleanup_policy=("compact",),
        segment_bytes=300,
        min_cleanable_dirty_ratio=0.1,
        file_delete_delay_ms=0,
    )
    batches = 0

    def hang(_size: int, _check_done: Callable[[], None]) -> None:
        nonlocal batches
        batches += 1
        if batches == hangs_at_batch:
            assert manager.deletion.delete_all([A0, A1]) == 2
            assert manager.deletion.remove_deleted() == 1, "only the one that nobody compacts"
            append_durably(manager.creation.get_or_create(A0, ID_B, config), 25)

    manager = disk.manager(cleaner_throttle=hang)
    manager.startup.load(lambda _topic: config)
    abandon = manager.cleaning.abandon
    monkeypatch.setattr(
        manager.cleaning, "abandon", lambda partitions: abandon(partitions, timeout_s=0.0)
    )
    append_durably(manager.creation.get_or_create(A0, ID_A, config), 40)
    append_durably(manager.creation.get_or_create(A1, ID_A, config), 1)
    assert manager.compaction.clean_dirtiest() is None
    assert batches >= hangs_at_batch
    assert not manager.offline_directories
    assert not manager.cleaning.uncleanable
    assert manager.directories[0].checkpointed("cleaner-offset-checkpoint", A0) is None
    log = manager.get(A0)
    assert log is not None
    assert (log.topic_id, log.log_end_offset) == (ID_B, 25)
    assert manager.deletion.remove_deleted() == 1
    files = [entry.name for entry in disk.filesystem.list_directory(log.directory)]
    assert not [name for name in files if "cleaned" in name]
    assert manager.compaction.clean_dirtiest() is not None


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


def test_damaged_log_is_left_alone(disk: Disk) -> None:
    """Compaction gives the partition up; it still serves, and others are still compacted."""
    config = TopicConfig(
        cleanup_policy=("compact",), segment_bytes=300, min_cleanable_dirty_ratio=0.1
    )
    manager = disk.started()
    append_durably(manager.creation.get_or_create(A0, ID_A, config), 40)
    append_durably(manager.creation.get_or_create(B0, ID_B, config), 20)
    path = "/one/a-0/00000000000000000000.log"
    damaged = bytearray(disk.filesystem.peek(path))
    damaged[-1] ^= 1
    disk.filesystem.poke(path, bytes(damaged))
    assert manager.compaction.clean_dirtiest() is None
    assert list(manager.cleaning.uncleanable) == [A0]
    assert manager.compaction.clean_dirtiest() is not None
    assert manager.get(A0) is not None
    assert disk.filesystem.peek(path) == bytes(damaged)


def test_serving_logs_are_changed_by_their_owner_only(disk: Disk) -> None:
    """Flushing, retention, compaction, expiry and deletion hand their short steps over."""
    config = TopicConfig(
        cleanup_policy=("compact", "delete"),
        segment_bytes=300,
        min_cleanable_dirty_ratio=0.1,
    )
    inside = calls = 0

    def on_owner(act: Callable[[], T], /) -> T:
        nonlocal inside, calls
        calls += 1
        inside += 1
        try:
            return act()
        finally:
            inside -= 1

    manager = LogManager(
        FakeEnvironment(filesystem=disk.filesystem, clock=disk.clock),
        disk.directories,
        on_owner=on_owner,
    )
    manager.startup.open_directories()
    manager.startup.claim("cluster", 1)
    manager.startup.load(lambda _topic: config)
    log = manager.creation.get_or_create(A0, ID_A, config)
    append_durably(log, 40)
    batch = build_batch(
        [(b"k", b"v", (), 1_700_000_000_000)], producer_id=4, producer_epoch=0, base_sequence=0
    )
    log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=1_700_000_000_000)
    assert calls == 0
    assert manager.compaction.clean_dirtiest() is not None
    assert calls > 0
    before = calls
    manager.deletion.delete(A0)
    assert calls == before + 1
    assert inside == 0


# -- failing disks ---------------------------------------------------------------------------


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


def test_failed_creation_takes_the_directory_offline(disk: Disk) -> None:
    """The caller hears of it, and the next partition goes elsewhere."""
    disk.directories = ("/one", "/two")
    manager = disk.started()
    disk.filesystem.fail("mkdir", path="/one/a-0")
    with pytest.raises(DiskError):
        manager.creation.get_or_create(A0, ID_A, CONFIG)
    assert [d.path for d in manager.offline_directories] == ["/one"]
    assert manager.creation.get_or_create(A1, ID_A, CONFIG).directory == "/two/a-1"


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


# -- crashes ---------------------------------------------------------------------------------


def test_crash_at_every_step_keeps_what_was_flushed() -> None:
    """Topics come, are written to, flushed, cut, deleted and made again; the power goes anywhere.

    After each change of the disk, whatever of the unsynced survived: the next start succeeds, has
    every flushed record that was not deleted, and takes no offset from a topic of the same name.
    """
    points = 0
    for seed in range(3):
        disk = Disk("/one", "/two")
        disk.filesystem.mkdir("/one")
        disk.filesystem.mkdir("/two")
        disk.filesystem.sync_directory("/")
        rng = Random(seed)
        # (topic id, offsets below which everything was flushed, log start, records written)
        flushed: dict[TopicPartition, tuple[UUID, int, int, int]] = {}

        def observe(
            _event: object,
            disk: Disk = disk,
            flushed: dict[TopicPartition, tuple[UUID, int, int, int]] = flushed,
        ) -> None:
            nonlocal points
            for keep in (None, "all", Random(points)):
                points += 1
                after = Disk(*disk.directories)
                after.clock = disk.clock
                after.filesystem = disk.filesystem.after_crash(keep)
                manager = after.started()
                assert manager.offline_directories == []
                for tp, (topic_id, end, start, written) in flushed.items():
                    log = manager.get(tp)
                    if log is None:
                        assert end == 0
                        continue
                    if log.topic_id not in (topic_id, NIL):
                        continue  # being deleted, or not made yet
                    assert end <= log.log_end_offset <= written
                    assert log.log_start_offset <= start
                    if log.log_start_offset < log.log_end_offset:
                        start_of_epoch = log.leader_epochs.earliest_entry
                        assert start_of_epoch == (0, log.log_start_offset)

        disk.filesystem.observer = observe
        manager = disk.started()
        incarnation = 0
        for _ in range(40):
            tp = rng.choice([A0, A1, B0])
            log = manager.get(tp)
            act = rng.choice(["append", "append", "flush", "cut", "delete", "checkpoint"])
            if log is None:
                incarnation += 1
                topic_id = UUID(int=incarnation << 64)
                flushed[tp] = (topic_id, 0, 0, 0)
                manager.creation.get_or_create(tp, topic_id, CONFIG)
                continue
            topic_id, end, start, written = flushed[tp]
            if act == "append":
                flushed[tp] = (topic_id, end, start, written + 2)
                append(log, 2)
            elif act == "flush":
                log.flusher.flush()
                flushed[tp] = (topic_id, log.log_end_offset, start, written)
            elif act == "cut":
                flushed[tp] = (topic_id, end, log.high_watermark, written)
                log.delete_records(log.high_watermark)
            elif act == "delete":
                flushed[tp] = (topic_id, 0, start, written)
                manager.deletion.delete(tp)
                del flushed[tp]
            else:
                manager.checkpoints.write()
        disk.filesystem.observer = None
    assert points > 1_500


def test_transactions_are_verified_or_not(disk: Disk) -> None:
    """In logs that are there, and in those to come."""
    manager = disk.started()
    first = manager.creation.get_or_create(A0, ID_A, CONFIG)
    assert not first.producer_state.requires_verification
    manager.require_verification(True)
    second = manager.creation.get_or_create(B0, ID_B, CONFIG)
    assert first.producer_state.requires_verification
    assert second.producer_state.requires_verification


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


@pytest.mark.parametrize(
    "lost",
    [(), (RECOVERY_POINT_CHECKPOINT,), (RECOVERY_POINT_CHECKPOINT, CLEANER_CHECKPOINT)],
)
def test_a_formerly_compacted_topic_survives_a_scan_of_everything(lost: tuple[str, ...]) -> None:
    """Whatever checkpoints are left: what compaction left and was flushed is there after a kill."""
    disk = Disk()
    compact = small_segments(600, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.01)
    manager = disk.started(compact)
    disk.filesystem.sync_directory("/")
    log = manager.creation.get_or_create(A0, ID_A, compact)
    for number in range(60):
        append(log, key=b"%d" % (number % 7), value=b"v" * 40)
    log.flusher.flush(log.active_base_offset)
    assert manager.compaction.clean_dirtiest() is not None
    manager.checkpoints.write()
    expected = read_records(log)
    assert 7 <= len(expected) < 60
    for name in lost:
        disk.filesystem.remove(f"/one/{name}")
    disk.filesystem = disk.filesystem.after_crash()
    again = disk.started(small_segments(600)).get(A0)
    assert again is not None
    found = read_records(again)
    assert found == expected[: len(found)]
    assert len(found) >= len([r for r in expected if r.offset < log.recovery_point]) > 0
    assert again.set_aside == ()


# -- after a kill ----------------------------------------------------------------------------


def killed(disk: Disk) -> None:
    """The process has died; the page cache is there."""
    disk.filesystem = disk.filesystem.after_crash(KEEP_ALL)


@pytest.mark.parametrize("flush_messages", [1, 7, 1000, (1 << 63) - 1])
def test_what_flush_messages_promises_holds_before_a_log_serves(flush_messages: int) -> None:
    """All that will be shown is on disk: nobody knows how much of it was acknowledged as such."""
    disk = Disk()
    config = small_segments(300, flush_messages=flush_messages)
    first = disk.started(config)
    append(first.creation.get_or_create(A0, ID_A, config), 20)
    disk.filesystem.sync_directory("/")
    for directory in first.directories:
        assert directory._lock is not None
        directory._lock.release()
    seen: list[tuple[int, int]] = []
    manager = disk.manager()

    def serve(log: Log) -> None:
        after_a_power_cut = Log.open(
            "/one/a-0",
            A0,
            topic_id=ID_A,
            config=config,
            environment=FakeEnvironment(filesystem=disk.filesystem.after_crash(), clock=disk.clock),
        )
        seen.append((log.recovery_point, after_a_power_cut.log_end_offset))

    manager.startup.load(lambda _topic: config, on_loaded=serve)
    is_limited = flush_messages < 1 << 62
    assert seen == [(20, 20) if is_limited else (0, 0)]


def test_an_epoch_of_an_unclean_start_is_known_after_a_power_cut_at_any_moment() -> None:
    """Whether its checkpoint was on disk or not: then by its batches."""
    disk = Disk()
    log = disk.started().creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 3)
    log.flusher.flush()
    disk.filesystem.sync_directory("/")
    killed(disk)
    disks: list[FakeFilesystem] = []

    def observe(event: Event) -> None:
        disks.extend(
            disk.filesystem.after_crash(keep) for keep in (None, KEEP_ALL, Random(event.number))
        )

    disk.filesystem.observer = observe
    manager = disk.manager()
    for job in manager.startup.load_jobs(lambda _topic: CONFIG, new_epoch_of=lambda _tp: 4):
        job()
    found = manager.get(A0)
    assert found is not None
    assert found.leader_epochs.entries() == [(0, 0), (4, 3)]
    for _ in range(3):
        batch = build_batch([(b"k", b"v", (), 1_700_000_000_000)])
        found.writer.append_as_leader(memoryview(batch), leader_epoch=4, now_ms=1_700_000_000_000)
    found.flusher.flush()
    manager.checkpoints.write_recovery_points()
    assert len(disks) > 10
    ends = set()
    for each in disks:
        disk.filesystem = each
        again = disk.manager()
        for job in again.startup.load_jobs(lambda _topic: CONFIG, new_epoch_of=lambda _tp: 5):
            job()
        log_again = again.get(A0)
        assert log_again is not None
        end = log_again.log_end_offset
        ends.add(end)
        expected = [(0, 0), (5, 3)] if end == 3 else [(0, 0), (4, 3), (5, end)]
        assert log_again.leader_epochs.entries() == expected
    assert ends == {3, 4, 5, 6}


def test_an_epoch_that_the_cluster_has_begun_is_read_from_batches() -> None:
    """A leader notes its epoch in memory, and the next flush writes it: kill -9 may come before.

    A follower that did not know the epoch of its last records would have them truncated.
    """
    disk = Disk()
    log = disk.started().creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 3)
    log.begin_to_lead(2)
    for _ in range(2):
        batch = build_batch([(b"k", b"v", (), 1_700_000_000_000)])
        log.writer.append_as_leader(memoryview(batch), leader_epoch=2, now_ms=1_700_000_000_000)
    assert disk.filesystem.peek(f"{log.directory}/leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    disk.filesystem = disk.filesystem.after_crash(KEEP_ALL)
    for latest_epoch, expected in ((2, [(0, 0), (2, 3)]), (1, [(0, 0)])):
        killed = disk.filesystem
        disk.filesystem = killed.after_crash(KEEP_ALL)
        manager = disk.manager()
        for job in manager.startup.load_jobs(
            lambda _topic: CONFIG,
            latest_epoch_of=lambda _tp, latest_epoch=latest_epoch: latest_epoch,  # type: ignore[misc]  # bound now
        ):
            job()
        found = manager.get(A0)
        assert found is not None
        assert found.log_end_offset == 5
        assert found.leader_epochs.entries() == expected
        disk.filesystem = killed


def test_an_epoch_that_no_cluster_has_begun_is_not_learnt(disk: Disk) -> None:
    """No sum covers a batch's leader epoch: too late a one, or one before an earlier, is noise."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, 4)
    path = log.segment_facts()[0].path
    data = bytearray(disk.filesystem.peek(path))
    size = len(data) // 4
    data[size + 12 : size + 16] = (2).to_bytes(4, "big")
    data[3 * size + 12 : 3 * size + 16] = (9).to_bytes(4, "big")
    disk.filesystem.poke(path, bytes(data))
    killed(disk)
    manager = disk.manager()
    for job in manager.startup.load_jobs(lambda _topic: CONFIG, new_epoch_of=lambda _tp: 5):
        job()
    found = manager.get(A0)
    assert found is not None
    assert found.leader_epochs.entries() == [(0, 0), (5, 4)]


def test_epochs_begun_with_a_start_cost_no_sync(disk: Disk) -> None:
    """Thousands of partitions begin one at the same time."""
    manager = disk.started()
    for index in range(20):
        append(manager.creation.get_or_create(TopicPartition("a", index), ID_A, CONFIG))
    killed(disk)
    manager = disk.manager()
    synced: list[str] = []
    disk.filesystem.observer = lambda event: (
        synced.append(event.path) if event.kind == "sync" and "epoch" in event.path else None
    )
    for job in manager.startup.load_jobs(lambda _topic: CONFIG, new_epoch_of=lambda _tp: 5):
        job()
    assert synced == []
    log = manager.get(A0)
    assert log is not None
    log.flusher.flush()
    assert synced == ["/one/a-0/leader-epoch-checkpoint"]


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


def test_flushed_records_keep_their_topics_id_over_a_power_cut(disk: Disk) -> None:
    """Without it they would be taken for those of a topic that was created again meanwhile."""
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log)
    log.flusher.flush()
    disk.filesystem.crash(None)
    path = f"{log.directory}/partition.metadata"
    assert read_partition_metadata(disk.filesystem, path) == ID_A
