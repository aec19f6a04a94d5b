"""What a metadata manager promises of writes: seen once in the topic, and only if legal."""

import asyncio
from uuid import UUID

import pytest

from tests.contract.metadata_manager.world import (
    DELETED,
    DELETING,
    FINISHED,
    P0,
    STARTED,
    World,
    copy,
    delete,
    segment,
    settle,
    update,
)
from tiered.errors import InvalidTransitionError, RemoteStorageError, StoreUnavailableError
from tiered.metadata.records import encode_event
from tiered.segment_metadata import TopicIdPartition


async def test_what_was_told_is_seen_when_the_call_returns(world: World) -> None:
    manager = await world.started()
    a, b = segment(0, 9), segment(10, 19, epochs=((0, 10), (2, 15)), size=50)
    await manager.add(a)
    assert manager.segments(P0) == [a]
    assert manager.find(P0, 0, 5) is None
    assert manager.highest_offset(P0, 0) is None
    assert manager.size(P0) == 0

    await manager.update(update(a, FINISHED, b"custom"))
    found = manager.find(P0, 0, 5)
    assert found is not None
    assert (found.state, found.custom_metadata, found.event_timestamp_ms) == (
        FINISHED,
        b"custom",
        3000,
    )
    (copied,) = await copy(manager, b)
    assert manager.find(P0, 0, 14) == copied
    assert manager.find(P0, 0, 15) is None
    assert manager.find(P0, 2, 15) == copied
    assert manager.find(P0, 2, 20) is None
    assert (manager.highest_offset(P0, 0), manager.highest_offset(P0, 2)) == (14, 19)
    assert (manager.size(P0), manager.size(P0, 2)) == (150, 50)
    assert [m.start_offset for m in manager.segments(P0)] == [0, 10]
    assert [m.start_offset for m in manager.segments(P0, 2)] == [10]

    await manager.update(update(a, DELETING))
    assert manager.find(P0, 0, 5) is None
    assert len(manager.segments(P0)) == 2
    await manager.update(update(a, DELETED))
    assert manager.segments(P0) == [copied]
    assert manager.highest_offset(P0, 0) == 14


async def test_nothing_is_seen_before_it_is_committed(world: World) -> None:
    manager = await world.started()
    a = segment(0, 9)
    world.topic.hold = True
    telling = asyncio.ensure_future(manager.add(a))
    await settle()
    assert manager.segments(P0) == []
    assert not telling.done()
    world.topic.commit_held()
    await telling
    assert manager.segments(P0) == [a]


async def test_an_event_that_was_not_written_is_not_seen(world: World) -> None:
    manager = await world.started()
    world.topic.fail_append = RemoteStorageError("disk full")
    with pytest.raises(RemoteStorageError, match="disk full"):
        await manager.add(segment(0, 9))
    assert manager.segments(P0) == []


async def test_an_event_of_unknown_fate_is_seen_if_it_was_written(world: World) -> None:
    """The writer was told that it timed out; the topic decides."""
    manager = await world.started()
    a = segment(0, 9)
    world.topic.hold = True
    telling = asyncio.ensure_future(manager.add(a))
    await settle()
    held = list(world.topic.held)
    world.topic.fail_held(RemoteStorageError("timed out"))
    with pytest.raises(RemoteStorageError, match="timed out"):
        await telling
    world.topic.put(held[0][0], held[0][1])
    await settle()
    assert manager.segments(P0) == [a]


async def test_an_event_that_cannot_be_read_back_is_given_up(world: World) -> None:
    manager = await world.started(read_back_max_ms=1000)
    world.topic.fail_read = StoreUnavailableError("no")
    telling = asyncio.ensure_future(manager.add(segment(0, 9)))
    await settle()
    assert not telling.done()
    world.timer.advance(1010)
    with pytest.raises(RemoteStorageError, match="not read back"):
        await telling
    assert manager.stats.read_failures > 0
    world.topic.fail_read = None
    world.timer.advance(10_000)
    await settle()
    assert len(manager.segments(P0)) == 1


async def test_illegal_steps_are_refused_and_not_written(world: World) -> None:
    manager = await world.started()
    a = segment(0, 9)
    end = world.topic.end(world.metadata_partition)
    with pytest.raises(InvalidTransitionError):
        await manager.update(update(a, FINISHED))
    with pytest.raises(InvalidTransitionError):
        await manager.add(a.with_update(update(a, FINISHED)))
    assert world.topic.end(world.metadata_partition) == end
    await manager.add(a)
    for state in (STARTED, DELETED):
        with pytest.raises(InvalidTransitionError):
            await manager.update(update(a, state))
    with pytest.raises(InvalidTransitionError):
        await manager.add(a)
    await delete(manager, a)
    with pytest.raises(InvalidTransitionError):
        await manager.update(update(a, DELETED))
    assert world.topic.end(world.metadata_partition) == end + 3


async def test_a_state_may_be_told_again(world: World) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    await manager.update(update(a, FINISHED))
    assert manager.find(P0, 0, 5) == a
    await manager.update(update(a, DELETING))
    await manager.update(update(a, DELETING))
    await manager.update(update(a, DELETED))
    assert manager.segments(P0) == []


async def test_of_two_contradicting_events_the_topic_takes_the_first(world: World) -> None:
    """Both were fine when they were written; the second writer learns that it came too late."""
    manager = await world.started()
    a = segment(0, 9)
    await manager.add(a)
    world.topic.hold = True
    first = asyncio.ensure_future(manager.update(update(a, DELETING)))
    second = asyncio.ensure_future(manager.update(update(a, FINISHED)))
    await settle()
    world.topic.commit_held()
    await first
    with pytest.raises(InvalidTransitionError):
        await second
    assert [m.state for m in manager.segments(P0)] == [DELETING]
    assert manager.stats.events_refused == 1


async def test_two_brokers_come_to_the_same_end(world: World) -> None:
    one = await world.started()
    two = await world.started()
    a = segment(0, 9)
    await one.add(a)
    await settle()
    assert two.segments(P0) == [a]
    world.topic.hold = True
    calls = [
        asyncio.ensure_future(one.update(update(a, FINISHED))),
        asyncio.ensure_future(two.update(update(a, DELETING))),
        asyncio.ensure_future(one.update(update(a, FINISHED))),
    ]
    await settle()
    world.topic.commit_held()
    results = await asyncio.gather(*calls, return_exceptions=True)
    await settle()
    assert [type(result) for result in results] == [
        type(None),
        type(None),
        InvalidTransitionError,
    ]
    assert one.segments(P0) == two.segments(P0)
    assert [m.state for m in one.segments(P0)] == [DELETING]


async def test_many_at_once(world: World) -> None:
    others = [TopicIdPartition(UUID(int=9), "many", index) for index in range(5)]
    manager = await world.started(*others)
    segments = [segment(10 * n, 10 * n + 9, others[n % 5]) for n in range(100)]
    await asyncio.gather(*(copy(manager, metadata) for metadata in segments))
    for metadata in segments:
        found = manager.find(metadata.partition, 0, metadata.start_offset)
        assert found is not None
        assert found.id == metadata.id


async def test_wrong_events_in_the_topic_are_counted_and_change_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    world.topic.put(
        world.metadata_partition,
        b"",
        b"garbage",
        encode_event(update(segment(50, 59), FINISHED)),
        encode_event(update(a, DELETED)),
        encode_event(update(a, FINISHED))[:-1],
    )
    await settle()
    assert manager.segments(P0) == [a]
    assert manager.find(P0, 0, 5) == a
    assert (manager.stats.events_undecodable, manager.stats.events_refused) == (3, 2)
    assert len([r for r in caplog.records if "event ignored" in r.message]) == 5
