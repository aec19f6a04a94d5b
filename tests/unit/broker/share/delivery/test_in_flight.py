"""Runs: cut, joined, and never on an arrow that the drawing does not have."""

import itertools

import pytest

from broker.share.delivery.in_flight import (
    LEGAL,
    IllegalStateError,
    InFlight,
    Lock,
    RecordState,
    Run,
    Transition,
)


def runs(*borders: tuple[int, int]) -> InFlight:
    flight = InFlight()
    for first, last in borders:
        flight.append(Run(first, last, RecordState.AVAILABLE, 0))
    return flight


def shown(found: "InFlight | list[Run]") -> list[tuple[int, int]]:
    return [(run.first, run.last) for run in found]


@pytest.mark.parametrize("arrow", list(itertools.product(RecordState, RecordState)))
def test_only_the_arrows_of_the_drawing(arrow: tuple[RecordState, RecordState]) -> None:
    run = Run(0, 1, arrow[0], 0)
    if arrow in LEGAL:
        run.change(arrow[1])
        assert run.state is arrow[1]
    else:
        with pytest.raises(IllegalStateError):
            run.change(arrow[1])


def test_nothing_happens_to_what_waits_for_a_write() -> None:
    run = Run(0, 1, RecordState.ACQUIRED, 1)
    run.begin(Transition(), RecordState.AVAILABLE)
    assert not run.is_available
    with pytest.raises(IllegalStateError):
        run.change(RecordState.ACQUIRED)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 9, [(0, 4), (7, 9)]),
        (5, 6, []),
        (3, 7, [(3, 4), (7, 7)]),
        (8, 8, [(8, 8)]),
        (9, 8, []),
        (10, 20, []),
    ],
)
def test_cut(first: int, last: int, expected: list[tuple[int, int]]) -> None:
    flight = runs((0, 4), (7, 9))
    assert shown(flight.cut(first, last)) == expected
    offsets = [at for run in flight for at in range(run.first, run.last + 1)]
    assert offsets == [0, 1, 2, 3, 4, 7, 8, 9]


def test_a_run_that_waits_is_cut_with_its_transition() -> None:
    flight = runs()
    run = Run(0, 9, RecordState.ACQUIRED, 1, member_id="a")
    flight.append(run)
    transition = Transition()
    run.begin(transition, RecordState.ACKNOWLEDGED)
    flight.cut(3, 5)
    for part in transition.runs:
        part.roll_back(5)
    assert [(r.first, r.last, r.state, r.member_id) for r in flight] == [
        (0, 2, RecordState.ACQUIRED, "a"),
        (3, 5, RecordState.ACQUIRED, "a"),
        (6, 9, RecordState.ACQUIRED, "a"),
    ]


def test_a_lock_lives_as_long_as_its_runs() -> None:
    class Handle:
        cancelled = False

        def cancel(self) -> None:
            self.cancelled = True

    flight = runs((0, 9))
    lock, handle = Lock(0, 9), Handle()
    lock.handle = handle
    flight.first.hold(lock)
    parts = flight.cut(3, 5)
    assert lock.runs == 3
    for run in list(flight):
        assert not handle.cancelled
        run.hold(None)
    assert handle.cancelled
    assert len(parts) == 1


def test_what_is_alike_is_joined_again() -> None:
    flight = runs((0, 99))
    for at in range(0, 100, 2):
        flight.cut(at, at)
    assert len(flight) == 100
    flight.tidy()
    assert shown(flight) == [(0, 99)]


def test_dropped() -> None:
    flight = runs((0, 4), (7, 9))
    assert shown(flight.drop_below(3)) == [(0, 2)]
    assert not flight.drop_done()
    flight.first.change(RecordState.ARCHIVED)
    assert flight.drop_done()
    assert shown(flight) == [(7, 9)]


def test_cut_at_each_border() -> None:
    flight = runs((0, 9), (10, 19), (30, 39))
    found = flight.cut_each([2, 3, 10, 12, 35, 36])
    assert shown(found) == [(2, 2), (3, 9), (10, 11), (12, 19), (30, 34), (35, 35)]
    assert shown(flight) == [(0, 1), *shown(found), (36, 39)]
