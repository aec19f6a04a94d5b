"""A cluster of three becomes a broker on etcd, and a node alone, while a client writes.

The commands of docs/cluster.md, on real processes: replicas move, brokers are drained, stopped and
forgotten, the store is copied back.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.cluster.kinds import VarveCluster
from bench.cluster.numbered import compare
from bench.etcd_server import EtcdServer
from bench.node import NodeEndedError, VarveNode
from tests.harness.etcd import etcd_or_skip
from tests.interop.cluster.test_metadata_copy import start
from tests.interop.cluster.writers import ConfluentWriter

TOPIC = "orders"
PARTITIONS = 3
SPREAD = [[1 + index, 1 + (index + 1) % 3, 1 + (index + 2) % 3] for index in range(PARTITIONS)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[VarveCluster]:
    etcd_or_skip()
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    cluster = VarveCluster(tmp_path, settings)
    cluster.start()
    yield cluster
    cluster.close()


def varve(*words: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "varve"
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=120)


def administer(cluster: VarveCluster, *words: str) -> subprocess.CompletedProcess[str]:
    return varve("cluster", *words, "--bootstrap-server", cluster.bootstrap)


def take_out(cluster: VarveCluster, node_id: int) -> None:
    """One of some brokers, each of which has a replica of everything."""
    left = len(cluster.answering) - 1
    factor = ("reassign", "--replication-factor", str(left), "--execute")
    refused = administer(cluster, "remove-broker", str(node_id), "--drain")
    assert refused.returncode == 1
    assert f"first `varve cluster {' '.join(factor)}`" in refused.stderr
    assert administer(cluster, *factor).returncode == 0
    cluster.wait_until(
        "replicas are fewer", lambda: administer(cluster, "reassign", "--verify").returncode == 0
    )
    assert "stop it" in administer(cluster, "remove-broker", str(node_id), "--drain").stderr
    cluster.terminate(node_id)
    assert cluster.nodes[node_id].stop() == 0
    done = administer(cluster, "remove-broker", str(node_id))
    assert (done.returncode, done.stdout) == (0, f"broker {node_id} is unregistered\n")


def committed(address: str, offset: int | None = None) -> int:
    """What the group has committed, before that `offset`, if one is given."""
    group = Consumer({"bootstrap.servers": address, "group.id": "g"})
    if offset is not None:
        group.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    (found,) = group.committed([TopicPartition(TOPIC, 0)], timeout=60)
    group.close()
    return found.offset


def commit_nothing(address: str) -> None:
    """A transaction: its coordinator is there, and knows the id."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "tx"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.commit_transaction(60)


def test_three_brokers_become_a_node_alone(cluster: VarveCluster) -> None:
    cluster.create_topic(TOPIC, SPREAD, {"min.insync.replicas": "2"})
    writer = ConfluentWriter(cluster.bootstrap, TOPIC, PARTITIONS)
    writer.start()
    writer.wait_for_acks(100)
    assert committed(cluster.bootstrap, 7) == 7
    commit_nothing(cluster.bootstrap)
    for node_id in (3, 2):
        take_out(cluster, node_id)
        writer.wait_for_acks(100)
    writer.finish()
    node, etcd = cluster.nodes[1], cluster.etcd
    assert isinstance(node, VarveNode)
    assert isinstance(etcd, EtcdServer)
    assert committed(node.address) == 7
    found = compare(TOPIC, writer.acknowledged, lambda *_: cluster.connected(1))
    assert found.problems == [], found.problems[:10]
    # Settings for three brokers ask for three replicas still.
    refused = varve("topics", "create", "later", "--bootstrap-server", node.address)
    assert "only 1 broker(s) are registered" in refused.stderr
    cluster.terminate(1)
    assert node.stop() == 0
    back = (f"--from=etcd://{etcd.endpoint}", f"--to=sqlite:{node.data_directory}")
    done = varve("metadata", "copy", *back)
    assert (done.returncode, done.stderr) == (0, "")
    for node_id, said in ((1, "start it with metadata.store=sqlite"), (2, "copied to node 1")):
        with pytest.raises(NodeEndedError, match=said):
            cluster.nodes[node_id].start()
        cluster.nodes[node_id].stop()
    etcd.kill()
    del node.properties["metadata.store"]
    start(node)
    alone = compare(TOPIC, writer.acknowledged, lambda *_: cluster.connected(1))
    assert (alone.records, alone.problems) == (found.records, [])
    assert committed(node.address) == 7
    commit_nothing(node.address)
