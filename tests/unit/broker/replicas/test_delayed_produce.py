"""Waiting for a commit: every partition for itself, one answer for all."""

import errno

import pytest

from broker.replicas.delayed_produce import DelayedCommit, DelayedProduce
from broker.replicas.partition import Partition
from broker.replicas.purgatory import Purgatory
from config.topic import TopicConfig
from protocol.error_codes import ErrorCode
from protocol.hot.produce import ProducePartitionResponse
from storage.errors import DiskError
from tests.unit.broker.world import World, batch

NOW_MS = 1_700_000_000_000


class Waiting:
    """A Produce of one record to each of some partitions, none of them committed yet."""

    def __init__(self, world: World, count: int = 2, timeout_ms: float = 1000) -> None:
        config = TopicConfig(flush_messages=1)
        self.partitions = [world.add(f"t{number}", config=config) for number in range(count)]
        self.responses = [ProducePartitionResponse(0, 0, 7) for _ in range(count)]
        self.answers = 0
        for partition in self.partitions:
            _hold(partition)
            partition.append(memoryview(batch(b"v")), NOW_MS)
        self.operation = DelayedProduce()
        for partition, response in zip(self.partitions, self.responses, strict=True):
            self.operation.wait_for(partition.waits(acks_all=True), 1, response)
        assert self.operation.seal(self._answer)
        self.purgatory = Purgatory("Produce", world.timer, capacity=10)
        assert self.purgatory.park(self.operation, timeout_ms)

    def _answer(self) -> None:
        self.answers += 1

    def commit(self, number: int) -> None:
        self.partitions[number]._flushed(1)

    @property
    def told(self) -> list[tuple[int, int]]:
        return [(r.error_code, r.base_offset) for r in self.responses]


def _hold(partition: Partition) -> None:
    """Keep its flushes from running: the test plays them."""
    partition.commit.flushing = True


@pytest.fixture
async def waiting(world: World) -> Waiting:
    return Waiting(world)


async def test_answered_when_the_last_is_committed(waiting: Waiting) -> None:
    waiting.commit(0)
    assert waiting.answers == 0
    waiting.commit(1)
    assert waiting.answers == 1
    assert waiting.told == [(0, 7), (0, 7)]
    assert waiting.purgatory.parked == 0


async def test_in_time_or_timed_out_each_for_itself(waiting: Waiting, world: World) -> None:
    """What is committed keeps its offset; the rest may be committed later, nobody knows."""
    waiting.commit(1)
    world.timer.advance(1000)
    assert waiting.answers == 1
    assert waiting.told == [(ErrorCode.REQUEST_TIMED_OUT, -1), (0, 7)]
    waiting.commit(0)
    assert waiting.answers == 1
    assert waiting.told[0] == (ErrorCode.REQUEST_TIMED_OUT, -1)


async def test_a_failed_flush_is_no_commit(waiting: Waiting) -> None:
    """Even if the high watermark is moved by something else meanwhile."""
    waiting.partitions[0].commit._fail(DiskError("cannot sync", "/data"))
    assert waiting.answers == 0
    waiting.commit(1)
    assert waiting.answers == 1
    assert waiting.told == [(ErrorCode.KAFKA_STORAGE_ERROR, -1), (0, 7)]


async def test_deleted_partitions_are_told_at_once(waiting: Waiting, world: World) -> None:
    world.replicas.remove_topic("t0")
    waiting.commit(1)
    assert waiting.answers == 1
    assert waiting.told == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1), (0, 7)]


async def test_partitions_of_a_failed_directory_are_told_at_once(
    waiting: Waiting, world: World
) -> None:
    """Also those whose own flush has not failed: their disk is out of service."""
    for partition in waiting.partitions:
        world.replicas.remove_partition(partition, ErrorCode.KAFKA_STORAGE_ERROR)
    assert waiting.answers == 1
    assert waiting.told == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)] * 2


class Told:
    def __init__(self) -> None:
        self.calls: list[tuple[ErrorCode, int]] = []

    def __call__(self, code: ErrorCode, offset: int) -> None:
        self.calls.append((code, offset))


@pytest.fixture
async def partition(world: World) -> Partition:
    made = world.add("t", config=TopicConfig(flush_messages=1))
    _hold(made)
    made.append(memoryview(batch(b"a")), NOW_MS)
    made.append(memoryview(batch(b"b")), NOW_MS)
    return made


async def test_coordinators_get_the_first_offset(partition: Partition) -> None:
    """When all of their batch is committed."""
    told = Told()
    partition.waits(acks_all=True).add(2, DelayedCommit(0, told), None)
    partition._flushed(1)
    assert told.calls == []
    partition._flushed(2)
    assert told.calls == [(ErrorCode.NONE, 0)]


async def test_coordinators_are_told_of_failures(partition: Partition, world: World) -> None:
    told = Told()
    late = DelayedCommit(0, told)
    late.complete(expired=True)
    partition.waits(acks_all=True).add(2, DelayedCommit(0, told), None)
    partition.commit._fail(DiskError("cannot sync", "/data"))
    partition.waits(acks_all=True).add(2, DelayedCommit(0, told), None)
    world.replicas.remove_topic("t")
    assert told.calls == [
        (ErrorCode.REQUEST_TIMED_OUT, -1),
        (ErrorCode.KAFKA_STORAGE_ERROR, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


async def test_a_part_that_is_lost_while_others_are_prepared_is_told_so(world: World) -> None:
    """Other records are given its offset before the request waits for anything."""
    lost, other, late = (world.add(f"t{number}") for number in range(3))
    responses = [ProducePartitionResponse(0, 0, 7) for _ in range(3)]
    answers: list[int] = []
    operation = DelayedProduce()
    operation.wait_for(lost.waits(acks_all=True), 1, responses[0])
    operation.wait_for(other.waits(acks_all=True), 1, responses[1])
    lost._write_failed(DiskError("no room", "/data", errno.ENOSPC))
    for partition in (lost, other):
        partition.append(memoryview(batch(b"v")), NOW_MS)
        assert partition.is_committed(1)
    operation.wait_for(late.waits(acks_all=True), 1, responses[2])
    assert operation.seal(lambda: answers.append(1))
    assert answers == []
    late.append(memoryview(batch(b"v")), NOW_MS)
    assert answers == [1]
    assert [(r.error_code, r.base_offset) for r in responses] == [
        (ErrorCode.KAFKA_STORAGE_ERROR, -1),
        (0, 7),
        (0, 7),
    ]


async def test_what_is_settled_before_it_is_sealed_waits_for_nothing(world: World) -> None:
    partition = world.add("t")
    operation = DelayedProduce()
    operation.wait_for(partition.waits(acks_all=True), 1, ProducePartitionResponse(0, 0, 7))
    partition.append(memoryview(batch(b"v")), NOW_MS)
    assert not operation.seal(lambda: pytest.fail("it is answered by its caller"))
