"""The threads for calls that may wait for a disk: the loop's own thread never waits for one."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Disk:
    """A bounded pool. What runs here may touch files, but no state that the loop owns."""

    __slots__ = ("_pool", "running", "started")

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="disk")
        self.running = 0
        self.started = 0

    @property
    def executor(self) -> ThreadPoolExecutor:
        """For storage code that spreads work over threads by itself (recovery)."""
        return self._pool

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in a thread; its exceptions come out here."""
        self.started += 1
        self.running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._pool, lambda: function(*args, **kwargs)
            )
        finally:
            self.running -= 1

    def submit(
        self, function: Callable[[], T], on_done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Call `function` in a thread, then `on_done(result, error)` on the loop: no task."""
        loop = asyncio.get_running_loop()
        self.started += 1
        self.running += 1

        def work() -> None:
            result: T | None = None
            failure: BaseException | None = None
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001  because it is handed on, not swallowed
                failure = error
            try:
                loop.call_soon_threadsafe(finish, result, failure)
            except RuntimeError:
                # The loop has been closed: nobody waits for the answer any more.
                return

        def finish(result: T | None, failure: BaseException | None) -> None:
            self.running -= 1
            on_done(result, failure)

        self._pool.submit(work)

    def close(self) -> None:
        """Wait for what runs, refuse what comes."""
        self._pool.shutdown(wait=True, cancel_futures=True)
