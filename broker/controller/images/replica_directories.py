"""Log directories of replicas, as a partition's record names them (KIP-858).

    a replica that was there      where it was
    one that is added             its broker's only log directory, if it has one that works
                                  UNASSIGNED where it has several: the broker chooses, and says
                                  where (AssignReplicasToDirs)

Source: Kafka 4.2, DirectoryId.java, ClusterControlManager.java (defaultDir).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.partition_image import PartitionImage
from storage.types.uuid_text import NIL

NONE: Final[frozenset[int]] = frozenset()

UNASSIGNED: Final = NIL
"""Not known: the broker has not said yet. It is taken to work."""


def default_directory(image: ClusterImage, node_id: int) -> UUID:
    """Where a new replica of a broker lies before the broker has said so."""
    broker = image.brokers.get(node_id)
    if broker is None or broker.registration is None:
        return UNASSIGNED
    directories = broker.registration.directories
    return directories[0] if len(directories) == 1 else UNASSIGNED


def directories_of(
    image: ClusterImage, replicas: Iterable[int], before: PartitionImage | None = None
) -> tuple[UUID, ...]:
    """The log directory of each replica, in order; empty while none is known.

    Args:
        image: Has the brokers.
        replicas: As they will be.
        before: The partition as it is: replicas that stay, stay where they are. None: it is new.
    """
    known: dict[int, UUID] = {}
    if before is not None:
        known = dict.fromkeys(before.replicas, UNASSIGNED)
        known.update(zip(before.replicas, before.directories, strict=False))
    found = tuple(
        known[node] if node in known else default_directory(image, node) for node in replicas
    )
    return found if any(one != UNASSIGNED for one in found) else ()


def replicas_offline(image: ClusterImage, partition: PartitionImage) -> frozenset[int]:
    """Brokers whose replica of a partition is in a log directory that does not work.

    It has failed, or was not there when the broker started. Brokers that are not registered are
    not among them.
    """
    if not partition.directories:
        return NONE
    return frozenset(
        node
        for node, directory_id in zip(partition.replicas, partition.directories, strict=False)
        if (broker := image.brokers.get(node)) is not None and not broker.has_online(directory_id)
    )


def is_led_nowhere(image: ClusterImage, partition: PartitionImage) -> bool:
    """Whether a single node is named as leader, and its log directory is missing or has failed.

    No controller puts that down, as none could elect another. In a cluster one does.
    """
    broker = image.brokers.get(partition.leader)
    return (
        broker is not None
        and broker.registration is None
        and bool(broker.failed_directories)
        and partition.leader in replicas_offline(image, partition)
    )


def replicas_full(image: ClusterImage, partition: PartitionImage) -> frozenset[int]:
    """Brokers whose replica of a partition is in a log directory without room."""
    if not partition.directories:
        return NONE
    return frozenset(
        node
        for node, directory_id in zip(partition.replicas, partition.directories, strict=False)
        if (broker := image.brokers.get(node)) is not None
        and directory_id in broker.full_directories
    )


def with_replicas(
    image: ClusterImage, partition: PartitionImage, replicas: Iterable[int]
) -> PartitionImage:
    """The partition with other replicas, and their directories; nothing else is changed."""
    wanted = tuple(replicas)
    return replace(partition, replicas=wanted, directories=directories_of(image, wanted, partition))
