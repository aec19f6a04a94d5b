"""Every offset once, from the copy that is right, against a model that knows what was written.

The model: leaders one after the other, each of whom goes on from an offset that the one before had
reached (unclean: from further back), and copies parts of its log with ends of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.layout import FoundSegment, Gap, Layout, found, lay_out, newest_first
from tests.unit.storage.log.log_model import TOPIC_ID
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    TopicIdPartition,
)

PARTITION = TopicIdPartition(TOPIC_ID, "t", 0)


def segment(
    start: int, last: int, *epochs: tuple[int, int], number: int = 0, created_ms: int = 0
) -> FoundSegment:
    """Without epochs all of it is of epoch 0."""
    return found(
        RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(PARTITION, UUID(int=number or start * 1000 + last + 1)),
            start_offset=start,
            end_offset=last,
            max_timestamp_ms=0,
            broker_id=1,
            event_timestamp_ms=0,
            segment_size_bytes=100,
            segment_leader_epochs=tuple(SegmentEpoch(*entry) for entry in epochs or ((0, start),)),
        ),
        created_ms,
    )


def lay(
    *segments: FoundSegment,
    epochs: Sequence[tuple[int, int]] = ((0, 0),),
    log_start: int | None = None,
) -> Layout:
    newest, *others = newest_first(segments)
    return lay_out(newest, others, epochs, log_start)


def ranges(laid: Layout) -> list[tuple[int, int, int]]:
    """(start of the copy, rows from, rows up to)."""
    return [(one.metadata.start_offset, one.start_offset, one.end_offset) for one in laid.segments]


def test_each_is_cut_where_the_last_one_ended() -> None:
    laid = lay(segment(0, 99), segment(80, 149), segment(50, 120), segment(150, 160))
    assert ranges(laid) == [(0, 0, 100), (80, 100, 150), (150, 150, 161)]
    assert (laid.log_start_offset, laid.end_offset, laid.gaps) == (0, 161, ())
    assert laid.leader_epochs == ((0, 0),)


def test_the_highest_epoch_decides_and_foreign_histories_are_out() -> None:
    laid = lay(
        segment(0, 9),
        segment(10, 99, (1, 10)),
        segment(10, 29, (2, 10)),
        epochs=((0, 0), (2, 10)),
    )
    assert ranges(laid) == [(0, 0, 10), (10, 10, 30)]
    assert laid.end_offset == 30


def test_what_was_not_overwritten_of_a_copy_is_read() -> None:
    """A leader that was elected uncleanly does not copy anew what the last one has copied."""
    laid = lay(segment(0, 220), segment(180, 260, (3, 180)), epochs=((0, 0), (3, 180)))
    assert ranges(laid) == [(0, 0, 180), (180, 180, 261)]
    assert laid.gaps == ()
    assert laid.segments[0].metadata.end_offset == 220


def test_gaps_are_told_and_what_is_around_them_stays() -> None:
    laid = lay(segment(0, 9), segment(20, 29), segment(40, 49))
    assert ranges(laid) == [(0, 0, 10), (20, 20, 30), (40, 40, 50)]
    assert laid.gaps == (Gap(10, 20), Gap(30, 40))


def test_the_log_starts_where_the_newest_copy_says() -> None:
    """Its first epoch begins at the log start of that time."""
    laid = lay(segment(0, 9), segment(10, 19), segment(20, 29), epochs=((0, 15),))
    assert ranges(laid) == [(10, 15, 20), (20, 20, 30)]
    assert (laid.log_start_offset, laid.leader_epochs) == (15, ((0, 15),))


def test_a_told_log_start_counts() -> None:
    """Rows below it were deleted; what should follow on it and does not is missing."""
    laid = lay(segment(0, 9), segment(10, 19), log_start=12)
    assert ranges(laid) == [(10, 12, 20)]
    assert (laid.log_start_offset, laid.gaps) == (12, ())
    later = lay(segment(10, 19), log_start=5)
    assert (later.log_start_offset, later.gaps) == (5, (Gap(5, 10),))
    # Epochs that were stored with the copy begin where the log began then: 5 .. 9 had expired.
    behind = lay(segment(10, 19), epochs=((0, 10),), log_start=5)
    assert (behind.log_start_offset, behind.gaps) == (10, ())
    doubted = lay(segment(3, 6), segment(10, 19), epochs=((0, 10),), log_start=5)
    assert (doubted.log_start_offset, doubted.gaps) == (5, (Gap(5, 10),))
    removed = lay(segment(3, 4), segment(10, 19), epochs=((0, 10),), log_start=5)
    assert (removed.log_start_offset, removed.gaps) == (10, ())
    beyond = lay(segment(10, 19), log_start=25)
    assert (beyond.log_start_offset, beyond.end_offset, beyond.segments) == (25, 25, ())
    assert beyond.leader_epochs == ((0, 25),)


@dataclass
class World:
    """What was written in each epoch: the model's logs."""

    epochs: list[tuple[int, int]]
    """Of the last leader."""
    segments: list[FoundSegment]
    origins: dict[int, int]
    """Of the last leader's log: which epoch wrote an offset."""


@st.composite
def worlds(draw: st.DrawFn) -> World:
    epochs: list[tuple[int, int]] = []
    end = 0
    segments: list[FoundSegment] = []
    for epoch in range(0, draw(st.integers(1, 4)) * 2, 2):
        if epoch:
            # From where the new leader goes on: all, or what an unclean one had.
            end = draw(st.one_of(st.just(end), st.integers(0, end)))
        epochs = [entry for entry in epochs if entry[1] < end]
        epochs.append((epoch, end))
        end += draw(st.integers(1, 30))
        for _ in range(draw(st.integers(0, 4))):
            start = draw(st.integers(0, end - 1))
            last = draw(st.integers(start, end - 1))
            own = [entry for entry in epochs if start < entry[1] <= last]
            own.insert(0, ([e for e, at in epochs if at <= start][-1], start))
            segments.append(
                segment(start, last, *own, number=len(segments) + 1, created_ms=len(segments))
            )
    last = end - 1
    segments.append(segment(last, last, (epochs[-1][0], last), number=99, created_ms=99))
    origins: dict[int, int] = {}
    for at, (epoch, start) in enumerate(epochs):
        stop = epochs[at + 1][1] if at + 1 < len(epochs) else end
        origins |= dict.fromkeys(range(start, stop), epoch)
    return World(epochs, segments, origins)


@given(worlds(), st.one_of(st.none(), st.integers(0, 60)))
def test_every_offset_comes_once_and_from_the_right_history(
    world: World, log_start: int | None
) -> None:
    newest, *others = newest_first(world.segments)
    laid = lay_out(newest, others, world.epochs, log_start)
    end = max(world.origins) + 1
    given_rows: list[int] = []
    for one in laid.segments:
        metadata = one.metadata
        assert metadata.start_offset <= one.start_offset < one.end_offset
        assert one.end_offset <= metadata.end_offset + 1
        for offset in range(one.start_offset, one.end_offset):
            (*_, epoch) = [e for e, at in metadata.segment_leader_epochs if at <= offset]
            assert epoch == world.origins[offset], "the wrong copy"
            given_rows.append(offset)
    assert given_rows == sorted(set(given_rows)), "an offset came twice"
    # Whatever any copy has of this history is read.
    there = set()
    for copy in world.segments:
        own = copy.metadata.segment_leader_epochs
        for offset in range(copy.metadata.start_offset, copy.metadata.end_offset + 1):
            if offset < end and [e for e, at in own if at <= offset][-1] == world.origins[offset]:
                there.add(offset)
    start = min(there) if log_start is None else log_start
    assert set(given_rows) == {offset for offset in there if offset >= start}
    missing = {offset for gap in laid.gaps for offset in range(gap.start, gap.end)}
    assert missing == set(range(start, end)) - set(given_rows)
    assert (laid.log_start_offset, laid.end_offset) == (start, max(end, start))
