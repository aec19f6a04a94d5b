"""Duties: each on its own clock, one turn at a time, none after a stop, none ending the others."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from broker.replicas.background import (
    CHECKPOINT_MS,
    FLUSH_CHECK_MS,
    FLUSH_CHECK_PAUSE,
    ROOM_CHECK_MS,
    SLICE_MS,
    Background,
)
from config.broker import BrokerConfig
from config.topic import TopicConfig
from storage.cleaner.log_cleaner_manager import LogCleanerManager
from storage.errors import DiskError
from storage.index.reads import Reads
from storage.types.topic_partition import TopicPartition
from tests.fakes.environment import FakeEnvironment
from tests.fakes.storage.failing_disk import FailingDisk
from tests.fakes.storage.slow_disk import SlowDisk
from tests.unit.broker.world import World, batch


class Manager:
    """Counts the passes it is asked for, whatever part they are of."""

    def __init__(self) -> None:
        self.checkpoints = self.compaction = self.deletion = self.room = self
        self.cleaning = LogCleanerManager()
        self.passes: Counter[str] = Counter()
        self.act: Callable[[str], Any] = lambda _name: None

    def __getattr__(self, name: str) -> Callable[[], Any]:
        def run() -> Any:
            self.passes[name] += 1
            return self.act(name)

        return run


class InPlace:
    """A disk that does what it is told at once."""

    async def run(self, function: Callable[[], Any]) -> Any:
        return function()


async def settle() -> None:
    """Let tasks come to their next wait."""
    for _ in range(5):
        await asyncio.sleep(0)


class Duties:
    """Background work on a manual timer."""

    def __init__(self, world: World, **settings: object) -> None:
        self.world = world
        self.manager = Manager()
        disk: Any = InPlace()
        manager: Any = self.manager
        current = BrokerConfig().replace(**settings)
        self.background = Background(
            settings=lambda: current,
            environment=FakeEnvironment(timer=world.timer),
            log_manager=manager,
            replicas=world.replicas,
            disk=disk,
            create_unmade=self.create_unmade,
        )
        self.background.start()

    async def create_unmade(self) -> None:
        self.manager.passes["create_unmade"] += 1

    async def advance(self, ms: float, step_ms: float = 250.0) -> None:
        """Let time pass, and every duty that falls due come to its end."""
        passed = 0.0
        while passed < ms:
            self.world.timer.advance(min(step_ms, ms - passed))
            passed += step_ms
            await settle()


async def test_every_duty_has_its_period(world: World) -> None:
    """Settings above five seconds do not delay checkpoints: a restart would read more."""
    duties = Duties(
        world,
        log_retention_check_interval_ms=300_000,
        log_initial_task_delay_ms=30_000,
        log_cleaner_backoff_ms=15_000,
        log_flush_offset_checkpoint_interval_ms=60_000,
        log_flush_start_offset_checkpoint_interval_ms=60_000,
        replica_high_watermark_checkpoint_interval_ms=1_000,
    )
    await duties.advance(60_000)
    passes = duties.manager.passes
    assert passes["write_recovery_points"] == 60_000 / CHECKPOINT_MS
    assert passes["write_high_watermarks"] == 60
    assert passes["write_log_start_offsets"] == 1
    assert passes["clean_dirtiest"] == 4
    assert passes["remove_deleted"] == 12
    assert passes["check"] == passes["create_unmade"] == 60_000 / ROOM_CHECK_MS


async def test_compaction_goes_on_while_there_is_something(world: World) -> None:
    """The pause is only for when nothing is left."""
    duties = Duties(world, log_cleaner_backoff_ms=1000)
    left = [True] * 5
    duties.manager.act = lambda name: left.pop() if name == "clean_dirtiest" and left else None
    await duties.advance(1000)
    assert duties.manager.passes["clean_dirtiest"] == 6


@pytest.mark.parametrize("error", [DiskError("cannot write", "/data"), ValueError("a bug")])
async def test_a_failed_turn_is_logged_and_the_next_comes(
    world: World, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    duties = Duties(world)

    def fail(name: str) -> None:
        if name == "remove_deleted":
            raise error

    duties.manager.act = fail
    with caplog.at_level(logging.ERROR):
        await duties.advance(10_000)
    assert duties.manager.passes["remove_deleted"] == 2
    assert duties.manager.passes["write_recovery_points"] == 2
    assert len(caplog.messages) == 2
    has_traceback = caplog.records[0].exc_info is not None
    assert has_traceback == (not isinstance(error, DiskError))


async def test_a_slow_turn_delays_the_next(world: World) -> None:
    """Turns of one duty never overlap; the period counts from the end."""
    duties = Duties(world)
    gate = asyncio.Event()
    running = 0

    async def slow() -> None:
        nonlocal running
        running += 1
        await gate.wait()

    duties.background._every(100.0, slow)
    await duties.advance(1000)
    assert running == 1
    gate.set()
    await settle()
    await duties.advance(99, 99)
    assert running == 1
    await duties.advance(1, 1)
    assert running == 2


async def test_stop_waits_for_what_runs_and_begins_nothing(world: World) -> None:
    duties = Duties(world)
    gate = asyncio.Event()
    ended: list[bool] = []

    async def slow() -> None:
        await gate.wait()
        ended.append(True)

    duties.background._every(100.0, slow)
    await duties.advance(100)
    stopping = asyncio.create_task(duties.background.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    gate.set()
    await stopping
    assert ended == [True]
    before = Counter(duties.manager.passes)
    await duties.advance(700_000, 10_000)
    assert duties.manager.passes == before
    assert world.timer.pending == 0


async def test_retention_leaves_what_is_being_compacted(world: World) -> None:
    """It comes again; and lets compaction begin afterwards."""
    config = TopicConfig(retention_ms=1000)
    partition = world.add("t", config=config)
    old_ms = world.clock.now_ms() - 10_000
    partition.append(memoryview(batch(b"v", timestamp_ms=old_ms)), world.clock.now_ms())
    duties = Duties(world, log_initial_task_delay_ms=0, log_retention_check_interval_ms=1000)
    cleaning = duties.manager.cleaning
    cleaning._cleaning[partition.topic_partition] = partition.log
    await duties.advance(1000)
    assert partition.log.log_start_offset == 0
    cleaning.done(partition.log)
    await duties.advance(1000)
    assert partition.log.log_start_offset == 1
    assert cleaning.try_pause(partition.topic_partition)
    assert cleaning._paused == {partition.topic_partition: 1}


async def test_rolled_segments_are_flushed_soon(world: World) -> None:
    """Nobody waits for it, a restart reads less; the active segment is left alone."""
    partition = world.add("t")
    for _ in range(2):
        partition.append(memoryview(batch(b"v")), world.clock.now_ms())
    partition.log.writer.roll()
    partition.append(memoryview(batch(b"v")), world.clock.now_ms())
    duties = Duties(world)
    await duties.advance(250)
    await world.until(lambda: partition.log.recovery_point > 0)
    await duties.advance(1000)
    assert partition.log.recovery_point == 2
    assert partition.commit.flushes == 1


async def test_flush_ms_is_kept(world: World) -> None:
    partition = world.add("t", config=TopicConfig(flush_ms=2000))
    partition.append(memoryview(batch(b"v")), world.clock.now_ms())
    duties = Duties(world)
    await duties.advance(1750)
    assert partition.log.recovery_point == 0
    await duties.advance(500)
    await world.until(lambda: partition.log.recovery_point == 1)


async def test_a_disk_that_refuses_one_log_does_not_stop_the_others(world: World) -> None:
    """Retention goes on with the next partition, the failed one is reported."""
    world.filesystem = disk = FailingDisk()
    config = TopicConfig(retention_ms=1000)
    partitions = [world.add("t", index, config) for index in range(3)]
    old_ms = world.clock.now_ms() - 10_000
    for partition in partitions:
        partition.append(memoryview(batch(b"v", timestamp_ms=old_ms)), world.clock.now_ms())
    reported: list[TopicPartition] = []
    world.replicas.on_disk_failure = lambda log, _error: reported.append(log.topic_partition)
    disk.break_directory(partitions[1].log.directory)
    duties = Duties(world, log_initial_task_delay_ms=0)
    await duties.advance(250)
    assert reported == [TopicPartition("t", 1)]
    assert [p.log.log_start_offset for p in partitions] == [1, 0, 1]


async def test_the_loop_turns_between_logs(world: World) -> None:
    """Thousands of logs are gone through in slices, by what they take and not by their number."""
    for index in range(12):
        world.add("t", index)
    duties = Duties(world)
    seen = 0

    def count(_partition: object, _reads: Reads) -> None:
        nonlocal seen
        seen += 1
        world.clock.advance(SLICE_MS / 4)

    task = asyncio.create_task(duties.background._each(count))
    await asyncio.sleep(0)
    at_turns = []
    while not task.done():
        await asyncio.sleep(0)
        at_turns.append(seen)
    assert at_turns[:3] == [4, 8, 12]
    await task


async def test_logs_are_checked_less_often_when_that_takes_long(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of idle logs cost half a percent of the loop, not as much as they can."""
    partition = world.add("t", 0)
    partition.append(memoryview(batch(b"v")), world.clock.now_ms())
    duties = Duties(world)
    checks = 0

    def slow_check(_flusher: object) -> None:
        nonlocal checks
        checks += 1
        world.clock.advance(4.0)

    monkeypatch.setattr(type(partition.log.flusher), "flush_target", slow_check)
    await duties.advance(FLUSH_CHECK_MS)
    assert checks == 1
    await duties.advance(4.0 * FLUSH_CHECK_PAUSE - 1)
    assert checks == 1
    await duties.advance(1)
    assert checks == 2


async def test_a_first_pass_reads_ages_in_threads(world: World) -> None:
    """After a start nobody knows how old a segment is: its indexes and files are not open."""
    world.filesystem = disk = SlowDisk(0.001)
    config = TopicConfig(retention_ms=1000)
    old_ms = world.clock.now_ms() - 10_000
    partitions = [world.add("t", index, config) for index in range(3)]
    for partition in partitions:
        partition.append(memoryview(batch(b"v", timestamp_ms=old_ms)), world.clock.now_ms())
        partition.log.writer.roll()
        (closed, _) = partition.log.segments
        closed.close()
        closed._max_timestamp = None
    disk.slow(str(world.directory))
    duties = Duties(world, log_initial_task_delay_ms=0)
    duties.background._disk = world.disk
    await duties.advance(250)
    await world.until(lambda: all(p.log.log_start_offset == 1 for p in partitions))
    assert [call for call in disk.on_loop if call[0] in ("open", "read")] == []
    assert disk.calls >= 3 * 2
