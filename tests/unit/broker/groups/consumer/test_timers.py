"""Timers of one member."""

from broker.groups.consumer.timers import MemberTimers
from broker.runtime.deadline import Deadline
from tests.fakes.clock import ManualClock
from tests.fakes.timer import ManualTimer


def test_all_of_them_are_cancelled() -> None:
    clock = ManualClock()
    timer = ManualTimer(clock)
    fired: list[str] = []
    timers = MemberTimers(Deadline(timer, clock, lambda: fired.append("session")))
    timers.session.set(10)
    timers.rebalance = timer.call_later_ms(10, lambda: fired.append("rebalance"))
    timers.join = timer.call_later_ms(10, lambda: fired.append("join"))
    timers.sync = timer.call_later_ms(10, lambda: fired.append("sync"))
    timers.cancel()
    timers.cancel()
    timer.advance(20)
    assert not fired
    assert [timers.rebalance, timers.join, timers.sync] == [None] * 3
