"""Requests to other brokers, over connections that are made as they are needed."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import Final

from broker.network.receive_buffers import ReceiveBuffers
from broker.peers.connection import PeerConnection, PeerResources, State
from broker.peers.endpoint import KnownBroker, PeerEndpoint, endpoint_of
from broker.peers.errors import PeerUnavailableError
from broker.peers.observer import PeerObserver
from broker.peers.peer_request import PeerRequest
from protocol.message import Message

RECEIVE_BYTES: Final = 16 * 1024
"""Received at once; answers of this size are not copied before they are decoded."""

IDLE_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of unfinished answers above which `ReceiveBuffers` counts itself exhausted; nothing is
refused, since each connection has at most one unfinished answer."""


def answer_buffers() -> ReceiveBuffers:
    """Memory for the answers of all peers."""
    return ReceiveBuffers(IDLE_ANSWER_BYTES_MAX)


class Peers:
    """All connections of a broker to its peers; see the package. On the loop's thread only."""

    __slots__ = ("_connections", "_endpoints", "_kept_open", "_listener", "_node_id", "_resources")

    def __init__(self, node_id: int, listener: str | None, resources: PeerResources) -> None:
        """Without peers, until `update`.

        Args:
            node_id: This broker, which is no peer.
            listener: `inter.broker.listener.name`.
            resources: Of all connections.
        """
        self._node_id = node_id
        self._listener = listener
        self._resources = resources
        self._endpoints: dict[int, PeerEndpoint] = {}
        self._connections: dict[tuple[int, str], PeerConnection] = {}
        self._kept_open: str | None = None

    # -- requests --------------------------------------------------------------------------------

    def request(
        self,
        node_id: int,
        message: Message,
        version: int,
        *,
        timeout_ms: float,
        use: str,
        client_id: str | None = None,
    ) -> "asyncio.Future[Message]":
        """Send a request; the future is its decoded answer.

        Requests of one use to one peer share a connection and are sent in order; a peer handles
        them in order, so what may wait long there has a use of its own. When the future is
        cancelled the answer is dropped; the peer may act on the request all the same.

        Args:
            node_id: The peer.
            message: A request of a module of `protocol.messages`.
            version: Of the API.
            timeout_ms: From now until the answer.
            use: Names the connection: "control", "markers", ...
            client_id: Of this request; None: that of all requests of this broker.

        Raises:
            PeerUnavailableError: In the future. `sent` False: the peer has not got it.
            ValueError: The version cannot say what the message does.
        """
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        codec = sys.modules[type(message).__module__]
        body = codec.encode_request(message, version)
        receiver = _Decoder(future, codec.decode_response, version)
        request = PeerRequest(codec.API_KEY, version, body, receiver, client_id)
        self.connection(node_id, use).send(request, timeout_ms)
        return future

    def connection(
        self, node_id: int, use: str, *, receive_bytes: int = RECEIVE_BYTES
    ) -> PeerConnection:
        """The connection of a peer and a use, made if there is none; it lives as long as this."""
        key = (node_id, use)
        connection = self._connections.get(key)
        if connection is None:
            connection = self._connections[key] = PeerConnection(
                node_id,
                self._endpoints.get(node_id),
                self._resources,
                receive_bytes=receive_bytes,
                is_kept_open=use == self._kept_open,
            )
        return connection

    # -- the cluster -----------------------------------------------------------------------------

    def update(self, brokers: Mapping[int, KnownBroker]) -> None:
        """Follow the image: connections end whose broker has left, moved, or another epoch."""
        endpoints: dict[int, PeerEndpoint] = {}
        for node_id, broker in brokers.items():
            endpoint = endpoint_of(broker, self._listener)
            if endpoint is not None and node_id != self._node_id:
                endpoints[node_id] = endpoint
        self._endpoints = endpoints
        for (node_id, _), connection in list(self._connections.items()):
            connection.move_to(endpoints.get(node_id))
        self._keep_open()

    def keep_open(self, use: str) -> None:
        """Hold a connection of this use to every peer, so that its end is noticed at once."""
        self._kept_open = use
        self._keep_open()

    def _keep_open(self) -> None:
        if self._kept_open is not None:
            for node_id in list(self._endpoints):
                self.connection(node_id, self._kept_open).keep_open()

    def observe(self, observer: PeerObserver) -> None:
        """Call an observer at every connect and end from now on."""
        self._resources.observers.add(observer)

    # -- to see it -------------------------------------------------------------------------------

    @property
    def open_connections(self) -> int:
        """Connections that are open."""
        return sum(c.state is State.OPEN for c in self._connections.values())

    @property
    def requests(self) -> int:
        """Requests that wait or are in flight."""
        return sum(connection.requests for connection in self._connections.values())

    def close(self) -> None:
        """End all connections; what is under way fails."""
        self._endpoints = {}
        self._kept_open = None
        for connection in list(self._connections.values()):
            connection.close()


class _Decoder:
    """`Receiver` that gives a future its message."""

    __slots__ = ("_decode", "_future", "_version")

    def __init__(
        self,
        future: "asyncio.Future[Message]",
        decode: Callable[[bytes, int], Message],
        version: int,
    ) -> None:
        self._future = future
        self._decode = decode
        self._version = version

    def on_answer(self, body: memoryview) -> None:
        # A copy, since decoded messages may keep views of what they were decoded from.
        message = self._decode(bytes(body), self._version)
        if not self._future.done():
            self._future.set_result(message)

    def on_failure(self, error: PeerUnavailableError) -> None:
        if not self._future.done():
            self._future.set_exception(error)
