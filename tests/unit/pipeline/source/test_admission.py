"""How much a micro-batch takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.source.admission import (
    UNKNOWN_RECORD_BYTES,
    bytes_between,
    is_delayed,
    limited_by_bytes,
    limited_by_offsets,
)
from storage.types.topic_partition import TopicPartition
from tests.unit.pipeline.source.views import ONE, TWO, ZERO, broker_view, bucket_view, log_of


def test_a_limit_is_divided_in_proportion() -> None:
    """As by Spark's Kafka source."""
    start = {ZERO: 0, ONE: 100}
    assert limited_by_offsets(10, start, {ZERO: 80, ONE: 120}) == {ZERO: 8, ONE: 102}


def test_no_limit_is_reached_where_there_is_less() -> None:
    assert limited_by_offsets(100, {ZERO: 0}, {ZERO: 80}) == {ZERO: 80}


def test_small_partitions_do_not_starve() -> None:
    ends = limited_by_offsets(10, {ZERO: 0, ONE: 0}, {ZERO: 1_000_000, ONE: 1})
    assert ends[ONE] == 1


def test_partitions_without_rows_stay_and_those_that_went_back_too() -> None:
    ends = limited_by_offsets(1, {ZERO: 5, ONE: 9, TWO: 0}, {ZERO: 5, ONE: 7, TWO: 8})
    assert ends == {ZERO: 5, ONE: 7, TWO: 1}


@given(
    st.integers(1, 500),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 300)), min_size=1, max_size=6),
)
def test_a_limited_batch_goes_on_and_not_beyond(limit: int, sizes: list[tuple[int, int]]) -> None:
    """And takes no more than the limit, but for one offset of every small partition."""
    start = {TopicPartition("t", n): begin for n, (begin, _) in enumerate(sizes)}
    end = {TopicPartition("t", n): begin + size for n, (begin, size) in enumerate(sizes)}
    for ends in (
        limited_by_offsets(limit, start, end),
        limited_by_bytes(limit, {one: broker_view(one, 0, 1000) for one in start}, start, end),
    ):
        assert all(start[one] <= ends[one] <= end[one] for one in end)
        assert ends == end or sum(ends.values()) > sum(start.values())
    assert sum(limited_by_offsets(limit, start, end).values()) - sum(start.values()) <= limit + len(
        sizes
    )


def test_bytes_are_those_of_segments() -> None:
    log = log_of(ZERO, (0, 100, 1000), (100, 110, 5000))
    assert bytes_between(log, 0, 110, 7.0) == 6000
    assert bytes_between(log, 50, 100, 7.0) == 500
    assert bytes_between(log, 105, 110, 7.0) == 2500


def test_bytes_of_what_no_segment_has_are_estimated() -> None:
    log = log_of(ZERO, (0, 100, 1000))
    assert bytes_between(log, 90, 120, 7.0) == 100 + 20 * 7
    assert bytes_between(None, 0, 10, 7.0) == 70
    assert bytes_between(log, 10, 10, 7.0) == 0


def test_a_limit_of_bytes_ends_within_a_segment() -> None:
    views = {ZERO: bucket_view(ZERO, (0, 100, 1000), (100, 110, 5000))}
    assert limited_by_bytes(1500, views, {ZERO: 0}, {ZERO: 110}) == {ZERO: 101}
    assert limited_by_bytes(500, views, {ZERO: 0}, {ZERO: 110}) == {ZERO: 50}
    assert limited_by_bytes(6000, views, {ZERO: 0}, {ZERO: 110}) == {ZERO: 110}


def test_a_record_larger_than_the_limit_is_read_alone() -> None:
    """Otherwise the query would stand still."""
    views = {ZERO: bucket_view(ZERO, (0, 2, 1_000_000))}
    assert limited_by_bytes(10, views, {ZERO: 0}, {ZERO: 2}) == {ZERO: 1}


def test_bytes_are_divided_in_proportion_to_bytes() -> None:
    views = {
        ZERO: bucket_view(ZERO, (0, 100, 9000)),
        ONE: bucket_view(ONE, (0, 100, 1000)),
    }
    assert limited_by_bytes(1000, views, {ZERO: 0, ONE: 0}, {ZERO: 100, ONE: 100}) == {
        ZERO: 10,
        ONE: 10,
    }


def test_without_segments_records_have_an_assumed_size() -> None:
    views = {ZERO: broker_view(ZERO, 0, 100)}
    assert limited_by_bytes(5 * UNKNOWN_RECORD_BYTES, views, {ZERO: 0}, {ZERO: 100}) == {ZERO: 5}


@pytest.mark.parametrize(
    ("min_offsets", "waited_ms", "expected"),
    [(None, 0, False), (11, 0, True), (10, 0, False), (11, 100, False), (11, 99, True)],
)
def test_a_batch_waits_for_enough_but_not_for_ever(
    min_offsets: int | None, waited_ms: float, expected: bool
) -> None:
    assert is_delayed(min_offsets, {ZERO: 5}, {ZERO: 15}, waited_ms, 100) is expected
