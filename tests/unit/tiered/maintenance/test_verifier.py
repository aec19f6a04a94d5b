"""Round and round, at its pace; a flipped byte is found and named."""

from dataclasses import replace

import pytest

from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.errors import CorruptRemoteDataError, StoreUnavailableError
from tiered.maintenance.verifier import IDLE_MS, Position


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


async def test_it_goes_on_from_where_another_process_stopped() -> None:
    world = await filled()
    last = world.metadata.segments(PARTITION)[1]
    world.manager.verifier.position = Position("t", 0, PARTITION.topic_id, 1, last.id)
    await world.manager.verifier.run_once()
    assert world.manager.verifier.position.start_offset == 2


async def test_a_flipped_byte_is_kept_with_its_place_until_it_is_whole_again() -> None:
    world = await filled()
    verifier = world.manager.verifier
    key = flip(world, 1)
    for _ in range(3):
        await verifier.run_once()
    (found,) = verifier.faults
    assert (found.segment.start_offset, found.faults[0].key) == (1, key)
    assert found.faults[0].position == 0
    flip(world, 1)
    for _ in range(3):
        await verifier.run_once()
    assert (verifier.faults, verifier.faulty_segments) == ((), 1)


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
