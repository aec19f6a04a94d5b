"""The writer thread of a log directory: appends to files, which the event loop must not wait for.

    Partition.append ──> log: offsets assigned, queued
          └─> PartitionWrites.pump ──ticket──> DirectoryWriter ──> thread: ticket.run(), in order
                    ^                                                  │
                    └──────── loop: log.disk_work.finish, high watermark <─┘ one wake-up for many

One thread for a directory, so that a disk that hangs stops one directory; its queue holds at most
one ticket of each partition, and the partitions' queued bytes are bounded by the directory's pace.
A hop costs some tens of microseconds, half as much as through an executor's futures.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.runtime.machine import LOCAL_MACHINE, Machine, Worker
from storage.errors import DiskError
from storage.log.directory_pace import LATE_MS, NEVER, WATCHED_BYTES, DirectoryPace

if TYPE_CHECKING:
    from broker.runtime.disk import Disk
    from broker.runtime.timer import Timer, TimerHandle
    from storage.environment.clock import Clock
    from storage.log.write_ticket import WriteTicket
    from storage.segment.segment import Segment

LOGGER = logging.getLogger(__name__)

SAMPLE_MS = 100.0
"""Interval of measuring how long the loop has waited for a processor, and of calls put off."""

RESUMED_PER_ITERATION = 4
"""Connections that are resumed in one event loop iteration."""

OnDone = Callable[[BaseException | None], None]


class DirectoryWriter:
    """See the module. The thread begins with `start`, or with the first ticket.

    Attributes:
        pace: Of the directory.
        writes: Tickets done.
        waiting: Tickets that are not done yet.
    """

    __slots__ = (
        "_clock",
        "_disk",
        "_done",
        "_is_woken",
        "_later",
        "_loop",
        "_machine",
        "_name",
        "_resumers",
        "_room",
        "_watching",
        "_worker",
        "on_failed",
        "pace",
        "waiting",
        "writes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: "Clock",
        name: str,
        disk: "Disk | None" = None,
        room: Callable[[], int | None] = lambda: None,
        machine: Machine = LOCAL_MACHINE,
    ) -> None:
        """Begin with nothing written.

        Args:
            loop: The event loop that owns the logs.
            clock: For how long writes take.
            name: Of the thread.
            disk: Threads of the directory, which measure writeback; None: it is not measured.
            room: Bytes that may be written before the kernel makes writers wait, if known.
            machine: Has the thread.
        """
        self._room = room
        self._machine = machine
        self.pace = DirectoryPace(
            clock.monotonic_ms, clock.monotonic_s, cpu_wait_ms=machine.cpu_wait_ms
        )
        self._disk = disk
        self._watching = False
        # Called with the error of a disk that failed to take written pages.
        self.on_failed: Callable[[DiskError], None] = _ignore_failure
        if disk is not None:
            self.pace.watch_from(self._watch, self._room())
        self.writes = 0
        self.waiting = 0
        self._loop = loop
        self._clock = clock
        self._name = name
        self._worker: Worker | None = None
        self._done: deque[tuple[WriteTicket, OnDone, BaseException | None, float]] = deque()
        # The loop has been woken to deliver results, and has not run yet.
        self._is_woken = False
        self._resumers: deque[Callable[[], None]] = deque()
        self._later: list[Callable[[], None]] = []

    def start(self) -> Worker:
        """Begin the thread, before a ticket depends on there being one."""
        worker = self._worker
        if worker is None:
            worker = self._worker = self._machine.worker(self._work, self._name)
        return worker

    def submit(self, ticket: "WriteTicket", on_done: OnDone) -> None:
        """Have `ticket` run behind those before it, then `on_done(error)` called on the loop."""
        worker = self._worker or self.start()
        self.waiting += 1
        worker.put((ticket, on_done))

    def _work(self, item: "tuple[WriteTicket, OnDone]") -> None:
        """Run a ticket, in the thread."""
        ticket, on_done = item
        now_ms = self._clock.monotonic_ms
        cpu_wait_ms = self._machine.cpu_wait_ms
        failure: BaseException | None = None
        # Where it matters how long it takes, time without a processor does not count.
        proving = not self.pace.is_quick
        waited_ms = cpu_wait_ms() if proving else 0.0
        began_ms = now_ms()
        try:
            ticket.run()
        except BaseException as error:  # noqa: BLE001  because it is handed on, not swallowed
            failure = error
        took_ms = now_ms() - began_ms
        if proving and took_ms > LATE_MS:
            took_ms -= cpu_wait_ms() - waited_ms
        self._done.append((ticket, on_done, failure, took_ms))
        # An error has this frame in its traceback: it would keep the segment's file open.
        failure = None
        if not self._is_woken:
            self._is_woken = True
            # A closed loop: no caller waits for the result any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # First: tickets done from here on wake the loop again.
        self._is_woken = False
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
        """Resume some connections in an iteration: each may have deferred requests."""
        resumers = self._resumers
        for _ in range(RESUMED_PER_ITERATION):
            if not resumers or self.pace.is_congested:
                return
            resumers.popleft()()
        if resumers:
            self._loop.call_soon(self._resume_some)

    def _watch(self, segment: "Segment") -> None:
        """Start writeback of a segment in the disk's threads, and measure how long it takes.

        Writeback begins long before the kernel would begin it by itself.
        """
        pace = self.pace
        if self._watching:
            pace.watching()
            return
        file, disk = segment.file, self._disk
        end = segment.size
        position = max(segment.written_back, end - WATCHED_BYTES)
        if file is None or disk is None or end <= position:
            pace.watching()
            return
        segment.written_back = end
        written = pace.written
        self._watching = True
        now_ms = self._clock.monotonic_ms
        pace.watching()

        def work() -> tuple[float, int | None]:
            began_ms = now_ms()
            if not file.write_back(position, end - position):
                return -1.0, None
            return now_ms() - began_ms, self._room()

        def done(taken: tuple[float, int | None] | None, failure: BaseException | None) -> None:
            self._watching = False
            took_ms, room = taken or (-1.0, None)
            if isinstance(failure, DiskError):
                LOGGER.error("write-back failed file=%s error=%s", file.path, failure)
                self.on_failed(failure)
            elif took_ms >= 0:
                pace.watched(written, end - position, took_ms, room)
            else:
                # The system cannot do that, or the disk's threads have ended.
                pace.watch_at = NEVER

        disk.submit(work, done)

    def when_uncongested(self, resume: Callable[[], None]) -> None:
        """Call `resume` when fewer bytes are queued (`pace.is_congested` is true now)."""
        self._resumers.append(resume)

    def call_later(self, call: Callable[[], None]) -> None:
        """Call it with the next sample, which is SAMPLE_MS away at most."""
        self._later.append(call)

    def sample(self) -> None:
        """Measure how long the loop has waited for a processor; make the calls that are due."""
        self.pace.sample_cpu_wait()
        later, self._later = self._later, []
        for call in later:
            call()

    def close(self) -> None:
        """Let the thread finish its queue; blocks. No ticket may be submitted afterwards."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


def _ignore_failure(_error: DiskError) -> None:
    return


class DirectoryWriters:
    """The writer of each log directory."""

    __slots__ = ("_by_directory", "_handle")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: "Clock",
        log_dirs: "tuple[str, ...]",
        disk: "Disk | None" = None,
        *,
        machine: Machine = LOCAL_MACHINE,
    ) -> None:
        """`disk`: threads that measure writeback; None: it is not measured."""
        self._by_directory = {
            path: DirectoryWriter(
                loop,
                clock,
                f"writer-{number}",
                None if disk is None else disk.of(path),
                machine.dirty_room(path),
                machine,
            )
            for number, path in enumerate(log_dirs)
        }
        self._handle: TimerHandle | None = None

    def start(self, timer: "Timer") -> None:
        """Begin the threads; sample every SAMPLE_MS how long the loop waited for a processor."""
        for writer in self._by_directory.values():
            writer.start()

        def sample() -> None:
            for writer in self._by_directory.values():
                writer.sample()
            self._handle = timer.call_later_ms(SAMPLE_MS, sample)

        sample()

    def of(self, log_dir: str) -> DirectoryWriter | None:
        """The writer of a log directory."""
        return self._by_directory.get(log_dir)

    def all(self) -> dict[str, DirectoryWriter]:
        """All, by the directory's path."""
        return dict(self._by_directory)

    def close(self) -> None:
        """Let all threads finish their queues; blocks."""
        if self._handle is not None:
            self._handle.cancel()
        for writer in self._by_directory.values():
            writer.close()
