"""What a metadata manager promises while partitions are assigned to it and taken away."""

import asyncio

import pytest

from tests.contract.metadata_manager.world import (
    FINISHED,
    P0,
    World,
    copy,
    same_metadata_partition,
    segment,
    settle,
    update,
)
from tiered.errors import RemoteStorageError, RemoteStorageNotReadyError, StoreUnavailableError
from tiered.metadata.records import encode_event


@pytest.mark.parametrize("through_snapshot", [False, True])
async def test_a_partition_assigned_late_has_all_its_segments(
    world: World, through_snapshot: bool
) -> None:
    """Its metadata partition was read long ago, for another one."""
    other = same_metadata_partition(P0, world.topic.partition_count)
    manager = await world.started(P0, other)
    await copy(manager, segment(0, 9, other), segment(10, 19, other))
    await copy(manager, segment(0, 9))
    if through_snapshot:
        await world.stop(manager)
    else:
        await world.crash(manager)

    manager = await world.started(P0)
    await copy(manager, segment(10, 19))
    assert not manager.is_ready(other)
    manager.assign([other])
    await asyncio.wait_for(manager.ready(other), 30)
    assert [m.start_offset for m in manager.segments(other)] == [0, 10]
    await copy(manager, segment(20, 29, other))
    assert manager.highest_offset(other, 0) == 29


async def test_events_of_a_partition_nobody_wants_reach_the_next_snapshot(world: World) -> None:
    other = same_metadata_partition(P0, world.topic.partition_count)
    manager = await world.started(P0, other)
    await copy(manager, segment(0, 9, other), segment(0, 9))
    await world.stop(manager)
    manager = await world.started(P0)
    await copy(manager, segment(10, 19))
    late = segment(10, 19, other)
    world.topic.put(
        world.metadata_partition, encode_event(late), encode_event(update(late, FINISHED))
    )
    await settle()
    await world.stop(manager)
    world.topic.trim(world.metadata_partition, world.topic.end(world.metadata_partition))
    manager = await world.started(P0, other)
    assert manager.highest_offset(other, 0) == 19
    assert manager.highest_offset(P0, 0) == 19
    assert len(manager.segments(other)) == 2


async def test_assigned_and_released_while_loading(world: World) -> None:
    """KAFKA-17766: it must not wait for anything."""
    manager = await world.started()
    await copy(manager, segment(0, 9))
    await world.crash(manager)
    manager = world.start()
    for _ in range(20):
        manager.assign([P0])
        waiting = asyncio.ensure_future(manager.ready(P0))
        await asyncio.sleep(0)
        was_ready = manager.is_ready(P0)
        manager.release([P0])
        result = await asyncio.wait_for(asyncio.gather(waiting, return_exceptions=True), 30)
        assert was_ready or isinstance(result[0], RemoteStorageNotReadyError)
        assert manager.partitions() == []
        assert not manager.is_ready(P0)
    manager.assign([P0])
    await asyncio.wait_for(manager.ready(P0), 30)
    assert len(manager.segments(P0)) == 1


async def test_closed_while_loading(world: World) -> None:
    manager = await world.started()
    await copy(manager, segment(0, 9))
    await world.crash(manager)
    world.topic.stop_serving(world.metadata_partition)
    manager = world.start()
    manager.assign([P0])
    waiting = asyncio.ensure_future(manager.ready(P0))
    await settle(3)
    closing = asyncio.ensure_future(world.stop(manager))
    manager.release([P0])
    manager.assign([P0])
    await asyncio.wait_for(closing, 30)
    with pytest.raises(RemoteStorageNotReadyError):
        await asyncio.wait_for(waiting, 30)
    with pytest.raises(RemoteStorageNotReadyError):
        manager.find(P0, 0, 0)


async def test_closed_while_something_is_told(world: World) -> None:
    manager = await world.started()
    world.topic.fail_read = StoreUnavailableError("no")
    telling = asyncio.ensure_future(manager.add(segment(0, 9)))
    await settle()
    await asyncio.wait_for(world.stop(manager), 30)
    with pytest.raises(RemoteStorageError):
        await asyncio.wait_for(telling, 30)


async def test_a_released_partition_is_not_ready_and_comes_back_whole(world: World) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    manager.release([P0])
    with pytest.raises(RemoteStorageNotReadyError):
        manager.segments(P0)
    manager.assign([P0])
    await manager.ready(P0)
    assert manager.segments(P0) == [a]


async def test_a_broker_that_leads_nothing_reads_what_it_wants(world: World) -> None:
    leader = await world.started()
    (a,) = await copy(leader, segment(0, 9))
    follower = world.start(leads=False)
    await settle()
    assert follower._readers == {}
    follower.assign([P0])
    await asyncio.wait_for(follower.ready(P0), 30)
    assert follower.segments(P0) == [a]
    (b,) = await copy(leader, segment(10, 19))
    await settle()
    assert follower.segments(P0) == [a, b]
    follower.release([P0])
    assert follower._readers == {}
    follower.assign([P0])
    await asyncio.wait_for(follower.ready(P0), 30)
    assert follower.segments(P0) == [a, b]
    leader.on_resigned(world.metadata_partition)
    assert leader.segments(P0) == [a, b]


async def test_loading_lets_the_loop_turn(world: World) -> None:
    manager = await world.started()
    values = []
    for n in range(3000):
        values.append(encode_event(metadata := segment(10 * n, 10 * n + 9)))
        values.append(encode_event(update(metadata, FINISHED)))
    world.topic.put(world.metadata_partition, *values)
    await settle(400)
    assert len(manager.segments(P0)) == 3000
    await world.stop(manager)
    manager = world.start()
    manager.assign([P0])
    turns = 0
    while not manager.is_ready(P0):
        turns += 1
        await asyncio.sleep(0)
    # From a snapshot of 3,000 segments, in slices of 250.
    assert turns >= 12
    assert len(manager.segments(P0)) == 3000
