"""A log begins behind what its leader has in remote storage only, with the state of that (109)."""

import asyncio
import errno
from typing import Any

import pytest

from protocol.error_codes import ErrorCode
from storage.errors import DiskError
from storage.log.log import Log
from storage.log.truncation import StateBelow
from storage.producers.snapshot import encode_rows
from tests.fakes.network.peers import requests_of
from tests.unit.broker.replication.fetcher.fetcher_world import (
    EPOCH,
    OTHER,
    FakeFollower,
    FetcherWorld,
    asked,
    data,
    records_at,
)
from tests.unit.broker.replication.fetcher.test_replica_fetcher import offset_answer
from tiered.errors import RemoteStorageNotReadyError
from tiered.segment_metadata import TopicIdPartition

NOW_MS = 1_700_000_000_000


def below(next_offset: int = 40) -> StateBelow:
    """What lies before an offset: two epochs, and a producer that wrote the last record."""
    row = (7, 2, 9, next_offset - 1, 0, NOW_MS, -1, -1)
    return StateBelow(next_offset, ((1, 0), (3, 20)), encode_rows([(row,)], 1))


class Remote:
    """Remote storage that answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[TopicIdPartition, int]] = []
        self.answers: list[asyncio.Future[StateBelow]] = []

    async def state_below(
        self, partition: TopicIdPartition, _log: Log, _leader: Any, *, leader_epoch: int
    ) -> StateBelow:
        self.asked.append((partition, leader_epoch))
        answer: asyncio.Future[StateBelow] = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        return await answer


def moved(index: int = 0, *, log_start: int = 10) -> Any:
    """The leader's answer: it has the offset, but not on its disk."""
    answer = data(index, error=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
    answer.log_start_offset, answer.high_watermark = log_start, 50
    return answer


@pytest.fixture
def world() -> FetcherWorld:
    world = FetcherWorld(backoff_ms=1000)
    world.repair.remote = Remote()
    return world


def remote_of(world: FetcherWorld) -> Remote:
    remote = world.repair.remote
    assert isinstance(remote, Remote)
    return remote


async def test_log_begins_behind_the_remote_part_with_its_epochs_and_producers(
    world: FetcherWorld,
) -> None:
    """And is fetched from there, as one that has the epoch before."""
    partition = FakeFollower()
    partition.lead(b"old", epoch=1)
    world.answer(world.following(partition), moved())
    await world.turns()
    remote = remote_of(world)
    assert remote.asked == [(TopicIdPartition(partition.topic_id, "t", 0), EPOCH)]
    assert partition.end == 1
    remote.answers[0].set_result(below())
    await world.turns()
    log = partition.log
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (10, 40, 40)
    assert (log.high_watermark, log.highest_remote_offset) == (40, 39)
    assert log.leader_epochs.entries() == [(1, 10), (3, 20)]
    entry = log.producer_state.last_entry(7)
    assert entry is not None
    assert asked(world.sent()[-1][1]) == {0: (40, EPOCH, 3)}
    assert (world.stats.moved_to_remote, world.stats.rebuilt_from_remote) == (1, 1)


async def test_other_partitions_are_fetched_while_remote_storage_is_slow(
    world: FetcherWorld,
) -> None:
    slow, quick = FakeFollower(0), FakeFollower(1)
    waiting = world.following(slow, quick)
    world.answer(waiting, moved(), data(1, records_at(0, b"a")))
    await world.turns()
    waiting, fetch = world.one_sent()
    assert asked(fetch) == {1: (1, EPOCH, EPOCH)}
    world.answer(waiting, data(1, records_at(1, b"b")))
    assert quick.end == 2
    assert slow.truncations == 0


@pytest.mark.parametrize("why", ["not ready", "no remote storage"])
async def test_what_is_missing_is_asked_for_again_and_the_log_stays(
    world: FetcherWorld, why: str
) -> None:
    """It never begins without its past; a Fetch comes first, since the leader may be another."""
    remote = remote_of(world)
    if why == "no remote storage":
        world.repair.remote = None
    partition = FakeFollower()
    partition.lead(b"old", epoch=1)
    world.answer(world.following(partition), moved())
    await world.turns()
    if why == "not ready":
        remote.answers[0].set_exception(RemoteStorageNotReadyError("metadata is being read"))
        await world.turns()
    assert (partition.end, partition.truncations) == (1, 0)
    world.sent()
    world.timer.advance(990)
    assert world.sent() == []
    world.timer.advance(20)
    world.repair.remote = remote
    waiting, fetch = world.one_sent()
    assert asked(fetch) == {0: (1, EPOCH, 1)}
    world.answer(waiting, moved())
    await world.turns()
    remote.answers[-1].set_result(below())
    await world.turns()
    assert partition.end == 40


async def test_a_role_that_has_ended_meanwhile_leaves_the_log_alone(world: FetcherWorld) -> None:
    """It may lead by now."""
    partition = FakeFollower()
    partition.lead(b"old", epoch=1)
    world.answer(world.following(partition), moved())
    await world.turns()
    partition.take_other_role()
    world.fetchers.follow(partition, OTHER)
    remote_of(world).answers[0].set_result(below())
    await world.turns()
    assert (partition.end, partition.truncations) == (1, 0)


async def test_a_failed_disk_ends_the_partition(world: FetcherWorld) -> None:
    partition = FakeFollower()
    world.answer(world.following(partition), moved())
    await world.turns()
    partition.error = DiskError("the disk has failed", "/data", errno.EIO)
    remote_of(world).answers[0].set_result(below())
    await world.turns()
    assert world.fetchers.failed_partitions == 1


async def test_a_stop_does_not_wait_for_remote_storage(world: FetcherWorld) -> None:
    partition = FakeFollower()
    world.answer(world.following(partition), moved())
    await world.turns()
    await asyncio.wait_for(world.fetchers.close(), 1)
    assert remote_of(world).answers[0].cancelled()


async def test_waits_grow_while_remote_storage_is_away(world: FetcherWorld) -> None:
    """From `replica.fetch.backoff.ms` on, up to eight times that."""
    world.repair.remote = None
    waiting = world.following(FakeFollower())
    waits = []
    for _ in range(5):
        world.answer(waiting, moved())
        await world.turns()
        world.sent()
        began_ms = world.timer.clock.monotonic_ms()
        while not (sent := [request for request in world.sent() if asked(request[1])]):
            world.timer.advance(100)
        waits.append(round((world.timer.clock.monotonic_ms() - began_ms) / 1000))
        waiting = sent[-1][0]
    assert waits == [1, 2, 4, 8, 8]


async def test_a_log_that_would_be_cut_within_its_remote_part_starts_over(
    world: FetcherWorld,
) -> None:
    """After an unclean election: cut, it would have neither epochs nor producers of its past.

    Where the leader's log begins, the leader says that it has moved to remote storage.
    """
    partition = FakeFollower()
    world.answer(world.following(partition), moved())
    await world.turns()
    remote_of(world).answers[0].set_result(below(40))
    await world.turns()
    waiting, _ = world.sent()[-1]
    world.answer(waiting, data(0, diverging=(1, 15)))
    await world.turns()
    stream = world.connector.connects[-1].accept(fd=150)
    (request,) = requests_of(stream)
    world.receive(stream, offset_answer(request, 10))
    await world.turns()
    assert (partition.log.log_start_offset, partition.end) == (10, 10)
    waiting, fetch = world.sent()[-1]
    assert asked(fetch) == {0: (10, EPOCH, -1)}
    world.answer(waiting, moved())
    await world.turns()
    remote_of(world).answers[-1].set_result(below(15))
    await world.turns()
    assert (partition.log.log_start_offset, partition.end) == (10, 15)


async def test_one_that_moves_on_again_and_again_is_slowed_down(world: FetcherWorld) -> None:
    """A leader that drops its segments faster than they are fetched is not asked without end."""
    partition = FakeFollower()
    waiting = world.following(partition)
    for number in range(5):
        world.answer(waiting, moved())
        await world.turns()
        remote_of(world).answers[-1].set_result(below(40 + number))
        await world.turns()
        sent = world.sent()
        if number < 4:
            waiting = sent[-1][0]
    assert all(asked(fetch) == {} for _, fetch in sent)
    world.timer.advance(1010)
    assert asked(world.sent()[-1][1]) == {0: (44, EPOCH, 3)}
