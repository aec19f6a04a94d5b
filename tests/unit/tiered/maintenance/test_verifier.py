"""Round and round, at its pace; a flipped byte is found and named."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from storage.environment.alerts import AlertKind
from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    RemoteStorageNotReadyError,
    StoreUnavailableError,
)
from tiered.maintenance.bucket_ownership import CLAIM_KEY, Claim, encode_claim
from tiered.maintenance.verified_position import VERIFIED_KEY, Position, Verified, decode, encode
from tiered.maintenance.verifier import IDLE_MS, INSPECTION_MS, SAVE_MS
from tiered.segment_metadata import (
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)


async def filled(count: int = 3) -> World:
    world = World()
    world.write(count)
    await world.start()
    await world.interval()
    world.update(tier_verify_bytes_per_second=100)
    return world


def flip(world: World, at: int) -> str:
    key = world.tier.keys.segment_keys(world.metadata.segments(PARTITION)[at]).log
    stored = world.bucket.objects[key]
    world.bucket.objects[key] = replace(stored, data=bytes([stored.data[0] ^ 1]) + stored.data[1:])
    return key


async def test_one_after_the_other_at_its_pace() -> None:
    world = await filled()
    verifier = world.manager.verifier
    size = world.metadata.segments(PARTITION)[0].segment_size_bytes
    waits = [await verifier.run_once() for _ in range(4)]
    assert waits == [size * 10.0] * 4
    assert (verifier.verified_segments, verifier.rounds) == (4, 1)
    assert verifier.verified_bytes == 4 * size
    assert verifier.position is not None
    assert verifier.position.start_offset == 0


async def test_an_empty_folder_has_no_faulty_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket's disk is not mounted: nothing of the bucket is known to be wrong."""

    async def missing(_: Claim) -> None:
        raise RemoteStorageNotReadyError("its claim is missing")

    monkeypatch.setattr(Claim, "require_bucket_now", missing)
    world = World()
    monkeypatch.undo()
    world.write(3)
    await world.start()
    await world.interval()
    world.update(tier_verify_bytes_per_second=100)
    verifier = world.manager.verifier
    world.tier.fail("verify_segment", ObjectNotFoundError("a.log"))
    with pytest.raises(RemoteStorageNotReadyError):
        await verifier.run_once()
    assert (list(verifier.faults), verifier.faulty_segments, verifier.errors) == ([], 0, 1)
    assert verifier.verified_segments == 0
    flip(world, 1)
    with pytest.raises(RemoteStorageNotReadyError):
        await verifier.run_once()
    assert list(verifier.faults) == []


async def test_it_goes_on_from_where_another_broker_stopped() -> None:
    """Also in the round that it counts; an earlier one's faults are looked at first."""
    world = await filled(4)
    first, second, *_ = world.metadata.segments(PARTITION)
    verified = Verified(7, Position.of(second), [Position.of(first)])
    await world.tier.put_object(VERIFIED_KEY, encode(verified, "cluster"))
    flip(world, 0)
    verifier = world.manager.verifier
    await verifier.run_once()
    assert [one.segment.id for one in verifier.faults] == [first.id]
    await verifier.run_once()
    assert verifier.position is not None
    assert (verifier.rounds, verifier.position.start_offset) == (7, 2)
    await verifier.save()
    kept = decode(await world.tier.get_object(VERIFIED_KEY), "cluster")
    assert kept == (7, verifier.position, [Position.of(first)])


async def test_what_an_earlier_steward_found_is_not_lost_while_the_store_is_away() -> None:
    """Until it has been read, it is kept for whoever comes next; what is gone is not."""
    world = await filled(4)
    first, second, *_ = world.metadata.segments(PARTITION)
    gone = Position("t", 0, PARTITION.topic_id, 0, UUID(int=1))
    verified = Verified(7, Position.of(second), [Position.of(first), gone])
    await world.tier.put_object(VERIFIED_KEY, encode(verified, "cluster"))
    flip(world, 0)
    verifier = world.manager.verifier
    world.tier.fail("verify_segment", StoreUnavailableError("503"))
    with pytest.raises(StoreUnavailableError):
        await verifier.run_once()
    await verifier.run_once()
    await verifier.save()
    kept = decode(await world.tier.get_object(VERIFIED_KEY), "cluster")
    assert kept == (7, verifier.position, [Position.of(first)])
    while not verifier.faults:
        await verifier.run_once()
    assert [one.segment.id for one in verifier.faults] == [first.id]


async def test_faults_of_what_other_brokers_remove_go() -> None:
    """Those who lead a partition remove its segments, and the steward is not called."""
    world = await filled(4)
    first = world.metadata.segments(PARTITION)[0]
    flip(world, 0)
    verifier = world.manager.verifier
    await verifier.run_once()
    assert len(verifier.faults) == 1
    await world.metadata.update(
        RemoteLogSegmentMetadataUpdate(
            first.segment_id, world.clock.now_ms(), SegmentState.DELETE_SEGMENT_STARTED, 2
        )
    )
    world.clock.advance(SAVE_MS)
    await verifier.run_once()
    assert verifier.faults == ()
    kept = decode(await world.tier.get_object(VERIFIED_KEY), "cluster")
    assert kept.faulty == []


async def test_metadata_that_cannot_be_read_keeps_no_other_partition_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await filled(2)
    unled = TopicIdPartition(PARTITION.topic_id, "a", 0)

    async def begin(partition: TopicIdPartition) -> Sequence[TopicIdPartition]:
        if partition == unled:
            await asyncio.Event().wait()
        return ()

    monkeypatch.setattr(world.metadata, "known", lambda: [unled, PARTITION])
    monkeypatch.setattr(world.metadata, "begin_inspection", begin)
    running = asyncio.ensure_future(world.manager.verifier.run_once())
    await world.run(INSPECTION_MS)
    await running
    assert world.manager.verifier.verified_segments == 1


async def test_where_it_is_is_kept_once_a_minute_and_at_a_stop() -> None:
    world = await filled(4)
    verifier = world.manager.verifier
    await verifier.run_once()
    assert VERIFIED_KEY not in world.bucket.objects
    world.clock.advance(SAVE_MS)
    await verifier.run_once()
    kept = decode(await world.tier.get_object(VERIFIED_KEY), "cluster")
    assert kept.position is not None
    assert kept.position.start_offset == 1
    await verifier.run_once()
    await world.crash()
    kept = decode(await world.tier.get_object(VERIFIED_KEY), "cluster")
    assert kept.position is not None
    assert kept.position.start_offset == 2


async def test_who_is_not_the_steward_verifies_nothing_and_forgets_faults() -> None:
    world = await filled(2)
    verifier = world.manager.verifier
    flip(world, 0)
    await verifier.run_once()
    world.metadata.is_steward = False
    assert await verifier.run_once() == IDLE_MS
    await verifier.save()
    assert VERIFIED_KEY not in world.bucket.objects
    assert [alert.kind for alert in world.alerts.all()] == [AlertKind.TIER_SEGMENT_DAMAGED]
    verifier.leave()
    assert world.alerts.all() == []
    assert (verifier.faults, verifier.position, verifier.verified_segments) == ((), None, 1)


async def test_a_bucket_of_another_cluster_is_verified_and_not_written_to() -> None:
    world = await filled(2)
    await world.tier.put_object(CLAIM_KEY, encode_claim("another", 0))
    await world.manager.claim.check()
    verifier = world.manager.verifier
    await verifier.run_once()
    await verifier.save()
    assert verifier.verified_segments == 1
    assert VERIFIED_KEY not in world.bucket.objects


async def test_a_flipped_byte_is_kept_with_its_place_until_it_is_whole_again() -> None:
    world = await filled()
    verifier = world.manager.verifier
    key = flip(world, 1)
    for _ in range(3):
        await verifier.run_once()
    (found,) = verifier.faults
    assert (found.segment.start_offset, found.faults[0].key) == (1, key)
    assert found.faults[0].position == 0
    (alert,) = world.alerts.all()
    assert (alert.kind, alert.subject) == (AlertKind.TIER_SEGMENT_DAMAGED, str(PARTITION))
    flip(world, 1)
    for _ in range(3):
        await verifier.run_once()
    assert (verifier.faults, verifier.faulty_segments) == ((), 1)
    assert world.alerts.all() == []


async def test_what_was_listed_as_missing_and_is_read_whole_is_no_alert_any_more() -> None:
    """An operator who put it back asks for the verification, not for a listing of the bucket."""
    world = await filled(2)
    first, _ = world.metadata.segments(PARTITION)
    key = world.tier.keys.segment_keys(first).log
    taken = world.bucket.objects.pop(key)
    world.clock.advance(1)
    await world.scrub()
    assert [alert.kind for alert in world.alerts.all()] == [AlertKind.TIER_SEGMENT_DAMAGED]
    world.bucket.objects[key] = taken
    assert await world.manager.verifier.verify(first) == []
    assert world.alerts.all() == []


async def test_missing_and_unreadable_objects_are_faults_too() -> None:
    world = await filled(2)
    verifier = world.manager.verifier
    first, second = world.metadata.segments(PARTITION)
    del world.bucket.objects[world.tier.keys.segment_keys(first).manifest]
    assert (await verifier.verify(first))[0].problem == "the object is missing"
    world.tier.fail("verify_segment", CorruptRemoteDataError("k", 9, "tag"))
    assert (await verifier.verify(second))[0] == ("k", 9, "tag")
    assert len(verifier.faults) == 2
    verifier.forget(first)
    assert len(verifier.faults) == 1


async def test_a_store_that_is_away_is_no_fault() -> None:
    world = await filled(2)
    verifier = world.manager.verifier
    world.tier.fail("verify_segment", StoreUnavailableError("503"))
    with pytest.raises(StoreUnavailableError):
        await verifier.run_once()
    await verifier.run_once()
    assert (verifier.errors, verifier.faults, verifier.verified_segments) == (1, (), 1)


async def test_what_was_removed_meanwhile_is_no_fault() -> None:
    world = await filled(1)
    (only,) = world.metadata.segments(PARTITION)
    world.bucket.objects.clear()
    world.metadata.hidden.add(PARTITION)
    assert await world.manager.verifier.verify(only) == ()


async def test_switched_off_it_idles() -> None:
    world = await filled(1)
    world.update(tier_verify_bytes_per_second=0)
    assert await world.manager.verifier.run_once() == IDLE_MS
    empty = World()
    empty.update(tier_verify_bytes_per_second=1)
    assert await empty.manager.verifier.run_once() == IDLE_MS
