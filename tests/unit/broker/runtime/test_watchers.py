"""Whoever is due is woken, in slices of the loop's time, and nobody is forgotten."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from broker.replicas.purgatory import DelayedOperation
from broker.runtime.watchers import QUANTUM, SLICE_MS, Waker, Watchers
from tests.fakes.clock import ManualClock

LOOK_MS = 0.1


class Loop:
    """Turns of an event loop; looking at an operation takes time."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.callbacks: list[Callable[[], None]] = []
        self.waker = Waker(self.callbacks.append, self.clock)
        self.turns: list[float] = []

    def timed(self, act: Callable[[], None]) -> None:
        begun = self.clock.monotonic_ms()
        act()
        self.turns.append(self.clock.monotonic_ms() - begun)

    def turn(self) -> bool:
        """What was called soon; False if nothing was."""
        callbacks = self.callbacks[:]
        self.callbacks.clear()
        for callback in callbacks:
            self.timed(callback)
        return bool(callbacks)

    def run(self) -> None:
        while self.turn():
            pass


class Poll(DelayedOperation):
    """Waits for `wanted` changes of its thing."""

    __slots__ = ("ended", "looks", "loop", "name", "seen", "then", "wanted")

    def __init__(self, loop: Loop, name: int = 0, wanted: int = 1) -> None:
        super().__init__()
        self.loop = loop
        self.name = name
        self.wanted = wanted
        self.seen: Callable[[], int] = lambda: 1
        self.looks = 0
        self.ended: list[bool] = []
        self.then: Callable[[], None] = lambda: None

    def try_complete(self) -> bool:
        self.looks += 1
        self.loop.clock.advance(LOOK_MS)
        return self.seen() >= self.wanted and self.complete()

    def on_complete(self, *, expired: bool) -> None:
        self.ended.append(expired)
        self.then()


def test_many_are_woken_in_slices() -> None:
    """An append that wakes ten thousand holds the loop no longer than one that wakes twenty."""
    loop = Loop()
    watchers = Watchers(loop.waker)
    polls = [Poll(loop, name) for name in range(10_000)]
    order: list[int] = []
    for poll in polls:
        poll.then = lambda poll=poll: order.append(poll.name)  # type: ignore[misc]  # a default binds the loop's value
        watchers.add(poll)
    loop.timed(watchers.check)
    assert 0 < len(order) < 100
    loop.run()
    assert order == list(range(10_000))
    assert max(loop.turns) <= SLICE_MS + 2 * LOOK_MS
    assert len(watchers) == 0
    assert not loop.waker.is_busy
    assert loop.waker.turns == len(loop.turns) - 1


def test_a_change_while_some_are_due_is_lost_by_nobody() -> None:
    """Those who had looked before it look again, after the others."""
    loop = Loop()
    watchers = Watchers(loop.waker)
    changes = 1
    polls = [Poll(loop, wanted=2) for _ in range(100)]
    for poll in polls:
        poll.seen = lambda: changes
        watchers.add(poll)
    watchers.check()
    loop.turn()
    assert not any(poll.ended for poll in polls)
    changes = 2
    watchers.check()
    loop.run()
    assert all(poll.ended == [False] for poll in polls)
    assert max(poll.looks for poll in polls) == 2


def test_who_waits_for_something_else_is_not_kept_waiting() -> None:
    """It goes round: a few of one thing, then a few of the next."""
    loop = Loop()
    crowd, single = Watchers(loop.waker), Watchers(loop.waker)
    for _ in range(10_000):
        crowd.add(Poll(loop))
    honest = Poll(loop)
    single.add(honest)
    crowd.check()
    loop.turn()
    single.check()
    assert not honest.ended
    loop.turn()
    assert honest.ended == [False]
    assert len(crowd) > 9_000


def test_a_few_are_woken_before_check_returns() -> None:
    """Nobody else waits: no turn of the loop goes by."""
    loop = Loop()
    watchers = Watchers(loop.waker)
    polls = [Poll(loop) for _ in range(QUANTUM)]
    for poll in polls:
        watchers.add(poll)
    watchers.check()
    assert all(poll.ended for poll in polls)
    assert not loop.callbacks


def test_waking_that_causes_a_change_of_the_same_thing_ends() -> None:
    """An answer lets its connection be read again, and what is read may be the next append."""
    loop = Loop()
    watchers = Watchers(loop.waker)
    changes = 1
    last = Poll(loop, wanted=2)
    last.seen = lambda: changes
    first = Poll(loop)

    def change() -> None:
        nonlocal changes
        changes = 2
        watchers.check()

    first.then = change
    # In both places: looked at before and after the change.
    watchers.add(last)
    watchers.add(first)
    watchers.check()
    loop.run()
    assert (first.ended, last.ended) == ([False], [False])


def test_a_stop_reaches_those_who_are_due_and_those_who_are_not() -> None:
    loop = Loop()
    watchers = Watchers(loop.waker)
    polls = [Poll(loop, wanted=2) for _ in range(1_000)]
    for poll in polls:
        watchers.add(poll)
    watchers.check()
    watchers.expire()
    assert all(poll.ended == [True] for poll in polls)
    loop.run()
    assert len(watchers) == 0


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 2), st.integers(1, 60)),
            st.tuples(st.just("change"), st.integers(0, 2), st.integers(1, 1)),
            st.tuples(st.just("turn"), st.integers(0, 0), st.integers(1, 1)),
        ),
        max_size=60,
    )
)
def test_whoever_is_satisfied_is_answered(steps: list[tuple[str, int, int]]) -> None:
    """Whatever comes between the slices; and who is not satisfied goes on waiting."""
    loop = Loop()
    things = [Watchers(loop.waker) for _ in range(3)]
    changes = [0, 0, 0]
    polls: list[tuple[int, int, Poll]] = []
    for step, thing, count in steps:
        if step == "add":
            for number in range(count):
                poll = Poll(loop, wanted=changes[thing] + 1 + number % 2)
                poll.seen = lambda thing=thing: changes[thing]  # type: ignore[misc]  # a default binds the loop's value
                polls.append((thing, poll.wanted, poll))
                things[thing].add(poll)
        elif step == "change":
            changes[thing] += 1
            loop.timed(things[thing].check)
        else:
            loop.turn()
    loop.run()
    for thing, wanted, poll in polls:
        assert poll.ended == ([False] if changes[thing] >= wanted else [])
    assert all(turn <= SLICE_MS + 2 * LOOK_MS for turn in loop.turns)
    assert sum(map(len, things)) == sum(1 for *_, poll in polls if not poll.ended)
