"""Reads that wait for a disk, for requests that are parked: fair between those who wait, bounded.

Each log directory has a lane of its own: what is asked of it waits in a queue, and a few threads at
most work on it, so that readers of a slow disk leave threads to its writers and to other disks.
Two who ask for the same thing share one read.

    start ──> waiting ──a thread is free──> running ──> done: on_done of all who wait
                 └──cancel, by the last who waited──> gone, never read

Who cannot wait any longer leaves (`leave`) and asks again with the next request: what was read
meanwhile is kept for it, or a disk that is slower than clients are patient would be read in vain
for ever.

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
"""Reads of all directories that wait for a thread, without those of connections (one each)."""

THREADS_PER_DIRECTORY = 2
"""Threads that read for parked requests in one directory, at most."""

UNCLAIMED_BYTES_MAX = 16 * 1024 * 1024
UNCLAIMED_MAX = 256
"""Of what was read for those who have left; the oldest goes first."""

Done = Callable[[object, StorageError | None], None]


class ColdRead:
    """One read that somebody waits for; it may go on for others when this one is cancelled."""

    __slots__ = ("_job", "_on_done")

    def __init__(self, job: "_Job", on_done: Done) -> None:
        self._job = job
        self._on_done: Done | None = on_done

    def cancel(self) -> None:
        """Nobody waits for this any more; a second call does nothing."""
        if self._on_done is not None:
            self._on_done = None
            self._job.left()

    def leave(self) -> None:
        """Wait no more, but have it read for the next one who asks."""
        self._on_done = None

    def finish(self, result: object, error: StorageError | None) -> bool:
        """The read has ended; whether anybody waited for it still."""
        on_done, self._on_done = self._on_done, None
        if on_done is None:
            return False
        on_done(result, error)
        return True


class _Job:
    """One call for a thread, and who waits for it."""

    __slots__ = ("key", "lane", "readers", "started", "waiting", "work")

    def __init__(self, lane: "_Lane", key: Hashable, work: Callable[[], object]) -> None:
        self.lane = lane
        self.key = key
        self.work = work
        self.started = False
        self.readers: list[ColdRead] = []
        self.waiting = 0

    def left(self) -> None:
        """One of them has gone."""
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
        # Those with a key that others may join.
        self.jobs: dict[Hashable, _Job] = {}
        self.running = 0

    def drop(self, job: _Job) -> None:
        self.queue.remove(job)
        del self.jobs[job.key]
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
        unclaimed_bytes: Read for those who have left.
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
        # Only of directories in which something is to be read.
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
        """Have a thread call `work`, then `on_done(result, error)` on the loop, never at once.

        Args:
            directory: Log directory that is read from.
            key: Who asks for an equal one while it waits or runs gets the same result.
            work: Waits for the disk; touches nothing but files.
            on_done: Not called after `cancel`.

        Returns:
            None where too many wait already: the caller answers without it.
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
        """As `start`, for one who has no more than one such call under way: never refused."""
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
        """A lane may have nothing to do any more."""
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
            claimed = [reader.finish(result, error) for reader in job.readers]
            if error is None and not any(claimed):
                self._keep(job.key, result)

        self._disk_of(lane.directory).submit(job.work, finished)


def _given(result: object) -> object:
    """Stands in for the work of one who asks for what has been read."""
    return result


def _size(result: object) -> int:
    return len(result) if isinstance(result, bytes | bytearray) else 0


def _expected(failure: BaseException) -> StorageError:
    if isinstance(failure, StorageError):
        return failure
    LOGGER.error("log read failed unexpectedly", exc_info=failure)
    return StorageError(f"read failed: {failure!r}")
