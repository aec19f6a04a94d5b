"""A Fetch that waits for pages which are not in memory: offset indexes, batch headers, `.txnindex`.

It looks again when all that was missing has been read, which may show that more is missing; once
nothing is, it is answered, or waits for what else it has to wait for.

    look ──missing──> one read a directory at a time ──all there──> look again ...
      └──nothing is missing──> go_on
    time is up, a partition gone ──> go_on without what is missing
    half a second over, and some have records ──> the same

Kafka's handler thread waits for the disk instead, and with it whoever comes after.
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
"""What a client waits for a disk before it is answered without: well below the 30 s after which
clients give a request up."""

HELD_BACK_MAX_MS = 500.0
"""How long records wait for those of other partitions, whose disk is slow."""


class Missing(NamedTuple):
    """What one partition of a request waits for; `place` is its place in the request.

    Not the error that said so: through its traceback it would keep what the look-up has found, open
    files too, until the collector comes.
    """

    place: int
    partition: "Partition"
    key: Hashable
    work: Callable[[], object]


class DelayedColdFetch(DelayedOperation):
    """One parked fetch.

    Attributes:
        found: What has been read so far, by place in the request; let go in the end.
    """

    __slots__ = (
        "_cold_reads",
        "_go_on",
        "_impatience",
        "_impatient",
        "_is_here",
        "_look",
        "_missing",
        "_reads",
        "found",
    )

    def __init__(
        self,
        missing: "Sequence[Missing]",
        cold_reads: "ColdReads",
        is_here: "Callable[[Partition], bool]",
        look: "Callable[[DelayedColdFetch], tuple[Sequence[Missing], bool]]",
        go_on: Callable[[bool], None],
    ) -> None:
        """Call `begin` once it is parked.

        Args:
            missing: What the first look found missing.
            cold_reads: Whose threads read it.
            is_here: Whether a partition is.
            look: Reads anew: what is missing still, and whether there is anything to tell.
            go_on: Called in the end, with whether it is for want of time.
        """
        super().__init__()
        self._cold_reads = cold_reads
        self._is_here = is_here
        self._look = look
        self._go_on = go_on
        self._missing = missing
        self._impatience: TimerHandle | None = None
        self._impatient = False
        # Under way, by directory; what waits for them comes after.
        self._reads: dict[str, tuple[ColdRead, list[Missing]]] = {}
        self.found: dict[int, CachedReads] = {}

    @property
    def partitions(self) -> "list[Partition]":
        """Those that are waited for."""
        return [missing.partition for missing in self._missing]

    def begin(self, timer: "Timer", held_back_ms: float) -> None:
        """Have what is missing read, and records held back for it for so long."""
        self._impatience = timer.call_later_ms(held_back_ms, self._grow_impatient)
        self._read()

    def _grow_impatient(self) -> None:
        self._impatient = True
        if not self.completed and self._look(self)[1]:
            self.complete(expired=True)

    def _read(self) -> None:
        """Have what is missing read, side by side in different directories."""
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
            elif not self._reads or self._impatient:
                self._look_again()

        read = self._cold_reads.start(directory, key, work, done)
        if read is None:
            # Too many wait. What is there is told when the time is up: asking again at once would
            # make it worse.
            return
        self._reads[directory] = (read, queue)

    def _look_again(self) -> None:
        missing, has_something = self._look(self)
        if self._impatient and has_something:
            self.complete(expired=True)
        elif not self._reads:
            self._missing = missing
            if missing:
                self._read()
            else:
                self.complete()

    @override
    def try_complete(self) -> bool:
        """Satisfied by its reads only; over when a partition is not here any more."""
        if all(map(self._is_here, self.partitions)):
            return False
        return self.complete(expired=True)

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Go on. What is still to come is read for the client's next request."""
        self._stop_impatience()
        for read, _ in self._reads.values():
            read.leave()
        self._reads.clear()
        self._go_on(expired)
        self._let_go()

    @override
    def abandon(self) -> None:
        """The client has gone: nothing more is read for it."""
        if not self.completed:
            super().abandon()
            self._stop_impatience()
            for read, _ in self._reads.values():
                read.cancel()
            self._reads.clear()
            self._let_go()

    def _stop_impatience(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None

    def _let_go(self) -> None:
        """Partitions watch this for a while yet: it must hold no file open."""
        for reads in self.found.values():
            reads.clear()
        self.found = {}
        self._missing = ()
        self._look = _looked
        self._go_on = _gone_on


def _looked(_operation: DelayedColdFetch) -> tuple[Sequence[Missing], bool]:
    """Stands in for a look that is not wanted any more."""
    return (), False


def _gone_on(_expired: bool) -> None:
    """Stands in for what has been done."""
