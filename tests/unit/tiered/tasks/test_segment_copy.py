"""One copy: described, published, uploaded, and deleted again when it fails."""

import asyncio
import errno

import pytest

from tests.unit.storage.log.log_model import append, make_batch
from tests.unit.tiered.tasks.task_world import PARTITION, World, tiered_config
from tiered.errors import (
    RemoteStorageNotReadyError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.maintenance.bucket_ownership import Claim
from tiered.segment_metadata import RemoteLogSegmentMetadataUpdate, SegmentEpoch, SegmentState
from tiered.tasks.copier import BLOCKED_RETRY_MS


async def test_metadata_says_what_the_segment_holds() -> None:
    world = World(tiered_config(segment_bytes=400))
    for epoch in (0, 0, 3):
        append(world.log, make_batch(b"x" * 40, timestamp_ms=epoch + 1000), leader_epoch=epoch)
    world.log.writer.roll()
    world.log.flusher.flush()
    world.log.delete_records(1)
    await world.start()
    await world.interval()
    (segment,) = world.metadata.segments(PARTITION)
    assert (segment.start_offset, segment.end_offset, segment.max_timestamp_ms) == (0, 2, 1003)
    # The log knows epoch 0 only from 1 on by now; in the segment it begins with the segment.
    assert segment.segment_leader_epochs == (SegmentEpoch(0, 0), SegmentEpoch(3, 2))
    assert segment.txn_index_empty
    assert segment.segment_size_bytes == world.log.segment_facts()[0].size


async def test_epochs_that_could_not_be_synced_take_the_log_out_of_service() -> None:
    """The kernel has told of it: a second sync succeeds, and they may be lost all the same."""
    world = World()
    world.write(1)
    world.log.begin_epoch(4)
    world.filesystem.fail("sync", path="leader-epoch-checkpoint")
    await world.start()
    await world.interval()
    failure = world.log.failure
    assert failure is not None
    assert failure.path.endswith("leader-epoch-checkpoint")


async def test_without_a_descriptor_epochs_are_synced_later() -> None:
    world = World()
    world.write(1)
    world.log.begin_epoch(4)
    world.filesystem.fail("open", errno.EMFILE, path="leader-epoch-checkpoint")
    await world.start()
    assert world.finished() == []
    await world.run(600, 100)
    assert world.finished() == [(0, 0)]
    assert world.log.failure is None


async def test_a_copy_says_which_empty_segments_lie_before_it() -> None:
    """Compaction left it so: nothing is missing between two copies."""
    world = World()
    world.write(6)
    for offset in (1, 2, 4):
        for suffix in ("log", "index", "timeindex"):
            world.filesystem.open(f"/data/t-0/{offset:020}.{suffix}").truncate(0)
    await world.crash()
    await world.start()
    await world.interval()
    assert world.finished() == [(0, 0), (3, 3), (5, 5)]
    assert world.tier.empty_from == {0: None, 3: 1, 5: 4}


async def test_a_copy_does_not_count_whose_first_objects_are_elsewhere() -> None:
    """Another bucket stood there for a part of the upload: local retention would take the log."""
    world = World()
    elsewhere: list[str] = []

    async def swap(point: str) -> None:
        if point == "log uploaded" and not elsewhere:
            (key,) = world.bucket.segment_objects()
            elsewhere.append(key)
            del world.bucket.objects[key]

    world.tier.reach = swap
    world.write(1)
    await world.start()
    assert len(elsewhere) == 1
    assert (world.finished(), world.bucket.segment_objects()) == ([], {})
    await world.run(600, 100)
    assert world.finished() == [(0, 0)]
    assert len(world.bucket.segment_objects()) == 3


async def test_a_copy_does_not_count_where_the_claim_is_gone_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bucket's disk was unmounted under it: what was uploaded is not where it is looked for."""
    checks: list[int] = []

    async def missing(_: Claim) -> None:
        checks.append(len(world.bucket.segment_objects()))
        if len(checks) == 1:
            raise RemoteStorageNotReadyError("its claim is missing")

    monkeypatch.setattr(Claim, "require_bucket_now", missing)
    world = World()
    world.write(1)
    await world.start()
    assert (world.finished(), world.bucket.segment_objects()) == ([], {})
    await world.run(600, 100)
    assert world.finished() == [(0, 0)]
    # Behind the upload, behind the removal of what it had put, behind the second upload.
    assert checks == [3, 0, 3]


async def test_a_failed_copy_is_deleted_at_once_and_tried_under_a_new_id() -> None:
    world = World()
    world.write(1)
    world.tier.fail("copy_segment", StoreUnavailableError("503"), at="indexes uploaded")
    await world.start()
    assert (world.states(), world.bucket.segment_objects()) == ([], {})
    tried = {event.segment_id.id for event in world.events.events}  # type: ignore[union-attr]  # no deletions
    await world.run(600, 100)
    assert world.finished() == [(0, 0)]
    assert world.metadata.segments(PARTITION)[0].id not in tried
    row = world.manager.counters.of("t")
    assert (row.copy_requests, row.copy_errors, row.copied_segments) == (2, 1, 1)
    assert row.copy_bytes == world.log.segment_facts()[0].size


async def test_a_failed_deletion_of_a_copy_is_retried() -> None:
    """KAFKA-17428: the copy failed, then its removal failed too."""
    world = World()
    world.write(1)
    world.tier.fail("copy_segment", StoreUnavailableError("503"), at="manifest uploaded")
    world.tier.fail("delete_segment", StoreUnavailableError("503"), times=2)
    await world.start()
    assert [state for _, _, state in world.states()] == [SegmentState.DELETE_SEGMENT_STARTED]
    assert world.manager.doubtful_removals == 1
    await world.interval(2)
    assert world.finished() == [(0, 0)]
    assert len(world.states()) == 1
    assert world.orphans() == []
    assert world.manager.doubtful_removals == 0


async def test_a_copy_that_hangs_is_noticed_and_ended() -> None:
    """Aiven 820: it neither returned nor failed, and the disk filled up."""
    world = World()
    world.write(1)
    world.tier.hang("copy_segment")
    await world.start()
    assert world.manager.copies_in_flight == 1
    await world.run(world.settings.tier_stalled_copy_ms + 1, 10_000)
    assert (world.manager.stalled_copies, world.manager.stalls) == (1, 1)
    await world.run(10 * world.settings.store.call_timeout_ms, 10_000)
    assert world.manager.stalled_copies == 0
    assert world.finished() == [(0, 0)]
    assert world.manager.counters.of("t").copy_errors == 1


@pytest.mark.parametrize("call", ["add", "update"])
async def test_metadata_that_hangs_is_ended_too(call: str) -> None:
    world = World()
    world.write(1)
    world.metadata.fail(call, hangs=True)
    await world.start()
    await world.run(60_000, 5_000)
    await world.interval(2)
    assert world.finished() == [(0, 0)]
    assert world.orphans() == []


async def test_a_lost_answer_at_the_end_is_found_in_the_metadata() -> None:
    """The segment is finished; it is not copied again."""
    world = World()
    world.write(2)
    world.metadata.fail("update", StoreTimeoutError("lost"), written=True)
    await world.start()
    await world.run(600, 100)
    assert world.finished() == [(0, 0), (1, 1)]
    assert world.log.highest_remote_offset == 1
    assert world.tier.calls["copy_segment"] == 2


async def test_a_finish_that_is_published_late_never_lets_the_only_copy_go() -> None:
    """FINISHED is on its way while the expiry task removes what looks like a leftover."""
    world = World()
    world.write(2)
    world.metadata.fail("update", StoreTimeoutError("lost"), written=True, late=True)
    await world.start()
    await world.interval(1)
    world.metadata.catch_up()
    for _ in range(4):
        await world.interval(1)
        world.expire_local()
        world.check()
    await world.crash()
    await world.start()
    world.check()
    await world.interval(2)
    assert world.log.highest_remote_offset == 1
    assert world.orphans() == []


async def test_a_missing_producer_snapshot_is_reported_and_retried() -> None:
    """A follower that starts from the segment could not tell a retry from a new record."""
    world = World()
    world.write(1)
    path = world.log.producer_snapshot_path(1)
    data = world.filesystem.read_bytes(path)
    world.filesystem.unlink(path)
    await world.start()
    assert world.finished() == []
    assert "no producer snapshot" in world.led.blocked.problem  # type: ignore[union-attr]  # it is blocked
    world.filesystem.replace_bytes(path, data)
    await world.run(BLOCKED_RETRY_MS + 60_000, 60_000)
    assert world.finished() == [(0, 0)]


async def test_custom_metadata_beyond_the_limit_stops_the_partition() -> None:
    world = World()
    world.write(2)
    world.tier.custom_metadata = b"x" * 129
    await world.start()
    await world.interval(3)
    assert (world.states(), world.bucket.segment_objects()) == ([], {})
    assert world.tier.calls["copy_segment"] == 1
    assert next(world.manager.gauges()).stopped_copying
    world.tier.custom_metadata = b"x" * 128
    world.set_config()
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1)]
    assert world.metadata.segments(PARTITION)[0].custom_metadata == b"x" * 128


async def test_a_leader_that_is_none_any_more_publishes_nothing() -> None:
    """It was paused while it uploaded. The next leader says what becomes of the copy."""
    world = World()
    world.write(1)
    certain = True

    async def reach(point: str) -> None:
        nonlocal certain
        if point == "manifest uploaded":
            certain = False

    world.reach = reach
    tiered = world.tiered()
    tiered.may_change = lambda: certain
    world.manager.start()
    world.manager.on_leadership(tiered)
    await world.interval(2)
    ((_, _, state),) = world.states()
    assert state is SegmentState.COPY_SEGMENT_STARTED
    (copy,) = world.metadata.segments(PARTITION)
    assert world.tier.is_whole(copy)
    for ended in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
        await world.metadata.update(
            RemoteLogSegmentMetadataUpdate(copy.segment_id, 0, ended, 2, None)
        )
    assert len(world.orphans()) == 3
    await world.interval(2)
    assert world.orphans() == []


async def test_a_copy_given_up_while_it_is_uploaded_is_removed_when_the_upload_ends() -> None:
    """What was removed before would be there again, and nothing would know of it."""
    world = World()
    world.write(1)
    certain, goes_on = True, asyncio.Event()

    async def reach(point: str) -> None:
        if point == "manifest uploaded" and not goes_on.is_set():
            await goes_on.wait()

    world.reach = reach
    tiered = world.tiered()
    tiered.may_change = lambda: certain
    world.manager.start()
    world.manager.on_leadership(tiered)
    await world.interval(1)
    (copy,) = world.metadata.segments(PARTITION)
    certain = False
    for ended in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
        await world.metadata.update(
            RemoteLogSegmentMetadataUpdate(copy.segment_id, 0, ended, 2, None)
        )
    await world.interval(2)
    assert world.manager.copies_in_flight == 1
    assert world.tier.calls["delete_segment"] == 0
    goes_on.set()
    await world.interval(2)
    assert world.manager.copies_in_flight == 0
    assert world.orphans() == []


async def test_a_copy_that_the_next_leader_has_taken_over_stays() -> None:
    """Its offsets were nowhere else."""
    world = World()
    world.write(1)
    certain = True

    async def reach(point: str) -> None:
        nonlocal certain
        if point == "manifest uploaded":
            certain = False
            raise StoreTimeoutError("paused for longer than an upload may take")

    world.reach = reach
    tiered = world.tiered()
    tiered.may_change = lambda: certain
    world.manager.start()
    world.manager.on_leadership(tiered)
    await world.interval(1)
    (copy,) = world.metadata.segments(PARTITION)
    await world.metadata.update(
        RemoteLogSegmentMetadataUpdate(
            copy.segment_id, 0, SegmentState.COPY_SEGMENT_FINISHED, 2, None
        )
    )
    await world.interval(3)
    assert world.missing() == []
    assert world.finished() == [(0, 0)]
