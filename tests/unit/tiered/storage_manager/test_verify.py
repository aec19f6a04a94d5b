import pytest

from tests.fakes.tiered.memory_object_store import FOREVER, Fault
from tests.unit.tiered.storage_manager.memory_tier import CHUNK, text_segment, tier_world
from tiered.errors import StoreUnavailableError
from tiered.storage_manager.verify import FAULTS_MAX

# What is found, and where, is in tests/contract/tier_suite.py.


async def test_several_faults_are_all_told() -> None:
    """A scrubber's report, in the order of the object."""
    world = tier_world()
    segment = text_segment()
    keys = await world.copy(segment)
    for position in (10, 3 * CHUNK, 5 * CHUNK + 999):
        world.store.damage(keys.log, position)
    world.store.damage(keys.indexes, 0)
    faults = await world.tier.verify_segment(segment.metadata)
    assert [fault[:2] for fault in faults] == [
        (keys.log, 0),
        (keys.log, 3 * CHUNK),
        (keys.log, 5 * CHUNK),
        (keys.indexes, 0),
    ]


async def test_a_report_is_bounded() -> None:
    """Of an object that is all wrong."""
    world = tier_world(chunk_bytes=20)
    segment = text_segment()
    keys = await world.copy(segment)
    for position in range(0, len(segment.log), 20):
        world.store.damage(keys.log, position)
    assert len(await world.tier.verify_segment(segment.metadata)) == FAULTS_MAX


async def test_a_store_that_cannot_be_asked_is_no_fault() -> None:
    """Nobody should repair what is whole."""
    world = tier_world()
    segment = text_segment()
    await world.copy(segment)
    for call in ("get", "head", "get_range"):
        world.store.fail(call, Fault.UNAVAILABLE, times=FOREVER)
        with pytest.raises(StoreUnavailableError):
            await world.tier.verify_segment(segment.metadata)
        world.store.heal()
    assert world.told["copies"]["lent"] == 0


async def test_what_is_in_memory_is_not_believed() -> None:
    """The manifest in the bucket is a part of what is verified."""
    world = tier_world()
    segment = text_segment()
    keys = await world.copy(segment)
    await world.tier.fetch_chunk(segment.metadata, "", 0, "/cache/c")
    del world.store.objects[keys.manifest]
    (fault,) = await world.tier.verify_segment(segment.metadata)
    assert fault.key == keys.manifest


async def test_bytes_are_counted() -> None:
    """The scrubber keeps to a rate by them."""
    world = tier_world()
    segment = text_segment()
    await world.copy(segment)
    await world.tier.verify_segment(segment.metadata)
    stored = sum(len(found.data) for found in world.store.objects.values())
    assert world.told["operations"]["verify_segment"]["bytes_down"] == stored
