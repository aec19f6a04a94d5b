"""Histories as a restore and a verification read them."""

from uuid import UUID

from tests.fakes.tiered.manifest_bucket import CLUSTER, ManifestBucket, topic_id
from tiered.format.object_keys import ObjectKeys
from tiered.metadata.history import HistoryState, HistorySummary, PartitionHistory, encode_history
from tiered.metadata.history_reader import (
    READS_AT_A_TIME,
    histories_among,
    read_histories,
    verify_history,
)
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition

KEYS = ObjectKeys()


def whose(partition: int, topic: str = "a") -> TopicIdPartition:
    return TopicIdPartition(topic_id(topic), topic, partition)


def history(partition: int, *segments: RemoteLogSegmentMetadata) -> bytes:
    summary = HistorySummary(
        whose(partition), CLUSTER, 2, HistoryState.LIVE, 4, 5, 0, 20, 20, ((0, 0),)
    )
    return encode_history(PartitionHistory(summary, segments))


async def test_more_than_is_read_at_a_time() -> None:
    bucket = ManifestBucket()
    names = [KEYS.history_key(whose(number)) for number in range(2 * READS_AT_A_TIME + 1)]
    bucket.objects.update({name: history(number) for number, name in enumerate(names)})
    problems: list[str] = []
    found = await read_histories(bucket, [*names, KEYS.history_key(whose(99))], problems)
    assert set(found) == {whose(number) for number in range(2 * READS_AT_A_TIME + 1)}
    assert problems == []


async def test_one_that_lies_under_anothers_name_does_not_count() -> None:
    bucket = ManifestBucket()
    name = KEYS.history_key(whose(1))
    bucket.objects[name] = history(2)
    problems: list[str] = []
    assert await read_histories(bucket, [name], problems) == {}
    assert len(problems) == 1
    assert await verify_history(bucket, name) == problems


async def test_what_a_history_names_must_be_there() -> None:
    bucket = ManifestBucket()
    first, second = bucket.add("a", 0, 0, 9), bucket.add("a", 0, 10, 19)
    name = KEYS.history_key(whose(0))
    bucket.objects[name] = history(0, first, second)
    assert await verify_history(bucket, name) == []
    gone = KEYS.segment_keys(second).indexes
    del bucket.objects[gone]
    (fault,) = await verify_history(bucket, name)
    assert gone in fault
    bucket.objects[name] = bucket.objects[name][:-1]
    (fault,) = await verify_history(bucket, name)
    assert "CRC" in fault
    del bucket.objects[name]
    assert await verify_history(bucket, name) == []


async def test_one_that_is_written_anew_meanwhile_is_not_blamed() -> None:
    bucket = ManifestBucket()
    first, second = bucket.add("a", 0, 0, 9), bucket.add("a", 0, 10, 19)
    name = KEYS.history_key(whose(0))
    bucket.objects[name] = history(0, first, second)
    read = bucket.get_object

    async def then_retention(key: str) -> bytes:
        data = await read(key)
        bucket.objects[name] = history(0, second)
        for gone in KEYS.segment_keys(first):
            bucket.objects.pop(gone, None)
        return data

    bucket.get_object = then_retention  # type: ignore[method-assign]  # a broker at work
    assert await verify_history(bucket, name) == []


def test_histories_among_other_names() -> None:
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    wanted = KEYS.history_key(whose(0))
    other = KEYS.history_key(TopicIdPartition(UUID(int=3), "a-b", 0))
    names = [*bucket.objects, wanted, other, "varve-history"]
    assert histories_among(names, None) == [wanted, other]
    assert histories_among(names, ["a"]) == [wanted]
