"""A Fetch that waits for pages which are not in memory: offset indexes, batch headers, `.txnindex`.

It is tried again when all missing pages have been read, which may show that more are missing; once
none is, it is answered, or waits for its other conditions.

    try ──missing──> one read a directory at a time ──all done──> try again ...
     └──nothing is missing──> go_on
    expired, a partition gone ──> go_on without the missing pages
    half a second over, and some partitions have records ──> the same

Kafka's handler thread waits for the disk instead, and with it all requests behind.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from broker.replicas.purgatory import DelayedOperation
from storage.index.reads import CachedReads

if TYPE_CHECKING:
    from broker.replicas.cold_reads import ColdRead, ColdReads
    from broker.replicas.partition import Partition
    from broker.runtime.timer import Timer, TimerHandle
    from storage.errors import StorageError

WAIT_MAX_MS = 20_000.0
"""Longest wait for a disk before a client is answered without: well below the clients' request
timeout of 30 s."""

HELD_BACK_MAX_MS = 500.0
"""How long records wait for those of other partitions, whose disk is slow."""


class Missing(NamedTuple):
    """A missing read of one partition of a request; `place` is its place in the request.

    Not the error that was raised: its traceback would keep the look-up's results, open files too,
    until the garbage collector runs.
    """

    place: int
    partition: "Partition"
    key: Hashable
    work: Callable[[], object]


class DelayedColdFetch(DelayedOperation):
    """One parked fetch.

    Attributes:
        found: Results so far, by place in the request; dropped in the end.
    """

    __slots__ = (
        "_cold_reads",
        "_go_on",
        "_held_back_timer",
        "_is_here",
        "_is_impatient",
        "_missing",
        "_reads",
        "_try_again",
        "found",
    )

    def __init__(
        self,
        missing: "Sequence[Missing]",
        cold_reads: "ColdReads",
        is_here: "Callable[[Partition], bool]",
        try_again: "Callable[[DelayedColdFetch], tuple[Sequence[Missing], bool]]",
        go_on: Callable[[bool], None],
    ) -> None:
        """Call `begin` once it is parked.

        Args:
            missing: What the first try found missing.
            cold_reads: Reads it in threads.
            is_here: Whether a partition is served here.
            try_again: Tries again: what is still missing, and whether there is anything to return.
            go_on: Called in the end, with whether the wait has expired.
        """
        super().__init__()
        self._cold_reads = cold_reads
        self._is_here = is_here
        self._try_again = try_again
        self._go_on = go_on
        self._missing = missing
        self._held_back_timer: TimerHandle | None = None
        self._is_impatient = False
        # Reads under way, by directory, each with those queued behind.
        self._reads: dict[str, tuple[ColdRead, list[Missing]]] = {}
        self.found: dict[int, CachedReads] = {}

    @property
    def partitions(self) -> "list[Partition]":
        """Partitions with missing reads."""
        return [missing.partition for missing in self._missing]

    def begin(self, timer: "Timer", held_back_ms: float) -> None:
        """Start the missing reads; other partitions' records wait `held_back_ms` for them."""
        self._held_back_timer = timer.call_later_ms(held_back_ms, self._stop_holding_back)
        self._read()

    def _stop_holding_back(self) -> None:
        self._is_impatient = True
        if not self.completed and self._try_again(self)[1]:
            self.complete(expired=True)

    def _read(self) -> None:
        """Start the missing reads, in parallel in different directories."""
        queues: dict[str, list[Missing]] = {}
        for missing in reversed(self._missing):
            directory = missing.partition.log.directory.rpartition("/")[0]
            queues.setdefault(directory, []).append(missing)
        for directory, queue in queues.items():
            if not self.completed:
                self._next(directory, queue)

    def _next(self, directory: str, queue: "list[Missing]") -> None:
        """Read the last of `queue`."""
        place, _, key, work = queue.pop()

        def done(result: object, error: "StorageError | None") -> None:
            del self._reads[directory]
            self.found.setdefault(place, CachedReads()).keep(key, result, error)
            if queue:
                self._next(directory, queue)
            elif not self._reads or self._is_impatient:
                self._continue()

        read = self._cold_reads.start(directory, key, work, done)
        if read is None:
            # Too many wait. The response is sent when the wait is over: a retry at once would make
            # it worse.
            return
        self._reads[directory] = (read, queue)

    def _continue(self) -> None:
        missing, has_something = self._try_again(self)
        if self._is_impatient and has_something:
            self.complete(expired=True)
        elif not self._reads:
            self._missing = missing
            if missing:
                self._read()
            else:
                self.complete()

    @override
    def try_complete(self) -> bool:
        """Complete if a partition is not here any more; else only the reads complete it."""
        if all(map(self._is_here, self.partitions)):
            return False
        return self.complete(expired=True)

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Answer; reads under way finish for the client's next request."""
        self._cancel_timer()
        for read, _ in self._reads.values():
            read.leave()
        self._reads.clear()
        self._go_on(expired)
        self._release_files()

    @override
    def abandon(self) -> None:
        """Cancel all reads: the client has disconnected."""
        if not self.completed:
            super().abandon()
            self._cancel_timer()
            for read, _ in self._reads.values():
                read.cancel()
            self._reads.clear()
            self._release_files()

    def _cancel_timer(self) -> None:
        if self._held_back_timer is not None:
            self._held_back_timer.cancel()
            self._held_back_timer = None

    def _release_files(self) -> None:
        """Drop all results: partitions still watch this, and it must hold no file open."""
        for reads in self.found.values():
            reads.clear()
        self.found = {}
        self._missing = ()
        self._try_again = _nothing_missing
        self._go_on = _ignore_expiry


def _nothing_missing(_operation: DelayedColdFetch) -> tuple[Sequence[Missing], bool]:
    """Replacement of the callback after completion."""
    return (), False


def _ignore_expiry(_expired: bool) -> None:
    """Replacement of `go_on` after completion."""
