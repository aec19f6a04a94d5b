"""What is noticed of brokers while faults are done to them."""

import socket
from typing import cast

import pytest

from bench.cluster.cluster import Cluster
from bench.cluster.state import ClusterState
from bench.node import NodeError
from tests.checker.cluster.faults import ClusterFaults


class FakeNode:
    """A process that listens or not."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.is_running = True
        self.listens = True

    def connect(self, _timeout_s: float) -> socket.socket:
        if not self.listens:
            raise ConnectionRefusedError
        return socket.socket()

    def stop(self) -> None:
        """Nothing is left of it."""

    def launch(self) -> None:
        self.pid += 10
        self.is_running, self.listens = True, False


class FakeCluster:
    """Three of them, and no store."""

    def __init__(self) -> None:
        self.nodes = {node_id: FakeNode(node_id) for node_id in (1, 2, 3)}

    @property
    def answering(self) -> list[FakeNode]:
        return [node for node in self.nodes.values() if node.is_running]

    def state(self) -> ClusterState:
        raise NodeError("nobody asks")

    def kill(self, node_id: int) -> None:
        self.nodes[node_id].is_running = False

    def heal(self) -> None:
        for node in self.nodes.values():
            if not node.is_running:
                node.launch()


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def faults(cluster: FakeCluster) -> ClusterFaults:
    return ClusterFaults(cast("Cluster", cluster), 1)


def test_clients_can_be_served_while_most_brokers_listen(
    cluster: FakeCluster, faults: ClusterFaults
) -> None:
    """A process that has been started and does not listen yet serves nobody."""
    assert faults.has_majority()
    assert faults.strike("kill-leader", 0.0)
    assert faults.has_majority()
    assert faults.strike("kill-two", 0.0)
    assert not faults.has_majority()
    faults.tend()
    assert len(cluster.answering) == 3
    assert not faults.has_majority()
    cluster.nodes[1].listens = cluster.nodes[2].listens = True
    assert faults.has_majority()


def test_a_broker_that_ends_by_itself_is_noted_once(
    cluster: FakeCluster, faults: ClusterFaults
) -> None:
    assert faults.strike("kill-two", 0.0)
    faults.look_for_ended()
    assert faults.ended == []
    faults.tend()
    cluster.nodes[2].is_running = False
    faults.tend()
    faults.tend()
    assert faults.ended == [2]
    faults.heal()
    cluster.nodes[2].is_running = False
    faults.heal()
    assert faults.ended == [2, 2]
