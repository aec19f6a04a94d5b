import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.errors import DamagedBucketError, OptionsError
from pipeline.plan.layout import Gap, LaidSegment
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import PartitionName
from tests.unit.pipeline.plan.test_layout import segment
from tests.unit.storage.log.log_model import TOPIC_ID

NAME = PartitionName("t", TOPIC_ID, 0)


def log_of(*ranges: tuple[int, int], start: int = 0, end: int = 100) -> PartitionLog:
    laid = [LaidSegment(segment(first, stop - 1).metadata, first, stop) for first, stop in ranges]
    bounds = [start, *(offset for one in ranges for offset in one), end]
    gaps = [Gap(a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=True) if a < b]
    return PartitionLog(NAME, start, end, end, ((0, 0),), tuple(laid), tuple(gaps))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 100, [(10, 20), (30, 40), (40, 90)]),
        (19, 31, [(10, 20), (30, 40)]),
        (20, 30, []),
        (39, 40, [(30, 40)]),
        (40, 41, [(40, 90)]),
        (95, 100, []),
    ],
)
def test_segments_of_a_range(start: int, end: int, expected: list[tuple[int, int]]) -> None:
    log = log_of((10, 20), (30, 40), (40, 90))
    found = [(one.start_offset, one.end_offset) for one in log.segments_of(start, end)]
    assert found == expected


def test_what_is_missing_of_a_range_is_told() -> None:
    """Gaps, and what is outside of the log."""
    log = log_of((10, 20), (30, 90), start=10, end=90)
    assert log.missing(0, 100) == [Gap(0, 10), Gap(20, 30), Gap(90, 100)]
    assert log.missing(10, 20) == []
    assert log.missing(15, 25) == [Gap(20, 25)]
    assert log.missing(25, 26) == [Gap(25, 26)]
    assert log.missing(95, 97) == [Gap(95, 97)]
    assert log.missing(0, 5) == [Gap(0, 5)]
    assert log.missing(5, 5) == []


@given(st.integers(0, 110), st.integers(0, 110))
def test_every_offset_of_a_range_is_given_or_missing(start: int, end: int) -> None:
    log = log_of((10, 20), (30, 40), (40, 80), start=10, end=80)
    given_rows = {
        offset
        for one in log.segments_of(start, end)
        for offset in range(max(start, one.start_offset), min(end, one.end_offset))
    }
    missing = [offset for gap in log.missing(start, end) for offset in range(gap.start, gap.end)]
    assert len(missing) == len(set(missing))
    assert given_rows | set(missing) == set(range(start, end))
    assert not given_rows & set(missing)


def test_where_rows_end_depends_on_the_level() -> None:
    log = log_of((0, 100))._replace(stable_end_offset=70)
    assert (log.end(read_committed=True), log.end(read_committed=False)) == (70, 100)


def test_errors_cross_between_processes() -> None:
    damaged = pickle.loads(pickle.dumps(DamagedBucketError("a/b.log", 7, "fails its CRC")))
    assert (damaged.key, damaged.position, damaged.problem) == ("a/b.log", 7, "fails its CRC")
    assert str(damaged) == "a/b.log at byte 7: fails its CRC"
    mistakes = OptionsError(["one", "two"])
    assert str(mistakes) == "one; two"
