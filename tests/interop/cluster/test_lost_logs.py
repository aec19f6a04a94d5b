"""All brokers die at once, and some come back with less than they had: nothing is lost.

Real processes and a real etcd. What a log or a disk lacks is fetched from whoever has it; a broker
that lacks it never leads meanwhile, also when it is the first to be back.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bench.cluster.kinds import VarveCluster
from bench.cluster.numbered import read_numbers
from bench.cluster.replicas import wait_until_equal
from tests.harness.etcd import etcd_or_skip

RECORDS = 200
ALONE_S = 2.0
"""How long the broker that lacks something is there before the others."""

LEASES_S = 9.0
"""Until leases of before have ended, the brokers have waited for that, and each has joined."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[VarveCluster]:
    """Three brokers, dead, with one partition in sync; broker 1 led it."""
    etcd_or_skip()
    properties = {
        "broker.session.timeout.ms": "2000",
        "replica.high.watermark.checkpoint.interval.ms": "100",
    }
    cluster = VarveCluster(tmp_path, properties)
    cluster.start()
    cluster.create_topic("t", [(1, 2, 3)])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce("t", b"%d" % number)
    assert producer.flush(60) == 0
    cluster.wait_until_in_sync(["t"])
    cluster.wait_until("checkpoints name all of them", lambda: are_checkpointed(cluster))
    for node_id in cluster.nodes:
        cluster.kill(node_id)
    yield cluster
    cluster.close()


def are_checkpointed(cluster: VarveCluster) -> bool:
    """Only what a checkpoint names is missed when the file is cut: see the first test."""
    checkpoints = [
        node.data_directory / "replication-offset-checkpoint" for node in cluster.nodes.values()
    ]
    return all(
        f"t 0 {RECORDS}" in path.read_text().splitlines() for path in checkpoints if path.exists()
    ) and all(path.exists() for path in checkpoints)


def all_are_there(cluster: VarveCluster) -> None:
    """In sync, equal, and with every record."""
    cluster.heal()
    cluster.wait_for_all()
    cluster.wait_until_in_sync(["t"])
    with cluster.connected_to_leader("t", 0) as connection:
        assert read_numbers(connection, "t", 0) == list(range(RECORDS))
    wait_until_equal(cluster, "t", 1)


def test_a_log_that_has_lost_its_end(cluster: VarveCluster) -> None:
    """The machine did not go down, but the log ends before its checkpoints."""
    (segment,) = (cluster.nodes[1].data_directory / "t-0").glob("*.log")
    segment.write_bytes(b"")
    cluster.nodes[1].launch()
    time.sleep(ALONE_S)
    all_are_there(cluster)


def test_disks_that_are_not_mounted(cluster: VarveCluster) -> None:
    """Every broker finds an empty directory: none of them leads, and the disks are taken again."""
    away = {}
    for node_id, node in cluster.nodes.items():
        away[node_id] = node.data_directory.rename(node.data_directory.with_suffix(".away"))
        node.data_directory.mkdir()
    for node in cluster.nodes.values():
        node.launch()
    time.sleep(LEASES_S)
    for node_id, node in cluster.nodes.items():
        if node.is_running:
            assert not list(node.data_directory.glob("t-0"))
            cluster.kill(node_id)
        node.data_directory.rename(node.data_directory.with_suffix(".empty"))
        away[node_id].rename(node.data_directory)
    all_are_there(cluster)
