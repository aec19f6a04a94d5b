from pipeline.plan.listing import MISSING, TopicSelection, list_partitions
from tests.fakes.object_store import StoredObject
from tests.unit.pipeline.plan.bucket_world import PARTITION, BucketWorld


async def test_of_each_manifest_the_sizes_of_what_lies_beside_it_are_known() -> None:
    world = BucketWorld(page_max=2)
    leader = world.replica("a")
    for _ in range(3):
        leader.write(3)
        leader.roll()
    first, second, third = await world.copy(leader)
    world.remove(second, ".log")
    world.remove(third, ".rsm-manifest")
    listed = await list_partitions(world.bucket, ["t-"])
    segments = listed["t", PARTITION.topic_id][0].segments
    assert [one.segment_id for one in segments] == [first.segment_id, second.segment_id]
    assert segments[0].log_size == first.segment_size_bytes
    assert segments[0].indexes_size > 0
    assert (segments[1].log_size, segments[1].start_offset) == (MISSING, 3)


async def test_histories_are_seen_and_other_things_are_not() -> None:
    world = BucketWorld()
    topic = "t-AAAAAAAAAAAAAAAAAAAABw"
    for key in (
        f"{topic}/4/varve-history",
        f"{topic}/x/varve-history",
        f"{topic}/5/other",
        f"{topic}/5/00000000000000000000-AAAAAAAAAAAAAAAAAAAABw.rsm-manifest.tmp",
        "varve-history",
        "claim",
    ):
        world.store.objects[key] = StoredObject(b"", 0)
    listed = await list_partitions(world.bucket, [""])
    assert {key: {*partitions} for key, partitions in listed.items()} == {
        ("t", PARTITION.topic_id): {4}
    }
    assert listed["t", PARTITION.topic_id][4].has_history


def test_a_selection_tells_what_it_wants() -> None:
    assert TopicSelection().prefixes() == [""]
    assert TopicSelection(pattern="a.*").prefixes() == [""]
    assert TopicSelection(names=("b", "a")).prefixes() == ["a-", "b-"]
    assigned = TopicSelection(partitions={"a": frozenset({1})})
    assert assigned.prefixes() == ["a-"]
    assert assigned.has_partition("a", 1)
    assert not assigned.has_partition("a", 0)
    assert not assigned.has_partition("b", 1)
    assert TopicSelection(pattern="a.*").has_partition("abc", 7)
    assert not TopicSelection(pattern="a.*").has_topic("bac")
