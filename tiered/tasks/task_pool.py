"""Bounded pools of work: at most so many jobs at a time, the others wait in order.

    queued ──a place is free──> running ──> done(error or None)
       └────────cancel()──────────┴───────> done(CancelledError)

An asyncio task exists only while a job runs. The queue's bound is that each partition has at most
one job of a kind, so it never holds more than there are partitions.

Source: Kafka, RemoteLogManager.RLMScheduledThreadPool (three pools since 4.2: copier, expiration,
follower).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
Done: TypeAlias = Callable[[BaseException | None], None]


class Job:
    """One piece of work in a pool.

    Attributes:
        is_done: `done` was called, or is being called.
    """

    __slots__ = ("_done", "_pool", "_work", "is_done", "task")

    def __init__(self, pool: "TaskPool", work: Work, done: Done) -> None:
        """Not for callers: `TaskPool.submit`."""
        self._pool = pool
        self._work = work
        self._done = done
        self.task: asyncio.Task[None] | None = None
        self.is_done = False

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """A place is free (the pool calls this)."""
        self.task = loop.create_task(self._work())
        self.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error: BaseException | None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self.end(error)

    def end(self, error: BaseException | None) -> None:
        """It is over (the pool calls this for one that never began)."""
        self.is_done = True
        self._pool.ended(self)
        self._done(error)

    def cancel(self) -> None:
        """Stop it: `done` is called at once if it has not begun, else when it has ended."""
        if self.is_done:
            return
        if self.task is None:
            self.end(asyncio.CancelledError())
        else:
            self.task.cancel()


class TaskPool:
    """See the module. Touched on the loop's thread only.

    Attributes:
        name: For metrics.
        size: Jobs at a time; see `resize`.
    """

    __slots__ = ("_closed", "_queue", "_running", "name", "size")

    def __init__(self, name: str, size: int) -> None:
        assert size > 0, size
        self.name = name
        self.size = size
        self._queue: OrderedDict[Job, None] = OrderedDict()
        self._running: set[Job] = set()
        self._closed = False

    def submit(self, work: Work, done: Done) -> Job:
        """Run `work` when a place is free.

        Args:
            work: Makes the coroutine; not called before the job begins.
            done: Called once on the loop with what it raised, or None; must not raise.
        """
        job = Job(self, work, done)
        if self._closed:
            asyncio.get_running_loop().call_soon(job.end, asyncio.CancelledError())
            return job
        self._queue[job] = None
        self._fill()
        return job

    def _fill(self) -> None:
        while self._queue and len(self._running) < self.size and not self._closed:
            job, _ = self._queue.popitem(last=False)
            self._running.add(job)
            job.begin(asyncio.get_running_loop())

    def ended(self, job: Job) -> None:
        """A job is over; its place is free."""
        self._running.discard(job)
        self._queue.pop(job, None)
        self._fill()

    def resize(self, size: int) -> None:
        """More places begin at once; with fewer, what runs goes on."""
        assert size > 0, size
        self.size = size
        if self._queue:
            self._fill()

    @property
    def queued(self) -> int:
        """Jobs that wait for a place."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Jobs under way."""
        return len(self._running)

    @property
    def idle_ratio(self) -> float:
        """Part of the places that are free, 0 .. 1 (RemoteLogManagerTasksAvgIdlePercent)."""
        return max(0.0, 1.0 - len(self._running) / self.size)

    async def close(self) -> None:
        """Cancel everything and wait until it has ended; nothing begins any more."""
        self._closed = True
        for job in list(self._queue):
            job.cancel()
        tasks = [job.task for job in self._running if job.task is not None]
        for task in tasks:
            task.cancel()
        # Done callbacks of the tasks run before gather's waiter wakes up.
        await asyncio.gather(*tasks, return_exceptions=True)
