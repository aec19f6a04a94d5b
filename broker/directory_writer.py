"""The thread that writes to one log directory what the loop must not wait for.

    Partition.append ──> log: offsets given, queued
          └─> PartitionWrites.pump ──ticket──> DirectoryWriter ──> thread: ticket.run(), in order
                    ^                                                  │
                    └──────── loop: log.finish_write, high watermark <─┘ one wake-up for many

One thread for a directory, so that what hangs is one directory; its queue holds at most one ticket
of each partition, and what the partitions may have queued in all is bounded by the directory's
pace. A hop costs some tens of microseconds, half as much as through an executor's futures.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from storage.directory_pace import DirectoryPace

if TYPE_CHECKING:
    from storage.clock import Clock
    from storage.write_ticket import WriteTicket

RESUMED_PER_TURN = 4
"""Connections that read on in one turn of the loop."""

OnDone = Callable[[BaseException | None], None]


class DirectoryWriter:
    """See the module. The thread begins with the first ticket.

    Attributes:
        pace: Of the directory.
        writes: Tickets done.
        waiting: Tickets that are not done yet.
    """

    __slots__ = (
        "_clock",
        "_done",
        "_loop",
        "_name",
        "_resumers",
        "_thread",
        "_tickets",
        "_told",
        "pace",
        "waiting",
        "writes",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: "Clock", name: str) -> None:
        self.pace = DirectoryPace(clock.monotonic_ms)
        self.writes = 0
        self.waiting = 0
        self._loop = loop
        self._clock = clock
        self._name = name
        self._thread: threading.Thread | None = None
        self._tickets: SimpleQueue[tuple[WriteTicket, OnDone] | None] = SimpleQueue()
        self._done: deque[tuple[WriteTicket, OnDone, BaseException | None, float]] = deque()
        # The loop has been asked to look at what is done, and has not looked yet.
        self._told = False
        self._resumers: deque[Callable[[], None]] = deque()

    def submit(self, ticket: "WriteTicket", on_done: OnDone) -> None:
        """Have `ticket` run behind those before it, then `on_done(error)` called on the loop."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self.waiting += 1
        self._tickets.put((ticket, on_done))

    def _work(self) -> None:
        now_ms = self._clock.monotonic_ms
        while (item := self._tickets.get()) is not None:
            ticket, on_done = item
            failure: BaseException | None = None
            began_ms = now_ms()
            try:
                ticket.run()
            except BaseException as error:  # noqa: BLE001  because it is handed on, not swallowed
                failure = error
            self._done.append((ticket, on_done, failure, now_ms() - began_ms))
            del item, ticket, on_done, failure
            if not self._told:
                self._told = True
                # A closed loop: nobody waits for the answer any more.
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # First: what is done from here on asks again.
        self._told = False
        done = self._done
        while done:
            ticket, on_done, failure, took_ms = done.popleft()
            self.waiting -= 1
            self.writes += 1
            if ticket.is_plain:
                self.pace.wrote_behind(took_ms, ticket.size)
            on_done(failure)
        if self._resumers:
            self._resume_some()

    def _resume_some(self) -> None:
        """Some in a turn: each may have requests that were put aside."""
        resumers = self._resumers
        for _ in range(RESUMED_PER_TURN):
            if not resumers or self.pace.is_congested:
                return
            resumers.popleft()()
        if resumers:
            self._loop.call_soon(self._resume_some)

    def when_uncongested(self, resume: Callable[[], None]) -> None:
        """Call `resume` when less waits (`pace.is_congested` is true now)."""
        self._resumers.append(resume)

    def close(self) -> None:
        """Let the thread finish what it has; blocks. Nothing may be submitted any more."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._tickets.put(None)
            thread.join()


class DirectoryWriters:
    """The writer of each log directory."""

    __slots__ = ("_by_directory",)

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: "Clock", log_dirs: "tuple[str, ...]"
    ) -> None:
        self._by_directory = {
            path: DirectoryWriter(loop, clock, f"writer-{number}")
            for number, path in enumerate(log_dirs)
        }

    def of(self, log_dir: str) -> DirectoryWriter | None:
        """The writer of a log directory."""
        return self._by_directory.get(log_dir)

    def all(self) -> dict[str, DirectoryWriter]:
        """All, by the directory's path."""
        return dict(self._by_directory)

    def close(self) -> None:
        """Let all threads finish what they have; blocks."""
        for writer in self._by_directory.values():
            writer.close()
