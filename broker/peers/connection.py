"""A connection to one peer for one use, made again when it ends.

    state       what is under way
    IDLE        nothing: no endpoint, or no request yet
    CONNECTING  a connect, CONNECT_TIMEOUT_MS at most; requests wait
    OPEN        a stream; requests are sent as they come, and answered in any order
    BACK_OFF    a wait of 20 to 500 ms after an end or a failed connect; requests wait
    CLOSED      nothing ever again

    IDLE ──request, kept open──> CONNECTING ──connected──> OPEN
     ^                             │  ^                      │ ended, reset, silent, malformed
     │                             │  │ requests wait,       │
     │                     refused,│  │ kept open            │
     │                    timed out v  │                      v
     └──nothing waits────────── BACK_OFF <────────────────────┘

    any ──another endpoint──> IDLE       (and on from there, if requests come or it is kept open)
    any ──close──> CLOSED

What waits when a connect fails, and what is in flight when a connection ends, fails with
PeerUnavailableError; nothing is ever sent twice. The wait doubles until an answer has come: a peer
that accepts and ends is as much to be spared as one that refuses.

One timer is there for all requests of a connection: nearly all are answered long before their time.
A request that is not answered in its time fails. Its connection ends with it when nothing at all
has come since it was sent: the peer is stopped or cut off, and what is behind it would wait too.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final

from broker.network.connector import Connecting, Connector
from broker.network.receive_buffers import ReceiveBuffer, ReceiveBuffers
from broker.network.stream import EXPECTED_MIN, Poller, Stream
from broker.peers.endpoint import PeerEndpoint
from broker.peers.errors import PeerUnavailableError
from broker.peers.observer import PeerObservers
from broker.peers.peer_request import PeerRequest
from broker.runtime.timer import Timer, TimerHandle
from protocol.errors import DecodeError
from protocol.framing import RESPONSE_SIZE_MIN, FrameReader
from protocol.headers import response_body_at
from protocol.primitives import encode_string
from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS: Final = 1_500.0
"""A second SYN has gone out by then; a new attempt finds a healed network sooner than a third."""

BACK_OFF_FIRST_MS: Final = 20.0
BACK_OFF_MAX_MS: Final = 500.0

REQUESTS_MAX: Final = 128
"""Waiting and in flight, of one connection; brokers take 256 of a connection."""

BYTES_MAX: Final = 32 * 1024 * 1024
"""Of requests that have not been sent."""

ANSWER_BYTES_MAX: Final = 1 << 30
"""An answer may announce so much; memory follows what arrives."""

RECEIVES_MAX: Final = 8
"""System calls of one connection before others have their turn."""

_EARLY_MS: Final = 0.5
"""A request may fail so much before its time without another look."""

_CORRELATION_ID: Final = Struct(">i")
_CORRELATION_IDS: Final = 0x7FFFFFFF


class State(Enum):
    """See the module."""

    IDLE = "idle"
    CONNECTING = "connecting"
    OPEN = "open"
    BACK_OFF = "back-off"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class PeerResources:
    """Parts that all connections of a broker to its peers share.

    Attributes:
        poller: The loop's readiness calls.
        connector: Makes streams.
        timer: For time-outs and back-off.
        clock: For the times of requests.
        buffers: Memory of answers that do not arrive whole.
        observers: Get every connect and end.
        client_id: What peers see in the requests' headers.
    """

    poller: Poller
    connector: Connector
    timer: Timer
    clock: Clock
    buffers: ReceiveBuffers
    observers: PeerObservers
    client_id: str


class PeerConnection:
    """See the module. Used on the loop's thread only.

    Attributes:
        node_id: The peer.
        state: Of the module's table.
    """

    def __init__(
        self,
        node_id: int,
        endpoint: PeerEndpoint | None,
        resources: PeerResources,
        *,
        receive_bytes: int,
        is_kept_open: bool = False,
    ) -> None:
        """Connects with the first request, or at once when it is kept open.

        Args:
            node_id: The peer.
            endpoint: None: the image does not have it; requests fail.
            resources: Of all connections.
            receive_bytes: Received at once; smaller answers are never copied.
            is_kept_open: Connect again whenever it ends, also when no request waits.
        """
        self.node_id = node_id
        self.state = State.IDLE
        self._endpoint = endpoint
        self._resources = resources
        self._now_s = resources.clock.monotonic_s
        self._client_id = encode_string(resources.client_id)
        self._receive_bytes = receive_bytes
        self._is_kept_open = is_kept_open
        self._stream: Stream | None = None
        self._reader: FrameReader[ReceiveBuffer] | None = None
        self._connecting: Connecting | None = None
        self._timer: TimerHandle | None = None
        # When requests are looked at whose time may be over.
        self._expiry: TimerHandle | None = None
        self._expiry_ms = 0.0
        self._back_off_ms = BACK_OFF_FIRST_MS
        self._correlation_id = 0
        # In the order in which they came; of the first a part may have left.
        self._waiting: deque[PeerRequest] = deque()
        self._waiting_bytes = 0
        self._in_flight: dict[int, PeerRequest] = {}
        self._received = 0
        self._is_writing = False
        # Frames that a receiver holds; the stream is not read meanwhile.
        self._held: list[memoryview] | None = None
        self._is_watched = False
        self._connect_if_needed()

    @property
    def requests(self) -> int:
        """Requests without an outcome, and answers that are still to come to none."""
        return len(self._waiting) + len(self._in_flight)

    # -- requests --------------------------------------------------------------------------------

    def send(self, request: PeerRequest, timeout_ms: float) -> None:
        """Send, or queue until there is a connection; its receiver gets the outcome.

        `on_failure` may be called before this returns.
        """
        size = len(request.unsent)
        if self._endpoint is None or self.state is State.CLOSED:
            self._fail(
                request,
                "is not registered with a listener of this broker's inter.broker.listener.name",
            )
            return
        if self.requests >= REQUESTS_MAX or self._waiting_bytes + size > BYTES_MAX:
            self._fail(request, f"has not answered {self.requests} requests")
            return
        self._correlation_id = (self._correlation_id + 1) & _CORRELATION_IDS
        request.enter(self._correlation_id, self._client_id)
        now_ms = self._now_s() * 1000.0
        request.due_ms = now_ms + timeout_ms
        self._expire_at(request.due_ms, now_ms)
        self._waiting.append(request)
        self._waiting_bytes += len(request.unsent)
        if self.state is State.OPEN:
            if not self._is_writing:
                self._write()
        else:
            self._connect_if_needed()

    def _fail(self, request: PeerRequest, reason: str) -> None:
        request.fail(PeerUnavailableError(self.node_id, sent=request.is_sent, reason=reason))

    def _expire_at(self, due_ms: float, now_ms: float) -> None:
        """Look at the requests then, or before."""
        if self._expiry is not None:
            if self._expiry_ms <= due_ms:
                return
            self._expiry.cancel()
        self._expiry_ms = due_ms
        self._expiry = self._resources.timer.call_later_ms(due_ms - now_ms, self._expire)

    def _expire(self) -> None:
        """Fail the requests whose time is over, and look again when the next one's is."""
        self._expiry = None
        now_ms = self._now_s() * 1000.0
        for request in (*self._in_flight.values(), *self._waiting):
            # What has its outcome already, by that of another one, is passed over.
            if request.receiver is not None and request.due_ms - _EARLY_MS <= now_ms:
                self._timed_out(request)
        open_until = [
            request.due_ms
            for request in (*self._in_flight.values(), *self._waiting)
            if request.receiver is not None
        ]
        if open_until:
            self._expire_at(min(open_until), now_ms)

    def _stop_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _timed_out(self, request: PeerRequest) -> None:
        if not request.is_sent:
            self._waiting.remove(request)
            self._waiting_bytes -= len(request.unsent)
            self._fail(request, "could not be sent a request in time")
            return
        if request.received_before == self._received:
            self._end("is silent")
            return
        # It stays in flight without a receiver, so that its answer is recognised.
        self._fail(request, "did not answer in time")

    # -- connecting ------------------------------------------------------------------------------

    def keep_open(self) -> None:
        """Connect, and connect again whenever it ends."""
        self._is_kept_open = True
        self._connect_if_needed()

    def _connect_if_needed(self) -> None:
        endpoint = self._endpoint
        if self.state is not State.IDLE or endpoint is None:
            return
        if not (self._waiting or self._is_kept_open):
            return
        self.state = State.CONNECTING
        self._timer = self._resources.timer.call_later_ms(
            CONNECT_TIMEOUT_MS, self._connect_timed_out
        )
        self._connecting = self._resources.connector.connect(
            endpoint.host, endpoint.port, self._connected
        )

    def _connected(self, result: Stream | OSError) -> None:
        self._connecting = None
        self._stop_timer()
        if isinstance(result, OSError):
            self._connect_failed(result)
            return
        self.state = State.OPEN
        self._stream = result
        self._is_writing = False
        self._reader = FrameReader(
            memoryview(bytearray(self._receive_bytes)),
            self._resources.buffers,
            size_max=ANSWER_BYTES_MAX,
            size_min=RESPONSE_SIZE_MIN,
        )
        self._watch(result)
        self._resources.observers.on_peer_connected(self.node_id, self._epoch)
        if self.state is State.OPEN and self._stream is result:
            self._write()

    def _connect_timed_out(self) -> None:
        self._timer = None
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
        self._connect_failed(TimeoutError(f"no connection within {CONNECT_TIMEOUT_MS:.0f} ms"))

    def _connect_failed(self, error: OSError) -> None:
        epoch = self._epoch
        self._back_off()
        self._fail_all(f"cannot be reached: {error}")
        observers = self._resources.observers
        if isinstance(error, ConnectionRefusedError):
            observers.on_peer_refused(self.node_id, epoch)
        else:
            observers.on_peer_unreachable(self.node_id, epoch, error)

    def _back_off(self) -> None:
        self.state = State.BACK_OFF
        self._timer = self._resources.timer.call_later_ms(self._back_off_ms, self._wait_is_over)
        self._back_off_ms = min(2 * self._back_off_ms, BACK_OFF_MAX_MS)

    def _wait_is_over(self) -> None:
        self._timer = None
        self.state = State.IDLE
        self._connect_if_needed()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- the stream ------------------------------------------------------------------------------

    def _write(self) -> None:
        stream = self._stream
        if stream is None:
            return
        waiting = self._waiting
        try:
            while waiting:
                request = waiting[0]
                count = stream.send_buffers((request.unsent,), False)
                if not request.is_sent:
                    request.is_sent = True
                    request.received_before = self._received
                    self._in_flight[request.correlation_id] = request
                self._waiting_bytes -= count
                if count < len(request.unsent):
                    request.unsent = memoryview(request.unsent)[count:]
                    continue
                request.unsent = b""
                waiting.popleft()
        except BlockingIOError:
            self._watch_writes(stream)
            return
        except OSError as error:
            self._ended_by_peer(error)
            return
        if self._is_writing:
            self._is_writing = False
            self._resources.poller.remove_writer(stream.fileno())

    def _watch_writes(self, stream: Stream) -> None:
        if not self._is_writing:
            self._is_writing = True
            self._resources.poller.add_writer(stream.fileno(), self._write)

    def _on_readable(self) -> None:
        stream = self._stream
        reader = self._reader
        if stream is None or reader is None:
            return
        if self._held is not None:
            # It is read again when what is held has been released.
            self._unwatch(stream)
            return
        for _ in range(RECEIVES_MAX):
            buffer = reader.buffer
            try:
                count = stream.recv_into(buffer)
            except BlockingIOError:
                return
            except OSError as error:
                self._ended_by_peer(error)
                return
            if count == 0:
                self._ended_by_peer(None)
                return
            self._received += count
            if not self._take_frames(stream, reader, count):
                return
            if reader.memory is not None:
                stream.expect(len(reader.buffer))
                if len(reader.buffer) >= EXPECTED_MIN:
                    return
            if count < len(buffer):
                # That was all there is: what comes later calls back.
                return

    def _take_frames(self, stream: Stream, reader: FrameReader[ReceiveBuffer], count: int) -> bool:
        """Hand answers on; False when no more may be received now."""
        frames = reader.next_frames(count)
        if reader.lent is not None:
            stream.expect(0)
        while frames:
            for taken, answer in enumerate(frames, 1):
                if not self._take(answer) or self._stream is not stream:
                    return False
                if self._held is not None:
                    # Those behind it come when it has been released. With none the stream stays
                    # watched: mostly nothing comes before the next request.
                    if taken < len(frames):
                        reader.put_back(frames[taken:])
                    self._held.extend(frames[:taken])
                    if reader.has_more or reader.has_put_back:
                        self._unwatch(stream)
                    return False
            reader.release(frames)
            frames = reader.next_frames() if reader.has_more else []
        if reader.error is not None:
            self._end(f"sent what is no answer: {reader.error}")
            return False
        return True

    def _go_on(self, stream: Stream, reader: FrameReader[ReceiveBuffer]) -> None:
        """Take what had been received behind an answer that was held, then receive again."""
        if self._stream is stream:
            self._watch(stream)
            self._take_frames(stream, reader, 0)

    def _watch(self, stream: Stream) -> None:
        self._is_watched = True
        self._resources.poller.add_reader(stream.fileno(), self._on_readable)

    def _unwatch(self, stream: Stream) -> None:
        self._is_watched = False
        self._resources.poller.remove_reader(stream.fileno())

    def _take(self, answer: memoryview) -> bool:
        (correlation_id,) = _CORRELATION_ID.unpack_from(answer)
        request = self._in_flight.get(correlation_id)
        if request is None or request.unsent:
            self._end(f"answered request {correlation_id}, which it was not sent")
            return False
        receiver = request.receiver
        try:
            at = response_body_at(answer, request.api_key, request.version)
            del self._in_flight[correlation_id]
            self._back_off_ms = BACK_OFF_FIRST_MS
            if receiver is not None:
                receiver.on_answer(answer[at:])
                request.receiver = None
        except DecodeError as error:
            self._in_flight[correlation_id] = request
            self._end(f"sent a malformed answer: {error}")
            return False
        except Exception:  # a receiver's fault is not to leave the connection half read
            LOGGER.exception("answer not handled peer=%d api_key=%d", self.node_id, request.api_key)
            self._end("sent an answer that could not be handled")
            return False
        return True

    def hold(self) -> Callable[[], None]:
        """Keep the answer that is being handed on valid, and hand on no other, until the call.

        For a receiver, within `on_answer`. The function that is returned may be called when the
        connection has ended meanwhile; what it had received goes on in the loop's next turn.
        """
        reader, stream = self._reader, self._stream
        if reader is None or stream is None:
            raise RuntimeError("held an answer of a connection that is not open")
        frames: list[memoryview] = []
        self._held = frames

        def release() -> None:
            reader.release(frames)
            if self._held is not frames:
                return
            self._held = None
            if self._is_watched:
                # Within `on_answer`, and the caller goes on; or nothing has come since.
                return
            if reader.has_more or reader.has_put_back:
                self._resources.poller.call_soon(self._go_on, stream, reader)
            else:
                self._watch(stream)

        return release

    # -- ends ------------------------------------------------------------------------------------

    @property
    def _epoch(self) -> int:
        return -1 if self._endpoint is None else self._endpoint.epoch

    def _ended_by_peer(self, error: OSError | None) -> None:
        epoch = self._epoch
        self._end("has ended the connection" if error is None else f"has ended: {error}")
        self._resources.observers.on_peer_ended(self.node_id, epoch, error)

    def _end(self, reason: str) -> None:
        """OPEN to BACK_OFF."""
        self._drop_stream()
        self._back_off()
        self._fail_in_flight(reason)

    def _drop_stream(self) -> None:
        stream, self._stream = self._stream, None
        reader, self._reader = self._reader, None
        self._held = None
        if stream is not None:
            poller = self._resources.poller
            if self._is_watched:
                self._is_watched = False
                poller.remove_reader(stream.fileno())
            if self._is_writing:
                poller.remove_writer(stream.fileno())
                self._is_writing = False
            stream.close()
        if reader is not None:
            reader.clear()

    def _fail_in_flight(self, reason: str) -> None:
        in_flight, self._in_flight = self._in_flight, {}
        if self._waiting and self._waiting[0].is_sent:
            # Of this one a part has left.
            self._waiting_bytes -= len(self._waiting.popleft().unsent)
        for request in in_flight.values():
            self._fail(request, reason)

    def _fail_all(self, reason: str) -> None:
        self._stop_expiry()
        waiting = list(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        in_flight, self._in_flight = self._in_flight, {}
        for request in (*in_flight.values(), *waiting):
            self._fail(request, reason)

    def move_to(self, endpoint: PeerEndpoint | None) -> None:
        """Use another endpoint from now on; what is in flight fails. The same one changes nothing.

        Args:
            endpoint: None: the peer has left the image; what waits fails as well.
        """
        if endpoint == self._endpoint or self.state is State.CLOSED:
            return
        self._endpoint = endpoint
        self._stop()
        self.state = State.IDLE
        self._back_off_ms = BACK_OFF_FIRST_MS
        if endpoint is None:
            self._fail_all("has left the cluster's image")
        else:
            self._fail_in_flight("has been started again")
        self._connect_if_needed()

    def close(self) -> None:
        """End; harmless when repeated."""
        if self.state is State.CLOSED:
            return
        self._stop()
        self.state = State.CLOSED
        self._fail_all("is not asked any more: this broker stops")

    def _stop(self) -> None:
        self._stop_timer()
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
        self._drop_stream()
