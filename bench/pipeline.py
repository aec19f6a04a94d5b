"""Many connections on one thread: requests go out at once, each answer goes to its caller.

A broker answers the requests of one connection in order, so a connection keeps a queue of who
waits. Members and producers of the measurements are state machines on such connections: cheap
enough that a hundred of them, or ten thousand, leave the broker's time to be measured.
"""

import errno
import heapq
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable

from bench.generator import GeneratorError

_RECEIVE_SIZE = 1 << 18
_CORRELATION_ID = slice(8, 12)

OnAnswer = Callable[[bytes], None]


class Connection:
    """One socket. Build it with `Loop.connect`."""

    def __init__(
        self, loop: "Loop", host: str, port: int, on_connected: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._on_connected: Callable[[], None] | None = on_connected
        self._waiting: deque[tuple[bytes, OnAnswer]] = deque()
        self._unsent = bytearray()
        self._received = bytearray()
        self._is_closed = False
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = self._socket.connect_ex((host, port))
        if code not in (0, errno.EINPROGRESS):
            raise GeneratorError(f"connect: {errno.errorcode[code]}")
        self.fd = self._socket.fileno()

    @property
    def in_flight(self) -> int:
        """Requests that have no answer yet."""
        return len(self._waiting)

    def send(self, frame: bytes | bytearray, on_answer: OnAnswer) -> None:
        """Send a request; `on_answer` gets the answer from its correlation id on."""
        self._waiting.append((bytes(frame[_CORRELATION_ID]), on_answer))
        if self._unsent or self._on_connected is not None:
            self._unsent += frame
            return
        try:
            sent = self._socket.send(frame)
        except BlockingIOError:
            sent = 0
        if sent < len(frame):
            self._unsent += frame[sent:]
            self._loop.watch(self, writing=True)

    def on_writable(self) -> None:
        """Called by the loop."""
        if self._on_connected is not None:
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise GeneratorError(f"connect: {errno.errorcode[code]}")
            on_connected, self._on_connected = self._on_connected, None
            on_connected()
        if self._unsent:
            try:
                del self._unsent[: self._socket.send(self._unsent)]
            except BlockingIOError:
                return
        if not self._unsent:
            self._loop.watch(self, writing=False)

    def on_readable(self) -> None:
        """Called by the loop."""
        try:
            data = self._socket.recv(_RECEIVE_SIZE)
        except BlockingIOError:
            return
        if not data:
            raise GeneratorError("the broker closed a connection")
        buffer = self._received
        buffer += data
        position, have = 0, len(buffer)
        while have - position >= 4:
            (size,) = struct.unpack_from(">i", buffer, position)
            if have - position < size + 4:
                break
            answer = bytes(buffer[position + 4 : position + 4 + size])
            position += 4 + size
            correlation_id, on_answer = self._waiting.popleft()
            if answer[:4] != correlation_id:
                raise GeneratorError("an answer to another request")
            on_answer(answer)
        if position:
            del buffer[:position]

    def close(self) -> None:
        """Close at once, whatever is on its way."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.forget(self)
            self._socket.close()


class Loop:
    """Polls its connections and calls what is due."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._by_fd: dict[int, Connection] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def connect(self, host: str, port: int, on_connected: Callable[[], None]) -> Connection:
        """A new connection; what is sent before it stands goes out when it does."""
        connection = Connection(self, host, port, on_connected)
        self._by_fd[connection.fd] = connection
        self._poll.register(connection.fd, select.EPOLLIN | select.EPOLLOUT)
        return connection

    def watch(self, connection: Connection, *, writing: bool) -> None:
        """Whether to tell a connection that it can send."""
        self._poll.modify(connection.fd, select.EPOLLIN | (select.EPOLLOUT if writing else 0))

    def forget(self, connection: Connection) -> None:
        """A connection is about to be closed."""
        del self._by_fd[connection.fd]
        self._poll.unregister(connection.fd)

    def call_at(self, moment: float, call: Callable[[], None]) -> None:
        """Call once `time.perf_counter()` has reached `moment`."""
        self._count += 1
        heapq.heappush(self._due, (moment, self._count, call))

    def turn(self, wait_s: float = 0.01) -> None:
        """Handle what there is, waiting for it at most `wait_s`."""
        if self._due:
            wait_s = max(0.0, min(wait_s, self._due[0][0] - time.perf_counter()))
        for fd, events in self._poll.poll(wait_s):
            connection = self._by_fd.get(fd)
            if connection is None:  # closed by a callback of this turn
                continue
            if events & (select.EPOLLHUP | select.EPOLLERR):
                raise GeneratorError("the broker closed a connection")
            if events & select.EPOLLOUT:
                connection.on_writable()
            if events & select.EPOLLIN:
                connection.on_readable()
        while self._due and self._due[0][0] <= time.perf_counter():
            heapq.heappop(self._due)[2]()

    def run_until(self, is_done: Callable[[], bool], timeout_s: float, what: str) -> float:
        """Turn until `is_done`; the seconds that took.

        Raises:
            GeneratorError: It took longer than `timeout_s`.
        """
        begin = time.perf_counter()
        while not is_done():
            if time.perf_counter() - begin > timeout_s:
                raise GeneratorError(f"{what}: not done after {timeout_s} s")
            self.turn()
        return time.perf_counter() - begin

    def close(self) -> None:
        """Close every connection."""
        for connection in list(self._by_fd.values()):
            connection.close()
        self._poll.close()
