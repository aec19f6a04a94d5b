"""Where a table begins that has nothing of its topic."""

from uuid import UUID

import pytest

from pipeline.lake.batch.first_offsets import FirstOffsets
from pipeline.lake.errors import LostOffsetsError, StartError
from pipeline.lake.settings.start import Start, StartTimes
from tests.fakes.lake.numbers_log import HOUR_MS, FakeLog

LOG = {0: (0, 20), 1: (5, 30)}


def first(start: Start, *, fail: bool = True, log: FakeLog | None = None) -> dict[int, int]:
    log = log or FakeLog(LOG)
    return dict(FirstOffsets(start, log, fail_on_data_loss=fail).of(log.view()))


def test_words_are_ends_of_the_log() -> None:
    assert first("earliest") == {0: 0, 1: 5}
    assert first("latest") == {0: 20, 1: 30}


def test_a_partition_that_is_not_named_begins_at_the_earliest() -> None:
    assert first({0: 12}) == {0: 12, 1: 5}
    assert first(StartTimes(None, {1: 7 * HOUR_MS})) == {0: 0, 1: 7}


def test_an_offset_may_be_the_end_and_not_beyond() -> None:
    assert first({0: 20}) == {0: 20, 1: 5}
    with pytest.raises(StartError, match=r"orders-0 ends at offset 20, and source\.start says 21"):
        first({0: 21})


def test_an_offset_below_the_log_is_lost() -> None:
    """As for a table that was that far: nobody has these records any more."""
    with pytest.raises(LostOffsetsError, match="orders-1: offsets 2 to 4 are gone"):
        first({1: 2})
    assert first({1: 2}, fail=False) == {0: 0, 1: 5}


def test_a_time_is_the_first_record_of_it_or_later() -> None:
    assert first(StartTimes(7 * HOUR_MS)) == {0: 7, 1: 7}
    assert first(StartTimes(7 * HOUR_MS - 1)) == {0: 7, 1: 7}
    assert first(StartTimes(7 * HOUR_MS + 1)) == {0: 8, 1: 8}
    assert first(StartTimes(0)) == {0: 0, 1: 5}


def test_where_no_record_is_late_enough_it_is_told_or_begun_at_the_end() -> None:
    late = 25 * HOUR_MS
    with pytest.raises(StartError, match=rf"no record of orders-0 has the timestamp {late}"):
        first(StartTimes(late))
    assert first(StartTimes(late, latest_if_no_match=True)) == {0: 20, 1: 25}


def test_it_is_found_once() -> None:
    """What comes while nothing is committed is not skipped."""
    log = FakeLog({0: (0, 20)})
    offsets = FirstOffsets("latest", log)
    assert offsets.of(log.view()) == {0: 20}
    log.partitions = {0: (0, 30), 1: (3, 9)}
    assert offsets.of(log.view()) == {0: 20, 1: 3}
    log.partitions = {0: (25, 30), 1: (3, 9)}
    assert offsets.of(log.view()) == {0: 25, 1: 3}


def test_another_incarnation_is_looked_at_anew_unless_nothing_is_left_out() -> None:
    log = FakeLog({0: (0, 20)})
    offsets = FirstOffsets("latest", log)
    assert offsets.of(log.view()) == {0: 20}
    anew = FakeLog({0: (0, 4)}, topic_id=UUID(int=9))
    assert offsets.of(anew.view()) == {0: 4}
    offsets.forget(anew.view())
    assert offsets.of(anew.view()) == {0: 0}
