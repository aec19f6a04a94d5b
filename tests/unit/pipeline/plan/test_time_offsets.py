"""The offset for a time is the one that a broker's log gives."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan import time_offsets
from pipeline.plan.errors import DamagedBucketError
from pipeline.plan.listing import KEYS
from pipeline.plan.time_offsets import offset_before, offset_for_time
from storage.errors import CorruptFileError
from storage.types.uuid_text import format_uuid
from tests.effort import examples
from tests.fakes.tiered.memory_object_store import Fault, StoredObject
from tests.fakes.tiered.plugin_writer import PluginSegment, plugin_objects
from tests.unit.pipeline.plan.bucket_world import BucketWorld
from tests.unit.storage.log.log_model import NOW_MS
from tiered.errors import ObjectNotFoundError
from tiered.tier import SideFile

batches = st.lists(
    st.tuples(
        st.integers(-1, 40),
        st.integers(1, 3),
        st.sampled_from([0, 0, 3]),
        st.sampled_from(["", "", "roll", "abort"]),
    ),
    min_size=1,
    max_size=14,
)


@examples(80)
@given(
    batches, st.integers(-1, 45), st.sampled_from([(False, False), (True, True)]), st.integers(0, 9)
)
async def test_it_is_what_the_log_itself_says(
    script: list[tuple[int, int, int, str]],
    wanted: int,
    form: tuple[bool, bool],
    deleted: int,
) -> None:
    """Of times that go back and forth, and with chunks that end within batches."""
    compression, encryption = form
    world = BucketWorld(chunk_bytes=150, compression=compression, encryption=encryption)
    leader = world.replica("a")
    for time, records, codec, then in script:
        stamp = NOW_MS + time if time >= 0 else -1
        if then == "abort":
            leader.write(1, records=records, timestamp_ms=stamp, producer_id=7, transactional=True)
            leader.finish(7, commit=False)
            continue
        leader.write(1, records=records, timestamp_ms=stamp, codec=codec)
        if then == "roll":
            leader.roll()
    leader.roll()
    leader.log.delete_records(min(deleted, leader.end - 1))
    await world.copy(leader, from_offset=0)
    log = await world.log()
    for timestamp_ms in (NOW_MS + wanted, -1):
        found = leader.log.reader.offset_for_timestamp(timestamp_ms)
        if log.segments:
            got = await offset_for_time(world.bucket, log, timestamp_ms, read_committed=False)
            assert got == (None if found is None else found.offset)


async def timed(**settings: Any) -> BucketWorld:
    """Offset n has time n; three segments of 10."""
    world = BucketWorld(**settings)
    leader = world.replica("a")
    for _ in range(3):
        leader.write(10)
        leader.roll()
    await world.copy(leader)
    return world


async def test_only_one_segment_is_looked_into() -> None:
    world = await timed()
    log = await world.log()
    world.bucket = world.open()
    world.store.log.clear()
    got = await offset_for_time(world.bucket, log, NOW_MS + 15, read_committed=True)
    assert got == 15
    # The manifest, both indexes at once, and the chunk.
    assert [call for call, _ in world.store.log] == ["get", "get_range", "get_range"]
    assert await offset_for_time(world.bucket, log, NOW_MS + 30, read_committed=True) is None


async def test_what_is_not_stable_does_not_count_for_committed_readers() -> None:
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(5)
    leader.transaction(7, 5)
    leader.roll()
    await world.copy(leader)
    log = await world.log()
    for read_committed, expected in ((False, 7), (True, None)):
        got = await offset_for_time(world.bucket, log, NOW_MS + 7, read_committed=read_committed)
        assert got == expected


async def test_rows_that_another_copy_gives_are_passed_over() -> None:
    """Offsets that overlap are looked for where they are read."""
    world = BucketWorld()
    first, second = world.replica("a"), world.replica("b")
    first.write(10)
    second.follow(first, 10)
    first.roll()
    second.write(10, epoch=1)
    second.roll()
    await world.copy(first)
    await world.copy(second)
    log = await world.log()
    assert len(log.segments) == 1
    got = await offset_for_time(world.bucket, log, NOW_MS + 12, read_committed=False)
    assert got == 12


async def test_a_batch_larger_than_is_unpacked_is_told_by_its_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(1, records=40, size=100, codec=4)
    leader.roll()
    await world.copy(leader)
    log = await world.log()
    for limit in (2000, 10):
        monkeypatch.setattr(time_offsets, "BATCH_BYTES_MAX", limit)
        assert await offset_for_time(world.bucket, log, NOW_MS, read_committed=False) == 0


async def test_damage_is_named_and_removal_is_told_apart() -> None:
    world = await timed()
    log = await world.log()
    world.store.fail("get_range", Fault.WRONG_BYTES, key=".log", times=2)
    with pytest.raises(DamagedBucketError, match=r"\.log at byte 0: chunk 0 fails its CRC"):
        await offset_for_time(world.bucket, log, NOW_MS, read_committed=False)
    world.remove(log.segments[0].metadata)
    world.bucket = world.open()
    with pytest.raises(ObjectNotFoundError):
        await offset_for_time(world.bucket, log, NOW_MS, read_committed=False)


async def test_segments_without_sums_are_searched_too() -> None:
    """Those of Aiven's plugin; their batches' own sums are compared instead."""
    ours = await timed()
    metadata = (await ours.log()).segments[1].metadata
    keys = KEYS.segment_keys(metadata)
    opened, _ = await ours.bucket.reader.fetch_manifest(metadata, keys)
    parts = await ours.bucket.reader.read_side_files(opened, keys, [*SideFile])
    objects = plugin_objects(
        PluginSegment(
            "t",
            format_uuid(metadata.partition.topic_id),
            0,
            format_uuid(metadata.id),
            10,
            19,
            metadata.max_timestamp_ms,
            {0: 10},
        ),
        ours.store.objects[keys.log].data,
        {kind.value: data for kind, data in parts.items()},
        chunk_size=150,
    )
    world = BucketWorld()
    for key, data in objects.items():
        world.store.objects[key] = StoredObject(data, 0)
    log = await world.log()
    got = await offset_for_time(world.bucket, log, NOW_MS + 17, read_committed=True)
    assert got == 17
    spoilt = bytearray(world.store.objects[keys.log].data)
    spoilt[10] ^= 1
    world.store.objects[keys.log] = StoredObject(bytes(spoilt), 0)
    with pytest.raises(DamagedBucketError, match=r"\.log"):
        await offset_for_time(world.bucket, log, NOW_MS + 10, read_committed=True)


def test_a_time_index_that_is_none_is_refused() -> None:
    entries = struct.pack(">qiqi", 5, 1, 9, 4)
    assert [offset_before(entries + bytes(24), time) for time in (5, 6, 9, 10)] == [0, 1, 1, 4]
    assert offset_before(bytes(24), 5) == 0
    with pytest.raises(CorruptFileError, match="ends within an entry"):
        offset_before(entries[:-1], 5)
