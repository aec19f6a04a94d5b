"""A Fetch that waits for remote storage.

It ends when every remote partition's read has finished, when its time (`remote.fetch.max.wait.ms`)
is up, or when one of its partitions is not here any more; local partitions are then read again.
Unfinished reads are answered empty and without error: the client retries, and finds the records in
the cache.

Errors of the store are not returned at once either. Clients retry immediately after an error, some
9,000 times a second (KAFKA-19599): the response waits until the wait is over.

Source: Kafka, DelayedRemoteFetch.java; KIP-1018, KAFKA-14915.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from typing_extensions import override

from broker.replicas.purgatory import DelayedOperation
from tiered.errors import RemoteOffsetNotFoundError

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from tiered.remote_read import RemoteRead

ANSWERED_AT_ONCE = RemoteOffsetNotFoundError
"""The error that waiting does not fix, and that is not retried: the client resets its offset.

Corrupt bytes are no such error. A client that retries at once downloads them each time, and they
may have been corrupted in transit only.
"""


def is_settled(read: "RemoteRead") -> bool:
    """Whether the read's result may be returned now."""
    return read.finished and (read.error is None or isinstance(read.error, ANSWERED_AT_ONCE))


class DelayedRemoteFetch(DelayedOperation):
    """A parked fetch; `answer` reads local records, adds the remote ones, and responds."""

    __slots__ = ("_answer", "_is_here", "_partitions", "_pending", "_reads")

    def __init__(
        self,
        reads: "Collection[RemoteRead]",
        partitions: "Collection[Partition]",
        is_here: "Callable[[Partition], bool]",
        answer: Callable[[], None],
    ) -> None:
        """`reads`: those that are not settled. Call `begin` once it is parked."""
        super().__init__()
        self._reads = reads
        self._partitions = partitions
        self._is_here = is_here
        self._answer = answer
        self._pending = 0

    def begin(self) -> None:
        """Listen to the reads."""
        for read in self._reads:
            if not read.finished:
                self._pending += 1
                read.on_finished = self._read_finished

    def _read_finished(self) -> None:
        # There may be thousands: only after the last one all of them are checked.
        self._pending -= 1
        if not self._pending and not self.completed:
            self.try_complete()

    @override
    def try_complete(self) -> bool:
        """Satisfied when all reads are settled, or a partition is gone."""
        if all(is_settled(read) for read in self._reads):
            return self.complete()
        if not all(self._is_here(partition) for partition in self._partitions):
            return self.complete(expired=True)
        return False

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Answer; the client will retry unfinished partitions."""
        for read in self._unfinished():
            read.release()
        self._answer()

    @override
    def abandon(self) -> None:
        """Stop the reads, or let them fill the cache, by the settings: the client is gone."""
        if not self.completed:
            super().abandon()
            for read in self._unfinished():
                read.cancel()

    def _unfinished(self) -> "list[RemoteRead]":
        for read in self._reads:
            read.on_finished = None
        return [read for read in self._reads if not read.finished]
