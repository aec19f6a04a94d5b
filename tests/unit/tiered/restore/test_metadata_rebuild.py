"""What the bucket's manifests know is told again, once, and nothing else is."""

from collections.abc import Mapping

import pytest

from tests.fakes.tiered.remote_metadata import MetadataEvents
from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.deadline import CallDeadlines
from tiered.errors import CorruptRemoteDataError
from tiered.format.manifest import SegmentManifest
from tiered.metadata.history import (
    HistoryState,
    HistorySummary,
    PartitionHistory,
    encode_history,
)
from tiered.metadata.publisher import MetadataPublisher
from tiered.restore.metadata_rebuild import MetadataRebuild, RebuildBusyError
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tasks.partition_tasks import PartitionState
from tiered.tier import TopicFacts


def rebuild_of(world: World) -> MetadataRebuild:
    return MetadataRebuild(
        metadata=world.metadata,
        manager=world.manager,
        tier=world.tier,
        publisher=MetadataPublisher(world.metadata, world.environment, broker_id=1),
        deadlines=CallDeadlines(world.timer, world.settings.store.call_timeout_ms),
        is_deleted=world.deleted.__contains__,
        log_start_of=lambda _who: world.log.log_start_offset,
    )


def put_manifests(
    world: World, known: Mapping[int, RemoteLogSegmentMetadata], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world's bucket has objects of any content: manifests are made of what was told."""
    by_key = {world.tier.keys.segment_keys(one).manifest: one for one in known.values()}

    class Manifest:
        def __init__(self, metadata: RemoteLogSegmentMetadata) -> None:
            self.metadata = metadata
            self.created_ms = metadata.event_timestamp_ms
            self.topic = TopicFacts(1, {}, "cluster")

    monkeypatch.setattr(
        SegmentManifest, "from_json", classmethod(lambda _cls, _data, key: Manifest(by_key[key]))
    )


async def lost(monkeypatch: pytest.MonkeyPatch) -> World:
    """Four segments are in the bucket only, and nobody knows."""
    world = World()
    world.write(4)
    await world.start()
    await world.interval()
    world.expire_local()
    known = {one.start_offset: one for one in world.metadata.segments(PARTITION)}
    put_manifests(world, known, monkeypatch)
    world.events = MetadataEvents()
    await world.crash()
    await world.start()
    assert world.manager.held_back
    return world


async def test_all_of_it_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await lost(monkeypatch)
    report = await rebuild_of(world).run(dry_run=True)
    assert (report.told_segments, report.found, world.finished()) == (4, False, [])
    report = await rebuild_of(world).run()
    assert (report.told_segments, report.partitions, report.problems) == (4, 1, [])
    assert (report.found, report.held_back) == (True, {})
    assert world.finished() == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert world.manager.partition_states() == {PartitionState.LEADING: 1}
    report = await rebuild_of(world).run()
    assert (report.told_segments, report.known_segments) == (0, 4)
    world.check()


async def test_what_was_given_up_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the log start, unless somebody asks for it; of a deleted topic always."""
    world = await lost(monkeypatch)
    world.log.log_start_offset = 2
    report = await rebuild_of(world).run(dry_run=True)
    assert (report.told_segments, report.below_log_start) == (2, 2)
    report = await rebuild_of(world).run(dry_run=True, below_log_start=True)
    assert (report.told_segments, report.below_log_start) == (4, 0)
    world.deleted.add(PARTITION.topic_id)
    report = await rebuild_of(world).run(dry_run=True)
    assert (report.told_segments, report.deleted_segments) == (0, 4)


def put_history(world: World, log_start: int, state: HistoryState) -> None:
    """As a leader wrote it before all else was lost."""
    summary = HistorySummary(PARTITION, "cluster", 1, state, 0, 0, log_start, 4, 4, ((0, 0),))
    data = encode_history(PartitionHistory(summary, ()))
    world.bucket.put(world.tier.keys.history_key(PARTITION), data)


async def test_what_a_history_says_was_given_up_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also by a broker that has lost its own log start: deleted records stay deleted."""
    world = await lost(monkeypatch)
    put_history(world, 3, HistoryState.LIVE)
    report = await rebuild_of(world).run(dry_run=True)
    assert (report.told_segments, report.below_log_start) == (1, 3)
    report = await rebuild_of(world).run(dry_run=True, below_log_start=True)
    assert (report.told_segments, report.below_log_start) == (4, 0)
    put_history(world, 0, HistoryState.DELETING)
    report = await rebuild_of(world).run(dry_run=True)
    assert (report.told_segments, report.deleted_segments) == (0, 4)


async def test_a_history_that_is_damaged_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was deleted is not known then; somebody has to accept that."""
    world = await lost(monkeypatch)
    world.bucket.put(world.tier.keys.history_key(PARTITION), b"no history")
    report = await rebuild_of(world).run()
    assert (report.problem_count, report.found) == (1, False)
    assert "DeleteRecords" in report.problems[0]
    assert (await rebuild_of(world).run(accept_loss=True)).found


async def test_what_cannot_be_told_is_lost_until_somebody_accepts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await lost(monkeypatch)
    world.metadata.loss = "events are lost"
    read = SegmentManifest.from_json

    def damaged(data: bytes, key: str) -> SegmentManifest:
        if f"/{0:020d}-" in key:
            raise CorruptRemoteDataError(key, -1, "the manifest fails its CRC")
        return read(data, key)

    monkeypatch.setattr(SegmentManifest, "from_json", damaged)
    report = await rebuild_of(world).run()
    assert (report.told_segments, report.problem_count, report.found) == (3, 1, False)
    assert world.log.log_start_offset == 0
    assert world.manager.held_back
    report = await rebuild_of(world).run(accept_loss=True)
    assert (report.found, report.held_back) == (True, {})
    assert world.log.log_start_offset == 1


async def test_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await lost(monkeypatch)
    rebuild = rebuild_of(world)
    rebuild._is_running = True
    with pytest.raises(RebuildBusyError):
        await rebuild.run()
