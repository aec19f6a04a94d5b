"""Without metadata there is nothing to say of the bucket."""

from tests.unit.tiered.metadata.segment_builder import PARTITION, STARTED, segment
from tests.unit.tiered.tasks.task_world import World
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.partition_gauges import gauges_of


async def test_gauges_with_and_without_metadata() -> None:
    world = World()
    world.write(2)
    led = LedPartition(world.tiered(), delete_lag_segments=3, unreferenced_segments=1)
    gauges = gauges_of(led, world.metadata)
    assert (gauges.copy_lag_segments, gauges.metadata_count, gauges.remote_bytes) == (2, 0, 0)
    assert (gauges.delete_lag_segments, gauges.unreferenced_segments) == (3, 1)
    world.metadata.assign([PARTITION])
    await world.metadata.add(segment(0, 0, state=STARTED))
    gauges = gauges_of(led, world.metadata)
    assert (gauges.metadata_count, gauges.remote_bytes) == (1, 0)
    assert not gauges.is_blocked
    assert not gauges.stopped_copying
