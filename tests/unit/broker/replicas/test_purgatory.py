"""An operation ends exactly once: satisfied, expired or abandoned."""

from typing import Any

from broker.network.connection_info import ConnectionInfo
from broker.replicas.purgatory import (
    HELD_BACK_MS,
    WAIT_MAX_MS,
    DelayedOperation,
    ParkedByAddress,
    Purgatory,
)
from broker.runtime.watchers import Waker, Watchers
from tests.fakes.timer import ManualTimer


def watchers_of(timer: ManualTimer) -> Watchers:
    """With a clock that stands still while they look: all of them look at once."""
    return Watchers(Waker(lambda _callback: None, timer.clock))


class Client:
    """What a purgatory knows of a connection."""

    def __init__(self, host: str = "10.0.0.1") -> None:
        self.info = ConnectionInfo("PLAINTEXT", host)
        self.parked = 0
        self.is_read = True

    def hold_back_polls(self) -> None:
        self.is_read = False

    def admit_polls(self) -> None:
        self.is_read = True


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
    purgatory, wait = Purgatory("Test", timer, capacity=10), Wait()
    watchers = watchers_of(timer)
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
    purgatory, watchers = Purgatory("Test", timer, capacity=10), watchers_of(timer)
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
    timer = ManualTimer()
    watchers = watchers_of(timer)
    purgatory = Purgatory("Test", timer, capacity=10)
    for _ in range(10_000):
        wait = Wait()
        purgatory.park(wait, 1)
        watchers.add(wait)
        timer.advance(2)
    assert len(watchers) <= 32


def test_operations_parked_while_checking_are_kept() -> None:
    watchers = watchers_of(ManualTimer())
    later = Wait()

    class Reparks(Wait):
        def on_complete(self, *, expired: bool) -> None:
            watchers.add(later)

    first = Reparks()
    first.ready = True
    watchers.add(first)
    watchers.check()
    assert len(watchers) == 1


def test_nobody_waits_for_longer_than_five_minutes() -> None:
    """A client may ask for 24 days."""
    timer = ManualTimer()
    purgatory, wait, poll = Purgatory("Test", timer, capacity=10), Wait(), Wait()
    client: Any = Client()
    assert purgatory.park(wait, 2**31 - 1)
    assert purgatory.park_poll(poll, 2**31 - 1, client)
    timer.advance(WAIT_MAX_MS - 1)
    assert purgatory.parked == 2
    timer.advance(1)
    assert (wait.ended, poll.ended) == ([True], [True])
    assert WAIT_MAX_MS == 300_000


def test_a_poll_that_finds_no_room_is_answered_later() -> None:
    """At once, its client would ask again at once; its connection is not read meanwhile."""
    timer = ManualTimer()
    purgatory = Purgatory("Test", timer, capacity=1)
    first: Any = Client()
    second: Any = Client("10.0.0.2")
    parked, held, hurried = Wait(), Wait(), Wait()
    assert purgatory.park_poll(parked, 60_000, first)
    assert not purgatory.park_poll(held, 60_000, second)
    assert (held.ended, second.is_read, second.parked) == ([], False, 0)
    assert (purgatory.parked, purgatory.held_back) == (1, 1)
    timer.advance(HELD_BACK_MS - 1)
    assert held.ended == []
    timer.advance(1)
    assert (held.ended, second.is_read) == ([True], True)
    # And never later than it asked for.
    assert not purgatory.park_poll(hurried, 10, second)
    timer.advance(10)
    assert hurried.ended == [True]
    assert (purgatory.parked, purgatory.held_back, purgatory.held_back_total) == (1, 0, 2)
    # What is held back may be given up like everything else.
    gone = Wait()
    assert not purgatory.park_poll(gone, 60_000, second)
    gone.abandon()
    timer.advance(HELD_BACK_MS)
    assert (gone.ended, purgatory.held_back, second.is_read) == ([], 0, True)


def test_an_address_has_a_share() -> None:
    """Over all kinds of polls; others are parked, and there is room again when some have ended."""
    timer = ManualTimer()
    addresses = ParkedByAddress(3)
    fetches = Purgatory("Fetch", timer, capacity=100, addresses=addresses)
    remote = Purgatory("RemoteFetch", timer, capacity=100, addresses=addresses)
    clients: list[Any] = [Client() for _ in range(4)]
    waits = [Wait() for _ in range(4)]
    taken = [
        purgatory.park_poll(wait, 1000, client)
        for purgatory, wait, client in zip(
            (fetches, remote, fetches, remote), waits, clients, strict=True
        )
    ]
    assert taken == [True, True, True, False]
    other: Any = Client("10.0.0.2")
    assert fetches.park_poll(Wait(), 1000, other)
    assert [client.parked for client in clients] == [1, 1, 1, 0]
    waits[0].abandon()
    assert fetches.park_poll(Wait(), 1000, clients[0])
    timer.advance(1000)
    assert addresses.counts == {}
    assert (fetches.parked, remote.parked, remote.held_back) == (0, 0, 0)
