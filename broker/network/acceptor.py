"""An acceptor owns one listening socket and hands what it accepts to processors in turn.

Limits, in the order they are checked (Kafka: SocketServer's ConnectionQuotas): total connections
(`max.connections`, and whatever that says their share of the descriptors), connections of one
address (`max.connections.per.ip` and `.overrides`), new connections a second
(`max.connection.creation.rate`). A connection above a limit is closed at once; above the rate,
accepting pauses until the second's share is used up, and clients wait in the kernel's backlog.
"""

import logging
import socket
from collections.abc import Callable, Sequence

from broker.network.connection import Connection
from broker.network.connection_info import ConnectionInfo
from broker.network.processor import Processor
from broker.network.stream import Poller, SocketStream, tune
from broker.runtime.timer import Timer
from storage.environment.clock import Clock
from storage.errors import DESCRIPTOR_LIMIT

LOGGER = logging.getLogger(__name__)

ACCEPT_BATCH = 128
"""Connections taken per wake-up before requests get their turn."""

ACCEPT_TURN_MS = 2.0
"""How long one wake-up may last: a newcomer's first requests are handled as it is accepted, which
may take a millisecond each, and who is connected already must not wait for a hundred of them."""

OUT_OF_DESCRIPTORS_PAUSE_MS = 100.0
"""Pause after EMFILE: the condition does not go away by retrying in a busy loop (as trio does)."""

TOLD_AGAIN_MS = 10_000.0
"""Between two lines of the log about connections that cannot be accepted."""

NO_BOUND = 1 << 31


class ConnectionLimits:
    """Counts connections over all listeners of a broker."""

    __slots__ = (
        "_per_address",
        "_window_count",
        "_window_start_ms",
        "descriptors_max",
        "max_connections",
        "max_per_address",
        "overrides",
        "rate_max",
        "rejected",
        "total",
    )

    def __init__(
        self,
        *,
        max_connections: int,
        max_per_address: int,
        overrides: dict[str, int],
        rate_max: int,
        descriptors_max: int = NO_BOUND,
    ) -> None:
        """Kafka's settings; and `descriptors_max`, which counts whatever these say."""
        self.descriptors_max = descriptors_max
        self.max_connections = max_connections
        self.max_per_address = max_per_address
        self.overrides = overrides
        self.rate_max = rate_max
        self.total = 0
        self.rejected = 0
        self._per_address: dict[str, int] = {}
        self._window_start_ms = 0.0
        self._window_count = 0

    def rate_delay_ms(self, now_ms: float) -> float:
        """Milliseconds until another connection may be accepted; 0 for now."""
        if now_ms - self._window_start_ms >= 1000.0:
            self._window_start_ms = now_ms
            self._window_count = 0
        if self._window_count < self.rate_max:
            return 0.0
        return self._window_start_ms + 1000.0 - now_ms

    def refusal(self, host: str) -> str | None:
        """Why a connection from `host` is refused; None when it is welcome."""
        if self.total >= self.max_connections:
            return f"max.connections={self.max_connections} are open"
        if self.total >= self.descriptors_max:
            return f"{self.descriptors_max} are open, there is no descriptor for more (ulimit -n)"
        limit = self.overrides.get(host, self.max_per_address)
        if self._per_address.get(host, 0) >= limit:
            return f"max.connections.per.ip={limit} are open from this address"
        return None

    def opened(self, host: str) -> None:
        """Count a connection."""
        self.total += 1
        self._window_count += 1
        self._per_address[host] = self._per_address.get(host, 0) + 1

    def closed(self, host: str) -> None:
        """Uncount it."""
        self.total -= 1
        left = self._per_address.get(host, 1) - 1
        if left > 0:
            self._per_address[host] = left
        else:
            self._per_address.pop(host, None)


class Acceptor:
    """See the module."""

    __slots__ = (
        "_clock",
        "_free_descriptors",
        "_limits",
        "_listener",
        "_next",
        "_poller",
        "_processors",
        "_receive_buffer_bytes",
        "_send_buffer_bytes",
        "_timer",
        "_told_ms",
        "_watching",
        "accepted",
        "listener_name",
        "on_accepted",
    )

    def __init__(
        self,
        listener_name: str,
        listener: socket.socket,
        processors: Sequence[Processor],
        *,
        poller: Poller,
        timer: Timer,
        clock: Clock,
        limits: ConnectionLimits,
        send_buffer_bytes: int,
        receive_buffer_bytes: int,
        on_accepted: Callable[[Connection], None] | None = None,
        free_descriptors: Callable[[], object] = lambda: None,
    ) -> None:
        self._free_descriptors = free_descriptors
        self._told_ms = float("-inf")
        self.listener_name = listener_name
        self.accepted = 0
        self.on_accepted = on_accepted
        self._listener = listener
        self._processors = processors
        self._poller = poller
        self._timer = timer
        self._clock = clock
        self._limits = limits
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes
        self._next = -1
        self._watching = False

    @property
    def port(self) -> int:
        """The port listened on: the one the system chose where the setting says 0."""
        return int(self._listener.getsockname()[1])

    def start(self) -> None:
        """Begin to accept."""
        if not self._watching and self._listener.fileno() >= 0:
            self._watching = True
            self._poller.add_reader(self._listener.fileno(), self._on_acceptable)

    def _pause(self, delay_ms: float) -> None:
        self._watching = False
        self._poller.remove_reader(self._listener.fileno())
        self._timer.call_later_ms(delay_ms, self.start)

    def _on_acceptable(self) -> None:
        turn_end_ms = self._clock.monotonic_ms() + ACCEPT_TURN_MS
        for _ in range(ACCEPT_BATCH):
            now_ms = self._clock.monotonic_ms()
            if now_ms >= turn_end_ms:
                return
            delay_ms = self._limits.rate_delay_ms(now_ms)
            if delay_ms > 0:
                self._pause(delay_ms)
                return
            try:
                connected, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if now_ms - self._told_ms >= TOLD_AGAIN_MS:
                    self._told_ms = now_ms
                    LOGGER.error("accept failed listener=%s error=%s", self.listener_name, error)
                if error.errno in DESCRIPTOR_LIMIT:
                    self._free_descriptors()
                self._pause(OUT_OF_DESCRIPTORS_PAUSE_MS)
                return
            self._take(connected, address)

    def _take(self, connected: socket.socket, address: Sequence[object]) -> None:
        host = str(address[0]).removeprefix("::ffff:")
        refusal = self._limits.refusal(host)
        if refusal is not None:
            self._limits.rejected += 1
            LOGGER.warning("connection refused peer=%s reason=%s", host, refusal)
            connected.close()
            return
        try:
            tune(
                connected,
                send_buffer_bytes=self._send_buffer_bytes,
                receive_buffer_bytes=self._receive_buffer_bytes,
            )
        except OSError:
            # The peer has gone again already.
            connected.close()
            return
        self._limits.opened(host)
        self.accepted += 1
        # There may be fewer than a moment ago.
        self._next = (self._next + 1) % len(self._processors)
        processor = self._processors[self._next]
        info = ConnectionInfo(
            listener_name=self.listener_name,
            peer_host=host,
            peer_port=int(str(address[1])),
        )
        connection = processor.add(SocketStream(connected), info)
        if self.on_accepted is not None:
            self.on_accepted(connection)

    def close(self) -> None:
        """Stop accepting; connections already accepted stay."""
        if self._watching:
            self._watching = False
            self._poller.remove_reader(self._listener.fileno())
        self._listener.close()
