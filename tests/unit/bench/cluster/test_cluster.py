"""A cluster's faults and waits, on processes that are no brokers."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from bench.cluster.cluster import Cluster
from bench.node import NodeError, OwnedNode
from bench.process import process_state


class SleepingNode(OwnedNode):
    """A process that listens nowhere."""

    @override
    def command(self) -> list[str]:
        return [sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(600)"]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two nodes that run."""
    cluster = Cluster({n: SleepingNode(tmp_path / f"{n}") for n in (1, 2)})
    for node in cluster.nodes.values():
        node.launch()
    yield cluster
    cluster.close()
    assert not cluster.answering


def test_the_paused_and_the_dead_are_not_asked(cluster: Cluster) -> None:
    first, second = cluster.nodes[1], cluster.nodes[2]
    assert cluster.answering == [first, second]
    cluster.pause(1)
    assert cluster.answering == [second]
    assert process_state(first.pid) == "T"
    cluster.kill(2)
    assert cluster.answering == []
    with pytest.raises(NodeError, match="no broker answers"):
        cluster.state()


def test_heal_resumes_and_starts_again(cluster: Cluster) -> None:
    """On the same ports, in the same directories."""
    first, second = cluster.nodes[1], cluster.nodes[2]
    before = cluster.addresses
    cluster.pause(1)
    cluster.kill(2)
    killed = second.pid
    cluster.heal()
    assert cluster.answering == [first, second]
    assert process_state(first.pid) != "T"
    assert second.pid != killed
    assert cluster.addresses == before


def test_a_wait_that_ends_in_vain_shows_the_logs(cluster: Cluster) -> None:
    assert cluster.wait_until("log", lambda: "begun" in cluster.nodes[1].log_tail()) < 60
    with pytest.raises(NodeError, match=r"not so after 0 s: pigs fly\n(.*\n)*begun"):
        cluster.wait_until("pigs fly", lambda: False, timeout_s=0)


def test_logs_are_kept(cluster: Cluster, tmp_path: Path) -> None:
    cluster.wait_until("log", lambda: "begun" in cluster.nodes[2].log_tail())
    kept = cluster.keep_logs(tmp_path / "kept")
    assert (kept / "cluster-2.log").read_text() == "begun\n"
