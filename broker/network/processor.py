"""A processor owns a share of the connections (`num.network.threads` says how many shares).

All processors run on the broker's one event loop: they bound what one set of connections can queue
up and give the metrics their label, they do not add threads. Source of the shape: Kafka,
SocketServer.scala.
"""

from typing import TYPE_CHECKING

from broker.network.connection import (
    PAUSED_BY_MEMORY,
    PAUSED_BY_STOP,
    PAUSED_BY_TURN,
    TURN_MS,
    Connection,
)
from broker.network.connection_info import ConnectionInfo
from broker.network.iteration_end import TurnEnd
from broker.network.read_budget import ROUND_MS, LoopTurn
from broker.network.receive_buffers import ReceiveBuffers
from broker.network.response import ResponseMemory
from broker.network.stream import Poller, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.request_channel import RequestChannel
    from storage.environment.clock import Clock
    from storage.types.file_slice import FileSlice

STALLED_MS = 10_000.0
"""When memory is short, who makes no progress for this long loses its place: the sender of an
unfinished frame, or the reader of answers that lie in memory."""


class Processor:
    """See the module. `shared` is the receive buffer that all connections of the loop share."""

    __slots__ = (
        "_clock",
        "_log_close",
        "_memory_waiters",
        "_on_closed",
        "_waiting_for_turn",
        "_warm",
        "buffers",
        "bytes_received",
        "bytes_sent",
        "channel",
        "closed_connections",
        "connections",
        "frame_size_max",
        "index",
        "listener_name",
        "loop_turn",
        "poller",
        "responses",
        "shared",
        "turn_end",
    )

    def __init__(
        self,
        index: int,
        listener_name: str,
        *,
        poller: Poller,
        channel: "RequestChannel",
        buffers: ReceiveBuffers,
        shared: memoryview,
        frame_size_max: int,
        clock: "Clock",
        warm: "Callable[[Connection, FileSlice], None]",
        on_closed: "Callable[[Connection, str | None], None]",
        responses: ResponseMemory | None = None,
        turn_end: TurnEnd | None = None,
        loop_turn: LoopTurn | None = None,
    ) -> None:
        self.index = index
        self.listener_name = listener_name
        self.poller = poller
        self.channel = channel
        self.buffers = buffers
        self.responses = responses or ResponseMemory(1 << 62)
        self.turn_end = turn_end or TurnEnd(poller.call_soon, clock)
        self.loop_turn = loop_turn or LoopTurn(poller.call_soon, clock)
        self.shared = shared
        self.frame_size_max = frame_size_max
        self.connections: set[Connection] = set()
        self.bytes_received = 0
        self.bytes_sent = 0
        self.closed_connections = 0
        self._clock = clock
        self._warm = warm
        self._on_closed = on_closed
        self._memory_waiters: set[Connection] = set()
        self._waiting_for_turn = 0

    @property
    def now_ms(self) -> float:
        """Monotonic milliseconds."""
        return self._clock.monotonic_ms()

    @property
    def turn_ms(self) -> float:
        """How long a connection with much to do may go on while so many others wait to.

        With forty of them, who asks for one thing waits for forty turns: for about ROUND_MS.
        """
        return min(TURN_MS, ROUND_MS / (self._waiting_for_turn + 1))

    def await_turn(self, connection: Connection) -> None:
        """Resume a connection paused by PAUSED_BY_TURN after the others that have something."""
        self._waiting_for_turn += 1
        self.poller.call_soon(self._next_turn, connection)

    def _next_turn(self, connection: Connection) -> None:
        self._waiting_for_turn -= 1
        connection.resume(PAUSED_BY_TURN)

    def await_going_on(self, connection: Connection) -> None:
        """Let a connection go on after PAUSED_BY_BACKLOG, in its share of the loop's next turn.

        An append may wake the polls of hundreds of connections with more requests behind them.
        """
        self._waiting_for_turn += 1
        self.poller.call_soon(self._go_on, connection)

    def _go_on(self, connection: Connection) -> None:
        self._waiting_for_turn -= 1
        connection.go_on()

    def add(self, stream: Stream, info: ConnectionInfo) -> Connection:
        """Take over an accepted socket and read from it.

        A client that waited in the backlog has sent its first request by now, so it is looked for
        at once. Under a flood of more than a thousand ready sockets this is what keeps newcomers
        alive: libuv polls up to 48 times in a row before it begins to watch another one.
        """
        connection = Connection(stream, info, self)
        connection.last_active_ms = self.now_ms
        self.connections.add(connection)
        self.poller.add_reader(connection.fd, connection.on_readable)
        connection.on_readable()
        return connection

    def warm(self, connection: Connection, slice_: "FileSlice") -> None:
        """Have a thread read a slice into the page cache, then let the connection go on."""
        self._warm(connection, slice_)

    def wait_for_memory(self, connection: Connection) -> None:
        """`queued.max.request.bytes` is used up: leave this connection's bytes in its socket."""
        self._memory_waiters.add(connection)
        connection.pause(PAUSED_BY_MEMORY)

    def connection_closed(self, connection: Connection, reason: str | None) -> None:
        """Called by the connection itself."""
        self.connections.discard(connection)
        self._memory_waiters.discard(connection)
        self.closed_connections += 1
        self._on_closed(connection, reason)

    def sweep(self, max_idle_ms: float) -> None:
        """Close who is gone, or idle, or stalls while memory is short; wake who waited for it."""
        now = self.now_ms
        for connection in [c for c in self.connections if c.unwatched and c.stream.hung_up()]:
            connection.close(None)
        if max_idle_ms >= 0:
            for connection in [
                c
                for c in self.connections
                if now - c.last_active_ms > max_idle_ms and not c.unanswered
            ]:
                connection.close("idle for longer than connections.max.idle.ms")
        stalled = sorted(
            (
                c
                for c in self.connections
                if c.partial_bytes and now - c.last_active_ms > STALLED_MS
            ),
            key=lambda c: c.last_active_ms,
            reverse=True,
        )
        while stalled and self.buffers.exhausted:
            stalled.pop().close("unfinished request without progress while memory is short")
        if self.responses.exhausted:
            self._close_slow_readers(now)
        if self._memory_waiters and not self.buffers.exhausted:
            waiters, self._memory_waiters = self._memory_waiters, set()
            for connection in waiters:
                connection.resume(PAUSED_BY_MEMORY)

    def _close_slow_readers(self, now: float) -> None:
        """Those who take nothing, those who hold most first."""
        slow = sorted(
            (c for c in self.connections if c.held_bytes and now - c.last_active_ms > STALLED_MS),
            key=lambda c: c.held_bytes,
        )
        while slow and self.responses.exhausted:
            slow.pop().close("answers are not taken while memory is short")

    def stop_reading(self) -> None:
        """Take no further requests: what is under way can come to an end."""
        for connection in self.connections:
            connection.pause(PAUSED_BY_STOP)
