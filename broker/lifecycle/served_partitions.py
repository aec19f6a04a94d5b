"""The roles of partitions, passed on to the parts that follow them.

led from now on ────> on_elected ──┬─> remote storage: copies and expires its segments
another leads ──────> on_followed  │   (followed: learns how far the leader has copied)
                                   └─> coordinators: an internal topic's state is loaded
no role any more ───> on_resigned ──> both end what they do for it
led by no right ────> on_refused ───> an alert, until it has a role again
config changed ─────> on_reconfigured ──> remote storage
topic deleted ──────> on_deleted ───────> remote storage
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from storage.environment.alerts import AlertKind

if TYPE_CHECKING:
    from broker.lifecycle.coordinators import Coordinators
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.partition import Partition
    from storage.environment.alerts import Alerts


class ServedPartitions:
    """See the module. Runs on the loop's thread.

    Attributes:
        on_role: Called when a partition has taken a role: this broker acts in a leader epoch.
    """

    def __init__(
        self, coordinators: "Coordinators", remote: "RemoteStorage | None", alerts: "Alerts"
    ) -> None:
        self._coordinators = coordinators
        self._remote = remote
        self._alerts = alerts
        self._refused: set[Partition] = set()
        self.on_role: Callable[[], None] = _nothing

    def on_elected(self, partition: "Partition", leader_epoch: int) -> None:
        """This broker leads it from now on."""
        self._has_role(partition)
        self.on_role()
        if self._remote is not None:
            self._remote.lead(partition, leader_epoch)
        self._coordinators.on_elected(partition.topic_partition, leader_epoch)

    def on_followed(self, partition: "Partition", leader_epoch: int) -> None:
        """Another broker leads it, or none."""
        self._has_role(partition)
        self.on_role()
        if self._remote is not None:
            self._remote.follow(partition)
        self._coordinators.on_resigned(partition.topic_partition, leader_epoch)

    def on_resigned(self, partition: "Partition") -> None:
        """It has no role any more: its log was closed, or this broker is fenced."""
        self._has_role(partition)
        if self._remote is not None:
            self._remote.resign(partition)
        self._coordinators.on_resigned(partition.topic_partition)

    def on_refused(self, partition: "Partition", reason: str) -> None:
        """It should be led here, and must not be."""
        self._refused.add(partition)
        self._alerts.set(AlertKind.LEADER_EPOCH_BEHIND, str(partition.topic_partition), reason)

    def on_reconfigured(self, partition: "Partition") -> None:
        """The configs of its topic have changed."""
        if self._remote is not None:
            self._remote.on_reconfigured(partition)

    def on_deleted(self, partitions: "Sequence[Partition]") -> None:
        """Their topic is deleted."""
        for partition in partitions:
            self._has_role(partition)
        if self._remote is not None:
            self._remote.on_deleted(partitions)

    def _has_role(self, partition: "Partition") -> None:
        if partition in self._refused:
            self._refused.discard(partition)
            self._alerts.clear(AlertKind.LEADER_EPOCH_BEHIND, str(partition.topic_partition))


def _nothing() -> None:
    """A node that is alone keeps no note of it."""
