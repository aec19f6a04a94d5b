"""A parked fetch looks at the logs when it may be enough, and answers once."""

import pytest

from broker.delayed_fetch import DelayedFetch
from broker.partition import Partition
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.unit.broker.world import World, batch

VERSION = 12

NOW_MS = 1_700_000_000_000


class Reader:
    """Counts how often the logs are read, and answers when told to."""

    def __init__(self) -> None:
        self.reads: list[bool] = []
        self.enough = True
        self.here = True

    def read_and_answer(self, force: bool) -> bool:
        self.reads.append(force)
        return force or self.enough

    def is_here(self, _partition: Partition) -> bool:
        return self.here


@pytest.fixture
async def partition(world: World) -> Partition:
    return world.add("t")


def append(partition: Partition, value: bytes = b"v") -> int:
    """Write a batch; returns its bytes."""
    data = batch(value)
    partition.append(memoryview(data), NOW_MS)
    return len(data)


async def test_logs_are_read_when_so_much_has_come(partition: Partition) -> None:
    """A fetch of a thousand partitions is not read anew for every batch of each."""
    reader = Reader()
    size = append(partition)
    fetch = DelayedFetch([partition], 3 * size, reader.is_here, reader.read_and_answer)
    for _ in range(2):
        append(partition)
        assert not fetch.try_complete()
    assert reader.reads == []
    append(partition)
    assert fetch.try_complete()
    assert reader.reads == [False]
    assert fetch.completed


async def test_not_enough_after_all_goes_on_waiting(partition: Partition) -> None:
    """Bytes are counted per topic: another partition's do not help."""
    reader = Reader()
    reader.enough = False
    fetch = DelayedFetch([partition], 1, reader.is_here, reader.read_and_answer)
    append(partition)
    assert not fetch.try_complete()
    assert not fetch.completed
    reader.enough = True
    assert fetch.try_complete()
    assert reader.reads == [False, False]


async def test_time_is_up_answers_with_what_is_there(partition: Partition) -> None:
    reader = Reader()
    reader.enough = False
    fetch = DelayedFetch([partition], 1_000_000, reader.is_here, reader.read_and_answer)
    fetch.complete(expired=True)
    assert reader.reads == [True]
    assert not fetch.complete(expired=True)
    assert reader.reads == [True]


async def test_a_partition_that_is_gone_ends_it(partition: Partition) -> None:
    """Although nothing has come."""
    reader = Reader()
    fetch = DelayedFetch([partition], 1_000_000, reader.is_here, reader.read_and_answer)
    assert not fetch.try_complete()
    reader.here = False
    assert fetch.try_complete()
    assert reader.reads == [True]


def request(min_bytes: int, *indexes: int) -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in indexes
    ]
    return FetchRequest(
        max_wait_ms=1000,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic="t", partitions=partitions)],
    )


async def test_more_of_what_it_has_some_of_wakes_it(world: World) -> None:
    """`min_bytes` over partitions that are not empty, but hold too little."""
    first, second = world.add("t", 0), world.add("t", 1)
    size = append(first)
    world.send(ApiKey.FETCH, VERSION, request(2 * size, 0, 1))
    assert not world.has_answer
    append(first)
    await world.until(lambda: world.has_answer)
    answer = world.answer(ApiKey.FETCH, VERSION).responses[0].partitions
    assert [len(p.records or b"") for p in answer] == [2 * size, 0]
    # Nothing waits on either any more.
    assert world.replicas.delayed_fetch.parked == 0
    append(second)
    await world.until(lambda: not world.replicas._ready_to_wake)
    assert not world.has_answer


async def test_a_stop_answers_it_with_what_there_is(world: World) -> None:
    first = world.add("t", 0)
    size = append(first)
    world.send(ApiKey.FETCH, VERSION, request(1_000_000, 0))
    assert not world.has_answer
    world.replicas.answer_parked()
    (answer,) = world.answer(ApiKey.FETCH, VERSION).responses[0].partitions
    assert (answer.error_code, len(answer.records)) == (ErrorCode.NONE, size)
