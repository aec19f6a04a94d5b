"""Full log directories: records are refused, all else goes on, and they come back by themselves."""

import errno
import gc
from uuid import UUID

import pytest

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.checkpoints.clean_shutdown import CLEAN_SHUTDOWN_FILE
from storage.checkpoints.reserve import PROBED_MIN, RESERVE_FILE
from storage.environment.alerts import AlertKind
from storage.errors import DiskError, LogDirectoryFullError
from storage.log.log import Log
from storage.manager.log_manager import LogManager, LogManagerSettings
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem

CONFIG = TopicConfig()
A, B, C = (TopicPartition(name, 0) for name in "abc")
IDS = {name: UUID(int=(number + 1) << 100) for number, name in enumerate("abc")}
RESERVE = 1 << 16


class World:
    """Two directories on disks of their own."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.filesystem = FakeFilesystem(self.clock)
        self.manager = self.start()

    def start(self) -> LogManager:
        manager = LogManager(
            FakeEnvironment(filesystem=self.filesystem, clock=self.clock),
            ("/one", "/two"),
            settings=LogManagerSettings(reserve_bytes=RESERVE),
        )
        manager.startup.open_directories()
        manager.startup.claim("cluster", 1)
        manager.startup.load(lambda _topic: CONFIG)
        return manager

    def create(self, topic_partition: TopicPartition) -> Log:
        return self.manager.creation.get_or_create(
            topic_partition, IDS[topic_partition.topic], CONFIG
        )

    def fill(self, log: Log, code: int = errno.ENOSPC) -> None:
        """What its handler does when an append finds no room."""
        self.filesystem.fail("write", code, path=log.directory)
        with pytest.raises(DiskError) as refused:
            append(log)
        self.manager.fail_log(log, refused.value)

    @property
    def full(self) -> list[str]:
        return [
            alert.subject
            for alert in self.manager.alerts.all()
            if alert.kind is AlertKind.DIRECTORY_FULL
        ]


@pytest.fixture
def world() -> World:
    return World()


def append(log: Log) -> None:
    batch = build_batch([(b"k", b"v", (), 0)])
    log.writer.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=0)
    log.update_high_watermark(log.log_end_offset)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_directory_takes_no_records_and_the_other_does(world: World, code: int) -> None:
    a, b = world.create(A), world.create(B)
    append(a)
    world.fill(a, code)
    assert world.full == ["/one"]
    assert world.manager.offline_directories == []
    for _ in range(3):
        with pytest.raises(LogDirectoryFullError):
            append(a)
    append(b)
    assert a.log_end_offset == 1
    records = a.reader.read(0, max_bytes=1000, end_offset=1, min_one_batch=True)
    assert records is not None
    # The records are from 1970: their segments go, the active ones are replaced.
    assert [log.retention.delete_old_segments() for log in (a, b)] == [1, 1]
    assert a.log_start_offset == 1
    world.manager.checkpoints.write()
    assert world.manager.room.has_room


def test_it_takes_records_again_when_there_is_room_beside_the_reserve(world: World) -> None:
    a = world.create(A)
    world.fill(a)
    assert world.filesystem.exists(f"/one/{RESERVE_FILE}")
    world.manager.room.check()
    assert not world.filesystem.exists(f"/one/{RESERVE_FILE}")
    world.filesystem.free = PROBED_MIN - 1
    world.manager.room.check()
    assert world.full == ["/one"]
    world.filesystem.free = PROBED_MIN
    world.filesystem.fail("allocate", errno.EDQUOT, path="/one")
    world.manager.room.check()
    assert world.full == ["/one"]
    assert not world.filesystem.exists(f"/one/{RESERVE_FILE}")
    with pytest.raises(LogDirectoryFullError):
        append(a)
    world.manager.room.check()
    assert world.full == []
    assert world.filesystem.file_size(f"/one/{RESERVE_FILE}") == RESERVE
    append(a)


def test_late_refusals_do_not_fill_it_again(world: World) -> None:
    """An answer to a record that was refused before comes when there is room again."""
    a = world.create(A)
    world.fill(a)
    world.manager.room.check()
    late = LogDirectoryFullError("log takes no records", a.directory, errno.ENOSPC)
    world.manager.room.check()
    world.manager.fail_log(a, late)
    assert world.full == []
    append(a)


def test_new_logs_go_where_there_is_room(world: World) -> None:
    """Also when it is found out while one is made: nothing of it is left there."""
    world.filesystem.fail("write", errno.ENOSPC, path="/one/a-0")
    a = world.create(A)
    assert a.directory == "/two/a-0"
    assert world.full == ["/one"]
    assert not world.filesystem.exists("/one/a-0")
    assert world.create(B).directory == "/two/b-0"
    world.filesystem.fail("write", errno.ENOSPC, path="/two/c-0")
    with pytest.raises(LogDirectoryFullError):
        world.create(C)
    assert world.manager.offline_directories == []
    assert not world.manager.room.has_room
    assert not world.filesystem.exists("/two/c-0")
    world.manager.room.check()
    world.manager.room.check()
    append(world.create(C))
    append(a)


def test_what_gives_room_back_is_written_into_the_reserve(world: World) -> None:
    """Segments that were copied are deleted on the strength of `__remote_log_metadata`."""
    metadata = TopicPartition("__remote_log_metadata", 0)
    log = world.manager.creation.get_or_create(metadata, IDS["a"], CONFIG)
    world.manager.room.out_of_room_at("/one", DiskError("cannot write", "/one", errno.ENOSPC))
    world.manager.room.check()
    append(log)
    assert log.log_end_offset == 1


def test_a_log_that_finds_no_room_at_the_start_waits_for_it(world: World) -> None:
    """It is no log that is missing: none is made in its place."""
    append(world.create(A))
    world.filesystem.crash(KEEP_ALL)
    world.filesystem.fail("write", errno.ENOSPC, path="/one/a-0", times=2)
    world.manager = world.start()
    assert world.manager.get(A) is None
    assert world.full == ["/one"]
    with pytest.raises(Exception, match="still being recovered"):
        world.create(A)
    world.manager.checkpoints.write()
    world.manager.room.check()
    found = world.manager.get(A)
    assert found is not None
    assert found.log_end_offset == 1
    world.manager.room.check()
    append(found)
    assert world.manager.progress.is_complete


def test_a_start_uses_the_reserve_of_the_run_before(world: World) -> None:
    append(world.create(A))
    world.filesystem.crash(KEEP_ALL)
    world.filesystem.fail("write", errno.ENOSPC, path="/one/a-0")
    world.manager = world.start()
    found = world.manager.get(A)
    assert found is not None
    assert found.log_end_offset == 1
    with pytest.raises(LogDirectoryFullError):
        append(found)


def test_a_start_on_a_full_disk_reads_what_there_is(world: World) -> None:
    append(world.create(A))
    world.manager.shutdown()
    assert not world.filesystem.exists(f"/one/{RESERVE_FILE}")
    world.filesystem.fail("allocate", errno.ENOSPC, path="/one")
    world.manager = world.start()
    found = world.manager.get(A)
    assert found is not None
    assert world.full == ["/one"]
    with pytest.raises(LogDirectoryFullError):
        append(found)
    world.manager.room.check()
    append(found)


@pytest.mark.parametrize("path", ["a-0", CLEAN_SHUTDOWN_FILE])
def test_a_stop_that_found_no_room_is_not_clean(world: World, path: str) -> None:
    """The next start looks at what could not be written; nothing is lost."""
    a = world.create(A)
    append(a)
    world.filesystem.fail("write", errno.ENOSPC, path=f"/one/{path}")
    world.manager.shutdown()
    assert not world.filesystem.exists(f"/one/{CLEAN_SHUTDOWN_FILE}")
    assert world.filesystem.exists(f"/two/{CLEAN_SHUTDOWN_FILE}")
    assert world.manager.offline_directories == []
    world.filesystem.crash(KEEP_ALL)
    world.manager = world.start()
    found = world.manager.get(A)
    assert found is not None
    assert found.log_end_offset == 1


def test_a_failed_sync_takes_it_offline_also_where_it_says_no_space(world: World) -> None:
    a = world.create(A)
    append(a)
    world.filesystem.fail("sync", errno.ENOSPC, path=a.directory)
    with pytest.raises(DiskError) as failed:
        a.flusher.flush()
    world.manager.fail_log(a, failed.value)
    assert [one.path for one in world.manager.offline_directories] == ["/one"]
    assert world.full == []


def test_a_full_directory_keeps_no_file_open_that_was_deleted(world: World) -> None:
    """The error that filled it came out of a log that was being opened, with all its files."""
    append(world.create(A))
    world.filesystem.open_files.evict(10)
    world.filesystem.crash(KEEP_ALL)
    world.filesystem.fail("write", errno.ENOSPC, path="/one/a-0")
    world.manager = world.start()
    assert world.full == ["/one"]
    gc.collect()
    for log in world.manager.logs():
        for segment in log.segment_facts():
            segment.close()
    assert world.filesystem.descriptors == 0
