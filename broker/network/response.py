"""What leaves a connection: responses in request order, files among bytes.

A response is a list of pieces in wire order. A piece is bytes-like, or a slice of a file (anything
with `file`, `position` and `length`), which is never read into the process when it is large.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.network.connection import Connection

Pieces = list[Any]
"""bytes, bytearray, memoryview or storage.file_slice.FileSlice, in wire order."""


class ResponseSlot:
    """The place of one unanswered request in its connection's order of answers.

    Lives from the request's start until its pieces have been handed to the socket's queue.
    `complete` may be called once, from the loop's thread, at any time; after the connection has
    gone it does nothing.
    """

    __slots__ = ("connection", "done", "on_abandoned", "pieces")

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.pieces: Pieces | None = None
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
        """The connection is gone: whoever works on the answer may stop."""
        if self.done:
            return
        self.done = True
        callback, self.on_abandoned = self.on_abandoned, None
        if callback is not None:
            callback()
