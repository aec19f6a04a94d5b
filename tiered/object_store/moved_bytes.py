"""Bytes that a copy has moved so far, by which a stalled copy is detected.

The store below does not know which copy it sends for; a context variable does, and it reaches the
tasks that send parts as well. Bytes count when they were read and made ready, and again when they
were sent or written, for every attempt: what matters is that the number grows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final


class MovedBytes:
    """The number of one copy."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


_PRESENT: Final[ContextVar[MovedBytes | None]] = ContextVar("moved_bytes", default=None)


@contextmanager
def counting() -> Iterator[MovedBytes]:
    """What is moved within the block, by this task and those it starts, is counted."""
    moved = MovedBytes()
    token = _PRESENT.set(moved)
    try:
        yield moved
    finally:
        _PRESENT.reset(token)


def moved(size: int) -> None:
    """So many more bytes are on their way; nothing happens outside of `counting`."""
    present = _PRESENT.get()
    if present is not None:
        present.count += size
