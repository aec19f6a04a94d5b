import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.piece import AbortedRange
from pipeline.read.broker.fetched_aborts import aborted_ranges
from protocol.errors import DecodeError
from protocol.records.builder import build_batch

FOREVER = (1 << 63) - 1


def log(*batches: tuple[int, int, bool]) -> memoryview:
    """(base offset, producer, is a marker) back to back."""
    return memoryview(
        b"".join(
            build_batch(
                [(b"\0\0\0\0", b"\0\0\0\0\0\0", (), 0)],
                base_offset=offset,
                producer_id=producer_id,
                transactional=producer_id >= 0,
                control=is_marker,
            )
            for offset, producer_id, is_marker in batches
        )
    )


def test_a_transaction_ends_with_its_producers_next_marker() -> None:
    records = log((100, 7, False), (101, 8, False), (102, 8, True), (103, 7, True), (104, 7, False))
    assert aborted_ranges(records, [(7, 100)]) == [AbortedRange(7, 100, 103)]


def test_one_that_began_before_the_answer_ends_with_the_first_marker() -> None:
    records = log((100, 7, False), (101, 7, True), (102, 7, False), (103, 7, True))
    assert aborted_ranges(records, [(7, 3)]) == [AbortedRange(7, 3, 101)]


def test_one_whose_marker_has_not_come_goes_on_behind_the_answer() -> None:
    assert aborted_ranges(log((100, 7, False)), [(7, 100)]) == [AbortedRange(7, 100, FOREVER)]


def test_several_of_a_producer_leave_what_is_between_them() -> None:
    records = log((1, 7, False), (2, 7, True), (3, 7, False), (4, 7, True), (5, 7, False))
    assert aborted_ranges(records, [(7, 1), (7, 5), (7, 1)]) == [
        AbortedRange(7, 1, 2),
        AbortedRange(7, 5, FOREVER),
    ]


def test_nothing_aborted_is_nothing_looked_at() -> None:
    assert aborted_ranges(memoryview(b"no batches"), []) == ()
    with pytest.raises(DecodeError):
        aborted_ranges(memoryview(b"no batches"), [(7, 1)])


@given(
    outcomes=st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans()), min_size=1, max_size=12
    ),
    cut=st.integers(0, 30),
)
def test_batches_out_are_those_of_aborted_transactions(
    outcomes: list[tuple[int, int, bool]], cut: int
) -> None:
    """Each: producer, batches, whether it is aborted; looked at from any offset on."""
    batches: list[tuple[int, int, bool]] = []
    is_out: dict[int, bool] = {}
    aborted = []
    for producer_id, count, aborts in outcomes:
        first = len(batches)
        for _ in range(count):
            is_out[len(batches)] = aborts
            batches.append((len(batches), producer_id, False))
        if aborts:
            aborted.append((producer_id, first, len(batches)))
        batches.append((len(batches), producer_id, True))
    seen = [one for one in batches if one[0] >= cut]
    told = [(producer_id, first) for producer_id, first, last in aborted if last >= cut]
    ranges = aborted_ranges(log(*seen), told)
    for offset, producer_id, is_marker in seen:
        out = any(
            one.producer_id == producer_id and one.first_offset <= offset <= one.last_offset
            for one in ranges
        )
        if not is_marker:
            assert out == is_out[offset]
