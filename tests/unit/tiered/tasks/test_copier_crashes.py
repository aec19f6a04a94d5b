"""A broker that ends, is cancelled or is refused at any step of a copy or a removal.

One life is run to count its steps; then it is run again for each step and each kind of end. After
a restart over the same disk, bucket and metadata, one task interval and one garbage collection
must leave no object without an owner, no segment without its objects, and no offset unreadable.
"""

import asyncio

import pytest

from tests.effort import swept
from tests.unit.tiered.tasks.task_world import World, tiered_config
from tiered.errors import StoreUnavailableError

KINDS = ("crash", "cancel", "refuse")


class PowerOff(BaseException):
    """Nothing of the broker goes on."""


class Ending:
    """Ends the life at one step."""

    def __init__(self, at: int = -1, kind: str = "") -> None:
        self.at = at
        self.kind = kind
        self.count = 0
        self.is_off = False
        self.points: list[str] = []

    async def reach(self, point: str) -> None:
        if self.is_off:
            raise PowerOff(point)
        self.points.append(point)
        self.count += 1
        if self.count != self.at:
            return
        if self.kind == "crash":
            self.is_off = True
            raise PowerOff(point)
        if self.kind == "cancel":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        raise StoreUnavailableError(f"at {point}")


async def live(ending: Ending) -> World:
    """Copy, keep little locally, expire by size, by DeleteRecords, and copy again."""
    world = World(tiered_config(retention_bytes=600))
    world.reach = ending.reach
    try:
        world.write(3)
        await world.start()
        await world.interval()
        world.expire_local()
        world.check()
        world.write(4)
        await world.interval()
        world.expire_local()
        world.check()
        world.log.delete_records(world.log.log_start_offset + 2)
        await world.interval()
        world.expire_local()
        world.check()
        await world.interval()
        world.check()
    except PowerOff:
        pass
    return world


def _points() -> list[tuple[int, str]]:
    ending = Ending()
    asyncio.run(live(ending))
    steps = ending.count
    return [(at, kind) for kind in KINDS for at in range(1, steps + 1)]


POINTS = _points()


def test_there_are_enough_points() -> None:
    """The issue asks for at least 200."""
    assert len(POINTS) >= 200


async def _recover(world: World) -> None:
    world.reach = None
    await world.crash()
    await world.start()
    await world.interval(2)
    await world.collect_garbage()
    assert world.orphans() == []
    assert world.missing() == []
    world.check()
    world.expire_local()
    world.check()
    # The life goes on: nothing is stuck.
    world.write(2)
    await world.interval(2)
    world.check()
    end = world.log.log_end_offset
    assert world.log.highest_remote_offset == end - 1
    states = {state.name for _, _, state in world.states()}
    assert states <= {"COPY_SEGMENT_FINISHED"}
    await world.manager.stop()


@pytest.mark.parametrize("kind", KINDS)
async def test_every_point(kind: str) -> None:
    """See the module."""
    for at in swept([at for at, of_kind in POINTS if of_kind == kind], 3):
        ending = Ending(at, kind)
        world = await live(ending)
        try:
            await _recover(world)
        except AssertionError as error:
            raise AssertionError(f"{kind} at step {at}, {ending.points[at - 1]}") from error
