"""A coordinator's side towards its topic: elections of partitions, and how complete its views are.

A coordinator is this, over its `CoordinatorRuntime`, and what clients ask of it.
"""

from typing import Generic

from broker.coordinator.runtime import AnyShard, CoordinatorRuntime
from broker.coordinator.unavailable_partitions import UnavailablePartitions


class TopicCoordinator(Generic[AnyShard]):
    """See the module. All methods run on the event loop and none blocks."""

    def __init__(self, runtime: CoordinatorRuntime[AnyShard]) -> None:
        """`runtime` is started and stopped by the coordinator."""
        self._runtime = runtime

    # -- partitions of its topic -----------------------------------------------------------------

    def on_elected(self, partition_index: int, leader_epoch: int) -> None:
        """This broker leads the partition in `leader_epoch`: load what it has."""
        self._runtime.on_elected(partition_index, leader_epoch)

    def on_resigned(self, partition_index: int, leader_epoch: int | None = None) -> None:
        """Another broker leads the partition, in `leader_epoch`, or (None) its log is gone."""
        self._runtime.on_resigned(partition_index, leader_epoch)

    def partition_for(self, key: str) -> int:
        """The partition of a key, whether the topic exists yet or not."""
        return self._runtime.partition_for(key)

    async def ensure_topic(self) -> None:
        """Create the topic if it is not there.

        Raises:
            ApiError: It could not be created.
        """
        await self._runtime.ensure_topic()

    @property
    def unavailable(self) -> UnavailablePartitions:
        """Partitions of the topic that cannot be read."""
        return self._runtime.unavailable

    # -- how complete the coordinator's views are ------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether requests are served."""
        return self._runtime.is_running

    @property
    def is_loading(self) -> bool:
        """Whether the views may lack something because its shard still loads."""
        return self._runtime.is_loading

    @property
    def is_reading(self) -> bool:
        """Whether some shard is read; not one that waits for its log's end to be committed."""
        return self._runtime.is_reading

    @property
    def waiting_count(self) -> int:
        """Shards that wait for that."""
        return self._runtime.waiting_count

    @property
    def is_in_doubt(self) -> bool:
        """Whether another broker may have some of the views by now."""
        return self._runtime.is_in_doubt
