"""What goes out together of records that were given back."""

import pytest

from broker.share.delivery.in_flight import InFlight, RecordState, Run
from broker.share.delivery.redelivery import Redelivery


def flight_of(*runs: tuple[int, int, int, int]) -> InFlight:
    """Available runs: first, last, how often they went out, first offset of their batch."""
    flight = InFlight()
    for first, last, count, batch_first in runs:
        run = Run(first, last, RecordState.AVAILABLE, count)
        run.batch_first, run.batch_size = batch_first, 16
        flight.append(run)
    return flight


def taken(
    flight: InFlight, limit: int, *, is_exact: bool = False, max_deliveries: int = 8
) -> tuple[list[tuple[int, int]], int, bool]:
    runs: list[Run] = []
    left, stop = Redelivery(flight, max_deliveries).take(
        runs, 0, 99, limit, lambda offset: offset | 7, is_exact
    )
    return [(run.first, run.last) for run in runs], left, stop


def test_all_of_a_batch_whatever_was_asked_for() -> None:
    flight = flight_of((0, 2, 1, 0), (6, 9, 2, 0), (16, 20, 1, 16))
    assert taken(flight, 1) == ([(0, 2), (6, 9)], -6, False)
    assert taken(flight, 8) == ([(0, 2), (6, 9), (16, 20)], -4, False)


def test_not_one_more_when_it_shall_be_exact() -> None:
    flight = flight_of((0, 2, 1, 0), (6, 9, 2, 0), (16, 20, 1, 16))
    assert taken(flight, 5, is_exact=True) == ([(0, 2), (6, 7)], 0, False)


def test_what_nobody_has_had_goes_by_the_logs_batches() -> None:
    flight = flight_of((0, 30, 0, 0))
    assert taken(flight, 3) == ([(0, 7)], -5, False)


@pytest.mark.parametrize(("count", "records"), [(3, 16), (4, 8), (5, 4), (6, 2), (7, 1)])
def test_ever_smaller_company(count: int, records: int) -> None:
    """With eight deliveries at the most."""
    flight = flight_of((0, 15, count, 0), (16, 31, 1, 16))
    found, _, stop = taken(flight, 100)
    assert found[0] == (0, records - 1)
    assert stop == (count >= 4)
    assert len(found) == (1 if stop else 2)


def test_who_goes_out_in_small_company_waits_for_the_others() -> None:
    flight = flight_of((0, 3, 1, 0), (16, 31, 5, 16))
    assert taken(flight, 100) == ([(0, 3)], 96, True)


def test_a_last_chance_waits_for_those_before_it_in_its_batch() -> None:
    flight = flight_of((0, 1, 5, 0), (2, 3, 7, 0))
    assert taken(flight, 100)[0] == [(0, 1)]
