"""A connection to a peer is made when it is needed, and loses no request without saying so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.receive_buffers import ReceiveBuffers
from broker.network.stream import EXPECTED_MIN
from broker.peers.connection import (
    BACK_OFF_FIRST_MS,
    BACK_OFF_MAX_MS,
    CONNECT_TIMEOUT_MS,
    REQUESTS_MAX,
    PeerConnection,
    State,
)
from broker.peers.endpoint import PeerEndpoint
from broker.peers.errors import PeerUnavailableError
from broker.peers.peer_request import PeerRequest
from protocol.api_keys import ApiKey
from protocol.errors import DecodeError
from tests.fakes.network.peers import PeerWorld, SeenPeers, answer_to, requests_of
from tests.fakes.network.sockets import FakeStream

HERE = PeerEndpoint("10.0.0.2", 9092, epoch=7)
VERSION = 3


class Outcome:
    """`Receiver` that remembers; `keep` holds the answer."""

    def __init__(self, connection: PeerConnection | None = None) -> None:
        self.answers: list[bytes] = []
        self.failures: list[PeerUnavailableError] = []
        self.malformed = False
        self.held: memoryview | None = None
        self.connection = connection

    def on_answer(self, body: memoryview) -> None:
        if self.malformed:
            raise DecodeError("no such thing")
        self.answers.append(bytes(body))
        if self.connection is not None:
            self.held = body
            self.release = self.connection.hold()

    def on_failure(self, error: PeerUnavailableError) -> None:
        self.failures.append(error)


class World(PeerWorld):
    """One connection to broker 2."""

    def __init__(self, *, is_kept_open: bool = False, receive_bytes: int = 64) -> None:
        super().__init__()
        self.seen = SeenPeers()
        self.observers.add(self.seen)
        self.connection = PeerConnection(
            2, HERE, self.resources, receive_bytes=receive_bytes, is_kept_open=is_kept_open
        )

    def send(self, body: bytes = b"?", timeout_ms: float = 1000, *, hold: bool = False) -> Outcome:
        outcome = Outcome(self.connection if hold else None)
        request = PeerRequest(ApiKey.ALTER_PARTITION, VERSION, body, outcome)
        self.connection.send(request, timeout_ms)
        return outcome

    def accept(self) -> FakeStream:
        return self.connector.connects[-1].accept()


def test_first_request_connects_and_is_sent_once_connected() -> None:
    """Nothing is connected that nobody needs."""
    world = World()
    assert world.connector.connects == []
    outcome = world.send(b"one")
    assert (world.connector.connects[0].host, world.connector.connects[0].port) == (
        "10.0.0.2",
        9092,
    )
    stream = world.accept()
    (request,) = requests_of(stream)
    assert (request.api_key, request.version) == (ApiKey.ALTER_PARTITION, VERSION)
    assert request.rest.endswith(b"one")
    world.receive(stream, answer_to(request, b"answer"))
    assert outcome.answers == [b"answer"]
    assert world.connection.requests == 0


def test_one_timer_is_there_for_all_requests() -> None:
    """It looks when the time of the first one would be over, and at what is left then."""
    world = World()
    outcomes = [world.send(timeout_ms=timeout_ms) for timeout_ms in (100, 1000, 500)]
    stream = world.accept()
    assert world.timer.pending == 1
    for request in requests_of(stream)[:2]:
        world.receive(stream, answer_to(request, b""))
    world.timer.advance(100)
    assert world.timer.pending == 1
    assert outcomes[2].failures == []
    world.timer.advance(399)
    assert outcomes[2].failures == []
    world.receive(stream, b"\0")
    world.timer.advance(1)
    assert [error.sent for error in outcomes[2].failures] == [True]
    assert not stream.closed
    assert world.timer.pending == 0


def test_a_shorter_time_is_looked_at_sooner() -> None:
    world = World()
    later, sooner = world.send(timeout_ms=1000), world.send(timeout_ms=10)
    world.timer.advance(10)
    assert (len(later.failures), len(sooner.failures)) == (0, 1)
    assert world.timer.pending == 2, "the connect, and the other request"


def test_answers_find_their_requests_by_number() -> None:
    """Requests are pipelined; whatever order the answers have, each gets its own."""
    world = World()
    outcomes = [world.send(str(n).encode()) for n in range(3)]
    stream = world.accept()
    sent = requests_of(stream)
    assert len(sent) == 3
    world.receive(stream, *(answer_to(sent[n], str(n).encode() * 100) for n in (2, 0, 1)))
    assert [outcome.answers for outcome in outcomes] == [[str(n).encode() * 100] for n in range(3)]


@given(
    chunks=st.lists(st.integers(1, 300), min_size=1, max_size=50),
    sizes=st.lists(st.integers(0, 9000), min_size=1, max_size=6),
    receive_bytes=st.sampled_from([4, 64, 4096]),
)
def test_answers_come_whole_however_they_arrive(
    chunks: list[int], sizes: list[int], receive_bytes: int
) -> None:
    """Any sizes, cut anywhere; no memory is left charged."""
    world = World(receive_bytes=receive_bytes)
    outcomes = [world.send() for _ in sizes]
    stream = world.accept()
    bodies = [bytes([n]) * size for n, size in enumerate(sizes)]
    data = b"".join(map(answer_to, requests_of(stream), bodies))
    for count in chunks:
        if data[:count]:
            world.receive(stream, data[:count])
        data = data[count:]
    if data:
        world.receive(stream, data)
    while stream.incoming:
        world.poller.readable(stream.fd)
    assert [outcome.answers for outcome in outcomes] == [[body] for body in bodies]
    assert world.buffers.charged == 0


@given(windows=st.lists(st.integers(0, 30), max_size=20))
def test_requests_leave_whole_and_in_order(windows: list[int]) -> None:
    """Through any window of the peer."""
    world = World()
    for n in range(4):
        world.send(bytes([n]) * 20)
    stream = FakeStream()
    stream.window = 0
    world.connector.connects[0]._done(stream)  # the window has to be shut before
    for window in windows:
        stream.window = window
        if stream.fd in world.poller.writers:
            world.poller.writable(stream.fd)
    stream.window = None
    if stream.fd in world.poller.writers:
        world.poller.writable(stream.fd)
    assert [request.rest[-20:] for request in requests_of(stream)] == [
        bytes([n]) * 20 for n in range(4)
    ]
    assert stream.fd not in world.poller.writers


def test_end_fails_what_was_sent_as_unknown() -> None:
    """The peer may have acted on it; what never left is tried on the next connection."""
    world = World()
    sent = world.send(b"sent")
    stream = world.accept()
    stream.window = 0
    unsent = world.send(b"unsent")
    world.receive(stream, b"")
    assert [error.sent for error in sent.failures] == [True]
    assert unsent.failures == []
    assert world.connection.state is State.BACK_OFF
    world.timer.advance(BACK_OFF_FIRST_MS)
    (request,) = requests_of(world.accept())
    assert request.rest.endswith(b"unsent")
    assert world.seen.seen == [
        ("connected", 2, 7),
        ("ended", 2, 7, "NoneType"),
        ("connected", 2, 7),
    ]


def test_request_of_which_a_part_left_is_unknown() -> None:
    """Whether the peer makes sense of a part is the peer's affair: never sent twice."""
    world = World()
    partial = world.send(b"partial")
    stream = FakeStream()
    stream.window = 5
    world.connector.connects[0]._done(stream)
    world.receive(stream, ConnectionResetError(104, "reset"))
    assert [error.sent for error in partial.failures] == [True]
    assert world.connection.requests == 0
    assert world.seen.seen[-1] == ("ended", 2, 7, "ConnectionResetError")


def test_refused_connect_fails_what_waits_as_not_sent() -> None:
    """And tells the observers, once a connect."""
    world = World()
    outcomes = [world.send(), world.send()]
    world.connector.connects[0].refuse()
    assert [[e.sent for e in outcome.failures] for outcome in outcomes] == [[False], [False]]
    assert world.seen.seen == [("refused", 2, 7)]
    assert world.timer.pending == 1, "the back-off alone"


def test_waits_double_until_a_peer_answers() -> None:
    """From 20 to 500 ms; a peer that accepts and ends is spared like one that refuses."""
    world = World(is_kept_open=True)
    waits = []
    for n in range(8):
        before = len(world.connector.connects)
        if n % 2:
            world.receive(world.accept(), b"")
        else:
            world.connector.connects[-1].refuse()
        waited = 0.0
        while len(world.connector.connects) == before:
            world.timer.advance(10)
            waited += 10
        waits.append(waited)
    assert waits == [20, 40, 80, 160, 320, 500, 500, 500]
    assert BACK_OFF_MAX_MS == 500
    stream = world.accept()
    world.send()
    world.receive(stream, answer_to(requests_of(stream)[0], b""), b"")
    world.timer.advance(BACK_OFF_FIRST_MS)
    assert world.connection.state is State.CONNECTING


def test_connect_without_an_answer_ends_in_time() -> None:
    """A blackhole neither accepts nor refuses; it is no evidence of anything."""
    world = World()
    outcome = world.send(timeout_ms=60_000)
    world.timer.advance(CONNECT_TIMEOUT_MS)
    assert world.connector.connects[0].cancelled
    assert [error.sent for error in outcome.failures] == [False]
    assert world.seen.seen == [("unreachable", 2, 7, "TimeoutError")]


def test_silent_peer_loses_its_connection() -> None:
    """Nothing came since the request was sent: what is behind it would wait too."""
    world = World()
    first = world.send(timeout_ms=100)
    second = world.send(timeout_ms=1000)
    stream = world.accept()
    world.timer.advance(100)
    assert [error.sent for error in first.failures] == [True]
    assert [error.sent for error in second.failures] == [True]
    assert stream.closed
    assert stream.fd not in world.poller.readers
    assert world.seen.seen == [("connected", 2, 7)], "our own end is no evidence"


def test_slow_answer_is_dropped_and_the_others_come() -> None:
    """A peer that answers at all keeps its connection."""
    world = World()
    slow = world.send(timeout_ms=100)
    quick = world.send(timeout_ms=1000)
    stream = world.accept()
    sent = requests_of(stream)
    world.timer.advance(50)
    world.receive(stream, answer_to(sent[1], b"quick"))
    world.timer.advance(50)
    assert [error.sent for error in slow.failures] == [True]
    assert not stream.closed
    world.receive(stream, answer_to(sent[0], b"slow"))
    assert (slow.answers, quick.answers) == ([], [b"quick"])
    assert world.connection.requests == 0


def test_request_that_could_not_be_sent_in_time_was_not_sent() -> None:
    """And it does not leave later."""
    world = World()
    outcome = world.send(timeout_ms=100)
    world.timer.advance(100)
    assert [error.sent for error in outcome.failures] == [False]
    assert requests_of(world.accept()) == []


def test_more_requests_than_allowed_are_refused() -> None:
    """Bounded in number and bytes; nothing of them is kept."""
    world = World()
    outcomes = [world.send(timeout_ms=10) for _ in range(REQUESTS_MAX)]
    refused = world.send()
    assert [error.sent for error in refused.failures] == [False]
    assert not any(outcome.failures for outcome in outcomes)
    world.timer.advance(10)
    assert world.connection.requests == 0
    big = world.send(bytes(20 * 1024 * 1024))
    too_much = world.send(bytes(20 * 1024 * 1024))
    assert (len(big.failures), len(too_much.failures)) == (0, 1)


@pytest.mark.parametrize(
    "bad", [b"\x00\x00\x00\x04\x00\x00\x03\xe7", b"\x7f\xff\xff\xff", b"\0\0\0\1"]
)
def test_answer_that_is_none_ends_the_connection(bad: bytes) -> None:
    """An unknown number, or a size that no answer has."""
    world = World()
    outcome = world.send()
    stream = world.accept()
    world.receive(stream, bad)
    assert stream.closed
    assert [error.sent for error in outcome.failures] == [True]


def test_malformed_answer_ends_the_connection() -> None:
    """Its request fails, outcome unknown, and so does what is behind it."""
    world = World()
    outcome = world.send()
    outcome.malformed = True
    behind = world.send()
    stream = world.accept()
    world.receive(stream, answer_to(requests_of(stream)[0], b""))
    assert [error.sent for error in outcome.failures] == [True]
    assert [error.sent for error in behind.failures] == [True]
    assert stream.closed
    assert world.buffers.charged == 0


def test_receiver_that_fails_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """It is not left half read: the next one works."""

    class Broken(Outcome):
        def on_answer(self, body: memoryview) -> None:
            raise KeyError("not there")

    world = World()
    world.connection.send(PeerRequest(ApiKey.ALTER_PARTITION, VERSION, b"", Broken()), 1000)
    stream = world.accept()
    world.receive(stream, answer_to(requests_of(stream)[0], b""))
    assert stream.closed
    assert "answer not handled" in caplog.text
    world.timer.advance(BACK_OFF_FIRST_MS)
    outcome = world.send()
    stream = world.accept()
    world.receive(stream, answer_to(requests_of(stream)[0], b"ok"))
    assert outcome.answers == [b"ok"]


def test_held_answer_stays_until_it_is_released() -> None:
    """Nothing is received meanwhile, so that nothing overwrites it."""
    world = World(receive_bytes=4096)
    outcome = world.send(hold=True)
    stream = world.accept()
    world.receive(stream, answer_to(requests_of(stream)[0], b"x" * 3000))
    again = world.send()
    world.receive(stream, answer_to(requests_of(stream)[0], b"y" * 3000))
    assert stream.fd not in world.poller.readers
    assert not again.answers
    assert outcome.held is not None
    assert bytes(outcome.held) == b"x" * 3000
    outcome.release()
    world.poller.readable(stream.fd)
    assert again.answers == [b"y" * 3000]


def test_connection_stays_watched_while_nothing_comes_behind_a_held_answer() -> None:
    """A follower asks for the next records when it has these: twice a call of the system less."""
    world = World(receive_bytes=4096)
    outcome = world.send(hold=True)
    stream = world.accept()
    world.receive(stream, answer_to(requests_of(stream)[0], b"x"))
    assert stream.fd in world.poller.readers
    outcome.release()
    assert stream.fd in world.poller.readers


def test_answer_that_does_not_fill_the_buffer_is_received_once() -> None:
    """There is no more then: to ask again costs a call of the system a record, at each follower."""
    world = World(receive_bytes=4096)
    world.send()
    stream = world.accept()
    for count in range(1, 4):
        world.receive(stream, answer_to(requests_of(stream)[0], b"x" * 2000))
        assert stream.receives == count
        world.send()


def test_answer_that_comes_in_parts_is_waited_for_in_large_ones() -> None:
    """Once it is whole any byte counts again."""
    size = 200_000
    world = World(receive_bytes=64)
    outcome = world.send()
    stream = world.accept()
    data = answer_to(requests_of(stream)[0], b"x" * size)
    world.receive(stream, data[:64])
    assert stream.expected == len(data) - 64
    world.receive(stream, data[64 : -EXPECTED_MIN + 1])
    assert stream.expected == EXPECTED_MIN - 1
    assert not outcome.answers
    world.receive(stream, data[-EXPECTED_MIN + 1 :])
    assert outcome.answers == [b"x" * size]
    assert stream.expected == 0


@given(
    held=st.lists(st.booleans(), min_size=2, max_size=6),
    sizes=st.lists(st.integers(0, 300), min_size=6, max_size=6),
    cuts=st.lists(st.integers(1, 500), max_size=8),
    receive_bytes=st.sampled_from([16, 128, 4096]),
)
def test_answers_behind_a_held_one_come_when_it_is_released(
    held: list[bool], sizes: list[int], cuts: list[int], receive_bytes: int
) -> None:
    """Whole or in part, in order, each unchanged while it is held, and none before."""
    world = World(receive_bytes=receive_bytes)
    outcomes = [world.send(hold=hold, timeout_ms=1e6) for hold in held]
    stream = world.accept()
    bodies = [bytes([n + 1]) * size for n, size in enumerate(sizes[: len(held)])]
    data = b"".join(map(answer_to, requests_of(stream), bodies))
    for count in [*cuts, len(data)]:
        if data[:count]:
            stream.incoming.append(data[:count])
        data = data[count:]
    released = 0
    for n, outcome in enumerate(outcomes):
        while not outcome.answers:
            assert stream.fd in world.poller.readers
            world.poller.readable(stream.fd)
        if held[n]:
            assert not any(later.answers for later in outcomes[n + 1 :])
            assert outcome.held is not None
            assert bytes(outcome.held) == bodies[n]
            released += 1
            outcome.release()
    assert [outcome.answers for outcome in outcomes] == [[body] for body in bodies]
    assert released == sum(held)
    assert world.buffers.charged == 0
    assert stream.fd in world.poller.readers
    assert not stream.closed


def test_held_answer_outlives_its_connection() -> None:
    """A connection that moves meanwhile receives elsewhere."""
    world = World()
    outcome = world.send(hold=True)
    stream = world.accept()
    world.receive(stream, answer_to(requests_of(stream)[0], b"x" * 9000))
    while stream.incoming:
        world.poller.readable(stream.fd)
    world.connection.move_to(PeerEndpoint("10.0.0.2", 9092, epoch=8))
    world.send()
    other = world.connector.connects[-1].accept(fd=101)
    world.receive(other, answer_to(requests_of(other)[0], b"y"))
    assert outcome.held is not None
    assert bytes(outcome.held) == b"x" * 9000
    charged = world.buffers.charged
    outcome.release()
    assert world.buffers.charged < charged
    assert other.fd in world.poller.readers
    assert stream.fd not in world.poller.readers


def test_new_life_of_a_peer_gets_a_new_connection() -> None:
    """What was in flight to the old one is unknown; what waited goes to the new one."""
    world = World()
    sent = world.send(b"sent")
    stream = world.accept()
    stream.window = 0
    waits = world.send(b"waits")
    world.connection.move_to(HERE)
    assert not stream.closed, "the same endpoint"
    world.connection.move_to(PeerEndpoint("10.0.0.3", 9092, epoch=8))
    assert stream.closed
    assert [error.sent for error in sent.failures] == [True]
    assert waits.failures == []
    assert world.connector.connects[-1].host == "10.0.0.3"
    (request,) = requests_of(world.accept())
    assert request.rest.endswith(b"waits")
    assert world.seen.seen[-1] == ("connected", 2, 8)


def test_peer_that_left_the_image_is_not_asked() -> None:
    """What waited fails, what comes fails at once, and no connect is left."""
    world = World(is_kept_open=True)
    waits = world.send()
    world.connection.move_to(None)
    assert world.connector.connects[-1].cancelled
    assert [error.sent for error in waits.failures] == [False]
    assert [error.sent for error in world.send().failures] == [False]
    world.timer.advance(10_000)
    assert len(world.connector.connects) == 1
    world.connection.move_to(HERE)
    assert len(world.connector.connects) == 2


def test_closed_connection_stays_closed() -> None:
    """All that was under way fails, no timer is left, nothing connects again."""
    world = World(is_kept_open=True)
    outcome = world.send()
    stream = world.accept()
    world.connection.close()
    world.connection.close()
    assert stream.closed
    assert [error.sent for error in outcome.failures] == [True]
    assert [error.sent for error in world.send().failures] == [False]
    world.connection.move_to(PeerEndpoint("10.0.0.3", 9092, epoch=9))
    assert world.timer.pending == 0
    assert len(world.connector.connects) == 1


def test_failed_request_may_be_sent_again_from_its_failure() -> None:
    """A receiver that tries again at once waits for the next connection, not in a circle."""
    world = World()
    again = Outcome()

    class Again(Outcome):
        def on_failure(self, error: PeerUnavailableError) -> None:
            super().on_failure(error)
            world.connection.send(PeerRequest(ApiKey.ALTER_PARTITION, VERSION, b"", again), 1000)

    first = Again()
    world.connection.send(PeerRequest(ApiKey.ALTER_PARTITION, VERSION, b"", first), 1000)
    world.connector.connects[0].refuse()
    assert len(first.failures) == 1
    assert again.failures == []
    world.timer.advance(BACK_OFF_FIRST_MS)
    stream = world.accept()
    world.receive(stream, answer_to(requests_of(stream)[0], b"at last"))
    assert again.answers == [b"at last"]


def test_memory_of_answers_is_the_pool_s() -> None:
    """Fixed here so that a limit of the pool is not taken for one of the connection."""
    assert isinstance(World().buffers, ReceiveBuffers)
