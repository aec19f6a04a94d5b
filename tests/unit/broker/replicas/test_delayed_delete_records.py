"""DeleteRecords wait for the low watermark of live replicas."""

import asyncio
from typing import Any

import pytest

from broker.controller.images.partition_image import PartitionImage
from broker.replicas.delayed_delete_records import DelayedDeleteRecords
from broker.replicas.partition import Partition
from protocol.error_codes import ErrorCode
from protocol.messages.delete_records import DeleteRecordsPartitionResult
from tests.unit.broker.world import NODE_ID, World, batch

REPLICAS = (NODE_ID, 2, 3)


class Bench:
    """A partition with ten records, led with two followers; `live` may be in an ISR."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.live = {2, 3}
        world.replicas.terms.live_epoch = lambda node_id: 1 if node_id in self.live else None
        self.partition: Partition = world.add("t")
        self.partition.append(memoryview(batch(*[b"v"] * 10)), world.clock.now_ms())
        self.lead(1)
        self.answered = 0
        self.result = DeleteRecordsPartitionResult(
            partition_index=0, low_watermark=-1, error_code=0
        )
        self.delayed = DelayedDeleteRecords(self._answer)

    def _answer(self) -> None:
        self.answered += 1

    def lead(self, epoch: int, isr: tuple[int, ...] = REPLICAS, partition_epoch: int = 0) -> Any:
        state = PartitionImage(0, NODE_ID, epoch, partition_epoch, REPLICAS, isr)
        if partition_epoch:
            self.partition.update_isr(state)
        else:
            self.partition.become_leader(state, now_ms=0.0)
        return state

    def fetch(self, node_id: int, log_start: int) -> None:
        """A follower fetches at the end of its log, with this start."""
        leading = self.partition.leading
        assert leading is not None
        progress = leading.follower(node_id)
        assert progress is not None
        progress.fetched(10, log_start, 1, 10, 0.0)
        self.partition.follower_fetched(progress, 0.0)

    async def wait_for(self, offset: int) -> None:
        self.partition.log.delete_records(offset)
        self.delayed.wait_for(self.partition, offset, self.result)
        assert self.world.replicas.delayed_delete_records.park(self.delayed, 1_000)

    async def settled(self) -> tuple[int, ErrorCode, int]:
        await asyncio.sleep(0)
        return self.answered, ErrorCode(self.result.error_code), self.result.low_watermark


@pytest.fixture
async def bench(world: World) -> Bench:
    return Bench(world)


async def test_it_is_answered_when_every_live_replica_has_raised_its_start(bench: Bench) -> None:
    """With the low watermark; a fetch of one that has not raised it is not enough."""
    bench.fetch(2, 0)
    bench.fetch(3, 0)
    await bench.wait_for(6)
    bench.fetch(2, 6)
    bench.fetch(3, 5)
    assert (bench.answered, bench.partition.low_watermark) == (0, 5)
    bench.fetch(3, 6)
    assert await bench.settled() == (1, ErrorCode.NONE, 6)


async def test_a_follower_that_dies_is_not_waited_for(bench: Bench) -> None:
    """It follows the log start when it is back."""
    await bench.wait_for(6)
    bench.fetch(2, 6)
    assert bench.answered == 0
    bench.live.discard(3)
    bench.lead(1, (NODE_ID, 2), partition_epoch=1)
    assert await bench.settled() == (1, ErrorCode.NONE, 6)


async def test_a_member_of_the_isr_is_waited_for_though_its_lease_has_ended(bench: Bench) -> None:
    """It may live, and lead in a moment: clients would be shown what they were told is deleted."""
    await bench.wait_for(6)
    bench.fetch(2, 6)
    bench.live.discard(3)
    bench.partition.brokers_changed()
    assert bench.answered == 0
    bench.live.add(3)
    bench.fetch(3, 6)
    assert await bench.settled() == (1, ErrorCode.NONE, 6)


async def test_one_that_has_not_fetched_yet_is(bench: Bench) -> None:
    """A new leader knows of no log start."""
    assert bench.partition.low_watermark == -1
    await bench.wait_for(6)
    bench.fetch(2, 6)
    assert bench.answered == 0


async def test_who_leads_no_longer_says_so(bench: Bench) -> None:
    await bench.wait_for(6)
    bench.partition.become_follower(2, 2)
    assert await bench.settled() == (1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_in_time_or_not_at_all(bench: Bench) -> None:
    """The log start is raised all the same."""
    await bench.wait_for(6)
    bench.world.timer.advance(1_000)
    assert await bench.settled() == (1, ErrorCode.REQUEST_TIMED_OUT, -1)
    assert bench.partition.log.log_start_offset == 6
    bench.fetch(2, 6)
    bench.fetch(3, 6)
    assert bench.answered == 1


async def test_a_follower_outside_the_isr_that_dies_is_waited_for_no_more(bench: Bench) -> None:
    """No record of the partition changes with it: brokers do."""
    bench.fetch(2, 0)
    bench.fetch(3, 0)
    bench.lead(1, (NODE_ID, 2), partition_epoch=1)
    await bench.wait_for(6)
    bench.fetch(2, 6)
    bench.world.replicas.brokers_changed()
    assert await bench.settled() == (0, ErrorCode.NONE, -1)
    bench.live.discard(3)
    bench.world.replicas.brokers_changed()
    assert await bench.settled() == (1, ErrorCode.NONE, 6)
