"""Framing of responses, and replies that are given later."""

from collections.abc import Callable
from typing import Any, Final

from broker.network.response import Pieces, ResponseSlot
from broker.requests.request_context import RequestContext
from protocol.quick import frame_bytes

_frame_bytes: Final = frame_bytes
GATHERED_SIZE_MAX: Final = 64 * 1024
"""Bodies up to this size are joined with their header; above, the copy would cost more."""


class Parked:
    """The type of `PARKED`."""

    __slots__ = ()


PARKED: Final = Parked()
"""Result of a handler that has opened a `Reply` and will answer later."""

Body = bytes | list[Any]
"""A response without its header: bytes, or pieces in wire order of which the first is bytes."""

HotResult = Body | Parked | None
"""None: the request has no answer (acks=0)."""


def frame_response(context: RequestContext, body: Body) -> Pieces:
    """Put size, correlation id and, in flexible versions, an empty tag section before the body.

    Layout: size int32, correlation id int32, [0x00], body.
    """
    if isinstance(body, list):
        size = 0
        for piece in body:
            size += len(piece)
        first: bytes = body[0]
        body[0] = _frame_bytes(
            context.correlation_id, context.flexible_response, first, size - len(first)
        )
        return body
    if len(body) <= GATHERED_SIZE_MAX:
        return [_frame_bytes(context.correlation_id, context.flexible_response, body, 0)]
    head = _frame_bytes(context.correlation_id, context.flexible_response, b"", len(body))
    return [head, body]


class Reply:
    """An answer that is given later; `send` once."""

    __slots__ = ("_context", "_on_sent", "slot")

    def __init__(
        self,
        slot: ResponseSlot,
        context: RequestContext,
        on_sent: Callable[[RequestContext], None],
    ) -> None:
        self.slot = slot
        self._context = context
        self._on_sent = on_sent

    def send(self, body: Body | None) -> None:
        """Answer with `body`; None when nothing is to be sent."""
        self._on_sent(self._context)
        self.slot.complete(None if body is None else frame_response(self._context, body))

    def send_with_others(self, body: Body) -> None:
        """Answer with `body`, together with the other answers of this event loop iteration."""
        self.slot.connection.gather_answers()
        self.send(body)

    def when_abandoned(self, callback: Callable[[], None]) -> None:
        """Call `callback` if the client disconnects before it is answered."""
        self.slot.on_abandoned = callback
