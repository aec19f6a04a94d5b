"""What a metadata manager promises of starts: nothing before all is read, then all of it."""

import asyncio

import pytest

from tests.contract.metadata_manager.world import (
    FINISHED,
    P0,
    World,
    copy,
    history,
    picture,
    same_metadata_partition,
    segment,
    settle,
    update,
)
from tiered.errors import RemoteStorageError, RemoteStorageNotReadyError, StoreUnavailableError


async def test_not_assigned_is_not_ready(world: World) -> None:
    manager = await world.started()
    other = same_metadata_partition(P0, world.topic.partition_count)
    assert not manager.is_ready(other)
    for look in (
        lambda: manager.find(other, 0, 0),
        lambda: manager.find_at_or_after(other, 0, 0),
        lambda: manager.find_unfinished(other, 0, 0),
        lambda: manager.find_next_with_transactions(other, 0, 0),
        lambda: manager.highest_offset(other, 0),
        lambda: manager.segments(other),
        lambda: manager.size(other),
    ):
        with pytest.raises(RemoteStorageNotReadyError):
            look()
    with pytest.raises(RemoteStorageNotReadyError):
        await manager.ready(other)
    with pytest.raises(RemoteStorageNotReadyError):
        await manager.add(segment(0, 9, other))
    with pytest.raises(RemoteStorageNotReadyError):
        await manager.update(update(segment(0, 9, other), FINISHED))
    assert manager.partitions() == [P0]


async def test_not_ready_before_all_is_read(world: World) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    await world.crash(manager)

    manager = world.start()
    world.topic.stop_serving(world.metadata_partition)
    manager.assign([P0])
    waiting = asyncio.ensure_future(manager.ready(P0))
    await settle()
    assert not manager.is_ready(P0)
    assert not waiting.done()
    with pytest.raises(RemoteStorageNotReadyError, match="still being read"):
        manager.find(P0, 0, 5)
    world.topic.serve(world.metadata_partition)
    await waiting
    assert manager.find(P0, 0, 5) == a


async def test_the_topic_may_come_late(world: World) -> None:
    world.topic.fail_open = RemoteStorageError("no controller yet")
    manager = world.start()
    manager.assign([P0])
    waiting = asyncio.ensure_future(manager.ready(P0))
    await settle()
    assert not manager.is_ready(P0)
    world.topic.fail_open = None
    world.timer.advance(200)
    await asyncio.wait_for(waiting, 30)
    assert manager.segments(P0) == []


async def test_trouble_while_loading_is_waited_out(world: World) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    await world.crash(manager)
    world.topic.fail_read = StoreUnavailableError("later")
    manager = world.start()
    manager.assign([P0])
    await settle()
    assert not manager.is_ready(P0)
    world.topic.fail_read = None
    world.timer.advance(1000)
    await asyncio.wait_for(manager.ready(P0), 30)
    assert manager.segments(P0) == [a]


@pytest.mark.parametrize("way", ["stop", "crash"])
async def test_a_restart_changes_nothing(world: World, way: str) -> None:
    manager = await world.started()
    left = await history(manager)
    assert len(left) == 5
    before = picture(manager)
    await getattr(world, way)(manager)
    assert bool(world.snapshot_names()) == (way == "stop")
    world.topic.read_records = 0
    manager = await world.started()
    assert picture(manager) == before
    assert world.topic.read_records == (0 if way == "stop" else 14)


async def test_a_start_reads_what_came_after_the_snapshot(world: World) -> None:
    manager = await world.started()
    await history(manager)
    await world.stop(manager)
    manager = await world.started()
    await copy(manager, segment(100, 109, epochs=((3, 100),)))
    before = picture(manager)
    await world.crash(manager)
    world.topic.read_records = 0
    manager = await world.started()
    assert world.topic.read_records == 2
    assert picture(manager) == before


async def test_snapshots_are_taken_every_so_many_events(world: World) -> None:
    manager = await world.started(snapshot_events=10)
    for n in range(12):
        await copy(manager, segment(10 * n, 10 * n + 9))
    await settle()
    names = world.snapshot_names()
    assert len(names) == 2
    assert manager.stats.snapshots_written == 2
    before = picture(manager)
    await world.crash(manager)
    world.topic.read_records = 0
    manager = await world.started()
    assert picture(manager) == before
    assert world.topic.read_records <= 4


async def test_snapshots_are_taken_every_so_often_if_there_is_anything_new(world: World) -> None:
    manager = await world.started(snapshot_interval_ms=1000)
    world.timer.advance(1000)
    await settle()
    assert world.snapshot_names() == []
    await copy(manager, segment(0, 9))
    world.timer.advance(1000)
    await settle()
    assert len(world.snapshot_names()) == 1
    world.timer.advance(5000)
    await settle()
    assert manager.stats.snapshots_written == 1


async def test_a_snapshot_that_cannot_be_written_is_tried_again_later(world: World) -> None:
    manager = await world.started(snapshot_interval_ms=1000, snapshot_events=2)
    if world.kind == "local":
        world.filesystem.fail("write", 28, path="snapshot", times=1)
    else:
        world.tier.failures["put_object"] = StoreUnavailableError("503")
    (a,) = await copy(manager, segment(0, 9))
    await settle()
    assert manager.stats.snapshot_failures == 1
    assert manager.find(P0, 0, 5) == a
    world.tier.failures.clear()
    world.timer.advance(1000)
    await settle()
    assert manager.stats.snapshots_written == 1


async def test_a_snapshot_that_hangs_harms_nobody_else(world: World) -> None:
    if world.kind == "local":
        pytest.skip("a directory does not hang")
    manager = await world.started(snapshot_events=2, stop_max_ms=500)
    world.tier.gate("put_object").close()
    for n in range(5):
        await copy(manager, segment(10 * n, 10 * n + 9))
    assert len(manager.segments(P0)) == 5
    closing = asyncio.ensure_future(world.stop(manager))
    await settle()
    assert not closing.done()
    world.timer.advance(505)
    await asyncio.wait_for(closing, 30)
