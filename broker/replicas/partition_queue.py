"""Partitions that wait for work on the loop, which is done in slices.

    add ──> queue ──work, first come first served──> done
              └──the slice is used up──> the rest in the loop's next iterations

A partition that waits already is not added again: the work looks at what is true when its turn
comes. So there are never more in the queue than partitions here.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from storage.environment.clock import Clock

SLICE_MS: Final = 5.0
"""How long the work holds the loop; the last partition's may exceed it."""


class PartitionQueue:
    """See the module. On the loop's thread."""

    def __init__(
        self,
        work: "Callable[[Partition], None]",
        call_soon: Callable[[Callable[[], None]], object],
        clock: "Clock",
    ) -> None:
        """`work`: raises nothing. `call_soon`: the event loop's."""
        self._work = work
        self._call_soon = call_soon
        self._clock = clock
        # A dictionary keeps the order of coming, and finds one that is to be left out.
        self._waiting: dict[Partition, None] = {}
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, partition: "Partition") -> None:
        """Have the partition worked on by `run`, or later."""
        self._waiting[partition] = None

    def discard(self, partition: "Partition") -> None:
        """Leave a partition out; nothing happens if it does not wait."""
        self._waiting.pop(partition, None)

    def run(self) -> None:
        """Work for one slice now, at least on one partition; the rest follows by itself."""
        waiting = self._waiting
        end_ms = self._clock.monotonic_ms() + SLICE_MS
        while waiting:
            partition = next(iter(waiting))
            del waiting[partition]
            self._work(partition)
            if self._clock.monotonic_ms() >= end_ms:
                break
        if waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._run_scheduled)

    def _run_scheduled(self) -> None:
        self._is_scheduled = False
        self.run()
