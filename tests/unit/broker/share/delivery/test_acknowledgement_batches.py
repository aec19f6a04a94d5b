"""Validation of acknowledgement batches: ranges checked in order, pieces matched with runs."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.share.delivery.acknowledgement_batches import (
    ACCEPT,
    REJECT,
    RELEASE,
    Acknowledgement,
    matched,
    validate_acknowledgements,
)
from broker.share.delivery.in_flight import InFlight, RecordState, Run
from protocol.error_codes import ErrorCode as E


def flight_of(*runs: tuple[int, int, str]) -> InFlight:
    """Runs that a member has, or nobody."""
    flight = InFlight()
    for first, last, member_id in runs:
        run = Run(first, last, RecordState.AVAILABLE, 1)
        if member_id:
            run.change(RecordState.ACQUIRED, member_id)
        flight.append(run)
    return flight


def batches(*ranges: tuple[int, int, Sequence[int]]) -> list[Acknowledgement]:
    return [Acknowledgement(*one) for one in ranges]


@pytest.mark.parametrize(
    ("ranges", "code"),
    [
        ([(2, 4, [ACCEPT])], E.NONE),
        ([(0, 9, [ACCEPT])], E.NONE),
        ([(0, 10, [ACCEPT])], E.INVALID_RECORD_STATE),
        ([(8, 30, [ACCEPT])], E.INVALID_REQUEST),
        ([(15, 16, [ACCEPT])], E.INVALID_REQUEST),
        ([(0, 3, [ACCEPT]), (3, 4, [ACCEPT])], E.INVALID_RECORD_STATE),
        ([(0, 3, [ACCEPT]), (20, 24, [ACCEPT])], E.NONE),
        ([(10, 12, [ACCEPT]), (40, 41, [ACCEPT])], E.INVALID_RECORD_STATE),
        ([(40, 41, [ACCEPT]), (10, 12, [ACCEPT])], E.INVALID_REQUEST),
    ],
)
def test_what_is_said_first_is_judged_first(
    ranges: list[tuple[int, int, list[int]]], code: E
) -> None:
    flight = flight_of((0, 9, "a"), (10, 14, "b"), (20, 24, "a"))
    found, pieces = validate_acknowledgements(flight, 0, "a", batches(*ranges))
    assert found is code
    assert bool(pieces) == (code is E.NONE)
    assert len(flight) == 3, "nothing is cut by looking"


def test_below_the_start_all_is_done() -> None:
    flight = flight_of((5, 9, "a"))
    assert validate_acknowledgements(flight, 5, "a", batches((0, 4, [ACCEPT]))) == (E.NONE, [])
    code, pieces = validate_acknowledgements(
        flight, 5, "a", batches((3, 6, [ACCEPT, ACCEPT, RELEASE, REJECT]))
    )
    assert code is E.NONE
    assert pieces == [(5, 5, RELEASE), (6, 6, REJECT)]


def test_holes_belong_to_nobody() -> None:
    flight = flight_of((0, 4, "a"), (8, 9, "a"))
    code, pieces = validate_acknowledgements(flight, 0, "a", batches((3, 8, [ACCEPT])))
    assert code is E.NONE
    assert [(k, r.first, r.last) for k, r in matched(flight, pieces)] == [
        (ACCEPT, 3, 4),
        (ACCEPT, 8, 8),
    ]


def test_nothing_said() -> None:
    flight = flight_of((0, 4, "a"))
    assert validate_acknowledgements(flight, 0, "a", []) == (E.NONE, [])
    assert matched(flight, []) == []


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=8),
    st.lists(st.sampled_from([ACCEPT, RELEASE, REJECT]), min_size=1, max_size=30),
    st.data(),
)
def test_every_record_gets_what_was_said_of_it(
    sizes: list[int], types: list[int], data: st.DataObject
) -> None:
    total = sum(sizes)
    types = (types * total)[:total]
    runs, at = [], 0
    for size in sizes:
        runs.append((at, at + size - 1, "a"))
        at += size
    flight = flight_of(*runs)
    borders = sorted(data.draw(st.sets(st.integers(0, total), min_size=2, max_size=6)))
    ranges = [
        (first, end - 1, types[first:end])
        for first, end in pairwise(borders)
        if data.draw(st.booleans())
    ]
    code, pieces = validate_acknowledgements(flight, 0, "a", batches(*ranges))
    assert code is E.NONE
    found = {o: k for k, run in matched(flight, pieces) for o in range(run.first, run.last + 1)}
    assert found == {o: types[o] for first, last, _ in ranges for o in range(first, last + 1)}
    assert [r.first for r in flight] == sorted(r.first for r in flight)
    assert sum(len(r) for r in flight) == total
