"""A network in virtual time: delays, stalls, one-way cuts, resets, refused connects.

host      a machine's address; several processes may be on one (clients)
link      from one host to another, one way. A cut one holds bytes back: TCP sends them again,
so that they come when it is healed, and nobody is told meanwhile
stream    `broker.network.stream.Stream`; bytes of one come in their order
kill      a process ends: its kernel closes its streams, and refuses connects to its ports
crash     a machine ends: nothing is closed, connects get no answer; when it is back, what
comes for its old streams is answered by a reset
"""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from broker.network.connector import Resolved, Resolver
from broker.network.stream import Poller, Stream
from storage.environment.clock import Clock
from storage.environment.filesystem import File
from tests.simulation.loop import Process, SimLoop

WINDOW = 256 * 1024
"""Bytes of a stream that its receiver has not taken; more are not sent."""

DELAY_S = 0.0005
SLOW_SHARE = 0.01
SLOW_S = 0.02
"""A message takes up to DELAY_S; so many take up to SLOW_S."""

SYN_AGAIN_S = 1.0
"""A connect that gets no answer is tried again."""


class SimStream:
    """One end of a connection."""

    def __init__(self, network: "SimNetwork", process: Process, host: str, peer_host: str) -> None:
        self._network = network
        self.process = process
        self.host = host
        self.peer_host = peer_host
        self.peer: SimStream | None = None
        self.fd = network.loop.open_fd(self)
        self.closed = False
        self._received: deque[memoryview] = deque()
        self._error: OSError | None = None
        self._at_end = False
        # Sent by this end, and not taken by the peer.
        self.unread = 0
        self._last_arrival_s = 0.0
        network.streams[self.fd] = self

    # -- Stream ----------------------------------------------------------------------------------

    def fileno(self) -> int:
        return self.fd

    def recv_into(self, buffer: memoryview) -> int:
        if self._has_ended():
            return 0
        chunk = self._received[0]
        count = min(len(buffer), len(chunk))
        buffer[:count] = chunk[:count]
        if count == len(chunk):
            self._received.popleft()
        else:
            self._received[0] = chunk[count:]
        if self.peer is not None:
            self.peer.taken(count)
        return count

    def take(self) -> bytes:
        """All that has arrived; b"" at the end.

        Raises:
            BlockingIOError: Nothing has.
            OSError: The connection was reset.
        """
        if self._has_ended():
            return b""
        data = b"".join(self._received)
        self._received.clear()
        if self.peer is not None:
            self.peer.taken(len(data))
        return data

    def _has_ended(self) -> bool:
        if self.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self._received:
            return False
        if self._error is not None:
            raise self._error
        if self._at_end:
            return True
        raise BlockingIOError

    def send_buffers(self, buffers: Sequence[Any], more: bool) -> int:
        room = self._room()
        data = b"".join(buffers)[:room]
        self._send(data)
        return len(data)

    def send_file(self, file: File, position: int, count: int) -> int:
        room = self._room()
        data = file.read_at(min(count, room), position)
        self._send(data)
        return len(data)

    def expect(self, count: int) -> None:
        """Any byte counts: a kernel may say so as well."""

    def hung_up(self) -> bool:
        return self._at_end or self._error is not None

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._network.forget(self)
            self._network.post(self, None)

    # -- the network's side ----------------------------------------------------------------------

    def is_readable(self) -> bool:
        return bool(self._received) or self._at_end or self._error is not None

    def is_writable(self) -> bool:
        return self._error is not None or self.unread < WINDOW

    def _room(self) -> int:
        if self.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self._error is not None:
            raise self._error
        if self.unread >= WINDOW:
            raise BlockingIOError
        return WINDOW - self.unread

    def _send(self, data: bytes) -> None:
        if data:
            self.unread += len(data)
            self._network.post(self, data)

    def taken(self, count: int) -> None:
        """The peer has read so much."""
        self.unread -= count
        self._network.loop.changed(self.fd)

    def arrival_s(self, delay_s: float) -> float:
        """When what is sent now arrives: never before what was sent earlier."""
        now_s = self._network.loop.time()
        self._last_arrival_s = max(self._last_arrival_s, now_s + delay_s)
        return self._last_arrival_s - now_s

    def arrive(self, data: "bytes | OSError | None") -> None:
        """Bytes, a reset, or the end."""
        if self.closed or self._error is not None:
            if self.closed and isinstance(data, bytes):
                # Nothing is there to take it.
                self._network.post(self, ConnectionResetError(errno.ECONNRESET, "reset"))
            return
        if data is None:
            self._at_end = True
        elif isinstance(data, bytes):
            self._received.append(memoryview(data))
        else:
            self._error = data
            self._received.clear()
        self._network.loop.changed(self.fd)


class SimListening:
    """A listening socket."""

    def __init__(self, network: "SimNetwork", process: Process, host: str, port: int) -> None:
        self._network = network
        self.process = process
        self.address = (host, port)
        self.backlog: deque[SimStream] = deque()
        self._fd = network.loop.open_fd(self)

    def fileno(self) -> int:
        return self._fd

    def accept(self) -> tuple[SimStream, tuple[str, int]]:
        if not self.backlog:
            raise BlockingIOError
        stream = self.backlog.popleft()
        return stream, (stream.peer_host, stream.fd % 60_000)

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def close(self) -> None:
        if self._fd >= 0:
            self._network.loop.close_fd(self._fd)
            self._network.listening.pop(self.address, None)
            self._fd = -1
            for stream in self.backlog:
                stream.close()

    def is_readable(self) -> bool:
        return bool(self.backlog)

    def is_writable(self) -> bool:
        return False


class SimNetwork:
    """All hosts.

    Attributes:
        cut: Links (from, to) that hold everything back.
        slow: Links (from, to) with what each message takes longer, in seconds.
        down: Hosts whose machine is off.
        listening: By address.
        streams: Open ends, by descriptor.
    """

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.cut: set[tuple[str, str]] = set()
        self.slow: dict[tuple[str, str], float] = {}
        self.down: set[str] = set()
        self.listening: dict[tuple[str, int], SimListening] = {}
        self.streams: dict[int, SimStream] = {}
        self._held: list[tuple[str, str, Callable[[], None]]] = []
        self._orphans: list[SimStream] = []
        self._next_port = 40_000

    def host(self, host: str, process: Process) -> "HostNetwork":
        """`broker.network.network.Network` for a process on a host."""
        return HostNetwork(self, host, process)

    def delay_s(self) -> float:
        """How long a message takes."""
        random = self.loop.random
        longest = SLOW_S if random.random() < SLOW_SHARE else DELAY_S
        return random.random() * longest

    def carry(self, source: str, target: str, delay_s: float, act: Callable[[], None]) -> None:
        """Do something at `target` after the delay, or when the link is healed."""

        def arrive() -> None:
            if (source, target) in self.cut:
                self._held.append((source, target, arrive))
            elif target not in self.down:
                act()

        self.loop.happen_in(delay_s, arrive)

    def post(self, stream: SimStream, data: "bytes | OSError | None") -> None:
        """Send to the peer of a stream."""
        peer = stream.peer
        if peer is not None:
            slow_s = self.slow.get((stream.host, stream.peer_host), 0.0) if self.slow else 0.0
            delay_s = stream.arrival_s(self.delay_s() + slow_s)
            self.carry(stream.host, stream.peer_host, delay_s, lambda: peer.arrive(data))

    def forget(self, stream: SimStream) -> None:
        """It is closed at its own end."""
        self.loop.close_fd(stream.fd)
        self.streams.pop(stream.fd, None)

    def heal(self, *links: tuple[str, str]) -> None:
        """Let links carry again; all of them when none is named."""
        for link in links or sorted(self.cut):
            self.cut.discard(link)
        held, self._held = self._held, []
        for source, target, arrive in held:
            if (source, target) in self.cut:
                self._held.append((source, target, arrive))
            else:
                # Now, in their order: what was sent later, and is due, must not overtake them.
                arrive()

    def kill(self, process: Process) -> None:
        """A process has ended: its kernel closes what it had open."""
        for address, listening in list(self.listening.items()):
            if listening.process is process:
                del self.listening[address]
                for stream in listening.backlog:
                    stream.close()
                self.loop.close_fd(listening.fileno())
        for stream in [one for one in self.streams.values() if one.process is process]:
            if self.loop.random.random() < 0.5:
                stream.closed = True
                self.forget(stream)
                self.post(stream, ConnectionResetError(errno.ECONNRESET, "reset"))
            else:
                stream.close()

    def crash(self, host: str, process: Process) -> None:
        """A machine is off, and a process with it."""
        self.down.add(host)
        for address in [one for one in self.listening if one[0] == host]:
            self.loop.close_fd(self.listening.pop(address).fileno())
        for stream in [one for one in self.streams.values() if one.process is process]:
            stream.closed = True
            self.forget(stream)
            self._orphans.append(stream)

    def boot(self, host: str) -> None:
        """The machine is on again: what its peers still send to old streams is refused."""
        self.down.discard(host)
        orphans, self._orphans = self._orphans, []
        for stream in orphans:
            if stream.host == host:
                self.post(stream, ConnectionResetError(errno.ECONNRESET, "reset"))
            else:
                self._orphans.append(stream)

    def reset(self, one: str, other: str) -> None:
        """End all connections between two hosts; both ends are told."""
        for stream in list(self.streams.values()):
            if {stream.host, stream.peer_host} == {one, other}:
                stream.arrive(ConnectionResetError(errno.ECONNRESET, "reset"))

    def port(self) -> int:
        """A free one."""
        self._next_port += 1
        return self._next_port


class _Connecting:
    def __init__(self) -> None:
        self.done: Callable[[Stream | OSError], None] | None = None

    def cancel(self) -> None:
        self.done = None


class HostNetwork:
    """The network as a process on a host sees it; also its own `Connector`."""

    def __init__(self, network: SimNetwork, host: str, process: Process) -> None:
        self._network = network
        self._host = host
        self._process = process

    def listen(
        self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int
    ) -> SimListening:
        if (host, port) in self._network.listening:
            raise OSError(errno.EADDRINUSE, f"{host}:{port}: {os.strerror(errno.EADDRINUSE)}")
        listening = SimListening(self._network, self._process, host, port or self._network.port())
        self._network.listening[listening.address] = listening
        return listening

    def stream(
        self, accepted: SimStream, *, send_buffer_bytes: int, receive_buffer_bytes: int
    ) -> SimStream:
        return accepted

    def connection_poller(self, loop: Poller, clock: Clock) -> None:
        """The simulated loop watches all."""

    def connector(
        self, loop: asyncio.AbstractEventLoop, *, receive_buffer_bytes: int
    ) -> "HostNetwork":
        return self

    def resolver(self, loop: asyncio.AbstractEventLoop) -> Resolver:
        def known(host: str, port: int, done: Resolved, /) -> None:
            loop.call_soon(done, [(socket.AF_INET, (host, port))])

        return known

    def connect(
        self, host: str, port: int, done: Callable[[Stream | OSError], None]
    ) -> _Connecting:
        connecting = _Connecting()
        connecting.done = done
        self._syn(host, port, connecting)
        return connecting

    def _syn(self, host: str, port: int, connecting: _Connecting) -> None:
        if connecting.done is None or self._process.is_dead:
            return
        network, loop = self._network, self._network.loop
        again = loop.call_in_later(SYN_AGAIN_S, loop.outside, self._syn, host, port, connecting)

        def answer(result: SimStream | OSError) -> None:
            def finish() -> None:
                again.cancel()
                callback, connecting.done = connecting.done, None
                if callback is not None:
                    callback(result)
                elif isinstance(result, SimStream):
                    result.close()

            # What the kernel knows, the process learns in its own turn.
            loop.call_in(self._process, finish)

        def arrive() -> None:
            listening = network.listening.get((host, port))
            back_s = network.delay_s()
            if listening is None:
                refused = ConnectionRefusedError(
                    errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)
                )
                network.carry(host, self._host, back_s, lambda: answer(refused))
                return
            ours = SimStream(network, self._process, self._host, host)
            theirs = SimStream(network, listening.process, host, self._host)
            ours.peer, theirs.peer = theirs, ours
            listening.backlog.append(theirs)
            loop.changed(listening.fileno())
            network.carry(host, self._host, theirs.arrival_s(back_s), lambda: answer(ours))

        if (self._host, host) not in network.cut:
            network.carry(self._host, host, network.delay_s(), arrive)
