"""One fdatasync for everybody who waits; a failed one is the last."""

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from broker.replicas.group_commit import RETRY_MS, GroupCommit
from config.topic import TopicConfig
from storage.errors import DiskError
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.timer import ManualTimer
from tests.unit.broker.world import batch, topic_id

NOW_MS = 1_700_000_000_000


class ManualDisk:
    """Runs a submitted call when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any, Any], None]]] = []
        self.submitted = 0

    def submit(
        self,
        function: Callable[[], Any],
        on_done: Callable[[Any, BaseException | None], None],
    ) -> None:
        self.submitted += 1
        self.waiting.append((function, on_done))

    def finish(self) -> None:
        """Let the oldest call run and end."""
        function, on_done = self.waiting.pop(0)
        try:
            function()
        except DiskError as error:
            on_done(None, error)
        else:
            on_done(None, None)


class World:
    def __init__(self) -> None:
        self.filesystem = FakeFilesystem()
        self.filesystem.mkdir("/data")
        self.filesystem.sync_directory("/")
        self.log = Log.open(
            "/data/t-0",
            TopicPartition("t", 0),
            topic_id=topic_id("t"),
            config=TopicConfig(flush_messages=1),
            environment=FakeEnvironment(filesystem=self.filesystem, clock=ManualClock()),
        )
        self.disk = ManualDisk()
        self.flushed: list[int] = []
        self.failures: list[DiskError] = []
        disk: Any = self.disk
        self.timer = ManualTimer()
        self.commit = GroupCommit(
            self.log, disk, self.flushed.append, self.failures.append, self.timer
        )

    def append(self) -> None:
        self.log.writer.append_as_leader(memoryview(batch(b"v")), leader_epoch=0, now_ms=NOW_MS)

    def write(self) -> None:
        """Append, and want it on disk."""
        self.append()
        self.commit.request()


@pytest.fixture
def world() -> World:
    return World()


def test_a_request_is_told_when_its_records_are_on_disk(world: World) -> None:
    world.write()
    assert world.flushed == []
    assert world.log.recovery_point == 0
    world.disk.finish()
    assert world.flushed == [1]
    assert world.log.recovery_point == 1
    assert world.filesystem.after_crash().peek("/data/t-0/" + f"{0:020}.log") != b""


def test_requests_during_a_flush_share_the_next(world: World) -> None:
    """However many: two syncs in all, and the first does not speak for the later ones."""
    world.write()
    for _ in range(50):
        world.write()
    assert world.disk.submitted == 1
    world.disk.finish()
    assert world.flushed == [1]
    assert world.disk.submitted == 2
    world.disk.finish()
    assert world.flushed == [1, 51]
    assert world.disk.submitted == 2
    assert world.commit.flushes == 2
    assert not world.commit.flushing


def test_nothing_to_flush_costs_nothing(world: World) -> None:
    world.commit.request()
    assert world.disk.submitted == 0
    world.write()
    world.disk.finish()
    world.commit.request()
    assert world.disk.submitted == 1


def test_a_failed_flush_is_never_tried_again(world: World) -> None:
    """The kernel may have dropped the pages: a second sync that succeeds proves nothing."""
    world.write()
    world.write()
    world.filesystem.fail("sync")
    world.disk.finish()
    assert world.flushed == []
    assert len(world.failures) == 1
    assert world.commit.failed
    assert world.log.failure is world.failures[0]
    assert world.log.recovery_point == 0
    world.commit.request()
    world.commit.request_rolled()
    assert world.disk.submitted == 1


def test_a_file_that_cannot_be_opened_fails_it_too(world: World) -> None:
    world.append()
    for segment in world.log.segment_facts():
        segment.close()
    world.filesystem.fail("open", path=".log")
    world.commit.request()
    world.disk.finish()
    assert len(world.failures) == 1
    assert world.log.failure is world.failures[0]
    assert not world.commit.flushing


def test_a_file_that_finds_no_descriptor_is_tried_again(world: World) -> None:
    """Nothing is wrong with the disk: who waits is told a little later."""
    world.append()
    for segment in world.log.segment_facts():
        segment.close()
    world.filesystem.fail("open", errno.EMFILE, path=".log", times=2)
    world.commit.request()
    world.disk.finish()
    assert world.log.failure is None
    assert not world.commit.failed
    world.timer.advance(RETRY_MS)
    world.disk.finish()
    assert world.flushed == []
    world.timer.advance(RETRY_MS)
    world.disk.finish()
    assert world.flushed == [1]
    # Names of new files as well: the flush that failed had them to sync.
    assert world.filesystem.after_crash().peek("/data/t-0/" + f"{0:020}.log") != b""


def test_requests_during_the_pause_share_one_attempt_after_it(world: World) -> None:
    world.write()
    world.write()
    for segment in world.log.segment_facts():
        segment.close()
    world.filesystem.fail("open", errno.EMFILE, path=".log")
    world.disk.finish()
    assert world.disk.submitted == 1
    world.timer.advance(RETRY_MS)
    world.disk.finish()
    assert world.flushed == [2]
    assert world.disk.submitted == 2


def test_a_log_that_has_failed_meanwhile_is_left_alone(world: World) -> None:
    world.append()
    for segment in world.log.segment_facts():
        segment.close()
    world.filesystem.fail("open", errno.EMFILE, path=".log")
    world.commit.request()
    world.disk.finish()
    world.log.fail(DiskError("cannot write", "/data/t-0", errno.EIO))
    world.timer.advance(RETRY_MS)
    assert world.disk.submitted == 1


def test_rolled_segments_alone(world: World) -> None:
    """In the background: the active segment is not synced for it."""
    world.append()
    world.log.writer.roll()
    world.append()
    world.commit.request_rolled()
    world.disk.finish()
    assert world.log.recovery_point == 1
    assert world.flushed == [1]


def test_who_waits_is_not_answered_by_the_background(world: World) -> None:
    """A request that comes while rolled segments are flushed gets a flush of its own."""
    world.append()
    world.log.writer.roll()
    world.commit.request_rolled()
    world.write()
    world.commit.request_rolled()
    assert world.disk.submitted == 1
    world.disk.finish()
    assert world.flushed == [1]
    world.disk.finish()
    assert world.flushed == [1, 2]


async def test_idle_waits_for_the_flush_under_way(world: World) -> None:
    """A deleted log's files go after it, and it does not begin another."""
    await world.commit.idle()
    world.write()
    world.write()
    waiting = asyncio.create_task(world.commit.idle())
    await asyncio.sleep(0)
    assert not waiting.done()
    world.disk.finish()
    await waiting
    assert world.disk.submitted == 1


async def test_after_a_cut_flushes_go_on_as_before(world: World) -> None:
    """What came while a flush ran was forgotten from then on, also by the leader it may become."""
    world.write()
    waiting = asyncio.create_task(world.commit.idle())
    await asyncio.sleep(0)
    world.disk.finish()
    await waiting
    world.write()
    world.write()
    world.disk.finish()
    world.disk.finish()
    assert world.flushed == [1, 2, 3]


async def test_several_wait_until_it_is_idle(world: World) -> None:
    world.write()
    waiting = [asyncio.create_task(world.commit.idle()) for _ in range(2)]
    await asyncio.sleep(0)
    world.disk.finish()
    await asyncio.gather(*waiting)
    assert world.disk.submitted == 1


async def test_a_flush_that_is_waited_for_is_one_of_them(world: World) -> None:
    """It waits for the one under way, and then for one that covers it."""
    world.write()
    world.append()
    first = asyncio.create_task(world.commit.flush())
    await asyncio.sleep(0)
    assert world.disk.submitted == 1
    world.disk.finish()
    assert not await first
    again = asyncio.create_task(world.commit.flush())
    await asyncio.sleep(0)
    assert world.disk.submitted == 2
    world.disk.finish()
    assert await again
    assert world.flushed == [1, 2]
    assert await world.commit.flush()
    assert world.disk.submitted == 2


async def test_who_waits_for_a_flush_hears_that_it_failed(world: World) -> None:
    world.append()
    waiting = asyncio.create_task(world.commit.flush())
    await asyncio.sleep(0)
    world.filesystem.fail("sync")
    world.disk.finish()
    with pytest.raises(DiskError):
        await waiting
    with pytest.raises(DiskError):
        await world.commit.flush()
    assert world.disk.submitted == 1
