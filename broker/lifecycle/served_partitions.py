"""Partitions that begin or cease to be served, passed on to the parts that follow them.

log opened ──────> on_serving ─────┬─> remote storage: copies and expires its segments
└─> coordinators: an internal topic's state is loaded
config changed ──> on_reconfigured ──> remote storage
topic deleted ───> on_deleted ───────> remote storage
directory failed, log moved ──> resign ──> remote storage, replicas, coordinators
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.lifecycle.coordinators import Coordinators
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager


class ServedPartitions:
    """See the module. Runs on the loop's thread."""

    def __init__(
        self,
        replicas: "ReplicaManager",
        coordinators: "Coordinators",
        remote: "RemoteStorage | None",
    ) -> None:
        self._replicas = replicas
        self._coordinators = coordinators
        self._remote = remote

    def on_serving(self, topic_partition: TopicPartition) -> None:
        """A log is open, and requests are served from it."""
        partition = self._replicas.replica_of(*topic_partition)
        if partition is None:
            return
        if self._remote is not None:
            self._remote.on_serving(partition)
        self._coordinators.on_elected(topic_partition, partition.leader_epoch)

    def on_reconfigured(self, partition: "Partition") -> None:
        """The configs of its topic have changed."""
        if self._remote is not None:
            self._remote.on_reconfigured(partition)

    def on_deleted(self, partitions: "Sequence[Partition]") -> None:
        """Their topic is deleted."""
        if self._remote is not None:
            self._remote.on_deleted(partitions)

    def resign(self, partitions: list[TopicPartition]) -> None:
        """Serve partitions no longer, nor what is coordinated by them."""
        if self._remote is not None:
            served = [self._replicas.replica_of(*one) for one in partitions]
            self._remote.on_resigned(one for one in served if one is not None)
        self._replicas.remove_partitions(partitions)
        for topic_partition in partitions:
            self._coordinators.on_resigned(topic_partition)
