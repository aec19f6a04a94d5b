"""Unfinished frames of many connections: the limit holds, each comes through, nobody blocks all."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.connection import Connection
from broker.network.connection_info import ConnectionInfo
from broker.network.frame_admission import ADMITTED_MAX, GRACE_MS, SILENT_MS
from broker.network.loop_resources import RECEIVE_BUFFER_SIZE
from broker.network.receive_buffers import SMALL_SIZE_MAX
from tests.fakes.network.sockets import FakeStream
from tests.unit.broker.network.harness import Harness, frame

LIMIT = 1_000_000
SOCKET = 150_000
"""Bytes that a socket holds at most: what one receive may bring."""


class Client:
    """Sends frames through a socket that holds so much."""

    def __init__(self, net: "Clients", fd: int) -> None:
        self._net = net
        self.stream = FakeStream(fd)
        self.connection: Connection = net.h.processor.add(
            self.stream, ConnectionInfo("PLAINTEXT", "127.0.0.1")
        )
        self._left = b""

    def send(self, data: bytes) -> None:
        self._left += data

    @property
    def is_done(self) -> bool:
        """Whether all it sent has been received."""
        return not (self._left or self.stream.incoming)

    @property
    def answers(self) -> int:
        return self.stream.sent.count(b">")

    def turn(self) -> bool:
        """Put into the socket what fits; let it be read once if it is watched."""
        held = sum(len(chunk) for chunk in self.stream.incoming if isinstance(chunk, bytes))
        room = SOCKET - held
        if self._left and room > 0:
            self.stream.incoming.append(self._left[:room])
            self._left = self._left[room:]
            self.stream.incoming = [b"".join(c for c in self.stream.incoming if c != b"")]  # type: ignore[misc]  # why: bytes only here
        if not self.stream.incoming or self.stream.fd not in self._net.h.poller.readers:
            return False
        before = self.stream.receives
        self._net.h.poller.readable(self.stream.fd)
        return self.stream.receives > before


class Clients:
    """Many of them, on one processor."""

    def __init__(self, count: int, limit: int = LIMIT) -> None:
        self.h = Harness(limit=limit, frame_max=100_000_000, shared_size=RECEIVE_BUFFER_SIZE)
        self.clients = [Client(self, 1000 + number) for number in range(count)]
        self.peak = 0

    def turns(self, clients: list[Client] | None = None) -> None:
        """Until nothing moves."""
        moved = True
        while moved:
            moved = False
            for client in clients or self.clients:
                moved |= client.turn()
                self.peak = max(self.peak, self.h.buffers.charged)

    def sweep(self) -> None:
        self.h.processor.sweep(600_000)
        self.h.resources.admission.sweep()


def test_frames_of_many_clients_pass_the_limit_by_one_frame_at_most() -> None:
    """All at once each would put what its socket holds into memory: 100 of 150,000 bytes."""
    net = Clients(100)
    big = frame(b"E" * 500_000)
    for client in net.clients:
        client.send(big)
    net.turns()
    assert [client.answers for client in net.clients] == [1] * 100
    # One receive may pass the limit, then one frame; and each may have begun one meanwhile.
    assert net.peak <= LIMIT + SOCKET + 500_000 + 100 * SMALL_SIZE_MAX
    assert net.h.buffers.charged == 0
    assert not net.h.buffers.is_short
    assert net.h.closed == []


def test_what_is_begun_while_memory_is_short_holds_little() -> None:
    """Ten thousand idle connections that each begin a frame then."""
    net = Clients(400)
    for client in net.clients[:10]:
        client.send((500_000).to_bytes(4, "big") + b"x" * SOCKET)
    net.turns()
    held = net.h.buffers.charged
    assert held >= LIMIT
    for client in net.clients[10:]:
        client.send((500_000).to_bytes(4, "big") + b"x" * 99_999)
    for client in net.clients[10:]:
        client.turn()
    assert net.h.buffers.charged - held <= 390 * SMALL_SIZE_MAX


def test_a_frame_larger_than_the_limit_passes_alone() -> None:
    net = Clients(3)
    for client in net.clients:
        client.send(frame(b"E" * (3 * LIMIT)))
    net.turns()
    assert [client.answers for client in net.clients] == [1, 1, 1]
    assert net.peak <= LIMIT + SOCKET + 3 * LIMIT
    assert net.h.closed == []


def test_small_requests_pass_by_frames_that_wait() -> None:
    net = Clients(9)
    for client in net.clients[:8]:
        client.send((500_000).to_bytes(4, "big") + b"x" * SOCKET)
    net.turns()
    assert net.h.buffers.is_short
    small = net.clients[8]
    small.send(frame(b"E" * 100) + frame(b"E" * SMALL_SIZE_MAX) + frame(b"E" * 200))
    net.turns([small])
    assert small.answers == 3


def test_turns_are_in_the_order_of_asking() -> None:
    """Who sends one frame after the other does not keep another one waiting for ever."""
    net = Clients(4)
    greedy, other = net.clients[:3], net.clients[3]
    for client in greedy:
        client.send(frame(b"E" * 700_000) * 20)
    for _ in range(6):
        for client in greedy:
            client.turn()
    assert net.h.buffers.is_short
    answered = sum(client.answers for client in greedy)
    other.send(frame(b"E" * 700_000))
    while not other.answers:
        for client in net.clients:
            client.turn()
    assert sum(client.answers for client in greedy) - answered <= 4


def test_who_only_announces_holds_nothing() -> None:
    """Kafka reserves 16 GB here, and nobody else gets any."""
    net = Clients(201)
    for client in net.clients[:200]:
        client.send((80_000_000).to_bytes(4, "big"))
    net.turns()
    for client in net.clients[:3]:
        client.send(b"x" * 400_000)
    net.turns()
    assert net.h.buffers.is_short
    honest = net.clients[200]
    honest.send(frame(b"E" * 50_000))
    net.turns()
    # The one that is admitted goes when it has had its time; the next two have a short one.
    for _ in range(int(GRACE_MS / 1000) + 3):
        net.h.clock.advance(1000)
        net.sweep()
        net.turns()
    assert honest.answers == 1


@pytest.mark.parametrize("step", [0, 1000])
def test_who_is_admitted_and_sends_little_makes_room(step: int) -> None:
    """Silent, or a little now and then: the rest of its frame is what the others wait for."""
    net = Clients(3)
    slow, one, two = net.clients
    slow.send((3 * LIMIT).to_bytes(4, "big") + b"x" * LIMIT)
    net.turns()
    assert net.h.buffers.is_short
    slow.send(b"x" * SOCKET)
    net.turns()
    for client in (one, two):
        client.send(frame(b"E" * 200_000))
    net.turns()
    assert one.answers == two.answers == 0
    for _ in range(11):
        net.h.clock.advance(1000)
        slow.send(b"x" * step)
        net.turns()
        net.sweep()
    net.turns()
    assert one.answers == two.answers == 1
    assert slow.stream.closed


def test_a_slow_sender_asks_again_where_memory_is_left() -> None:
    """Its connection is closed only where that is what it takes."""
    net = Clients(3)
    slow, one, two = net.clients
    net.h.resources.admission.become_short()
    slow.send((900_000).to_bytes(4, "big") + b"x" * 5_000)
    net.turns()
    for client in (one, two):
        client.send(frame(b"E" * 300_000))
    net.turns()
    assert one.answers == two.answers == 0
    for _ in range(2):
        net.h.clock.advance(SILENT_MS)
        net.sweep()
    net.turns()
    assert one.answers == two.answers == 1
    assert not slow.stream.closed
    slow.send(b"x" * 895_000)
    net.turns()
    assert slow.answers == 1


def test_who_waits_is_neither_stalled_nor_idle() -> None:
    """It is not read: that nothing comes of it is not its fault, however long it waits."""
    net = Clients(2)
    first, second = net.clients
    first.send((80_000_000).to_bytes(4, "big") + b"x" * 2 * LIMIT)
    net.turns()
    second.send((500_000).to_bytes(4, "big") + b"x" * 100_000)
    net.turns()
    assert net.h.resources.admission.waiting == 1
    for _ in range(700):
        net.h.clock.advance(1000)
        first.send(b"x" * 100_000)
        net.turns()
        net.sweep()
    assert not first.stream.closed
    assert not second.stream.closed
    first.connection.close(None)
    second.send(b"x" * 400_000)
    net.turns()
    assert not net.h.buffers.charged


def test_a_frame_that_a_thread_still_writes_is_waited_for() -> None:
    """It comes back by itself: nobody passes the limit meanwhile."""
    net = Clients(3)
    keeps: list[object] = []
    handle = net.h.router.handle

    def kept(connection: Connection, data: memoryview) -> None:
        if data[0] == ord("K"):
            release = connection.keep(data)
            assert release is not None
            keeps.append(release)
        handle(connection, data)

    net.h.router.handle = kept  # type: ignore[assignment,method-assign]  # why: the same, that keeps
    first, second, third = net.clients
    first.send(frame(b"K" * 2 * LIMIT))
    net.turns()
    assert first.answers == 1
    assert net.h.buffers.charged == 2 * LIMIT
    second.send(frame(b"E" * 300_000))
    third.send(frame(b"E" * 300_000))
    net.turns()
    assert second.answers == third.answers == 0
    release = keeps.pop()
    assert callable(release)
    release()
    net.turns()
    assert second.answers == third.answers == 1
    assert not net.h.buffers.is_short


def test_who_leaves_while_it_waits_is_forgotten() -> None:
    net = Clients(20)
    for client in net.clients:
        client.send((500_000).to_bytes(4, "big") + b"x" * SOCKET)
    net.turns()
    admission = net.h.resources.admission
    assert admission.waiting > 0
    for client in net.clients:
        client.connection.close(None)
    assert admission.waiting == 0
    assert net.h.buffers.charged == 0
    assert not net.h.buffers.is_short


def test_the_time_that_somebody_waited_is_counted() -> None:
    net = Clients(20)
    admission = net.h.resources.admission
    for client in net.clients:
        client.send((500_000).to_bytes(4, "big") + b"x" * SOCKET)
    net.turns()
    net.h.clock.advance(700)
    assert admission.depleted_ms == 700
    for client in net.clients:
        client.connection.close(None)
    net.h.clock.advance(5000)
    assert admission.depleted_ms == 700
    assert admission.times_short == 1


def test_no_more_are_admitted_than_can_be_counted_at_each_turn() -> None:
    net = Clients(2 * ADMITTED_MAX, limit=100_000_000)
    net.h.resources.admission.become_short()
    for client in net.clients:
        client.send((50_000).to_bytes(4, "big") + b"x" * 20_000)
    net.turns()
    assert net.h.resources.admission.waiting == ADMITTED_MAX
    for client in net.clients:
        client.send(b"x" * 30_000)
    net.turns()
    assert all(client.answers == 1 for client in net.clients)


@given(
    asked=st.lists(
        st.lists(st.integers(min_value=8, max_value=400_000), min_size=1, max_size=4),
        min_size=1,
        max_size=12,
    ),
    chance=st.randoms(use_true_random=False),
)
def test_all_frames_come_through_in_whatever_order_sockets_are_read(
    asked: list[list[int]], chance: Random
) -> None:
    net = Clients(len(asked), limit=250_000)
    for client, sizes in zip(net.clients, asked, strict=True):
        client.send(b"".join(frame(b"E" * size) for size in sizes))
    moved = True
    while moved:
        moved = False
        for client in chance.sample(net.clients, len(net.clients)):
            moved |= client.turn()
            net.peak = max(net.peak, net.h.buffers.charged)
    assert [client.answers for client in net.clients] == [len(sizes) for sizes in asked]
    assert net.peak <= 250_000 + SOCKET + 400_000 + len(asked) * SMALL_SIZE_MAX
    assert net.h.buffers.charged == 0
    assert not net.h.buffers.is_short
    assert net.h.closed == []
