from uuid import UUID

import pytest

from pipeline.plan.listing import (
    MISSING,
    HistoryStamp,
    TopicSelection,
    find_partitions,
    find_topics,
    list_partition,
)
from tests.fakes.tiered.memory_object_store import StoredObject
from tests.unit.pipeline.plan.bucket_world import NAME, BucketWorld
from tiered.object_store.base import ObjectPage

TOPIC = "t-AAAAAAAAAAAAAAAAAAAABw"
"""Folder of topic `t` with id 7."""


@pytest.mark.parametrize("page_max", [1, 2, 1000])
async def test_of_each_manifest_the_sizes_of_what_lies_beside_it_are_known(page_max: int) -> None:
    world = BucketWorld(page_max=page_max)
    leader = world.replica("a")
    for _ in range(4):
        leader.write(3)
        leader.roll()
    first, second, third, fourth = await world.copy(leader)
    world.remove(second, ".log")
    world.remove(third, ".rsm-manifest")
    world.store.objects[f"{TOPIC}/0/varve-history"] = StoredObject(b"1234", 77)
    listed = await list_partition(world.bucket, NAME)
    ids = [one.segment_id for one in listed.segments]
    assert ids == [first.segment_id, second.segment_id, fourth.segment_id]
    assert listed.segments[0].log_size == first.segment_size_bytes
    assert listed.segments[0].indexes_size > 0
    assert (listed.segments[1].log_size, listed.segments[1].start_offset) == (MISSING, 3)
    assert listed.history == HistoryStamp(4, 77)
    later = await list_partition(world.bucket, NAME, 4)
    assert [one.segment_id for one in later.segments] == [fourth.segment_id]
    assert [one.start_offset for one in (await list_partition(world.bucket, NAME, 9)).segments] == [
        9
    ]


async def test_what_is_no_topic_or_partition_is_not_seen() -> None:
    world = BucketWorld()
    for key in (
        f"{TOPIC}/4/varve-history",
        f"{TOPIC}/x/varve-history",
        f"{TOPIC}/05/other",
        f"{TOPIC}/99999999999/other",
        f"{TOPIC}/12/00000000000000000000-AAAAAAAAAAAAAAAAAAAABw.rsm-manifest",
        f"{TOPIC}/12/00000000000000000000-AAAAAAAAAAAAAAAAAAAABw.rsm-manifest.tmp",
        f"{TOPIC}/12/other",
        "t-AAAAAAAAAAAAAAAAAAAABx/0/spare-bits",
        "t-tooshort/0/x",
        "varve-history",
        "claim",
    ):
        world.store.objects[key] = StoredObject(b"", 0)
    assert await find_topics(world.bucket, TopicSelection()) == [("t", UUID(int=7))]
    assert await find_partitions(world.bucket, "t", UUID(int=7)) == [4, 12]
    listed = await list_partition(world.bucket, NAME._replace(partition=12))
    assert [one.start_offset for one in listed.segments] == [0]
    assert listed.history is None


async def test_a_folder_that_is_told_on_two_pages_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by one S3 server: the rows of a partition must not be there twice."""
    world = BucketWorld()
    pages = [
        ObjectPage([], "more", [f"{TOPIC}/3/", f"{TOPIC}/4/"]),
        ObjectPage([], None, [f"{TOPIC}/4/", f"{TOPIC}/5/"]),
    ]

    async def told(*_: object, **__: object) -> ObjectPage:
        return pages.pop(0)

    monkeypatch.setattr(world.bucket.store, "list", told)
    assert await find_partitions(world.bucket, "t", UUID(int=7)) == [3, 4, 5]


async def test_topics_cost_a_request_for_a_thousand() -> None:
    """However many segments they have."""
    world = BucketWorld()
    for number in range(50):
        key = f"{TOPIC}/{number % 3}/{number:020d}-AAAAAAAAAAAAAAAAAAAABw.log"
        world.store.objects[key] = StoredObject(b"", 0)
    await find_topics(world.bucket, TopicSelection())
    await find_partitions(world.bucket, "t", UUID(int=7))
    assert world.store.log == [("list", ""), ("list", f"{TOPIC}/")]


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
    assert TopicSelection(pattern="a.*").has_topic("bac")
    assert not TopicSelection(pattern="^a.*").has_topic("bac")
