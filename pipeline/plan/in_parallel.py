"""Bounded concurrency: one coroutine for each of many items, so many at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

REQUESTS_AT_A_TIME: Final = 16
"""Objects that one partition's plan reads together."""

PARTITIONS_AT_A_TIME: Final = 8

TOPICS_AT_A_TIME: Final = 4


async def in_parallel(
    things: Iterable[T], work: Callable[[T], Awaitable[R]], at_a_time: int = REQUESTS_AT_A_TIME
) -> list[R]:
    """Results of `work` for each item, in order. The first error ends all that is under way."""
    waiting = enumerate(things)
    results: dict[int, R] = {}

    async def one_after_the_other() -> None:
        for number, thing in waiting:
            results[number] = await work(thing)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_a_time):
                group.create_task(one_after_the_other())
    except BaseExceptionGroup as errors:
        # One is enough, and it is what the caller expects.
        raise errors.exceptions[0] from None
    return [results[number] for number in range(len(results))]
