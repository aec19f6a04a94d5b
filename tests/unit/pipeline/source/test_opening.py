"""Whether what is planned can be opened."""

import pytest

from pipeline.plan.bucket import Bucket
from pipeline.plan.piece import BrokerPiece, RemotePiece
from pipeline.plan.splits import pieces
from pipeline.source.opening import check_openable
from storage.environment.randomness import SeededRandomness
from tests.unit.pipeline.plan.bucket_world import BucketWorld
from tiered.errors import ObjectNotFoundError, RemoteStorageError
from tiered.format.key_ring import KeyRing


async def planned(segments: int = 5) -> tuple[BucketWorld, list[RemotePiece]]:
    """Pieces of encrypted segments."""
    world = BucketWorld(encryption=True)
    leader = world.replica("a")
    for _ in range(segments):
        leader.write(3)
        leader.roll()
    await world.copy(leader)
    log = await world.log()
    return world, await pieces(world.bucket, log, 0, log.end_offset, read_committed=False)


async def test_a_missing_key_pair_is_told_before_anything_is_read() -> None:
    world, wanted = await planned()
    without = Bucket(
        world.store,
        KeyRing("", {}, SeededRandomness(1)),
        filesystem=world.disk,
        clock=world.clock,
        randomness=world.randomness,
    )
    with pytest.raises(RemoteStorageError, match="key pair"):
        await check_openable(without, wanted)


async def test_of_a_partition_the_first_and_the_last_segment_are_opened() -> None:
    """A request a segment would be a minute's work for a large topic."""
    world, wanted = await planned(segments=9)
    bucket = world.open()
    before = world.store.calls["get"]
    await check_openable(bucket, wanted)
    assert world.store.calls["get"] - before == 2


async def test_what_a_broker_gives_needs_no_bucket() -> None:
    world, wanted = await planned(segments=1)
    before = world.store.calls["get"]
    piece = BrokerPiece(wanted[0].partition, 0, 0, 9)
    await check_openable(world.open(), [piece, piece._replace(start_offset=3)])
    await check_openable(world.open(), [])
    assert world.store.calls["get"] == before


async def test_a_segment_that_was_removed_is_told() -> None:
    """The plan is made anew then."""
    world, wanted = await planned(segments=2)
    world.store.objects.clear()
    with pytest.raises(ObjectNotFoundError):
        await check_openable(world.open(), wanted)


async def test_a_damaged_manifest_is_left_to_whoever_reads_it() -> None:
    world, wanted = await planned(segments=1)
    [key] = [name for name in world.store.objects if name.endswith("rsm-manifest")]
    world.store.damage(key, 10)
    await check_openable(world.open(), wanted)
