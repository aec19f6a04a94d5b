"""A Fetch that waits for remote storage.

It ends when every remote partition's read has finished, when its time (`remote.fetch.max.wait.ms`)
is up, or when one of its partitions is not here any more; local partitions are then read anew. What
has not come by then is answered empty and without error: the client asks again, and finds it in the
cache.

Trouble with the store is not told at once either. Clients answer an error by asking again
immediately, some 9,000 times a second (KAFKA-19599): the answer waits until the time is up.

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
"""What no waiting will mend, and asking again does not repeat: the client looks for an offset.

Wrong bytes are none of it. A client that asks again at once has them downloaded each time, and
they may have been spoilt on their way only.
"""


def is_settled(read: "RemoteRead") -> bool:
    """Whether the read's outcome may be told now."""
    return read.finished and (read.error is None or isinstance(read.error, ANSWERED_AT_ONCE))


class DelayedRemoteFetch(DelayedOperation):
    """One parked fetch; `answer` reads what is local, adds what has come, and answers."""

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
        # There may be thousands: only after the last one is it worth looking at all of them.
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
        """Answer; the client will ask again for what has not come."""
        for read in self._unfinished():
            read.release()
        self._answer()

    @override
    def abandon(self) -> None:
        """The client has gone: its reads stop, or finish into the cache, as the settings say."""
        if not self.completed:
            super().abandon()
            for read in self._unfinished():
                read.cancel()

    def _unfinished(self) -> "list[RemoteRead]":
        for read in self._reads:
            read.on_finished = None
        return [read for read in self._reads if not read.finished]
