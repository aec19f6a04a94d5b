"""Which segments are live, and which epochs lie between two offsets."""

import pytest

from tests.harness.history_world import copied
from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.errors import RemoteStorageNotReadyError
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentEpoch
from tiered.tasks.history_view import (
    capture,
    collecting_live,
    epochs_between,
    newest_of,
    signature_of,
    was_ever_copied,
)


def live_of(world: World) -> list[RemoteLogSegmentMetadata]:
    live: list[RemoteLogSegmentMetadata] = []
    steps = sum(1 for _ in collecting_live(capture(world.led, world.metadata), live))
    assert steps == len(world.metadata.segments(PARTITION))
    return live


async def test_what_is_below_the_log_start_or_going_is_not_live() -> None:
    world = await copied(4)
    assert [one.start_offset for one in live_of(world)] == [0, 1, 2, 3]
    world.log.delete_records(1)
    await world.manager._deletion.begin(world.metadata.segments(PARTITION)[3])
    assert [one.start_offset for one in live_of(world)] == [1, 2]


async def test_what_another_history_wrote_is_not_live() -> None:
    world = await copied(2)
    segment = world.metadata.segments(PARTITION)[0]
    other = segment.in_state(segment.state, 1, 1, None)
    object.__setattr__(other, "segment_leader_epochs", (SegmentEpoch(7, 0),))
    found = capture(world.led, world.metadata)._replace(segments=[other])
    live: list[RemoteLogSegmentMetadata] = []
    for _ in collecting_live(found, live):
        pass
    assert live == []


async def test_what_was_captured_does_not_change() -> None:
    world = await copied(3)
    captured = capture(world.led, world.metadata)
    world.log.delete_records(3)
    await world.interval(2)
    live: list[RemoteLogSegmentMetadata] = []
    for _ in collecting_live(captured, live):
        pass
    assert [one.start_offset for one in live] == [0, 1, 2]
    assert world.metadata.segments(PARTITION) == []


async def test_a_signature_changes_with_segments_log_start_and_epochs() -> None:
    world = await copied(2)
    seen = {signature_of(world.led, world.metadata)}
    world.log.delete_records(1)
    seen.add(signature_of(world.led, world.metadata))
    world.leader_epoch = 3
    world.write(1)
    seen.add(signature_of(world.led, world.metadata))
    await world.interval(2)
    seen.add(signature_of(world.led, world.metadata))
    assert len(seen) == 4
    assert signature_of(world.led, world.metadata) in seen


async def test_that_something_was_copied_is_remembered_when_it_is_gone() -> None:
    world = World()
    await world.start()
    assert not was_ever_copied(world.led, world.metadata)
    world.write(1)
    await world.interval()
    assert was_ever_copied(world.led, world.metadata)
    world.log.delete_records(1)
    await world.interval(2)
    assert world.metadata.segments(PARTITION) == []
    assert was_ever_copied(world.led, world.metadata)


async def test_metadata_that_is_not_there_yet_says_nothing() -> None:
    world = await copied(1)
    led = world.led
    world.metadata.hidden.add(PARTITION)
    for look in (signature_of, capture, was_ever_copied):
        with pytest.raises(RemoteStorageNotReadyError):
            look(led, world.metadata)


def test_the_newest_is_the_one_that_ends_last() -> None:
    assert newest_of([]) is None


@pytest.mark.parametrize(
    ("entries", "start", "end", "expected"),
    [
        ([], 0, 10, ()),
        ([(0, 0)], 0, 10, ((0, 0),)),
        ([(0, 0)], 4, 10, ((0, 4),)),
        ([(0, 0), (1, 5), (2, 10)], 4, 10, ((0, 4), (1, 5))),
        ([(0, 0), (1, 5), (2, 10)], 5, 11, ((1, 5), (2, 10))),
        ([(0, 0), (1, 5)], 7, 7, ()),
        ([(3, 8)], 4, 10, ((3, 8),)),
    ],
)
def test_epochs_between_two_offsets(
    entries: list[tuple[int, int]],
    start: int,
    end: int,
    expected: tuple[tuple[int, int], ...],
) -> None:
    assert epochs_between(entries, start, end) == expected
