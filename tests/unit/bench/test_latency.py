"""Only what the machine did to the generator is left out, never what the broker did."""

from bench.latency import SETTLING_S, undisturbed


def test_records_that_met_a_standstill_are_left_out() -> None:
    """Under way when it began, due in it, or due while its backlog drains."""
    stall = (10.0, 10.1)
    due = [9.0, 9.99, 10.05, 10.1 + SETTLING_S / 2, 10.2]
    done = [9.1, 10.12, 10.15, 10.16, 10.3]
    assert undisturbed(due, done, [stall]) == [0, 4]


def test_slow_broker_stays_in() -> None:
    """A record that took a second counts when the generator was awake all the time."""
    assert undisturbed([1.0, 1.1], [2.0, 2.0], []) == [0, 1]
    assert undisturbed([1.0, 1.1], [2.0, 2.0], [(0.1, 0.2), (2.5, 2.6)]) == [0, 1]
