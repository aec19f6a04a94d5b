"""What waits to be copied, and what counts as only local."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.unit.storage.log.log_model import append, make_batch
from tests.unit.tiered.metadata.segment_builder import FINISHED, PARTITION, STARTED, segment
from tests.unit.tiered.tasks.task_world import World
from tiered.errors import StoreTimeoutError
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
)
from tiered.tasks.led_partition import (
    NEXT_LEADER_MS,
    LedPartition,
    copy_lag,
    only_local_bytes,
    uncopied_segments,
)


def ends(led: LedPartition) -> list[int]:
    return [end for _, end in uncopied_segments(led)]


def test_closed_segments_above_the_highest_remote_offset_wait() -> None:
    world = World()
    world.write(4)
    append(world.log, make_batch(b"x" * 40))
    led = LedPartition(world.tiered())
    size = world.log.segment_facts()[0].size
    assert ends(led) == [1, 2, 3, 4]
    assert copy_lag(led) == (4, 4 * size)
    world.log.highest_remote_offset = 1
    assert ends(led) == [3, 4]
    assert only_local_bytes(led) == 3 * size
    world.log.delete_records(3)
    assert ends(led) == [3, 4], "a crash would bring the record back"
    world.checkpoint()
    assert ends(led) == [4]
    world.log.highest_remote_offset = 3
    assert copy_lag(led) == (0, 0)


def test_a_segment_of_which_a_part_was_copied_waits_too() -> None:
    world = World()
    world.config = world.config.model_copy(update={"segment_bytes": 1000})
    world.log.update_config(world.config)
    for _ in range(3):
        append(world.log, make_batch(b"x" * 40))
    world.log.writer.roll()
    led = LedPartition(world.tiered())
    world.log.highest_remote_offset = 1
    assert ends(led) == [3]
    assert only_local_bytes(led) == 0


def test_the_oldest_is_found_without_a_look_at_all_of_thousands() -> None:
    """A topic that is switched on with all its history would be looked through for each copy."""
    world = World()
    world.write(40)
    led = LedPartition(world.tiered())
    for highest in range(-1, 40):
        world.log.highest_remote_offset = highest
        ends_all = list(range(highest + 2, 41))
        assert ends(led) == ends_all
        assert [end for _, end in uncopied_segments(led, 1)] == ends_all[:1]

    looks = 0

    class Counted:
        size = 1

        def __init__(self, at: int) -> None:
            self.at = at

        @property
        def base_offset(self) -> int:
            nonlocal looks
            looks += 1
            return self.at

    facts = tuple(Counted(at) for at in range(10_000))
    log = SimpleNamespace(
        highest_remote_offset=4999, durable_log_start_offset=0, segment_facts=lambda: facts
    )
    led = LedPartition(replace(world.tiered(), log=cast("Any", log)))
    assert [end for _, end in uncopied_segments(led, 1)] == [5001]
    assert looks < 20


def test_nothing_lags_while_copying_is_disabled() -> None:
    world = World()
    world.write(2)
    world.log.update_config(world.config.model_copy(update={"remote_log_copy_disable": True}))
    assert copy_lag(LedPartition(world.tiered())) == (0, 0)


def test_the_log_start_only_goes_up_and_says_so_once() -> None:
    world = World()
    world.write(3)
    led = LedPartition(world.tiered())
    led.raise_log_start(2)
    led.raise_log_start(1)
    assert (world.log.log_start_offset, world.log_start_moves) == (2, 1)


async def test_a_copy_whose_removal_may_be_on_its_way_is_not_built_upon() -> None:
    """Its record is written but not seen: the segment still looks finished, for a moment."""
    world = World()
    world.write(2)
    world.metadata.assign([PARTITION])
    found = segment(0, 0, state=STARTED)
    await world.metadata.add(found)
    await world.metadata.update(RemoteLogSegmentMetadataUpdate(found.segment_id, 0, FINISHED, 1))
    (found,) = world.metadata.segments(PARTITION)
    led = LedPartition(world.tiered())
    deletion = world.manager._deletion
    world.metadata.fail("update", StoreTimeoutError("lost"), written=True, late=True)
    with pytest.raises(StoreTimeoutError):
        await deletion.delete(found)
    assert world.finished() == [(0, 0)]
    led.settle(world.metadata, deletion, fresh=True)
    assert world.log.highest_remote_offset == -1
    world.metadata.catch_up()
    await deletion.delete(found)
    led.settle(world.metadata, deletion)
    assert world.log.highest_remote_offset == -1


def replace_id(one: RemoteLogSegmentMetadata, number: int) -> RemoteLogSegmentId:
    return RemoteLogSegmentId(one.partition, UUID(int=number + 1))


def test_another_brokers_copy_is_left_alone_for_a_while() -> None:
    """It may be the next leader's, or of the one before, who has not heard; its own is neither."""
    world = World()
    led = LedPartition(world.tiered())
    start = replace(segment(0, 9), state=STARTED, broker_id=2)
    before, own, later, going = (
        replace(one, segment_id=replace_id(one, number))
        for number, one in enumerate(
            [
                start,
                replace(start, broker_id=1),
                start,
                replace(start, state=SegmentState.DELETE_SEGMENT_STARTED),
            ]
        )
    )
    assert led.left_behind([before], 1, 0.0) == []
    there = [before, own, later, going]
    assert led.left_behind(there, 1, 5.0) == [own, going]
    assert led.left_behind(there, 1, 4.0 + NEXT_LEADER_MS) == [before, own, going]
    assert led.left_behind(there, 1, 5.0 + NEXT_LEADER_MS) == there


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("missing", [{0}, {1, 2}, {3}, {0, 2}])
async def test_what_others_have_removed_is_copied_again_from_the_local_log(
    missing: set[int], is_restarted: bool
) -> None:
    """The log start stays; local retention keeps what is missing; nothing is copied twice."""
    world = World()
    world.write(4)
    await world.start()
    await world.interval()
    for one in list(world.metadata.segments(PARTITION)):
        if one.start_offset not in missing:
            continue
        for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
            await world.metadata.update(RemoteLogSegmentMetadataUpdate(one.segment_id, 0, state, 2))
        for key in world.tier.keys.segment_keys(one):
            world.bucket.objects.pop(key, None)
    assert len(world.finished()) == 4 - len(missing)
    if is_restarted:
        await world.crash()
        await world.start()
    else:
        world.led.settle(world.metadata, world.manager._deletion)
        assert world.log.highest_remote_offset == min(missing) - 1
    world.log.update_config(world.config.model_copy(update={"local_retention_bytes": 0}))
    world.expire_local()
    assert (world.unreadable(), world.gaps()) == ([], [])
    await world.interval(3)
    assert world.log.log_start_offset == 0
    assert world.log.highest_remote_offset == 3
    assert world.finished() == [(0, 0), (1, 1), (2, 2), (3, 3)]
    world.check()
    assert (world.orphans(), world.missing()) == ([], [])
