"""The log start moves first, then segments are removed; nothing is stuck."""

from storage.environment.alerts import AlertKind
from tests.unit.tiered.metadata.segment_builder import FINISHED, STARTED, segment
from tests.unit.tiered.tasks.task_world import PARTITION, World, tiered_config, unfinished
from tiered.errors import StoreDeniedError, StoreUnavailableError
from tiered.maintenance.bucket_trouble import GARBAGE_LASTING_MS
from tiered.segment_metadata import (
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
)


async def copied(world: World, count: int, **timing: int) -> World:
    world.write(count, **timing)
    await world.start()
    await world.interval()
    assert len(world.finished()) == count
    return world


async def test_by_time_the_log_start_moves_before_anything_is_removed() -> None:
    world = World(tiered_config(retention_ms=100_000, local_retention_ms=-1))
    await copied(world, 3)
    world.expire_local()
    seen: list[int] = []

    async def look(point: str) -> None:
        if point in ("update", "delete_segment"):
            seen.append(world.log.log_start_offset)

    world.reach = look
    await world.run(60_000, 10_000)
    world.write(1)
    await world.run(60_000, 10_000)
    assert world.log.log_start_offset == 3
    assert world.log_start_moves == 1
    assert set(seen[2:]) == {3}
    assert world.finished() == [(3, 3)]


async def test_by_size_local_and_remote_count_together() -> None:
    world = World()
    await copied(world, 5)
    size = world.log.segment_facts()[0].size
    world.expire_local()
    world.set_config(retention_bytes=3 * size)
    await world.interval()
    assert world.finished() == [(2, 2), (3, 3), (4, 4)]
    assert world.log.log_start_offset == 2
    world.check()


async def test_copied_and_still_local_counts_once() -> None:
    world = World(tiered_config(local_retention_bytes=-1))
    await copied(world, 4)
    world.set_config(retention_bytes=4 * world.log.segment_facts()[0].size)
    await world.interval()
    assert len(world.finished()) == 4


async def test_delete_records_empties_the_bucket() -> None:
    world = World()
    await copied(world, 3)
    world.expire_local()
    world.log.delete_records(3)
    await world.interval()
    assert (world.states(), world.bucket.segment_objects()) == ([], {})
    (gauges,) = world.manager.gauges()
    assert (gauges.delete_lag_segments, gauges.metadata_count, gauges.remote_bytes) == (0, 0, 0)


async def test_no_policy_keeps_all() -> None:
    world = World(tiered_config(cleanup_policy=(), retention_ms=1, retention_bytes=0))
    await copied(world, 2)
    await world.interval()
    assert len(world.finished()) == 2


async def test_delete_lag_says_what_is_still_there() -> None:
    world = World()
    await copied(world, 3)
    world.expire_local()
    world.tier.fail("delete_segment", StoreDeniedError("403"), times=2)
    world.log.delete_records(2)
    await world.interval()
    (gauges,) = world.manager.gauges()
    left = [s for s in world.metadata.segments(PARTITION) if s.state is not FINISHED]
    assert gauges.delete_lag_segments == len(left)
    assert gauges.delete_lag_bytes == sum(s.segment_size_bytes for s in left)
    await world.interval(2)
    assert next(world.manager.gauges()).delete_lag_segments == 0
    assert world.finished() == [(2, 2)]
    assert world.manager.counters.of("t").delete_errors == 2


async def test_a_bucket_that_lets_nothing_go_for_ten_minutes_is_an_alert() -> None:
    """Until it lets a segment go: what has expired stays there meanwhile, and costs."""
    world = World()
    await copied(world, 3)
    world.expire_local()
    world.tier.fail("delete_segment", StoreDeniedError("403"), times=1_000)
    world.log.delete_records(2)
    await world.run(GARBAGE_LASTING_MS - 5_000)
    assert world.alerts.all() == []
    await world.run(100_000)
    (alert,) = world.alerts.all()
    assert (alert.kind, alert.subject) == (AlertKind.TIER_GARBAGE_STAYS, "removals")
    assert "403" in alert.text
    world.tier._faults.clear()
    await world.run(100_000)
    assert world.alerts.all() == []
    assert world.finished() == [(2, 2)]


async def test_one_segment_that_always_times_out_does_not_hold_up_the_others() -> None:
    world = World()
    await copied(world, 4)
    world.expire_local()
    first = world.metadata.segments(PARTITION)[0]

    async def refuse(point: str) -> None:
        dying = world.metadata.segments(PARTITION)[:1]
        if point == "delete_segment" and dying and dying[0].id == first.id:
            removed = world.tier.calls["delete_segment"]
            if removed == 1:
                raise StoreUnavailableError("always")

    world.reach = refuse
    world.log.delete_records(3)
    await world.interval()
    assert len(world.finished()) == 1
    assert world.log.log_start_offset == 3


async def test_an_overwritten_past_is_not_touched_above_the_log_start() -> None:
    """KAFKA-14888: an unclean leader has another history; retention.bytes is no reason."""
    world = World()
    past = segment(0, 40, {7: 0}, state=STARTED)
    await unfinished(world, past, whole=True)
    await world.metadata.update(
        RemoteLogSegmentMetadataUpdate(past.segment_id, 0, SegmentState.COPY_SEGMENT_FINISHED, 2)
    )
    world.leader_epoch = 9
    world.write(2)
    world.set_config(retention_bytes=100)
    await world.start()
    await world.interval()
    assert past.id in {s.id for s in world.metadata.segments(PARTITION)}
    assert next(world.manager.gauges()).unreferenced_segments == 1
    assert world.unreadable() == []
