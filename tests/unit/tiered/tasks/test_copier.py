"""One segment after the other, whole or not at all, and never past one that is bad."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from config.tier import TierConfig
from storage.environment.alerts import AlertKind
from storage.errors import CutSegmentError
from storage.types.append_origin import AppendOrigin
from tests.unit.storage.log.log_model import append, make_batch
from tests.unit.tiered.tasks.task_world import PARTITION, World, tiered_config
from tiered.errors import CorruptSegmentError, StoreDeniedError
from tiered.maintenance.bucket_trouble import LASTING_MS
from tiered.tasks.copier import BLOCKED_RETRY_MS
from tiered.tasks.led_partition import copy_lag

T = TypeVar("T")


def corrupt(*, rebuildable: bool) -> CorruptSegmentError:
    return CorruptSegmentError("/data/t-0/x", 7, "bad", rebuildable=rebuildable)


async def test_only_what_is_closed_committed_and_on_disk() -> None:
    """The active segment, an open transaction and what is not flushed wait."""
    world = World()
    world.write(2)
    append(
        world.log,
        make_batch(b"t", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True),
        origin=AppendOrigin.CLIENT,
    )
    world.log.writer.roll()
    world.write(1)
    append(world.log, make_batch(b"x" * 40))
    await world.start()
    await world.interval()
    assert world.log.last_stable_offset == 2
    assert world.finished() == [(0, 0), (1, 1)]
    flushed = World()
    append(flushed.log, make_batch(b"x" * 40))
    flushed.log.writer.roll()
    await flushed.start()
    await flushed.interval()
    assert flushed.finished() == []
    flushed.log.flusher.flush()
    await flushed.interval()
    assert flushed.finished() == [(0, 0)]


async def test_a_closed_segment_without_a_record_holds_nothing_up() -> None:
    """Compaction may have left it, before the topic became a tiered one."""
    world = World()
    world.write(5)
    for number in (0, 2, 3):
        for suffix in ("log", "index", "timeindex"):
            file = world.filesystem.open(f"/data/t-0/{number:020}.{suffix}", create=True)
            file.truncate(0)
    await world.crash()
    await world.start()
    await world.interval(2)
    assert world.finished() == [(1, 1), (4, 4)]
    assert world.manager.tasks_of(PARTITION).led.blocked is None  # type: ignore[union-attr]  # it leads
    assert copy_lag(world.led) == (0, 0)
    assert world.log.highest_remote_offset == 4
    # The local log need not keep it either.
    assert world.expire_local() == 5
    await world.crash()
    await world.start()
    await world.interval()
    assert world.finished() == [(1, 1), (4, 4)]
    assert world.log.log_start_offset == 1


async def test_an_empty_segment_at_the_end_waits_for_the_next() -> None:
    world = World()
    world.write(3)
    world.filesystem.open("/data/t-0/00000000000000000002.log").truncate(0)
    for suffix in ("index", "timeindex"):
        world.filesystem.open(f"/data/t-0/{2:020}.{suffix}", create=True).truncate(0)
    await world.crash()
    await world.start()
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1)]
    world.write(1)
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1), (3, 3)]


async def test_a_corrupt_segment_is_kept_reported_once_and_holds_up_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.write(3)
    await world.start()
    await world.interval()
    world.tier.fail("copy_segment", corrupt(rebuildable=False), times=2)
    world.write(2)
    await world.interval(3)
    assert world.finished() == [(0, 0), (1, 1), (2, 2)]
    world.expire_local()
    assert world.log.local_log_start_offset == 3
    (gauges,) = world.manager.gauges()
    assert (gauges.is_blocked, gauges.copy_lag_segments) == (True, 2)
    assert world.manager.counters.of("t").corrupt_segments == 1
    await world.run(BLOCKED_RETRY_MS + 1, 60_000)
    assert world.tier.calls["copy_segment"] == 5
    assert sum("not copied, nor what follows" in r.message for r in caplog.records) == 1
    await world.run(BLOCKED_RETRY_MS + 60_000, 60_000)
    assert world.finished()[-1] == (4, 4)
    assert not next(world.manager.gauges()).is_blocked


async def test_delete_records_past_a_corrupt_segment_sets_copying_free() -> None:
    world = World()
    world.write(3)
    world.tier.fail("copy_segment", corrupt(rebuildable=False))
    await world.start()
    assert world.finished() == []
    world.log.delete_records(1)
    await world.interval()
    assert world.finished() == [], "a crash would bring the record back"
    world.checkpoint()
    await world.interval()
    assert world.finished() == [(1, 1), (2, 2)]


async def test_what_delete_records_took_is_not_called_corrupt_before_that_is_on_disk() -> None:
    """Its leader epochs are forgotten at once, the log start is on disk up to a minute later."""
    world = World()
    world.write(4)
    world.log.delete_records(2)
    await world.start()
    await world.interval()
    assert world.led.blocked is None
    assert world.manager.counters.of("t").corrupt_segments == 0
    assert world.finished() == [], "a crash would bring the records back"
    world.checkpoint()
    await world.interval()
    assert world.finished() == [(2, 2), (3, 3)]
    assert world.manager.counters.of("t").copy_errors == 0


async def test_an_index_is_rebuilt_beside_the_one_that_the_loop_reads() -> None:
    """While a thread writes it, a look-up must find the old one, not half of the new one."""
    world = World(tiered_config(segment_bytes=2000, index_interval_bytes=0))
    for number in range(8):
        append(world.log, make_batch(b"x" * 40, timestamp_ms=1000 + number))
    world.log.writer.roll()
    world.log.flusher.flush()
    segment = world.log.segment_facts()[0]
    path = segment.offset_index.path
    file = world.filesystem.open(path)
    file.write_at(b"\0\0\0\x01\0\0\0\x09", 0)
    damaged = world.filesystem.peek(path)
    segment.close()
    seen: list[bytes] = []

    async def in_a_thread(function: Callable[..., T], *args: Any) -> T:
        assert world.filesystem.peek(path) == damaged
        before = (segment.offset_index, segment.time_index, segment.offset_index._tail)
        result = function(*args)
        seen.append(world.filesystem.peek(path))
        assert (segment.offset_index, segment.time_index, segment.offset_index._tail) == before
        return result

    world.run_blocking = in_a_thread
    world.tier.fail("copy_segment", corrupt(rebuildable=True))
    await world.start()
    assert seen == [damaged]
    assert world.finished() == [(0, 7)]
    assert world.filesystem.peek(path) != damaged
    assert segment.offset_index.entries()[0][0] > 0
    for offset in range(8):
        found = world.log.reader.read(offset, max_bytes=1, end_offset=8, min_one_batch=True)
        assert found is not None
    assert not [e for e in world.filesystem.list_directory("/data/t-0") if "cleaned" in e.name]


async def test_a_segment_that_left_while_its_index_was_made_takes_nothing() -> None:
    world = World()
    world.write(2)
    segment = world.log.segment_facts()[0]
    rebuilt = segment.rebuild_beside()
    segment.rename_stage(".deleted")
    segment.take_indexes(rebuilt)
    assert not world.filesystem.exists(rebuilt.offset_index.path)
    assert not world.filesystem.exists("/data/t-0/00000000000000000000.index")


async def test_an_index_is_made_again_and_the_copy_tried_once_more() -> None:
    world = World()
    world.write(1)
    world.tier.fail("copy_segment", corrupt(rebuildable=True))
    await world.start()
    assert world.finished() == [(0, 0)]
    assert world.manager.counters.of("t").rebuilt_indexes == 1
    world.tier.fail("copy_segment", corrupt(rebuildable=True), times=2)
    world.write(1)
    await world.interval()
    assert world.finished() == [(0, 0)]
    assert world.manager.counters.of("t").corrupt_segments == 1


@pytest.mark.parametrize("whose", ["topic", "cluster"])
async def test_a_pause_lets_the_running_copy_finish_and_leaves_no_gap(whose: str) -> None:
    world = World()
    world.write(3)

    async def pause(point: str) -> None:
        if point == "indexes uploaded":
            world.paused = whose == "topic"
            if whose == "cluster":
                world.update(tier_copy_paused=True)

    world.reach = pause
    await world.start()
    await world.interval(2)
    assert world.finished() == [(0, 0)]
    world.expire_local()
    world.check()
    assert world.log.local_log_start_offset == 1
    world.reach = None
    world.paused = False
    world.update(tier_copy_paused=False)
    await world.run(0)
    assert world.finished() == [(0, 0), (1, 1), (2, 2)]


async def test_copy_disable_stops_copying() -> None:
    world = World(tiered_config(remote_log_copy_disable=True, local_retention_bytes=-1))
    world.write(2)
    await world.start()
    await world.interval()
    assert world.states() == []
    assert next(world.manager.gauges()).copy_lag_bytes == 0
    world.set_config(remote_log_copy_disable=False)
    await world.run(100, 10)
    assert world.finished() == [(0, 0), (1, 1)]


async def test_copy_disable_ends_the_copy_under_way() -> None:
    """As in Kafka: what hangs, or fills a link, must stop when it is told to."""
    world = World()
    world.write(2)
    world.tier.hang("log uploaded")
    await world.start()
    assert world.manager.copies_in_flight == 1
    world.set_config(remote_log_copy_disable=True, local_retention_bytes=-1)
    await world.drain()
    assert world.manager.copies_in_flight == 0
    await world.interval(2)
    # What was begun is taken back, and no failure.
    assert (world.states(), world.orphans()) == ([], [])
    assert world.manager.counters.of("t").copy_errors == 0
    assert world.manager.tasks_of(PARTITION).copy.last_error is None  # type: ignore[union-attr]  # it leads
    world.set_config(remote_log_copy_disable=False)
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1)]


async def test_another_change_of_settings_lets_a_copy_go_on() -> None:
    world = World()
    world.write(1)
    world.tier.hang("log uploaded")
    await world.start()
    world.set_config(retention_ms=123_456_789)
    await world.drain()
    assert world.manager.copies_in_flight == 1


async def test_the_quota_is_charged_before_a_copy_and_waiting_holds_no_place() -> None:
    world = World(
        settings=TierConfig(
            remote_log_manager_task_retry_jitter=0.0,
            remote_log_manager_copy_max_bytes_per_second=100,
        )
    )
    world.write(30)
    await world.start()
    assert world.finished() == [(0, 0)]
    await world.run(0)
    assert world.manager.copier_pool.running == 0
    size = world.log.segment_facts()[0].size
    await world.run(10_000, 250)
    copied = len(world.finished()) * size
    assert copied <= 100 * 11 + 2 * size
    assert world.manager.copy_quota.throttled > 0


async def test_an_overlapping_segment_of_another_roll_is_copied_whole() -> None:
    """Aiven 562: replicas roll at different offsets; offsets decide, not segments."""
    world = World()
    world.write(2)
    await world.start()
    await world.interval()
    replica = World(tiered_config(segment_bytes=1000))
    for _ in range(4):
        append(replica.log, make_batch(b"x" * 40))
    replica.log.writer.roll()
    replica.log.flusher.flush()
    replica.events, replica.bucket = world.events, world.bucket
    await world.manager.stop()
    replica.boot()
    await replica.start()
    assert replica.finished() == [(0, 0), (0, 3), (1, 1)]
    assert replica.log.highest_remote_offset == 3
    assert replica.expire_local() == 1
    replica.check()


async def test_a_lost_leadership_ends_a_copy_cleanly() -> None:
    world = World()
    world.write(1)
    world.tier.hang("log uploaded")
    await world.start()
    world.manager.on_follower(world.tiered())
    await world.run(200)
    assert world.manager.copies_in_flight == 0
    assert world.log.highest_remote_offset == -1
    world.leader_epoch = 2
    world.lead()
    await world.interval(2)
    assert world.finished() == [(0, 0)]
    assert world.orphans() == []


async def test_it_never_waits_for_a_copy_that_was_cancelled(caplog: Any) -> None:
    """Stop has a deadline of its own."""
    world = World()
    world.write(1)
    world.tier.hang("copy_segment")
    await world.start()
    await asyncio.wait_for(world.manager.stop(), 30)
    assert world.manager.copies_in_flight == 0


@pytest.mark.parametrize("left", [0, 1])
async def test_a_cut_segment_is_not_copied_as_it_is(left: int) -> None:
    """What is missing could be on another replica until local retention has followed the copy."""
    world = World(tiered_config(segment_bytes=10_000))
    world.write(1)
    for _ in range(2):
        append(world.log, make_batch(b"x" * 40), leader_epoch=world.leader_epoch)
    world.log.writer.roll()
    world.write(1)
    path = "/data/t-0/00000000000000000001.log"
    world.filesystem.open(path).truncate(left * world.filesystem.file_size(path) // 2)
    await world.crash()
    told: list[CutSegmentError] = []
    world.log.on_cut = told.append
    await world.start()
    await world.interval(2)
    assert world.finished() == [(0, 0)]
    assert [(error.offset, error.next_offset) for error in told] == [(1 + left, 3)]
    assert "has been cut" in world.led.blocked.problem  # type: ignore[union-attr]  # it is


async def test_a_bucket_that_takes_nothing_for_a_minute_is_an_alert() -> None:
    """Until it takes a segment: local logs grow meanwhile."""
    world = World()
    world.write(2)
    world.tier.fail("copy_segment", StoreDeniedError("403"), times=1_000)
    await world.start()
    await world.run(LASTING_MS - 5_000)
    assert world.alerts.all() == []
    await world.run(60_000)
    (alert,) = world.alerts.all()
    assert (alert.kind, alert.subject) == (AlertKind.TIER_FAILING, "copies")
    assert "403" in alert.text
    world.tier._faults.clear()
    await world.run(60_000)
    assert world.alerts.all() == []
    assert world.finished() == [(0, 0), (1, 1)]
