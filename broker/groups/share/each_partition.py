"""Calls of the share coordinator for many partitions, in batches."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from broker.runtime.timer import Timer

AT_A_TIME: Final = 100
"""Calls that are under way together; the next ones follow in a later loop iteration."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def each_partition(
    items: Sequence[Item],
    call: Callable[[Item, Callable[[Result], None]], None],
    finished: Callable[[list[tuple[Item, Result]]], None],
    timer: Timer,
) -> None:
    """Call `call` for every item, some at a time.

    Args:
        items: Its arguments.
        call: Calls back once, perhaps before it returns.
        finished: Gets every item with its result, in order, when all are complete.
        timer: Yields to the event loop in between.
    """
    results: dict[int, Result] = {}

    def start(begin: int) -> None:
        end = min(begin + AT_A_TIME, len(items))
        if begin >= end:
            finished([(item, results[position]) for position, item in enumerate(items)])
            return
        missing = end - begin

        def done(position: int, result: Result) -> None:
            nonlocal missing
            results[position] = result
            missing -= 1
            if missing:
                return
            if end == len(items):
                start(end)
            else:
                timer.call_later_ms(0, lambda: start(end))

        for position in range(begin, end):
            call(items[position], partial(done, position))

    start(0)
