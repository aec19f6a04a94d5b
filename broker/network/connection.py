"""One client connection: frames in, responses out, in order.

    socket ─recv_into─> FrameReader.buffer ──whole frames──> request channel ──> handler
                          │ a frame that is not whole yet                           │
                          └> ReceiveBuffer of its own                               v
    socket <──Sender── responses, in the order of their requests <──────── ResponseSlot

Answers that are given while requests are being handled leave in one send when the last of them has
been; so do, at the end of the event loop iteration, those given later by a caller that asks for it
first (`gather_answers`, `broker.network.iteration_end`). Other late answers leave at once.

How bytes become frames is `protocol.framing`'s; why the socket is not read for a while is
`broker.network.read_gate`'s. Frames that had been received before the pause wait in the reader: at
most one shared buffer's worth, or a whole frame that the channel did not take. Both are charged
like any other received bytes.

A frame's memoryview is valid until the handler returns or first awaits: a handler that needs it
longer copies it, or asks `keep` for a frame that has memory of its own. Requests of one connection
start in order and are answered in order; several may be under way (Kafka allows one).
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from broker.network.connection_info import ConnectionInfo
from broker.network.loop_resources import LoopResources
from broker.network.read_gate import (
    PAUSED_BY_BACKLOG,
    PAUSED_BY_CHANNEL,
    PAUSED_BY_DISK,
    PAUSED_BY_READ_BUDGET,
    PAUSED_BY_TIME_LIMIT,
    GateState,
    ReadGate,
)
from broker.network.receive_buffers import SMALL_SIZE_MAX, ReceiveBuffer
from broker.network.response import Pieces, ResponseSlot, bytes_of
from broker.network.sender import Sender
from broker.network.stream import Stream
from protocol.framing import FrameReader

if TYPE_CHECKING:
    from storage.types.file_slice import FileSlice

SHORT_RECEIVE_BYTES: Final = SMALL_SIZE_MAX
"""Bytes of a frame begun while memory is short: each connection may hold as much besides."""

UNANSWERED_MAX: Final = 256
"""Requests of one connection under way at once; more stay in the socket."""

PARKED_MAX: Final = 8
"""Polls (Fetch, ShareFetch) of one connection that wait at once: clients have one under way per
broker, and as answers keep their order, what is behind them would not be answered either."""

KEPT_SHARE: Final = 8
"""Kept records are at least this part of their frame: else they are copied, and it is free."""

CLOCK_CHECK_MASK: Final = 7
"""The clock is read after every eighth request."""

QUEUED_BYTES_MAX: Final = 1024 * 1024
"""Response bytes (not files) a peer may leave untaken before we stop reading its requests."""

QUEUED_BYTES_SHARE: Final = 64 * 1024
"""The same when all slow readers together hold what they may."""

QUEUED_PIECES_MAX: Final = 2048
"""Pieces of responses a peer may leave untaken: a small one costs several times its bytes."""

_WATCHED: Final = GateState.WATCHED
_NO_FRAME: Final = memoryview(b"")


class Channel(Protocol):
    """Takes requests: `broker.network.request_channel.RequestChannel`."""

    def offer(self, connection: "Connection", frame: memoryview) -> bool:
        """Take a frame, valid during the call; False: it is to be offered again after `resume`."""
        ...


class Traffic:
    """Bytes of all connections of a processor, those that have ended too; they count them."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.received = 0
        self.sent = 0


class Owner(Protocol):
    """The interface of a connection's `Processor`."""

    @property
    def traffic(self) -> Traffic:
        """Counted by the connections."""
        ...

    @property
    def resources(self) -> LoopResources:
        """Resources that all connections of the event loop share."""
        ...

    @property
    def channel(self) -> Channel:
        """Where requests go."""
        ...

    @property
    def frame_size_max(self) -> int:
        """`socket.request.max.bytes`."""
        ...

    @property
    def time_limit_ms(self) -> float:
        """How long requests of one receive may take."""
        ...

    def resume_in_next_iteration(self, connection: "Connection") -> None:
        """After PAUSED_BY_TIME_LIMIT."""
        ...

    def settle_in_next_iteration(self, connection: "Connection") -> None:
        """After PAUSED_BY_BACKLOG, with frames that were put back."""
        ...

    def warm(self, connection: "Connection", slice_: "FileSlice") -> None:
        """Have a thread read a slice into the page cache, then call `warmed`."""
        ...

    def connection_closed(self, connection: "Connection", reason: str | None) -> None:
        """The connection is closed; `reason` None: nothing to log."""
        ...


class Connection:
    """See the module. Owned by one `Processor`; used on the loop's thread only."""

    __slots__ = (
        "_accounted",
        "_admission",
        "_budget",
        "_buffers",
        "_gate",
        "_gathers",
        "_held_bytes",
        "_is_reading",
        "_now_s",
        "_pending",
        "_poller",
        "_reader",
        "_responses",
        "_sender",
        "_traffic",
        "_warming",
        "_writing",
        "client_id",
        "client_id_raw",
        "closed",
        "fd",
        "info",
        "is_last",
        "last_active_ms",
        "on_closed",
        "owner",
        "parked",
        "requests",
        "stream",
        "waiting_in_channel",
    )

    def __init__(self, stream: Stream, info: ConnectionInfo, owner: Owner) -> None:
        resources = owner.resources
        self.stream = stream
        self.fd = stream.fileno()
        self.info = info
        self.owner = owner
        self.closed = False
        # The request that is being handled is the last of those received with it.
        self.is_last = False
        self.client_id: str | None = None
        self.client_id_raw: bytes = b""
        # Called once, for what is kept as long as the connection lives.
        self.on_closed: Callable[[Connection], None] | None = None
        self.last_active_ms = 0.0
        self.requests = 0
        self.waiting_in_channel = 0
        # Polls that wait; kept by their purgatory.
        self.parked = 0
        self._poller = resources.poller
        self._admission = resources.admission
        self._budget = resources.read_budget
        self._buffers = resources.buffers
        self._responses = resources.responses
        self._traffic = owner.traffic
        self._now_s = resources.clock.monotonic_s
        self._gate = ReadGate(resources.poller, self.fd)
        self._reader: FrameReader[ReceiveBuffer] = FrameReader(
            resources.receive_buffer, resources.buffers, size_max=owner.frame_size_max
        )
        self._sender = Sender(stream)
        self._pending: deque[ResponseSlot] = deque()
        self._writing = False
        self._warming = False
        # Answers are gathered, to leave in one send.
        self._gathers = False
        # What was received in this turn is being handled: `last_active_ms` is of now.
        self._is_reading = False
        # Bytes of answers that are ready and wait for one before them; and bytes of all answers in
        # memory, as last counted by `ResponseMemory`.
        self._held_bytes = 0
        self._accounted = 0

    # -- reading ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Watch the socket, and read what has come before it was watched."""
        self._gate.watch(self.on_readable)
        self.on_readable()

    def on_readable(self) -> None:
        """The socket has bytes, or the peer has closed it."""
        if self._budget.has_budget_for(self):
            self._read()

    def defer_read(self) -> None:
        """Other sockets are read first."""
        self.pause(PAUSED_BY_READ_BUDGET)

    def read_deferred(self) -> None:
        """Read what has come since `defer_read`."""
        self.resume(PAUSED_BY_READ_BUDGET)
        if self._gate.state is _WATCHED:
            self._read()

    def _read(self) -> None:
        reader = self._reader
        try:
            if self._buffers.is_short:
                count = self._receive_when_short()
                if count < 0:
                    return
            else:
                count = self.stream.recv_into(reader.buffer)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(f"receive failed: {error.strerror}")
            return
        if count == 0:
            self.close(None)
            return
        self._traffic.received += count
        self.last_active_ms = self._now_s() * 1000.0
        frames = reader.next_frames(count)
        if frames:
            self._is_reading = True
            self._handle(frames)
            self._is_reading = False
        elif reader.memory is not None or reader.error is not None:
            self._check_rest()

    def _receive_when_short(self) -> int:
        """Receive while memory is short; -1: not now, as others come first."""
        reader = self._reader
        memory = reader.memory
        if memory is None:
            # What lies behind the last whole frame becomes memory.
            return self.stream.recv_into(reader.buffer[:SHORT_RECEIVE_BYTES])
        if memory.size > SMALL_SIZE_MAX and not self._admission.admits(self):
            return -1
        return self.stream.recv_into(reader.buffer)

    def _handle(self, frames: list[memoryview], *, resumed: bool = False) -> None:
        """Hand frames, and those behind them, to the request channel; then send the answers.

        Args:
            frames: Given out by the reader.
            resumed: They were put back before: eight of them are not granted again.
        """
        owner = self.owner
        reader = self._reader
        gate = self._gate
        channel = owner.channel
        reason = count = 0
        end_ms = self._now_s() * 1000.0 + owner.time_limit_ms if resumed else 0.0
        self._gathers = True
        try:
            while frames:
                left = len(frames)
                for frame in frames:
                    self.is_last = left == 1 and not reader.has_more
                    if not channel.offer(self, frame):
                        reason = PAUSED_BY_CHANNEL
                        break
                    left -= 1
                    if self.closed or not (left or reader.has_more):
                        break
                    if gate.reasons & PAUSED_BY_DISK:
                        reason = PAUSED_BY_DISK
                        break
                    if self._must_pause():
                        reason = PAUSED_BY_BACKLOG
                        break
                    count += 1
                    if not count & CLOCK_CHECK_MASK:
                        now_ms = self._now_s() * 1000.0
                        if not end_ms:
                            # The first eight are granted, so that a few never need the clock.
                            end_ms = now_ms + owner.time_limit_ms
                        elif now_ms >= end_ms:
                            reason = PAUSED_BY_TIME_LIMIT
                            break
                if self.closed:
                    break
                if reason:
                    reader.put_back(frames[len(frames) - left :])
                    break
                if not reader.has_more:
                    break
                frames = reader.next_frames()
        except BaseException:
            # What is behind the frame is lost, so no further frame could be found.
            self.close("internal error")
            raise
        finally:
            self._gathers = self.is_last = False
            if reader.lent is not None:
                frame = _NO_FRAME
                reader.release(frames)
                if self._buffers.is_short:
                    self._admission.ended(self)
                if not self.closed:
                    self.stream.expect(0)
        if reason:
            self.pause(reason)
            if reason == PAUSED_BY_TIME_LIMIT and not self.closed:
                owner.resume_in_next_iteration(self)
        elif reader.memory is not None or reader.error is not None:
            self._check_rest()
        self._send_answers()

    def _check_rest(self) -> None:
        """No whole frame is left: the peer may send the rest of one."""
        if self._reader.error is not None:
            self.close(str(self._reader.error))
            return
        self.stream.expect(len(self._reader.buffer))
        if self._buffers.charged >= self._buffers.limit:
            self._admission.become_short()

    def keep(self, records: memoryview) -> Callable[[], None] | None:
        """Leave `records`, of the frame that is being handled, until the function is called.

        Returns:
            None where that cannot be, or would keep far more than the records: they must be copied.
        """
        frame = self._reader.lent
        if frame is None or not frame.holds(records) or len(records) * KEPT_SHARE < frame.size:
            return None
        return self._buffers.keep(frame)

    def wait_for_disk(self, when_uncongested: Callable[[Callable[[], None]], None]) -> None:
        """Pause until less waits to be written: `when_uncongested` calls its argument then."""
        if not self._gate.reasons & PAUSED_BY_DISK and not self.closed:
            self.pause(PAUSED_BY_DISK)
            when_uncongested(partial(self.resume, PAUSED_BY_DISK))

    def _must_pause(self) -> bool:
        sender = self._sender
        if (
            len(self._pending) + self.waiting_in_channel >= UNANSWERED_MAX
            or self.parked >= PARKED_MAX
        ):
            return True
        if not (sender.queue or self._held_bytes):
            return False
        held = sender.queued_bytes + self._held_bytes
        return (
            held >= QUEUED_BYTES_MAX
            or sender.queued_pieces >= QUEUED_PIECES_MAX
            or (held >= QUEUED_BYTES_SHARE and self._responses.exhausted)
        )

    def _account(self) -> None:
        """Count how much of our answers lies in memory."""
        held = self._sender.queued_bytes + self._held_bytes
        if held != self._accounted:
            self._responses.change(held - self._accounted)
            self._accounted = held

    def pause(self, reason: int) -> None:
        """Leave further bytes in the socket; see `broker.network.read_gate` for the reasons."""
        self._gate.pause(reason)

    def resume(self, reason: int) -> None:
        """One reason has gone; with the last one, go on with what was received before."""
        if not self._gate.resume(reason):
            return
        if self._reader.has_put_back:
            self._handle(self._reader.next_frames(), resumed=True)
        self._gate.watch(self.on_readable)

    def hold_back_polls(self) -> None:
        """A poll waits for its empty answer only: read nothing more until `admit_polls`."""
        self.parked += PARKED_MAX

    def admit_polls(self) -> None:
        """Resume reading: the poll is about to be answered, or the connection is gone."""
        self.parked -= PARKED_MAX

    # -- answering -------------------------------------------------------------------------------

    def open_slot(self) -> ResponseSlot:
        """Reserve the next place in the order of answers."""
        slot = ResponseSlot(self)
        self._pending.append(slot)
        return slot

    def answer_now(self, pieces: Pieces | None) -> None:
        """Answer the request that is being started, which is the newest one."""
        if not self._pending:
            if pieces is not None:
                self._sender.push(pieces)
                if not self._gathers:
                    self._flush()
            return
        slot = self.open_slot()
        slot.complete(pieces)

    def gather_answers(self) -> None:
        """Have answers from now on leave in one send, at the end of the event loop iteration."""
        if not self._gathers and not self.closed:
            self._gathers = True
            self.owner.resources.iteration_end.call_last(self._send_gathered)

    def _send_gathered(self) -> None:
        self._gathers = False
        self._send_answers()

    def answered(self, slot: ResponseSlot) -> None:
        """A slot is complete: move it, and complete ones behind it, to the queue of the socket."""
        if self.closed:
            return
        pending = self._pending
        if not pending or pending[0] is not slot:
            slot.held_bytes = bytes_of(slot.pieces)
            self._held_bytes += slot.held_bytes
            if not self._gathers:
                self._send_answers()
            return
        sender = self._sender
        if (sender.idle and not (self._gathers or self._writing or self._warming)) and (
            len(pending) == 1 or not pending[1].done
        ):
            # The usual case: an answer that nothing waits before, and nothing waits for.
            pending.popleft()
            self._held_bytes -= slot.held_bytes
            if slot.pieces is not None:
                self._send(slot.pieces)
            self._settle()
            return
        while pending and pending[0].done:
            first = pending.popleft()
            self._held_bytes -= first.held_bytes
            pieces = first.pieces
            if pieces is not None:
                sender.push(pieces)
        if not self._gathers:
            self._send_answers()

    def _send_answers(self) -> None:
        """Send what is in the queue; then go on reading, or stop."""
        if self.closed:
            return
        if not self._sender.idle:
            self._flush()
        self._settle()

    def _settle(self) -> None:
        """After sending, which may have closed the connection: go on reading, or stop."""
        if self.closed:
            return
        if (
            not (self._held_bytes or self._accounted or self._gate.reasons)
            and self._sender.idle
            and len(self._pending) + self.waiting_in_channel < UNANSWERED_MAX
            and self.parked < PARKED_MAX
        ):
            # Most of the time: nothing is left to be sent, and nothing is paused.
            return
        self._account()
        if self._must_pause():
            self.pause(PAUSED_BY_BACKLOG)
        elif self._gate.reasons & PAUSED_BY_BACKLOG:
            if self._reader.has_put_back:
                # In an iteration of its own: what was put back may be thousands of requests.
                self.owner.settle_in_next_iteration(self)
            else:
                self.resume(PAUSED_BY_BACKLOG)

    def resume_backlog(self) -> None:
        """Resume frames that were put back because of too many unanswered requests."""
        if not self._must_pause():
            self.resume(PAUSED_BY_BACKLOG)

    def _flush(self) -> None:
        """Send; then watch for the socket to take more, or for the disk to bring the pages."""
        if self._writing or self._warming:
            return
        self._send()

    def _send(self, pieces: Pieces | None = None) -> None:
        """Send what is in the queue, or `pieces`, which nothing in the queue is before."""
        sender = self._sender
        before = sender.bytes_sent
        try:
            finished = sender.flush() if pieces is None else sender.send(pieces)
        except OSError as error:
            self.close(f"send failed: {error.strerror or error}")
            return
        sent = sender.bytes_sent - before
        if sent:
            self._traffic.sent += sent
            if not self._is_reading:
                self.last_active_ms = self._now_s() * 1000.0
        if finished:
            if self._writing:
                self._writing = False
                self._poller.remove_writer(self.fd)
            return
        if sender.cold is not None:
            if self._writing:
                self._writing = False
                self._poller.remove_writer(self.fd)
            self._warming = True
            self.owner.warm(self, sender.cold)
        elif not self._writing:
            self._writing = True
            self._poller.add_writer(self.fd, self.on_writable)

    def on_writable(self) -> None:
        """The socket takes more."""
        self._send()
        self._sent_some()

    def _sent_some(self) -> None:
        if self.closed:
            return
        self._account()
        if self._gate.reasons & PAUSED_BY_BACKLOG:
            self._send_answers()

    def warmed(self) -> None:
        """The pages that the sender waited for are in memory (or could not be read)."""
        self._warming = False
        if not self.closed:
            self._send()
            self._sent_some()

    # -- the end ---------------------------------------------------------------------------------

    @property
    def unanswered(self) -> int:
        """Requests under way."""
        return len(self._pending) + self.waiting_in_channel

    @property
    def quiet(self) -> bool:
        """True when nothing is under way in either direction."""
        return not self.unanswered and self._sender.idle

    @property
    def unwatched(self) -> bool:
        """True when the peer's end would not be noticed: neither reads nor writes wait for it."""
        return self._gate.is_paused_for_long and not self._writing

    @property
    def held_bytes(self) -> int:
        """Bytes of answers that lie in memory."""
        return self._sender.queued_bytes + self._held_bytes

    @property
    def partial_bytes(self) -> int:
        """Bytes received of a frame that is not whole, or was put back."""
        memory = self._reader.memory
        return memory.filled if memory is not None else 0

    @property
    def missing_bytes(self) -> int:
        """Bytes of that frame that have not arrived."""
        memory = self._reader.memory
        return memory.size - memory.filled if memory is not None else 0

    @property
    def is_held_up(self) -> bool:
        """True when the peer can do nothing about not being read."""
        return self._gate.is_paused_for_us

    def _send_last(self) -> None:
        """Send what was answered before the request that ends the connection.

        Kafka handles one request at a time: it has sent those answers by then.
        """
        if not (self._sender.idle or self._writing or self._warming):
            before = self._sender.bytes_sent
            with suppress(OSError):
                self._sender.flush()
            self._traffic.sent += self._sender.bytes_sent - before

    def close(self, reason: str | None) -> None:
        """Close the socket and let go of everything. `reason` None: nothing to log."""
        if self.closed:
            return
        self.closed = True
        if reason is not None:
            self._send_last()
        self._gate.close()
        if self._writing:
            self._writing = False
            self._poller.remove_writer(self.fd)
        self._reader.clear()
        if self._buffers.is_short:
            self._admission.ended(self)
        self._sender.clear()
        self._held_bytes = 0
        self._account()
        pending, self._pending = self._pending, deque()
        for slot in pending:
            slot.abandon()
        if self.on_closed is not None:
            self.on_closed(self)
        self.owner.connection_closed(self, reason)
        self.stream.close()
