"""What all partitions of a broker share, made once by the replica manager."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from broker.replication.terms import ReplicationTerms
    from broker.runtime.timer import Timer
    from broker.runtime.watchers import Waker
    from storage.environment.clock import Clock
    from storage.errors import DiskError

# A `Partition`, whose module imports this one.
_Partition: TypeAlias = Any


class PartitionContext:
    """See the module.

    Attributes:
        clock: Of the broker.
        timer: For what is tried again.
        waker: Completes requests that wait, in slices.
        wake: Wakes the fetches that wait for a partition, in the loop's next iteration.
        on_disk_failure: Called when a directory has failed, or has no room.
        terms: Of replication.
    """

    __slots__ = ("clock", "on_disk_failure", "terms", "timer", "wake", "waker")

    def __init__(
        self,
        *,
        clock: "Clock",
        timer: "Timer",
        waker: "Waker",
        wake: Callable[[_Partition], None],
        on_disk_failure: "Callable[[_Partition, DiskError], None]",
        terms: "ReplicationTerms",
    ) -> None:
        self.clock = clock
        self.timer = timer
        self.waker = waker
        self.wake = wake
        self.on_disk_failure = on_disk_failure
        self.terms = terms
