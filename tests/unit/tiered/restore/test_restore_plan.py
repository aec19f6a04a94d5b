"""Which segments of a bucket are a partition's history, and from where to where."""

from array import array
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.tiered.manifest_bucket import ManifestBucket
from tiered.format.chunk_index import FixedChunkIndex
from tiered.format.manifest import SegmentManifest
from tiered.restore.restore_plan import Gap, PartitionPlan, newest_first, plan_partition
from tiered.tier import TopicFacts

BUCKET = ManifestBucket()


def segment(
    start: int,
    last: int,
    *epochs: tuple[int, int],
    created_ms: int = 0,
    empty_from: int | None = None,
) -> SegmentManifest:
    """A manifest; without epochs all of it is of epoch 0."""
    metadata = BUCKET.add("t", 0, start, last, epochs=epochs or None)
    return SegmentManifest(
        metadata,
        FixedChunkIndex(1000, 1000, 1000, 1000),
        array("I", [1]),
        array("I", [1]),
        {},
        compression=False,
        encryption=None,
        topic=TopicFacts(1, {}, "c"),
        created_ms=created_ms,
        software="",
        empty_from=empty_from,
    )


def plan(
    *segments: SegmentManifest,
    epochs: Sequence[tuple[int, int]] = ((0, 0),),
    allow_gaps: bool = False,
    copied_from: int | None = None,
) -> PartitionPlan[SegmentManifest]:
    newest, *others = newest_first(segments)
    return plan_partition(
        newest,
        others,
        epochs,
        allow_gaps=allow_gaps,
        copied_from=copied_from,
        empty_from=lambda one: one.empty_from,
    )


def ranges(planned: PartitionPlan[SegmentManifest]) -> list[tuple[int, int]]:
    return [(s.metadata.start_offset, s.metadata.end_offset) for s in planned.segments]


def reasons(planned: PartitionPlan[SegmentManifest]) -> dict[int, str]:
    return {one.segment.start_offset: one.reason for one in planned.left_out}


def test_segments_side_by_side_are_all_of_it() -> None:
    """In any order; the next record follows the last."""
    planned = plan(segment(10, 19), segment(0, 9), segment(20, 25))
    assert ranges(planned) == [(0, 9), (10, 19), (20, 25)]
    assert (planned.log_start_offset, planned.end_offset) == (0, 26)
    assert (planned.gaps, planned.left_out, planned.size_bytes) == ((), (), 3000)
    assert planned.leader_epochs == ((0, 0),)
    assert str(planned.partition) == "t-0"


def test_what_compaction_had_emptied_is_no_gap() -> None:
    """Empty segments are not copied; the copy behind them says so. The rest of a gap is one."""
    planned = plan(segment(0, 9), segment(40, 49, empty_from=10), segment(50, 59))
    assert ranges(planned) == [(0, 9), (40, 49), (50, 59)]
    assert (planned.log_start_offset, planned.gaps) == (0, ())
    partly = plan(segment(0, 9), segment(40, 49, empty_from=30))
    assert (partly.log_start_offset, partly.gaps) == (40, (Gap(10, 30),))
    assert ranges(partly) == [(40, 49)]


def test_a_beginning_that_is_known_and_not_there_is_a_gap() -> None:
    """Without a history nobody knows; what compaction had emptied is none."""
    assert plan(segment(20, 29)).gaps == ()
    planned = plan(segment(20, 29), segment(30, 39), copied_from=5)
    assert (planned.log_start_offset, planned.gaps) == (20, (Gap(5, 20),))
    assert ranges(planned) == [(20, 29), (30, 39)]
    assert plan(segment(20, 29, empty_from=0), copied_from=5).gaps == ()
    assert plan(segment(20, 29), copied_from=20).gaps == ()
    assert plan(segment(20, 29), epochs=((0, 20),), copied_from=5).gaps == ()


def test_the_highest_epoch_decides_not_the_longest_log() -> None:
    """An old leader may have copied what a new one has never seen."""
    planned = plan(
        segment(0, 9),
        segment(10, 99, (0, 10)),
        segment(10, 29, (2, 10)),
        epochs=((0, 0), (2, 10)),
    )
    assert ranges(planned) == [(0, 9), (10, 29)]
    assert planned.end_offset == 30
    assert [one.reason for one in planned.left_out] == ["of another history"]
    assert planned.leader_epochs == ((0, 0), (2, 10))


def test_overlapping_copies_are_resolved() -> None:
    """After a change of leader segments begin elsewhere; the furthest reaching are enough."""
    planned = plan(
        segment(0, 99),
        segment(80, 149),
        segment(50, 120),
        segment(150, 199, (2, 150)),
        epochs=((0, 0), (2, 150)),
    )
    assert ranges(planned) == [(0, 99), (80, 149), (150, 199)]
    assert reasons(planned) == {50: "superseded by another copy"}


def test_of_equal_copies_the_latest_is_taken() -> None:
    """The earlier one may be half deleted."""
    old, new = segment(0, 9, created_ms=1), segment(0, 9, created_ms=2)
    for order in ((old, new), (new, old)):
        planned = plan(*order)
        assert planned.segments == (new,)
        assert planned.newest is new
        assert [one.segment for one in planned.left_out] == [old.metadata]


def test_the_range_begins_after_the_last_gap() -> None:
    """Unless gaps are allowed; they are told in both cases."""
    segments = (segment(0, 9), segment(20, 29), segment(40, 49), segment(50, 59))
    planned = plan(*segments)
    assert ranges(planned) == [(40, 49), (50, 59)]
    assert planned.log_start_offset == 40
    assert planned.leader_epochs == ((0, 40),)
    assert planned.gaps == (Gap(10, 20), Gap(30, 40))
    assert reasons(planned) == {0: "before a gap", 20: "before a gap"}
    with_gaps = plan(*segments, allow_gaps=True)
    assert ranges(with_gaps) == [(0, 9), (20, 29), (40, 49), (50, 59)]
    assert with_gaps.log_start_offset == 0
    assert with_gaps.gaps == planned.gaps


def test_deleted_records_stay_deleted() -> None:
    """The log start of the last copy is known from its first epoch."""
    planned = plan(segment(0, 9), segment(10, 19), segment(20, 29), epochs=((0, 15),))
    assert ranges(planned) == [(10, 19), (20, 29)]
    assert planned.log_start_offset == 15
    assert planned.leader_epochs == ((0, 15),)
    assert reasons(planned) == {0: "below the log start offset"}


def test_epochs_begin_where_the_log_does() -> None:
    """Those before it are gone, the one it begins in begins there."""
    planned = plan(
        segment(10, 19, (1, 10), (3, 15)), epochs=((0, 0), (1, 5), (3, 15), (4, 20), (5, 30))
    )
    assert planned.leader_epochs == ((1, 10), (3, 15))


def test_an_epoch_that_wrote_nothing_does_not_decide() -> None:
    """It is listed in a segment, and begins at its end."""
    empty_end = segment(0, 9, (0, 0), (7, 10))
    later = segment(10, 19, (1, 10))
    real = replace(empty_end.metadata, segment_leader_epochs=((0, 0), (7, 0), (8, 0)))  # type: ignore[arg-type]  # pairs do
    assert newest_first([replace(empty_end, metadata=real), later])[0].metadata is real
    assert newest_first([segment(0, 9), later])[0] is later


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 15)), min_size=1, max_size=12),
    st.booleans(),
)
def test_what_is_restored_has_no_holes_but_those_told(
    pieces: list[tuple[int, int]], allow_gaps: bool
) -> None:
    """And nothing is lost of what lies after the last gap."""
    segments = [segment(start, start + length) for start, length in pieces]
    planned = plan(*segments, allow_gaps=allow_gaps)
    there = {
        offset
        for one in segments
        for offset in range(one.metadata.start_offset, one.metadata.end_offset + 1)
    }
    covered = {
        offset
        for one in planned.segments
        for offset in range(one.metadata.start_offset, one.metadata.end_offset + 1)
    }
    missing = set(range(min(there), max(there) + 1)) - there
    assert {o for gap in planned.gaps for o in range(gap.start, gap.end)} == missing
    assert planned.end_offset == max(there) + 1
    start = min(there) if allow_gaps else max(missing, default=min(there) - 1) + 1
    assert planned.log_start_offset == start
    assert covered == {offset for offset in there if offset >= start}
    taken = {one.metadata.segment_id for one in planned.segments}
    left = {one.segment.segment_id for one in planned.left_out}
    assert taken | left == {one.metadata.segment_id for one in segments}
    assert not taken & left
    starts = [one.metadata.start_offset for one in planned.segments]
    ends = [one.metadata.end_offset for one in planned.segments]
    assert starts == sorted(starts)
    assert ends == sorted(set(ends))
