"""What a metadata manager does with damaged snapshots, and with a topic that lost records."""

import asyncio
from uuid import UUID

import pytest

from tests.contract.metadata_manager.world import (
    P0,
    World,
    copy,
    history,
    picture,
    same_metadata_partition,
    segment,
    settle,
    warnings,
)
from tiered.errors import StoreUnavailableError
from tiered.metadata.records import encode_event


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
