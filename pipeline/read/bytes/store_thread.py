"""A loop in a thread of its own, for the calls of object stores.

A task that decodes is a plain thread and blocks; stores are asyncio. Their calls run here, so that
bytes come in while the task works. One thread does for a process: it only moves bytes.

A process that was forked has the object and not the thread: `is_alive` says so, and the owner of
one makes a new one.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")

STOP_S: Final = 10.0
"""How long `close` waits for the thread; it only has to cancel what is under way."""


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # where it is not packed for the executors
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class StoreThread:
    """See the module."""

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop] = _new_loop) -> None:
        self._loop = new_loop()
        # A daemon: a worker that Spark ends must not wait for a store.
        self._thread = threading.Thread(target=self._run, name="varve-store", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._end())
            self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()

    @property
    def is_alive(self) -> bool:
        """Whether calls are run; not after `close`, nor in a process that was forked."""
        return self._thread.is_alive()

    def start(self, call: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin a call; its result can be waited for in any thread, and it can be cancelled."""
        return asyncio.run_coroutine_threadsafe(call, self._loop)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Do a call and wait for it."""
        started = self.start(call)
        try:
            return started.result()
        except BaseException:
            started.cancel()
            raise

    def close(self) -> None:
        """Cancel what is under way and end the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_S)
