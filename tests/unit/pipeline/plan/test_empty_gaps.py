"""What compaction has left empty is no loss; what nobody tells of may be one."""

from itertools import pairwise

import pytest

from pipeline.plan.layout import Gap
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.log_cleaner_manager import measure
from tests.unit.pipeline.plan.bucket_world import BucketWorld, Replica
from tests.unit.storage.log.log_model import NOW_MS
from tiered.segment_metadata import RemoteLogSegmentMetadata

LARGE = 600_000
"""Two such records are too many for a segment: the cleaner leaves each an empty one of its own."""


def compacted(world: BucketWorld) -> Replica:
    """Records at 0 and from 6 on; the segments of 1 .. 5 are empty: all have one key."""
    leader = world.replica("a")
    leader.write(1, key=b"other")
    leader.roll()
    for _ in range(5):
        leader.write(1, size=LARGE)
        leader.roll()
    leader.write(2)
    leader.roll()
    leader.log.flusher.flush()
    chosen = measure(leader.log, 0, NOW_MS)
    Cleaner(world.disk, dedupe_buffer_bytes=1 << 16, read_bytes=1 << 12).clean(
        leader.log,
        first_dirty_offset=chosen.first_dirty_offset,
        first_uncleanable_offset=chosen.first_uncleanable_offset,
        now_ms=NOW_MS,
    )
    leader.log.flusher.flush()
    return leader


async def copied(
    world: BucketWorld, *, tells_of_empty: bool = True
) -> tuple[Replica, list[RemoteLogSegmentMetadata]]:
    leader = compacted(world)
    leader.write(1, key=b"third")
    leader.roll()
    segments = await world.copy(leader, tells_of_empty=tells_of_empty)
    return leader, segments


@pytest.mark.parametrize("with_history", [False, True])
async def test_segments_that_compaction_left_empty_are_no_gap(*, with_history: bool) -> None:
    world = BucketWorld()
    leader, segments = await copied(world)
    if with_history:
        world.write_history(leader, segments)
    log = await world.log()
    assert len(segments) > 1
    assert any(one.end_offset + 1 < two.start_offset for one, two in pairwise(segments)), (
        "there is nothing between two copies"
    )
    assert log.gaps == ()
    assert log.missing(0, log.end_offset) == []
    assert log.problems == []


async def test_a_segment_that_is_gone_is_missing_all_the_same() -> None:
    """Of what was copied once nobody says that it was empty."""
    world = BucketWorld()
    leader = world.replica("a")
    for _ in range(3):
        leader.write(4)
        leader.roll()
    first, second, _ = await world.copy(leader)
    world.remove(second)
    log = await world.log()
    assert log.gaps == (Gap(first.end_offset + 1, second.end_offset + 1),)


async def test_only_what_is_told_to_be_empty_is_no_loss() -> None:
    """The segment before the empty ones is lost, and stays missing."""
    world = BucketWorld()
    leader, segments = await copied(world)
    world.write_history(leader, segments)
    world.remove(segments[0])
    assert segments[0].start_offset == 0
    assert (await world.log()).gaps == (Gap(0, segments[0].end_offset + 1),)


async def test_a_manifest_that_tells_nothing_leaves_the_gap() -> None:
    """As those of earlier versions, and of other programs."""
    world = BucketWorld()
    _, (first, second, *_) = await copied(world, tells_of_empty=False)
    assert (await world.log()).gaps == (Gap(first.end_offset + 1, second.start_offset),)
