"""What the tests of histories share: what the bucket of a `World` says of its partition."""

from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.format.object_keys import ObjectKeys
from tiered.metadata.history import PartitionHistory

KEY = ObjectKeys().history_key(PARTITION)

INTERVAL_MS = 30_000


def told(world: World) -> PartitionHistory:
    """What a reader of the bucket finds."""
    found = world.history()
    assert found is not None
    return found


def offsets_told(world: World) -> list[tuple[int, int]]:
    """First and last offsets of the segments in it."""
    return [(one.start_offset, one.end_offset) for one in told(world).segments]


async def copied(segments: int) -> World:
    """A broker that has copied so many segments of a record each, and has told readers."""
    world = World()
    world.write(segments)
    await until_told(world, segments)
    return world


async def until_told(world: World, segments: int) -> None:
    """Start it, and let time pass until so many are copied and told."""
    await world.start()
    while len(world.finished()) < segments:
        await world.drain()
        await world.interval()
    await world.run(2 * INTERVAL_MS)
    assert len(told(world).segments) == segments
