"""Waiting for an `Answer` in a coroutine, as no part of the broker does."""

import asyncio
from typing import TypeVar

from broker.requests.answer import Answer

Response = TypeVar("Response")


def in_time(answer: Answer[Response]) -> "asyncio.Future[Response]":
    """A future of what will be answered."""
    future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    answer.wait_for(lambda response: None if future.done() else future.set_result(response))
    return future
