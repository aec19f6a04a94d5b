"""What a RemoteLogMetadataManager promises, wherever its snapshots are kept."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import TypeVar
from uuid import UUID

import pytest

from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.loop_turns import turns
from tests.fakes.tiered.metadata_log import FakeMetadataLog, MetadataTopic
from tests.fakes.tiered.scripted_tier import FakeTier
from tests.fakes.timer import ManualTimer
from tiered.errors import (
    InvalidTransitionError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
    StoreUnavailableError,
)
from tiered.metadata.log import LogOffsets, LogPage
from tiered.metadata.partitioner import metadata_partition
from tiered.metadata.records import encode_event
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.metadata.settings import MetadataSettings
from tiered.metadata.snapshot_store import BucketSnapshotStore, LocalSnapshotStore, SnapshotStore
from tiered.metadata.topic_based_manager import TopicMetadataManager
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

T = TypeVar("T")

P0 = TopicIdPartition(UUID(int=5), "events", 0)
STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETING = SegmentState.DELETE_SEGMENT_STARTED
DELETED = SegmentState.DELETE_SEGMENT_FINISHED

_ids = count(1)


async def run_here(function: Callable[[], T], /) -> T:
    await asyncio.sleep(0)
    return function()


def segment(
    start: int,
    end: int,
    partition: TopicIdPartition = P0,
    *,
    epochs: tuple[tuple[int, int], ...] | None = None,
    size: int = 100,
    txn_index_empty: bool = False,
) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        RemoteLogSegmentId(partition, UUID(int=next(_ids))),
        start,
        end,
        1000 + end,
        1,
        2000,
        size,
        tuple(SegmentEpoch(*epoch) for epoch in epochs or ((0, start),)),
        txn_index_empty=txn_index_empty,
    )


def update(
    metadata: RemoteLogSegmentMetadata, state: SegmentState, custom: bytes | None = None
) -> RemoteLogSegmentMetadataUpdate:
    return RemoteLogSegmentMetadataUpdate(metadata.segment_id, 3000, state, 1, custom)


def deletion(state: PartitionDeleteState) -> RemotePartitionDelete:
    return RemotePartitionDelete(P0, state, 4000, 1)


def same_metadata_partition(partition: TopicIdPartition, count_: int) -> TopicIdPartition:
    """Another user partition whose metadata is in the same place."""
    wanted = metadata_partition(partition, count_)
    for index in count(1):
        other = TopicIdPartition(partition.topic_id, partition.topic, index)
        if metadata_partition(other, count_) == wanted:
            return other
    raise AssertionError


class World:
    """A topic and a snapshot store that outlive the managers."""

    def __init__(self, kind: str) -> None:
        self.topic = MetadataTopic()
        self.kind = kind
        self.filesystem = FakeFilesystem()
        self.filesystem.mkdir("/snapshots")
        self.tier = FakeTier()
        self.timer = ManualTimer()
        self.managers: list[TopicMetadataManager] = []
        self.metadata_partition = metadata_partition(P0, self.topic.partition_count)

    def store(self) -> SnapshotStore:
        if self.kind == "local":
            return LocalSnapshotStore(self.filesystem, "/snapshots", run_here)
        return BucketSnapshotStore(self.tier, "cluster")

    def start(self, *, leads: bool = True, **settings: int) -> TopicMetadataManager:
        manager = TopicMetadataManager(
            FakeMetadataLog(self.topic, leads=leads),
            self.store(),
            FakeEnvironment(timer=self.timer),
            settings=MetadataSettings(**settings),
        )
        self.managers.append(manager)
        manager.start()
        return manager

    async def started(self, *partitions: TopicIdPartition, **settings: int) -> TopicMetadataManager:
        """A manager for which these are visible."""
        manager = self.start(leads=True, **settings)
        manager.assign(partitions or (P0,))
        for partition in partitions or (P0,):
            await asyncio.wait_for(manager.ready(partition), 30)
        return manager

    async def crash(self, manager: TopicMetadataManager) -> None:
        """It ends without a last snapshot."""
        for reader, task in manager._readers.values():
            reader.is_loaded = False
            task.cancel()
        await manager.close()
        self.managers.remove(manager)

    async def stop(self, manager: TopicMetadataManager) -> None:
        await manager.close()
        self.managers.remove(manager)

    def snapshot_names(self) -> list[str]:
        """Of P0's metadata partition, oldest first."""
        if self.kind == "local":
            folder = f"/snapshots/{self.metadata_partition}"
            if not self.filesystem.exists(folder):
                return []
            return sorted(f"{folder}/{e.name}" for e in self.filesystem.list_directory(folder))
        prefix = f"__remote_log_metadata/cluster/{self.metadata_partition}/"
        return sorted(key for key in self.tier.objects if key.startswith(prefix))

    def read_snapshot(self, name: str) -> bytes:
        if self.kind == "local":
            return self.filesystem.read_bytes(name)
        return self.tier.objects[name]

    def write_snapshot(self, name: str, data: bytes) -> None:
        if self.kind == "local":
            self.filesystem.replace_bytes(name, data)
        else:
            self.tier.objects[name] = data


@pytest.fixture(params=["local", "bucket"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    made = World(request.param)
    yield made
    for manager in made.managers:
        await manager.close()


async def settle(most: int = 60) -> None:
    await turns(most)


async def copy(
    manager: RemoteLogMetadataManager, *segments: RemoteLogSegmentMetadata
) -> list[RemoteLogSegmentMetadata]:
    """Tell of finished copies; what look-ups are then expected to return."""
    for metadata in segments:
        await manager.add(metadata)
        await manager.update(update(metadata, FINISHED, b"c"))
    return [metadata.with_update(update(metadata, FINISHED, b"c")) for metadata in segments]


async def delete(manager: RemoteLogMetadataManager, metadata: RemoteLogSegmentMetadata) -> None:
    await manager.update(update(metadata, DELETING))
    await manager.update(update(metadata, DELETED))


# -- reading one's writes --------------------------------------------------------------------------


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


# -- the state machine -----------------------------------------------------------------------------


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


# -- not ready -------------------------------------------------------------------------------------


async def test_not_assigned_is_not_ready(world: World) -> None:
    manager = await world.started()
    other = same_metadata_partition(P0, world.topic.partition_count)
    assert not manager.is_ready(other)
    for look in (
        lambda: manager.find(other, 0, 0),
        lambda: manager.find_at_or_after(other, 0, 0),
        lambda: manager.find_unfinished(other, 0, 0),
        lambda: manager.find_next_with_transactions(other, 0, 0),
        lambda: manager.highest_offset(other, 0),
        lambda: manager.segments(other),
        lambda: manager.size(other),
    ):
        with pytest.raises(RemoteStorageNotReadyError):
            look()
    with pytest.raises(RemoteStorageNotReadyError):
        await manager.ready(other)
    with pytest.raises(RemoteStorageNotReadyError):
        await manager.add(segment(0, 9, other))
    with pytest.raises(RemoteStorageNotReadyError):
        await manager.update(update(segment(0, 9, other), FINISHED))
    assert manager.partitions() == [P0]


async def test_not_ready_before_all_is_read(world: World) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    await world.crash(manager)

    manager = world.start()
    world.topic.stop_serving(world.metadata_partition)
    manager.assign([P0])
    waiting = asyncio.ensure_future(manager.ready(P0))
    await settle()
    assert not manager.is_ready(P0)
    assert not waiting.done()
    with pytest.raises(RemoteStorageNotReadyError, match="still being read"):
        manager.find(P0, 0, 5)
    world.topic.serve(world.metadata_partition)
    await waiting
    assert manager.find(P0, 0, 5) == a


async def test_the_topic_may_come_late(world: World) -> None:
    world.topic.fail_open = RemoteStorageError("no controller yet")
    manager = world.start()
    manager.assign([P0])
    waiting = asyncio.ensure_future(manager.ready(P0))
    await settle()
    assert not manager.is_ready(P0)
    world.topic.fail_open = None
    world.timer.advance(200)
    await asyncio.wait_for(waiting, 30)
    assert manager.segments(P0) == []


async def test_trouble_while_loading_is_waited_out(world: World) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    await world.crash(manager)
    world.topic.fail_read = StoreUnavailableError("later")
    manager = world.start()
    manager.assign([P0])
    await settle()
    assert not manager.is_ready(P0)
    world.topic.fail_read = None
    world.timer.advance(1000)
    await asyncio.wait_for(manager.ready(P0), 30)
    assert manager.segments(P0) == [a]


# -- restart ---------------------------------------------------------------------------------------


async def history(manager: RemoteLogMetadataManager) -> list[RemoteLogSegmentMetadata]:
    """Some of everything; what is left of it."""
    a, b, c, d, e = (
        segment(0, 9),
        segment(10, 19, epochs=((0, 10), (3, 15))),
        segment(20, 29, epochs=((3, 20),), txn_index_empty=True),
        segment(30, 39, epochs=((3, 30),)),
        segment(30, 49, epochs=((3, 30),)),
    )
    await copy(manager, a, b, c, d, e)
    await delete(manager, a)
    await manager.update(update(b, DELETING))
    await manager.add(segment(50, 59, epochs=((3, 50),)))
    return list(manager.segments(P0))


def picture(manager: RemoteLogMetadataManager) -> object:
    """All that look-ups say of P0."""
    return (
        manager.segments(P0),
        [[manager.find(P0, epoch, offset) for offset in range(62)] for epoch in range(5)],
        [[manager.find_next_with_transactions(P0, e, o) for o in range(62)] for e in range(5)],
        [manager.highest_offset(P0, epoch) for epoch in range(5)],
        [manager.segments(P0, epoch) for epoch in range(5)],
        [manager.size(P0, epoch) for epoch in (None, 0, 3)],
        manager.deletions(),
    )


@pytest.mark.parametrize("way", ["stop", "crash"])
async def test_a_restart_changes_nothing(world: World, way: str) -> None:
    manager = await world.started()
    left = await history(manager)
    assert len(left) == 5
    before = picture(manager)
    await getattr(world, way)(manager)
    assert bool(world.snapshot_names()) == (way == "stop")
    world.topic.read_records = 0
    manager = await world.started()
    assert picture(manager) == before
    assert world.topic.read_records == (0 if way == "stop" else 14)


async def test_a_start_reads_what_came_after_the_snapshot(world: World) -> None:
    manager = await world.started()
    await history(manager)
    await world.stop(manager)
    manager = await world.started()
    await copy(manager, segment(100, 109, epochs=((3, 100),)))
    before = picture(manager)
    await world.crash(manager)
    world.topic.read_records = 0
    manager = await world.started()
    assert world.topic.read_records == 2
    assert picture(manager) == before


async def test_snapshots_are_taken_every_so_many_events(world: World) -> None:
    manager = await world.started(snapshot_events=10)
    for n in range(12):
        await copy(manager, segment(10 * n, 10 * n + 9))
    await settle()
    names = world.snapshot_names()
    assert len(names) == 2
    assert manager.stats.snapshots_written == 2
    before = picture(manager)
    await world.crash(manager)
    world.topic.read_records = 0
    manager = await world.started()
    assert picture(manager) == before
    assert world.topic.read_records <= 4


async def test_snapshots_are_taken_every_so_often_if_there_is_anything_new(world: World) -> None:
    manager = await world.started(snapshot_interval_ms=1000)
    world.timer.advance(1000)
    await settle()
    assert world.snapshot_names() == []
    await copy(manager, segment(0, 9))
    world.timer.advance(1000)
    await settle()
    assert len(world.snapshot_names()) == 1
    world.timer.advance(5000)
    await settle()
    assert manager.stats.snapshots_written == 1


async def test_a_snapshot_that_cannot_be_written_is_tried_again_later(world: World) -> None:
    manager = await world.started(snapshot_interval_ms=1000, snapshot_events=2)
    if world.kind == "local":
        world.filesystem.fail("write", 28, path="snapshot", times=1)
    else:
        world.tier.failures["put_object"] = StoreUnavailableError("503")
    (a,) = await copy(manager, segment(0, 9))
    await settle()
    assert manager.stats.snapshot_failures == 1
    assert manager.find(P0, 0, 5) == a
    world.tier.failures.clear()
    world.timer.advance(1000)
    await settle()
    assert manager.stats.snapshots_written == 1


async def test_a_snapshot_that_hangs_harms_nobody_else(world: World) -> None:
    if world.kind == "local":
        pytest.skip("a directory does not hang")
    manager = await world.started(snapshot_events=2, stop_max_ms=500)
    world.tier.gate("put_object").close()
    for n in range(5):
        await copy(manager, segment(10 * n, 10 * n + 9))
    assert len(manager.segments(P0)) == 5
    closing = asyncio.ensure_future(world.stop(manager))
    await settle()
    assert not closing.done()
    world.timer.advance(505)
    await asyncio.wait_for(closing, 30)


# -- snapshots that are no good --------------------------------------------------------------------


def warnings(caplog: pytest.LogCaptureFixture, text: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if text in record.getMessage()]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "grown", "version"])
async def test_a_damaged_snapshot_is_ignored(
    world: World, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    manager = await world.started()
    await history(manager)
    before = picture(manager)
    await world.stop(manager)
    (name,) = world.snapshot_names()
    data = bytearray(world.read_snapshot(name))
    match damage:
        case "flip":
            data[len(data) // 2] ^= 1
        case "cut":
            del data[-3:]
        case "empty":
            data.clear()
        case "grown":
            data += b"x"
        case _:
            data[5] = 9
    world.write_snapshot(name, bytes(data))
    world.topic.read_records = 0
    manager = await world.started()
    assert picture(manager) == before
    assert world.topic.read_records == 14
    assert len(warnings(caplog, "snapshot ignored")) == 1
    assert manager.stats.snapshots_ignored == 1


async def test_the_one_before_a_damaged_snapshot_does_as_well(world: World) -> None:
    manager = await world.started(snapshot_events=10)
    for n in range(12):
        await copy(manager, segment(10 * n, 10 * n + 9))
    await settle()
    before = picture(manager)
    await world.crash(manager)
    _, newest = world.snapshot_names()
    world.write_snapshot(newest, b"")
    world.topic.read_records = 0
    manager = await world.started()
    assert picture(manager) == before
    assert world.topic.read_records < 24


async def test_a_snapshot_of_another_topic_is_ignored(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    manager = await world.started()
    await history(manager)
    await world.stop(manager)
    world.topic.topic_id = UUID(int=78)
    world.topic.records = [[] for _ in range(world.topic.partition_count)]
    manager = await world.started()
    assert manager.segments(P0) == []
    assert len(warnings(caplog, "snapshot ignored")) == 1
    await copy(manager, segment(0, 9))
    await world.stop(manager)
    assert [name for name in world.snapshot_names() if name.endswith(".snapshot")] != []
    assert len(world.snapshot_names()) == 2, "one snapshot, and what says that something is lost"


async def test_a_snapshot_under_another_name_is_ignored(world: World) -> None:
    """Somebody has copied files about: what the bytes say counts."""
    manager = await world.started()
    await history(manager)
    before = picture(manager)
    await world.stop(manager)
    (name,) = world.snapshot_names()
    world.write_snapshot(name.replace(f"{14:020d}", f"{13:020d}"), world.read_snapshot(name))
    world.write_snapshot(name, b"")
    manager = await world.started()
    assert picture(manager) == before
    assert manager.stats.snapshots_ignored == 2


@pytest.mark.parametrize("left", [0, 2])
async def test_a_topic_that_lost_its_end_is_made_up_for_by_a_snapshot(
    world: World, caplog: pytest.LogCaptureFixture, left: int
) -> None:
    """What the snapshot says was committed: without it a history would count as garbage."""
    manager = await world.started()
    await history(manager)
    before = picture(manager)
    await world.stop(manager)
    world.topic.cut(world.metadata_partition, left)
    manager = await world.started()
    assert picture(manager) == before
    assert manager.stats.gaps == 1
    assert len(warnings(caplog, "remote log metadata events are lost")) == 1
    await copy(manager, segment(1000, 1009))
    before = picture(manager)
    # Also after a crash: events told since then are not passed over.
    await world.crash(manager)
    manager = await world.started()
    assert picture(manager) == before
    assert manager.stats.gaps == 0


@pytest.mark.parametrize("loss", ["trimmed", "cut", "made anew"])
async def test_what_is_lost_is_known_until_it_is_found(world: World, loss: str) -> None:
    """The topic itself shows nothing of it at the next start."""
    manager = await world.started()
    await history(manager)
    await world.stop(manager)
    if loss == "trimmed":
        for name in world.snapshot_names():
            world.write_snapshot(name, b"")
        world.topic.trim(world.metadata_partition, 3)
    elif loss == "cut":
        world.topic.cut(world.metadata_partition, 3)
    else:
        world.topic.topic_id = UUID(int=78)
        world.topic.records = [[] for _ in range(world.topic.partition_count)]
    for _ in range(3):
        manager = await world.started()
        (text,) = manager.losses()
        assert manager.doubt(P0) == text != ""
        await copy(manager, segment(5000 + manager.stats.events_read, 9000))
        await world.stop(manager)
    manager = await world.started()
    await manager.found()
    assert (list(manager.losses()), manager.doubt(P0)) == ([], "")
    await world.stop(manager)
    manager = await world.started()
    assert (list(manager.losses()), manager.doubt(P0)) == ([], "")


async def test_copies_that_were_found_are_told_in_one_batch_and_once(world: World) -> None:
    """What breaks off is known to be a part only, until somebody says that it is all."""
    manager = await world.started()
    await copy(manager, segment(0, 9))
    found = [segment(10, 19), segment(20, 29)]
    told = world.topic.end(world.metadata_partition)
    await manager.restore([*manager.segments(P0), *found])
    assert world.topic.end(world.metadata_partition) == told + 4
    await manager.restore(found)
    assert world.topic.end(world.metadata_partition) == told + 4
    assert [one.start_offset for one in manager.segments(P0)] == [0, 10, 20]
    assert manager.highest_offset(P0, 0) == 29
    assert manager.lost(P0) != ""
    await world.crash(manager)
    manager = await world.started()
    assert [one.start_offset for one in manager.segments(P0)] == [0, 10, 20]
    assert manager.lost(P0) != ""
    await manager.found()
    assert manager.lost(P0) == ""


async def test_a_topic_with_other_partitions_than_at_first_is_not_opened(world: World) -> None:
    """Where it tells of what would be looked for in the wrong place."""
    manager = await world.started()
    await copy(manager, segment(0, 9))
    await world.stop(manager)
    world.topic.partition_count += 1
    world.topic.records.append([])
    world.topic.starts.append(0)
    manager = world.start()
    manager.assign([P0])
    for _ in range(20):
        await asyncio.sleep(0)
    assert not manager.is_ready(P0)
    (text,) = manager.losses()
    assert "varve tier rebuild-metadata" in text
    await manager.accept_partitions()
    assert manager.is_ready(P0)
    assert manager.misfit == ""
    await world.stop(manager)
    manager = await world.started()
    assert manager.is_ready(P0)


async def test_a_partition_is_withheld_as_long_as_it_is_assigned(world: World) -> None:
    manager = await world.started()
    manager.withhold(P0, "its head is lost")
    assert manager.doubt(P0) == "its head is lost"
    manager.withhold(P0, "")
    assert manager.doubt(P0) == ""
    manager.withhold(P0, "its head is lost")
    manager.release([P0])
    manager.assign([P0])
    assert manager.doubt(P0) == ""


async def test_a_trimmed_topic_is_read_as_far_as_it_goes(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    manager = await world.started()
    await copy(manager, segment(0, 9), segment(10, 19))
    await world.crash(manager)
    world.topic.trim(world.metadata_partition, 2)
    manager = await world.started()
    assert [m.start_offset for m in manager.segments(P0)] == [10]
    assert len(warnings(caplog, "remote log metadata events are lost")) == 1
    assert manager.stats.gaps == 1


async def test_a_trimmed_topic_with_a_snapshot_has_lost_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    manager = await world.started()
    await copy(manager, segment(0, 9), segment(10, 19))
    before = picture(manager)
    await world.stop(manager)
    world.topic.trim(world.metadata_partition, 3)
    manager = await world.started()
    assert picture(manager) == before
    assert warnings(caplog, "remote log metadata events are lost") == []


async def test_the_topic_alone_does_when_the_store_does_not_answer(world: World) -> None:
    manager = await world.started()
    await history(manager)
    before = picture(manager)
    await world.stop(manager)
    if world.kind == "local":
        world.filesystem.fail("list", 5, times=1000)
        world.filesystem.fail("read", 5, times=1000)
    else:
        world.tier.failures["list_objects"] = StoreUnavailableError("503")
    manager = await world.started()
    assert picture(manager) == before


async def test_a_trimmed_topic_waits_for_the_store(world: World) -> None:
    """Without the snapshot segments would be missing: better not ready than wrong."""
    if world.kind == "local":
        pytest.skip("a directory that cannot be listed is no store")
    manager = await world.started()
    await history(manager)
    before = picture(manager)
    await world.stop(manager)
    world.topic.trim(world.metadata_partition, 5)
    world.tier.failures["list_objects"] = StoreUnavailableError("503")
    manager = world.start()
    manager.assign([P0])
    await settle()
    world.timer.advance(3000)
    await settle()
    assert not manager.is_ready(P0)
    world.tier.failures.clear()
    world.timer.advance(6000)
    await asyncio.wait_for(manager.ready(P0), 30)
    assert picture(manager) == before


@pytest.mark.parametrize("seen_by", ["reading", "a leadership", "a new partition"])
async def test_a_topic_that_is_cut_back_has_lost_what_is_known(
    world: World, caplog: pytest.LogCaptureFixture, seen_by: str
) -> None:
    """It was committed: who forgets it takes what it says was copied for a gap."""
    manager = await world.started()
    known = await copy(manager, segment(0, 9), segment(10, 19))
    world.topic.cut(world.metadata_partition, 2)
    if seen_by == "reading":
        manager.on_advanced(world.metadata_partition)
    elif seen_by == "a leadership":
        manager.refresh(P0)
    else:
        manager.assign([same_metadata_partition(P0, world.topic.partition_count)])
    await settle()
    await asyncio.wait_for(manager.ready(P0), 30)
    assert manager.segments(P0) == known
    assert "ends at 2, and was read up to 4" in manager.doubt(P0)
    assert len(warnings(caplog, "remote log metadata events are lost")) == 1
    known += await copy(manager, segment(20, 29))
    # Also after a crash, whatever the topic says by then.
    await world.crash(manager)
    manager = await world.started()
    assert manager.segments(P0) == known
    assert "ends at 2" in manager.doubt(P0)


async def test_a_topic_trimmed_under_the_reader(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    values = [encode_event(segment(10 * n, 10 * n + 9)) for n in range(1, 5)]
    world.topic.records[world.metadata_partition] += values
    world.topic.trim(world.metadata_partition, 4)
    manager.on_advanced(world.metadata_partition)
    await settle()
    assert [m.start_offset for m in manager.segments(P0)] == [0, 30, 40]
    assert manager.find(P0, 0, 5) == a
    assert len(warnings(caplog, "remote log metadata events are lost")) == 1


# -- coming and going ------------------------------------------------------------------------------


@pytest.mark.parametrize("through_snapshot", [False, True])
async def test_a_partition_assigned_late_has_all_its_segments(
    world: World, through_snapshot: bool
) -> None:
    """Its metadata partition was read long ago, for another one."""
    other = same_metadata_partition(P0, world.topic.partition_count)
    manager = await world.started(P0, other)
    await copy(manager, segment(0, 9, other), segment(10, 19, other))
    await copy(manager, segment(0, 9))
    if through_snapshot:
        await world.stop(manager)
    else:
        await world.crash(manager)

    manager = await world.started(P0)
    await copy(manager, segment(10, 19))
    assert not manager.is_ready(other)
    manager.assign([other])
    await asyncio.wait_for(manager.ready(other), 30)
    assert [m.start_offset for m in manager.segments(other)] == [0, 10]
    await copy(manager, segment(20, 29, other))
    assert manager.highest_offset(other, 0) == 29


async def test_events_of_a_partition_nobody_wants_reach_the_next_snapshot(world: World) -> None:
    other = same_metadata_partition(P0, world.topic.partition_count)
    manager = await world.started(P0, other)
    await copy(manager, segment(0, 9, other), segment(0, 9))
    await world.stop(manager)
    manager = await world.started(P0)
    await copy(manager, segment(10, 19))
    late = segment(10, 19, other)
    world.topic.put(
        world.metadata_partition, encode_event(late), encode_event(update(late, FINISHED))
    )
    await settle()
    await world.stop(manager)
    world.topic.trim(world.metadata_partition, world.topic.end(world.metadata_partition))
    manager = await world.started(P0, other)
    assert manager.highest_offset(other, 0) == 19
    assert manager.highest_offset(P0, 0) == 19
    assert len(manager.segments(other)) == 2


async def test_assigned_and_released_while_loading(world: World) -> None:
    """KAFKA-17766: it must not wait for anything."""
    manager = await world.started()
    await copy(manager, segment(0, 9))
    await world.crash(manager)
    manager = world.start()
    for _ in range(20):
        manager.assign([P0])
        waiting = asyncio.ensure_future(manager.ready(P0))
        await asyncio.sleep(0)
        was_ready = manager.is_ready(P0)
        manager.release([P0])
        result = await asyncio.wait_for(asyncio.gather(waiting, return_exceptions=True), 30)
        assert was_ready or isinstance(result[0], RemoteStorageNotReadyError)
        assert manager.partitions() == []
        assert not manager.is_ready(P0)
    manager.assign([P0])
    await asyncio.wait_for(manager.ready(P0), 30)
    assert len(manager.segments(P0)) == 1


async def test_closed_while_loading(world: World) -> None:
    manager = await world.started()
    await copy(manager, segment(0, 9))
    await world.crash(manager)
    world.topic.stop_serving(world.metadata_partition)
    manager = world.start()
    manager.assign([P0])
    waiting = asyncio.ensure_future(manager.ready(P0))
    await settle(3)
    closing = asyncio.ensure_future(world.stop(manager))
    manager.release([P0])
    manager.assign([P0])
    await asyncio.wait_for(closing, 30)
    with pytest.raises(RemoteStorageNotReadyError):
        await asyncio.wait_for(waiting, 30)
    with pytest.raises(RemoteStorageNotReadyError):
        manager.find(P0, 0, 0)


async def test_closed_while_something_is_told(world: World) -> None:
    manager = await world.started()
    world.topic.fail_read = StoreUnavailableError("no")
    telling = asyncio.ensure_future(manager.add(segment(0, 9)))
    await settle()
    await asyncio.wait_for(world.stop(manager), 30)
    with pytest.raises(RemoteStorageError):
        await asyncio.wait_for(telling, 30)


async def test_a_released_partition_is_not_ready_and_comes_back_whole(world: World) -> None:
    manager = await world.started()
    (a,) = await copy(manager, segment(0, 9))
    manager.release([P0])
    with pytest.raises(RemoteStorageNotReadyError):
        manager.segments(P0)
    manager.assign([P0])
    await manager.ready(P0)
    assert manager.segments(P0) == [a]


async def test_a_broker_that_leads_nothing_reads_what_it_wants(world: World) -> None:
    leader = await world.started()
    (a,) = await copy(leader, segment(0, 9))
    follower = world.start(leads=False)
    await settle()
    assert follower._readers == {}
    follower.assign([P0])
    await asyncio.wait_for(follower.ready(P0), 30)
    assert follower.segments(P0) == [a]
    (b,) = await copy(leader, segment(10, 19))
    await settle()
    assert follower.segments(P0) == [a, b]
    follower.release([P0])
    assert follower._readers == {}
    follower.assign([P0])
    await asyncio.wait_for(follower.ready(P0), 30)
    assert follower.segments(P0) == [a, b]
    leader.on_resigned(world.metadata_partition)
    assert leader.segments(P0) == [a, b]


async def test_loading_lets_the_loop_turn(world: World) -> None:
    manager = await world.started()
    values = []
    for n in range(3000):
        values.append(encode_event(metadata := segment(10 * n, 10 * n + 9)))
        values.append(encode_event(update(metadata, FINISHED)))
    world.topic.put(world.metadata_partition, *values)
    await settle(400)
    assert len(manager.segments(P0)) == 3000
    await world.stop(manager)
    manager = world.start()
    manager.assign([P0])
    turns = 0
    while not manager.is_ready(P0):
        turns += 1
        await asyncio.sleep(0)
    # From a snapshot of 3,000 segments, in slices of 250.
    assert turns >= 12
    assert len(manager.segments(P0)) == 3000


# -- several brokers ------------------------------------------------------------------------------


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


# -- deleting a partition --------------------------------------------------------------------------


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
