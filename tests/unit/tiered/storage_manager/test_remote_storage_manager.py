import asyncio
import json

import pytest

from tests.fakes.tiered.memory_object_store import Fault
from tests.unit.tiered.format.closed_segments import FACTS
from tests.unit.tiered.storage_manager.memory_tier import text_segment, tier_world, turns
from tiered.errors import RemoteStorageError, TierProcessError
from tiered.storage_manager.remote_storage_manager import OBJECT_BYTES_MAX
from tiered.storage_manager.workspace import ROOM_BYTES_MAX
from tiered.tier import SideFile, bytes_moved

# What a Tier promises is in tests/contract/tier_suite.py.


async def test_statistics_tell_of_everything() -> None:
    """Names that metrics are built from; plain values, since they cross to another process."""
    world = tier_world()
    segment = text_segment()
    uploaded = sum(len(world.store.objects[key].data) for key in await world.copy(segment))
    await world.tier.fetch_chunk(segment.metadata, "", 0, "/cache/c")
    told = json.loads(json.dumps(world.told))
    assert told["operations"]["copy_segment"]["bytes_up"] == uploaded
    assert told["operations"]["fetch_chunk"]["requests"] == 1
    assert told["operations"]["fetch_chunk"]["bytes_down"] == 1000
    assert told["manifests"]["entries"] == 1
    assert told["store"]["calls"]["put"]["calls"] == 2
    assert set(told) == {
        *("operations", "second_reads", "corrupt_reads", "failed_cleanups"),
        *("copies", "fetches", "manifests", "store", "copying"),
    }
    assert told["copying"] == {}


async def test_how_far_a_copy_is_can_be_told() -> None:
    """Of each one apart; a gauge of stalled copies is made of it."""
    world = tier_world()
    stuck, other = text_segment(), text_segment(copy_id=2)
    world.store.fail("put", Fault.HANG, key=".rsm-manifest")
    copying = asyncio.create_task(
        world.tier.copy_segment(stuck.metadata, world.write(stuck), FACTS)
    )
    while not world.store.hanging:
        await turns(1)
    size = stuck.metadata.segment_size_bytes
    assert bytes_moved(world.tier.statistics(), stuck.metadata.id) == size
    assert bytes_moved(world.tier.statistics(), other.metadata.id) == 0
    copying.cancel()
    await asyncio.gather(copying, return_exceptions=True)
    assert bytes_moved(world.tier.statistics(), stuck.metadata.id) == 0
    assert bytes_moved({}, stuck.metadata.id) == 0


async def test_after_the_end_every_call_fails() -> None:
    """At once, and with the error that means it."""
    world = tier_world()
    segment = text_segment()
    files = world.write(segment)
    await world.tier.close()
    await world.tier.close()
    assert world.store.closed
    tier, metadata = world.tier, segment.metadata
    for call in (
        tier.copy_segment(metadata, files, FACTS),
        tier.fetch_indexes(metadata, "/cache", "x"),
        tier.fetch_chunk(metadata, "", 0, "/cache/c"),
        tier.fetch_side_file(metadata, SideFile.OFFSET),
        tier.delete_segment(metadata),
        tier.is_complete(metadata),
        tier.verify_segment(metadata),
        tier.list_objects("", None),
        tier.delete_objects(["a"]),
        tier.list_uploads(""),
        tier.abort_upload(world.store.leave_upload("a")),
        tier.put_object("a", b""),
        tier.get_object("a"),
    ):
        with pytest.raises(TierProcessError):
            await call


@pytest.mark.parametrize("cancelled", [False, True])
async def test_the_end_ends_what_is_under_way(cancelled: bool) -> None:
    """With the error that says so, not as if the caller had been cancelled; and cleans up."""
    world = tier_world()
    segment = text_segment()
    await world.copy(segment)
    before = set(world.store.objects)
    world.store.fail("get_range", Fault.HANG)
    world.store.fail("put", Fault.HANG, key=".indexes")
    other = text_segment(copy_id=2)
    reading = asyncio.create_task(world.tier.fetch_chunk(segment.metadata, "", 0, "/cache/c"))
    copying = asyncio.create_task(
        world.tier.copy_segment(other.metadata, world.write(other), FACTS)
    )
    while world.store.hanging < 2:
        await turns(1)
    closing = asyncio.create_task(world.tier.close())
    if cancelled:
        await asyncio.sleep(0)
        reading.cancel()
    await closing
    assert world.store.closed
    assert set(world.store.objects) == before
    outcomes = await asyncio.gather(reading, copying, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError if cancelled else TierProcessError)
    assert isinstance(outcomes[1], TierProcessError)


async def test_more_copies_wait() -> None:
    """Memory is bounded by how many are under way."""
    world = tier_world()
    segments = [text_segment(copy_id=number) for number in range(1, 7)]
    files = [world.write(segment) for segment in segments]
    most = 0

    def look(call: str, key: str) -> None:
        nonlocal most
        most = max(most, world.told["copies"]["lent"])

    world.store.on_call = look
    await asyncio.gather(
        *(
            world.tier.copy_segment(segment.metadata, file, FACTS)
            for segment, file in zip(segments, files, strict=True)
        )
    )
    assert most == 2
    assert len(world.store.objects) == 18


async def test_unfinished_uploads_can_be_found_and_forgotten() -> None:
    """They cost money and are in no listing of objects."""
    world = tier_world()
    upload = world.store.leave_upload("topic/x.log")
    assert list(await world.tier.list_uploads("topic/")) == [upload]
    await world.tier.abort_upload(upload)
    assert list(await world.tier.list_uploads("")) == []


async def test_objects_are_bounded() -> None:
    """They are held whole."""
    world = tier_world()
    with pytest.raises(RemoteStorageError, match="limit"):
        await world.tier.put_object("a", bytes(OBJECT_BYTES_MAX + 1))
    assert world.store.objects == {}


def test_chunks_that_could_not_be_read_again_are_not_written() -> None:
    """Found at the start."""
    with pytest.raises(ValueError, match="chunks of"):
        tier_world(chunk_bytes=ROOM_BYTES_MAX + 1)
