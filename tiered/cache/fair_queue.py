"""Download queue: bounded, and fair between clients.

    submit ──> demand: one line per client, round robin ─────┐
         └───> prefetch: likewise, only when no demand waits ─┴──> running, at most `running_max`

A client is a (principal, client id). The lines are served round robin, so a client that asks for a
hundred downloads is one download ahead of a client that asks for one, not a hundred.

When `waiting_max` demands wait already, room is made at the end of the longest line if that is
longer by two or more than the newcomer's; else the newcomer is refused. So one client alone cannot
shut the door on others. Prefetches have as much room again; one too many is dropped and counted.

Some places (`_reserved`) are never taken by prefetches, so that a waiting reader finds one.

Kafka has a pool of `remote.log.reader.threads` with a FIFO of
`remote.log.reader.max.pending.tasks` (RemoteStorageThreadPool.java); both limits are kept.
"""

from collections import OrderedDict, deque
from typing import Protocol

Client = tuple[str, str]
"""(principal, client id)."""


class Job(Protocol):
    """A queued download."""

    def start(self) -> None:
        """Begin; `FairQueue.done` is called once it is over. Does not raise."""
        ...

    def refused(self) -> None:
        """It had to leave the line for a client with fewer jobs."""
        ...


class Lines:
    """Jobs that wait, a line per client."""

    __slots__ = ("_client_of", "_lines")

    def __init__(self) -> None:
        self._lines: OrderedDict[Client, deque[Job]] = OrderedDict()
        self._client_of: dict[Job, Client] = {}

    def __len__(self) -> int:
        return len(self._client_of)

    def __contains__(self, job: Job) -> bool:
        return job in self._client_of

    def length_of(self, client: Client) -> int:
        """Jobs of one client."""
        line = self._lines.get(client)
        return len(line) if line else 0

    def add(self, job: Job, client: Client) -> None:
        """Append to the client's line; a new line is served last."""
        self._lines.setdefault(client, deque()).append(job)
        self._client_of[job] = client

    def take(self) -> Job:
        """The next one, round robin. There must be one."""
        client, line = self._lines.popitem(last=False)
        job = line.popleft()
        if line:
            self._lines[client] = line
        del self._client_of[job]
        return job

    def remove(self, job: Job) -> bool:
        """Whether it was waiting."""
        client = self._client_of.pop(job, None)
        if client is None:
            return False
        line = self._lines[client]
        line.remove(job)
        if not line:
            del self._lines[client]
        return True

    def longest(self) -> Client:
        """The client with most jobs. There must be one."""
        return max(self._lines, key=lambda client: len(self._lines[client]))

    def remove_last(self, client: Client) -> Job:
        """The newest job of a client."""
        job = self._lines[client][-1]
        self.remove(job)
        return job


class FairQueue:
    """See the module.

    Attributes:
        running_max: Most jobs at a time.
        waiting_max: Most demands that wait, and most prefetches that wait.
        running: Jobs under way; `running_prefetches` of them were begun as prefetches.
        rejected: Demands refused because too many waited.
        dropped_prefetches: Prefetches refused likewise.
        started: Jobs begun since start.
    """

    __slots__ = (
        "_demands",
        "_prefetches",
        "_running_as_prefetch",
        "dropped_prefetches",
        "rejected",
        "running",
        "running_max",
        "started",
        "waiting_max",
    )

    def __init__(self, running_max: int, waiting_max: int) -> None:
        self.running_max = running_max
        self.waiting_max = waiting_max
        self.running = 0
        self.rejected = 0
        self.dropped_prefetches = 0
        self.started = 0
        self._demands = Lines()
        self._prefetches = Lines()
        self._running_as_prefetch: set[Job] = set()

    @property
    def waiting(self) -> int:
        """Demands that wait."""
        return len(self._demands)

    @property
    def running_prefetches(self) -> int:
        """Jobs under way that no reader waited for when they began."""
        return len(self._running_as_prefetch)

    @property
    def _reserved(self) -> int:
        return max(1, self.running_max // 4) if self.running_max > 1 else 0

    def resize(self, running_max: int, waiting_max: int) -> None:
        """New limits; what runs or waits beyond them is let be."""
        self.running_max = running_max
        self.waiting_max = waiting_max
        self._pump()

    def submit(self, job: Job, client: Client, *, prefetch: bool = False) -> bool:
        """Start the job, or let it wait.

        Returns:
            False if there is no room for it: it is forgotten.
        """
        lines = self._prefetches if prefetch else self._demands
        # All jobs that may start have started, so a job that finds a free place may take it.
        if len(lines) >= self.waiting_max and not self._has_place(prefetch):
            if prefetch:
                self.dropped_prefetches += 1
                return False
            self.rejected += 1
            if not lines:
                return False
            greedy = lines.longest()
            if lines.length_of(greedy) <= lines.length_of(client) + 1:
                return False
            lines.remove_last(greedy).refused()
        lines.add(job, client)
        self._pump()
        return True

    def promote(self, job: Job, client: Client) -> None:
        """A reader waits for this prefetch now; harmless for any other job.

        It is let in even if too many demands wait: it is no new work.
        """
        if self._prefetches.remove(job):
            self._demands.add(job, client)
            self._pump()
        elif job in self._running_as_prefetch:
            self._running_as_prefetch.remove(job)
            self._pump()

    def withdraw(self, job: Job) -> bool:
        """Whether the job was still waiting; then it never starts."""
        return self._demands.remove(job) or self._prefetches.remove(job)

    def done(self, job: Job) -> None:
        """A job that was started is over."""
        self.running -= 1
        self._running_as_prefetch.discard(job)
        self._pump()

    def idle_ratio(self) -> float:
        """Share of the places that are free now, 0 .. 1."""
        return max(0.0, 1.0 - self.running / self.running_max) if self.running_max else 0.0

    def _has_place(self, prefetch: bool) -> bool:
        if not prefetch:
            return self.running < self.running_max
        return (
            self.running < self.running_max
            and len(self._running_as_prefetch) < self.running_max - self._reserved
        )

    def _pump(self) -> None:
        while self.running < self.running_max:
            if self._demands:
                job = self._demands.take()
            elif self._prefetches and self._has_place(True):
                job = self._prefetches.take()
                self._running_as_prefetch.add(job)
            else:
                return
            self.running += 1
            self.started += 1
            job.start()
