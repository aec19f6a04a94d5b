"""A request to a peer, from its call to its answer."""

from typing import Protocol

from broker.peers.errors import PeerUnavailableError
from protocol.headers import encode_request_frame
from protocol.primitives import encode_string


class Receiver(Protocol):
    """Gets the outcome of a request: exactly one of the two calls, on the loop."""

    def on_answer(self, body: memoryview) -> None:
        """The answer's body, behind its header; valid during the call, unless it is held.

        Raises:
            DecodeError: It is malformed. The connection ends, and `on_failure` is called.
        """
        ...

    def on_failure(self, error: PeerUnavailableError) -> None:
        """There is no answer."""
        ...


class PeerRequest:
    """One request; `unsent` is what has not left of its frame.

    Attributes:
        receiver: None once it has an outcome: an answer that comes yet is dropped.
        is_sent: A byte of it has left.
        due_ms: Monotonic time at which it fails without an answer.
        received_before: Bytes that the connection had received when it was sent.
    """

    __slots__ = (
        "api_key",
        "client_id",
        "correlation_id",
        "due_ms",
        "is_sent",
        "received_before",
        "receiver",
        "unsent",
        "version",
    )

    def __init__(
        self,
        api_key: int,
        version: int,
        body: bytes,
        receiver: Receiver,
        client_id: str | None = None,
    ) -> None:
        self.api_key = api_key
        self.client_id = client_id
        self.version = version
        self.receiver: Receiver | None = receiver
        self.correlation_id = -1
        self.due_ms = 0.0
        self.is_sent = False
        self.received_before = 0
        self.unsent: bytes | memoryview = body

    def enter(self, correlation_id: int, client_id: bytes) -> None:
        """Give it its number on its connection, and make the frame of the body.

        `client_id`, encoded, is for a request that has none of its own.
        """
        body = self.unsent
        assert isinstance(body, bytes)
        self.correlation_id = correlation_id
        name = client_id if self.client_id is None else encode_string(self.client_id)
        self.unsent = encode_request_frame(self.api_key, self.version, correlation_id, name, body)

    def fail(self, error: PeerUnavailableError) -> None:
        """End it without an answer."""
        receiver = self.settle()
        if receiver is not None:
            receiver.on_failure(error)

    def settle(self) -> Receiver | None:
        """Take the receiver out: it has its outcome."""
        receiver, self.receiver = self.receiver, None
        return receiver
