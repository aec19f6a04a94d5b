"""A follower takes over what it needs from remote storage, and downloads no records."""

import asyncio

import pytest

from storage.log.log import Log
from tests.unit.storage.log.log_model import NOW_MS, append, make_batch, open_log
from tests.unit.tiered.metadata.segment_builder import FINISHED, STARTED, segment
from tests.unit.tiered.tasks.task_world import PARTITION, World, tiered_config
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.segment_metadata import RemoteLogSegmentMetadataUpdate, TopicIdPartition
from tiered.tasks.follower import EpochOffset, TierStateMachine, install_auxiliary_state


class Leader:
    """Answers as a leader with this log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.asked: list[int] = []

    async def earliest_local_offset(
        self, partition: TopicIdPartition, leader_epoch: int
    ) -> EpochOffset:
        offset = self.log.local_log_start_offset
        epoch = self.log.leader_epochs.epoch_for_offset(offset)
        assert epoch is not None
        return EpochOffset(epoch, offset)

    async def epoch_end_offset(
        self, partition: TopicIdPartition, leader_epoch: int, epoch: int
    ) -> EpochOffset:
        self.asked.append(epoch)
        return EpochOffset(*self.log.leader_epochs.end_offset_for(epoch, self.log.log_end_offset))


async def leading() -> World:
    """Epochs 0, 1 and 3 wrote one offset each, by an idempotent producer; all are remote only."""
    world = World()
    for sequence, epoch in enumerate((0, 1, 3)):
        batch = make_batch(b"x" * 40, producer_id=7, producer_epoch=2, base_sequence=sequence)
        append(world.log, batch, leader_epoch=epoch)
        world.log.writer.roll()
    world.log.flusher.flush()
    await world.start()
    await world.interval()
    world.expire_local()
    append(world.log, make_batch(b"local" * 8), leader_epoch=3)
    return world


def machine(world: World) -> TierStateMachine:
    return TierStateMachine(
        metadata=world.metadata,
        tier=world.tier,
        timer=world.timer,
        counters=world.manager.counters,
        call_timeout_ms=1000,
    )


def follower(world: World, directory: str = "/data/f-0") -> Log:
    return open_log(world.filesystem, tiered_config(), directory=directory, clock=world.clock)


async def start(world: World, log: Log, *, log_start: int = 0) -> int:
    """What a follower's repair does; the offset to fetch from next."""
    found = await machine(world).find(PARTITION, log, Leader(world.log), leader_epoch=3)
    install_auxiliary_state(log, found, log_start_offset=log_start, now_ms=NOW_MS)
    return log.log_end_offset


async def test_an_empty_follower_begins_after_the_remote_part() -> None:
    world = await leading()
    log = follower(world)
    assert await start(world, log) == 3
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 3, 3)
    assert (log.high_watermark, log.highest_remote_offset) == (3, 2)
    assert log.leader_epochs.entries() == [(0, 0), (1, 1), (3, 2)]
    entry = log.producer_state.last_entry(7)
    assert entry is not None
    assert (entry.epoch, entry.last_sequence) == (2, 2)
    # It is one log with what the leader sends next, and survives a restart.
    found = world.log.reader.read(3, max_bytes=999, end_offset=4, min_one_batch=True)
    assert found is not None
    log.follower.append(memoryview(found.file.read_at(found.length, found.position)))
    assert log.log_end_offset == 4
    log.flusher.flush()
    again = follower(world)
    assert again.log_end_offset == 4
    assert again.producer_state.last_entry(7) is not None
    assert world.manager.counters.of("t").build_aux_requests == 1


async def test_a_retry_is_still_known_after_it_becomes_the_leader() -> None:
    """What the producer snapshot is for: KIP-405's zombie."""
    world = await leading()
    log = follower(world)
    await start(world, log)
    retried = make_batch(b"x" * 40, producer_id=7, producer_epoch=2, base_sequence=2)
    info = log.writer.append_as_leader(retried, leader_epoch=4, now_ms=NOW_MS)
    assert info.duplicate
    assert log.log_end_offset == 3


async def test_a_stale_follower_loses_its_own_past() -> None:
    world = await leading()
    log = follower(world)
    append(log, make_batch(b"old" * 20), leader_epoch=0)
    append(log, make_batch(b"old" * 20), leader_epoch=2)
    assert await start(world, log, log_start=1) == 3
    assert log.log_start_offset == 1
    assert log.leader_epochs.entries() == [(1, 1), (3, 2)]


async def test_the_epoch_before_the_local_start_is_asked_for_across_a_gap() -> None:
    """Epoch 2 wrote nothing: the leader names epoch 1."""
    world = await leading()
    for lost in world.log.segment_facts():
        del lost
    leader = Leader(world.log)
    epoch, offset = await machine(world)._last_remote(PARTITION, leader, 3)
    assert (epoch, offset, leader.asked) == (3, 2, [2])


@pytest.mark.parametrize("end", [3, 9])
async def test_a_log_does_not_begin_behind_what_the_leader_does_not_have(end: int) -> None:
    """A past leader had copied it; the log would be cut, begin anew, and come here again."""
    world = await leading()
    beyond = segment(2, end, {3: 2}, number=99, state=STARTED)
    await world.metadata.add(beyond)
    await world.metadata.update(RemoteLogSegmentMetadataUpdate(beyond.segment_id, 0, FINISHED, 2))
    log = follower(world)
    append(log, make_batch(b"old" * 20), leader_epoch=0)
    leader = Leader(world.log)
    assert world.log.log_end_offset == 4
    # The leader has what ends at 3, of which there is no object in this test.
    with pytest.raises(RemoteStorageError) as raised:
        await machine(world).find(PARTITION, log, leader, leader_epoch=3)
    assert ("another history" in str(raised.value)) is (end == 9)
    assert isinstance(raised.value, ObjectNotFoundError) is (end == 3)
    assert leader.asked[-1] == 3
    assert log.log_end_offset == 1


@pytest.mark.parametrize("why", ["hidden", "unknown", "store", "corrupt", "hang"])
async def test_what_is_missing_is_a_reason_to_try_again_and_changes_nothing(why: str) -> None:
    world = await leading()
    log = follower(world)
    append(log, make_batch(b"old" * 20), leader_epoch=0)
    expected: type[Exception] = RemoteStorageError
    if why == "hidden":
        world.metadata.hidden.add(PARTITION)
        expected = RemoteStorageNotReadyError
    elif why == "unknown":
        world.metadata = type(world.metadata)()
        world.metadata.assign([PARTITION])
    elif why == "store":
        world.tier.fail("fetch_side_file", StoreUnavailableError("503"))
    elif why == "corrupt":
        for key, stored in world.bucket.segment_objects().items():
            if key.endswith(".indexes"):
                stored.data = stored.data.replace(b'"leaderEpoch": "30', b'"leaderEpoch": "7a')
        expected = CorruptRemoteDataError
    else:
        world.tier.hang("fetch_side_file")
        expected = StoreTimeoutError
    if why == "hang":
        task = asyncio.ensure_future(start(world, log))
        await world.drain()
        world.timer.advance(10_000)
        with pytest.raises(expected):
            await task
    else:
        with pytest.raises(expected):
            await start(world, log)
    assert (log.log_start_offset, log.log_end_offset) == (0, 1)
    assert world.manager.counters.of("t").build_aux_errors == 1


async def test_where_the_setting_is_not_known_the_leaders_log_says_enough() -> None:
    """It is not known yet, or was lost: the log has a remote part, also after a start."""
    world = await leading()
    log = follower(world)
    config = tiered_config(remote_storage_enable=False)
    log.update_config(config)
    end = await start(world, log)
    assert (log.log_start_offset, log.local_log_start_offset) == (0, end)
    assert log.has_remote_part
    log.update_config(tiered_config(remote_storage_enable=False, remote_log_delete_on_disable=True))
    assert not log.has_remote_part
