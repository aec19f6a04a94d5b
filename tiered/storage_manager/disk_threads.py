"""Thread pool for what must not block the loop: files, sums, compression, encryption.

All of those let other threads run while they work, so two threads use two CPUs. What was begun in a
thread cannot be abandoned, and it works in memory and files of its caller; so a cancelled caller
goes on waiting until the thread is done, and only then ends. That is a chunk's work: milliseconds.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from tiered.errors import TierProcessError

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 4
"""Two for each of our CPUs: half of the work waits for a disk."""


class DiskThreads:
    """See the module."""

    def __init__(self, threads: int = THREADS) -> None:
        self._executor = ThreadPoolExecutor(threads, "tier")
        self._closed = False

    def start(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Begin a call; the caller must `finish` it, come what may.

        Raises:
            TierProcessError: After `close`.
        """
        if self._closed:
            raise TierProcessError("the tier is closed")
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._executor, lambda: call(*args, **kwargs))

    async def finish(self, started: "asyncio.Future[T]") -> T:
        """What it gave; when this is cancelled, it still ends after the thread is done."""
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            await settle(started)
            raise

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do it in a thread."""
        return await self.finish(self.start(call, *args, **kwargs))

    def close(self) -> None:
        """Take nothing new; what is under way ends by itself."""
        self._closed = True
        self._executor.shutdown(wait=False)


async def settle(started: "asyncio.Future[T]") -> None:
    """Wait until a thread is done, whatever happens, and whatever it gave."""
    while not started.done():
        try:
            await asyncio.wait([started])
        except asyncio.CancelledError:
            # The caller raises its own; memory must not be given back under a thread's hands.
            continue
    if not started.cancelled():
        # Retrieved, so that asyncio logs no unretrieved exception.
        started.exception()
