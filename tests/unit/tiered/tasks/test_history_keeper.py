"""When histories are written: after changes, before removals, and for all partitions in turn."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from storage.environment.randomness import SeededRandomness
from tests.effort import swept
from tests.harness.history_world import INTERVAL_MS, KEY, copied, offsets_told, told
from tests.unit.tiered.tasks.task_world import PARTITION, World, tiered_config
from tests.unit.tiered.tasks.test_copier_crashes import KINDS, Ending, PowerOff
from tiered.errors import (
    RemoteStorageNotReadyError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.metadata.history import HistoryState, PartitionHistory, decode_history, encode_history
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
)
from tiered.tasks.history_keeper import LATE_MS, TASKS, HistoryKeeper
from tiered.tasks.remote_log_manager import HISTORY_DEADLINE_MS

AWAY = StoreUnavailableError("the bucket is away")


def keeper_of(world: World) -> HistoryKeeper:
    return world.manager.history


async def test_what_was_copied_is_told_within_the_interval() -> None:
    world = await copied(3)
    summary = told(world).summary
    assert (summary.partition, summary.cluster_id, summary.partition_count) == (
        PARTITION,
        "cluster",
        1,
    )
    assert summary[6:9] == (0, 3, 3)
    assert offsets_told(world) == [(0, 0), (1, 1), (2, 2)]
    assert keeper_of(world).behind == 0
    assert keeper_of(world).oldest_behind_ms == 0


async def test_nothing_is_written_while_nothing_changes() -> None:
    world = await copied(2)
    writes, calls = keeper_of(world).writes, world.tier.calls["put_object"]
    await world.run(20 * INTERVAL_MS, 5_000)
    assert (keeper_of(world).writes, world.tier.calls["put_object"]) == (writes, calls)


async def test_it_is_written_at_most_once_in_an_interval() -> None:
    world = await copied(1)
    writes = keeper_of(world).writes
    for _ in range(10):
        world.write(1)
        await world.interval()
    assert keeper_of(world).writes - writes <= 10
    world.update(remote_log_manager_task_interval_ms=100, tier_history_interval_ms=3_000)
    writes = keeper_of(world).writes
    for _ in range(30):
        world.write(1)
        await world.run(100, 50)
    assert 1 <= keeper_of(world).writes - writes <= 3
    await world.run(6_000, 100)
    assert told(world).summary.end_offset == 41


async def test_a_partition_of_which_nothing_was_copied_has_no_object() -> None:
    world = World()
    world.paused = True
    world.write(2)
    await world.start()
    await world.run(10 * INTERVAL_MS, 5_000)
    assert world.history() is None
    assert keeper_of(world).behind == 0


async def test_a_later_start_finds_its_object_right_and_leaves_it() -> None:
    world = await copied(2)
    before = world.bucket.objects[KEY]
    await world.crash()
    await world.start()
    await world.run(3 * INTERVAL_MS)
    assert world.bucket.objects[KEY] is before
    assert keeper_of(world).behind == 0
    assert keeper_of(world).writes == 0


async def test_what_went_into_another_bucket_is_told_again() -> None:
    """The bucket's disk was away, and is back as it was; nobody has written since."""
    world = await copied(3)
    before = world.bucket.objects[KEY]
    world.log.delete_records(2)
    await world.run(3 * INTERVAL_MS)
    assert told(world).summary.log_start_offset == 2
    world.bucket.objects[KEY] = before
    await world.run(3 * INTERVAL_MS)
    assert told(world).summary.log_start_offset == 0
    world.manager.claim.on_found_again()
    await world.run(INTERVAL_MS)
    assert told(world).summary.log_start_offset == 2


async def test_a_write_that_was_on_its_way_for_long_is_noticed() -> None:
    """The leader before had sent it; it is applied behind what this one has written."""
    world = await copied(3)
    older = world.bucket.objects[KEY]
    world.leader_epoch = 4
    world.lead()
    world.log.delete_records(2)
    await world.run(INTERVAL_MS)
    assert (told(world).summary.leader_epoch, told(world).summary.log_start_offset) == (4, 2)
    world.bucket.objects[KEY] = older
    await world.run(LATE_MS - 2 * INTERVAL_MS, 5_000)
    assert told(world).summary.log_start_offset == 0
    await world.run(3 * INTERVAL_MS, 5_000)
    assert (told(world).summary.leader_epoch, told(world).summary.log_start_offset) == (4, 2)
    assert (keeper_of(world).behind, keeper_of(world).failures) == (0, 0)
    # Once: what costs a request is not done for ever.
    calls = world.tier.calls.copy()
    await world.run(3 * LATE_MS, 10_000)
    assert world.tier.calls == calls


async def test_one_of_its_own_that_was_given_up_is_noticed_likewise() -> None:
    world = await copied(3)
    await world.run(LATE_MS + INTERVAL_MS, 5_000)
    world.log.delete_records(1)
    world.tier.fail("put_object", StoreTimeoutError("no answer"))
    await world.run(INTERVAL_MS)
    assert keeper_of(world).failures == 1
    await world.run(INTERVAL_MS)
    given_up = world.bucket.objects[KEY]
    world.log.delete_records(2)
    await world.run(2 * INTERVAL_MS)
    assert told(world).summary.log_start_offset == 2
    world.bucket.objects[KEY] = given_up
    await world.run(LATE_MS, 5_000)
    assert told(world).summary.log_start_offset == 2


async def test_who_may_be_replaced_writes_nothing() -> None:
    """Its image is older than another's leadership, say: that one's object stays."""
    world = await copied(2)
    leads = True
    world.manager.on_leadership(replace(world.tiered(), may_change=lambda: leads))
    await world.run(2 * INTERVAL_MS)
    before = world.bucket.objects[KEY]
    world.log.delete_records(1)
    leads = False
    await world.run(3 * INTERVAL_MS)
    assert (world.bucket.objects[KEY], keeper_of(world).failures) == (before, 0)
    assert keeper_of(world).behind == 1
    # Nor if that shows in the middle of it.
    with pytest.raises(RemoteStorageNotReadyError, match="another broker may lead"):
        await keeper_of(world).writer.write(world.led, None)
    leads = True
    await world.run(INTERVAL_MS)
    assert told(world).summary.log_start_offset == 1


async def test_another_leadership_is_told() -> None:
    world = await copied(1)
    world.leader_epoch = 4
    world.lead()
    await world.run(3 * INTERVAL_MS)
    assert told(world).summary.leader_epoch == 4


async def test_zero_means_never_and_is_heeded_at_once() -> None:
    world = World()
    world.update(tier_history_interval_ms=0)
    world.write(3)
    await world.start()
    await world.run(10 * INTERVAL_MS, 5_000)
    assert world.history() is None
    world.log.delete_records(1)
    await world.interval(2)
    assert len(world.finished()) == 2
    assert world.history() is None
    world.update(tier_history_interval_ms=5_000)
    await world.run(5_000)
    assert offsets_told(world) == [(1, 1), (2, 2)]
    world.update(tier_history_interval_ms=0)
    world.write(1)
    await world.interval(4)
    assert told(world).summary.end_offset == 3
    await world.manager.stop()
    assert told(world).summary.end_offset == 3


# -- before anything goes --------------------------------------------------------------------------


async def test_no_object_goes_that_the_bucket_still_tells_of() -> None:
    """Looked at whenever something is asked of the bucket."""
    world = await copied(6)

    async def look(point: str) -> None:
        if point in ("delete_segment", "manifest removed", "objects removed"):
            world.check()
            assert world.metadata.segments(PARTITION)[0].start_offset not in [
                one.start_offset for one in told(world).segments
            ]

    world.reach = look
    world.log.delete_records(2)
    await world.interval()
    world.set_config(retention_bytes=120)
    await world.interval(2)
    assert world.tier.calls["objects removed"] >= 3
    assert offsets_told(world) == world.finished()


async def test_a_pass_over_many_segments_writes_once() -> None:
    world = await copied(30)
    writes = keeper_of(world).writes
    world.log.delete_records(25)
    await world.interval(1)
    assert world.tier.calls["objects removed"] == 25
    assert keeper_of(world).writes == writes + 1
    assert told(world).summary.log_start_offset == 25


async def test_switching_remote_storage_off_writes_once_for_all_that_goes() -> None:
    world = await copied(8)
    writes = keeper_of(world).writes
    world.set_config(remote_storage_enable=False, remote_log_delete_on_disable=True)
    await world.interval(2)
    assert world.metadata.segments(PARTITION) == []
    assert told(world).segments == ()
    assert keeper_of(world).writes - writes <= 2


async def test_nothing_goes_while_the_bucket_takes_no_history() -> None:
    world = await copied(3)
    world.tier.fail("put_object", StoreDeniedError("no"), times=50)
    world.log.delete_records(2)
    await world.interval(2)
    assert len(world.bucket.segment_objects()) == 9
    assert keeper_of(world).failures > 0
    assert keeper_of(world).behind == 1
    world.tier._faults.clear()
    await world.interval(3)
    assert len(world.bucket.segment_objects()) == 3
    assert offsets_told(world) == [(2, 2)]


async def test_a_failed_copy_is_taken_back_without_a_write() -> None:
    world = await copied(1)
    writes = keeper_of(world).writes
    world.tier.fail("copy_segment", AWAY, at="log uploaded")
    world.write(1)
    world.manager.on_config_change(PARTITION)
    await world.run(0)
    assert world.tier.calls["delete_segment"] == 1
    assert keeper_of(world).writes == writes


# -- a broker that dies on the way -----------------------------------------------------------------


async def live(ending: Ending) -> World:
    """Copies, expires by size, deletes records, loses its leadership, copies again."""
    world = World(tiered_config(retention_bytes=600), None)
    world.update(tier_history_interval_ms=10_000)
    world.reach = ending.reach
    try:
        world.write(4)
        await world.start()
        await world.interval()
        world.log.delete_records(1)
        world.checkpoint()
        telling = asyncio.ensure_future(keeper_of(world).publish_log_starts([PARTITION], 1_000))
        await world.run(1_000, 100)
        late = await telling
        if not late and not ending.is_off:
            world.answered = 1  # type: ignore[attr-defined]  # what somebody was told
        world.write(4)
        await world.interval(2)
        world.leader_epoch += 1
        world.lead()
        world.write(1)
        await world.interval(2)
    except PowerOff:
        pass
    return world


def _points() -> list[tuple[int, str]]:
    ending = Ending()
    asyncio.run(live(ending))
    return [(at, kind) for kind in KINDS for at in range(1, ending.count + 1)]


POINTS = _points()


def test_histories_are_among_the_points() -> None:
    ending = Ending()
    asyncio.run(live(ending))
    assert ending.points.count("object put") >= 4
    assert len(POINTS) > 150


@pytest.mark.parametrize("part", range(8))
async def test_wherever_it_ends_readers_are_told_of_nothing_that_is_gone(part: int) -> None:
    for at, kind in swept(POINTS[part::8], 3):
        ending = Ending(at, kind)
        world = await live(ending)
        where = f"{kind} at {at}: {ending.points[-1]}"
        assert world.lost_to_readers() == [], where
        history = world.history()
        if kind == "crash" and hasattr(world, "answered"):
            assert history is not None, where
            assert history.summary.log_start_offset >= 1, where
        world.reach = None
        await world.crash()
        assert world.lost_to_readers() == [], where
        await world.start()
        await world.interval(3)
        await world.run(20_000)
        world.check()
        assert offsets_told(world) == world.finished(), where
        assert told(world).summary.log_start_offset == world.log.log_start_offset, where
        assert keeper_of(world).behind == 0, where


# -- deleted records -------------------------------------------------------------------------------


async def test_deleted_records_are_told_before_it_is_answered() -> None:
    world = await copied(5)
    world.log.delete_records(3)
    assert await keeper_of(world).publish_log_starts([PARTITION], 1_000) == []
    assert told(world).summary.log_start_offset == 3
    assert offsets_told(world) == [(3, 3), (4, 4)]
    calls = world.tier.calls["put_object"]
    assert await keeper_of(world).publish_log_starts([PARTITION], 1_000) == []
    assert world.tier.calls["put_object"] == calls


async def test_what_was_copied_in_forgotten_epochs_is_told_all_the_same() -> None:
    """Nothing of it is left, neither in the metadata nor in the log, but for the object."""
    world = await copied(2)
    world.log.delete_records(2)
    await world.interval(3)
    assert world.metadata.segments(PARTITION) == []
    world.checkpoint()
    await world.crash()
    world.paused = True
    world.leader_epoch = 3
    world.write(4)
    await world.start()
    world.log.delete_records(5)
    assert [epoch for epoch, _ in world.log.leader_epochs.entries()] == [3]
    assert await keeper_of(world).publish_log_starts([PARTITION], 1_000) == []
    assert told(world).summary.log_start_offset == 5
    world.log.delete_records(6)
    assert await keeper_of(world).publish_log_starts([PARTITION], 1_000) == []
    assert told(world).summary.log_start_offset == 6


async def test_above_what_was_copied_the_object_ends_where_it_starts() -> None:
    world = await copied(2)
    world.paused = True
    world.write(3)
    world.log.delete_records(4)
    await keeper_of(world).publish_log_starts([PARTITION], 1_000)
    assert told(world).summary[6:10] == (4, 4, 4, ())
    assert told(world).segments == ()


async def test_a_bucket_that_is_away_is_not_waited_for_beyond_the_limit() -> None:
    world = await copied(5)
    world.tier.hang("put_object")
    world.log.delete_records(3)
    telling = asyncio.ensure_future(keeper_of(world).publish_log_starts([PARTITION], 1_000))
    await world.run(900, 100)
    assert not telling.done()
    await world.run(200, 100)
    assert await telling == [PARTITION]
    assert keeper_of(world).late_answers == 1
    assert keeper_of(world).behind == 1
    assert told(world).summary.log_start_offset == 0
    # The object follows.
    await world.run(2 * world.settings.store.call_timeout_ms)
    assert told(world).summary.log_start_offset == 3
    await world.run(3 * INTERVAL_MS)
    assert keeper_of(world).behind == 0


async def test_a_bucket_that_refuses_is_answered_at_once_and_told_later() -> None:
    world = await copied(5)
    world.tier.fail("put_object", StoreDeniedError("no"))
    world.log.delete_records(3)
    assert await keeper_of(world).publish_log_starts([PARTITION], 60_000) == [PARTITION]
    await world.run(2 * INTERVAL_MS)
    assert told(world).summary.log_start_offset == 3


async def test_a_bucket_that_stumbles_is_asked_again_before_it_is_answered() -> None:
    world = await copied(5)
    world.tier.fail("put_object", AWAY, times=3)
    world.log.delete_records(3)
    telling = asyncio.ensure_future(keeper_of(world).publish_log_starts([PARTITION], 5_000))
    await world.run(2_000, 100)
    assert await telling == []
    assert told(world).summary.log_start_offset == 3
    assert keeper_of(world).late_answers == 0


async def test_partitions_that_nobody_keeps_are_not_waited_for() -> None:
    world = World()
    assert await keeper_of(world).publish_log_starts([PARTITION], 1_000) == []
    await world.start()
    world.write(3)
    world.log.delete_records(1)
    world.paused = True
    assert await keeper_of(world).publish_log_starts([PARTITION], 1_000) == []
    assert world.history() is None


async def test_whoever_asks_while_one_is_written_waits_for_the_next() -> None:
    """The one under way has looked at the partition before."""
    world = await copied(5)
    world.log.delete_records(1)
    held = asyncio.Event()

    async def hold(point: str) -> None:
        if point == "put_object":
            await held.wait()

    world.reach = hold
    first = asyncio.ensure_future(keeper_of(world).publish_log_starts([PARTITION], 60_000))
    await world.drain()
    world.log.delete_records(4)
    others = [
        asyncio.ensure_future(keeper_of(world).publish_log_starts([PARTITION], 60_000))
        for _ in range(5)
    ]
    await world.drain()
    writes = keeper_of(world).writes
    held.set()
    assert await first == []
    assert told(world).summary.log_start_offset >= 1
    for one in others:
        assert await one == []
    assert told(world).summary.log_start_offset == 4
    assert keeper_of(world).writes == writes + 2


async def test_a_client_that_leaves_leaves_nothing_behind() -> None:
    world = await copied(2)
    world.tier.hang("put_object")
    world.log.delete_records(1)
    telling = asyncio.ensure_future(keeper_of(world).publish_log_starts([PARTITION], 60_000))
    await world.drain()
    telling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await telling
    await world.run(200_000, 1_000)
    assert told(world).summary.log_start_offset == 1


# -- stops and changes of the leader ---------------------------------------------------------------


async def test_a_clean_stop_writes_what_has_changed() -> None:
    world = await copied(2)
    world.update(tier_history_interval_ms=3_600_000)
    world.write(2)
    await world.interval(3)
    assert len(world.finished()) == 4
    assert told(world).summary.end_offset == 2
    await world.manager.stop()
    assert told(world).summary.end_offset == 4


async def test_a_clean_stop_does_not_wait_for_a_bucket_that_is_away() -> None:
    world = await copied(2)
    world.log.delete_records(1)
    world.tier.hang("put_object")
    stopping = asyncio.ensure_future(world.manager.stop())
    await world.run(HISTORY_DEADLINE_MS + 1, 500)
    await asyncio.wait_for(stopping, 30)
    assert told(world).summary.log_start_offset == 0


async def test_who_leads_no_more_writes_no_more() -> None:
    world = await copied(2)
    world.log.delete_records(1)
    held = asyncio.Event()

    async def hold(point: str) -> None:
        if point == "put_object":
            await held.wait()

    world.reach = hold
    telling = asyncio.ensure_future(keeper_of(world).publish_log_starts([PARTITION], 60_000))
    await world.drain()
    world.manager.on_stop(PARTITION, delete_remote=False)
    assert keeper_of(world).is_busy(PARTITION)
    assert await telling == [PARTITION]
    await world.run(1_000)
    assert not keeper_of(world).is_busy(PARTITION)
    held.set()
    await world.run(5 * INTERVAL_MS)
    assert told(world).summary.log_start_offset == 0
    assert keeper_of(world).kept == 0


async def test_a_follower_writes_nothing() -> None:
    world = World()
    world.write(1)
    world.manager.start()
    world.manager.on_follower(world.tiered())
    await world.run(5 * INTERVAL_MS, 5_000)
    assert world.history() is None


# -- a deleted topic -------------------------------------------------------------------------------


async def test_a_deleted_topic_says_so_first_and_the_object_goes_last() -> None:
    world = await copied(3)
    seen: list[tuple[str, HistoryState | None]] = []

    async def look(point: str) -> None:
        history = world.history()
        seen.append((point, None if history is None else history.summary.state))

    world.reach = look
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1_000, 100)
    assert KEY not in world.bucket.objects
    assert not world.bucket.segment_objects()
    removals = [state for point, state in seen if point in ("delete_segment", "objects removed")]
    assert removals == [HistoryState.DELETING] * 6
    states = [state for _, state in seen]
    first, last = states.index(HistoryState.DELETING), states.index(None)
    assert states[first:last] == [HistoryState.DELETING] * (last - first)
    assert set(states[last:]) == {None}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deletion_that_dies_anywhere_never_looks_alive_again(kind: str) -> None:
    for at in swept(range(1, 40), 3):
        world = await copied(2)
        ending = Ending(at, kind)
        world.reach = ending.reach
        world.manager.on_stop(PARTITION, delete_remote=True)
        await world.run(1_000, 100)
        history = world.history()
        segments = len(world.bucket.segment_objects())
        if segments < 6:
            assert history is None or history.summary.state is HistoryState.DELETING, at
            assert history is not None or not segments, at
        world.reach = None
        await world.crash()
        world.manager.start()
        if world.metadata.deletions():
            await world.run(100_000, 5_000)
            assert KEY not in world.bucket.objects, at
            assert not world.bucket.segment_objects(), at


async def test_a_topic_that_was_never_copied_is_deleted_without_a_trace() -> None:
    world = World()
    await world.start()
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1_000, 100)
    assert world.tier.calls["put_object"] == 0
    assert world.manager.partition_states() == {}


async def test_a_history_of_a_deleted_topic_that_came_late_is_garbage() -> None:
    """Others are left alone, whatever the metadata knows of their partitions."""
    world = await copied(1)
    late = world.bucket.objects[KEY].data
    keys = world.tier.keys
    other = keys.history_key(PARTITION._replace(topic_id=UUID(int=9)))
    world.manager.on_stop(PARTITION, delete_remote=True)
    await world.run(1_000, 100)
    world.bucket.put(KEY, late)
    world.bucket.put(other, b"whatever it is")
    await world.scrub()
    report = world.manager.scrubber.last
    assert report is not None
    assert (report.histories, report.young_objects, report.removed_objects) == (2, 1, 0)
    await world.collect_garbage()
    assert KEY not in world.bucket.objects
    assert other in world.bucket.objects


# -- whose object it is ----------------------------------------------------------------------------


def rewritten(world: World, **changes: object) -> PartitionHistory:
    """Put another history in its place."""
    found = told(world)
    other = found._replace(summary=found.summary._replace(**changes))  # type: ignore[arg-type]  # fields of any type
    world.bucket.put(KEY, encode_history(other))
    return other


async def test_an_older_leader_leaves_a_newer_ones_object_alone() -> None:
    world = await copied(2)
    newer = rewritten(world, leader_epoch=9, log_start_offset=1)
    await world.crash()
    await world.start()
    world.log.delete_records(2)
    await world.run(10 * INTERVAL_MS, 5_000)
    assert told(world) == newer
    assert len(world.bucket.segment_objects()) == 6
    assert keeper_of(world).failures > 0
    keeper_of(world).overrule()
    await world.run(10 * INTERVAL_MS, 5_000)
    assert told(world).summary.leader_epoch == 0
    assert told(world).summary.log_start_offset == 2


async def test_another_clusters_object_is_written_over() -> None:
    """The bucket is ours by its claim: it was taken over."""
    world = await copied(1)
    rewritten(world, leader_epoch=9, cluster_id="another")
    await world.crash()
    await world.start()
    await world.run(3 * INTERVAL_MS)
    assert told(world).summary.cluster_id == "cluster"


async def test_who_does_not_own_the_bucket_writes_nothing() -> None:
    world = await copied(1)
    world.bucket.put("varve-cluster.json", b'{"version": 1, "clusterId": "another"}')
    await world.manager.claim.check()
    before = world.bucket.objects[KEY]
    world.log.delete_records(1)
    assert await keeper_of(world).publish_log_starts([PARTITION], 1_000) == [PARTITION]
    await world.run(5 * INTERVAL_MS, 5_000)
    await world.manager.stop()
    assert world.bucket.objects[KEY] is before


@pytest.mark.parametrize("data", [b"", b"no history", b"vrvh\x00\x09"])
async def test_what_cannot_be_read_is_written_over(data: bytes) -> None:
    world = await copied(2)
    world.bucket.put(KEY, data)
    await world.crash()
    await world.start()
    await world.run(3 * INTERVAL_MS)
    assert offsets_told(world) == [(0, 0), (1, 1)]


# -- ten thousand partitions -----------------------------------------------------------------------


async def test_many_partitions_are_written_a_few_at_a_time_and_all_of_them() -> None:
    """No task for one that does not change, and whoever is waited for goes first."""
    world = await copied(1)
    keeper = keeper_of(world)
    segment = world.metadata.segments(PARTITION)[0]
    running, most = 0, 0

    async def count(point: str) -> None:
        nonlocal running, most
        if point == "put_object":
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    randomness = SeededRandomness(7)
    others = [PARTITION._replace(partition=number) for number in range(1, 301)]
    world.metadata.assign(others)
    for other in others:
        segment_id = RemoteLogSegmentId(other, randomness.uuid4())
        one = replace(segment, segment_id=segment_id, state=SegmentState.COPY_SEGMENT_STARTED)
        await world.metadata.add(one)
        await world.metadata.update(
            RemoteLogSegmentMetadataUpdate(segment_id, 1, SegmentState.COPY_SEGMENT_FINISHED, 1)
        )
        keeper.keep(replace(world.led, tiered=replace(world.tiered(), partition=other)))
    world.reach = count
    writes = keeper.writes
    looked = 0

    async def tick() -> None:
        nonlocal looked
        world.timer.advance(1_000)
        looked += 1
        await world.drain()

    while keeper.writes - writes < len(others):
        await tick()
        assert looked <= INTERVAL_MS // 1_000
    assert 1 < most <= TASKS
    keys = [world.tier.keys.history_key(other) for other in others]
    found = [decode_history(world.bucket.objects[key].data, key) for key in keys]
    assert [one.summary.partition for one in found] == others
    assert keeper.behind == 0
    for _ in range(60):
        await tick()
    assert keeper.writes - writes == len(others)


async def test_one_that_is_waited_for_goes_before_many_that_are_not() -> None:
    world = await copied(1)
    keeper = keeper_of(world)
    for _ in range(TASKS):
        # The ordinary places are taken by what hangs.
        keeper.pool.submit(asyncio.Event().wait, lambda _: None)  # type: ignore[arg-type]  # it never returns
    keeper.touch(PARTITION)
    await world.run(2 * INTERVAL_MS)
    assert keeper.pool.queued == 1
    world.log.delete_records(1)
    assert await keeper.publish_log_starts([PARTITION], 1_000) == []
    assert keeper.pool.queued == 0
    assert told(world).summary.log_start_offset == 1
    await keeper.pool.close()


async def test_time_outs_are_failures_and_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = await copied(1)
    world.tier.fail("put_object", StoreTimeoutError("slow"), times=5)
    world.log.delete_records(1)
    await world.run(INTERVAL_MS)
    lines = [line for line in caplog.messages if "history" in line]
    assert 1 <= len(lines) <= 2
