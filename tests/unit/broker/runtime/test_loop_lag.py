"""Lag is how late a timer comes, beyond what a timer may be late by design."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.runtime.loop_lag import BOUNDS_S, PERIOD_MS, TIMER_RESOLUTION_MS, LoopLag
from tests.fakes.timer import ManualTimer


class LateTimer(ManualTimer):
    """Calls back `late_ms` after it was due, as a busy loop does."""

    late_ms = 0.0

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> Any:
        return super().call_later_ms(delay_ms + self.late_ms, callback)


@pytest.fixture
def timer() -> LateTimer:
    return LateTimer()


def test_a_prompt_loop_has_no_lag(timer: LateTimer) -> None:
    """Lateness within the timer's resolution does not count."""
    timer.late_ms = TIMER_RESOLUTION_MS
    lag = LoopLag(timer, timer.clock)
    lag.start()
    timer.advance(10 * (PERIOD_MS + TIMER_RESOLUTION_MS))
    assert lag.counts[0] == sum(lag.counts) == 10
    assert (lag.total_s, lag.max_ms) == (0.0, 0.0)


@pytest.mark.parametrize(("late_ms", "bound_s"), [(0.5, 0.001), (1, 0.001), (30, 0.05), (900, 1.0)])
def test_lag_goes_into_its_bucket(timer: LateTimer, late_ms: float, bound_s: float) -> None:
    timer.late_ms = TIMER_RESOLUTION_MS + late_ms
    lag = LoopLag(timer, timer.clock)
    lag.start()
    timer.advance(PERIOD_MS + timer.late_ms)
    assert lag.counts[BOUNDS_S.index(bound_s)] == sum(lag.counts) == 1
    assert lag.max_ms == pytest.approx(late_ms)
    assert lag.total_s == pytest.approx(late_ms / 1000)


def test_the_worst_is_kept_and_all_are_counted(timer: LateTimer) -> None:
    """A stall above all bounds has a bucket too."""
    lag = LoopLag(timer, timer.clock)
    timer.late_ms = 60_000 + TIMER_RESOLUTION_MS
    lag.start()
    timer.late_ms = 0
    timer.advance(60_000 + TIMER_RESOLUTION_MS + PERIOD_MS)
    assert lag.counts[-1] == 1
    timer.advance(PERIOD_MS)
    assert lag.counts[0] == 1
    assert lag.max_ms == pytest.approx(60_000)


def test_stop_ends_it(timer: LateTimer) -> None:
    lag = LoopLag(timer, timer.clock)
    lag.start()
    timer.advance(PERIOD_MS)
    lag.stop()
    timer.advance(10 * PERIOD_MS)
    assert sum(lag.counts) == 1
    assert timer.pending == 0
