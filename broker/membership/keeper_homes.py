"""Where a lease is kept: in the data loop, or in the metadata store's own thread.

A keeper in the store's thread renews while the data loop stands still in a write to a slow disk. A
store in this process has no thread; its keeper is a task of the data loop, on its timer, and
so it is in a simulation.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.store.metadata_store import MetadataStore
from broker.membership.lease_keeper import LeaseKeeper
from broker.runtime.pauses import pause
from storage.environment.environment import Environment
from storage.environment.timer import Timer


class KeeperHome(Protocol):
    """See the module."""

    def run(self, keeper: LeaseKeeper) -> None:
        """Begin to keep."""
        ...

    def call(self, callback: Callable[[], None]) -> None:
        """Call back on the data loop; from where the keeper runs."""
        ...

    async def stop(self) -> None:
        """End the keeping."""
        ...


@runtime_checkable
class ThreadedStore(Protocol):
    """A store that can renew leases in a thread of its own."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Run `work` in that thread; ended by cancelling it."""
        ...

    def renew_here(self, lease: int) -> Awaitable[int]:
        """As `MetadataStore.keep_lease_alive`, from that thread."""
        ...

    def ask_here(self) -> Awaitable[object]:
        """Any question that changes nothing, from that thread."""
        ...


class LoopHome:
    """The data loop itself."""

    def __init__(self, store: MetadataStore, timer: Timer) -> None:
        self._store = store
        self._timer = timer
        self._task: asyncio.Task[None] | None = None

    def run(self, keeper: LeaseKeeper) -> None:
        """Keep in a task of this loop."""
        self._task = asyncio.get_running_loop().create_task(
            keeper.run(
                self._store.keep_lease_alive,
                lambda: self._store.get(CONTROLLER_KEY),
                lambda ms: pause(self._timer, ms),
            ),
            name="lease keeper",
        )

    def call(self, callback: Callable[[], None]) -> None:
        """It is the same loop."""
        callback()

    async def stop(self) -> None:
        """End the task."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


class ThreadHome:
    """The store's thread, in its own loop and on the machine's time."""

    def __init__(self, store: ThreadedStore) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._future: Future[None] | None = None

    def run(self, keeper: LeaseKeeper) -> None:
        """Keep in a task of that loop."""
        store = self._store
        self._future = store.spawn(keeper.run(store.renew_here, store.ask_here, _sleep_ms))

    def call(self, callback: Callable[[], None]) -> None:
        """Hand over to the data loop, if it has not ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    async def stop(self) -> None:
        """End the task; it may end a moment later."""
        if self._future is not None:
            self._future.cancel()


def home_of(store: MetadataStore, environment: Environment) -> KeeperHome:
    """Where the leases of a store are kept best."""
    if isinstance(store, ThreadedStore):
        return ThreadHome(store)
    return LoopHome(store, environment.timer)


async def _sleep_ms(duration_ms: float) -> None:
    await asyncio.sleep(duration_ms / 1000)
