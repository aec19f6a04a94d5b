"""Copies whose end was never published are resolved at once, and never by losing records."""

import pytest

from tests.unit.tiered.metadata.segment_builder import STARTED, segment
from tests.unit.tiered.tasks.task_world import PARTITION, World, unfinished
from tiered.errors import RemoteStorageNotReadyError, StoreTimeoutError
from tiered.maintenance.bucket_ownership import Claim
from tiered.segment_metadata import SegmentState
from tiered.tasks.unfinished_copies import SURE_MS


@pytest.mark.parametrize("whole", [True, False])
async def test_an_unfinished_copy_of_local_offsets_is_deleted_and_copied_anew(whole: bool) -> None:
    world = World()
    world.write(2)
    await unfinished(world, segment(0, 0, state=STARTED), whole=whole)
    await world.start()
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1)]
    assert (world.orphans(), world.missing()) == ([], [])


async def test_a_complete_copy_that_is_the_only_one_is_published_as_finished() -> None:
    """Only its last record was lost; to remove it would lose the records."""
    world = World()
    world.write(3)
    found = await unfinished(world, segment(0, 1, state=STARTED), whole=True)
    gone = world.log.segment_facts()[:2]
    for lost in gone:
        world.log.segments.remove(lost)
    await world.start()
    await world.interval()
    assert world.finished() == [(0, 1), (2, 2)]
    assert world.metadata.segments(PARTITION)[0].id == found.id
    assert world.log.log_start_offset == 0
    assert world.manager.counters.of("t").adopted_segments == 1
    world.check()


async def test_a_broken_copy_that_is_the_only_one_is_counted_as_a_loss() -> None:
    world = World()
    world.write(3)
    await unfinished(world, segment(0, 1, state=STARTED), whole=False)
    for lost in world.log.segment_facts()[:2]:
        world.log.segments.remove(lost)
    await world.start()
    await world.run(SURE_MS - 1_000, 5_000)
    assert world.manager.counters.of("t").lost_segments == 0
    await world.interval(2)
    assert world.finished() == [(2, 2)]
    assert world.manager.counters.of("t").lost_segments == 1
    assert world.log.log_start_offset == 2
    world.check()


async def test_a_store_that_does_not_find_the_only_copy_for_a_while_loses_nothing() -> None:
    """A node of it is being healed, say: it answers 404, and has everything a moment later."""
    world = World()
    world.write(3)
    found = await unfinished(world, segment(0, 1, state=STARTED), whole=True)
    for lost in world.log.segment_facts()[:2]:
        world.log.segments.remove(lost)
    there = {key: world.bucket.objects.pop(key) for key in world.tier.keys.segment_keys(found)}
    await world.start()
    await world.interval(5)
    world.bucket.objects.update(there)
    await world.interval()
    assert world.finished() == [(0, 1), (2, 2)]
    assert world.manager.counters.of("t").lost_segments == 0
    assert world.log.log_start_offset == 0
    world.check()


async def test_nothing_is_lost_by_a_look_into_an_empty_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bucket's disk was unmounted a moment ago, and the only copy is back with it."""
    mounted = False

    async def claimed(_: Claim) -> None:
        if not mounted:
            raise RemoteStorageNotReadyError("its claim is missing")

    monkeypatch.setattr(Claim, "require_bucket_now", claimed)
    world = World()
    world.write(3)
    found = await unfinished(world, segment(0, 1, state=STARTED), whole=True)
    for lost in world.log.segment_facts()[:2]:
        world.log.segments.remove(lost)
    there = {key: world.bucket.objects.pop(key) for key in world.tier.keys.segment_keys(found)}
    await world.start()
    await world.interval()
    assert (0, 1, SegmentState.COPY_SEGMENT_STARTED) in world.states()
    assert world.manager.counters.of("t").lost_segments == 0
    mounted = True
    world.bucket.objects.update(there)
    await world.interval()
    assert world.finished() == [(0, 1), (2, 2)]
    assert world.log.log_start_offset == 0
    world.check()


async def test_two_leaders_uploads_leave_nothing_behind() -> None:
    """KAFKA-16511: the old leader died between begin and end; both had uploaded."""
    world = World()
    world.write(3)
    await unfinished(world, segment(0, 2, {0: 0}, state=STARTED), whole=True)
    world.leader_epoch = 3
    await world.start()
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1), (2, 2)]
    world.log.delete_records(3)
    await world.interval()
    assert (world.states(), world.bucket.segment_objects()) == ([], {})


async def test_a_copy_whose_end_is_there_and_not_read_yet_is_kept() -> None:
    """Who published it had no answer; followers have read it, and dropped what it holds."""
    world = World()
    world.write(1)
    world.metadata.fail("update", StoreTimeoutError("lost"), written=True, late=True)
    await world.start()
    await world.interval()
    # Its writer takes it for unfinished, and resolves it.
    await world.interval()
    assert world.tier.calls["delete_segment"] == 0
    # Its segment was copied once more meanwhile.
    assert world.finished() == [(0, 0), (0, 0)]
