"""One partition: who is fenced, when records count as committed, who is woken."""

import pytest

from broker.replicas.partition import Partition
from broker.runtime.errors import ApiError
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from storage.errors import BatchTooLargeError
from tests.fakes.storage.failing_disk import FailingDisk
from tests.unit.broker.world import World, batch

NOW_MS = 1_700_000_000_000


def append(partition: Partition, *values: bytes, **options: int) -> int:
    """Write a batch; returns its size."""
    data = batch(*values, **options)
    partition.append(memoryview(data), NOW_MS)
    return len(data)


async def test_older_and_newer_pictures_are_told_apart(world: World) -> None:
    """KIP-320: the older client refreshes its metadata, the newer waits for us."""
    partition = world.add("t")
    partition.leader_epoch = 5
    partition.check_leader_epoch(5)
    partition.check_leader_epoch(-1)
    with pytest.raises(ApiError) as older:
        partition.check_leader_epoch(4)
    assert older.value.code is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(ApiError) as newer:
        partition.check_leader_epoch(6)
    assert newer.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_records_are_committed_at_once(world: World) -> None:
    """On one replica without `flush.messages`."""
    partition = world.add("t")
    append(partition, b"a", b"b")
    assert partition.is_committed(2)
    assert not partition.is_committed(3)
    assert partition.log.high_watermark == 2


async def test_leader_epoch_is_in_the_log(world: World) -> None:
    partition = world.add("t")
    partition.leader_epoch = 3
    append(partition, b"a")
    assert partition.log.reader.end_offset_for_epoch(3) == (3, 1)


async def test_with_flush_messages_the_disk_decides(world: World) -> None:
    """Neither acknowledged nor shown before; then up to what the flush has covered."""
    partition = world.add("t", config=TopicConfig(flush_messages=2))
    append(partition, b"a")
    assert partition.is_committed(1)
    append(partition, b"b")
    assert not partition.is_committed(2)
    assert partition.log.high_watermark == 1
    await world.until(lambda: partition.is_committed(2))
    assert partition.log.recovery_point == 2


async def test_what_waits_for_the_disk_goes_on_waiting(world: World) -> None:
    """Also when `flush.messages` is raised before its flush has ended."""
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    partition.commit.flushing = True
    append(partition, b"a")
    partition.log.update_config(TopicConfig())
    append(partition, b"b")
    assert not partition.is_committed(1)
    partition._flushed(2)
    assert partition.is_committed(2)
    partition.commit.flushing = False
    append(partition, b"c")
    assert partition.is_committed(3)


async def test_only_what_was_written_is_counted(world: World) -> None:
    """Neither refused batches nor retries; all partitions of a topic count together."""
    first = world.add("t", 0, TopicConfig(max_message_bytes=500))
    second = world.add("t", 1)
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    size = append(first, b"a", b"b", **producer)
    append(first, b"a", b"b", **producer)
    with pytest.raises(BatchTooLargeError):
        append(first, b"x" * 1000)
    size += append(second, b"c")
    assert first.stats is second.stats
    assert (first.stats.messages_in, first.stats.bytes_in) == (3, size)
    assert first.log.log_end_offset == 2


async def test_a_burst_wakes_who_waits_once(world: World) -> None:
    """And only if somebody does."""
    partition = world.add("t")
    woken: list[Partition] = []
    partition._wake = woken.append
    append(partition, b"a")
    assert woken == []
    partition.watch_fetch()
    for _ in range(3):
        append(partition, b"b")
    assert woken == [partition]
    assert partition.wake_due


async def test_a_failed_flush_goes_to_whoever_is_responsible(world: World) -> None:
    """And the records are never committed."""
    world.filesystem = disk = FailingDisk()
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    failed: list[object] = []
    world.replicas.on_disk_failure = lambda log, _error: failed.append(log)
    append(partition, b"a")
    await world.until(lambda: partition.is_committed(1))
    disk.break_directory(partition.log.directory, "sync")
    append(partition, b"b")
    await world.until(lambda: bool(failed))
    assert failed == [partition.log]
    assert not partition.is_committed(2)
    assert partition.commit.failed


async def test_watchers_are_made_when_needed(world: World) -> None:
    """Thousands of partitions have nobody who waits."""
    partition = world.add("t")
    assert partition.fetch_watchers is None
    assert partition.produce_watchers is None
    assert partition.watch_fetch() is partition.watch_fetch()
    assert partition.watch_produce() is partition.produce_watchers
