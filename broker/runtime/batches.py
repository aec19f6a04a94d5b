"""Calls for thousands of items in batches, yielding to the event loop in between.

A response costs some 40 us until it is on its socket. A group may have thousands of members that
wait for the same thing, so only some of them are answered at once, the others with the following
ticks of the timer:

    now       50 members        5 ms later   50 members        5 ms later   ...

The group's state is changed before, for all of them: a later batch may find another generation of
the group.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from broker.runtime.timer import Timer

BATCH_SIZE = 50
"""Members in a batch: about two milliseconds."""

Item = TypeVar("Item")


def in_batches(
    timer: Timer, items: Sequence[Item], each: Callable[[Item], None], *, start: int = 0
) -> None:
    """Call `each` for the items from `start` on, in order; for the first of them now."""
    end = start + BATCH_SIZE
    if end < len(items):
        # Before a call can fail: the others must not wait for ever.
        timer.call_later_ms(0, lambda: in_batches(timer, items, each, start=end))
    for item in items[start:end]:
        each(item)
