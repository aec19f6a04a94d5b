"""Who is accepted: limits in all, per address and per second, and what happens above them."""

import errno
import socket
from collections import deque
from functools import partial
from typing import Any

import pytest

from broker.network.acceptor import (
    ACCEPT_BATCH,
    ACCEPT_LIMIT_MS,
    LOG_INTERVAL_MS,
    OUT_OF_DESCRIPTORS_PAUSE_MS,
    Acceptor,
)
from broker.network.connection import Connection
from broker.network.connection_info import ConnectionInfo
from broker.network.connection_limits import ConnectionLimits
from broker.network.network import SocketNetwork
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.network.sockets import FakePoller
from tests.fakes.timer import ManualTimer

LISTENER_FD = 77


class Accepted:
    """A socket as `accept` gives it."""

    family = socket.AF_INET

    def __init__(self) -> None:
        self.closed = False
        self.options: list[tuple[int, int, int]] = []
        self.gone = False

    def setblocking(self, flag: bool) -> None:
        if self.gone:
            raise OSError(errno.EINVAL, "Invalid argument")

    def setsockopt(self, *option: int) -> None:
        self.options.append(option)  # type: ignore[arg-type]  # three numbers

    def fileno(self) -> int:
        return id(self)

    def getpeername(self) -> tuple[str, int]:
        return ("192.0.2.1", 40_000)

    def getsockname(self) -> tuple[str, int]:
        return ("192.0.2.2", 9092)

    def recv_into(self, buffer: memoryview) -> int:
        raise BlockingIOError

    def send(self, data: bytes, flags: int) -> int:
        raise BlockingIOError

    def close(self) -> None:
        self.closed = True


class Listener:
    """Gives out what the test has put into `waiting`; an exception is raised."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Accepted, str] | OSError] = deque()
        self.fd = LISTENER_FD

    def fileno(self) -> int:
        return self.fd

    def accept(self) -> tuple[Accepted, tuple[str, int]]:
        if not self.waiting:
            raise BlockingIOError
        found = self.waiting.popleft()
        if isinstance(found, OSError):
            raise found
        return found[0], (found[1], 40_000)

    def close(self) -> None:
        self.fd = -1


class Processor:
    """Takes `cost_ms` for a newcomer's first requests."""

    def __init__(self, clock: ManualClock) -> None:
        self.added: list[ConnectionInfo] = []
        self.cost_ms = 0.0
        self._clock = clock

    def add(self, stream: Any, info: ConnectionInfo) -> Connection:
        self.added.append(info)
        self._clock.advance(self.cost_ms)
        return None  # type: ignore[return-value]  # nobody asks for it here


class World:
    def __init__(self, **limits: Any) -> None:
        self.frees = 0
        self.timer = ManualTimer()
        self.poller = FakePoller()
        self.listener = Listener()
        self.processors = [Processor(self.timer.clock), Processor(self.timer.clock)]
        self.limits = ConnectionLimits(
            **{
                "max_connections": 1000,
                "max_per_address": 1000,
                "overrides": {},
                "rate_max": 1000,
                **limits,
            }
        )
        listener: Any = self.listener
        processors: Any = self.processors
        self.acceptor = Acceptor(
            "PLAINTEXT",
            listener,
            processors,
            poller=self.poller,
            environment=FakeEnvironment(timer=self.timer),
            limits=self.limits,
            stream_of=partial(
                SocketNetwork().stream, send_buffer_bytes=-1, receive_buffer_bytes=-1
            ),
            free_descriptors=self.freed,
        )
        self.acceptor.start()

    def freed(self) -> None:
        self.frees += 1

    def connect(self, *hosts: str) -> list[Accepted]:
        """Let clients come, and the loop notice."""
        sockets = [Accepted() for _ in hosts]
        self.listener.waiting.extend(zip(sockets, hosts, strict=True))
        if self.watching:
            self.poller.readable(LISTENER_FD)
        return sockets

    @property
    def watching(self) -> bool:
        return LISTENER_FD in self.poller.readers

    @property
    def added(self) -> list[str]:
        return [info.peer_host for p in self.processors for info in p.added]


def test_connections_go_round_the_processors() -> None:
    world = World()
    world.connect("a", "b", "c", "d", "e")
    assert [len(p.added) for p in world.processors] == [3, 2]
    assert world.processors[0].added[0] == ConnectionInfo("PLAINTEXT", "a", 40_000)
    assert world.acceptor.accepted == world.limits.total == 5


def test_mapped_addresses_count_as_what_they_are() -> None:
    """On a dual-stack socket 10.0.0.1 comes as ::ffff:10.0.0.1; limits are written as 10.0.0.1."""
    world = World(max_per_address=1)
    sockets = world.connect("::ffff:10.0.0.1", "10.0.0.1")
    assert [s.closed for s in sockets] == [False, True]


def test_above_the_total_connections_are_closed_at_once() -> None:
    """`max.connections`; one that leaves makes room."""
    world = World(max_connections=2)
    sockets = world.connect("a", "b", "c")
    assert [s.closed for s in sockets] == [False, False, True]
    assert (world.limits.rejected, world.limits.total) == (1, 2)
    world.limits.closed("a")
    assert not world.connect("c")[0].closed


def test_one_address_cannot_take_all() -> None:
    """`max.connections.per.ip`, and its overrides."""
    world = World(max_per_address=1, overrides={"b": 2, "c": 0})
    sockets = world.connect("a", "a", "b", "b", "b", "c")
    assert [s.closed for s in sockets] == [False, True, False, False, True, True]
    world.limits.closed("a")
    assert not world.connect("a")[0].closed


def test_above_the_rate_clients_wait_in_the_backlog() -> None:
    """`max.connection.creation.rate`: nobody is refused, the rest of the second is waited out."""
    world = World(rate_max=2)
    world.timer.advance(5000)
    world.connect("a", "b", "c", "d", "e")
    assert len(world.added) == 2
    assert not world.watching
    assert len(world.listener.waiting) == 3
    world.timer.advance(999)
    assert not world.watching
    world.timer.advance(1)
    assert world.watching
    world.poller.readable(LISTENER_FD)
    assert len(world.added) == 4
    assert world.limits.rejected == 0


def test_refused_connections_do_not_use_up_the_rate() -> None:
    world = World(rate_max=2, max_per_address=1)
    world.connect("a", "a", "a", "a", "b")
    assert sorted(world.added) == ["a", "b"]


def test_no_descriptors_left_is_waited_out() -> None:
    """Not tried again in a busy loop, and accepting goes on by itself."""
    world = World()
    world.listener.waiting.append(OSError(errno.EMFILE, "Too many open files"))
    world.poller.readable(LISTENER_FD)
    assert not world.watching
    world.timer.advance(OUT_OF_DESCRIPTORS_PAUSE_MS)
    assert world.watching
    world.connect("a")
    assert world.added == ["a"]


def test_no_descriptors_left_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """And each time others are asked to let go of theirs; not of an error of another kind."""
    world = World()
    for code in (errno.EMFILE, errno.ENFILE, errno.EMFILE, errno.ENOMEM):
        world.listener.waiting.append(OSError(code, "no"))
        world.poller.readable(LISTENER_FD)
        world.timer.advance(OUT_OF_DESCRIPTORS_PAUSE_MS)
    assert world.frees == 3
    assert len([one for one in caplog.records if "accept failed" in one.message]) == 1


def test_above_their_share_of_the_descriptors_connections_are_closed_at_once() -> None:
    """Whatever the settings say: the others would be the broker's files."""
    world = World(descriptors_max=2)
    sockets = world.connect("a", "b", "c")
    assert [s.closed for s in sockets] == [False, False, True]
    world.limits.closed("a")
    assert not world.connect("c")[0].closed


def test_a_flood_of_refused_connections_is_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    """The first is told, then how many, once in a while: clients try again all the time."""
    world = World(max_connections=0)
    world.connect(*["a"] * 50)
    world.timer.advance(LOG_INTERVAL_MS - 1)
    world.connect(*["b"] * 50)
    world.timer.advance(1)
    world.connect("c", "c")
    lines = [one.message for one in caplog.records if "connection refused" in one.message]
    assert [line.rpartition(" ")[2] for line in lines] == ["refused=1", "refused=100"]
    assert ["peer=a" in lines[0], "peer=c" in lines[1]] == [True, True]
    assert "listener=PLAINTEXT" in lines[0]
    assert world.limits.rejected == 102


@pytest.mark.parametrize("error", [ConnectionAbortedError(), InterruptedError()])
def test_peers_that_left_before_accept_do_no_harm(error: OSError) -> None:
    world = World()
    world.listener.waiting.append(error)
    world.poller.readable(LISTENER_FD)
    assert world.watching
    world.connect("a")
    assert world.added == ["a"]


def test_peers_that_left_right_after_are_not_counted() -> None:
    """Their socket refuses its options."""
    world = World()
    gone = Accepted()
    gone.gone = True
    world.listener.waiting.append((gone, "a"))
    world.poller.readable(LISTENER_FD)
    assert gone.closed
    assert (world.limits.total, world.added) == (0, [])


def test_a_flood_leaves_requests_their_turn() -> None:
    world = World()
    world.connect(*["a"] * (ACCEPT_BATCH + 1))
    assert len(world.added) == ACCEPT_BATCH
    assert world.watching


def test_newcomers_with_much_to_do_leave_others_their_turn() -> None:
    """A hundred that send a thousand requests each at once are let in two at a time."""
    world = World()
    for processor in world.processors:
        processor.cost_ms = ACCEPT_LIMIT_MS / 2
    world.connect(*["a"] * 100)
    assert len(world.added) == 2
    for _ in range(49):
        world.poller.readable(LISTENER_FD)
    assert len(world.added) == 100


def test_closed_acceptors_do_not_come_back() -> None:
    """Also when one waits for its rate as the broker stops."""
    world = World(rate_max=1)
    world.timer.advance(5000)
    world.connect("a", "b")
    world.acceptor.close()
    world.timer.advance(2000)
    assert not world.watching
    world.acceptor.start()
    assert not world.watching


def test_accepted_sockets_do_not_delay_small_answers() -> None:
    (accepted,) = World().connect("a")
    assert (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) in accepted.options
