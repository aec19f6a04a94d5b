"""Doubling, a maximum, and jitter."""

from storage.environment.randomness import SeededRandomness
from tiered.backoff import Backoff


def test_doubles_up_to_the_maximum_and_starts_over_after_success() -> None:
    backoff = Backoff(SeededRandomness(1), first_ms=500, max_ms=30_000, jitter=0.0)
    waits = [backoff.next_ms() for _ in range(8)]
    assert waits == [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
    assert backoff.failures == 8
    backoff.reset()
    assert (backoff.failures, backoff.next_ms()) == (0, 500)


def test_jitter_spreads_but_never_beyond_the_maximum() -> None:
    backoff = Backoff(SeededRandomness(2), first_ms=1000, max_ms=1100, jitter=0.2)
    first = set()
    for _ in range(200):
        backoff.reset()
        first.add(backoff.next_ms())
    assert min(first) >= 800
    assert max(first) == 1100
    assert len(first) > 50


def test_many_failures_do_not_overflow() -> None:
    backoff = Backoff(SeededRandomness(3), first_ms=1, max_ms=9, jitter=0.1)
    assert [backoff.next_ms() for _ in range(5000)][-1] == 9
