"""Frames are found however they are cut; answers leave in the order of their requests."""

import dataclasses
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.connection import (
    QUEUED_BYTES_MAX,
    QUEUED_BYTES_SHARE,
    QUEUED_PIECES_MAX,
    UNANSWERED_MAX,
    Connection,
)
from broker.network.iteration_end import IterationEnd
from broker.network.read_budget import ReadBudget
from broker.network.read_gate import PAUSED_BY_CHANNEL
from broker.network.request_channel import RequestChannel
from tests.code_path import python_only
from tests.unit.broker.network.harness import SHARED_SIZE, Harness, frame


def test_several_frames_in_one_receive_are_answered_with_one_send() -> None:
    h = Harness()
    h.receive(frame(b"request1") + frame(b"request2"))
    assert h.router.seen == [b"request1", b"request2"]
    assert bytes(h.stream.sent) == b"<request1><request2>"
    assert h.stream.sends == 1


@given(
    payloads=st.lists(st.binary(min_size=8, max_size=3 * SHARED_SIZE), min_size=1, max_size=6),
    cuts=st.lists(st.integers(min_value=1, max_value=SHARED_SIZE), min_size=1, max_size=50),
)
def test_frames_survive_any_cutting(payloads: list[bytes], cuts: list[int]) -> None:
    """Whole frames come out, in order, whatever pieces the network delivers."""
    payloads = [b"E" + p[1:] for p in payloads]
    h = Harness()
    data = b"".join(frame(p) for p in payloads)
    at = 0
    for i in range(len(data)):
        size = cuts[i % len(cuts)]
        h.receive(data[at : at + size])
        at += size
        if at >= len(data):
            break
    assert h.router.seen == payloads
    assert bytes(h.stream.sent) == b"".join(b"<" + p + b">" for p in payloads)
    assert h.buffers.charged == 0


class FullAtTimes(RequestChannel):
    """Refuses as often as it was told to, and has whoever was refused try again."""

    refusals = 0
    later: Callable[..., None]

    def offer(self, connection: Connection, frame: memoryview) -> bool:
        if self.refusals:
            self.refusals -= 1
            self.later(connection.resume, PAUSED_BY_CHANNEL)
            return False
        return super().offer(connection, frame)


class Paused(Harness):
    """Every reason to pause; turns of the loop come when the test says so.

    Handlers write over what they were given, as the log does with offsets of produced batches.
    """

    def __init__(self, turn: Callable[[int], int]) -> None:
        super().__init__()
        self.pick = turn
        self.soon: deque[Callable[[], object]] = deque()
        self.poller.call_soon = self._later  # type: ignore[method-assign]  # why: turns by hand
        self.full = FullAtTimes(capacity=4, worker_count=1, memory=self.buffers)
        self.full.later = self._later
        self.full.connect(self.router)
        self.processor.channel = self.full
        self.processor.resources = dataclasses.replace(
            self.resources,
            iteration_end=IterationEnd(self._later, self.clock),
            read_budget=ReadBudget(self._later, self.clock),
        )
        handle = self.router.handle

        def overwrite(connection: Connection, data: memoryview) -> None:
            self.clock.advance(0.3)
            handle(connection, data)
            data[:] = bytes(len(data))

        self.router.handle = overwrite  # type: ignore[method-assign,assignment]  # why: as said

    def _later(self, callback: Callable[..., object], *args: object) -> None:
        self.soon.append(lambda: callback(*args))

    def step(self) -> None:
        """One thing that may happen next; meanwhile others receive into the shared buffer."""
        self.resources.receive_buffer[:] = bytes(SHARED_SIZE)
        kind = self.pick(6)
        if kind == 0:
            self.full.refusals += 1
        elif kind == 1 and self.reading:
            self.connection.defer_read()
            self._later(self.connection.read_deferred)
        elif kind == 2 and self.router.parked:
            data, slot = self.router.parked.pop(self.pick(len(self.router.parked)))
            if self.pick(2):
                self.connection.gather_answers()
            slot.complete([b"<" + data + b">"])
        elif kind == 3 and self.soon:
            self.soon.popleft()()
        elif self.reading and self.stream.incoming:
            self.poller.readable(self.stream.fd)

    def finish(self) -> None:
        while self.stream.incoming or self.soon or self.router.parked:
            if self.reading and self.stream.incoming:
                self.poller.readable(self.stream.fd)
            elif self.soon:
                self.soon.popleft()()
            else:
                data, slot = self.router.parked.pop()
                self.connection.gather_answers()
                slot.complete([b"<" + data + b">"])
            self.resources.receive_buffer[:] = bytes(SHARED_SIZE)


@python_only
@given(
    data=st.data(),
    sizes=st.lists(st.integers(min_value=8, max_value=2 * SHARED_SIZE), min_size=1, max_size=8),
    small=st.integers(min_value=0, max_value=2 * UNANSWERED_MAX),
    steps=st.integers(min_value=0, max_value=80),
)
def test_whatever_pauses_it_each_request_is_handled_once_and_answered_in_order(
    data: st.DataObject, sizes: list[int], small: int, steps: int
) -> None:
    def pick(count: int) -> int:
        return data.draw(st.integers(min_value=0, max_value=count - 1))

    all_sizes = [size for one in sizes for size in (one, *[8] * (small // len(sizes)))]
    payloads = [
        b"EP"[number % 3 == 1 :][:1] + (b"%07d" % number) + b"x" * (size - 8)
        for number, size in enumerate(all_sizes)
    ]
    h = Paused(pick)
    h.stream.incoming.append(b"".join(frame(payload) for payload in payloads))
    for _ in range(steps):
        h.step()
    h.finish()
    assert h.router.seen == payloads
    assert bytes(h.stream.sent) == b"".join(b"<" + p + b">" for p in payloads)
    assert (h.buffers.charged, h.responses.held) == (0, 0)
    assert h.connection.quiet
    assert h.reading


@pytest.mark.parametrize("size", [-1, 0, 7, (1 << 20) + 1, 2**31 - 1])
def test_impossible_sizes_close_the_connection(size: int) -> None:
    """The size is refused before any memory is taken for it."""
    h = Harness()
    h.receive(size.to_bytes(4, "big", signed=True))
    assert h.stream.closed
    assert h.closed[0] is not None
    assert str(size) in h.closed[0]


def test_announced_bytes_are_not_charged() -> None:
    """Memory is counted by what arrived, not by what was announced."""
    h = Harness()
    h.receive((1 << 20).to_bytes(4, "big") + b"only these")
    assert h.buffers.charged == len(b"only these")
    h.connection.close(None)
    assert h.buffers.charged == 0


def test_answers_that_come_later_are_a_sign_of_life() -> None:
    """Those of the turn in which their requests were received have been noted with these."""
    h = Harness()
    h.clock.advance(1_000)
    h.receive(frame(b"request1"))
    received_ms = h.connection.last_active_ms
    assert received_ms == h.clock.monotonic_ms()
    h.receive(frame(b"Parked 1"))
    h.clock.advance(5_000)
    h.router.parked[0][1].complete([b"later"])
    assert h.connection.last_active_ms == received_ms + 5_000 == h.clock.monotonic_ms()


def test_the_last_request_of_a_receive_is_told_from_the_others() -> None:
    """What its handler does at once may be too early where more of them follow."""
    h = Harness()
    last: list[bool] = []
    handle = h.router.handle

    def noting(connection: Connection, data: memoryview) -> None:
        last.append(connection.is_last)
        handle(connection, data)

    h.router.handle = noting  # type: ignore[method-assign,assignment]  # why: to look at the connection meanwhile
    h.receive(frame(b"request1") + frame(b"request2"))
    assert last == [False, True]
    h.receive(frame(b"request3"))
    assert last == [False, True, True]
    assert not h.connection.is_last


def test_answers_wait_for_those_before_them() -> None:
    h = Harness()
    h.receive(frame(b"P-first.") + frame(b"second..") + frame(b"P-third.") + frame(b"fourth.."))
    assert bytes(h.stream.sent) == b""
    (_, first), (_, third) = h.router.parked
    third.complete([b"3"])
    assert bytes(h.stream.sent) == b""
    first.complete([b"1"])
    assert bytes(h.stream.sent) == b"1<second..>3<fourth..>"


def test_a_request_without_answer_leaves_no_gap() -> None:
    h = Harness()
    h.receive(frame(b"P-first.") + frame(b"second.."))
    h.router.parked[0][1].complete(None)
    assert bytes(h.stream.sent) == b"<second..>"


def test_gathered_answers_leave_in_one_send_at_the_end_of_the_turn() -> None:
    """One that was not asked to wait goes with them: the order of answers is that of requests."""
    h = Harness()
    h.receive(frame(b"P-first.") + frame(b"P-second") + frame(b"P-third."))
    first, second, third = (slot for _, slot in h.router.parked)

    def answer() -> None:
        h.connection.gather_answers()
        second.complete([b"2"])
        h.connection.gather_answers()
        first.complete([b"1"])
        third.complete([b"3"])
        assert bytes(h.stream.sent) == b""

    before = h.stream.sends
    h.poller.call_soon(answer)
    assert bytes(h.stream.sent) == b"123"
    assert h.stream.sends == before + 1
    assert h.connection.quiet


def test_requests_that_come_before_the_end_of_the_turn_take_the_answers_along() -> None:
    h = Harness()
    h.receive(frame(b"P-first."))
    ((_, slot),) = h.router.parked

    def answer() -> None:
        h.connection.gather_answers()
        slot.complete([b"1"])
        h.stream.incoming.append(frame(b"second.."))
        h.connection.on_readable()
        assert bytes(h.stream.sent) == b"1<second..>"

    h.poller.call_soon(answer)
    assert bytes(h.stream.sent) == b"1<second..>"
    h.receive(frame(b"third..."))
    assert bytes(h.stream.sent) == b"1<second..><third...>"


def test_a_connection_that_closes_before_the_end_of_the_turn_sends_nothing() -> None:
    h = Harness()
    h.receive(frame(b"P-first."))
    ((_, slot),) = h.router.parked

    def answer() -> None:
        h.connection.gather_answers()
        slot.complete([b"1"])
        h.connection.close(None)
        h.connection.gather_answers()

    h.poller.call_soon(answer)
    assert bytes(h.stream.sent) == b""


def test_requests_before_one_that_closes_the_connection_are_answered() -> None:
    """Came they together or not: a client that sends a broken one knows what became of the rest."""
    h = Harness()
    handle = h.router.handle

    def refuse_some(connection: Connection, data: memoryview) -> None:
        if bytes(data) == b"broken..":
            connection.close("malformed request")
        else:
            handle(connection, data)

    h.router.handle = refuse_some  # type: ignore[method-assign,assignment]  # why: closes for one
    h.receive(frame(b"first...") + frame(b"second..") + frame(b"broken..") + frame(b"fourth.."))
    assert h.stream.closed
    assert bytes(h.stream.sent) == b"<first...><second..>"
    assert h.router.seen == [b"first...", b"second.."]
    assert h.processor.traffic.sent == len(h.stream.sent)


def test_requests_before_an_impossible_size_are_answered() -> None:
    h = Harness()
    h.receive(frame(b"first...") + b"\xff\xff\xff\xff")
    assert h.stream.closed
    assert bytes(h.stream.sent) == b"<first...>"


def test_too_many_unanswered_requests_stop_the_reading() -> None:
    """The rest stays in the socket, and is handled when answers have left."""
    h = Harness()
    total = UNANSWERED_MAX + 10
    for _ in range(total):
        h.stream.incoming.append(frame(b"P-parked"))
    while h.stream.incoming and h.reading:
        h.poller.readable(h.stream.fd)
    assert len(h.router.seen) == UNANSWERED_MAX
    assert not h.reading
    h.router.parked[0][1].complete([b"x"])
    assert h.reading
    h.poller.readable(h.stream.fd)
    assert len(h.router.seen) == UNANSWERED_MAX + 1


def test_bytes_received_before_a_pause_are_handled_after_it() -> None:
    h = Harness()
    many = b"".join(frame(b"P%07d" % i) for i in range(UNANSWERED_MAX + 5))
    h.receive(*[many[i : i + SHARED_SIZE] for i in range(0, len(many), SHARED_SIZE)])
    assert len(h.router.seen) == UNANSWERED_MAX
    for _ in range(3):
        for _, slot in list(h.router.parked):
            slot.complete([b"."])
        while h.stream.incoming and h.reading:
            h.poller.readable(h.stream.fd)
    assert len(h.router.seen) == UNANSWERED_MAX + 5
    assert h.router.seen == sorted(h.router.seen)


def test_a_slow_reader_is_served_when_it_takes_more() -> None:
    h = Harness()
    h.stream.window = 5
    h.receive(frame(b"request1"))
    assert bytes(h.stream.sent) == b"<requ"
    assert h.stream.fd in h.poller.writers
    h.stream.window = None
    h.poller.writable(h.stream.fd)
    assert bytes(h.stream.sent) == b"<request1>"
    assert h.stream.fd not in h.poller.writers


def test_a_reader_that_takes_nothing_stops_its_own_requests() -> None:
    """Response bytes of one connection are bounded."""
    h = Harness()
    h.stream.window = 0
    big = b"E" * (SHARED_SIZE - 4)
    for _ in range(3000):
        h.stream.incoming.append(frame(big))
    turns = 0
    while h.reading and h.stream.incoming:
        h.poller.readable(h.stream.fd)
        turns += 1
    assert turns < 1100
    assert not h.reading
    h.stream.window = None
    while h.stream.incoming or h.stream.fd in h.poller.writers:
        if h.stream.fd in h.poller.writers:
            h.poller.writable(h.stream.fd)
        if h.reading and h.stream.incoming:
            h.poller.readable(h.stream.fd)
    assert len(h.router.seen) == 3000
    assert len(h.stream.sent) == 3000 * (len(big) + 2)


def test_peer_closing_abandons_what_is_under_way() -> None:
    """A parked request learns that nobody waits for it any more; nothing is logged."""
    h = Harness()
    h.receive(frame(b"P-parked"))
    abandoned: list[bool] = []
    slot = h.router.parked[0][1]
    slot.on_abandoned = lambda: abandoned.append(True)
    h.receive(b"")
    assert h.stream.closed
    assert abandoned == [True]
    assert h.closed == [None]
    slot.complete([b"too late"])
    assert bytes(h.stream.sent) == b""


def test_reset_by_peer_is_one_reason_not_an_exception() -> None:
    h = Harness()
    h.stream.incoming.append(ConnectionResetError(104, "Connection reset by peer"))
    h.poller.readable(h.stream.fd)
    assert h.closed == ["receive failed: Connection reset by peer"]


def test_failing_send_closes() -> None:
    h = Harness()
    h.stream.fail_sends = BrokenPipeError(32, "Broken pipe")
    h.receive(frame(b"request1"))
    assert h.closed == ["send failed: Broken pipe"]
    assert not h.processor.connections


def test_answers_that_wait_for_an_earlier_one_count_as_held() -> None:
    """Behind one long poll, a client could have gigabytes of answers made and kept."""
    h = Harness()
    h.receive(frame(b"P-first."))
    big = b"E" * 2000
    for _ in range(QUEUED_BYTES_MAX // 2000 + 100):
        h.stream.incoming.append(frame(big))
    while h.stream.incoming and h.reading:
        h.poller.readable(h.stream.fd)
    assert not h.reading
    assert h.connection.held_bytes <= QUEUED_BYTES_MAX + 5000
    assert h.responses.held == h.connection.held_bytes
    h.router.parked[0][1].complete([b"first"])
    while h.stream.incoming:
        h.poller.readable(h.stream.fd)
    assert h.stream.sent.startswith(b"first<EEE")
    assert h.responses.held == 0


def test_many_small_answers_to_a_slow_reader_are_bounded() -> None:
    """Ten bytes on the wire are a hundred in memory."""
    h = Harness()
    h.stream.window = 0
    for _ in range(2 * QUEUED_PIECES_MAX):
        h.stream.incoming.append(frame(b"request!"))
    while h.stream.incoming and h.reading:
        h.poller.readable(h.stream.fd)
    assert not h.reading
    assert len(h.router.seen) <= QUEUED_PIECES_MAX + 400


def test_slow_readers_together_hold_less_each() -> None:
    h = Harness(responses_max=1)
    h.stream.window = 0
    big = b"E" * 3000
    for _ in range(1000):
        h.stream.incoming.append(frame(big))
    while h.stream.incoming and h.reading:
        h.poller.readable(h.stream.fd)
    assert not h.reading
    assert QUEUED_BYTES_SHARE <= h.responses.held <= QUEUED_BYTES_SHARE + 5000
    h.connection.close(None)
    assert h.responses.held == 0


def test_bytes_put_aside_are_charged() -> None:
    """What was received and cannot be handled yet is memory like any other."""
    h = Harness()
    many = frame(b"P-parked") * (UNANSWERED_MAX + 50)
    h.receive(*[many[i : i + SHARED_SIZE] for i in range(0, len(many), SHARED_SIZE)])
    assert h.buffers.charged > 0
    for _, slot in list(h.router.parked):
        slot.complete([b"."])
    assert h.buffers.charged == 0
    h.receive(frame(b"P-parked") * (UNANSWERED_MAX + 10))
    h.connection.close(None)
    assert h.buffers.charged == 0


def test_a_large_request_that_closes_its_connection_is_charged_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is set at a socket that is closed: that would raise before the memory is back."""
    h = Harness()
    monkeypatch.setattr(h.router, "handle", lambda connection, _frame: connection.close("refused"))
    whole = frame(b"E" * 300_000)
    h.receive(whole[:1000], whole[1000:])
    assert h.closed == ["refused"]
    assert h.stream.expected > 0
    assert h.buffers.charged == 0


def test_no_memory_for_a_frame_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """vm.max_map_count or ulimit -v are reached: one connection goes, the loop does not see it."""

    def refuse(_size: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    h = Harness()
    monkeypatch.setattr("broker.network.receive_buffers.mmap.mmap", lambda *_: refuse(0))
    h.receive((100_000).to_bytes(4, "big") + b"begin")
    assert h.stream.closed
    assert "Cannot allocate memory" in str(h.closed[0])


def test_after_stop_reading_only_what_is_under_way_ends() -> None:
    h = Harness()
    h.receive(frame(b"P-first."))
    h.processor.stop_reading()
    assert not h.reading
    h.router.parked[0][1].complete([b"1"])
    assert bytes(h.stream.sent) == b"1"
    assert not h.reading
    assert h.connection.quiet


def test_many_requests_in_one_receive_let_others_have_a_turn() -> None:
    """256 KiB of tiny requests would keep the loop for half a second."""
    h = Harness()
    turns: list[int] = []
    call_soon = h.poller.call_soon
    handle = h.router.handle

    def slow(connection: Connection, data: memoryview) -> None:
        h.clock.advance(1)
        handle(connection, data)

    def noted(callback: Callable[..., object], *args: object) -> object:
        turns.append(len(h.router.seen))
        return call_soon(callback, *args)

    h.router.handle = slow  # type: ignore[assignment,method-assign]  # why: the same, with a cost
    h.poller.call_soon = noted  # type: ignore[assignment,method-assign]  # why: the same, noted
    names = [b"E%07d" % i for i in range(100)]
    h.receive(b"".join(frame(name) for name in names))
    assert h.router.seen == names
    assert len(turns) >= 5
    assert max(b - a for a, b in zip([0, *turns], turns, strict=False)) <= 24
    assert h.stream.sends == len(turns) + 1
    assert h.reading
    assert h.buffers.charged == 0
