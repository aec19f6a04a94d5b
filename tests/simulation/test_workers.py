"""Runs in processes of their own come back in order, as they would one after the other."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.simulation.run import run
from tests.simulation.shape import Shape
from tests.simulation.workers import FORK, in_order

ONE = Shape(brokers=1, replicas=1, min_in_sync=1)


def trace_and_process(seed: int) -> tuple[int, int]:
    return run(seed, 2, shape=ONE, plan=[], collects=False).trace, os.getpid()


def test_outcomes_come_in_the_order_of_their_jobs_each_from_a_process_of_its_own() -> None:
    found = list(in_order(2, iter([(seed,) for seed in (3, 1, 2)]), trace_and_process))
    assert [trace for trace, _ in found] == [
        run(seed, 2, shape=ONE, plan=[]).trace for seed in (3, 1, 2)
    ]
    assert len({process for _, process in found} | {os.getpid()}) == 4


def test_no_more_jobs_are_taken_than_workers_can_do() -> None:
    taken: list[int] = []

    def jobs() -> Iterator[tuple[int]]:
        for number in range(100):
            taken.append(number)
            yield (number,)

    outcomes = in_order(2, jobs(), abs)
    assert next(outcomes) == 0
    assert len(taken) == 3
    outcomes.close()


def sleep_if(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def test_processes_that_nobody_waits_for_are_gone_at_once() -> None:
    """Also where they came from one that handles SIGTERM, which they then do, too."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        outcomes = in_order(3, iter([(0.0,), (600.0,), (600.0,), (600.0,)]), sleep_if)
        next(outcomes)
        outcomes.close()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not FORK.active_children()


def refuse(number: int) -> int:
    raise ValueError(f"{number} is refused")


def test_what_is_raised_in_a_process_is_raised_here() -> None:
    """With the traceback that it had there."""
    with pytest.raises(ValueError, match="7 is refused") as raised:
        list(in_order(2, iter([(7,)]), refuse))
    assert "in refuse" in raised.value.__notes__[0]
    assert not FORK.active_children()


def fail() -> None:
    os._exit(3)


def test_a_process_that_ends_without_an_outcome_is_told() -> None:
    """And the others are ended."""
    with pytest.raises(EOFError):
        list(in_order(2, iter([(), ()]), fail))
    assert not FORK.active_children()
