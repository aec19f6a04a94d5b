"""Told, removed, told; and what is in doubt meanwhile."""

import pytest

from tests.unit.tiered.metadata.segment_builder import PARTITION, STARTED, segment
from tests.unit.tiered.tasks.task_world import World
from tiered.errors import (
    InvalidTransitionError,
    RemoteStorageNotReadyError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.maintenance.bucket_ownership import Claim
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
)


async def begun() -> tuple[World, RemoteLogSegmentMetadata]:
    world = World()
    world.metadata.assign([PARTITION])
    found = segment(3, 9, state=STARTED)
    await world.metadata.add(found)
    for key in world.tier.keys.segment_keys(found):
        world.bucket.put(key, b"x")
    return world, found


async def test_in_this_order() -> None:
    world, found = await begun()
    seen: list[tuple[str, int]] = []
    forgotten: list[RemoteLogSegmentMetadata] = []

    async def look(point: str) -> None:
        seen.append((point, len(world.bucket.objects)))

    world.reach = look
    world.manager._deletion.on_deleted = forgotten.append
    await world.manager._deletion.delete(found)
    assert [point for point, _ in seen] == [
        "update",
        "update written",
        "delete_segment",
        "manifest removed",
        "objects removed",
        "update",
        "update written",
    ]
    assert seen[3] == ("manifest removed", 2)
    assert world.metadata.segments(PARTITION) == []
    assert (forgotten, world.manager._deletion.doubtful) == ([found], 0)


async def test_a_refusal_leaves_it_in_doubt_until_it_is_done() -> None:
    world, found = await begun()
    deletion = world.manager._deletion
    world.tier.fail("delete_segment", StoreUnavailableError("down"))
    with pytest.raises(StoreUnavailableError):
        await deletion.delete(found)
    assert deletion.doubtful == 1
    assert deletion.first_doubtful_offset(PARTITION, 0) == 3
    assert deletion.first_doubtful_offset(PARTITION, 9) == 3
    assert deletion.first_doubtful_offset(PARTITION, 10) is None
    (state,) = [s.state for s in world.metadata.segments(PARTITION)]
    assert state is SegmentState.DELETE_SEGMENT_STARTED
    # The state may be told again (KAFKA-17428).
    await deletion.delete(found)
    assert deletion.first_doubtful_offset(PARTITION, 0) is None
    counters = world.manager.counters.of("t")
    assert (counters.delete_requests, counters.delete_errors) == (2, 1)


async def test_doubt_ends_when_the_metadata_has_forgotten_the_segment() -> None:
    world, found = await begun()
    deletion = world.manager._deletion
    world.metadata.fail("update", StoreTimeoutError("1"), written=True)
    world.metadata.fail("update", StoreTimeoutError("2"), written=True)
    for _ in range(2):
        with pytest.raises(StoreTimeoutError):
            await deletion.delete(found)
        await world.metadata.ready(PARTITION)
    assert deletion.doubtful == 1
    assert deletion.first_doubtful_offset(PARTITION, 0) == 3
    await deletion.delete(found)
    assert deletion.doubtful == 0
    deletion.forget(PARTITION)


async def test_it_is_not_finished_where_the_claim_is_gone_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An empty folder was where the bucket's disk is: there the segment is, when it is back."""
    checks: list[int] = []

    async def missing(_: Claim) -> None:
        checks.append(len(world.bucket.objects))
        if len(checks) == 1:
            raise RemoteStorageNotReadyError("its claim is missing")

    monkeypatch.setattr(Claim, "require_bucket_now", missing)
    world, found = await begun()
    deletion = world.manager._deletion
    kept = dict(world.bucket.objects)
    with pytest.raises(RemoteStorageNotReadyError):
        await deletion.delete(found)
    (state,) = [s.state for s in world.metadata.segments(PARTITION)]
    assert state is SegmentState.DELETE_SEGMENT_STARTED
    assert deletion.doubtful == 1
    world.bucket.objects.update(kept)
    await deletion.delete(found)
    assert world.metadata.segments(PARTITION) == []
    assert checks == [0, 0]


async def test_a_copy_that_is_finished_while_the_claim_is_read_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader before was not gone: what it has just finished may leave the local disks."""
    finished = SegmentState.COPY_SEGMENT_FINISHED

    async def slow(_: Claim) -> None:
        update = RemoteLogSegmentMetadataUpdate(found.segment_id, 0, finished, 2)
        await world.metadata.update(update)

    monkeypatch.setattr(Claim, "require", slow)
    world, found = await begun()
    with pytest.raises(InvalidTransitionError):
        await world.manager._deletion.delete(found)
    assert [s.state for s in world.metadata.segments(PARTITION)] == [finished]
    assert len(world.bucket.objects) == 3
    assert world.manager._deletion.doubtful == 0
