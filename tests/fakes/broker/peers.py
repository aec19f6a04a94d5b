"""Other brokers, as far as requests go to them: answered when the test says so."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from broker.peers.errors import PeerUnavailableError
from protocol.message import Message


class Sent(NamedTuple):
    """A request to a peer, as the peer decodes it."""

    node_id: int
    message: Any
    version: int
    timeout_ms: float
    use: str
    future: "asyncio.Future[Message]"
    client_id: str | None

    def answer(self, message: Message) -> None:
        """The answer, as this broker decodes it."""
        codec = sys.modules[type(message).__module__]
        body = bytes(codec.encode_response(message, self.version))
        self.future.set_result(codec.decode_response(body, self.version))

    def fail(self, *, sent: bool) -> None:
        """There is none."""
        self.future.set_exception(PeerUnavailableError(self.node_id, sent=sent, reason="test"))


class FakePeers:
    """`PeerRequests`; everything passes the codec.

    Attributes:
        sent: Requests without an answer, oldest first.
        on_request: Answers requests by itself, where it is set: called with each.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.on_request: Callable[[Sent], None] | None = None

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
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        codec = sys.modules[type(message).__module__]
        body = bytes(codec.encode_request(message, version))
        request = Sent(
            node_id,
            codec.decode_request(body, version),
            version,
            timeout_ms,
            use,
            future,
            client_id,
        )
        if self.on_request is not None:
            self.on_request(request)
        else:
            self.sent.append(request)
        return future

    def take(self) -> Sent:
        """The oldest request; the only one, so far."""
        (request,) = self.sent
        self.sent = []
        return request
