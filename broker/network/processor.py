"""A processor owns a share of the connections (`num.network.threads` says how many shares).

All processors run on the broker's one event loop: they bound what one set of connections can queue
up and give the metrics their label, they do not add threads. Source of the shape: Kafka,
SocketServer.scala.
"""

from typing import TYPE_CHECKING, Final

from broker.network.connection import Connection, Traffic
from broker.network.connection_info import ConnectionInfo
from broker.network.loop_resources import LoopResources
from broker.network.read_budget import BUDGET_MS
from broker.network.read_gate import PAUSED_BY_STOP, PAUSED_BY_TIME_LIMIT
from broker.network.request_channel import RequestChannel
from broker.network.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.types.file_slice import FileSlice

TIME_LIMIT_MS: Final = 1.0
"""How long the requests of one receive may take before those of other connections are handled:
256 KiB of the smallest ones take half a second."""

STALLED_MS: Final = 10_000.0
"""When memory is short, a peer without progress for this long loses its connection: the sender of
an unfinished frame, or the reader of answers that lie in memory."""


class Processor:
    """See the module.

    Attributes:
        resources: What all connections of the loop share.
    """

    __slots__ = (
        "_clock",
        "_on_closed",
        "_resuming",
        "_warm",
        "channel",
        "closed_connections",
        "connections",
        "frame_size_max",
        "index",
        "listener_name",
        "resources",
        "traffic",
    )

    def __init__(
        self,
        index: int,
        listener_name: str,
        *,
        resources: LoopResources,
        channel: RequestChannel,
        frame_size_max: int,
        warm: "Callable[[Connection, FileSlice], None]",
        on_closed: "Callable[[Connection, str | None], None]",
    ) -> None:
        """Without connections.

        Args:
            index: Its number among those of the listener.
            listener_name: Whose connections it has.
            resources: What all connections of the loop share.
            channel: Takes requests.
            frame_size_max: `socket.request.max.bytes`.
            warm: Has a thread read a slice, then calls the connection's `warmed`.
            on_closed: Called with a closed connection, and the reason if it is to be logged.
        """
        self.index = index
        self.listener_name = listener_name
        self.resources = resources
        self.channel = channel
        self.frame_size_max = frame_size_max
        # Dictionaries, for an order that a seed repeats: the oldest first.
        self.connections: dict[Connection, None] = {}
        self.traffic = Traffic()
        self.closed_connections = 0
        self._clock = resources.clock
        self._warm = warm
        self._on_closed = on_closed
        # Connections that are to go on in the next iteration.
        self._resuming = 0

    @property
    def now_ms(self) -> float:
        """Monotonic milliseconds."""
        return self._clock.monotonic_ms()

    @property
    def time_limit_ms(self) -> float:
        """How long a connection with many requests may go on while so many others are to go on.

        With forty of them, a connection with one request waits for forty: for about BUDGET_MS.
        """
        return min(TIME_LIMIT_MS, BUDGET_MS / (self._resuming + 1))

    def resume_in_next_iteration(self, connection: Connection) -> None:
        """Resume a connection paused by PAUSED_BY_TIME_LIMIT after others that have requests."""
        self._resuming += 1
        self.resources.poller.call_soon(self._resume, connection)

    def _resume(self, connection: Connection) -> None:
        self._resuming -= 1
        connection.resume(PAUSED_BY_TIME_LIMIT)

    def settle_in_next_iteration(self, connection: Connection) -> None:
        """Let a connection go on after PAUSED_BY_BACKLOG, within its share of the next iteration.

        An append may complete the polls of hundreds of connections with more requests behind them.
        """
        self._resuming += 1
        self.resources.poller.call_soon(self._settle, connection)

    def _settle(self, connection: Connection) -> None:
        self._resuming -= 1
        connection.resume_backlog()

    def add(self, stream: Stream, info: ConnectionInfo) -> Connection:
        """Own an accepted socket and read from it.

        A client that waited in the backlog has sent its first request by now, so it is read at
        once. Under a flood of ready sockets this is what keeps newcomers alive: the loop begins to
        watch another one only after it has polled those that it has.
        """
        connection = Connection(stream, info, self)
        connection.last_active_ms = self.now_ms
        self.connections[connection] = None
        connection.start()
        return connection

    def warm(self, connection: Connection, slice_: "FileSlice") -> None:
        """Have a thread read a slice into the page cache, then let the connection go on."""
        self._warm(connection, slice_)

    def connection_closed(self, connection: Connection, reason: str | None) -> None:
        """Called by the connection itself."""
        self.connections.pop(connection, None)
        self.closed_connections += 1
        self._on_closed(connection, reason)

    def sweep(self, max_idle_ms: float) -> None:
        """Close connections whose peer is gone, idle or stalled."""
        now = self.now_ms
        buffers = self.resources.buffers
        for connection in [c for c in self.connections if c.unwatched and c.stream.hung_up()]:
            connection.close(None)
        if max_idle_ms >= 0:
            for connection in [
                c
                for c in self.connections
                if now - c.last_active_ms > max_idle_ms and not (c.unanswered or c.is_held_up)
            ]:
                connection.close("idle for longer than connections.max.idle.ms")
        stalled = sorted(
            (
                c
                for c in self.connections
                if c.partial_bytes and now - c.last_active_ms > STALLED_MS and not c.is_held_up
            ),
            key=lambda c: c.last_active_ms,
            reverse=True,
        )
        while stalled and buffers.exhausted:
            stalled.pop().close("unfinished request without progress while memory is short")
        if self.resources.responses.exhausted:
            self._close_slow_readers(now)

    def _close_slow_readers(self, now: float) -> None:
        """Peers that take nothing, those with most bytes in memory first."""
        slow = sorted(
            (c for c in self.connections if c.held_bytes and now - c.last_active_ms > STALLED_MS),
            key=lambda c: c.held_bytes,
        )
        while slow and self.resources.responses.exhausted:
            slow.pop().close("answers are not taken while memory is short")

    def stop_reading(self) -> None:
        """Take no further requests: what is under way can come to an end."""
        for connection in self.connections:
            connection.pause(PAUSED_BY_STOP)
