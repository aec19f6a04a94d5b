"""Changed partitions of one transaction or more, on top of an image, and what to commit for them.

Several requests may change one partition, or one chunk: each sees what those before it have
planned, and a chunk is written once.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from broker.controller.active.slices import Slices
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.metadata_records import (
    PARTITIONS_PER_CHUNK,
    encode_partitions,
    partitions_key,
    topic_key,
)
from broker.controller.images.partition_image import PartitionImage
from broker.controller.store.metadata_store import Put, key_present
from broker.controller.store.store_writer import Unit


class Chunk(NamedTuple):
    """Partitions of a topic that are stored under one key."""

    topic_id: UUID
    first_index: int


class PartitionPlan:
    """See the module. Made for one image, committed once.

    Attributes:
        leaderless: Partitions without a leader for which nothing can be planned.
        is_undecided: There are partitions for which nothing is planned before it is known who of
            their ISR is dead.
    """

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.leaderless: list[tuple[TopicImage, PartitionImage]] = []
        self.is_undecided = False
        self._changed: dict[Chunk, dict[int, PartitionImage]] = {}

    def __bool__(self) -> bool:
        return bool(self._changed)

    @property
    def count(self) -> int:
        """Partitions that change."""
        return sum(map(len, self._changed.values()))

    def partition(self, topic: TopicImage, index: int) -> PartitionImage | None:
        """A partition as it will be; None when there is no such."""
        if not 0 <= index < len(topic.partitions):
            return None
        planned = self._changed.get(chunk_of(topic.topic_id, index))
        current = topic.partitions[index]
        return current if planned is None else planned.get(index, current)

    def change(self, topic: TopicImage, partition: PartitionImage) -> None:
        """Plan that a partition becomes this; nothing is planned when it is that already."""
        if partition is topic.partitions[partition.index]:
            return
        chunk = chunk_of(topic.topic_id, partition.index)
        self._changed.setdefault(chunk, {})[partition.index] = partition

    def changes(self) -> Iterator[tuple[TopicImage, PartitionImage, PartitionImage]]:
        """Topic, and each partition as it is and as it will be."""
        for chunk, planned in self._changed.items():
            topic = self.image.topics_by_id[chunk.topic_id]
            for index, partition in planned.items():
                yield topic, topic.partitions[index], partition

    def units(self) -> Iterator[tuple[Chunk, Unit]]:
        """What to commit, a chunk at a time: encoding one takes some tenths of a millisecond."""
        for chunk, planned in self._changed.items():
            topic = self.image.topics_by_id[chunk.topic_id]
            value = encode_partitions(_merged(topic, chunk.first_index, planned))
            put = Put(partitions_key(chunk.topic_id, chunk.first_index), value)
            yield chunk, Unit((key_present(topic_key(topic.name)),), (put,))


def chunk_of(topic_id: UUID, index: int) -> Chunk:
    """The chunk that a partition is stored in."""
    return Chunk(topic_id, index - index % PARTITIONS_PER_CHUNK)


def _merged(
    topic: TopicImage, first_index: int, planned: dict[int, PartitionImage]
) -> Sequence[PartitionImage]:
    current = topic.partitions[first_index : first_index + PARTITIONS_PER_CHUNK]
    return [planned.get(partition.index, partition) for partition in current]


async def units_of(plan: PartitionPlan, slices: Slices) -> dict[Chunk, Unit]:
    """All that is to be committed, encoded in slices of the loop."""
    units: dict[Chunk, Unit] = {}
    for chunk, unit in plan.units():
        units[chunk] = unit
        await slices.turn()
    return units
