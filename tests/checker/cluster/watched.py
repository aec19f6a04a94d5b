"""A cluster that is struck and watched; its replicas, their past and its store are judged."""

import time
from collections.abc import Iterable, Sequence
from typing import Final

from bench.cluster.cluster import Cluster
from bench.cluster.kinds import VarveCluster
from bench.node import NodeError
from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.cluster.faults import ClusterFaults
from tests.checker.cluster.ledger import Ledger
from tests.checker.cluster.replicas import compare_replicas
from tests.checker.cluster.store_history import StoreHistory

WHOLE_S: Final = 90.0
EQUAL_S: Final = 30.0


class WatchedCluster:
    """Faults, ledger and store history of one cluster, and their findings.

    Attributes:
        faults: What is done to it.
        notes: Figures for the report.
    """

    def __init__(self, cluster: Cluster, seed: int, *, topics: Sequence[str]) -> None:
        self.cluster = cluster
        self.faults = ClusterFaults(cluster, seed + 13, topics=topics)
        self.faults.after_kill = self._on_kill
        self.ledger = Ledger()
        self.history = StoreHistory()
        self.notes: list[str] = []

    def _on_kill(self, node_id: int) -> None:
        self.ledger.read(f"broker {node_id}", self.cluster.nodes[node_id].data_directory)

    def wait_until_whole(self) -> None:
        """After healing: all brokers there, all partitions led, all replicas in sync.

        Raises:
            NodeError: It is not so after a minute and a half.
        """
        begin = time.monotonic()
        led_s = self.cluster.wait_until(
            "all partitions are led", self._all_led, WHOLE_S, poll_s=0.05
        )
        self.cluster.wait_for_all(WHOLE_S)
        self.cluster.wait_until_in_sync(timeout_s=WHOLE_S)
        whole_s = time.monotonic() - begin
        self.notes.append(f"after healing: led in {led_s:.1f} s, in sync in {whole_s:.1f} s")

    def _all_led(self) -> bool:
        shown = self.cluster.state().partitions
        return all(p.leader in self.cluster.nodes and not p.error_code for p in shown)

    def judge(self, topics: Sequence[str] | None = None) -> list[Anomaly]:
        """What must never be; nobody writes any more."""
        self.faults.look_for_ended()
        found = compare_replicas(self.cluster, topics, EQUAL_S)
        found += [
            Anomaly("broker-ended", f"broker {node_id} ended by itself, see its log")
            for node_id in self.faults.ended
        ]
        self.faults.ended.clear()
        for node_id, node in sorted(self.cluster.nodes.items()):
            self.ledger.read(f"broker {node_id}", node.data_directory)
        found += _taken(self.ledger.findings)
        said = [f"{self.faults.kills} broker processes killed", f"{self.ledger.size} batches seen"]
        if isinstance(self.cluster, VarveCluster):
            self._read_history()
            found += _taken(self.history.findings)
            said += [
                f"{self.history.changes} changes of partitions",
                f"{self.history.elections} elections",
                f"{self.history.controllers} controllers",
            ]
        self.notes.append(", ".join(said))
        return found

    def _read_history(self) -> None:
        assert isinstance(self.cluster, VarveCluster)
        deadline = time.monotonic() + WHOLE_S
        while True:
            try:
                self.history.read([member.endpoint for member in self.cluster.members])
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise NodeError("the store's history cannot be read") from None
                continue
            return


def _taken(findings: list[Anomaly]) -> Iterable[Anomaly]:
    """Each finding once, however often it is asked for."""
    found = list(findings)
    findings.clear()
    return found
