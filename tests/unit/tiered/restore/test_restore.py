"""What a bucket can give back, read from it."""

from uuid import UUID

import pytest

from storage.producers.entry import ProducerEntry
from tests.fakes.producer_snapshots import encode_snapshot
from tests.fakes.tiered.manifest_bucket import CLUSTER, TIERED, ManifestBucket, topic_id
from tiered.errors import StoreUnavailableError
from tiered.format.object_keys import ObjectKeys
from tiered.metadata.history import HistoryState, HistorySummary, PartitionHistory, encode_history
from tiered.restore.bucket_manifests import READS_AT_A_TIME, read_manifests
from tiered.restore.restore import missing_offsets, read_bucket
from tiered.restore.restore_plan import Gap
from tiered.segment_metadata import TopicIdPartition
from tiered.tier import SideFile

OTHER = UUID(int=9 << 100)


def keys(metadata: object) -> tuple[str, str, str]:
    return ObjectKeys().segment_keys(metadata)  # type: ignore[arg-type]  # what `add` gave


async def test_all_topics_are_found() -> None:
    """With their ids, partition counts, settings, ranges, producers."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.add("a", 0, 10, 19, epochs=[(2, 10)], history=[(0, 0)])
    bucket.add("a", 3, 5, 6, partitions=4)
    bucket.add("b-c", 1, 0, 9)
    content = await read_bucket(bucket)
    assert content.problems == []
    assert content.cluster_ids == {CLUSTER}
    assert sorted(content.topics) == ["a", "b-c"]
    found = content.topics["a"]
    assert (found.topic_id, found.facts.partitions) == (topic_id("a"), 4)
    assert dict(found.facts.overrides) == TIERED
    assert sorted(found.partitions) == [0, 3]
    plan = found.partitions[0].plan
    assert (plan.log_start_offset, plan.end_offset) == (0, 20)
    assert plan.leader_epochs == ((0, 0), (2, 10))
    assert found.partitions[0].producer_snapshot == encode_snapshot([])


async def test_topics_may_be_chosen() -> None:
    """One whose name begins like another's is not that other; missing ones are told."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.add("a-b", 0, 0, 9)
    content = await read_bucket(bucket, topics=["a", "none"])
    assert sorted(content.topics) == ["a"]
    assert content.problems == ["topic none is not in the bucket"]


async def test_more_than_a_page_and_more_than_is_read_at_a_time() -> None:
    """Nothing is left out."""
    bucket = ManifestBucket()
    for number in range(2 * READS_AT_A_TIME + 1):
        bucket.add("a", 0, number * 10, number * 10 + 9)
    problems: list[str] = []
    assert len(await read_manifests(bucket, problems)) == 2 * READS_AT_A_TIME + 1
    assert problems == []


async def test_segments_that_are_not_whole_are_gaps() -> None:
    """Told by what is wrong with them, whatever their manifest says."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    log, _, _ = keys(bucket.add("a", 0, 10, 19))
    _, indexes, _ = keys(bucket.add("a", 0, 20, 29))
    _, _, manifest = keys(bucket.add("a", 0, 30, 39))
    bucket.add("a", 0, 40, 49)
    bucket.objects["a-readme"] = b"not a segment's"
    bucket.objects[log] = b""
    del bucket.objects[indexes]
    bucket.objects[manifest] = bucket.objects[manifest].replace(b"30", b"55", 1)
    content = await read_bucket(bucket)
    plan = content.topics["a"].partitions[0].plan
    assert plan.gaps == (Gap(10, 40),)
    assert plan.log_start_offset == 40
    told = "\n".join(content.problems)
    assert f"{log} has 0 bytes, its manifest says 1000" in told
    assert f"{indexes} is missing" in told
    assert f"{manifest}: the manifest fails its CRC" in told
    assert "a-0: offsets 10 to 39 are missing" in told
    assert len(content.problems) == 4
    allowed = await read_bucket(bucket, allow_gaps=True)
    assert allowed.topics["a"].partitions[0].plan.log_start_offset == 0


async def missing(bucket: ManifestBucket) -> list[str]:
    return await missing_offsets(bucket, await read_manifests(bucket, []), {})


async def test_offsets_between_two_segments_are_missing_unless_compaction_took_them() -> None:
    """Of each incarnation; not what another history had."""
    bucket = ManifestBucket()
    for partition in (0, 1):
        bucket.add("a", partition, 0, 9)
    bucket.add("a", 0, 30, 39)
    bucket.add("a", 0, 40, 49)
    bucket.add("a", 1, 30, 39, empty_from=10)
    bucket.add("a", 2, 20, 29, epochs=[(1, 20)], history=[(0, 0)])
    bucket.add("a", 2, 40, 49, epochs=[(2, 40)], history=[(0, 0)])
    bucket.add("a", 2, 0, 39, epochs=[(0, 0)])
    bucket.add("a", 0, 0, 4, incarnation=OTHER)
    bucket.add("a", 0, 6, 9, incarnation=OTHER)
    assert sorted(await missing(bucket)) == [
        "a-0: offsets 10 to 29 are missing",
        "a-0: offsets 5 to 5 are missing",
    ]


async def test_what_may_have_been_aborted_in_a_gap_that_is_allowed_is_told() -> None:
    """Markers went with the segment, and so did its transaction index."""
    opened = ProducerEntry(7, 0, txn_first_offset=4)
    bucket = ManifestBucket()
    first = bucket.add("a", 0, 0, 9, producers=[opened, ProducerEntry(8, 0)])
    bucket.add("a", 0, 20, 29)
    bucket.add("a", 1, 0, 9, producers=[ProducerEntry(8, 0)])
    bucket.add("a", 1, 20, 29)
    told = "a-0: transactions that were open before offset 10, from offset {} on, may have been"
    (note,) = (await read_bucket(bucket, allow_gaps=True)).notes
    assert note.startswith(told.format(4))
    assert (await read_bucket(bucket)).notes == []
    bucket.side_files[first.id, SideFile.PRODUCER_SNAPSHOT] = b"no snapshot"
    (note,) = (await read_bucket(bucket, allow_gaps=True)).notes
    assert note.startswith(told.format(0))


async def test_the_latest_incarnation_of_a_topic_counts() -> None:
    """What is left of a deleted one is told."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9, incarnation=OTHER)
    bucket.add("a", 0, 0, 4)
    bucket.add("a", 1, 0, 4, incarnation=OTHER)
    bucket.add("a", 0, 5, 7)
    content = await read_bucket(bucket)
    found = content.topics["a"]
    assert found.topic_id == topic_id("a")
    assert sorted(found.partitions) == [0]
    assert found.partitions[0].plan.end_offset == 8
    assert content.problems == [f"topic a is in the bucket twice: {OTHER} is left out"]


async def test_the_newest_whose_side_files_can_be_read_decides() -> None:
    """One without is left out; if there is none, so is the partition."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    damaged = bucket.add("a", 0, 10, 19)
    bucket.side_files[damaged.id, SideFile.LEADER_EPOCH] = b"what?"
    lost = bucket.add("a", 1, 0, 9)
    del bucket.side_files[lost.id, SideFile.PRODUCER_SNAPSHOT]
    content = await read_bucket(bucket)
    found = content.topics["a"]
    assert sorted(found.partitions) == [0]
    plan = found.partitions[0].plan
    assert plan.end_offset == 10
    assert [one.reason for one in plan.left_out] == ["its side files cannot be read"]
    assert len(content.problems) == 2


async def test_a_store_that_does_not_answer_is_no_empty_store() -> None:
    """Restoring half a bucket would be worse than to try again."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.failures["get_object"] = StoreUnavailableError("503")
    with pytest.raises(StoreUnavailableError):
        await read_bucket(bucket)


def add_history(bucket: ManifestBucket, topic: str, partition: int, **changes: object) -> str:
    """What its leader told last."""
    whose = TopicIdPartition(topic_id(topic), topic, partition)
    key = ObjectKeys().history_key(whose)
    summary = HistorySummary(whose, CLUSTER, 2, HistoryState.LIVE, 4, 5, 0, 20, 20, ())
    summary = summary._replace(**changes)  # type: ignore[arg-type]  # fields of any type
    bucket.objects[key] = encode_history(PartitionHistory(summary, ()))
    return key


async def test_deleted_records_stay_deleted() -> None:
    """Also those in a segment that is half above the log start."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.add("a", 0, 10, 19)
    add_history(bucket, "a", 0, log_start_offset=13)
    restored = (await read_bucket(bucket)).topics["a"].partitions[0]
    assert (restored.plan.log_start_offset, restored.plan.end_offset) == (13, 20)
    assert restored.plan.leader_epochs == ((0, 13),)
    assert [one.metadata.start_offset for one in restored.plan.segments] == [10]
    assert [one.reason for one in restored.plan.left_out] == ["below the log start offset"]
    assert restored.history_epoch == 4


async def test_a_log_of_which_all_that_was_copied_is_deleted_goes_on_above_it() -> None:
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9, epochs=[(3, 0)], history=[])
    bucket.add("a", 0, 10, 19, epochs=[(3, 10)], history=[(3, 0)])
    add_history(bucket, "a", 0, log_start_offset=50, end_offset=50, stable_end_offset=50)
    plan = (await read_bucket(bucket)).topics["a"].partitions[0].plan
    assert (plan.log_start_offset, plan.end_offset) == (50, 50)
    assert plan.leader_epochs == ((3, 50),)
    assert plan.segments == ()
    assert len(plan.left_out) == 2


async def test_a_log_without_segments_goes_on_where_its_history_ends() -> None:
    """Its offsets were given out; a consumer that has read them would pass over the new records."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    add_history(bucket, "a", 1, log_start_offset=50, end_offset=50, stable_end_offset=50)
    add_history(bucket, "b", 0, log_start_offset=7, end_offset=7, stable_end_offset=7)
    content = await read_bucket(bucket)
    restored = content.topics["a"].partitions[1]
    plan = restored.plan
    assert (plan.log_start_offset, plan.end_offset, plan.segments) == (50, 50, ())
    assert (restored.producer_snapshot, restored.history_epoch) == (encode_snapshot([]), 4)
    assert content.problems == []
    (note,) = content.notes
    assert "topic b is not restored" in note


async def test_a_log_whose_segments_are_unreadable_goes_on_where_its_history_ends() -> None:
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    lost = bucket.add("a", 1, 0, 19)
    del bucket.side_files[lost.id, SideFile.PRODUCER_SNAPSHOT]
    add_history(bucket, "a", 1, leader_epochs=((0, 0),))
    content = await read_bucket(bucket)
    plan = content.topics["a"].partitions[1].plan
    assert (plan.log_start_offset, plan.end_offset) == (20, 20)
    assert plan.leader_epochs == ((0, 20),)
    assert [one.reason for one in plan.left_out] == ["its side files cannot be read"]
    assert "a-1: offsets 0 to 19 are missing" in content.problems


async def test_a_beginning_that_only_the_history_has_is_missing() -> None:
    """As is any gap; but not what had been compacted away before it was copied."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 10, 19)
    bucket.add("a", 1, 10, 14, empty_from=0)
    bucket.add("a", 1, 18, 19, empty_from=15)
    for partition in (0, 1):
        add_history(bucket, "a", partition, leader_epochs=((0, 0),))
    content = await read_bucket(bucket)
    assert content.problems == ["a-0: offsets 0 to 9 are missing"]
    plans = [content.topics["a"].partitions[number].plan for number in (0, 1)]
    assert [(plan.log_start_offset, len(plan.segments)) for plan in plans] == [(10, 1), (10, 2)]


async def test_copies_that_an_older_history_does_not_name_may_have_expired() -> None:
    """Only what it names goes after it was written anew."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 30, 39)
    add_history(bucket, "a", 0, log_start_offset=20, end_offset=20, stable_end_offset=20)
    content = await read_bucket(bucket)
    assert content.problems == []
    assert content.topics["a"].partitions[0].plan.log_start_offset == 30


async def test_an_end_that_only_the_history_has_is_missing() -> None:
    """Unless a later leader has overwritten it."""
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.add("a", 1, 0, 9, epochs=[(1, 0)], history=[(1, 0)])
    add_history(bucket, "a", 0, leader_epochs=((0, 0),))
    add_history(bucket, "a", 1, leader_epochs=((0, 0),))
    content = await read_bucket(bucket)
    assert content.topics["a"].partitions[0].plan.end_offset == 10
    assert content.problems == ["a-0: offsets 10 to 19 are missing"]


async def test_a_topic_that_was_being_deleted_is_not_brought_back() -> None:
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.add("a", 1, 0, 9)
    bucket.add("b", 0, 0, 9)
    add_history(bucket, "a", 1, state=HistoryState.DELETING)
    content = await read_bucket(bucket)
    assert sorted(content.topics) == ["b"]
    assert content.problems == []
    assert [note for note in content.notes if "being deleted" in note]


async def test_a_damaged_history_is_a_problem_and_changes_nothing() -> None:
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    key = add_history(bucket, "a", 0)
    bucket.objects[key] = bucket.objects[key][:-1]
    content = await read_bucket(bucket)
    assert content.topics["a"].partitions[0].plan.log_start_offset == 0
    (problem,) = content.problems
    assert key in problem
    assert "DeleteRecords" in problem


async def test_histories_of_other_topics_are_not_read() -> None:
    bucket = ManifestBucket()
    bucket.add("a", 0, 0, 9)
    bucket.objects[add_history(bucket, "a-b", 0)] = b"damaged"
    content = await read_bucket(bucket, topics=["a"])
    assert content.problems == []
