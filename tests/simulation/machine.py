"""Threads as events: `broker.runtime.machine.Machine` on a seeded loop.

A call in a pool happens at once, at a time of its own, and never where its process is dead by then.
Calls of one pool are in no order, as with several threads; a worker's are.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

from tests.simulation.loop import SimLoop


class SimPool(Executor):
    """Threads of one process."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._waiting: dict[int, Callable[[], None]] = {}
        self._next = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Call `fn` in a while."""
        future: Future[Any] = Future()
        self._next += 1
        number = self._next

        def work() -> None:
            if self._waiting.pop(number, None) is None:
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001  because it is handed on
                future.set_exception(error)

        self._waiting[number] = work
        self._loop.call_later(self._loop.thread_s(), work)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Finish what is under way, as its threads would while the caller waits."""
        if wait:
            for work in list(self._waiting.values()):
                work()


class SimWorker:
    """One thread with a queue."""

    def __init__(self, loop: SimLoop, work: Callable[[Any], None]) -> None:
        self._loop = loop
        self._work = work
        self._items: deque[Any] = deque()
        self._is_awake = False

    def put(self, item: Any, /) -> None:
        """Work on it when its turn comes."""
        self._items.append(item)
        self._wake()

    def _wake(self) -> None:
        if not self._is_awake and self._items:
            self._is_awake = True
            self._loop.call_later(self._loop.thread_s(), self._next)

    def _next(self) -> None:
        self._is_awake = False
        if self._items:
            self._work(self._items.popleft())
            self._wake()

    def close(self) -> None:
        """Finish the queue."""
        while self._items:
            self._work(self._items.popleft())


class SimMachine:
    """See the module; of one process."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def pool(self, threads: int, name: str) -> Executor:
        return SimPool(self._loop)

    def worker(self, work: Callable[[Any], None], name: str) -> SimWorker:
        return SimWorker(self._loop, work)

    def run_all(self, jobs: Sequence[Callable[[], None]], /) -> None:
        for job in jobs:
            job()

    def cpu_wait_ms(self) -> float:
        return 0.0

    def dirty_room(self, directory: str) -> Callable[[], int | None]:
        return lambda: None
