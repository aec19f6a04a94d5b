"""Jobs in one thread or in a few."""

import threading
from functools import partial

import pytest

from storage.manager.log_jobs import CLOSING_THREADS, run_in_threads, run_one_by_one


def test_one_by_one_is_in_order_and_here() -> None:
    done: list[tuple[int, int]] = []

    def note(number: int) -> None:
        done.append((number, threading.get_ident()))

    run_one_by_one([partial(note, number) for number in range(4)])
    assert done == [(n, threading.get_ident()) for n in range(4)]


def test_several_at_a_time() -> None:
    together = threading.Barrier(CLOSING_THREADS, timeout=30)
    run_in_threads([lambda: (together.wait(), None)[1]] * CLOSING_THREADS)


def test_what_one_raises_is_raised() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_in_threads([fail])
