"""Who is silent, and when nobody is because this broker has not listened."""

from broker.replication.listening import TICKS, Listening

SILENCE_MS = 5_000.0


def ticked(until_ms: float, begin_ms: float = 0.0) -> Listening:
    """One that has gone round without a pause."""
    listening = Listening(SILENCE_MS)
    now_ms = begin_ms
    while now_ms <= until_ms:
        listening.tick(now_ms)
        now_ms += SILENCE_MS / TICKS
    return listening


def test_who_was_not_seen_for_too_long_is_silent() -> None:
    listening = ticked(10_000.0)
    assert not listening.is_silent(5_000.0, 10_000.0)
    assert listening.is_silent(4_999.0, 10_000.0)


def test_time_before_this_broker_listened_does_not_count() -> None:
    listening = ticked(12_500.0, begin_ms=7_500.0)
    assert not listening.is_silent(0.0, 12_500.0)
    assert listening.is_silent(0.0, 12_501.0)


def test_a_pause_of_this_broker_begins_the_time_anew() -> None:
    listening = ticked(10_000.0)
    # The first look after the pause comes before the tick, or after it.
    assert not listening.is_silent(0.0, 60_000.0)
    listening.tick(60_000.0)
    assert not listening.is_silent(0.0, 60_000.0)
    for step in range(1, TICKS + 1):
        listening.tick(60_000.0 + step * SILENCE_MS / TICKS)
    assert not listening.is_silent(0.0, 65_000.0)
    assert listening.is_silent(0.0, 65_001.0)


def test_ticks_that_are_a_little_late_are_no_pause() -> None:
    listening = Listening(SILENCE_MS)
    for step in range(20):
        listening.tick(step * 1.9 * SILENCE_MS / TICKS)
    assert listening.is_silent(0.0, 19 * 1.9 * SILENCE_MS / TICKS)


def test_without_a_limit_nobody_is_silent() -> None:
    listening = Listening()
    listening.tick(0.0)
    assert not listening.is_silent(float("-inf"), 1e12)
