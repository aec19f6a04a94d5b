"""What goes and why, without a log or a bucket."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiered.metadata.segment_builder import DELETING, FINISHED, STARTED, segment
from tiered.metadata.lineage import Lineage
from tiered.metadata.readable_bytes import ReadableBytes
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tasks.expiry_plan import ExpiryPlan, ExpiryReason, RetentionLimits, plan_expiry

KEEP_ALL = RetentionLimits(None, None)


def plan(
    segments: Sequence[RemoteLogSegmentMetadata],
    limits: RetentionLimits = KEEP_ALL,
    *,
    epochs: Sequence[tuple[int, int]] = ((0, 0),),
    end: int = 1000,
    log_start: int = 0,
    leader_epoch: int = 0,
    local: int = 0,
    in_flight: Sequence[RemoteLogSegmentMetadata] = (),
) -> ExpiryPlan:
    readable = ReadableBytes()
    lineage = Lineage(epochs, end)
    for found in segments:
        if found.state is FINISHED and lineage.contains(found):
            readable.bytes += found.segment_size_bytes
        elif found.state is FINISHED:
            readable.outside[found.id] = found
    return plan_expiry(
        segments,
        [found for found in segments if found.state is not FINISHED],
        lineage,
        limits,
        readable,
        log_start_offset=log_start,
        leader_epoch=leader_epoch,
        only_local_bytes=local,
        in_flight=in_flight,
    )


def starts(found: ExpiryPlan) -> list[int]:
    return [removed.start_offset for removed, _ in found.removals]


def test_by_time_up_to_the_first_survivor() -> None:
    segments = [
        segment(at * 10, at * 10 + 9, timestamp_ms=stamp)
        for at, stamp in enumerate([10, 20, 50, 5])
    ]
    found = plan(segments, RetentionLimits(20, None))
    assert starts(found) == [0, 10]
    assert found.log_start_offset == 20
    assert {reason for _, reason in found.removals} == {ExpiryReason.TIME}


def test_by_size_local_and_remote_together() -> None:
    """Without it the topic still has retention.bytes: one that would take it below stays."""
    segments = [segment(at * 10, at * 10 + 9) for at in range(4)]
    assert starts(plan(segments, RetentionLimits(None, 400))) == []
    assert starts(plan(segments, RetentionLimits(None, 400), local=99)) == []
    assert starts(plan(segments, RetentionLimits(None, 400), local=100)) == [0]
    assert starts(plan(segments, RetentionLimits(None, 0))) == [0, 10, 20, 30]


def test_what_time_has_taken_counts_for_size_too() -> None:
    segments = [segment(0, 9, timestamp_ms=1), segment(10, 19, timestamp_ms=99)]
    found = plan(segments, RetentionLimits(10, 100))
    assert starts(found) == [0]


def test_below_the_log_start() -> None:
    segments = [segment(at * 10, at * 10 + 9) for at in range(3)]
    found = plan(segments, log_start=20)
    assert starts(found) == [0, 10]
    assert found.log_start_offset is None
    assert starts(plan(segments, log_start=19)) == [0]


def test_overlapping_segments_outside_the_lineage_go_with_the_log_start() -> None:
    """KAFKA-16511: they used to stay for ever, whatever retention said."""
    wrong = segment(10, 30, {1: 10}, number=7)
    right = [segment(0, 14, {0: 0, 1: 10}), segment(15, 40, {2: 15})]
    epochs = ((0, 0), (1, 10), (2, 15))
    found = plan([right[0], wrong, right[1]], epochs=epochs, leader_epoch=2)
    assert (starts(found), found.unreferenced) == ([], 1)
    found = plan([wrong, right[1]], epochs=((2, 31),), log_start=31, leader_epoch=2)
    assert [removed.id for removed, _ in found.removals] == [wrong.id]


def test_unreferenced_epochs_above_the_log_start_are_kept_and_counted() -> None:
    """KAFKA-14888: an empty disk must not empty the bucket, nor retention.bytes."""
    history = [segment(at * 10, at * 10 + 9) for at in range(5)]
    found = plan(history, RetentionLimits(None, 0), epochs=((9, 0),), end=5, leader_epoch=9)
    assert (found.is_empty, found.unreferenced) == (True, 5)
    found = plan(history, RetentionLimits(None, 0), epochs=((9, 20),), log_start=20, leader_epoch=9)
    assert (starts(found), found.unreferenced) == ([0, 10], 3)


def test_a_replaced_leader_leaves_a_later_leaders_segments_alone() -> None:
    later = segment(0, 9, {5: 0})
    assert plan([later], log_start=50, leader_epoch=4).unreferenced == 1
    assert starts(plan([later], log_start=50, leader_epoch=5)) == [0]


def test_leftovers_and_unfinished_removals_do_not_wait() -> None:
    """KAFKA-17428: and what a copy owns is left alone."""
    left = segment(50, 59, state=STARTED)
    dying = segment(0, 9, state=DELETING)
    copied = segment(60, 69, state=STARTED)
    found = plan([dying, segment(10, 19), left, copied], in_flight=[copied])
    assert [s.id for s in found.leftovers] == [left.id]
    assert found.removals == [(dying, ExpiryReason.UNFINISHED)]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 100)), max_size=12),
    st.integers(0, 400),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_never_a_hole_and_never_below_the_limits(
    shapes: list[tuple[int, int]], keep_bytes: int, keep_after: int, local: int
) -> None:
    """What goes is a prefix, and time alone may leave less than retention.bytes."""
    segments = [
        segment(at * 10, at * 10 + 9, size=size, timestamp_ms=stamp)
        for at, (size, stamp) in enumerate(shapes)
    ]
    found = plan(segments, RetentionLimits(keep_after, keep_bytes), local=local)
    count = len(found.removals)
    assert starts(found) == [at * 10 for at in range(count)]
    assert found.log_start_offset == (count * 10 if count else None)
    left = sum(size for size, _ in shapes[count:]) + local
    if count and found.removals[-1][1] is ExpiryReason.SIZE:
        assert left >= keep_bytes
    assert all(
        stamp <= keep_after or reason is ExpiryReason.SIZE
        for (_, stamp), (_, reason) in zip(shapes, found.removals, strict=False)
    )
    if count < len(shapes):
        assert shapes[count][1] > keep_after
        assert left - shapes[count][0] < keep_bytes
