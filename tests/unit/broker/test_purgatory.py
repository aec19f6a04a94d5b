"""An operation ends exactly once: satisfied, expired or abandoned."""

from broker.purgatory import DelayedOperation, Purgatory, Watchers
from tests.fakes.timer import ManualTimer


class Wait(DelayedOperation):
    __slots__ = ("ended", "ready")

    def __init__(self) -> None:
        super().__init__()
        self.ready = False
        self.ended: list[bool] = []

    def try_complete(self) -> bool:
        return self.ready and self.complete()

    def on_complete(self, *, expired: bool) -> None:
        self.ended.append(expired)


def test_satisfied_operations_end_once_and_stop_their_timer() -> None:
    timer = ManualTimer()
    purgatory, watchers, wait = Purgatory("Test", timer, capacity=10), Watchers(), Wait()
    assert purgatory.park(wait, 100)
    watchers.add(wait)
    watchers.check()
    assert wait.ended == []
    wait.ready = True
    watchers.check()
    watchers.check()
    timer.advance(1000)
    assert wait.ended == [False]
    assert (purgatory.parked, purgatory.completed, purgatory.expired) == (0, 1, 0)
    assert timer.pending == 0


def test_one_that_fails_does_not_keep_others_from_being_woken() -> None:
    """It is left to its time; whoever was parked beside it looks now and the next time."""

    class Broken(Wait):
        __slots__ = ()

        def try_complete(self) -> bool:
            raise ValueError("ours")

    timer = ManualTimer()
    purgatory, watchers = Purgatory("Test", timer, capacity=10), Watchers()
    first, broken, last = Wait(), Broken(), Wait()
    for wait in (first, broken, last):
        purgatory.park(wait, 100)
        watchers.add(wait)
    last.ready = True
    watchers.check()
    assert last.ended == [False]
    first.ready = True
    watchers.check()
    assert first.ended == [False]
    timer.advance(100)
    assert broken.ended == [True]


def test_time_runs_out() -> None:
    timer = ManualTimer()
    purgatory, wait = Purgatory("Test", timer, capacity=10), Wait()
    purgatory.park(wait, 100)
    timer.advance(99)
    assert wait.ended == []
    timer.advance(1)
    assert wait.ended == [True]
    wait.ready = True
    assert not wait.try_complete()
    assert wait.ended == [True]
    assert purgatory.expired == 1


def test_abandoned_operations_answer_nobody() -> None:
    timer = ManualTimer()
    purgatory, wait = Purgatory("Test", timer, capacity=10), Wait()
    purgatory.park(wait, 100)
    wait.abandon()
    timer.advance(1000)
    assert wait.ended == []
    assert purgatory.parked == 0


def test_a_full_purgatory_takes_nobody() -> None:
    purgatory = Purgatory("Test", ManualTimer(), capacity=1)
    assert purgatory.park(Wait(), 100)
    assert not purgatory.park(Wait(), 100)


def test_ended_operations_do_not_pile_up_with_their_watchers() -> None:
    """A partition nobody writes to, polled for ever, keeps no trace of old polls."""
    watchers = Watchers()
    timer = ManualTimer()
    purgatory = Purgatory("Test", timer, capacity=10)
    for _ in range(10_000):
        wait = Wait()
        purgatory.park(wait, 1)
        watchers.add(wait)
        timer.advance(2)
    assert len(watchers) <= 32


def test_operations_parked_while_checking_are_kept() -> None:
    watchers = Watchers()
    later = Wait()

    class Reparks(Wait):
        def on_complete(self, *, expired: bool) -> None:
            watchers.add(later)

    first = Reparks()
    first.ready = True
    watchers.add(first)
    watchers.check()
    assert len(watchers) == 1
