"""Watching a partition of the metadata topic: a reader is called back when there is more."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from typing_extensions import override

from broker.replicas.purgatory import DelayedOperation

if TYPE_CHECKING:
    from broker.replicas.partition import Partition


class PartitionWatch(DelayedOperation):
    """Waits with a partition's fetches, as long as its reader wants that.

    Attributes:
        partition: It.
    """

    __slots__ = ("_look", "partition")

    def __init__(self, partition: "Partition", look: "Callable[[Partition], bool]") -> None:
        """`look`: called when its high watermark has moved, or it has gone; False: no more."""
        super().__init__()
        self.partition = partition
        self._look = look

    @override
    def try_complete(self) -> bool:
        """Never satisfied, unless nothing more is wanted."""
        return not self._look(self.partition)

    @override
    def on_complete(self, *, expired: bool) -> None:
        """The broker stops, or nothing is read any more: nothing more will come."""
