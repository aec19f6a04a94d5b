"""Garbage goes after its time; nothing that anybody may own is ever touched."""

from dataclasses import replace
from uuid import UUID

import pytest

from storage.environment.alerts import AlertKind
from tests.fakes.tiered.memory_bucket_tier import Bucket
from tests.unit.tiered.metadata.segment_builder import STARTED, segment
from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.errors import StoreDeniedError, StoreUnavailableError
from tiered.maintenance.bucket_ownership import CLAIM_KEY
from tiered.maintenance.bucket_trouble import GARBAGE_LASTING_MS
from tiered.maintenance.garbage_collector import CLOCK_KEY
from tiered.maintenance.scrub_report import ScrubReport
from tiered.maintenance.verified_position import VERIFIED_KEY
from tiered.object_store.base import PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata

HOUR_MS = 3_600_000


async def filled(count: int = 7) -> World:
    """More than one page."""
    world = World()
    world.write(count)
    await world.start()
    await world.interval()
    return world


def strew(world: World, found: RemoteLogSegmentMetadata, count: int = 2) -> list[str]:
    """What is left of a removal that broke off, or with `count=3` a whole copy."""
    keys = list(world.tier.keys.segment_keys(found))[-count:]
    for key in keys:
        world.bucket.put(key, b"garbage")
    return keys


async def scrub(world: World) -> ScrubReport:
    await world.scrub()
    report = world.manager.scrubber.last
    assert report is not None
    return report


async def test_garbage_goes_after_the_grace_period() -> None:
    world = await filled()
    strays = strew(world, segment(2, 4, number=900)) + strew(world, segment(99, 99), 1)
    world.bucket.put("somebody/elses.txt", b"x")
    report = await scrub(world)
    assert (report.young_objects, report.removed_objects) == (3, 0)
    world.clock.advance(HOUR_MS + 1)
    report = await scrub(world)
    assert (report.removed_objects, report.removed_bytes) == (3, 21)
    assert sorted(report.removed_keys) == sorted(strays)
    assert report.removed_keys[0].endswith(".rsm-manifest")
    assert world.orphans() == []
    assert world.missing() == []
    assert "somebody/elses.txt" in world.bucket.objects
    assert (report.foreign_objects, report.histories) == (3, 1)
    assert report.objects == 21 + 3 + 3 + 1
    assert (await scrub(world)).removed_objects == 0


async def test_garbage_that_may_not_be_removed_is_an_alert() -> None:
    """A policy without the right to delete is found by whoever tries it."""
    world = await filled(1)
    strew(world, segment(50, 59))
    world.tier.fail("delete_objects", StoreDeniedError("403"), times=1_000)
    await world.run(2 * HOUR_MS, 10_000.0)
    await world.run(GARBAGE_LASTING_MS, 10_000.0)
    assert [one.kind for one in world.alerts.all()] == [AlertKind.TIER_GARBAGE_STAYS]
    assert len(world.orphans()) == 2
    world.tier._faults.clear()
    await world.run(100_000, 10_000.0)
    assert world.alerts.all() == []
    assert world.orphans() == []


async def test_a_dry_run_only_says() -> None:
    world = await filled(1)
    strew(world, segment(50, 59))
    world.clock.advance(HOUR_MS + 1)
    await world.scrub(dry_run=True)
    report = world.manager.scrubber.last
    assert report is not None
    assert report.removed_objects == 2
    assert len(world.orphans()) == 2
    assert world.manager.scrubber.removed_objects == 0
    assert world.manager.scrubber.removed_from_ms is None
    began_ms = world.clock.monotonic_ms()
    await scrub(world)
    assert world.manager.scrubber.removed_from_ms == began_ms


async def test_a_foreign_bucket_is_only_reported_on() -> None:
    world = await filled(1)
    strew(world, segment(50, 59))
    world.bucket.put(CLAIM_KEY, b'{"clusterId": "other"}')
    world.clock.advance(10 * HOUR_MS)
    before = dict(world.bucket.objects)
    report = await scrub(world)
    assert (report.is_ours, report.owner, report.removed_objects) == (False, "other", 2)
    assert world.bucket.objects == before
    assert world.manager.scrubber.removed_from_ms is None


async def test_what_is_not_visible_here_is_left_alone() -> None:
    """An empty broker at a full bucket removes nothing."""
    world = await filled(2)
    fresh = World()
    fresh.bucket = world.bucket
    fresh.bucket.clock = fresh.clock
    fresh.boot()
    await fresh.scrub()
    fresh.clock.advance(10 * HOUR_MS)
    report = await scrub(fresh)
    assert (report.hidden_objects, report.removed_objects) == (6, 0)
    world.metadata.hidden.add(PARTITION)
    world.clock.advance(10 * HOUR_MS)
    assert (await scrub(world)).removed_objects == 0


async def test_a_running_copy_is_left_alone_however_old() -> None:
    world = World()
    world.write(1)
    world.tier.hang("log uploaded")
    await world.start()
    world.clock.advance(10 * HOUR_MS)
    (only,) = world.bucket.segment_objects()
    key = world.tier.keys.parse(only)
    assert key is not None
    world.bucket.uploads.append(PendingUpload(only, "u", 0))
    await world.scrub()
    assert only in world.bucket.objects
    assert len(world.bucket.uploads) == 1


@pytest.mark.parametrize("skew_ms", [-50 * HOUR_MS, 50 * HOUR_MS])
async def test_age_is_by_the_stores_clock(skew_ms: int) -> None:
    """A wrong clock of ours makes nothing old, and nothing young for ever."""
    world = await filled(1)
    world.bucket.skew_ms = skew_ms
    strew(world, segment(50, 59))
    assert (await scrub(world)).young_objects == 2
    world.clock.advance(HOUR_MS + 1)
    assert (await scrub(world)).removed_objects == 2


async def test_what_becomes_owned_meanwhile_is_not_removed() -> None:
    """Another broker's record arrives while the bucket is being listed."""
    world = await filled(1)
    await world.manager.stop()
    found = segment(50, 59, state=STARTED)
    strew(world, found)
    world.clock.advance(HOUR_MS + 1)

    async def owned(point: str) -> None:
        if point == "list_objects" and world.tier.calls["list_objects"] > 1:
            world.reach = None
            await world.metadata.add(found)

    world.reach = owned
    await world.scrub()
    assert len(world.orphans()) == 0
    assert len(world.bucket.segment_objects()) == 5


async def test_missing_objects_are_reported() -> None:
    world = await filled(3)
    segments = world.metadata.segments(PARTITION)
    del world.bucket.objects[world.tier.keys.segment_keys(segments[0]).log]
    for key in world.tier.keys.segment_keys(segments[2]):
        del world.bucket.objects[key]
    world.clock.advance(1)
    report = await scrub(world)
    assert [s.start_offset for s in report.missing] == [0, 2]
    assert report.missing_segments == 2
    for key in list(world.bucket.segment_objects()):
        del world.bucket.objects[key]
    assert (await scrub(world)).missing_segments == 3


async def test_missing_objects_are_an_alert_until_they_are_back_or_another_broker_lists() -> None:
    """Their consumers wait, and do not say so."""
    world = await filled(3)
    key = world.tier.keys.segment_keys(world.metadata.segments(PARTITION)[1]).log
    taken = world.bucket.objects.pop(key)
    world.clock.advance(1)
    for ended in ("back", "left"):
        await scrub(world)
        (alert,) = world.alerts.all()
        assert alert.kind is AlertKind.TIER_SEGMENT_DAMAGED
        assert alert.subject == str(PARTITION)
        assert "from offset 1 on" in alert.text
        assert f"--partition {PARTITION.partition} --before-offset 2`" in alert.text
        if ended == "left":
            world.manager.scrubber.leave()
            assert world.manager.scrubber.last is None
        else:
            world.bucket.objects[key] = taken
            await scrub(world)
        assert world.alerts.all() == []
        world.bucket.objects.pop(key, None)


async def test_in_a_bucket_whose_claim_is_gone_no_segment_is_said_to_be_missing() -> None:
    """Its disk is not mounted: that is another alert."""
    world = await filled(3)
    world.manager.claim.is_missing = True
    owner, world.manager.claim.cluster_id = world.manager.claim.cluster_id, "another"
    for key in list(world.bucket.segment_objects()):
        del world.bucket.objects[key]
    world.clock.advance(1)
    assert (await scrub(world)).missing_segments == 3
    assert AlertKind.TIER_SEGMENT_DAMAGED not in [alert.kind for alert in world.alerts.all()]
    world.manager.claim.cluster_id = owner


async def test_stale_uploads_are_aborted() -> None:
    world = await filled(1)
    old = segment(50, 59)
    elsewhere = PARTITION._replace(topic_id=UUID(int=77))
    keys = world.tier.keys
    stale = PendingUpload(keys.segment_keys(old).log, "1", world.clock.now_ms())
    hidden = PendingUpload(
        keys.keys_of(old.segment_id._replace(partition=elsewhere), 5).log, "2", 0
    )
    other = PendingUpload("other", "3", 0)
    world.bucket.uploads += [stale, hidden, other]
    assert (await scrub(world)).aborted_uploads == 0
    world.clock.advance(HOUR_MS + 1)
    assert (await scrub(world)).aborted_uploads == 1
    assert world.bucket.uploads == [hidden, other]
    assert world.manager.scrubber.aborted_uploads == 1


@pytest.mark.parametrize("is_finished", [False, True])
async def test_an_upload_that_may_be_under_way_elsewhere_is_spared(*, is_finished: bool) -> None:
    """Until its segment is given up, or finished: then the answer to its begin was lost."""
    world = await filled(1)
    (known,) = world.metadata.segments(PARTITION)
    # Its expirer would give up what nobody here copies.
    await world.manager.stop()
    if not is_finished:
        known = segment(50, 59, state=STARTED)
        await world.metadata.add(known)
    upload = PendingUpload(world.tier.keys.segment_keys(known).log, "1", 0)
    world.bucket.uploads.append(upload)
    world.clock.advance(HOUR_MS + 1)
    await world.scrub()
    assert world.bucket.uploads == [upload] * (not is_finished)


async def test_a_refused_listing_fails_the_pass() -> None:
    world = await filled(1)
    world.tier.fail("list_objects", StoreUnavailableError("503"))
    with pytest.raises(StoreUnavailableError):
        await world.scrub()
    assert world.manager.scrubber.last is None
    assert isinstance(world.bucket, Bucket)


async def test_a_whole_copy_that_the_metadata_never_heard_of_is_kept_and_told() -> None:
    """It was told begun before its first byte: the metadata has lost it."""
    world = await filled(1)
    history = strew(world, segment(50, 59), 3)
    rest = strew(world, segment(60, 69), 2)
    world.clock.advance(HOUR_MS + 1)
    for _ in range(2):
        report = await scrub(world)
        assert (report.unknown_copies, report.unknown[0].start_offset) == (1, 50)
        assert report.unknown[0].size_bytes == 21
    assert set(history) < world.bucket.objects.keys()
    assert not set(rest) & world.bucket.objects.keys()
    (alert,) = world.alerts.all()
    assert alert.kind is AlertKind.TIER_METADATA_LOST
    assert "varve tier rebuild-metadata" in alert.text


async def test_a_copy_that_was_removed_since_it_was_listed_is_not_unknown() -> None:
    world = await filled(1)
    history = strew(world, segment(50, 59), 3)
    world.clock.advance(HOUR_MS + 1)

    async def removed(point: str) -> None:
        if point == "get_object" and "listing" in seen:
            for key in history:
                world.bucket.objects.pop(key, None)
        if point == "list_objects":
            seen.add("listing")

    seen: set[str] = set()
    world.reach = removed
    report = await scrub(world)
    assert (report.unknown_copies, world.alerts.all()) == (0, [])


async def test_a_whole_copy_of_a_topic_that_was_deleted_here_goes() -> None:
    world = await filled(1)
    history = strew(world, segment(50, 59), 3)
    world.clock.advance(HOUR_MS + 1)
    world.deleted.add(PARTITION.topic_id)
    report = await scrub(world)
    assert (report.unknown_copies, report.removed_objects) == (0, 3)
    assert not set(history) & world.bucket.objects.keys()


async def test_what_a_cancelled_upload_left_of_a_deleted_topic_is_found_after_a_restart() -> None:
    """The partition is unknown to the metadata by then; the note of the deletion says enough."""
    world = await filled(0)
    gone = PARTITION._replace(topic_id=UUID(int=77))
    late = segment(50, 59)
    late = replace(late, segment_id=late.segment_id._replace(partition=gone))
    keys = strew(world, late, 2)
    world.bucket.uploads.append(PendingUpload(world.tier.keys.segment_keys(late).log, "u", 0))
    world.clock.advance(HOUR_MS + 1)
    report = await scrub(world)
    assert (report.hidden_objects, report.removed_objects, report.aborted_uploads) == (2, 0, 0)
    world.deleted.add(gone.topic_id)
    await scrub(world)
    assert not set(keys) & world.bucket.objects.keys()
    assert world.bucket.uploads == []


async def test_nothing_is_removed_while_the_metadata_has_lost_something() -> None:
    world = await filled(1)
    rest = strew(world, segment(60, 69), 2)
    world.clock.advance(HOUR_MS + 1)
    world.metadata.loss = "events 0 to 99 are lost"
    report = await scrub(world)
    assert (report.lost, report.removed_objects) == (["events 0 to 99 are lost"], 2)
    assert set(rest) < world.bucket.objects.keys()
    await world.interval()
    (alert,) = world.alerts.all()
    assert "events 0 to 99 are lost" in alert.text
    await world.metadata.found()
    await scrub(world)
    assert not set(rest) & world.bucket.objects.keys()
    await world.interval()
    assert world.alerts.all() == []


async def test_an_unfinished_object_of_the_buckets_own_is_aborted() -> None:
    """A directory keeps what a killed broker was writing, under a name of its own."""
    world = await filled(1)
    now_ms = world.clock.now_ms()
    own = [PendingUpload(key, "1", now_ms) for key in (CLOCK_KEY, CLAIM_KEY, VERIFIED_KEY)]
    foreign = PendingUpload("somebody.json", "2", now_ms)
    world.bucket.uploads += [*own, foreign]
    assert (await scrub(world)).aborted_uploads == 0
    world.clock.advance(HOUR_MS + 1)
    assert (await scrub(world)).aborted_uploads == 3
    assert world.bucket.uploads == [foreign]


async def test_an_unfinished_history_is_aborted_where_its_partition_is_known() -> None:
    """The next one is written under a name of its own until it is whole."""
    world = await filled(1)
    keys = world.tier.keys
    ours = PendingUpload(keys.history_key(PARTITION), "1", world.clock.now_ms())
    hidden = PendingUpload(
        keys.history_key(PARTITION._replace(topic_id=UUID(int=77))), "2", world.clock.now_ms()
    )
    world.bucket.uploads += [ours, hidden]
    assert (await scrub(world)).aborted_uploads == 0
    world.clock.advance(HOUR_MS + 1)
    assert (await scrub(world)).aborted_uploads == 1
    assert world.bucket.uploads == [hidden]
