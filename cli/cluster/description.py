"""A cluster as one of its brokers shows it: brokers, controller, partitions in trouble.

DescribeCluster has the brokers, also the fenced ones; Metadata has leaders, replicas and in-sync
replicas; DescribeConfigs has the least number of in-sync replicas of each topic. The answers are
not of one moment.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

MIN_ISR: Final = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class PartitionInSync:
    """One partition and the replicas that are in sync."""

    topic: str
    partition: int
    leader: int
    """Broker id, -1 for none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int
    """How many acks=all takes: never more than it has replicas, whatever the setting."""

    @property
    def name(self) -> str:
        """As log lines have it: `orders-3`."""
        return f"{self.topic}-{self.partition}"

    @property
    def missing(self) -> tuple[int, ...]:
        """Replicas that are not in sync."""
        return tuple(node for node in self.replicas if node not in self.isr)

    @property
    def trouble(self) -> str | None:
        """The worst that is wrong with it, in Kafka's words; None: nothing."""
        if self.leader < 0:
            return "offline"
        if len(self.isr) < self.min_isr:
            return "under min ISR"
        if self.missing:
            return "under-replicated"
        return None

    def without(self, node_id: int) -> str | None:
        """What would be wrong with it while a broker that is in sync is away; None: nothing."""
        if node_id not in self.replicas:
            return None
        left = [node for node in self.isr if node != node_id]
        if not left:
            return "would have no leader"
        if len(left) < self.min_isr:
            return f"would have {len(left)} of {self.min_isr} in-sync replicas"
        return None


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker; counts are of partitions."""

    broker: int
    address: str
    rack: str | None
    fenced: bool
    leads: int
    replicas: int
    not_in_sync: int


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Brokers in order of id, all partitions in order of topic and index."""

    cluster_id: str
    controller: int
    brokers: tuple[BrokerState, ...]
    partitions: tuple[PartitionInSync, ...]

    def in_trouble(self) -> list[tuple[PartitionInSync, str]]:
        """Partitions with what is wrong with them."""
        return [(p, trouble) for p in self.partitions if (trouble := p.trouble) is not None]

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return {
            "cluster_id": self.cluster_id,
            "controller": self.controller,
            "brokers": [asdict(broker) for broker in self.brokers],
            "partitions": len(self.partitions),
            "in_trouble": [
                asdict(partition) | {"trouble": trouble} for partition, trouble in self.in_trouble()
            ],
        }


def describe(admin: Any) -> ClusterDescription:
    """Ask a broker for everything.

    Raises:
        KafkaError: It does not answer, or not well.
    """
    cluster = admin.describe_cluster()
    topics = sorted(admin.describe_topics(), key=lambda topic: str(topic["name"]))
    least = _least_in_sync(admin, [topic["name"] for topic in topics])
    partitions = tuple(
        PartitionInSync(
            topic=topic["name"],
            partition=partition["partition_index"],
            leader=partition["leader_id"],
            replicas=tuple(partition["replica_nodes"]),
            isr=tuple(partition["isr_nodes"]),
            min_isr=min(least.get(topic["name"], 1), len(partition["replica_nodes"])),
        )
        for topic in topics
        for partition in sorted(topic["partitions"], key=_index)
    )
    return ClusterDescription(
        cluster["cluster_id"],
        cluster["controller_id"],
        tuple(_brokers(cluster["brokers"], partitions)),
        partitions,
    )


def _index(partition: dict[str, Any]) -> int:
    return int(partition["partition_index"])


def _brokers(
    shown: Sequence[dict[str, Any]], partitions: Sequence[PartitionInSync]
) -> Iterable[BrokerState]:
    for broker in sorted(shown, key=lambda one: int(one["broker_id"])):
        node_id = broker["broker_id"]
        yield BrokerState(
            broker=node_id,
            address=f"{broker['host']}:{broker['port']}",
            rack=broker["rack"],
            # Metadata, which brokers before DescribeCluster v2 are asked for, has none of these.
            fenced=bool(broker.get("is_fenced", False)),
            leads=sum(p.leader == node_id for p in partitions),
            replicas=sum(node_id in p.replicas for p in partitions),
            not_in_sync=sum(node_id in p.missing for p in partitions),
        )


def _least_in_sync(admin: Any, topics: Sequence[str]) -> dict[str, int]:
    """The effective `min.insync.replicas` of each topic."""
    from cli.admin.kafka_library import ConfigResource

    if not topics:
        return {}
    answer = admin.describe_configs(
        [ConfigResource("topic", name) for name in topics], config_filter="all"
    )
    return {
        name: int(configs[MIN_ISR]["value"])
        for name, configs in answer.get("topic", {}).items()
        if MIN_ISR in configs
    }
