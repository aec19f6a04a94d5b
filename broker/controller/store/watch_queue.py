"""The queue between a store and the reader of one watch: changes, then how it ended."""

import asyncio
from collections import deque

from broker.controller.store.metadata_store import Changes, StoreError


class WatchQueue:
    """Changes by revision, at most `events_max` of them; one reader. Used in the reader's loop."""

    def __init__(self, events_max: int) -> None:
        self._items: deque[Changes] = deque()
        self._events = 0
        self._events_max = events_max
        self._waiter: asyncio.Future[None] | None = None
        self._failure: StoreError | None = None
        self._closed = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is taken."""
        return self._closed or self._failure is not None

    def put(self, changes: Changes) -> bool:
        """Add the changes of one revision; False: they do not fit, and nothing was added."""
        if self._events + len(changes.events) > self._events_max:
            return False
        if not changes.events and self._items and not self._items[-1].events:
            # One progress takes the place of another: what is not read does not grow.
            self._items.pop()
        self._items.append(changes)
        self._events += len(changes.events)
        self._wake()
        return True

    def fail(self, failure: StoreError) -> None:
        """End in `failure`, behind what is queued."""
        self._failure = failure
        self._wake()

    def close(self) -> None:
        """End; what is still queued is forgotten."""
        self._closed = True
        self._items.clear()
        self._wake()

    async def get(self) -> Changes:
        """The next changes, in order.

        Raises:
            StopAsyncIteration: The queue was closed.
            StoreError: The watch has failed.
        """
        while not self._items:
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise StopAsyncIteration
            assert self._waiter is None, "one reader per watch"
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        changes = self._items.popleft()
        self._events -= len(changes.events)
        return changes

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
