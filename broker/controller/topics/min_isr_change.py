"""What a change of `min.insync.replicas` does to eligible leader replicas.

A leader whose ISR was too small for the old minimum commits again as soon as it sees a smaller one.
From then on replicas outside the ISR may lack committed records: they leave the ELR in the very
transaction that changes the setting, or a leader that dies in between would be followed by one of
them (KIP-966).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from broker.controller.images.cluster_image import (
    ClusterImage,
    ConfigResource,
    ResourceType,
    TopicImage,
)
from broker.controller.images.metadata_records import PARTITIONS_PER_CHUNK, chunks
from broker.controller.images.partition_image import PartitionImage
from broker.controller.store.metadata_store import Put

MIN_ISR = "min.insync.replicas"


def emptied_elrs(
    image: ClusterImage, resource: ConfigResource, new: Mapping[str, str], default: int
) -> list[Put]:
    """Chunks of partitions whose ISR is large enough for the new minimum, without an ELR.

    Args:
        image: As it stands.
        resource: Whose settings change: a topic's, or those of all brokers.
        new: Its settings as they will be, valid.
        default: The cluster's minimum as it stands.
    """
    if new.get(MIN_ISR) == image.config(resource).get(MIN_ISR):
        return []
    if resource.type is ResourceType.BROKER and not resource.name:
        minimum = int(new.get(MIN_ISR, default))
        topics = [one for one in image.topics.values() if MIN_ISR not in one.overrides]
    elif resource.type is ResourceType.TOPIC and resource.name in image.topics:
        minimum = int(new.get(MIN_ISR, default))
        topics = [image.topics[resource.name]]
    else:
        return []
    return [put for topic in topics for put in _emptied(topic, minimum)]


def _emptied(topic: TopicImage, minimum: int) -> Iterator[Put]:
    partitions = list(topic.partitions)
    firsts: dict[int, None] = {}
    for partition in topic.partitions:
        if partition.elr and len(partition.isr) >= min(minimum, len(partition.original)):
            partitions[partition.index] = _without_elr(partition)
            firsts[partition.index - partition.index % PARTITIONS_PER_CHUNK] = None
    for first in firsts:
        key, value = chunks(topic.topic_id, partitions, from_index=first)[0]
        yield Put(key, value)


def _without_elr(partition: PartitionImage) -> PartitionImage:
    return replace(
        partition,
        elr=(),
        last_known_elr=(),
        partition_epoch=partition.partition_epoch + 1,
    )
