"""Something for each of thousands of members, without holding the loop meanwhile.

An answer costs some 40 us until it is on its socket. A group may have thousands of members that
wait for the same thing, so only some of them are answered at once, the others with the ticks of
the timer that follow:

    now       50 members        5 ms later   50 members        5 ms later   ...

Whatever belongs to the group's state is changed before, for all of them: what is done here may be
late, and find that the group has gone on.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from broker.runtime.timer import Timer

PER_TURN = 50
"""Members that are served before the loop gets its turn: about two milliseconds."""

Item = TypeVar("Item")


def in_turns(
    timer: Timer, items: Sequence[Item], each: Callable[[Item], None], *, start: int = 0
) -> None:
    """Call `each` for the items from `start` on, in order; for the first of them now."""
    end = start + PER_TURN
    if end < len(items):
        # Before anything can go wrong here: the others must not wait for ever.
        timer.call_later_ms(0, lambda: in_turns(timer, items, each, start=end))
    for item in items[start:end]:
        each(item)
