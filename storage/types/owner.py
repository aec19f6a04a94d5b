"""Calls in the thread that owns a log.

A log that serves is changed by one thread only, the event loop's. Work that runs elsewhere because
it is slow (compaction, retention, flushing) hands each small change over.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

_T = TypeVar("_T")


class OnOwner(Protocol):
    """Calls a function in the thread that owns the logs, and returns or raises what it did."""

    def __call__(self, act: Callable[[], _T], /) -> _T:
        """Call `act` there and wait for it."""
        ...


def in_this_thread(act: Callable[[], _T], /) -> _T:
    """`OnOwner` where there is only one thread."""
    return act()
