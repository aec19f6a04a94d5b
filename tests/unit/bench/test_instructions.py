"""Instructions of a process tree are counted, where the machine can."""

import os
from collections.abc import Iterator

import pytest

from bench import process
from bench.instructions import billions
from bench.process import cpu_seconds, measure_cost_by


@pytest.fixture
def meter() -> Iterator[None]:
    before = process._cost
    yield
    measure_cost_by(before)


def test_more_work_is_more_instructions() -> None:
    try:
        first = billions(os.getpid())
    except OSError as error:
        pytest.skip(str(error))
    sum(range(10_000))
    second = billions(os.getpid())
    sum(range(1_000_000))
    third = billions(os.getpid())
    if third:
        assert third - second > second - first > 0


def test_every_row_measures_by_what_was_chosen(meter: None) -> None:
    measure_cost_by(lambda pid: pid + 0.5)
    assert cpu_seconds(7) == 7.5
