"""From what options say of begin and end to offsets."""

import pytest

from pipeline.plan.errors import PlanError
from pipeline.read.read_errors import LostOffsetsError
from pipeline.source.data_loss import PlanLosses
from pipeline.source.options.offset_limits import (
    Earliest,
    GlobalTime,
    Latest,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimes,
)
from pipeline.source.partition_view import OffsetSpan, PartitionView
from pipeline.source.spans import (
    ending_offsets,
    spans_between,
    starting_offsets,
    within_view,
)
from tests.unit.pipeline.source.views import ONE, ZERO, bucket_view

VIEWS = {ZERO: bucket_view(ZERO, (10, 60, 500)), ONE: bucket_view(ONE, (0, 30, 300))}


async def at_time(view: PartitionView, time_ms: int) -> int | None:
    """Every record's time is its offset."""
    return max(view.start, time_ms) if time_ms < view.end else None


async def start(limit: OffsetLimit, *, or_latest: bool = False) -> list[int]:
    found = await starting_offsets(VIEWS, limit, at_time, latest_if_no_match=or_latest)
    return [found[ZERO], found[ONE]]


async def end(limit: OffsetLimit) -> list[int]:
    found = await ending_offsets(VIEWS, limit, at_time)
    return [found[ZERO], found[ONE]]


async def test_words_are_the_logs_borders() -> None:
    assert await start(Earliest()) == [10, 0]
    assert await end(Latest()) == [60, 30]


async def test_offsets_are_taken_as_they_are_but_for_minus_one_and_two() -> None:
    assert await start(SpecificOffsets({ZERO: -2, ONE: 5})) == [10, 5]
    assert await end(SpecificOffsets({ZERO: -1, ONE: 500})) == [60, 500]


async def test_every_partition_must_be_named() -> None:
    """One that is forgotten would be read from where nobody said."""
    with pytest.raises(PlanError, match=r"startingOffsets must name .* t-1 is missing"):
        await start(SpecificOffsets({ZERO: 1}))
    with pytest.raises(PlanError, match=r"endingOffsetsByTimestamp .* t-0 is missing"):
        await end(SpecificTimes({ONE: 1}))


async def test_times_are_first_offsets_of_that_time_or_later() -> None:
    assert await start(GlobalTime(20)) == [20, 20]
    assert await start(SpecificTimes({ZERO: 5, ONE: 7})) == [10, 7]


async def test_a_time_after_all_records_ends_at_the_end_and_begins_nowhere() -> None:
    """Unless the strategy says that it begins there too."""
    assert await end(GlobalTime(40)) == [40, 30]
    with pytest.raises(PlanError, match="no record of t-1 has the timestamp 40"):
        await start(GlobalTime(40))
    assert await start(GlobalTime(40), or_latest=True) == [40, 30]


async def test_a_record_that_came_after_the_view_is_no_end_of_it() -> None:
    """Nothing between the view and that record is lost."""

    async def later(view: PartitionView, time_ms: int) -> int | None:
        return view.end + time_ms

    by_time = SpecificTimes({ZERO: 7, ONE: 0})
    assert await ending_offsets(VIEWS, by_time, later) == {ZERO: 60, ONE: 30}
    found = await starting_offsets(VIEWS, by_time, later, latest_if_no_match=False)
    assert found == {ZERO: 67, ONE: 30}
    assert within_view(VIEWS, by_time, found) == {ZERO: 60, ONE: 30}
    assert within_view(VIEWS, SpecificOffsets(found), found) == found


def test_a_start_after_its_end_is_told() -> None:
    with pytest.raises(PlanError, match="start offset 20 of t-0 is after its end offset 15"):
        spans_between(VIEWS, {ZERO: 20, ONE: 0}, {ZERO: 15, ONE: 0}, PlanLosses(fail=True))


def test_a_start_beyond_the_log_is_a_loss() -> None:
    """Somebody has read offsets that are not there any more."""
    starting, ending = {ZERO: 70, ONE: 0}, {ZERO: 60, ONE: 30}
    with pytest.raises(LostOffsetsError, match=r"offsets 60 to 69 are lost.*ends at offset 60"):
        spans_between(VIEWS, starting, ending, PlanLosses(fail=True))
    losses = PlanLosses(fail=False)
    spans = spans_between(VIEWS, starting, ending, losses)
    assert spans == {ZERO: OffsetSpan(60, 60), ONE: OffsetSpan(0, 30)}
    assert len(losses.sentences) == 1
