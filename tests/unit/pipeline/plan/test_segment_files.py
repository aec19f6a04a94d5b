"""What is gone, damaged or denied is told apart."""

import pytest

from pipeline.plan import bucket as bucket_module
from pipeline.plan.errors import DamagedBucketError
from pipeline.plan.segment_files import read_segment_files
from tests.fakes.tiered.memory_object_store import Fault
from tests.unit.pipeline.plan.bucket_world import BucketWorld
from tiered.errors import ObjectNotFoundError, StoreDeniedError
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import SideFile


async def one_segment() -> tuple[BucketWorld, RemoteLogSegmentMetadata]:
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(3)
    leader.roll()
    (metadata,) = await world.copy(leader)
    return world, metadata


async def test_what_was_asked_for_is_read_as_far_as_it_is_there() -> None:
    world, metadata = await one_segment()
    kinds = (SideFile.LEADER_EPOCH, SideFile.TRANSACTION)
    found = await read_segment_files(world.bucket, metadata, kinds)
    assert found.files == {SideFile.LEADER_EPOCH: b"0\n1\n0 0\n"}
    assert found.opened.manifest.metadata.id == metadata.id
    assert found.keys.log in world.store.objects


async def test_a_segment_that_is_gone_is_remembered() -> None:
    world, metadata = await one_segment()
    world.remove(metadata, ".indexes")
    with pytest.raises(ObjectNotFoundError):
        await read_segment_files(world.bucket, metadata, (SideFile.OFFSET, SideFile.TIMESTAMP))
    assert world.bucket.misses([metadata.id])
    assert not world.bucket.misses([])


async def test_no_more_are_remembered_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _ = await one_segment()
    monkeypatch.setattr(bucket_module, "GONE_MAX", 2)
    for number in range(5):
        world.bucket.forget(world.randomness.uuid4())
        assert len(world.bucket.gone) <= 2, number


async def test_damage_is_named_and_denial_is_neither() -> None:
    world, metadata = await one_segment()
    world.store.fail("get_range", Fault.WRONG_BYTES, times=2)
    with pytest.raises(DamagedBucketError, match=r"\.indexes at byte"):
        await read_segment_files(world.bucket, metadata, (SideFile.TIMESTAMP,))
    world.store.fail("get_range", Fault.DENIED)
    with pytest.raises(StoreDeniedError):
        await read_segment_files(world.bucket, metadata, (SideFile.TIMESTAMP,))
    assert not world.bucket.gone
