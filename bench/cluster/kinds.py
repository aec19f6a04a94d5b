"""The kinds of cluster: ours on an etcd of its own or on a socket, and released Kafka (KRaft)."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from typing_extensions import override

from bench.cluster.cluster import Cluster
from bench.cluster.links import Links
from bench.cluster.namespaces import Namespaces
from bench.cluster.network import CLIENTS, Network, Place, store_member
from bench.cluster.state import quorum_leader
from bench.etcd_server import NO_ETCD, EtcdCluster, EtcdServer, find_etcd
from bench.kafka_release import KafkaRelease
from bench.node import KafkaNode, NodeError, VarveNode, free_ports
from bench.process import LOOPBACK, Host, cpu_seconds
from bench.unix_store_server import UnixStoreServer

REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
"""What a cluster of three brokers is asked for, of either kind."""


def replicated(brokers: int) -> dict[str, str]:
    """The same of a cluster of some brokers, which has no more replicas than brokers."""
    return {key: str(min(int(value), brokers)) for key, value in REPLICATED.items()}


SMALL_HEAP = ("-Xmx512M", "-Xms512M")
"""For three brokers on one machine, where nothing of their speed is measured."""


BROKERS_LISTENER = "BROKERS"
"""Where brokers reach each other, when proxies are between them."""


def host_in(namespaces: Namespaces | None, place: Place) -> Host:
    """A namespace for a server, or this machine's loopback."""
    return LOOPBACK if namespaces is None else namespaces.add(place)


def rack_of(racks: Sequence[str], node_id: int) -> dict[str, str]:
    """The setting of one broker's rack; empty where there are no racks."""
    return {"broker.rack": racks[node_id - 1]} if racks else {}


def _varve_nodes(
    directory: Path,
    properties: Mapping[str, str],
    brokers: int,
    racks: Sequence[str] = (),
    namespaces: Namespaces | None = None,
) -> dict[int, VarveNode]:
    """Brokers by node id, each with a directory and a name of its own."""
    nodes = {}
    for node_id in range(1, brokers + 1):
        own = {"node.id": str(node_id), **rack_of(racks, node_id)}
        node = nodes[node_id] = VarveNode(
            directory / f"{node_id}", {**properties, **own}, host=host_in(namespaces, node_id)
        )
        node.name = f"varve {node_id}"
    return nodes


class VarveCluster(Cluster):
    """`varve serve` with one etcd, or with several members of it.

    With `links` brokers reach each other and etcd through proxies that cut, delay and reset, see
    `bench.cluster.links`; with `links="clients"` clients reach brokers through them, too. With
    `namespaces` each server is in one of its own.

    Attributes:
        links: The proxies; None without them.
        namespaces: As given; closed with the cluster.
    """

    kind = "varve"

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        brokers: int = 3,
        etcd_members: int = 1,
        links: bool | Literal["clients"] = False,
        namespaces: Namespaces | None = None,
        racks: Sequence[str] = (),
    ) -> None:
        """`racks`: of the brokers, in order of node ids."""
        self.namespaces = namespaces
        hosts = [host_in(namespaces, store_member(number)) for number in range(etcd_members)]
        program = find_etcd()
        if program is None:
            raise NodeError(NO_ETCD)
        etcd_directory = directory / "etcd"
        etcd_directory.mkdir(parents=True, exist_ok=True)
        self.etcd: EtcdServer | EtcdCluster
        if etcd_members == 1:
            self.etcd = EtcdServer(program, etcd_directory, host=hosts[0])
            endpoints: tuple[str, ...] = (self.etcd.endpoint,)
        else:
            self.etcd = EtcdCluster(program, etcd_directory, hosts)
            endpoints = self.etcd.endpoints
        given = {
            **replicated(brokers),
            "metadata.store": f"etcd://{','.join(endpoints)}",
            **(properties or {}),
        }
        super().__init__(_varve_nodes(directory, given, brokers, racks, namespaces))
        self.links: Links | None = None
        if links:
            self.links = Links(directory / "links.log")
            self._link(self.links, endpoints, for_clients=links == "clients")

    def _link(self, links: Links, endpoints: Sequence[str], *, for_clients: bool) -> None:
        """Put proxies between all, and have brokers advertise them."""
        for node_id, node in self.nodes.items():
            (port,) = free_ports(1)
            own = f"127.0.0.1:{port}"
            clients = links.add(CLIENTS, node_id, node.address) if for_clients else node.address
            brokers = links.add(None, node_id, own)
            members = [
                links.add(node_id, store_member(number), endpoint)
                for number, endpoint in enumerate(endpoints)
            ]
            node.properties |= {
                "listeners": f"PLAINTEXT://{node.address},{BROKERS_LISTENER}://{own}",
                "listener.security.protocol.map": (
                    f"PLAINTEXT:PLAINTEXT,{BROKERS_LISTENER}:PLAINTEXT"
                ),
                "inter.broker.listener.name": BROKERS_LISTENER,
                "advertised.listeners": f"PLAINTEXT://{clients},{BROKERS_LISTENER}://{brokers}",
                "metadata.store": f"etcd://{','.join(members)}",
            }

    @property
    def linked(self) -> Links:
        """The proxies, of a cluster that has them."""
        assert self.links is not None, "this cluster was made without links"
        return self.links

    @property
    @override
    def network(self) -> Network:
        return self.linked if self.namespaces is None else self.namespaces

    @property
    def members(self) -> list[EtcdServer]:
        """Servers of etcd."""
        return self.etcd.members if isinstance(self.etcd, EtcdCluster) else [self.etcd]

    @override
    def cpu_seconds(self) -> float:
        return super().cpu_seconds() + sum(
            cpu_seconds(member.pid) for member in self.members if member.is_running
        )

    @override
    def start(self, timeout_s: float = 120.0) -> None:
        self.etcd.start()
        if self.links is not None:
            self.links.start()
        super().start(timeout_s)

    @override
    def heal(self) -> None:
        if self.links is not None:
            self.links.heal()
        if self.namespaces is not None:
            self.namespaces.heal()
        super().heal()

    def heal_etcd(self) -> None:
        """Start the members of etcd that are dead."""
        for member in self.members:
            if not member.is_running:
                member.start()

    @override
    def stop(self) -> dict[int, int]:
        if self.links is not None:
            self.links.heal()
        if self.namespaces is not None:
            self.namespaces.heal()
        try:
            return super().stop()
        finally:
            self._end_others()

    @override
    def close(self) -> None:
        super().close()
        self._end_others()

    def _end_others(self) -> None:
        if self.links is not None:
            self.links.stop()
        self.etcd.kill()
        if self.namespaces is not None:
            self.namespaces.close()


class SocketCluster(Cluster):
    """`varve serve` with a metadata store that another process of this machine serves.

    Attributes:
        store: That process.
    """

    kind = "varve"

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        brokers: int = 3,
    ) -> None:
        self.store = UnixStoreServer(directory / "metadata")
        given = {
            **replicated(brokers),
            "metadata.store": self.store.address,
            **(properties or {}),
        }
        super().__init__(_varve_nodes(directory, given, brokers))

    @override
    def cpu_seconds(self) -> float:
        return super().cpu_seconds() + (
            cpu_seconds(self.store.pid) if self.store.is_running else 0.0
        )

    @override
    def start(self, timeout_s: float = 120.0) -> None:
        self.store.start()
        super().start(timeout_s)

    @override
    def stop(self) -> dict[int, int]:
        try:
            return super().stop()
        finally:
            self.store.kill()

    @override
    def close(self) -> None:
        super().close()
        self.store.kill()


class KafkaCluster(Cluster):
    """Released Kafka brokers, each of them a controller too."""

    kind = "kafka"

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        brokers: int = 3,
        heap: tuple[str, ...] = SMALL_HEAP,
        namespaces: Namespaces | None = None,
        racks: Sequence[str] = (),
    ) -> None:
        """`racks`: of the brokers, in order of node ids; `namespaces`: closed with the cluster."""
        self._namespaces = namespaces
        release = KafkaRelease.resolve()
        nodes = {
            node_id: KafkaNode(
                directory / f"{node_id}",
                host=host_in(namespaces, node_id),
                heap=heap,
                release=release,
            )
            for node_id in range(1, brokers + 1)
        }
        voters = ",".join(f"{node_id}@{n.voter}" for node_id, n in nodes.items())
        for node_id, node in nodes.items():
            node.name = f"kafka {node_id}"
            node.properties |= {
                **replicated(brokers),
                **(properties or {}),
                "node.id": str(node_id),
                "controller.quorum.voters": voters,
                **rack_of(racks, node_id),
            }
        super().__init__(nodes)

    @property
    @override
    def network(self) -> Network:
        assert self._namespaces is not None, "this cluster was made without namespaces"
        return self._namespaces

    @override
    def heal(self) -> None:
        if self._namespaces is not None:
            self._namespaces.heal()
        super().heal()

    @override
    def close(self) -> None:
        super().close()
        if self._namespaces is not None:
            self._namespaces.close()

    @override
    def controller_id(self) -> int:
        # Metadata names any broker, KRaft's controller is not for clients.
        for node in self.answering:
            with contextlib.suppress(OSError), node.connect(timeout_s=2.0) as connection:
                return quorum_leader(connection)
        raise NodeError(f"no broker answers: {self.log_tails()}")
