"""Answers that may have to wait."""

import asyncio

from broker.groups.answer import Answer


def test_answer_that_is_there_needs_no_future() -> None:
    answer: Answer[str] = Answer()
    answer("now")
    answer("too late")
    assert answer.result() == "now"


async def test_answer_that_comes_later_is_a_future() -> None:
    answer: Answer[str] = Answer()
    future = answer.result()
    assert isinstance(future, asyncio.Future)
    answer("later")
    answer("too late")
    assert await future == "later"


async def test_answer_to_somebody_who_left_is_dropped() -> None:
    answer: Answer[str] = Answer()
    future = answer.result()
    assert isinstance(future, asyncio.Future)
    future.cancel()
    answer("nobody listens")
    assert future.cancelled()
