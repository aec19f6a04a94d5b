"""Where a read begins and ends."""

import pytest

from pipeline.source.options.offset_limits import (
    Earliest,
    GlobalTime,
    Latest,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimes,
    batch_mistakes,
    parse_limit,
)
from storage.types.topic_partition import TopicPartition

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def test_words_are_read_without_regard_to_case() -> None:
    assert parse_limit(" Earliest ") == Earliest()
    assert parse_limit("LATEST") == Latest()
    assert parse_limit('{"t":{"0":-2}}') == SpecificOffsets({ZERO: -2})
    with pytest.raises(ValueError, match="neither earliest nor latest nor JSON"):
        parse_limit("newest")


@pytest.mark.parametrize(
    ("starting", "ending", "mistake"),
    [
        (Latest(), Latest(), "startingOffsets cannot be latest"),
        (Earliest(), Earliest(), "endingOffsets cannot be earliest"),
        (SpecificOffsets({ZERO: -1}), Latest(), "startingOffsets for t-0 cannot be -1"),
        (Earliest(), SpecificOffsets({ZERO: -2}), "endingOffsets for t-0 cannot be -2"),
        (SpecificOffsets({ZERO: 5}), SpecificOffsets({ZERO: 4}), "5 is after 4 for t-0"),
        (SpecificOffsets({ZERO: 5}), SpecificOffsets({ONE: 6}), "only one of them names t-0, t-1"),
        (SpecificTimes({ZERO: 5}), SpecificTimes({ZERO: 4}), "5 is after 4 for t-0"),
        (GlobalTime(5), GlobalTime(4), "startingTimestamp 5 is after endingTimestamp 4"),
    ],
)
def test_what_a_batch_query_cannot_be_asked(
    starting: OffsetLimit, ending: OffsetLimit, mistake: str
) -> None:
    [said] = batch_mistakes(starting, ending)
    assert mistake in said


@pytest.mark.parametrize(
    ("starting", "ending"),
    [
        (Earliest(), Latest()),
        (SpecificOffsets({ZERO: -2}), SpecificOffsets({ZERO: -1})),
        (SpecificOffsets({ZERO: 7}), SpecificOffsets({ZERO: -1})),
        (SpecificOffsets({ZERO: 7}), SpecificOffsets({ZERO: 7})),
        (GlobalTime(4), GlobalTime(4)),
        (GlobalTime(9), SpecificOffsets({ZERO: 7})),
    ],
)
def test_what_may_be_asked(starting: OffsetLimit, ending: OffsetLimit) -> None:
    """-1 and -2 stand for offsets nobody knows yet."""
    assert batch_mistakes(starting, ending) == []
