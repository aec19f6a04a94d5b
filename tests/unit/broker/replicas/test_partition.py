"""One partition: who is fenced, when records count as committed, who is woken."""

from collections.abc import Callable

import pytest
from typing_extensions import override

from broker.controller.images.partition_image import PartitionImage
from broker.replicas.partition import Partition
from broker.replicas.purgatory import DelayedOperation
from broker.runtime.errors import ApiError
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from storage.errors import BatchTooLargeError
from tests.fakes.storage.failing_disk import FailingDisk
from tests.unit.broker.world import World, batch

NOW_MS = 1_700_000_000_000


class Waiting(DelayedOperation):
    """Looks, and always waits on."""

    def __init__(self, *, is_quick: bool = False) -> None:
        super().__init__()
        self.is_quick = is_quick
        self.looks = 0
        self.then: Callable[[], object] = lambda: None

    @override
    def try_complete(self) -> bool:
        self.looks += 1
        self.then()
        return False

    @override
    def on_complete(self, *, expired: bool) -> None:
        return


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
    partition._context.wake = woken.append
    append(partition, b"a")
    watchers = partition.watch_fetch()
    append(partition, b"a")
    assert woken == []
    watchers.add(Waiting())
    for _ in range(3):
        append(partition, b"b")
    assert woken == [partition]
    assert partition.wake_due


async def test_an_append_that_is_alone_wakes_at_once(world: World) -> None:
    """One that is quick, and waits alone; the others in the loop's next iteration."""
    partition = world.add("t")
    woken: list[Partition] = []
    partition._context.wake = woken.append
    watchers = partition.watch_fetch()
    for first, more, looks in (
        (Waiting(is_quick=True), [], 1),
        (Waiting(is_quick=False), [], 0),
        (Waiting(is_quick=True), [Waiting(is_quick=True)], 0),
    ):
        watchers.expire()
        partition.wake_due = False
        woken.clear()
        for waiting in (first, *more):
            watchers.add(waiting)
        partition.append(memoryview(batch(b"a")), NOW_MS, is_alone=True)
        assert [waiting.looks for waiting in (first, *more)] == [looks] * (1 + len(more))
        assert woken == ([] if looks else [partition])
        # It had not enough, and is there for the next one.
        assert len(watchers) == 1 + len(more)


async def test_what_is_appended_while_one_looks_is_not_missed(world: World) -> None:
    """It is watched by nobody in that moment, and will be again."""
    partition = world.add("t")
    woken: list[Partition] = []
    partition._context.wake = woken.append
    waiting = Waiting(is_quick=True)
    waiting.then = lambda: append(partition, b"b")
    partition.watch_fetch().add(waiting)
    partition.append(memoryview(batch(b"a")), NOW_MS, is_alone=True)
    assert waiting.looks == 1
    assert woken == [partition]


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
    assert (partition.commit_waits, partition.write_waits) == (None, None)
    assert partition.watch_fetch() is partition.watch_fetch()
    assert partition.waits(acks_all=True) is partition.commit_waits
    assert partition.waits(acks_all=False) is partition.commit_waits


def record(
    leader_epoch: int, isr: tuple[int, ...] = (1, 2, 3), *, partition_epoch: int = 0
) -> PartitionImage:
    """The record of a partition on three brokers, led by broker 1."""
    return PartitionImage(0, 1, leader_epoch, partition_epoch, (1, 2, 3), isr)


async def test_on_several_replicas_a_batch_is_committed_when_all_in_sync_have_it(
    world: World,
) -> None:
    partition = world.add("t")
    partition.become_leader(record(5), now_ms=0.0)
    append(partition, b"a", b"b")
    assert not partition.is_committed(1)
    leading = partition.leading
    assert leading is not None
    for follower in leading.followers:
        assert not partition.is_committed(1)
        follower.fetched(2, 0, 1, 2, 0.0)
        partition.advance_high_watermark(leading, 0.0)
    assert partition.is_committed(2)
    assert (partition.leader_id, partition.leader_epoch) == (1, 5)


async def test_the_high_watermark_moves_when_a_lagging_member_has_left(world: World) -> None:
    partition = world.add("t")
    partition.become_leader(record(5), now_ms=0.0)
    append(partition, b"a")
    partition.update_isr(record(5, (1,), partition_epoch=1))
    assert partition.is_committed(1)


async def test_a_later_epoch_forgets_what_followers_fetched(world: World) -> None:
    """Also when the leader stays."""
    partition = world.add("t")
    partition.become_leader(record(5), now_ms=0.0)
    assert partition.leading is not None
    partition.leading.followers[0].fetched(9, 0, 1, 9, 0.0)
    before = partition.role_number
    partition.become_leader(record(6), now_ms=0.0)
    assert partition.leading.followers[0].end_offset == -1
    assert partition.role_number > before


async def test_the_epoch_starts_at_the_log_end(world: World) -> None:
    partition = world.add("t")
    append(partition, b"a", b"b")
    partition.become_leader(record(5), now_ms=0.0)
    assert partition.leading is not None
    assert partition.leading.epoch_start_offset == 2
    assert partition.log.high_watermark == 2


async def test_a_follower_takes_no_appends(world: World) -> None:
    partition = world.add("t")
    partition.become_follower(2, 6)
    with pytest.raises(ApiError) as refused:
        append(partition, b"a")
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(ApiError):
        partition.append_markers([], NOW_MS)
    assert (partition.is_leader, partition.leader_id, partition.leader_epoch) == (False, 2, 6)
    assert partition.leading is None
    assert partition.log.log_end_offset == 0


async def test_a_flush_that_ends_after_leading_commits_nothing(world: World) -> None:
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    partition.commit.flushing = True
    append(partition, b"a")
    partition.become_follower(2, 6)
    partition._flushed(1)
    assert partition.log.high_watermark == 0


async def test_replicas_that_are_added_are_waited_for(world: World) -> None:
    partition = world.add("t")
    append(partition, b"a")
    partition.update_isr(PartitionImage(0, 1, 0, 1, (1, 2), (1,)))
    assert partition.leading is not None
    append(partition, b"b")
    assert partition.is_committed(2)
    partition.update_isr(PartitionImage(0, 1, 0, 2, (1, 2), (1, 2)))
    append(partition, b"c")
    assert not partition.is_committed(3)
    partition.update_isr(PartitionImage(0, 1, 0, 3, (1,), (1,)))
    assert partition.leading is None
    assert partition.is_committed(3)


async def test_a_new_leader_flushes_what_must_be_on_disk(world: World) -> None:
    """`flush.messages`: its own end counts up to the last flush."""
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    partition.commit.flushing = True
    append(partition, b"a")
    partition.commit.flushing = False
    partition.become_leader(record(5, (1,)), now_ms=0.0)
    assert not partition.is_committed(1)
    await world.until(lambda: partition.is_committed(1))
    assert partition.log.recovery_point == 1
