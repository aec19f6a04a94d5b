"""Partitions come, change their role and go; nothing of the past runs on, and nothing hangs."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

from storage.environment.alerts import AlertKind
from tests.unit.storage.log.log_model import append, make_batch, open_log
from tests.unit.tiered.tasks.task_world import PARTITION, World, tiered_config
from tiered.errors import StoreUnavailableError
from tiered.segment_metadata import SegmentState, TopicIdPartition
from tiered.tasks.partition_tasks import PartitionState


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


async def test_nothing_begins_before_the_metadata_is_visible() -> None:
    """KAFKA-19523, 19599: not ready is not the same as not there, and costs no storm."""
    world = World()
    world.write(1)
    world.metadata.hidden.add(PARTITION)
    await world.start()
    await world.run(60_000, 5_000)
    assert world.manager.partition_states() == {PartitionState.STARTING: 1}
    assert world.timer.pending <= 5
    world.metadata.hidden.clear()
    await world.run(200)
    assert world.finished() == [(0, 0)]


async def test_the_next_leader_goes_on_where_the_last_one_stopped() -> None:
    world = World()
    world.write(3)
    await world.start()
    await world.interval()
    world.expire_local()
    world.log_start_checkpoint = 0
    await world.crash()
    world.write(1)
    await world.start()
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert world.log.log_start_offset == 0
    world.check()


async def test_a_log_start_that_a_crash_forgot_is_found_again() -> None:
    """Up to what is on the disk still: that is copied again, as nothing says why it was removed."""
    world = World()
    world.write(4)
    await world.start()
    await world.interval()
    world.log.highest_remote_offset = 0
    world.expire_local()
    world.log.highest_remote_offset = 3
    assert world.log.local_log_start_offset == 1
    world.log.delete_records(2)
    await world.interval()
    assert world.finished() == [(2, 2), (3, 3)]
    world.log_start_checkpoint = 0
    await world.crash()
    assert world.log.log_start_offset == 0
    await world.start()
    assert (world.log.log_start_offset, world.log_start_moves) == (1, 1)
    await world.interval()
    assert world.finished() == [(1, 1), (2, 2), (3, 3)]


async def test_a_follower_only_learns_how_far_the_leader_is() -> None:
    world = World()
    world.write(2)
    await world.start()
    await world.interval()
    await world.crash()
    world.log.highest_remote_offset = -1
    world.manager.start()
    world.manager.on_follower(world.tiered())
    await world.run(200)
    assert world.log.highest_remote_offset == 1
    assert world.manager.partition_states() == {PartitionState.FOLLOWING: 1}
    world.write(1)
    await world.interval(2)
    assert world.finished() == [(0, 0), (1, 1)]
    assert list(world.manager.gauges()) == []
    world.lead()
    await world.interval()
    assert world.finished()[-1] == (2, 2)


async def test_a_role_begins_only_when_the_last_one_has_ended() -> None:
    world = World()
    world.write(1)
    ends = asyncio.Event()

    async def stubborn(point: str) -> None:
        if point == "log uploaded":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await ends.wait()
                raise

    world.reach = stubborn
    await world.start()
    world.lead()
    await world.run(1000, 100)
    assert world.manager.partition_states() == {PartitionState.STARTING: 1}
    world.reach = None
    ends.set()
    await world.run(200)
    assert world.manager.partition_states() == {PartitionState.LEADING: 1}
    await world.interval(2)
    assert world.finished() == [(0, 0)]


async def test_a_stopped_partition_is_released() -> None:
    world = World()
    await world.start()
    world.manager.on_stop(PARTITION, delete_remote=False)
    world.manager.on_stop(PARTITION, delete_remote=False)
    await world.run(0)
    assert world.metadata.partitions() == []
    assert world.manager.tasks_of(PARTITION) is None
    world.lead()
    await world.run(0)
    assert world.manager.partition_states() == {PartitionState.LEADING: 1}
    world.manager.on_stop(PARTITION, delete_remote=False)
    world.lead()
    await world.run(0)
    assert world.manager.partition_states() == {PartitionState.LEADING: 1}
    world.manager.on_stop(PARTITION, delete_remote=True)
    world.lead()
    await world.run(1000, 100)
    assert world.manager.partition_states() == {}


async def test_settings_hold_at_once() -> None:
    world = World()
    await world.start()
    world.update(
        remote_log_manager_copier_thread_pool_size=1,
        remote_log_manager_expiration_thread_pool_size=3,
        remote_log_manager_follower_thread_pool_size=4,
    )
    pools = (world.manager.copier_pool, world.manager.expiration_pool, world.manager.follower_pool)
    assert [pool.size for pool in pools] == [1, 3, 4]
    world.update(remote_log_manager_task_interval_ms=1000)
    await world.interval()
    await world.run(30_000, 10_000)
    world.write(1)
    await world.run(1001)
    assert world.finished() == [(0, 0)]


async def test_thousands_of_idle_partitions_cost_timers_and_no_tasks() -> None:
    """Two timers each; a job only where there is something to do."""
    world = World()
    append(world.log, make_batch(b"x"))
    world.manager.start()
    partitions = [PARTITION._replace(topic_id=UUID(int=9), partition=n) for n in range(1000)]
    for partition in partitions:
        world.manager.on_leadership(replace(world.tiered(), partition=partition))
    before = len(asyncio.all_tasks())
    await world.run(100, 10)
    assert world.manager.partition_states() == {PartitionState.LEADING: 1000}
    await world.interval(3)
    assert len(asyncio.all_tasks()) == before
    assert world.timer.pending <= 2 * 1000 + 5
    assert sum(world.tier.calls.values()) == 0


async def test_partitions_with_many_segments_do_not_hold_up_the_loop_together() -> None:
    """They are taken up, and see new settings, one after the other, with turns in between."""
    world = World()
    world.update(tier_history_interval_ms=0)
    append(world.log, make_batch(b"x"))
    segments, looks = world.metadata.segments, 0

    def slow(partition: TopicIdPartition, epoch: int | None = None) -> Any:
        nonlocal looks
        looks += 1
        world.clock.advance(3)
        return segments(partition, epoch)

    known_of = world.metadata.known_of

    def slow_look(partition: TopicIdPartition) -> Any:
        slow(partition)
        return known_of(partition)

    world.metadata.segments = slow  # type: ignore[method-assign]  # as with very many of them
    world.metadata.known_of = slow_look  # type: ignore[method-assign]  # likewise
    world.manager.start()
    partitions = [PARTITION._replace(topic_id=UUID(int=9), partition=n) for n in range(50)]
    for partition in partitions:
        world.manager.on_leadership(replace(world.tiered(), partition=partition))
    world.timer.advance(0)
    assert 1 <= looks <= 6
    await world.run(1000, 5)
    assert world.manager.partition_states() == {PartitionState.LEADING: 50}
    looks = 0
    for partition in partitions:
        world.manager.on_config_change(partition)
    world.timer.advance(0)
    assert 1 <= looks <= 6
    await world.run(1000, 5)
    assert looks == 50


async def test_failures_of_one_partition_back_off_and_leave_others_alone() -> None:
    world = World()
    world.write(1)
    other = PARTITION._replace(partition=1)
    log = open_log(world.filesystem, tiered_config(), directory="/data/t-1", clock=world.clock)
    append(log, make_batch(b"y" * 40))
    log.writer.roll()
    log.flusher.flush()

    async def fail(point: str) -> None:
        present = world.bucket.segment_objects()
        if point == "log uploaded" and len(present) % 3 == 1 and any("/0/" in k for k in present):
            raise StoreUnavailableError("down")

    world.reach = fail
    world.manager.on_leadership(replace(world.tiered(), partition=other, log=log))
    await world.start()
    await world.run(10_000, 100)
    copies = world.tier.calls["copy_segment"]
    # 0, 500, 1500, 3500, 7500 ms: five tries, and one copy of the other.
    assert copies == 6
    assert log.highest_remote_offset == 0
    world.reach = None
    await world.interval(2)
    assert world.log.highest_remote_offset == 0


async def test_garbage_collection_and_verification_run_by_themselves() -> None:
    world = World()
    world.write(1)
    world.settings = world.settings.with_values(
        {
            "tier_gc_interval_ms": 50_000,
            "tier_gc_grace_ms": 10_000,
            "tier_verify_bytes_per_second": 1000,
        }
    )
    world.boot()
    await world.start()
    await world.interval()
    await world.run(200_000, 5_000)
    assert world.manager.scrubber.runs >= 2
    assert world.manager.scrubber.removed_objects == 0
    assert world.manager.verifier.verified_segments >= 1
    await world.manager.stop()


async def test_a_bucket_that_is_there_again_is_listed_at_once() -> None:
    """An older copy of it may have been put back, which lacks what was copied since."""
    world = World()
    world.write(1)
    await world.start()
    await world.interval()
    (segment,) = world.metadata.segments(PARTITION)
    del world.bucket.objects[world.tier.keys.segment_keys(segment).log]
    await world.interval()
    assert world.manager.scrubber.runs == 0
    world.manager.claim.on_found_again()
    await world.interval()
    assert world.manager.scrubber.runs == 1
    assert [alert.kind for alert in world.alerts.all()] == [AlertKind.TIER_SEGMENT_DAMAGED]
    await world.manager.stop()


async def test_gauges_equal_what_is_there() -> None:
    world = World()
    world.write(5)
    world.paused = True
    await world.start()
    await world.interval()
    segments = world.log.segment_facts()[:-1]
    (gauges,) = world.manager.gauges()
    assert gauges.copy_lag_segments == len(segments) == 5
    assert gauges.copy_lag_bytes == sum(segment.size for segment in segments)
    world.paused = False
    world.update()
    await world.interval()
    (gauges,) = world.manager.gauges()
    logs = [v for k, v in world.bucket.segment_objects().items() if k.endswith(".log")]
    assert (gauges.copy_lag_segments, gauges.copy_lag_bytes) == (0, 0)
    assert gauges.metadata_count == len(logs) == 5
    assert gauges.remote_bytes == sum(len(stored.data) for stored in logs)
    assert {s.state for s in world.metadata.segments(PARTITION)} == {
        SegmentState.COPY_SEGMENT_FINISHED
    }


async def test_each_leadership_begins_with_all_that_is_committed() -> None:
    """A later epoch of the same leader too; a follower, and a change of settings, need no more."""
    world = World()
    world.write(1)
    await world.start()
    assert world.metadata.refreshed == [PARTITION]
    world.set_config(retention_bytes=1 << 30)
    await world.interval()
    assert world.metadata.refreshed == [PARTITION]
    world.leader_epoch = 3
    world.lead()
    await world.interval()
    assert world.metadata.refreshed == [PARTITION] * 2
    world.manager.on_follower(world.tiered())
    await world.interval()
    assert world.metadata.refreshed == [PARTITION] * 2
    world.leader_epoch = 4
    world.lead()
    await world.interval()
    assert world.metadata.refreshed == [PARTITION] * 3
