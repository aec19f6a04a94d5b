"""By a history, by listing or by following: the log is the same, or the history says why not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.layout import Gap
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.partition_read import (
    FOLLOWED_BACK,
    LISTED_BACK,
    follow_partition,
    read_partition,
)
from pipeline.plan.splits import pieces
from tests.effort import examples
from tests.fakes.tiered.memory_object_store import Fault, StoredObject
from tests.unit.pipeline.plan.bucket_world import NAME, PARTITION, BucketWorld, Replica
from tiered.errors import ObjectNotFoundError, RemoteStorageError, StoreDeniedError
from tiered.format.key_ring import DataKeyEnvelope
from tiered.format.manifest_layout import crc_of
from tiered.format.object_keys import ObjectKeys
from tiered.metadata.history import HistoryState
from tiered.segment_metadata import RemoteLogSegmentMetadata

KEY = ObjectKeys().history_key(PARTITION)


def told(log: PartitionLog) -> object:
    """What must be the same however it was found out."""
    return (
        log.log_start_offset,
        log.end_offset,
        log.stable_end_offset,
        log.leader_epochs,
        [(one.metadata.id, one.start_offset, one.end_offset) for one in log.segments],
        log.gaps,
        log.cluster_id,
        log.partition_count,
        log.newest_id,
    )


async def segments(
    count: int, **form: Any
) -> tuple[BucketWorld, Replica, list[RemoteLogSegmentMetadata]]:
    """Segments of 10 offsets."""
    world = BucketWorld(**form)
    leader = world.replica("a")
    for _ in range(count):
        leader.write(10)
        leader.roll()
    return world, leader, await world.copy(leader)


async def fresh(world: BucketWorld, *, use_history: bool = True) -> PartitionLog:
    return await read_partition(world.open(), NAME, use_history=use_history)


async def test_a_history_spares_the_listing_and_the_manifests() -> None:
    """However many segments there are."""
    world, leader, copied = await segments(40)
    world.write_history(leader, copied)
    leader.write(10)
    leader.roll()
    await world.copy(leader)
    listed = await fresh(world, use_history=False)
    world.store.log.clear()
    log = await fresh(world)
    assert told(log) == told(listed)
    # History, listing, the new manifest once for its facts and once to be opened, side files, and
    # the first segment's manifest: whether it is still there, and its key pair here.
    calls = [call for call, _ in world.store.log]
    assert calls == ["get", "list", "get", "get", "get_range", "get"]


async def test_deleted_records_stay_deleted() -> None:
    """Though their segments are still there: whoever erased them must not find them again."""
    world, leader, copied = await segments(3)
    leader.log.delete_records(13)
    world.write_history(leader, copied)
    for use_history in (True, False):
        log = await fresh(world, use_history=use_history)
        assert log.log_start_offset == 13
        assert [(one.start_offset, one.end_offset) for one in log.segments] == [(13, 20), (20, 30)]
        assert log.gaps == ()


async def test_records_deleted_beyond_what_was_copied_leave_nothing() -> None:
    world, leader, copied = await segments(2)
    leader.write(30)
    leader.log.delete_records(45)
    world.write_history(leader, copied)
    log = await fresh(world)
    assert (log.log_start_offset, log.end_offset, log.stable_end_offset) == (45, 45, 45)
    assert (log.segments, log.gaps) == ((), ())


async def test_a_leader_knows_how_transactions_ended() -> None:
    """One that looks open in the bucket was committed: its rows count without a broker."""
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(5)
    leader.transaction(7, 5)
    leader.roll()
    copied = await world.copy(leader)
    assert (await fresh(world)).stable_end_offset == 5
    world.write_history(leader, copied, stable_end_offset=10)
    assert (await fresh(world)).stable_end_offset == 10
    # Also when the segments that follow do not end it either.
    leader.write(1)
    leader.roll()
    await world.copy(leader)
    assert (await fresh(world)).stable_end_offset == 10


async def test_a_history_of_another_log_is_put_aside() -> None:
    """Its leader was replaced uncleanly, and does not know."""
    world, leader, copied = await segments(3)
    heir = world.replica("b")
    heir.follow(leader, 15)
    heir.write(30, epoch=3)
    heir.roll()
    await world.copy(heir, from_offset=15)
    world.write_history(leader, copied)
    log = await fresh(world)
    assert told(log) == told(await fresh(world, use_history=False))
    assert log.leader_epochs == ((0, 0), (3, 15))
    assert log.end_offset == 45


async def test_a_planned_segment_that_is_gone_has_all_listed() -> None:
    """Another copy may have its offsets."""
    world, leader, copied = await segments(3)
    world.write_history(leader, copied)
    again = await world.copy(leader, from_offset=20)
    world.remove(copied[-1])
    log = await fresh(world)
    assert (log.end_offset, log.gaps) == (30, ())
    assert log.segments[-1].metadata.id == again[0].id


async def test_segments_that_a_history_does_not_know_are_found_where_it_has_a_gap() -> None:
    world, leader, copied = await segments(4)
    world.write_history(leader, [copied[0], copied[3]])
    log = await fresh(world)
    assert (len(log.segments), log.gaps) == (4, ())
    world.remove(copied[1])
    world.write_history(leader, [copied[0], copied[2], copied[3]])
    assert (await fresh(world)).gaps == (Gap(10, 20),)


async def test_what_is_missing_from_the_log_start_on_is_a_gap() -> None:
    """Not a log that begins later: nobody has deleted it."""
    world, leader, copied = await segments(3)
    world.write_history(leader, copied)
    world.remove(copied[0])
    log = await fresh(world, use_history=False)
    assert (log.log_start_offset, log.gaps) == (0, (Gap(0, 10),))


async def test_when_the_first_segment_of_a_history_is_gone_all_is_listed() -> None:
    """It was removed since, or another copy has its offsets."""
    world, leader, copied = await segments(LISTED_BACK + 3)
    world.write_history(leader, copied)
    await world.copy(leader, from_offset=0, until_offset=10)
    world.remove(copied[0])
    log = await fresh(world)
    assert (log.log_start_offset, log.gaps) == (0, ())
    assert log.segments[0].metadata.id != copied[0].id


async def test_a_key_pair_that_only_old_segments_need_is_missed_before_they_are_read() -> None:
    """It was replaced, and nobody has wrapped their data keys anew."""
    world, leader, copied = await segments(3, encryption=True)
    old = {one.id: world.store.objects[ObjectKeys().segment_keys(one).manifest] for one in copied}
    for one in copied[:2]:
        data = old[one.id].data.replace(b'"dataKey":"none:', b'"dataKey":"gone:')
        data = data[:-12] + f"{crc_of(data):08x}".encode() + data[-4:]
        world.store.objects[ObjectKeys().segment_keys(one).manifest] = StoredObject(data, 0)
    unwrap = world.keys.unwrap

    def unwrap_known(envelope: DataKeyEnvelope) -> object:
        if envelope.pair_id == "gone":
            raise RemoteStorageError("needs the key pair 'gone'")
        return unwrap(envelope)

    world.keys.unwrap = unwrap_known  # type: ignore[method-assign]  # one of two is here
    for history in (False, True):
        if history:
            world.write_history(leader, copied)
        with pytest.raises(RemoteStorageError, match="needs the key pair 'gone'"):
            await fresh(world)


async def test_an_end_that_was_lost_is_told() -> None:
    """Nobody removes the end of a log: rows that a history tells of are missing, not expired."""
    world, leader, copied = await segments(3)
    world.write_history(leader, copied)
    world.remove(copied[2])
    log = await fresh(world)
    assert log.end_offset == 20
    ((key, _, problem, start_offset),) = log.damaged
    assert (key, start_offset) == (KEY, 20)
    assert problem == "it names offsets up to 29, and no segment has those from 20 on"
    bucket = world.open()
    followed = await follow_partition(bucket, log)
    assert followed.damaged == log.damaged
    assert (await follow_partition(bucket, followed)) is followed
    for metadata in copied[:2]:
        world.remove(metadata)
    assert [one.start_offset for one in (await fresh(world)).damaged] == [0]


async def test_an_end_that_was_removed_after_its_history_was_read_is_not_lost() -> None:
    """All of a log may expire while somebody plans; its leader tells so before."""
    world, leader, copied = await segments(3)
    world.write_history(leader, copied)

    def expire(call: str, key: str) -> None:
        if call == "list" and copied:
            leader.log.delete_records(leader.end)
            world.write_history(leader, ())
            while copied:
                world.remove(copied.pop())

    world.store.on_call = expire
    log = await fresh(world)
    assert (log.log_start_offset, log.end_offset, log.damaged) == (30, 30, ())


async def test_a_damaged_history_is_named_and_all_is_listed() -> None:
    world, leader, copied = await segments(2)
    world.write_history(leader, copied)
    data = world.store.objects[KEY].data
    world.store.objects[KEY] = StoredObject(data[:50] + b"#" + data[51:], 0)
    log = await fresh(world)
    assert log.end_offset == 20
    assert [(one.key, one.problem) for one in log.damaged] == [(KEY, "the history fails its CRC")]


async def test_a_topic_that_is_being_deleted_says_so() -> None:
    world, leader, copied = await segments(2)
    world.write_history(leader, copied, state=HistoryState.DELETING)
    assert (await fresh(world)).is_deleting
    world.write_history(leader, copied)
    assert not (await fresh(world)).is_deleting
    world.write_history(leader, (), state=HistoryState.DELETING)
    for metadata in copied:
        world.remove(metadata)
    log = await fresh(world)
    assert (log.is_deleting, log.partition_count, log.cluster_id) == (True, 1, "cluster")


async def test_following_costs_one_request_where_nothing_is_new() -> None:
    world, leader, copied = await segments(3)
    bucket = world.open()
    log = await read_partition(bucket, NAME)
    world.store.log.clear()
    assert await follow_partition(bucket, log) is log
    assert [call for call, _ in world.store.log] == ["list"]
    world.write_history(leader, copied)
    followed = await follow_partition(bucket, log)
    assert told(followed) == told(log)
    world.store.log.clear()
    assert await follow_partition(bucket, followed) is followed
    assert [call for call, _ in world.store.log] == ["list"]


async def test_following_sees_what_comes_and_what_is_deleted() -> None:
    world, leader, copied = await segments(3)
    world.write_history(leader, copied)
    bucket = world.open()
    log = await follow_partition(bucket, await read_partition(bucket, NAME))
    leader.write(10)
    leader.roll()
    copied += await world.copy(leader)
    log = await follow_partition(bucket, log)
    assert (log.log_start_offset, log.end_offset) == (0, 40)
    leader.log.delete_records(15)
    world.write_history(leader, copied)
    log = await follow_partition(bucket, log)
    assert (log.log_start_offset, log.end_offset) == (15, 40)
    assert log.segments[0].start_offset == 15
    world.write_history(leader, copied, state=HistoryState.DELETING)
    assert (await follow_partition(bucket, log)).is_deleting
    world.store.objects.clear()
    gone = await follow_partition(bucket, log)
    assert (gone.end_offset, gone.segments, gone.is_deleting) == (0, (), False)


async def test_a_segment_that_a_plan_has_missed_is_not_believed_in_again() -> None:
    """Neither by who follows the log nor by a history that does not know."""
    world, leader, copied = await segments(FOLLOWED_BACK + 5)
    world.write_history(leader, copied)
    bucket = world.open()
    log = await follow_partition(bucket, await read_partition(bucket, NAME))
    await world.copy(leader, from_offset=10, until_offset=20)
    world.remove(copied[1])
    assert await follow_partition(bucket, log) is log
    with pytest.raises(ObjectNotFoundError):
        await pieces(bucket, log, 10, 15, read_committed=False)
    for again in (await follow_partition(bucket, log), await read_partition(bucket, NAME)):
        assert again.segments[1].metadata.id != copied[1].id
        assert again.gaps == ()
        await pieces(bucket, again, 10, 15, read_committed=False)


async def test_following_forgets_no_damage() -> None:
    """Nor reads it again and again."""
    world, leader, copied = await segments(FOLLOWED_BACK + 5)
    key = ObjectKeys().segment_keys(copied[1]).manifest
    world.store.objects[key] = StoredObject(b"{}", 0)
    bucket = world.open()
    log = await read_partition(bucket, NAME)
    for _ in range(2):
        leader.write(1)
        leader.roll()
        await world.copy(leader)
        log = await follow_partition(bucket, log)
        assert ([one.key for one in log.damaged], log.gaps) == ([key], (Gap(10, 20),))
    assert log.end_offset == leader.end


async def test_following_a_log_whose_end_was_overwritten_reads_it_anew() -> None:
    """A restored node, or an unclean leader: the end may even be below what was read."""
    world, leader, copied = await segments(3)
    bucket = world.open()
    log = await read_partition(bucket, NAME)
    heir = world.replica("b")
    heir.follow(leader, 22)
    heir.write(2, epoch=1)
    heir.roll()
    await world.copy(heir, from_offset=22)
    world.remove(copied[-1])
    followed = await follow_partition(bucket, log)
    assert (followed.end_offset, followed.leader_epochs) == (24, ((0, 0), (1, 22)))


@pytest.mark.parametrize("call", ["list", "get", "get_range"])
async def test_a_store_that_is_away_is_told(call: str) -> None:
    world, leader, copied = await segments(2)
    world.write_history(leader, copied)
    world.store.fail(call, Fault.DENIED)
    with pytest.raises(StoreDeniedError):
        await fresh(world)


events = st.lists(
    st.sampled_from(["write", "write", "transaction", "finish", "history", "follow", "delete"]),
    max_size=14,
)


@examples(60)
@given(events)
async def test_whatever_happened_since_a_history_was_written(script: list[str]) -> None:
    """All ways of reading agree with a listing of everything."""
    world, leader, copied = await segments(1)
    bucket = world.open()
    log = await read_partition(bucket, NAME)
    for event in script:
        if event == "history":
            world.write_history(leader, copied)
        elif event == "follow":
            log = await follow_partition(bucket, log)
        elif event == "delete":
            # The history is written before it is answered.
            leader.log.delete_records(min(leader.log.log_start_offset + 7, leader.end - 1))
            world.write_history(leader, copied)
        else:
            if event == "transaction":
                leader.transaction(7, 2)
            elif event == "finish" and leader.open:
                leader.finish(7, commit=len(script) % 2 == 0)
            leader.write(2)
            leader.roll()
            copied += await world.copy(leader)
    listed = await fresh(world, use_history=False)
    assert listed.end_offset == leader.end
    assert listed.log_start_offset == leader.log.log_start_offset
    assert told(await fresh(world)) == told(listed)
    log = await follow_partition(bucket, log)
    assert told(log) == told(listed)
