"""Leader change at each step of copy and of delete: bucket and metadata agree afterwards (I14)."""

from collections.abc import Awaitable, Callable

import pytest

from tests.system.cluster.remote.remote_world import INTERVAL_MS, World, retention
from tiered.errors import RemoteStorageNotReadyError
from tiered.tasks.led_partition import NEXT_LEADER_MS

SEGMENTS = 8
LEAST_STEPS = 30
"""Of each kind of work; the product with the ways is above 200 runs."""

Begin = Callable[[World], Awaitable[None]]


async def begin_copy(world: World) -> None:
    """The leader is about to copy segments."""
    world.write(SEGMENTS)


async def begin_delete(world: World) -> None:
    """All is copied, most of it in remote storage only; retention is about to remove some."""
    world.write(SEGMENTS)
    await world.start()
    await world.run(10 * INTERVAL_MS)
    assert len(world.second.segments()) == SEGMENTS
    world.expire_local()
    assert world.second.log.local_log_start_offset > 0
    for broker in world.brokers:
        broker.update_config(**retention(keep_bytes=250))


async def strike(begin: Begin, way: str, step: int) -> tuple[World, bool]:
    """Change the leader in one way at a step; False: there was no such step."""
    world = World()
    await begin(world)
    struck = False
    base = world.first.steps

    def at(number: int) -> None:
        nonlocal struck
        if struck or number - base != step:
            return
        struck = True
        if way == "again":
            world.epoch += 1
            world.first.lead(world.epoch)
        elif way == "move":
            world.change_leader()
            world.depose()
        else:
            world.first.stop()
            world.change_leader()

    world.first.strike = at
    if not world.first.metadata._opened:
        await world.start()
    await world.run(8 * INTERVAL_MS)
    if not struck:
        return world, False
    world.write(1, None if way in ("move", "again") else [world.second])
    await world.run(6 * INTERVAL_MS)
    if way == "pause":
        world.first.wake()
        await world.run(INTERVAL_MS)
        world.depose()
        # What it has begun late is the next leader's to remove, once that knows it for such.
        await world.run(NEXT_LEADER_MS + 3 * INTERVAL_MS)
    return world, True


@pytest.mark.parametrize("way", ["kill", "pause", "move", "again"])
@pytest.mark.parametrize("begin", [begin_copy, begin_delete])
async def test_bucket_and_metadata_agree_whenever_the_leader_changes(
    begin: Begin, way: str
) -> None:
    runs = 0
    found: list[str] = []
    while True:
        world, struck = await strike(begin, way, runs + 1)
        if struck:
            leader = world.first if way == "again" else world.second
            report = await world.collect_garbage(leader)
            found += [f"step {runs + 1}: {one}" for one in world.problems(leader, report)]
        await world.close()
        if not struck:
            break
        runs += 1
    assert found == []
    assert runs >= LEAST_STEPS


async def test_who_may_collect_garbage_is_named_where_it_is_refused() -> None:
    """Of three brokers two are the wrong ones to be asked."""
    world = World()
    await world.start()
    try:
        with pytest.raises(RemoteStorageNotReadyError, match="varve topics describe"):
            await world.collect_garbage(world.second)
    finally:
        await world.close()
