"""Responses of a connection, in request order, with files among bytes.

A response is a list of pieces in wire order. A piece is bytes-like, or a slice of a file (anything
with `file`, `position` and `length`), which is never read into the process when it is large.
"""

from collections.abc import Callable
from typing import Any, Protocol

from broker.network.connection_info import ConnectionInfo

Pieces = list[Any]
"""bytes, bytearray, memoryview or storage.types.file_slice.FileSlice, in wire order."""


class ResponseMemory:
    """Bytes of responses that their peers have not taken yet, over all connections.

    Each connection is bounded by itself; above `limit` in all, each may hold a small share only,
    and one that takes nothing at all is closed (`Processor.sweep`).
    """

    __slots__ = ("held", "limit")

    def __init__(self, limit: int) -> None:
        self.held = 0
        self.limit = limit

    @property
    def exhausted(self) -> bool:
        """True when slow readers hold as much as they may in all."""
        return self.held >= self.limit

    def change(self, by: int) -> None:
        """A connection holds `by` bytes more, or fewer."""
        self.held += by


def bytes_of(pieces: Pieces | None) -> int:
    """Bytes of a response that lie in memory: files do not."""
    return sum(len(piece) for piece in pieces or () if not hasattr(piece, "file"))


class AnsweredConnection(Protocol):
    """The interface of a waiting request's `Connection`.

    Attributes:
        parked: Polls that wait; kept by their purgatory.
    """

    parked: int

    @property
    def info(self) -> ConnectionInfo:
        """The peer."""
        ...

    def hold_back_polls(self) -> None:
        """A poll waits for its empty answer only: read nothing more until `admit_polls`."""
        ...

    def admit_polls(self) -> None:
        """Resume reading: the poll is about to be answered, or the connection is gone."""
        ...

    def answered(self, slot: "ResponseSlot") -> None:
        """A slot is complete."""
        ...

    def gather_answers(self) -> None:
        """Have answers from now on leave in one send, at the end of the event loop iteration."""
        ...


class ResponseSlot:
    """The place of one unanswered request in its connection's order of answers.

    Lives from the request's start until its pieces have been handed to the socket's queue.
    `complete` may be called once, from the loop's thread, at any time; after the connection has
    gone it does nothing.
    """

    __slots__ = ("connection", "done", "held_bytes", "on_abandoned", "pieces")

    def __init__(self, connection: AnsweredConnection) -> None:
        self.connection = connection
        self.pieces: Pieces | None = None
        self.held_bytes = 0
        self.done = False
        self.on_abandoned: Callable[[], None] | None = None

    def complete(self, pieces: Pieces | None) -> None:
        """Answer; None is the answer that is not sent (acks=0)."""
        if self.done:
            return
        self.done = True
        self.on_abandoned = None
        self.pieces = pieces
        self.connection.answered(self)

    def abandon(self) -> None:
        """The connection has gone: nothing needs to work on the answer any more."""
        if self.done:
            return
        self.done = True
        callback, self.on_abandoned = self.on_abandoned, None
        if callback is not None:
            callback()
