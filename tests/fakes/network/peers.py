"""Connects in memory: the test accepts, refuses, or lets them wait, and plays the peer's broker."""

import struct
from collections.abc import Callable
from typing import NamedTuple

from broker.network.connector import Connecting
from broker.network.receive_buffers import ReceiveBuffers
from broker.network.stream import Stream
from broker.peers.connection import PeerResources
from broker.peers.observer import PeerObservers
from broker.peers.peers import answer_buffers
from protocol.headers import response_header_version
from tests.fakes.network.sockets import FakePoller, FakeStream
from tests.fakes.timer import ManualTimer


class FakeConnect:
    """A connect that is under way; it ends by `accept` or `fail`."""

    def __init__(self, host: str, port: int, done: Callable[[Stream | OSError], None]) -> None:
        self.host = host
        self.port = port
        self.cancelled = False
        self._done = done

    def accept(self, fd: int = 100) -> FakeStream:
        """The peer takes it."""
        assert not self.cancelled
        stream = FakeStream(fd)
        self._done(stream)
        return stream

    def fail(self, error: OSError) -> None:
        """It fails."""
        assert not self.cancelled
        self._done(error)

    def refuse(self) -> None:
        """Nothing listens."""
        self.fail(ConnectionRefusedError(111, "Connection refused"))

    def cancel(self) -> None:
        self.cancelled = True


class FakeConnector:
    """`broker.network.connector.Connector`; `connects` has every one, the newest last."""

    def __init__(self) -> None:
        self.connects: list[FakeConnect] = []

    def connect(self, host: str, port: int, done: Callable[[Stream | OSError], None]) -> Connecting:
        connect = FakeConnect(host, port, done)
        self.connects.append(connect)
        return connect


class SentRequest(NamedTuple):
    """A request as the peer sees it."""

    api_key: int
    version: int
    correlation_id: int
    rest: bytes


def requests_of(stream: FakeStream) -> list[SentRequest]:
    """Whole requests that were sent; they are taken out of `stream.sent`."""
    found = []
    while len(stream.sent) >= 4:
        (size,) = struct.unpack_from(">i", stream.sent)
        if len(stream.sent) < 4 + size:
            break
        data = bytes(stream.sent[4 : 4 + size])
        del stream.sent[: 4 + size]
        api_key, version, correlation_id = struct.unpack_from(">hhi", data)
        found.append(SentRequest(api_key, version, correlation_id, data[8:]))
    return found


def answer_to(request: SentRequest, body: bytes) -> bytes:
    """The frame that answers a request."""
    tags = b"\x00" * response_header_version(request.api_key, request.version)
    data = struct.pack(">i", request.correlation_id) + tags + body
    return struct.pack(">i", len(data)) + data


class PeerWorld:
    """Everything that connections to peers need, in memory."""

    def __init__(self) -> None:
        self.poller = FakePoller()
        self.connector = FakeConnector()
        self.timer = ManualTimer()
        self.buffers: ReceiveBuffers = answer_buffers()
        self.observers = PeerObservers()
        self.resources = PeerResources(
            poller=self.poller,
            connector=self.connector,
            timer=self.timer,
            clock=self.timer.clock,
            buffers=self.buffers,
            observers=self.observers,
            client_id="broker-1",
        )

    def receive(self, stream: FakeStream, *chunks: bytes | OSError) -> None:
        """Bytes come from the peer; an empty chunk is its end.

        As by epoll the connection is called as long as there is something, and it watches.
        """
        stream.incoming += chunks
        self.poller.readable(stream.fd)
        while stream.incoming and stream.fd in self.poller.readers:
            self.poller.readable(stream.fd)


class SeenPeers:
    """`PeerObserver` that remembers."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    def on_peer_connected(self, node_id: int, epoch: int) -> None:
        self.seen.append(("connected", node_id, epoch))

    def on_peer_ended(self, node_id: int, epoch: int, error: OSError | None) -> None:
        self.seen.append(("ended", node_id, epoch, type(error).__name__))

    def on_peer_refused(self, node_id: int, epoch: int) -> None:
        self.seen.append(("refused", node_id, epoch))

    def on_peer_unreachable(self, node_id: int, epoch: int, error: OSError) -> None:
        self.seen.append(("unreachable", node_id, epoch, type(error).__name__))
