"""The machine beside clock and disk: threads, and what the kernel says about waiting.

A simulation implements `Machine`: what a thread would do becomes an event of its loop.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from queue import SimpleQueue
from typing import Any, Final, Generic, Protocol, TypeVar

from storage.environment.clock import cpu_wait_ms
from storage.environment.dirty_pages import device_of, dirty_room
from storage.environment.thread_pool import ThreadPool
from storage.manager.log_jobs import run_in_threads

T = TypeVar("T")


class Worker(Protocol):
    """One thread that works off a queue, in order."""

    def put(self, item: Any, /) -> None:
        """Have `item` worked on behind those before it."""
        ...

    def close(self) -> None:
        """Let it finish its queue; blocks. Nothing may be put afterwards."""
        ...


class Machine(Protocol):
    """See the module."""

    def pool(self, threads: int, name: str) -> Executor:
        """Threads, of which all but the first begin when they are first needed."""
        ...

    def worker(self, work: Callable[[T], None], name: str) -> Worker:
        """A thread that calls `work`, which must not raise, with each item put to it."""
        ...

    def run_all(self, jobs: Sequence[Callable[[], None]], /) -> None:
        """Run jobs in a few threads; raises what one of them raised. Blocks."""
        ...

    def cpu_wait_ms(self) -> float:
        """How long the calling thread has waited for a processor so far; 0 if that is unknown."""
        ...

    def dirty_room(self, directory: str) -> Callable[[], int | None]:
        """A function that says how many bytes may be written there before a writer is throttled.

        It is for threads, and returns None if that is unknown.
        """
        ...


_END: Final = object()

THREADS_AT_START: Final = 12
"""Threads beside the loop's that a broker with one log directory begins before it is ready.

Four of them are libuv's, for names of hosts: where it gets none it aborts the process silently.
"""


def can_start_threads(count: int = THREADS_AT_START) -> bool:
    """Whether the system gives this process `count` more threads at the same time; blocks."""
    release = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=release.wait, name="try", daemon=True)
            thread.start()
            started.append(thread)
    except (RuntimeError, MemoryError):
        return False
    finally:
        release.set()
        for thread in started:
            thread.join()
    return True


class QueueThread(Generic[T]):
    """`Worker`, by a thread of its own."""

    __slots__ = ("_thread", "_work", "put")

    def __init__(self, work: Callable[[T], None], name: str) -> None:
        queue: SimpleQueue[Any] = SimpleQueue()
        # The queue's own method: called for each write behind.
        self.put: Callable[[T], None] = queue.put
        self._work = work
        self._thread = threading.Thread(target=self._run, args=(queue.get,), name=name, daemon=True)
        self._thread.start()

    def _run(self, get: Callable[[], Any]) -> None:
        work = self._work
        while (item := get()) is not _END:
            work(item)
            del item

    def close(self) -> None:
        """Finish what is queued."""
        put: Callable[[Any], None] = self.put
        put(_END)
        self._thread.join()


class LocalMachine:
    """The operating system's threads and figures."""

    __slots__ = ()

    def pool(self, threads: int, name: str) -> Executor:
        """See `ThreadPool`."""
        return ThreadPool(threads, name)

    def worker(self, work: Callable[[T], None], name: str) -> QueueThread[T]:
        """A thread."""
        return QueueThread(work, name)

    def run_all(self, jobs: Sequence[Callable[[], None]], /) -> None:
        """In threads that end with the jobs."""
        run_in_threads(jobs)

    def cpu_wait_ms(self) -> float:
        """As Linux counts it (`storage.environment.clock`)."""
        return cpu_wait_ms()

    def dirty_room(self, directory: str) -> Callable[[], int | None]:
        """As Linux reports it (`storage.environment.dirty_pages`)."""
        device = device_of(directory)
        return lambda: dirty_room(device)


LOCAL_MACHINE: Final = LocalMachine()
