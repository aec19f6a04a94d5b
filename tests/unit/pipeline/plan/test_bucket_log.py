"""What a bucket says of its topics, from real segments, and when objects are missing or wrong."""

from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.bucket import BucketOptions, open_bucket
from pipeline.plan.bucket_log import follow_topic, read_bucket_log
from pipeline.plan.errors import TopicError
from pipeline.plan.layout import Gap
from pipeline.plan.listing import TopicSelection
from pipeline.plan.splits import pieces
from storage.types.uuid_text import format_uuid
from tests.effort import examples
from tests.fakes.s3.moto_server import make_bucket, s3_settings
from tests.fakes.tiered.memory_object_store import Fault, StoredObject
from tests.fakes.tiered.plugin_writer import PluginSegment, plugin_objects
from tests.unit.pipeline.plan.bucket_world import PARTITION, BucketWorld
from tests.unit.pipeline.plan.plain_reader import read_rows
from tests.unit.tiered.storage_manager.memory_tier import text_segment
from tiered.errors import RemoteStorageError, StoreDeniedError, StoreUnavailableError
from tiered.format.key_ring import KeyRing
from tiered.format.manifest_layout import crc_of
from tiered.metadata.history import HistoryState
from tiered.metadata.lineage import Lineage
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition

OTHER_ID = UUID(int=9)


async def three_segments(**settings: Any) -> BucketWorld:
    """Offsets 0 .. 9, 10 .. 19, 20 .. 29."""
    world = BucketWorld(**settings)
    leader = world.replica("a")
    for _ in range(3):
        leader.write(10)
        leader.roll()
    await world.copy(leader)
    return world


def keys(world: BucketWorld, suffix: str) -> list[str]:
    return sorted(key for key in world.store.objects if key.endswith(suffix))


@pytest.mark.parametrize("page_max", [1, 2, 1000])
async def test_a_log_is_what_its_segments_have(page_max: int) -> None:
    """However the listing is cut into pages."""
    world = await three_segments(page_max=page_max)
    log = await world.log()
    assert (log.log_start_offset, log.end_offset, log.stable_end_offset) == (0, 30, 30)
    assert [(one.start_offset, one.end_offset) for one in log.segments] == [
        (0, 10),
        (10, 20),
        (20, 30),
    ]
    assert log.leader_epochs == ((0, 0),)
    assert (log.gaps, log.damaged, log.problems, log.cluster_id) == ((), (), [], "cluster")
    assert log.size_bytes == sum(one.metadata.segment_size_bytes for one in log.segments) > 0
    topic = (await world.topics("t"))["t"]
    assert (topic.name, topic.topic_id, topic.partition_count) == ("t", PARTITION.topic_id, 1)


async def test_encrypted_ones_need_their_key_pair() -> None:
    world = await three_segments(encryption=True, compression=True)
    assert (await world.log()).end_offset == 30
    world.keys = KeyRing("", {}, world.randomness)  # type: ignore[assignment]  # has none
    with pytest.raises(RemoteStorageError, match="needs the key pair 'none'"):
        await world.log()


async def test_an_unfinished_copy_does_not_exist() -> None:
    """Its manifest comes last."""
    world = await three_segments()
    del world.store.objects[keys(world, ".rsm-manifest")[-1]]
    assert (await world.log()).end_offset == 20


async def test_a_deletion_that_ends_between_listing_and_reading() -> None:
    """It must not look like a live topic whose records have expired."""
    world = await three_segments()
    world.store.objects.clear()
    world.write_history(world.replica("b"), (), state=HistoryState.DELETING)
    assert (await world.topics("t"))["t"].is_deleting
    world.store.on_call = lambda call, key: world.store.objects.clear() if call == "get" else None
    assert await world.topics("t") == {}


async def test_a_copy_that_nobody_told_finished_counts() -> None:
    """Its manifest is the point from which on it exists."""
    world = await three_segments()
    leader = world.replica("b")
    leader.write(3)
    leader.roll()
    # Two copies of one segment: the later is an attempt whose end nobody heard of.
    await world.copy(leader)
    await world.copy(leader, from_offset=0)
    assert (await world.log()).end_offset == 30


async def test_a_damaged_manifest_is_named_and_what_it_had_is_missing() -> None:
    world = await three_segments()
    middle = keys(world, ".rsm-manifest")[1]
    data = world.store.objects[middle].data
    world.store.objects[middle] = StoredObject(data[:40] + b"#" + data[41:], 0)
    log = await world.log()
    assert log.gaps == (Gap(10, 20),)
    ((key, _, problem, start_offset),) = log.damaged
    assert (key, problem, start_offset) == (middle, "the manifest fails its CRC", 10)
    assert log.problems == [
        f"t-0: {middle} at byte -1: the manifest fails its CRC",
        "t-0: offsets 10 to 19 are missing",
    ]


async def test_a_manifest_of_a_newer_version_is_named() -> None:
    world = await three_segments()
    last = keys(world, ".rsm-manifest")[-1]
    data = world.store.objects[last].data.replace(b'"version":"1"', b'"version":"2"', 1)
    crc = f"{crc_of(data):08x}".encode()
    world.store.objects[last] = StoredObject(data[:-12] + crc + data[-4:], 0)
    log = await world.log()
    assert log.end_offset == 20
    assert "version '2'" in log.damaged[0].problem
    assert "newer Varve" in log.damaged[0].problem


async def test_a_byte_that_the_network_flipped_is_fetched_again() -> None:
    world = await three_segments()
    world.store.fail("get", Fault.WRONG_BYTES, key=".rsm-manifest")
    world.store.fail("get_range", Fault.WRONG_BYTES, key=".indexes")
    log = await world.log()
    assert (log.end_offset, log.damaged) == (30, ())


@pytest.mark.parametrize("suffix", [".log", ".indexes"])
async def test_a_segment_that_is_not_whole_is_named(suffix: str) -> None:
    world = await three_segments()
    key = keys(world, suffix)[1]
    del world.store.objects[key]
    log = await world.log()
    assert (log.damaged[0].key, log.gaps) == (key, (Gap(10, 20),))
    assert log.damaged[0].problem.startswith("it is missing, its manifest says ")
    world.store.objects[key] = StoredObject(b"short", 0)
    log = await world.log()
    assert log.damaged[0].problem.startswith("it has 5 bytes, its manifest says ")


async def test_when_the_newest_ones_side_files_are_damaged_the_next_one_decides() -> None:
    """And it is told, since what only the newest knew is lost."""
    world = await three_segments()
    key = keys(world, ".indexes")[-1]
    data = bytearray(world.store.objects[key].data)
    data[-3] ^= 1
    world.store.objects[key] = StoredObject(bytes(data), 0)
    log = await world.log()
    assert log.end_offset == 20
    assert log.damaged[0].key == key
    assert log.damaged[0].start_offset == 20


async def test_what_is_removed_while_it_is_read_is_not_there() -> None:
    world = await three_segments()
    first, _, last = keys(world, ".rsm-manifest")

    def remove(call: str, key: str) -> None:
        if (call, key) == ("get", first):
            world.store.objects.pop(first, None)

    world.store.on_call = remove
    log = await world.log()
    assert (log.log_start_offset, log.gaps, log.damaged) == (10, (), ())
    world.store.on_call = lambda call, key: (
        world.store.objects.clear() if call == "get_range" else None
    )
    assert await world.topics("t") == {}
    assert last


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.UNAVAILABLE, StoreUnavailableError), (Fault.DENIED, StoreDeniedError)],
)
@pytest.mark.parametrize("call", ["list", "get", "get_range"])
async def test_a_store_that_does_not_answer_is_no_empty_bucket(
    call: str, fault: Fault, error: type[Exception]
) -> None:
    world = await three_segments()
    world.store.fail(call, fault)
    with pytest.raises(error):
        await world.log()


async def test_topics_by_name_by_pattern_or_all() -> None:
    """Names that begin alike are not mixed up."""
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(1)
    leader.roll()
    names = ("t", "t-1", "t.x", "other")
    for number, name in enumerate(names):
        for partition in (0, 2):
            of = TopicIdPartition(UUID(int=100 + number), name, partition)
            await world.copy(leader, partition=of, partitions=5, from_offset=0)
    world.store.objects["some/thing.else"] = StoredObject(b"x", 0)
    bucket = world.bucket
    assert set(await read_bucket_log(bucket)) == set(names)
    assert set(await read_bucket_log(bucket, TopicSelection(names=("t",)))) == {"t"}
    assert set(await read_bucket_log(bucket, TopicSelection(names=("t", "t-1")))) == {"t", "t-1"}
    assert set(await read_bucket_log(bucket, TopicSelection(pattern=r"^t.*"))) == {
        "t",
        "t-1",
        "t.x",
    }
    assert set(await read_bucket_log(bucket, TopicSelection(pattern=r"^t$"))) == {"t"}
    assert await read_bucket_log(bucket, TopicSelection(names=("missing",))) == {}
    assigned = TopicSelection(partitions={"t": frozenset({2, 4}), "other": frozenset({0})})
    topics = await read_bucket_log(bucket, assigned)
    assert {name: list(topic.partitions) for name, topic in topics.items()} == {
        "t": [2],
        "other": [0],
    }
    # A partition of which nothing was copied is known by the topic's facts alone.
    assert [topic.partition_count for topic in topics.values()] == [5, 5]


async def test_the_incarnation_that_was_copied_to_last_counts() -> None:
    """Unless one is asked for by its id."""
    world = await three_segments()
    again = world.replica("b")
    again.write(2)
    again.roll()
    await world.copy(again, partition=TopicIdPartition(OTHER_ID, "t", 0))
    topic = (await world.topics("t"))["t"]
    assert (topic.topic_id, topic.partitions[0].end_offset) == (OTHER_ID, 2)
    assert topic.other_ids == (PARTITION.topic_id,)
    earlier = (await world.topics("t", topic_id=PARTITION.topic_id))["t"]
    assert (earlier.topic_id, earlier.partitions[0].end_offset) == (PARTITION.topic_id, 30)
    with pytest.raises(TopicError, match=f"no topic with id {UUID(int=1)} .*t {OTHER_ID}"):
        await world.topics("t", topic_id=UUID(int=1))


@pytest.mark.parametrize("compression", [False, True])
async def test_segments_that_aivens_plugin_wrote_count(compression: bool) -> None:
    """No sums, and not a word of the topic."""
    world = BucketWorld()
    segment = text_segment(abort_at=20, second_epoch_at=10)
    of = segment.metadata
    objects = plugin_objects(
        PluginSegment(
            of.partition.topic,
            format_uuid(of.partition.topic_id),
            of.partition.partition,
            format_uuid(of.id),
            of.start_offset,
            of.end_offset,
            of.max_timestamp_ms,
            dict(of.segment_leader_epochs),
        ),
        bytes(segment.log),
        {kind.value: bytes(data) for kind, data in segment.parts.items()},
        chunk_size=1000,
        compression=compression,
    )
    for key, data in objects.items():
        world.store.objects[key] = StoredObject(data, 0)
    (topic,) = (await read_bucket_log(world.bucket)).values()
    log = topic.partitions[3]
    assert (log.log_start_offset, log.end_offset) == (1000, of.end_offset + 1)
    assert log.leader_epochs == ((2, 1000), (4, 1100))
    assert (log.cluster_id, topic.partition_count, log.problems) == ("", 4, [])


async def test_of_several_leaders_each_offset_comes_once() -> None:
    """Replicas roll at different offsets, and the second leader was elected uncleanly."""
    world = BucketWorld()
    first, second = world.replica("a"), world.replica("b")
    first.write(10)
    first.roll()
    first.write(10)
    second.follow(first, 15)
    first.roll()
    second.roll()
    second.write(10, epoch=2)
    second.roll()
    await world.copy(first)
    await world.copy(second, from_offset=15)
    log = await world.log()
    assert log.leader_epochs == ((0, 0), (2, 15))
    assert [(one.start_offset, one.end_offset) for one in log.segments] == [
        (0, 10),
        (10, 15),
        (15, 25),
    ]


class Era(NamedTuple):
    """What happens under one leader.

    Attributes:
        goes_on_at: Where it begins, in percent of the log before: 100 is a clean election.
        script: What it does.
        copies_from: In percent of its log: what lies below it does not copy, or not again.
    """

    goes_on_at: int
    script: list[str]
    copies_from: int


eras = st.builds(
    Era,
    st.sampled_from([100, 100, 80, 50, 10]),
    st.lists(
        st.sampled_from(["write", "write", "one", "two", "commit", "abort", "roll", "roll"]),
        max_size=12,
    ),
    st.sampled_from([0, 0, 30, 60]),
)


@examples(100)
@given(st.lists(eras, min_size=1, max_size=4), st.booleans())
async def test_rows_are_those_of_the_last_leader(script: list[Era], use_history: bool) -> None:
    """Whoever copied what, wherever replicas rolled, whatever was overwritten."""
    world = BucketWorld()
    leader = world.replica("0")
    copied: list[RemoteLogSegmentMetadata] = []
    for epoch, era in enumerate(script):
        heir = world.replica(f"{epoch + 1}")
        heir.follow(leader, leader.end * era.goes_on_at // 100)
        leader = heir
        for step in era.script:
            if step == "write":
                leader.write(2, epoch=epoch, records=2)
            elif step in ("one", "two"):
                leader.transaction(1 if step == "one" else 2, 1, epoch=epoch)
            elif step == "roll":
                leader.roll()
            elif leader.open:
                leader.finish(next(iter(leader.open)), commit=step == "commit", epoch=epoch)
        leader.write(1, epoch=epoch)
        leader.roll()
        copied += await world.copy(leader, from_offset=leader.end * era.copies_from // 100)
    if use_history:
        mine = [one for one in copied if Lineage.of(leader.log).contains(one)]
        world.write_history(leader, mine)
    log = await world.log()
    assert log.end_offset == leader.end
    for read_committed in (False, True):
        end = log.end(read_committed=read_committed)
        planned = await pieces(
            world.bucket,
            log,
            log.log_start_offset,
            end,
            read_committed=read_committed,
            max_partition_bytes=300,
        )
        there = {offset for one in planned for offset in range(one.start_offset, one.end_offset)}
        expected = leader.rows(log.log_start_offset, end, read_committed=read_committed)
        rows = await read_rows(world.bucket, planned)
        assert rows == [row for row in expected if row.offset in there]
        missing = {n for gap in log.missing(log.log_start_offset, end) for n in range(*gap)}
        assert there | missing == set(range(log.log_start_offset, end))
        assert not there & missing
        # Nothing that any copy of this log has is missing.
        for one in copied:
            if Lineage.of(leader.log).contains(one):
                assert not missing & set(range(one.start_offset, one.end_offset + 1))


@pytest.mark.parametrize("location", ["s3://plan-bucket/a/prefix", "s3a://plan-bucket/a/prefix/"])
async def test_a_bucket_in_s3_is_planned_as_any_other(moto_url: str, location: str) -> None:
    """Listed by folders, from an offset on, and read in ranges."""
    world = await three_segments()
    expected = await world.log()
    settings = s3_settings(moto_url, "plan-bucket", key_prefix="a/prefix/")
    await make_bucket(settings)
    options = BucketOptions(
        location,
        endpoint=moto_url,
        region="us-east-1",
        path_style=True,
        access_key_id=settings.access_key_id,
        secret_access_key=settings.secret_access_key,
    )
    async with await open_bucket(options) as bucket:
        for key, stored in world.store.objects.items():
            await bucket.store.put(key, stored.data)
        topic = (await read_bucket_log(bucket, TopicSelection(names=("t",))))["t"]
        log = topic.partitions[0]
        assert log == expected
        assert (await follow_topic(bucket, topic)).partitions[0] is log
        cut = await pieces(bucket, log, 3, 25, read_committed=True, max_partition_bytes=300)
        assert [row.offset for row in await read_rows(bucket, cut)] == [*range(3, 25)]
    missing = options._replace(location="s3://no-such-plan-bucket")
    async with await open_bucket(missing) as bucket:
        with pytest.raises(RemoteStorageError, match=r"s3://no-such-plan-bucket/.*NoSuchBucket"):
            await read_bucket_log(bucket)
