"""One client connection: frames in, responses out, in order.

    socket ─recv_into─> shared buffer ──whole frames──> request channel ──> handler
                          │ a frame that is not whole yet                     │
                          └> ReceiveBuffer of its own                         v
    socket <──Sender── responses, in the order of their requests <──── ResponseSlot

Answers that are given while requests are being handled leave in one send when the last of them has
been; so do, at the end of the loop's turn, those given later by whoever asks for it first
(`gather_answers`, `broker.network.iteration_end`). Other late answers leave at once.

The reading half is READING (`_paused` is 0, the poller watches the socket) or PAUSED for one or
more reasons, a bit each; it reads again when the last bit is cleared:

    PAUSED_BY_CHANNEL   the request channel is full            cleared by RequestChannel
    PAUSED_BY_MEMORY    queued.max.request.bytes is used up    cleared by Processor.sweep
    PAUSED_BY_BACKLOG   too many unanswered requests, or       cleared when answers have left
                        too many of them parked, or answers
                        that the peer does not take
    PAUSED_BY_TURN      its requests took their turn's time    cleared in the loop's next turn
    PAUSED_BY_ROUND     too many sockets are readable at once  cleared in the loop's next turns
    PAUSED_BY_DISK      a directory that it writes to is       cleared by DirectoryWriter
                        behind
    PAUSED_BY_STOP      the broker stops                       never cleared

What had been received before the pause waits: bytes in `_unparsed`, at most one shared buffer's
worth, or a whole frame that the channel did not take in `_frame`. Both are charged like any other
received bytes.

A frame's memoryview is valid until the handler returns or first awaits: whoever needs it longer
copies it, or asks `keep` for a frame that has memory of its own. Requests of one connection start
in order and are answered in order; several may be under way (Kafka allows one).
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from broker.network.connection_info import ConnectionInfo
from broker.network.receive_buffers import ReceiveBuffer
from broker.network.response import Pieces, ResponseSlot, bytes_of
from broker.network.sender import Sender
from broker.network.stream import Stream

if TYPE_CHECKING:
    from broker.network.processor import Processor

UNANSWERED_MAX = 256
"""Requests of one connection under way at once; more stay in the socket."""

PARKED_MAX = 8
"""Polls (Fetch, ShareFetch) of one connection that wait at once: clients have one under way per
broker, and as answers keep their order, what is behind them would not be answered either."""

PAUSED_BY_CHANNEL = 1
PAUSED_BY_MEMORY = 2
PAUSED_BY_BACKLOG = 4
PAUSED_BY_STOP = 8
PAUSED_BY_TURN = 16
PAUSED_BY_ROUND = 32
PAUSED_BY_DISK = 64

KEPT_SHARE = 8
"""What is kept is at least this part of its frame: else it is copied, and the frame is free."""

_PAUSED_BRIEFLY = PAUSED_BY_TURN | PAUSED_BY_ROUND

TURN_MS = 1.0
"""How long the requests of one receive may take before other connections get their turn: 256 KiB
of the smallest ones take half a second."""

TURN_CHECK_MASK = 7
"""The clock is looked at after every eighth request."""

QUEUED_BYTES_MAX = 1024 * 1024
"""Response bytes (not files) a peer may leave untaken before we stop reading its requests."""

QUEUED_BYTES_SHARE = 64 * 1024
"""The same when all slow readers together hold what they may."""

QUEUED_PIECES_MAX = 2048
"""Pieces of responses a peer may leave untaken: a small one costs several times its bytes."""


class Connection:
    """See the module. Owned by one `Processor`; touched on the loop's thread only."""

    __slots__ = (
        "_accounted",
        "_frame",
        "_held_bytes",
        "_in_turn",
        "_lent",
        "_paused",
        "_pending",
        "_prefix",
        "_sender",
        "_unparsed",
        "_warming",
        "_writing",
        "client_id",
        "client_id_raw",
        "closed",
        "fd",
        "info",
        "last_active_ms",
        "on_closed",
        "parked",
        "processor",
        "requests",
        "stream",
        "waiting_in_channel",
    )

    def __init__(self, stream: Stream, info: ConnectionInfo, processor: "Processor") -> None:
        self.stream = stream
        self.fd = stream.fileno()
        self.info = info
        self.processor = processor
        self.closed = False
        self.client_id: str | None = None
        self.client_id_raw: bytes = b""
        # Told once, by whoever keeps something for as long as the connection lives.
        self.on_closed: Callable[[Connection], None] | None = None
        self.last_active_ms = 0.0
        self.requests = 0
        self.waiting_in_channel = 0
        # Polls that wait; kept by their purgatory.
        self.parked = 0
        self._sender = Sender(stream)
        self._pending: deque[ResponseSlot] = deque()
        self._frame: ReceiveBuffer | None = None
        # The frame with memory of its own that is being handled.
        self._lent: ReceiveBuffer | None = None
        self._prefix = b""
        self._unparsed: memoryview[int] | None = None
        self._paused = 0
        self._writing = False
        self._warming = False
        self._in_turn = False
        # Answers that are ready and wait for one before them; and what of all answers in memory
        # `ResponseMemory` has been told.
        self._held_bytes = 0
        self._accounted = 0

    # -- reading ---------------------------------------------------------------------------------

    def on_readable(self) -> None:
        """The socket has bytes, or the peer has closed it."""
        if self.processor.loop_turn.admits(self):
            self._read()

    def put_aside(self) -> None:
        """Others are read first."""
        self.pause(PAUSED_BY_ROUND)

    def take_up(self) -> None:
        """Read what has come since `put_aside`."""
        if self.closed:
            return
        self.resume(PAUSED_BY_ROUND)
        if not self._paused and not self.closed:
            self._read()

    def _read(self) -> None:
        processor = self.processor
        frame = self._frame
        try:
            if frame is None:
                shared = processor.shared
                prefix = self._prefix
                if prefix:
                    kept = len(prefix)
                    shared[:kept] = prefix
                    count = self.stream.recv_into(shared[kept:])
                    end = kept + count
                else:
                    count = end = self.stream.recv_into(shared)
            else:
                count = self.stream.recv_into(frame.view[frame.filled : frame.size])
        except BlockingIOError:
            return
        except OSError as error:
            self.close(f"receive failed: {error.strerror}")
            return
        if count == 0:
            self.close(None)
            return
        processor.bytes_received += count
        self.last_active_ms = processor.now_ms
        if frame is None:
            self._prefix = b""
            self._turn(processor.shared[:end], ours=False)
            return
        processor.buffers.arrived(frame, count)
        if frame.filled == frame.size:
            self._offer_frame(frame)
        elif processor.buffers.exhausted:
            processor.wait_for_memory(self)

    def _offer_frame(self, frame: ReceiveBuffer) -> None:
        """Handle a frame that came in pieces; keep it when the channel is full."""
        processor = self.processor
        self._frame = None
        self._lent = frame
        self._in_turn = True
        taken = True
        try:
            taken = processor.channel.offer(self, frame.view[: frame.size])
        finally:
            self._in_turn = False
            self._lent = None
            if taken or self.closed:
                processor.buffers.give_back(frame)
            else:
                self._frame = frame
        if not taken:
            self.pause(PAUSED_BY_CHANNEL)
        self._end_turn()

    def _turn(self, data: memoryview, *, ours: bool) -> None:
        """Handle what is whole in `data`, keep the rest, send the answers.

        `ours`: the bytes stay as they are until we let go of them; the shared buffer's do not.
        """
        self._in_turn = True
        try:
            self._parse(data, ours)
        finally:
            self._in_turn = False
        self._end_turn()

    def _parse(self, data: memoryview, ours: bool) -> None:
        processor = self.processor
        offer = processor.channel.offer
        size_max = processor.frame_size_max
        end = len(data)
        at = 0
        count = 0
        turn_end_ms = processor.now_ms + processor.turn_ms if ours else 0.0
        while at + 4 <= end:
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if size < 8 or size > size_max:
                self.close(f"frame of {size} bytes announced; 8 to {size_max} are allowed")
                return
            start = at + 4
            at = start + size
            if at > end:
                self._begin_frame(data[start:end], size)
                return
            if not offer(self, data[start:at]):
                # Not taken: the frame itself and all behind it wait.
                self._keep(data[start - 4 :], ours, PAUSED_BY_CHANNEL)
                return
            if self.closed:
                return
            if self._paused & PAUSED_BY_DISK and at < end:
                self._keep(data[at:], ours, PAUSED_BY_DISK)
                return
            if self._must_pause() and at < end:
                self._keep(data[at:], ours, PAUSED_BY_BACKLOG)
                return
            count += 1
            if count & TURN_CHECK_MASK == 0 and at < end:
                now_ms = processor.now_ms
                if not turn_end_ms:
                    # Eight are taken for granted, so that a few cost no look at the clock.
                    turn_end_ms = now_ms + processor.turn_ms
                elif now_ms >= turn_end_ms:
                    self._keep(data[at:], ours, PAUSED_BY_TURN)
                    processor.await_turn(self)
                    return
        self._prefix = bytes(data[at:end])

    def _keep(self, data: memoryview, ours: bool, reason: int) -> None:
        """Put received bytes aside until `resume`."""
        # A bytearray: the log patches offsets into produced batches where they lie.
        kept = data if ours else memoryview(bytearray(data))
        self._unparsed = kept
        self.processor.buffers.hold(_memory_of(kept))
        self.pause(reason)

    def _begin_frame(self, part: memoryview, size: int) -> None:
        """The rest of a frame is still on its way: move what is here into a buffer of its own."""
        buffers = self.processor.buffers
        try:
            frame = buffers.take(size)
        except (OSError, MemoryError) as error:
            # Addresses or mappings of the process are used up (vm.max_map_count, ulimit -v).
            self.close(f"no memory for a frame of {size} bytes: {error}")
            return
        count = len(part)
        frame.view[:count] = part
        buffers.arrived(frame, count)
        self._frame = frame
        if buffers.exhausted:
            self.processor.wait_for_memory(self)

    def keep(self, records: memoryview) -> Callable[[], None] | None:
        """Leave `records`, of the frame that is being handled, until the function is called.

        Returns:
            None where that cannot be, or would keep far more than the records: they must be copied.
        """
        frame = self._lent
        if frame is None or not frame.holds(records) or len(records) * KEPT_SHARE < frame.size:
            return None
        return self.processor.buffers.keep(frame)

    def wait_for_disk(self, when_uncongested: Callable[[Callable[[], None]], None]) -> None:
        """Read on when less waits to be written: `when_uncongested` calls what it is given then."""
        if not self._paused & PAUSED_BY_DISK and not self.closed:
            self.pause(PAUSED_BY_DISK)
            when_uncongested(partial(self.resume, PAUSED_BY_DISK))

    def _must_pause(self) -> bool:
        sender = self._sender
        if (
            len(self._pending) + self.waiting_in_channel >= UNANSWERED_MAX
            or self.parked >= PARKED_MAX
        ):
            return True
        if sender.idle and not self._held_bytes:
            return False
        held = sender.queued_bytes + self._held_bytes
        return (
            held >= QUEUED_BYTES_MAX
            or sender.queued_pieces >= QUEUED_PIECES_MAX
            or (held >= QUEUED_BYTES_SHARE and self.processor.responses.exhausted)
        )

    def _account(self) -> None:
        """Tell how much of our answers lies in memory."""
        held = self._sender.queued_bytes + self._held_bytes
        if held != self._accounted:
            self.processor.responses.change(held - self._accounted)
            self._accounted = held

    def pause(self, reason: int) -> None:
        """Leave further bytes in the socket: back-pressure reaches the client through TCP."""
        if self.closed:
            return
        if not self._paused:
            self.processor.poller.remove_reader(self.fd)
        self._paused |= reason

    def resume(self, reason: int) -> None:
        """One reason to pause has gone; with the last one, go on with what was received before."""
        if self.closed or not self._paused & reason:
            return
        self._paused &= ~reason
        if self._paused:
            return
        unparsed, self._unparsed = self._unparsed, None
        frame = self._frame
        if unparsed is not None:
            self.processor.buffers.hold(-_memory_of(unparsed))
            self._turn(unparsed, ours=True)
        elif frame is not None and frame.filled == frame.size:
            self._offer_frame(frame)
        if not self._paused and not self.closed:
            self.processor.poller.add_reader(self.fd, self.on_readable)

    def stop_parking(self) -> None:
        """A poll is held back: read nothing more, until `go_on_parking`."""
        self.parked += PARKED_MAX

    def go_on_parking(self) -> None:
        """It is about to be answered, or the connection has gone."""
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
                if not self._in_turn:
                    self._flush()
            return
        slot = self.open_slot()
        slot.complete(pieces)

    def gather_answers(self) -> None:
        """Let what is answered from now on leave in one send, at the end of the loop's turn."""
        if not self._in_turn and not self.closed:
            self._in_turn = True
            self.processor.turn_end.call_last(self._send_gathered)

    def _send_gathered(self) -> None:
        self._in_turn = False
        self._end_turn()

    def answered(self, slot: ResponseSlot) -> None:
        """A slot is complete: move every answer whose turn has come to the socket's queue."""
        if self.closed:
            return
        pending = self._pending
        if not pending or pending[0] is not slot:
            slot.held_bytes = bytes_of(slot.pieces)
            self._held_bytes += slot.held_bytes
            if not self._in_turn:
                self._end_turn()
            return
        while pending and pending[0].done:
            first = pending.popleft()
            self._held_bytes -= first.held_bytes
            pieces = first.pieces
            if pieces is not None:
                self._sender.push(pieces)
        if not self._in_turn:
            self._end_turn()

    def _end_turn(self) -> None:
        """After a batch of requests: one send for all their answers."""
        if self.closed:
            return
        if not self._sender.idle:
            self._flush()
        self._settle()

    def _settle(self) -> None:
        """After sending, which may have closed the connection: go on reading, or stop."""
        if self.closed:
            return
        self._account()
        if self._must_pause():
            self.pause(PAUSED_BY_BACKLOG)
        elif self._paused & PAUSED_BY_BACKLOG:
            if self._unparsed is None:
                self.resume(PAUSED_BY_BACKLOG)
            else:
                # In a turn of its own: what was put aside may be thousands of requests.
                self.processor.await_going_on(self)

    def go_on(self) -> None:
        """Take up again what was put aside because too much was unanswered."""
        if not self._must_pause():
            self.resume(PAUSED_BY_BACKLOG)

    def _flush(self) -> None:
        """Send; then watch for the socket to take more, or for the disk to bring the pages."""
        if self._writing or self._warming:
            return
        self._send()

    def _send(self) -> None:
        sender = self._sender
        before = sender.bytes_sent
        try:
            finished = sender.flush()
        except OSError as error:
            self.close(f"send failed: {error.strerror or error}")
            return
        processor = self.processor
        sent = sender.bytes_sent - before
        if sent:
            processor.bytes_sent += sent
            self.last_active_ms = processor.now_ms
        if finished:
            if self._writing:
                self._writing = False
                processor.poller.remove_writer(self.fd)
            return
        if sender.cold is not None:
            if self._writing:
                self._writing = False
                processor.poller.remove_writer(self.fd)
            self._warming = True
            processor.warm(self, sender.cold)
        elif not self._writing:
            self._writing = True
            processor.poller.add_writer(self.fd, self.on_writable)

    def on_writable(self) -> None:
        """The socket takes more."""
        self._send()
        self._sent_some()

    def _sent_some(self) -> None:
        if self.closed:
            return
        self._account()
        if self._paused & PAUSED_BY_BACKLOG:
            self._end_turn()

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
        """True when nothing would tell us that the peer has gone: neither reads nor writes wait.

        Not where it is only others' turn: what the peer sent before it went is read in a moment.
        """
        return bool(self._paused & ~_PAUSED_BRIEFLY) and not self._writing

    @property
    def held_bytes(self) -> int:
        """Bytes of answers that lie in memory."""
        return self._sender.queued_bytes + self._held_bytes

    @property
    def partial_bytes(self) -> int:
        """Bytes received of a frame that is not whole yet."""
        return self._frame.filled if self._frame is not None else 0

    def close(self, reason: str | None) -> None:
        """Close the socket and let go of everything. `reason` None: nothing to log."""
        if self.closed:
            return
        self.closed = True
        poller = self.processor.poller
        if not self._paused:
            poller.remove_reader(self.fd)
        if self._writing:
            self._writing = False
            poller.remove_writer(self.fd)
        if self._frame is not None:
            self.processor.buffers.give_back(self._frame)
            self._frame = None
        if self._unparsed is not None:
            self.processor.buffers.hold(-_memory_of(self._unparsed))
            self._unparsed = None
        self._sender.clear()
        self._held_bytes = 0
        self._account()
        pending, self._pending = self._pending, deque()
        for slot in pending:
            slot.abandon()
        if self.on_closed is not None:
            self.on_closed(self)
        self.processor.connection_closed(self, reason)
        self.stream.close()


def _memory_of(kept: "memoryview[int]") -> int:
    """Bytes that stay in memory for as long as the view does."""
    memory = kept.obj
    assert isinstance(memory, bytearray)
    return len(memory)
