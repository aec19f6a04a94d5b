"""The two kinds of cluster: ours on an etcd of its own, and released Kafka brokers (KRaft)."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from typing_extensions import override

from bench.cluster.cluster import Cluster
from bench.cluster.state import quorum_leader
from bench.etcd_server import NO_ETCD, EtcdCluster, EtcdServer, find_etcd
from bench.kafka_release import KafkaRelease
from bench.node import KafkaNode, NodeError, VarveNode
from bench.process import cpu_seconds

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

SMALL_HEAP = ("-Xmx512M", "-Xms512M")
"""For three brokers on one machine, where nothing of their speed is measured."""


class VarveCluster(Cluster):
    """`varve serve` with one etcd, or with several members of it."""

    kind = "varve"

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        brokers: int = 3,
        etcd_members: int = 1,
    ) -> None:
        program = find_etcd()
        if program is None:
            raise NodeError(NO_ETCD)
        etcd_directory = directory / "etcd"
        etcd_directory.mkdir(parents=True, exist_ok=True)
        self.etcd: EtcdServer | EtcdCluster
        if etcd_members == 1:
            self.etcd = EtcdServer(program, etcd_directory)
            endpoints: tuple[str, ...] = (self.etcd.endpoint,)
        else:
            self.etcd = EtcdCluster(program, etcd_directory, etcd_members)
            endpoints = self.etcd.endpoints
        replicas = min(brokers, 3)
        given = {
            **{key: str(min(int(value), replicas)) for key, value in REPLICATED.items()},
            "metadata.store": f"etcd://{','.join(endpoints)}",
            **(properties or {}),
        }
        super().__init__(
            {
                node_id: VarveNode(directory / f"{node_id}", {**given, "node.id": str(node_id)})
                for node_id in range(1, brokers + 1)
            }
        )
        for node_id, node in self.nodes.items():
            node.name = f"varve {node_id}"

    @property
    def _members(self) -> list[EtcdServer]:
        return self.etcd.members if isinstance(self.etcd, EtcdCluster) else [self.etcd]

    @override
    def cpu_seconds(self) -> float:
        return super().cpu_seconds() + sum(
            cpu_seconds(member.pid) for member in self._members if member.is_running
        )

    @override
    def start(self, timeout_s: float = 120.0) -> None:
        self.etcd.start()
        super().start(timeout_s)

    def heal_etcd(self) -> None:
        """Start the members of etcd that are dead."""
        for member in self._members:
            if not member.is_running:
                member.start()

    @override
    def stop(self) -> dict[int, int]:
        try:
            return super().stop()
        finally:
            self.etcd.kill()

    @override
    def close(self) -> None:
        super().close()
        self.etcd.kill()


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
    ) -> None:
        release = KafkaRelease.resolve()
        nodes = {
            node_id: KafkaNode(directory / f"{node_id}", heap=heap, release=release)
            for node_id in range(1, brokers + 1)
        }
        voters = ",".join(f"{node_id}@127.0.0.1:{n.second_port}" for node_id, n in nodes.items())
        replicas = min(brokers, 3)
        for node_id, node in nodes.items():
            node.name = f"kafka {node_id}"
            node.properties |= {
                **{key: str(min(int(value), replicas)) for key, value in REPLICATED.items()},
                **(properties or {}),
                "node.id": str(node_id),
                "controller.quorum.voters": voters,
            }
        super().__init__(nodes)

    @override
    def controller_id(self) -> int:
        # Metadata names any broker, KRaft's controller is not for clients.
        for node in self.answering:
            with contextlib.suppress(OSError), node.connect(timeout_s=2.0) as connection:
                return quorum_leader(connection)
        raise NodeError(f"no broker answers: {self.log_tails()}")
