"""Thread pools for calls that may wait for a disk: the event loop never waits for one.

Each log directory has a pool of its own, since it may be a disk of its own: while one takes
seconds, its calls occupy no thread that another's flushes and reads wait for.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from posixpath import dirname
from typing import ParamSpec, TypeVar

from typing_extensions import override

from broker.runtime.machine import LOCAL_MACHINE, Machine

P = ParamSpec("P")
T = TypeVar("T")


class Disk:
    """A bounded pool. What runs here may touch files, but no state that the loop owns."""

    __slots__ = ("_machine", "_name", "_outgrown", "_pool", "running", "started")

    def __init__(
        self, threads: int, name: str = "disk", *, machine: Machine = LOCAL_MACHINE
    ) -> None:
        self._name = name
        self._machine = machine
        self._pool = machine.pool(threads, name)
        self._outgrown: list[Executor] = []
        self.running = 0
        self.started = 0

    def of(self, path: str) -> "Disk":
        """The pool for calls about `path`: itself, where there is one for all directories."""
        return self

    def resize(self, threads: int) -> None:
        """Use another number of threads from now on; earlier calls finish in the present ones.

        On the loop's thread, as everything that submits.
        """
        if not self.running:
            self._outgrown.clear()
        before = self._pool
        self._pool = self._machine.pool(threads, self._name)
        before.shutdown(wait=False)
        self._outgrown.append(before)

    @property
    def executor(self) -> Executor:
        """The executor, for storage code that spreads work over threads by itself (recovery)."""
        return self._pool

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in a thread; its exceptions are raised here."""
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
                # The loop has been closed: no caller waits for the result any more.
                return
            finally:
                # An error has this frame in its traceback: it would keep what it read open.
                failure = None

        def finish(result: T | None, failure: BaseException | None) -> None:
            self.running -= 1
            on_done(result, failure)

        self._pool.submit(work)

    def close(self) -> None:
        """Wait for running calls, refuse new ones."""
        for pool in (*self._outgrown, self._pool):
            pool.shutdown(wait=True, cancel_futures=True)


class Disks(Disk):
    """A pool for each log directory, and itself for paths in none of them or in several."""

    __slots__ = ("_by_directory",)

    def __init__(
        self, threads: int, log_dirs: Iterable[str], *, machine: Machine = LOCAL_MACHINE
    ) -> None:
        """`threads`: of each pool."""
        super().__init__(threads, machine=machine)
        self._by_directory = {
            path: Disk(threads, f"disk-{number}", machine=machine)
            for number, path in enumerate(log_dirs)
        }

    @override
    def of(self, path: str) -> Disk:
        """The pool of a log directory, of a partition's folder in it, or of a file in that."""
        by_directory = self._by_directory
        for _ in range(3):
            found = by_directory.get(path)
            if found is not None:
                return found
            path = dirname(path)
        return self

    @override
    def resize(self, threads: int) -> None:
        """Resize each pool on its own."""
        super().resize(threads)
        for pool in self._by_directory.values():
            pool.resize(threads)

    def pools(self) -> dict[str, Disk]:
        """The pools of the log directories, by path."""
        return dict(self._by_directory)

    @override
    def close(self) -> None:
        """Wait for running calls of all pools, refuse new ones."""
        for pool in self._by_directory.values():
            pool.close()
        super().close()
