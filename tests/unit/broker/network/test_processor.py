"""Idle connections go; memory that has come free is given to who waits for it."""

from broker.network.connection import UNANSWERED_MAX
from broker.request import ConnectionInfo
from tests.fakes.network import FakeStream
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


def test_used_up_memory_pauses_and_a_stalled_frame_gives_way() -> None:
    """`queued.max.request.bytes`: unfinished frames may hold that much, then reading stops."""
    h = Harness(limit=100)
    h.receive((5000).to_bytes(4, "big") + b"x" * 200)
    assert not h.reading
    h.processor.sweep(600_000)
    assert not h.stream.closed
    h.clock.advance(10_001)
    h.processor.sweep(600_000)
    assert h.stream.closed
    assert h.buffers.charged == 0


def test_waiters_go_on_when_memory_is_free_again() -> None:
    h = Harness(limit=100)
    h.receive((5000).to_bytes(4, "big") + b"x" * 200)
    h.buffers.limit = 1000
    h.processor.sweep(600_000)
    assert h.reading


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
