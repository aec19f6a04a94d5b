"""Disk reads for parked requests: queued by log directory, bounded, shared by equal requests.

Each log directory has a lane of its own: a queue of reads, and a few threads at most for them, so
that readers of a slow disk leave threads to its writers and to other disks. Equal reads are done
once.

    start ──> waiting ──a thread is free──> running ──> done: on_done of all callers
                 └──cancel, by the last caller──> dropped, never read

A request whose wait is over leaves (`leave`), and the client's next one starts the read again: the
result is kept for it meanwhile, or a disk that is slower than the clients' timeouts would be read
in vain for ever.

Everything but the reads themselves happens on the loop's thread.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING

from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.runtime.disk import Disk

LOGGER = logging.getLogger(__name__)

WAITING_MAX = 10_000
"""Most reads of all directories that wait for a thread, without those of connections (one each)."""

THREADS_PER_DIRECTORY = 2
"""Threads that read for parked requests in one directory, at most."""

UNCLAIMED_BYTES_MAX = 16 * 1024 * 1024
UNCLAIMED_MAX = 256
"""Most results kept for requests that have left; the oldest is dropped first."""

Done = Callable[[object, StorageError | None], None]


class ColdRead:
    """A caller's read; it may go on for other callers when this one is cancelled."""

    __slots__ = ("_job", "_on_done")

    def __init__(self, job: "_Job", on_done: Done) -> None:
        self._job = job
        self._on_done: Done | None = on_done

    def cancel(self) -> None:
        """Cancel; a second call does nothing."""
        if self._on_done is not None:
            self._on_done = None
            self._job.left()

    def leave(self) -> None:
        """Stop waiting, but keep the result for the next equal read."""
        self._on_done = None

    def finish(self, result: object, error: StorageError | None) -> bool:
        """Call `on_done`; return whether the caller was still waiting."""
        on_done, self._on_done = self._on_done, None
        if on_done is None:
            return False
        on_done(result, error)
        return True


class _Job:
    """One call for a thread, and its callers' reads."""

    __slots__ = ("key", "lane", "readers", "started", "waiting", "work")

    def __init__(self, lane: "_Lane", key: Hashable, work: Callable[[], object]) -> None:
        self.lane = lane
        self.key = key
        self.work = work
        self.started = False
        self.readers: list[ColdRead] = []
        self.waiting = 0

    def left(self) -> None:
        """Count a caller that has left or cancelled."""
        self.waiting -= 1
        if self.waiting == 0 and not self.started:
            self.lane.drop(self)


class _Lane:
    """The reads of one directory."""

    __slots__ = ("_owner", "directory", "jobs", "queue", "running")

    def __init__(self, owner: "ColdReads", directory: str) -> None:
        self._owner = owner
        self.directory = directory
        self.queue: deque[_Job] = deque()
        # Jobs by key, which equal reads join.
        self.jobs: dict[Hashable, _Job] = {}
        self.running = 0

    def drop(self, job: _Job) -> None:
        self.queue.remove(job)
        del self.jobs[job.key]
        job.readers.clear()
        self._owner.left(self)


class ColdReads:
    """See the module.

    Args:
        disk_of: The threads of a log directory.
        capacity: Reads that may wait.
        threads: Of one directory, at most.

    Attributes:
        waiting: Reads that wait for a thread.
        running: Reads under way.
        done: Reads that have ended, since the start.
        refused: Reads beyond `capacity`, since the start.
        unclaimed_bytes: Results kept for requests that have left.
    """

    __slots__ = (
        "_disk_of",
        "_lanes",
        "_threads",
        "_unclaimed",
        "capacity",
        "done",
        "refused",
        "running",
        "unclaimed_bytes",
    )

    def __init__(
        self,
        disk_of: "Callable[[str], Disk]",
        *,
        capacity: int = WAITING_MAX,
        threads: int = THREADS_PER_DIRECTORY,
    ) -> None:
        self._disk_of = disk_of
        self._threads = threads
        # Only of directories with reads.
        self._lanes: dict[str, _Lane] = {}
        self._unclaimed: OrderedDict[Hashable, object] = OrderedDict()
        self.unclaimed_bytes = 0
        self.capacity = capacity
        self.running = 0
        self.done = 0
        self.refused = 0

    @property
    def waiting(self) -> int:
        """Reads that wait for a thread."""
        return sum(len(lane.queue) for lane in self._lanes.values())

    def start(
        self, directory: str, key: Hashable, work: Callable[[], object], on_done: Done
    ) -> ColdRead | None:
        """Call `work` in a thread, then `on_done(result, error)` on the loop, never at once.

        Args:
            directory: Log directory that is read from.
            key: Reads with an equal one, while it waits or runs, get the same result.
            work: Waits for the disk; touches nothing but files.
            on_done: Not called after `cancel`.

        Returns:
            None if too many wait already: the caller answers without it.
        """
        if key in self._unclaimed:
            result = self._claim(key)
            work = partial(_given, result)
        lane = self._lane(directory)
        job = lane.jobs.get(key)
        if job is None:
            if len(lane.queue) >= self.capacity or self.waiting >= self.capacity:
                self.refused += 1
                return None
            job = lane.jobs[key] = _Job(lane, key, work)
            lane.queue.append(job)
        read = ColdRead(job, on_done)
        job.readers.append(read)
        job.waiting += 1
        self._run(lane)
        return read

    def run(self, directory: str, work: Callable[[], object], on_done: Done) -> None:
        """Start a read that is never refused: its caller has at most one under way."""
        lane = self._lane(directory)
        job = _Job(lane, object(), work)
        lane.jobs[job.key] = job
        job.readers.append(ColdRead(job, on_done))
        job.waiting = 1
        lane.queue.append(job)
        self._run(lane)

    def _keep(self, key: Hashable, result: object) -> None:
        unclaimed = self._unclaimed
        unclaimed[key] = result
        self.unclaimed_bytes += _size(result)
        while len(unclaimed) > UNCLAIMED_MAX or self.unclaimed_bytes > UNCLAIMED_BYTES_MAX:
            self._claim(next(iter(unclaimed)))

    def _claim(self, key: Hashable) -> object:
        result = self._unclaimed.pop(key)
        self.unclaimed_bytes -= _size(result)
        return result

    def left(self, lane: _Lane) -> None:
        """Remove a lane that has no reads any more."""
        if not lane.queue and not lane.running:
            self._lanes.pop(lane.directory, None)

    def _lane(self, directory: str) -> _Lane:
        lane = self._lanes.get(directory)
        if lane is None:
            lane = self._lanes[directory] = _Lane(self, directory)
        return lane

    def _run(self, lane: _Lane) -> None:
        while lane.queue and lane.running < self._threads:
            job = lane.queue.popleft()
            job.started = True
            lane.running += 1
            self.running += 1
            self._submit(lane, job)

    def _submit(self, lane: _Lane, job: _Job) -> None:
        def finished(result: object, failure: BaseException | None) -> None:
            lane.running -= 1
            self.running -= 1
            self.done += 1
            del lane.jobs[job.key]
            self._run(lane)
            self.left(lane)
            error = None
            if failure is not None:
                error = _expected(failure)
            # Emptied, as a reader has its job: a cycle would keep the file that `work` reads open,
            # and with it the room of a deleted segment, until the garbage collector comes by.
            readers, job.readers = job.readers, []
            claimed = [reader.finish(result, error) for reader in readers]
            if error is None and not any(claimed):
                self._keep(job.key, result)

        self._disk_of(lane.directory).submit(job.work, finished)


def _given(result: object) -> object:
    """Return a kept result, as the work of a read."""
    return result


def _size(result: object) -> int:
    return len(result) if isinstance(result, bytes | bytearray) else 0


def _expected(failure: BaseException) -> StorageError:
    if isinstance(failure, StorageError):
        return failure
    LOGGER.error("log read failed unexpectedly", exc_info=failure)
    return StorageError(f"read failed: {failure!r}")
