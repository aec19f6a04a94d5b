"""Topic metadata for clients of one listener, as in Metadata responses.

    leader has no endpoint there   LISTENER_NOT_FOUND from version 6, LEADER_NOT_AVAILABLE before
    no leader                      LEADER_NOT_AVAILABLE
    version 0, a replica is away   REPLICA_NOT_AVAILABLE, and only replicas that are there

The structures are made once per topic image and shared by all responses: do not change them.

Source: Kafka 4.2, KRaftMetadataCache.scala.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from broker.controller.images.cluster_image import (
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from broker.controller.images.replica_directories import is_led_nowhere, replicas_offline
from protocol.error_codes import ErrorCode
from protocol.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_LEADER = -1


SWEEP_FROM: Final = 64
"""So many topics are few: no need to sweep those that are gone."""


class TopicMetadata:
    """Makes and keeps the structures; one for all listeners and versions.

    Bounded by the topics there are: what is kept for a listener is dropped when the brokers change,
    and topics that are gone go when as many have been added as were there, at the latest. Clients
    that ask for the topics they made, and for no others, would else leave each of them here.
    """

    def __init__(self) -> None:
        self._broker_revision = -1
        self._sweep_at: dict[tuple[str, int], int] = {}
        self._kept: dict[
            tuple[str, int], dict[str, tuple[TopicImage, list[MetadataResponsePartition]]]
        ] = {}

    def all_topics(
        self, image: ClusterImage, listener: str, version: int, authorized_operations: int
    ) -> list[MetadataResponseTopic]:
        """Every topic, in the order of the image."""
        self._prune(image, (listener, _dialect(version)))
        return [
            self.topic(image, topic, listener, version, authorized_operations)
            for topic in image.topics.values()
        ]

    def topic(
        self,
        image: ClusterImage,
        topic: TopicImage,
        listener: str,
        version: int,
        authorized_operations: int,
    ) -> MetadataResponseTopic:
        """One topic that exists."""
        return MetadataResponseTopic(
            error_code=int(ErrorCode.NONE),
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.internal,
            partitions=self._partitions(image, topic, listener, version),
            topic_authorized_operations=authorized_operations,
        )

    def _partitions(
        self, image: ClusterImage, topic: TopicImage, listener: str, version: int
    ) -> list[MetadataResponsePartition]:
        if image.broker_revision != self._broker_revision:
            self._kept.clear()
            self._broker_revision = image.broker_revision
        asked_by = (listener, _dialect(version))
        kept = self._kept.setdefault(asked_by, {})
        found = kept.get(topic.name)
        if found is not None and found[0] is topic:
            return found[1]
        if len(kept) >= self._sweep_at.get(asked_by, SWEEP_FROM):
            self._prune(image, asked_by)
        partitions = describe_partitions(image, topic.partitions, listener, version)
        kept[topic.name] = (topic, partitions)
        return partitions

    def _prune(self, image: ClusterImage, asked_by: tuple[str, int]) -> None:
        kept = self._kept.get(asked_by, {})
        for name in [name for name in kept if name not in image.topics]:
            del kept[name]
        self._sweep_at[asked_by] = max(SWEEP_FROM, 2 * len(kept))

    def __len__(self) -> int:
        """Topics described, once for every listener and form."""
        return sum(map(len, self._kept.values()))


def _dialect(version: int) -> int:
    """Versions whose partitions have one layout."""
    return 0 if version == 0 else 1 if version < 6 else 6


@dataclass(frozen=True, slots=True)
class _Placement:
    """What partitions with the same leader, replicas and ISR have in common."""

    error: int
    leader: int
    replicas: list[int]
    isr: list[int]
    away: list[int]


def _describe_placement(
    image: ClusterImage, partition: PartitionImage, listener: str, version: int
) -> _Placement:
    away = offline_replicas(image, partition, listener)
    replicas, isr = list(partition.replicas), list(partition.isr)
    error = ErrorCode.NONE
    if version == 0 and away:
        replicas = [node for node in replicas if node not in away]
        isr = [node for node in isr if node not in away]
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    leader = partition.leader
    broker = image.brokers.get(leader)
    if broker is None or is_led_nowhere(image, partition):
        leader, error = NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE
    elif listener not in broker.listeners:
        leader = NO_LEADER
        error = ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    return _Placement(int(error), leader, replicas, isr, away)


def describe_partitions(
    image: ClusterImage, partitions: Sequence[PartitionImage], listener: str, version: int
) -> list[MetadataResponsePartition]:
    """Partitions for clients of `listener`; those placed alike share their lists."""
    placements: dict[tuple[object, ...], _Placement] = {}
    described = []
    for partition in partitions:
        key = (partition.leader, partition.replicas, partition.isr, partition.directories)
        placement = placements.get(key)
        if placement is None:
            placement = _describe_placement(image, partition, listener, version)
            placements[key] = placement
        described.append(
            MetadataResponsePartition(
                error_code=placement.error,
                partition_index=partition.index,
                leader_id=placement.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=placement.replicas,
                isr_nodes=placement.isr,
                offline_replicas=placement.away,
            )
        )
    return described


def offline_replicas(image: ClusterImage, partition: PartitionImage, listener: str) -> list[int]:
    """Those replicas that clients of `listener` cannot reach, or whose log directory has failed."""
    offline = replicas_offline(image, partition)
    away = []
    for node in partition.replicas:
        broker = image.brokers.get(node)
        if (
            broker is None
            or broker.is_fenced
            or listener not in broker.listeners
            or node in offline
        ):
            away.append(node)
    return away


def describe_brokers(
    image: ClusterImage, listener: str, lingering: Sequence[BrokerImage] = ()
) -> list[MetadataResponseBroker]:
    """The brokers clients of `listener` can call, and some that they could call before."""
    return [
        MetadataResponseBroker(
            node_id=broker.node_id,
            host=broker.listeners[listener].host,
            port=broker.listeners[listener].port,
            rack=broker.rack,
        )
        for broker in image.brokers.values()
        if (not broker.is_fenced or broker in lingering) and listener in broker.listeners
    ]
