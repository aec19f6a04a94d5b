"""What metadata managers promise on several brokers, and of the deletion of a partition."""

import asyncio

import pytest

from tests.contract.metadata_manager.world import (
    P0,
    World,
    copy,
    delete,
    deletion,
    same_metadata_partition,
    segment,
    settle,
)
from tiered.errors import InvalidTransitionError, RemoteStorageNotReadyError
from tiered.metadata.log import LogOffsets, LogPage
from tiered.segment_metadata import PartitionDeleteState, TopicIdPartition


async def test_a_new_leader_sees_nothing_before_it_has_read_all_there_is(world: World) -> None:
    """Its reader may be behind: what is not there yet must not look expired."""
    before = await world.started()
    (a,) = await copy(before, segment(0, 9))
    follower = world.start(leads=False)
    follower.assign([P0])
    await asyncio.wait_for(follower.ready(P0), 30)
    # As a reader that is slow: it hears of nothing.
    world.topic.listeners.remove(follower)
    (b,) = await copy(before, segment(10, 19))
    assert follower.segments(P0) == [a]
    follower.refresh(P0)
    assert not follower.is_ready(P0)
    with pytest.raises(RemoteStorageNotReadyError):
        follower.segments(P0)
    await asyncio.wait_for(follower.ready(P0), 30)
    assert follower.segments(P0) == [a, b]
    world.topic.listeners.append(follower)


async def test_a_leadership_that_begins_while_a_partition_is_shown_hides_it_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end up to which the reader reads just then is of before that."""
    before = await world.started()
    (a,) = await copy(before, segment(0, 9))
    follower = world.start(leads=False)
    other = same_metadata_partition(P0, world.topic.partition_count)
    follower.assign([other])
    await asyncio.wait_for(follower.ready(other), 30)
    ask, read = follower._log.offsets, follower._log.read
    asked, answer, going_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow_offsets(partition: int) -> LogOffsets:
        offsets = await ask(partition)
        asked.set()
        await answer.wait()
        return offsets

    async def slow_read(partition: int, offset: int, max_bytes: int) -> LogPage:
        await going_on.wait()
        return await read(partition, offset, max_bytes)

    monkeypatch.setattr(follower._log, "offsets", slow_offsets)
    monkeypatch.setattr(follower._log, "read", slow_read)
    world.topic.listeners.remove(follower)
    follower.assign([P0])
    await asyncio.wait_for(asked.wait(), 30)
    (b,) = await copy(before, segment(10, 19))
    follower.refresh(P0)
    answer.set()
    await settle()
    assert not follower.is_ready(P0)
    going_on.set()
    await asyncio.wait_for(follower.ready(P0), 30)
    assert follower.segments(P0) == [a, b]
    world.topic.listeners.append(follower)


async def test_before_garbage_is_removed_all_there_is_has_been_read(world: World) -> None:
    leader = await world.started()
    follower = world.start(leads=False)
    follower.assign([P0])
    await asyncio.wait_for(follower.ready(P0), 30)
    world.topic.listeners.remove(follower)
    (a,) = await copy(leader, segment(0, 9))
    assert follower.segments(P0) == []
    await asyncio.wait_for(follower.caught_up([P0]), 30)
    assert follower.segments(P0) == [a]
    world.topic.listeners.append(follower)


async def test_an_inspection_shows_what_is_hosted_elsewhere_while_it_lasts(world: World) -> None:
    """Of all metadata partitions; only the leader of the first one may."""
    theirs = [TopicIdPartition(P0.topic_id, P0.topic, index) for index in range(12)]
    other = world.start(leads=False)
    other.assign(theirs)
    for one in theirs:
        await asyncio.wait_for(other.ready(one), 30)
        await copy(other, segment(0, 9, one))
    steward = await world.started(P0)
    assert (steward.is_steward, other.is_steward) == (True, False)
    inspected = await asyncio.wait_for(steward.begin_inspection(), 30)
    assert set(steward.partitions()) == set(theirs)
    assert all(len(steward.segments(one)) == 1 for one in theirs)
    steward.end_inspection(inspected)
    assert list(steward.partitions()) == [P0]
    with pytest.raises(RemoteStorageNotReadyError):
        steward.segments(theirs[5])
    with pytest.raises(RemoteStorageNotReadyError, match="first partition"):
        await other.begin_inspection()


async def test_each_inspection_ends_for_itself(world: World) -> None:
    """One of a single partition, and one of all there are."""
    theirs = TopicIdPartition(P0.topic_id, P0.topic, 7)
    other = world.start(leads=False)
    other.assign([theirs])
    await asyncio.wait_for(other.ready(theirs), 30)
    await copy(other, segment(0, 9, theirs))
    steward = await world.started(P0)
    assert set(steward.known()) == {theirs}
    one = await asyncio.wait_for(steward.begin_inspection(theirs), 30)
    everything = await asyncio.wait_for(steward.begin_inspection(), 30)
    assert (list(one), list(everything)) == ([theirs], [theirs])
    steward.end_inspection(everything)
    assert len(steward.segments(theirs)) == 1
    steward.end_inspection(one)
    with pytest.raises(RemoteStorageNotReadyError):
        steward.segments(theirs)


async def test_what_was_assigned_during_an_inspection_stays(world: World) -> None:
    theirs = TopicIdPartition(P0.topic_id, P0.topic, 7)
    other = world.start(leads=False)
    other.assign([theirs])
    await asyncio.wait_for(other.ready(theirs), 30)
    await copy(other, segment(0, 9, theirs))
    steward = await world.started(P0)
    inspected = await asyncio.wait_for(steward.begin_inspection(), 30)
    steward.assign([theirs])
    steward.end_inspection(inspected)
    assert len(steward.segments(theirs)) == 1
    steward.release([theirs])
    with pytest.raises(RemoteStorageNotReadyError):
        steward.segments(theirs)


async def test_a_deletion_is_the_metadata_leaders_to_see_through(world: World) -> None:
    leader = await world.started()
    follower = world.start(leads=False)
    follower.assign([P0])
    await asyncio.wait_for(follower.ready(P0), 30)
    marked = deletion(next(iter(PartitionDeleteState)))
    await leader.delete_partition(marked)
    await settle()
    assert (leader.leads(P0), follower.leads(P0)) == (True, False)
    assert (leader.deletions(), follower.deletions()) == ([marked], [])
    leader.on_resigned(world.metadata_partition)
    follower.on_elected(world.metadata_partition)
    assert (leader.deletions(), follower.deletions()) == ([], [marked])


async def test_shared_snapshots_are_written_by_the_leader_alone(world: World) -> None:
    """Those on local disk are each broker's own."""
    leader = await world.started(snapshot_interval_ms=1_000_000)
    follower = world.start(leads=False)
    follower.assign([P0])
    await asyncio.wait_for(follower.ready(P0), 30)
    await copy(leader, segment(0, 9))
    await settle()
    await world.stop(follower)
    assert len(world.snapshot_names()) == (1 if world.kind == "local" else 0)
    await world.stop(leader)
    assert len(world.snapshot_names()) == 1


async def test_a_partition_is_deleted_and_forgotten(world: World) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    marked, started, finished = (deletion(state) for state in PartitionDeleteState)
    with pytest.raises(InvalidTransitionError):
        await manager.delete_partition(started)
    await manager.delete_partition(marked)
    assert manager.deletions() == [marked]
    assert manager.segments(P0) == [a]
    await manager.delete_partition(started)
    assert manager.deletions() == [started]
    await delete(manager, a)
    await manager.delete_partition(finished)
    assert manager.deletions() == []
    assert manager.partitions() == []
    with pytest.raises(RemoteStorageNotReadyError):
        manager.segments(P0)


@pytest.mark.parametrize("way", ["stop", "crash"])
async def test_a_deletion_goes_on_after_a_restart(world: World, way: str) -> None:
    """The topic is gone, so nobody assigns the partition until it is asked for."""
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    await manager.delete_partition(deletion(PartitionDeleteState.DELETE_PARTITION_MARKED))
    await getattr(world, way)(manager)

    manager = world.start()
    await settle(200)
    (found,) = manager.deletions()
    assert found == deletion(PartitionDeleteState.DELETE_PARTITION_MARKED)
    manager.assign([found.partition])
    await asyncio.wait_for(manager.ready(P0), 30)
    assert manager.segments(P0) == [a]
    await manager.delete_partition(deletion(PartitionDeleteState.DELETE_PARTITION_STARTED))
    await delete(manager, a)
    await manager.delete_partition(deletion(PartitionDeleteState.DELETE_PARTITION_FINISHED))
    await world.stop(manager)

    manager = world.start()
    await settle(200)
    assert manager.deletions() == []
