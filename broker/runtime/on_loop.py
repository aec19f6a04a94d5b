"""Calls from a thread on the event loop: a log that serves is changed there and nowhere else.

Compaction and deletion run in threads of `broker.runtime.disk`; where they replace segments or let
go of a log, they hand that step over and wait for it. Done in their own thread, a fetch on the loop
could read the log in the middle of the step, and skip records that are there before and after it.

    thread ──append, wake──> queue ──next iteration──> act() ──result──> thread
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class OnLoop:
    """`storage.types.owner.OnOwner` for the logs of a broker."""

    __slots__ = ("_closed", "_lock", "_loop", "_queue", "_thread")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Must be called in the loop's thread."""
        self._loop = loop
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        # At most one entry per thread of the pool: each waits for its own.
        self._queue: deque[Callable[[], None]] = deque()
        self._closed = False

    def __call__(self, act: Callable[[], T], /) -> T:
        """Call `act` in the loop's thread; wait for its result, or raise what it raised."""
        if threading.get_ident() == self._thread:
            return act()
        done: Future[T] = Future()

        def run() -> None:
            try:
                result = act()
            except BaseException as error:  # noqa: BLE001  because it is handed on, not swallowed
                done.set_exception(error)
            else:
                done.set_result(result)

        with self._lock:
            if self._closed:
                run()
            else:
                self._queue.append(run)
                self._loop.call_soon_threadsafe(self._run_queued)
        return done.result()

    def _run_queued(self) -> None:
        while self._queue:
            self._queue.popleft()()

    def close(self) -> None:
        """Run queued calls now, and later ones in their own thread: no log serves any more.

        In the loop's thread, before it waits for the threads to end.
        """
        with self._lock:
            self._closed = True
        self._run_queued()
