"""An answer that may have to wait."""

import asyncio
from typing import Generic, TypeVar

Response = TypeVar("Response")


class Answer(Generic[Response]):
    """Takes one answer; becomes a future only when somebody has to wait for it.

    Most requests are answered before the handler returns, so no future is made for them.
    A second answer, or one to a request whose connection is gone, is dropped.
    """

    __slots__ = ("_future", "_response")

    def __init__(self) -> None:
        self._response: Response | None = None
        self._future: asyncio.Future[Response] | None = None

    def __call__(self, response: Response) -> None:
        """Answer."""
        if self._future is None:
            if self._response is None:
                self._response = response
        elif not self._future.done():
            self._future.set_result(response)

    def result(self) -> "Response | asyncio.Future[Response]":
        """The answer if it is there, else a future of it."""
        if self._response is not None:
            return self._response
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        return self._future
