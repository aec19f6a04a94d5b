"""A parked fetch looks at the logs when it may be enough, and answers once."""

import pytest

from broker.network.connection import PARKED_MAX
from broker.replicas.delayed_fetch import DelayedFetch
from broker.replicas.partition import Partition
from broker.replicas.purgatory import HELD_BACK_MS
from config.topic import TopicConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.control import build_end_transaction_marker
from storage.types.append_origin import AppendOrigin
from tests.unit.broker.world import World, batch

VERSION = 12

NOW_MS = 1_700_000_000_000


class Reader:
    """Counts how often the logs are read, and answers when told to."""

    def __init__(self) -> None:
        self.reads: list[bool] = []
        self.enough = True

    def read_and_answer(self, force: bool) -> bool:
        self.reads.append(force)
        return force or self.enough


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
    fetch = DelayedFetch([partition], 3 * size, reader.read_and_answer)
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
    fetch = DelayedFetch([partition], 1, reader.read_and_answer)
    append(partition)
    assert not fetch.try_complete()
    assert not fetch.completed
    reader.enough = True
    assert fetch.try_complete()
    assert reader.reads == [False, False]


async def test_time_is_up_answers_with_what_is_there(partition: Partition) -> None:
    reader = Reader()
    reader.enough = False
    fetch = DelayedFetch([partition], 1_000_000, reader.read_and_answer)
    fetch.complete(expired=True)
    assert reader.reads == [True]
    assert not fetch.complete(expired=True)
    assert reader.reads == [True]


async def test_a_partition_that_is_gone_ends_it(partition: Partition) -> None:
    """Although nothing has come."""
    reader = Reader()
    fetch = DelayedFetch([partition], 1_000_000, reader.read_and_answer)
    assert not fetch.try_complete()
    partition.resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
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


async def test_a_connection_parks_a_few(world: World) -> None:
    """Clients have one fetch under way; what is behind eight of them stays in the socket."""
    partition = world.add("t")
    for _ in range(20):
        world.send(ApiKey.FETCH, VERSION, request(1, 0))
    purgatory = world.replicas.delayed_fetch
    assert purgatory.parked == PARKED_MAX
    assert not world.h.reading
    assert world.h.connection.unwatched
    append(partition)
    await world.until(lambda: world.h.reading)
    while world.h.stream.incoming:
        world.h.poller.readable(world.h.stream.fd)
    for _ in range(20):
        answer = world.answer(ApiKey.FETCH, VERSION)
        assert answer.responses[0].partitions[0].records
    assert purgatory.parked == world.h.connection.parked == 0
    assert world.replicas.parked_by_address.counts == {}


async def test_a_fetch_that_finds_no_room_is_answered_later(world: World) -> None:
    """With what is there by then, although nothing has watched; its connection waits meanwhile."""
    partition = world.add("t")
    world.replicas.delayed_fetch.capacity = 0
    world.send(ApiKey.FETCH, VERSION, request(1, 0))
    world.send(ApiKey.FETCH, VERSION, request(1, 0))
    assert world.replicas.delayed_fetch.held_back == 1
    assert not world.h.reading
    size = append(partition)
    await world.until(lambda: not world.replicas.waker.is_busy)
    world.timer.advance(HELD_BACK_MS - 1)
    assert not world.has_answer
    world.timer.advance(1)
    assert world.h.reading
    (answer,) = world.answer(ApiKey.FETCH, VERSION).responses[0].partitions
    assert len(answer.records) == size


async def test_deleting_a_topic_ends_those_who_wait_in_slices(world: World) -> None:
    """All at once they would hold the loop as an append would."""
    partition = world.add("t")
    reader = Reader()
    reader.enough = False
    waits = [DelayedFetch([partition], 1, reader.read_and_answer) for _ in range(1000)]
    for wait in waits:
        partition.watch_fetch().add(wait)
    begin_ms = world.clock.monotonic_ms()
    for wait in waits:
        wait._read_and_answer = lambda _force: world.clock.advance(0.1) or True  # type: ignore[func-returns-value]  # a read takes time
    world.replicas.remove_topic("t")
    assert world.clock.monotonic_ms() - begin_ms < 5
    await world.until(lambda: not world.replicas.waker.is_busy)
    assert all(wait.completed for wait in waits)


async def test_a_stop_answers_it_with_what_there_is(world: World) -> None:
    first = world.add("t", 0)
    size = append(first)
    world.send(ApiKey.FETCH, VERSION, request(1_000_000, 0))
    assert not world.has_answer
    world.replicas.answer_parked()
    (answer,) = world.answer(ApiKey.FETCH, VERSION).responses[0].partitions
    assert (answer.error_code, len(answer.records)) == (ErrorCode.NONE, size)


def end(partition: Partition, pid: int = 9) -> None:
    """A marker."""
    marker = build_end_transaction_marker(
        producer_id=pid, producer_epoch=0, commit=True, coordinator_epoch=0, timestamp_ms=NOW_MS
    )
    partition.append(memoryview(marker), NOW_MS, AppendOrigin.COORDINATOR)


def begin(partition: Partition, size: int = 1000, pid: int = 9) -> None:
    """The first batch of a transaction."""
    data = batch(
        b"v" * size, transactional=True, producer_id=pid, producer_epoch=0, base_sequence=0
    )
    partition.append(memoryview(data), NOW_MS)


async def test_a_marker_makes_readable_what_was_there(partition: Partition) -> None:
    """It is small, and what it lets through is not: readers of committed data look at once."""
    begin(partition)
    committed, dirty = Reader(), Reader()
    waiting = DelayedFetch([partition], 900, committed.read_and_answer, committed_only=True)
    other = DelayedFetch([partition], 900, dirty.read_and_answer)
    assert not waiting.try_complete()
    end(partition)
    assert waiting.try_complete()
    assert not other.try_complete()


async def test_a_marker_that_lets_nothing_through(partition: Partition) -> None:
    """An older transaction is open: nothing is read."""
    begin(partition)
    begin(partition, pid=10)
    reader = Reader()
    fetch = DelayedFetch([partition], 900, reader.read_and_answer, committed_only=True)
    end(partition, pid=10)
    assert not fetch.try_complete()
    assert reader.reads == []


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_the_disk_catches_up(world: World, isolation_level: int) -> None:
    """Records that came before the fetch, and are on disk after it, are told when they are."""
    partition = world.add("t", config=TopicConfig(flush_messages=1))
    append(partition)
    assert partition.log.high_watermark == 0
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=30_000,
        min_bytes=1,
        isolation_level=isolation_level,
        topics=[
            FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=99)])
        ],
    )
    world.send(ApiKey.FETCH, VERSION, request)
    assert not world.has_answer
    await world.until(lambda: world.has_answer)
    answer = world.answer(ApiKey.FETCH, VERSION)
    assert answer.responses[0].partitions[0].records
