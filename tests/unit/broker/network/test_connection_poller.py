"""Many sockets behind one descriptor: who is called back, when, and how many in a turn."""

import asyncio
import errno
import logging
import os
import select
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.connection_poller import DIRECT_MAX, EVENTS_MAX, SLICE, ConnectionPoller
from storage.environment.clock import SystemClock
from tests.fakes.clock import ManualClock
from tests.fakes.network.sockets import FakePoller

SET_FD = 9_999
FIRST = 100


class FakeSet:
    """Descriptors that the test makes ready; given in turn, as the kernel gives them."""

    def __init__(self) -> None:
        self.watched: dict[int, int] = {}
        self.ready: dict[int, int] = {}
        self.calls: Counter[str] = Counter()
        self.closed = False

    def fileno(self) -> int:
        return SET_FD

    def register(self, fd: int, eventmask: int) -> None:
        assert fd not in self.watched
        self.calls["register"] += 1
        self.watched[fd] = eventmask

    def modify(self, fd: int, eventmask: int) -> None:
        assert fd in self.watched
        self.calls["modify"] += 1
        self.watched[fd] = eventmask

    def unregister(self, fd: int) -> None:
        self.calls["unregister"] += 1
        if fd not in self.watched:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        del self.watched[fd]

    def poll(self, timeout: float, maxevents: int) -> list[tuple[int, int]]:
        assert timeout == 0
        self.calls["poll"] += 1
        told: list[tuple[int, int]] = []
        for fd, events in list(self.ready.items()):
            shown = events & (self.watched.get(fd, 0) | select.EPOLLERR | select.EPOLLHUP)
            if fd in self.watched and shown and len(told) < maxevents:
                told.append((fd, shown))
                del self.ready[fd]
                self.ready[fd] = events
        return told

    def close(self) -> None:
        self.closed = True


class Poller:
    """A poller whose first places are taken, so that all else is in the set."""

    def __init__(self) -> None:
        self.loop = FakePoller()
        self.set = FakeSet()
        self.clock = ManualClock()
        self.poller = ConnectionPoller(self.loop, lambda: self.set, self.clock)
        for fd in range(DIRECT_MAX):
            self.poller.add_reader(fd, lambda: None)

    def turn(self) -> None:
        """What the loop does once the set's descriptor is readable."""
        self.loop.readable(SET_FD)

    def reads_to(self, fd: int, called: list[int]) -> None:
        """Watch `fd`; each call is noted."""
        self.poller.add_reader(fd, called.append, fd)


def test_the_first_are_the_loops_and_there_is_no_set_for_few() -> None:
    loop = FakePoller()

    def no_set() -> FakeSet:
        raise AssertionError("a set for few connections")

    poller = ConnectionPoller(loop, no_set, ManualClock())
    for fd in range(DIRECT_MAX):
        poller.add_reader(fd, lambda: None)
        poller.add_writer(fd, lambda: None)
    assert sorted(loop.readers) == sorted(loop.writers) == list(range(DIRECT_MAX))
    poller.close()
    assert len(loop.readers) == DIRECT_MAX


def test_those_beyond_are_behind_one_descriptor() -> None:
    poller = Poller()
    called: list[int] = []
    for fd in range(FIRST, FIRST + 10):
        poller.reads_to(fd, called)
    assert len(poller.loop.readers) == DIRECT_MAX + 1
    assert poller.poller.in_set == 10
    poller.set.ready = {FIRST + 3: select.EPOLLIN, FIRST + 7: select.EPOLLIN}
    poller.turn()
    assert called == [FIRST + 3, FIRST + 7]


def test_a_place_of_the_loop_that_is_free_is_taken_again() -> None:
    poller = Poller()
    poller.poller.add_writer(5, lambda: None)
    assert poller.poller.remove_reader(5)
    poller.poller.add_reader(FIRST, lambda: None)
    # Watched for writes still.
    assert FIRST not in poller.loop.readers
    assert poller.poller.remove_writer(5)
    assert not poller.poller.remove_writer(5)
    poller.poller.add_reader(FIRST + 1, lambda: None)
    assert FIRST + 1 in poller.loop.readers
    # Who is in the set stays there.
    poller.poller.add_writer(FIRST, lambda: None)
    assert poller.set.watched == {FIRST: select.EPOLLIN | select.EPOLLOUT}


def test_a_socket_that_stays_ready_is_called_in_each_turn() -> None:
    poller = Poller()
    called: list[int] = []
    poller.reads_to(FIRST, called)
    poller.set.ready = {FIRST: select.EPOLLIN}
    poller.turn()
    poller.turn()
    assert called == [FIRST] * 2


def test_nothing_is_called_for_what_is_watched_no_more() -> None:
    poller = Poller()
    called: list[int] = []
    poller.reads_to(FIRST, called)
    poller.set.ready = {FIRST: select.EPOLLIN | select.EPOLLOUT}
    assert poller.poller.remove_reader(FIRST)
    assert not poller.poller.remove_reader(FIRST)
    assert poller.set.watched == {}
    poller.turn()
    assert called == []
    poller.reads_to(FIRST, called)
    poller.turn()
    assert called == [FIRST]


def test_reads_and_writes_of_one_socket_are_told_apart() -> None:
    poller = Poller()
    called: list[int] = []
    poller.reads_to(FIRST, called)
    poller.poller.add_writer(FIRST, called.append, -FIRST)
    poller.set.ready = {FIRST: select.EPOLLOUT}
    poller.turn()
    assert called == [-FIRST]
    poller.set.ready = {FIRST: select.EPOLLIN}
    poller.turn()
    assert called == [-FIRST, FIRST]
    assert poller.poller.remove_writer(FIRST)
    assert poller.set.watched == {FIRST: select.EPOLLIN}


@pytest.mark.parametrize("event", [select.EPOLLHUP, select.EPOLLERR])
def test_an_end_is_told_to_readers_and_writers(event: int) -> None:
    poller = Poller()
    called: list[int] = []
    poller.reads_to(FIRST, called)
    poller.poller.add_writer(FIRST + 1, called.append, FIRST + 1)
    poller.set.ready = {FIRST: event, FIRST + 1: event}
    poller.turn()
    assert called == [FIRST, FIRST + 1]


def test_a_reader_that_closes_has_no_writer_called() -> None:
    poller = Poller()
    called: list[int] = []

    def close() -> None:
        called.append(FIRST)
        poller.poller.remove_reader(FIRST)
        poller.poller.remove_writer(FIRST)

    poller.poller.add_reader(FIRST, close)
    poller.poller.add_writer(FIRST, called.append, -FIRST)
    poller.set.ready = {FIRST: select.EPOLLIN | select.EPOLLOUT}
    poller.turn()
    assert called == [FIRST]


def test_who_is_closed_within_a_slice_is_not_called() -> None:
    poller = Poller()
    called: list[int] = []

    def close_the_next() -> None:
        called.append(FIRST)
        poller.poller.remove_reader(FIRST + 1)

    poller.poller.add_reader(FIRST, close_the_next)
    poller.reads_to(FIRST + 1, called)
    poller.set.ready = {FIRST: select.EPOLLIN, FIRST + 1: select.EPOLLIN}
    poller.turn()
    assert called == [FIRST]


def test_a_number_that_is_used_again_within_a_slice_waits_for_the_next_turn() -> None:
    poller = Poller()
    called: list[int] = []

    def replace() -> None:
        poller.poller.remove_reader(FIRST)
        poller.poller.remove_reader(FIRST + 1)
        poller.reads_to(FIRST + 1, called)

    poller.poller.add_reader(FIRST, replace)
    poller.reads_to(FIRST + 1, called)
    poller.set.ready = {FIRST: select.EPOLLIN, FIRST + 1: select.EPOLLIN}
    poller.turn()
    assert called == []
    poller.turn()
    assert called == [FIRST + 1]


def test_a_turn_has_an_end_and_the_others_come_first_in_the_next() -> None:
    poller = Poller()
    called: list[int] = []
    count = 2 * EVENTS_MAX + 10
    for fd in range(FIRST, FIRST + count):
        poller.reads_to(fd, called)
        poller.set.ready[fd] = select.EPOLLIN
    poller.turn()
    assert called == list(range(FIRST, FIRST + EVENTS_MAX))
    poller.turn()
    poller.turn()
    assert called[:count] == list(range(FIRST, FIRST + count))
    # Everybody is ready still: nobody is called a third time before all were twice.
    for _ in range(7):
        poller.turn()
    times = Counter(called).values()
    assert max(times) - min(times) <= 1


def test_a_slow_turn_ends_early() -> None:
    poller = Poller()
    called: list[int] = []

    def slow(fd: int) -> None:
        called.append(fd)
        poller.clock.advance(0.2)

    for fd in range(FIRST, FIRST + EVENTS_MAX):
        poller.poller.add_reader(fd, slow, fd)
        poller.set.ready[fd] = select.EPOLLIN
    poller.turn()
    # 6.4 ms a slice: the first is granted, the second goes beyond 5 ms.
    assert len(called) == 2 * SLICE


def test_one_that_fails_keeps_no_other_from_being_called(caplog: pytest.LogCaptureFixture) -> None:
    poller = Poller()
    called: list[int] = []

    def fail() -> None:
        raise ValueError("broken")

    poller.poller.add_reader(FIRST, fail)
    poller.reads_to(FIRST + 1, called)
    poller.set.ready = {FIRST: select.EPOLLIN, FIRST + 1: select.EPOLLIN}
    with caplog.at_level(logging.ERROR):
        poller.turn()
    assert called == [FIRST + 1]
    assert "broken" in caplog.text


def test_what_was_closed_before_it_is_forgotten_harms_nobody() -> None:
    poller = Poller()
    poller.poller.add_reader(FIRST, lambda: None)
    # The system forgets a socket that is closed.
    del poller.set.watched[FIRST]
    assert poller.poller.remove_reader(FIRST)
    assert poller.poller.in_set == 0


def test_a_callback_may_close_the_poller() -> None:
    poller = Poller()
    called: list[int] = []

    def close() -> None:
        called.append(FIRST)
        poller.poller.close()

    poller.poller.add_reader(FIRST, close)
    for fd in range(FIRST + 1, FIRST + 2 * SLICE):
        poller.reads_to(fd, called)
        poller.set.ready[fd] = select.EPOLLIN
    poller.set.ready = {FIRST: select.EPOLLIN, **poller.set.ready}
    poller.turn()
    assert called == [FIRST]
    assert poller.set.closed
    assert SET_FD not in poller.loop.readers
    poller.poller.close()


def test_pausing_costs_one_call_of_the_system() -> None:
    poller = Poller()
    poller.poller.add_reader(FIRST, lambda: None)
    poller.poller.add_reader(FIRST, lambda: None)
    poller.poller.remove_reader(FIRST)
    poller.poller.remove_reader(FIRST)
    assert poller.set.calls == {"register": 1, "unregister": 1}


# -- as the loop itself ---------------------------------------------------------------------------


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    with ExitStack() as stack:
        made = []
        for _ in range(DIRECT_MAX + 8):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            stack.enter_context(ours)
            stack.enter_context(theirs)
            made.append((ours, theirs))
        yield made


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never held")


async def test_the_systems_set_on_a_real_loop(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    poller = ConnectionPoller(asyncio.get_running_loop(), select.epoll, SystemClock())
    received: dict[int, bytes] = {}

    def read(one: socket.socket) -> None:
        data = one.recv(1)
        received[one.fileno()] = received.get(one.fileno(), b"") + data
        if not data:
            poller.remove_reader(one.fileno())

    for ours, _ in pairs:
        poller.add_reader(ours.fileno(), read, ours)
    assert poller.in_set == 8
    for _, theirs in pairs:
        theirs.send(b"abc")
        theirs.close()
    await until(lambda: not poller.in_set)
    await until(lambda: set(received.values()) == {b"abc"} and len(received) == len(pairs))
    writable: list[int] = []
    last = pairs[-1][0].fileno()
    poller.add_writer(last, writable.append, last)
    await until(lambda: bool(writable))
    poller.close()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "unread", "unwrite", "ready", "quiet", "turn"]),
        st.integers(0, 4),
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_whatever_is_watched_is_called_and_nothing_else(steps: list[tuple[str, int]]) -> None:
    poller = Poller()
    watched: set[tuple[str, int]] = set()
    ready: set[int] = set()
    called: list[tuple[str, int]] = []
    for step, number in steps:
        fd = FIRST + number
        if step == "read":
            poller.poller.add_reader(fd, called.append, ("read", fd))
            watched.add(("read", fd))
        elif step == "write":
            poller.poller.add_writer(fd, called.append, ("write", fd))
            watched.add(("write", fd))
        elif step == "unread":
            assert poller.poller.remove_reader(fd) == (("read", fd) in watched)
            watched.discard(("read", fd))
        elif step == "unwrite":
            assert poller.poller.remove_writer(fd) == (("write", fd) in watched)
            watched.discard(("write", fd))
        elif step == "ready":
            ready.add(fd)
            poller.set.ready[fd] = select.EPOLLIN | select.EPOLLOUT
        elif step == "quiet":
            ready.discard(fd)
            poller.set.ready.pop(fd, None)
        elif SET_FD in poller.loop.readers:
            called.clear()
            poller.turn()
            expected = {(way, one) for way, one in watched if one in ready}
            assert sorted(called) == sorted(expected)
    assert poller.poller.in_set == len({fd for _, fd in watched})
