"""Broker processes with remote storage, which scenarios are run against.

A scenario numbers brokers from 0; node ids are one higher. Every broker has two log directories, as
in Kafka's own harness, and all share one remote storage below the test's directory.

`VarveCluster` is one `varve serve`, or several on an etcd of their own. `KafkaCluster` is released
Kafka with LocalTieredStorage: it shows that a scenario says what Kafka does.
"""

import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from typing_extensions import override

from bench import wire
from bench.etcd_server import EtcdServer
from bench.node import OwnedNode
from bench.tier_rows import STORE_CALLS, metric_sum
from bench.tiered_node import TieredKafkaNode, TieredVarveNode
from tests.harness.etcd import etcd_or_skip
from tests.system.tiered.remote_view import (
    LOCAL_TIERED_STORAGE_LAYOUT,
    VARVE_LAYOUT,
    Bucket,
    DirectoryBucket,
    RemoteView,
)

INTERNAL_REPLICATION_FACTORS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
    "rlmm.config.remote.log.metadata.topic.replication.factor",
)

START_S = 60.0

METADATA_PARTITIONS = 5
"""Of `__remote_log_metadata`, unless a scenario asks for another count."""


class Cluster:
    """Brokers that are not started yet; `view` is their remote storage."""

    kind: str
    strict: bool = True
    """Invariants hold at every moment. Kafka, for a moment after its start, answers LATEST_TIERED
    with -1 whatever is in remote storage: its metadata is not read back yet."""
    view: RemoteView
    nodes: list[OwnedNode]

    def start(self, broker: int | None = None) -> None:
        """One broker, or all; returns when they answer."""
        chosen = self.nodes if broker is None else [self.nodes[broker]]
        for node in chosen:
            node.launch()
        for node in chosen:
            node.wait_until_ready()

    def stop(self, broker: int) -> None:
        """SIGTERM, and wait."""
        self.nodes[broker].stop()

    def kill(self, broker: int) -> None:
        """SIGKILL."""
        self.nodes[broker].kill()

    def stop_all(self) -> None:
        """Whatever still runs, followers first."""
        for node in reversed(self.nodes):
            if node.is_running:
                node.stop()

    def living(self) -> list[int]:
        """Numbers of the brokers that run."""
        return [number for number, node in enumerate(self.nodes) if node.is_running]

    def node_id(self, broker: int) -> int:
        """Kafka's id of the scenario's number."""
        return broker + 1

    def log_dirs(self, broker: int) -> list[Path]:
        """Both."""
        directory = self.nodes[broker].directory
        return [directory / "data", directory / "data2"]

    def partition_directory(self, broker: int, topic: str, partition: int) -> Path | None:
        """Where a replica lies, None if this broker has none."""
        for log_dir in self.log_dirs(broker):
            if (log_dir / f"{topic}-{partition}").is_dir():
                return log_dir / f"{topic}-{partition}"
        return None

    def first_local_segment(self, broker: int, topic: str, partition: int) -> int | None:
        """Base offset of the first segment in a replica's directory."""
        directory = self.partition_directory(broker, topic, partition)
        if directory is None:
            return None
        try:
            names = os.listdir(directory)
        except FileNotFoundError:
            return None  # deleted since it was looked for
        found = [int(name.removesuffix(".log")) for name in names if name.endswith(".log")]
        return min(found, default=None)

    def fetch_counts(self, broker: int) -> Mapping[str, float] | None:
        """Calls to the object store so far, by kind; None where they cannot be counted."""
        return None

    def logs(self) -> str:
        """The ends of all brokers' logs, for a failure's report."""
        return "\n".join(f"--- {node.name}\n{node.log_tail(30)}" for node in self.nodes)


class VarveCluster(Cluster):
    """Brokers with the filesystem store, or with S3 when `store` and `bucket` say so.

    One has its metadata on SQLite, several share an etcd, which lives as long as they.
    """

    kind = "varve"

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str],
        *,
        brokers: int = 1,
        store: Mapping[str, str] | None = None,
        bucket: Bucket | None = None,
    ) -> None:
        common = {
            "offsets.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "remote.log.manager.task.interval.ms": "100",
            "log.initial.task.delay.ms": "100",
            "log.retention.check.interval.ms": "100",
            "rlmm.config.remote.log.metadata.topic.num.partitions": str(METADATA_PARTITIONS),
            **(store or {}),
            **properties,
        }
        self._etcd: EtcdServer | None = None
        if brokers > 1:
            (directory / "etcd").mkdir(parents=True)
            self._etcd = EtcdServer(etcd_or_skip(), directory / "etcd")
            common |= {
                "metadata.store": f"etcd://{self._etcd.endpoint}",
                "transaction.state.log.num.partitions": "1",
                **dict.fromkeys(INTERNAL_REPLICATION_FACTORS, str(brokers)),
            }
        remote = directory / "remote"
        common.setdefault("rsm.config.storage.root", str(remote))
        self.nodes = []
        for number in range(brokers):
            where = directory / f"broker{number}" if brokers > 1 else directory
            own = {
                "log.dirs": f"{where / 'data'},{where / 'data2'}",
                "node.id": str(self.node_id(number)),
            }
            node = TieredVarveNode(where, common | own)
            node.name = f"varve {number}"
            self.nodes.append(node)
        self.view = RemoteView(bucket or DirectoryBucket(remote), VARVE_LAYOUT)

    @override
    def start(self, broker: int | None = None) -> None:
        if self._etcd is not None and not self._etcd.is_running:
            self._etcd.start()
        super().start(broker)
        if broker is None:
            self._wait_for_all()

    def _wait_for_all(self) -> None:
        """Until each shows all of them: topics with a replica on each can be created then."""
        deadline = time.monotonic() + START_S
        for node in self.nodes:
            while len(_shown_by(node)) < len(self.nodes):
                assert time.monotonic() < deadline, self.logs()
                time.sleep(0.05)

    @override
    def stop_all(self) -> None:
        try:
            super().stop_all()
        finally:
            if self._etcd is not None:
                self._etcd.kill()

    def fetch_counts(self, broker: int) -> Mapping[str, float] | None:
        node = self.nodes[broker]
        assert isinstance(node, TieredVarveNode)
        return {"get_range": metric_sum(node, STORE_CALLS, call="get_range")}


def _shown_by(node: OwnedNode) -> Collection[int]:
    with node.connect() as connection:
        return wire.cluster_brokers(connection)


class KafkaCluster(Cluster):
    """`brokers` processes; the first is also the controller."""

    kind = "kafka"
    strict = False

    def __init__(self, directory: Path, properties: Mapping[str, str], *, brokers: int = 1) -> None:
        self.nodes = []
        remote = directory / "remote"
        voters = ""
        for number in range(brokers):
            where = directory / f"broker{number}"
            node = TieredKafkaNode(where, heap=("-Xmx512M", "-Xms128M"))
            node.name = f"kafka {number}"
            voters = voters or f"1@127.0.0.1:{node.second_port}"
            node.properties |= {
                "node.id": str(self.node_id(number)),
                "process.roles": "broker" if number else "broker,controller",
                "controller.quorum.voters": voters,
                "log.dirs": f"{where / 'data'},{where / 'data2'}",
                "log.cleaner.enable": "false",
                "offsets.topic.num.partitions": "1",
                "transaction.state.log.num.partitions": "1",
                "group.initial.rebalance.delay.ms": "0",
                "unstable.api.versions.enable": "true",
                "rsm.config.dir": str(remote),
                "rlmm.config.remote.log.metadata.topic.num.partitions": str(METADATA_PARTITIONS),
                "rlmm.config.remote.log.metadata.topic.replication.factor": str(brokers),
                **({"listeners": f"PLAINTEXT://{node.address}"} if number else {}),
                **properties,
            }
            self.nodes.append(node)
        self.view = RemoteView(DirectoryBucket(remote), LOCAL_TIERED_STORAGE_LAYOUT)


__all__ = ["METADATA_PARTITIONS", "Cluster", "KafkaCluster", "VarveCluster"]
