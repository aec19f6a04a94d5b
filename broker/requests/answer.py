"""The deferred response of an inline handler: an `Answer`.

    handler ──given before it returns──> the response itself ───────────────> encoded in place
       │
       └──not yet──> the `Answer` ──router: wait_for(send)──> send(response) when it is given
                                                    └─ or abandon() when the client has left

A handler makes one, passes it as a callback to the coordinator, and returns `result()`:

    answer: Answer[EndTxnResponse] = Answer()
    services.transactions.end_transaction(..., done=answer)
    return answer.result()

It belongs to no loop and has no callbacks of its own to schedule: giving it encodes the response in
place, and the bytes leave with the other answers of the event loop iteration
(`broker.network.iteration_end`). A future would have its callback scheduled for each answer, and
each would be sent by itself; only handlers that have to run coroutines return one.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

Response = TypeVar("Response")


class Answer(Generic[Response]):
    """A response given once; a second one, or one to a client that has left, is dropped."""

    __slots__ = ("_listener", "_response")

    def __init__(self) -> None:
        self._response: Response | None = None
        self._listener: Callable[[Response], None] | None = None

    def __call__(self, response: Response) -> None:
        """Give the response."""
        listener = self._listener
        if listener is not None:
            self._listener = _drop
            listener(response)
        elif self._response is None:
            self._response = response

    def result(self) -> "Response | Answer[Response]":
        """The response if it was given, else this object."""
        return self if self._response is None else self._response

    def wait_for(self, listener: Callable[[Response], None]) -> None:
        """Call `listener` once with the response; now if it was given."""
        if self._response is not None:
            self._listener = _drop
            listener(self._response)
        else:
            self._listener = listener

    def abandon(self) -> None:
        """Remove the listener: the client has left."""
        self._listener = _drop


def _drop(response: object) -> None:
    return
