"""A follower's batches are settled when they are held as the leader may count on it."""

import asyncio
import errno
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.replicas.partition import Partition
from broker.runtime.errors import ApiError
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from storage.errors import DiskError, FollowerOffsetError
from tests.fakes.storage.failing_disk import FailingDisk
from tests.unit.broker.replicas.test_partition_writes import WritersWorld
from tests.unit.broker.world import World, batch

LEADER, EPOCH = 2, 5


class Settling:
    """What `settled` was called with."""

    def __init__(self) -> None:
        self.outcomes: list[DiskError | None] = []

    def __call__(self, error: DiskError | None) -> None:
        self.outcomes.append(error)


def follow(world: World, **config: object) -> Partition:
    partition = world.add("t", config=TopicConfig().model_copy(update=config))
    world.replicas.stop_leading(partition)
    partition.become_follower(LEADER, EPOCH)
    return partition


def fetched(base_offset: int, *values: bytes, epoch: int = EPOCH) -> memoryview:
    data = batch(*values)
    data[0:8] = base_offset.to_bytes(8, "big")
    data[12:16] = epoch.to_bytes(4, "big")
    return memoryview(data)


@pytest.fixture
async def writers(tmp_path: Path) -> AsyncIterator[WritersWorld]:
    world = WritersWorld(tmp_path)
    yield world
    world.gated.gate.set()
    world.writers.close()
    world.close()


async def test_what_is_written_in_place_is_settled(world: World) -> None:
    """Nothing is called then; the records are there, and not committed."""
    partition, settled = follow(world), Settling()
    assert partition.append_fetched(fetched(0, b"a", b"b"), fetch_offset=0, settled=settled)
    assert settled.outcomes == []
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (2, 0)
    assert partition.stats.replication_bytes_in == len(fetched(0, b"a", b"b"))
    assert partition.stats.bytes_in == 0


async def test_flush_messages_holds_the_next_fetch(world: World) -> None:
    """By that the leader counts the records: it has to wait for the disk."""
    partition, settled = follow(world, flush_messages=1), Settling()
    assert not partition.append_fetched(fetched(0, b"a"), fetch_offset=0, settled=settled)
    assert settled.outcomes == []
    await world.until(lambda: bool(settled.outcomes))
    assert settled.outcomes == [None]
    assert partition.log.recovery_point == 1


async def test_queued_records_are_settled_once_written(writers: WritersWorld) -> None:
    """A slow directory's thread writes them."""
    partition, settled = follow(writers), Settling()
    assert not partition.append_fetched(fetched(0, b"a"), fetch_offset=0, settled=settled)
    await writers.until(writers.gated.waiting.is_set)
    assert (settled.outcomes, partition.log.log_end_offset) == ([], 0)
    partition.follow_high_watermark(1, 0)
    assert partition.log.high_watermark == 0, "no further than what is written"
    writers.gated.gate.set()
    await writers.until(lambda: bool(settled.outcomes))
    assert (settled.outcomes, partition.log.log_end_offset) == ([None], 1)


async def test_failed_write_is_settled_with_its_error(writers: WritersWorld) -> None:
    """The partition goes offline; nothing waits for ever."""
    partition, settled = follow(writers), Settling()
    writers.gated.gate.set()
    writers.gated.break_directory(partition.log.directory, "write")
    assert not partition.append_fetched(fetched(0, b"a"), fetch_offset=0, settled=settled)
    await writers.until(lambda: bool(settled.outcomes))
    (error,) = settled.outcomes
    assert isinstance(error, DiskError)
    assert partition.log.failure is not None


async def test_failed_write_in_place_is_an_error(world: World) -> None:
    """Of the directory, which is told of it."""
    failing = FailingDisk()
    world.filesystem = failing
    partition = follow(world)
    told: list[DiskError] = []
    world.replicas.on_disk_failure = lambda _log, error: told.append(error)
    failing.break_directory(partition.log.directory, "write")
    with pytest.raises(DiskError):
        partition.append_fetched(fetched(0, b"a"), fetch_offset=0, settled=Settling())
    assert [error.errno for error in told] == [errno.EIO]


async def test_end_of_the_role_settles(writers: WritersWorld) -> None:
    """The fetcher has dropped the partition by then; it is not kept waiting."""
    partition, settled = follow(writers), Settling()
    partition.append_fetched(fetched(0, b"a"), fetch_offset=0, settled=settled)
    partition.resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert settled.outcomes == [None]
    with pytest.raises(ApiError):
        partition.append_fetched(fetched(1, b"a"), fetch_offset=1, settled=settled)


async def test_leader_takes_no_fetched_batches(world: World) -> None:
    """Whatever comes late from when it followed."""
    partition = world.add("t")
    with pytest.raises(ApiError):
        partition.append_fetched(fetched(0, b"a"), fetch_offset=0, settled=Settling())
    assert partition.log.log_end_offset == 0


async def test_part_of_a_batch_is_left(world: World) -> None:
    partition = follow(world)
    data = fetched(0, b"a")[:-1]
    assert partition.append_fetched(data, fetch_offset=0, settled=Settling())
    assert partition.log.log_end_offset == 0
    with pytest.raises(FollowerOffsetError):
        partition.append_fetched(fetched(3, b"a"), fetch_offset=3, settled=Settling())


async def test_high_watermark_and_log_start_are_the_leaders(world: World) -> None:
    """As far as this log goes; down as well, and the log start never above the high watermark."""
    partition = follow(world)
    log = partition.log
    partition.append_fetched(fetched(0, b"a", b"b", b"c"), fetch_offset=0, settled=Settling())
    partition.follow_high_watermark(9, 0)
    assert log.high_watermark == 3
    partition.follow_high_watermark(1, 0)
    assert log.high_watermark == 1
    partition.follow_high_watermark(2, 3)
    assert (log.high_watermark, log.log_start_offset) == (2, 2)
    partition.follow_high_watermark(3, 3)
    assert log.log_start_offset == 3


async def test_truncation_has_the_log_for_itself(world: World) -> None:
    """Nothing is appended meanwhile, and no other role is taken."""
    partition = follow(world)
    partition.append_fetched(fetched(0, b"a"), fetch_offset=0, settled=Settling())
    gate, cutting = threading.Event(), threading.Event()
    order: list[str] = []

    def cut(log: object) -> None:
        cutting.set()
        assert gate.wait(60)
        partition.log.truncation.truncate_to(0)

    truncation = asyncio.create_task(partition.truncate(cut))
    await world.until(cutting.is_set)
    assert partition.is_truncating
    with pytest.raises(ApiError):
        partition.append_fetched(fetched(1, b"b"), fetch_offset=1, settled=Settling())
    partition.when_truncated(lambda: order.append("role"))
    idle = asyncio.create_task(partition.idle())
    gate.set()
    await truncation
    await idle
    assert not partition.is_truncating
    assert order == ["role"]
    assert partition.log.log_end_offset == 0


async def test_failed_truncation_is_told_and_ends(world: World) -> None:
    partition = follow(world)
    told: list[DiskError] = []
    world.replicas.on_disk_failure = lambda _log, error: told.append(error)

    def cut(log: object) -> None:
        raise DiskError("no", "/data", errno.EIO)

    with pytest.raises(DiskError):
        await partition.truncate(cut)
    assert not partition.is_truncating
    assert len(told) == 1
