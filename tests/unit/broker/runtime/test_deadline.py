"""Time-outs that are mostly pushed back."""

from broker.runtime.deadline import Deadline
from tests.fakes.timer import ManualTimer


class Watch:
    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.expired_at: list[float] = []
        self.deadline = Deadline(
            self.timer,
            self.timer.clock,
            lambda: self.expired_at.append(self.timer.clock.monotonic_ms()),
        )


def test_expires_once_after_the_last_time_asked_for() -> None:
    w = Watch()
    w.deadline.set(100)
    for _ in range(10):
        w.timer.advance(99)
        w.deadline.set(100)
    w.timer.advance(1_000)
    assert w.expired_at == [1_090]
    assert not w.deadline.pending


def test_pushing_back_starts_no_timer() -> None:
    """A heartbeat stores a number."""
    w = Watch()
    for _ in range(1_000):
        w.deadline.set(100)
    assert w.timer.pending == 1


def test_it_moves_to_a_time_that_is_known() -> None:
    w = Watch()
    w.timer.advance(5)
    w.deadline.move_to(105)
    w.timer.advance(60)
    w.deadline.move_to(165)
    assert w.timer.pending == 1
    w.timer.advance(200)
    assert w.expired_at == [165]
    w.deadline.move_to(300)
    w.deadline.move_to(280)
    w.timer.advance(100)
    assert w.expired_at == [165, 280]


def test_moving_it_nearer_is_heeded() -> None:
    w = Watch()
    w.deadline.set(1_000)
    w.deadline.set(10)
    w.timer.advance(10)
    assert w.expired_at == [10]
    w.timer.advance(2_000)
    assert w.expired_at == [10]


def test_cancelled_it_never_expires_until_it_is_set_again() -> None:
    w = Watch()
    w.deadline.set(10)
    w.deadline.cancel()
    w.timer.advance(20)
    assert not w.expired_at
    w.deadline.set(10)
    w.timer.advance(10)
    assert w.expired_at == [30]


def test_one_that_is_due_need_not_wait_for_its_timer() -> None:
    """Timers are late: who asks at the minute is told what holds."""
    w = Watch()
    w.deadline.set(10)
    w.timer.clock.advance(9)
    w.deadline.expire_if_due()
    assert not w.expired_at
    w.timer.clock.advance(1)
    w.deadline.expire_if_due()
    assert w.expired_at == [10]
    w.timer.advance(100)
    w.deadline.expire_if_due()
    assert w.expired_at == [10]
