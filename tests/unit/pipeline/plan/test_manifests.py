from pipeline.plan.listing import ListedSegment, list_partition
from pipeline.plan.manifests import ManifestFacts, read_manifest, read_manifests
from pipeline.plan.partition_log import DamagedObject
from tests.fakes.tiered.memory_object_store import Fault
from tests.unit.pipeline.plan.bucket_world import NAME, BucketWorld


async def listed_segments(world: BucketWorld) -> list[ListedSegment]:
    return (await list_partition(world.bucket, NAME)).segments


async def two_segments() -> BucketWorld:
    world = BucketWorld()
    leader = world.replica("a")
    for _ in range(2):
        leader.write(3)
        leader.roll()
    await world.copy(leader, partitions=6)
    return world


async def test_facts_are_read_in_the_order_of_the_listing() -> None:
    world = await two_segments()
    facts, damaged = await read_manifests(world.bucket, await listed_segments(world))
    assert [one.segment.whole.start_offset for one in facts] == [0, 3]
    assert facts[0].topic.partitions == 6
    assert damaged == []


async def test_wrong_twice_is_damaged_wrong_once_is_not() -> None:
    world = await two_segments()
    first, _ = await listed_segments(world)
    world.store.fail("get", Fault.WRONG_BYTES)
    assert isinstance(await read_manifest(world.bucket, first), ManifestFacts)
    world.store.fail("get", Fault.WRONG_BYTES, times=2)
    assert isinstance(await read_manifest(world.bucket, first), DamagedObject)


async def test_a_manifest_under_another_ones_name_is_damaged() -> None:
    """Copied by hand, perhaps: its chunks are not there."""
    world = await two_segments()
    first, second = await listed_segments(world)
    world.store.objects[second.manifest_key] = world.store.objects[first.manifest_key]
    damaged = await read_manifest(world.bucket, second)
    assert isinstance(damaged, DamagedObject)
    assert damaged.key == second.manifest_key
    assert damaged.problem.startswith("the manifest is of ")


async def test_one_that_is_gone_is_no_damage() -> None:
    world = await two_segments()
    segments = await listed_segments(world)
    del world.store.objects[segments[0].manifest_key]
    assert await read_manifest(world.bucket, segments[0]) is None
    facts, damaged = await read_manifests(world.bucket, segments)
    assert ([one.segment.whole.start_offset for one in facts], damaged) == ([3], [])
