"""A watch on a metadata store that another process serves: read in the data loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from broker.controller.store.metadata_store import Changes, CompactedError, StoreError
from broker.controller.store.unix.followed import BUFFER_EVENTS_MAX, Followed
from broker.controller.store.unix.link import Link
from broker.controller.store.watch_queue import WatchQueue


class UnixWatch:
    """A `Watch`: an iterator in the data loop, fed by the store's."""

    def __init__(
        self,
        prefix: str,
        first_revision: int,
        link: Link,
        store_loop: asyncio.AbstractEventLoop,
        shown_revision: Callable[[], int],
    ) -> None:
        """Begin to watch.

        Args:
            prefix: What of the store.
            first_revision: The first that is delivered, above 0.
            link: In the store's loop.
            store_loop: That loop.
            shown_revision: The newest that an answer has shown.
        """
        self._loop = asyncio.get_running_loop()
        self._store_loop = store_loop
        self._link = link
        self._shown_revision = shown_revision
        self._queue = WatchQueue(BUFFER_EVENTS_MAX)
        self._followed = Followed(prefix, first_revision, self._deliver, self._fail)
        self._there(link.follow, self._followed)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is delivered."""
        return self._queue.is_over

    def __aiter__(self) -> "UnixWatch":
        return self

    async def __anext__(self) -> Changes:
        return await self._queue.get()

    async def request_progress(self) -> None:
        """Have progress delivered; see `Watch.request_progress`."""
        self._there(self._link.want_progress, self._followed, self._shown_revision())

    async def aclose(self) -> None:
        """Stop; the iteration ends."""
        self.close()

    def close(self) -> None:
        """Stop; what is still buffered is forgotten."""
        self._there(self._link.forget, self._followed)
        self._queue.close()

    def _there(self, callback: Callable[..., None], *args: Any) -> None:
        # A store that has been closed has no loop any more, and nothing to be said to.
        with suppress(RuntimeError):
            self._store_loop.call_soon_threadsafe(callback, *args)

    # Called in the store's loop.

    def _deliver(self, changes: Changes) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take, changes)

    def _fail(self, failure: StoreError) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._queue.fail, failure)

    # Called in the data loop.

    def _take(self, changes: Changes) -> None:
        self._followed.taken += len(changes.events)
        if not self._queue.is_over and not self._queue.put(changes):
            self._there(self._link.forget, self._followed)
            self._queue.fail(CompactedError(changes.revision))
