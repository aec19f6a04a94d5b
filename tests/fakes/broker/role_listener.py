"""Notes which partitions have which role."""

from collections.abc import Sequence

from broker.replicas.partition import Partition
from storage.types.topic_partition import TopicPartition


class RoleListenerOfTests:
    """A listener of roles that writes down what it hears.

    Attributes:
        elected: Partitions that were led from then on, in order.
        events: All that was heard: (what, partition).
    """

    def __init__(self) -> None:
        self.elected: list[TopicPartition] = []
        self.events: list[tuple[str, TopicPartition]] = []

    def on_elected(self, partition: Partition, leader_epoch: int) -> None:
        self.elected.append(partition.topic_partition)
        self.events.append(("elected", partition.topic_partition))

    def on_followed(self, partition: Partition, leader_epoch: int) -> None:
        self.events.append(("followed", partition.topic_partition))

    def on_resigned(self, partition: Partition) -> None:
        self.events.append(("resigned", partition.topic_partition))

    def on_refused(self, partition: Partition, reason: str) -> None:
        self.events.append(("refused", partition.topic_partition))

    def on_reconfigured(self, partition: Partition) -> None:
        self.events.append(("reconfigured", partition.topic_partition))

    def on_deleted(self, partitions: Sequence[Partition]) -> None:
        self.events += [("deleted", one.topic_partition) for one in partitions]
