"""Idle connections go; memory that has come free is given to who waits for it."""

from collections import deque
from collections.abc import Callable

from broker.network.connection import UNANSWERED_MAX, Connection
from broker.network.connection_info import ConnectionInfo
from broker.network.processor import TIME_LIMIT_MS
from broker.network.read_budget import BUDGET_MS
from tests.fakes.network.sockets import FakeStream
from tests.unit.broker.network.harness import Harness, frame


def test_idle_connections_are_closed() -> None:
    h = Harness()
    h.clock.advance(600_001)
    h.processor.sweep(600_000)
    assert h.stream.closed


def test_a_connection_with_work_under_way_is_not_idle() -> None:
    """A consumer that waits in a long poll is not thrown out."""
    h = Harness()
    h.receive(frame(b"P-parked"))
    h.clock.advance(600_001)
    h.processor.sweep(600_000)
    assert not h.stream.closed


def test_negative_idle_time_means_never() -> None:
    h = Harness()
    h.clock.advance(10**9)
    h.processor.sweep(-1)
    assert not h.stream.closed


def test_a_stalled_frame_gives_way_while_memory_is_used_up() -> None:
    """`queued.max.request.bytes`: unfinished frames may hold that much."""
    h = Harness(limit=100)
    h.receive((5000).to_bytes(4, "big") + b"x" * 200)
    h.processor.sweep(600_000)
    assert not h.stream.closed
    h.clock.advance(10_001)
    h.processor.sweep(600_000)
    assert h.stream.closed
    assert h.buffers.charged == 0


def test_a_stalled_frame_may_stay_while_memory_is_left() -> None:
    h = Harness(limit=1000)
    h.receive((5000).to_bytes(4, "big") + b"x" * 200)
    h.clock.advance(10_001)
    h.processor.sweep(600_000)
    assert not h.stream.closed


def test_who_takes_no_answers_while_memory_is_short_is_closed() -> None:
    """The bound over all slow readers holds although each has a share."""
    h = Harness(responses_max=10)
    h.stream.window = 0
    h.receive(frame(b"request1") + frame(b"request2"))
    h.clock.advance(9_999)
    h.processor.sweep(600_000)
    assert not h.stream.closed
    h.clock.advance(2)
    h.processor.sweep(600_000)
    assert h.stream.closed
    assert h.responses.held == 0


def test_a_peer_that_leaves_while_nobody_reads_is_noticed() -> None:
    """Behind a long poll, a full backlog would otherwise be kept for a client that has gone."""
    h = Harness()
    for _ in range(UNANSWERED_MAX):
        h.stream.incoming.append(frame(b"P-parked"))
    while h.stream.incoming:
        h.poller.readable(h.stream.fd)
    assert not h.reading
    h.processor.sweep(600_000)
    assert not h.stream.closed
    h.stream.peer_gone = True
    h.processor.sweep(600_000)
    assert h.stream.closed
    assert all(slot.done for _, slot in h.router.parked)


def test_what_a_peer_sent_before_it_left_is_read_when_its_turn_comes() -> None:
    """A producer without acknowledgements may send its last records and go."""
    h = Harness()
    h.connection.defer_read()
    h.stream.incoming += [frame(b"the last"), b""]
    h.stream.peer_gone = True
    h.processor.sweep(-1)
    assert not h.stream.closed
    h.connection.read_deferred()
    assert h.router.seen == [b"the last"]
    h.poller.readable(h.stream.fd)
    assert h.stream.closed


def test_a_peer_that_is_read_is_not_asked() -> None:
    """Its end comes in order, behind the requests it has sent."""
    h = Harness()
    h.stream.peer_gone = True
    h.processor.sweep(600_000)
    assert not h.stream.closed


def test_a_newcomers_first_request_is_not_waited_for() -> None:
    """It lies in the socket already when the connection is accepted."""
    h = Harness()
    stream = FakeStream(fd=101)
    stream.incoming.append(frame(b"request1"))
    h.processor.add(stream, ConnectionInfo("PLAINTEXT", "127.0.0.1"))
    assert bytes(stream.sent) == b"<request1>"


def test_many_busy_connections_have_shorter_turns() -> None:
    """Forty that each have a hundred requests more: who asks for one thing waits for a round."""
    h = Harness()
    rounds: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
    handle = h.router.handle

    def costly(connection: Connection, data: memoryview) -> None:
        h.clock.advance(0.02)
        handle(connection, data)

    def later(callback: Callable[..., object], *args: object) -> None:
        rounds.append((callback, args))

    h.router.handle = costly  # type: ignore[assignment,method-assign]  # why: the same, with a cost
    h.poller.call_soon = later  # type: ignore[method-assign]  # why: turns are counted here
    requests = b"".join(frame(b"E%07d" % number) for number in range(200))
    busy = [FakeStream() for _ in range(40)]
    for stream in busy:
        stream.incoming.append(requests)
        h.processor.add(stream, ConnectionInfo("PLAINTEXT", "127.0.0.1"))
    assert len(rounds) == 40
    longest_ms = 0.0
    while rounds:
        began_ms = h.clock.monotonic_ms()
        for _ in range(len(rounds)):
            callback, args = rounds.popleft()
            callback(*args)
        longest_ms = max(longest_ms, h.clock.monotonic_ms() - began_ms)
    assert len(h.router.seen) == 40 * 200
    # The smallest turn is eight requests.
    assert BUDGET_MS < longest_ms <= 2 * BUDGET_MS
    assert h.processor.time_limit_ms == TIME_LIMIT_MS
