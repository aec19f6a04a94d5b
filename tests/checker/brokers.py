"""Brokers for histories: started as users start them, with a proxy in front where asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench import wire
from bench.cluster.cluster import Cluster
from bench.cluster.kinds import KafkaCluster, VarveCluster
from bench.cluster.namespaces import Namespaces
from bench.node import KafkaNode, OwnedNode, VarveNode
from tests.checker.clients.share_work import PROPERTIES as SHARE_PROPERTIES

BROKERS: Final[dict[str, type[OwnedNode]]] = {"varve": VarveNode, "kafka": KafkaNode}

PROPERTIES: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    # Shorter than a frozen client sleeps.
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    # Kafka waits for its own old session before it starts again.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
    # So that a killed client's transaction does not hold up readers for long.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    **SHARE_PROPERTIES,
}


def new_broker(
    kind: str,
    directory: Path,
    *,
    properties: Mapping[str, str] | None = None,
    advertised_port: int | None = None,
) -> OwnedNode:
    """A broker, not yet started; `advertised_port` is where clients are told to go."""
    given = {**PROPERTIES, **(properties or {})}
    if advertised_port is not None:
        given["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{advertised_port}"
    return BROKERS[kind](directory, given)


READY_S: Final = 120.0

_OF_ONE_BROKER: Final = (
    # Each of three has a session with the store, or the controller, of its own.
    "broker.",
    # Of three brokers each has a replica of share groups' state, as of all else.
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)


class ReplicatedBrokers:
    """Several brokers with three replicas of everything, as histories see one broker."""

    def __init__(
        self,
        kind: str,
        directory: Path,
        *,
        brokers: int,
        properties: Mapping[str, str],
        etcd_members: int = 1,
        namespaces: Namespaces | None = None,
    ) -> None:
        """`namespaces`: for ours, in the place of proxies."""
        given = {k: v for k, v in PROPERTIES.items() if not k.startswith(_OF_ONE_BROKER)}
        # A client that still asks for a topic of a part that is over would bring it back.
        given["auto.create.topics.enable"] = "false"
        given |= properties
        self.cluster: Cluster
        if kind == "kafka":
            self.cluster = KafkaCluster(directory, given, brokers=brokers)
        else:
            self.cluster = VarveCluster(
                directory,
                given,
                brokers=brokers,
                etcd_members=etcd_members,
                links=namespaces is None,
                namespaces=namespaces,
            )

    @property
    def address(self) -> str:
        """All of them, as clients take it."""
        return self.cluster.bootstrap

    def create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, its leaders in turn, and wait until all replicas are in sync."""
        ids = sorted(self.cluster.nodes)
        assignment = [
            [ids[(index + step) % len(ids)] for step in range(min(3, len(ids)))]
            for index in range(partitions)
        ]
        self.cluster.create_topic(name, assignment, dict(configs or {}))

    def start(self) -> None:
        """Start all, and wait until each shows all of them."""
        self.cluster.start(READY_S)

    def close(self) -> None:
        """SIGKILL to all that belongs to it."""
        self.cluster.close()


def create_topic(
    node: OwnedNode | ReplicatedBrokers,
    name: str,
    partitions: int,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a topic and wait until it is led, and in sync."""
    if isinstance(node, ReplicatedBrokers):
        node.create_topic(name, partitions, configs)
        return
    with node.connect() as connection:
        wire.create_topic(connection, name, partitions, dict(configs or {}))
