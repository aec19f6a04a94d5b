"""The rate of background work."""

import pytest

from storage.environment.throttle import BREATH_MS, PIECE_MS, SLICE_BYTES, Throttle
from tests.fakes.clock import ManualClock


class Sleeper:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.slept: list[float] = []

    def sleep_ms(self, ms: float) -> None:
        self.slept.append(ms)
        self.clock.advance(ms)


def test_breathes_after_every_slice() -> None:
    """Without a rate too: the loop must get its turn."""
    sleeper = Sleeper()
    throttle = Throttle(sleeper.clock, sleeper.sleep_ms)
    for _ in range(8):
        throttle(SLICE_BYTES // 2)
    assert sleeper.slept == [BREATH_MS] * 4


def test_holds_the_rate() -> None:
    """10 MB at 1 MB/s take ten seconds, however the pieces are cut."""
    for piece in (1_000, 100_000, 1_000_000):
        sleeper = Sleeper()
        throttle = Throttle(sleeper.clock, sleeper.sleep_ms, 1_000_000.0)
        for _ in range(10_000_000 // piece):
            throttle(piece)
        assert 9_800 <= sleeper.clock.monotonic_ms() <= 10_200


def test_quiet_time_is_not_saved_up() -> None:
    """After an hour of nothing the rate still holds."""
    sleeper = Sleeper()
    throttle = Throttle(sleeper.clock, sleeper.sleep_ms, 1_000_000.0)
    sleeper.clock.advance(3_600_000)
    start = sleeper.clock.monotonic_ms()
    for _ in range(50):
        throttle(100_000)
    assert sleeper.clock.monotonic_ms() - start >= 4_700


def test_infinite_rate_is_none() -> None:
    """Kafka's default is the greatest double."""
    sleeper = Sleeper()
    throttle = Throttle(sleeper.clock, sleeper.sleep_ms, 1.7976931348623157e308)
    throttle(10**9)
    assert sleeper.slept == [BREATH_MS]


def test_the_rate_may_change() -> None:
    """0 is none at all."""
    sleeper = Sleeper()
    throttle = Throttle(sleeper.clock, sleeper.sleep_ms, 1_000_000.0)
    throttle(SLICE_BYTES)
    assert sleeper.slept.pop() > BREATH_MS
    throttle.set_rate(0)
    throttle(SLICE_BYTES)
    assert sleeper.slept.pop() == BREATH_MS


def test_long_sleeps_are_broken_off() -> None:
    """A batch of a megabyte at a kilobyte a second is a sleep of a quarter of an hour."""
    sleeper = Sleeper()
    throttle = Throttle(sleeper.clock, sleeper.sleep_ms, 1_000.0)

    def check() -> None:
        if len(sleeper.slept) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        throttle(1_000_000, check)
    assert sleeper.slept == [PIECE_MS] * 3


def test_a_sleep_ends_when_the_rate_is_raised() -> None:
    """Who raises it because compaction lags behind need not wait for what was owed before."""
    sleeper = Sleeper()
    throttle = Throttle(sleeper.clock, sleeper.sleep_ms, 1_000.0)

    def check() -> None:
        if len(sleeper.slept) == 2:
            throttle.set_rate(0)

    throttle(1_000_000, check)
    assert sleeper.slept == [PIECE_MS] * 3


@pytest.mark.parametrize("before", [0.0, 100_000_000.0])
def test_a_rate_that_is_set_later_is_that_of_what_comes(before: float) -> None:
    """Of what was done without one, or at a higher one, nothing is owed: work does not stand still.

    A gigabyte at 100 MB/s, then 1 MB/s: the next ten megabytes take ten seconds, not a quarter of
    an hour.
    """
    sleeper = Sleeper()
    throttle = Throttle(sleeper.clock, sleeper.sleep_ms, before)
    for _ in range(1_000):
        throttle(1_000_000)
    throttle.set_rate(1_000_000.0)
    start = sleeper.clock.monotonic_ms()
    for _ in range(100):
        throttle(100_000)
    assert 9_800 <= sleeper.clock.monotonic_ms() - start <= 10_200


def test_the_same_rate_again_changes_nothing() -> None:
    """What is owed stays owed, however often a run of the cleaner names its rate."""
    sleeper = Sleeper()
    throttle = Throttle(sleeper.clock, sleeper.sleep_ms, 1_000_000.0)
    for _ in range(100):
        throttle(50_000)
        throttle.set_rate(1_000_000.0)
    assert sleeper.clock.monotonic_ms() >= 4_800
