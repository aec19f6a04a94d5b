"""Partitions come, change their role and go; nothing of the past runs on, and nothing hangs."""

from tests.unit.tiered.tier_world import World, tiered_config


async def test_closed_segments_are_copied_in_order_and_then_leave_the_disk() -> None:
    """Local retention waits for the copy, and takes no more than what was copied."""
    world = World()
    world.write(3)
    assert world.expire_local() == 0
    await world.start()
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1), (2, 2)]
    assert world.log.highest_remote_offset == 2
    assert world.expire_local() == 3
    assert (world.log.log_start_offset, world.log.local_log_start_offset) == (0, 3)
    world.check()
    assert len(world.bucket.segment_objects()) == 9
    await world.manager.stop()
