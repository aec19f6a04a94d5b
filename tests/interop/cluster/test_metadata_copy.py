"""A single node becomes the first broker of a cluster, with all it had, and a node alone again.

`varve metadata copy` on real processes and a real etcd; what clients see before and after is alike.
"""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewTopic

from bench.etcd_server import EtcdServer
from bench.node import VarveNode
from tests.harness.etcd import etcd_or_skip

PARTITIONS = 3
RECORDS = 300
GROUP = "readers"
ALONE = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}
READY_S = 60.0


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    (tmp_path / "etcd").mkdir()
    server = EtcdServer(etcd_or_skip(), tmp_path / "etcd")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[VarveNode]:
    node = VarveNode(tmp_path / "node", ALONE)
    yield node
    node.kill()


def varve(*words: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "varve"
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=120)


def copy(node: VarveNode, etcd: EtcdServer) -> subprocess.CompletedProcess[str]:
    return varve(
        "metadata",
        "copy",
        f"--from=sqlite:{node.data_directory}",
        f"--to=etcd://{etcd.endpoint}",
    )


def fill(address: str) -> None:
    """A topic with settings, records, committed offsets, and one transaction each way."""
    admin = AdminClient({"bootstrap.servers": address})
    topic = NewTopic("orders", PARTITIONS, 1, config={"retention.ms": "123456789"})
    admin.create_topics([topic])["orders"].result(60)
    plain = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for number in range(RECORDS):
        plain.produce("orders", b"%d" % number, partition=number % PARTITIONS)
    assert plain.flush(60) == 0
    for way in ("commit", "abort"):
        sender = Producer({"bootstrap.servers": address, "transactional.id": "tx"})
        sender.init_transactions(60)
        sender.begin_transaction()
        sender.produce("orders", way.encode(), partition=0)
        sender.flush(60)
        getattr(sender, f"{way}_transaction")(60)
    reader = consumer(address)
    offsets = [TopicPartition("orders", index, 10 * (index + 1)) for index in range(PARTITIONS)]
    reader.commit(offsets=offsets, asynchronous=False)
    reader.close()


def consumer(address: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )


def seen_by_clients(address: str) -> Mapping[str, Any]:
    """Committed offsets, records, settings and partitions, as clients see them."""
    reader = consumer(address)
    places = [TopicPartition("orders", index) for index in range(PARTITIONS)]
    committed = [place.offset for place in reader.committed(places, timeout=60)]
    reader.assign([TopicPartition("orders", index, 0) for index in range(PARTITIONS)])
    values: list[tuple[int | None, int | None, bytes | None]] = []
    deadline = time.monotonic() + READY_S
    while len(values) < RECORDS + 1:
        assert time.monotonic() < deadline, f"{len(values)} records"
        messages = reader.consume(500, timeout=0.5)
        for message in messages:
            assert message.error() is None
            values.append((message.partition(), message.offset(), message.value()))
    reader.close()
    admin = AdminClient({"bootstrap.servers": address})
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    settings = admin.describe_configs([resource])[resource].result(60)
    topics = admin.list_topics(timeout=60).topics
    return {
        "committed": committed,
        "values": sorted(values, key=str),
        "retention": settings["retention.ms"].value,
        "topics": {name: len(topic.partitions) for name, topic in topics.items()},
        "replicas": {tuple(p.replicas) for t in topics.values() for p in t.partitions.values()},
        "cluster": admin.list_topics(timeout=60).cluster_id,
    }


def write_more(address: str) -> None:
    """A transaction of the same id as before, and a record: nothing is fenced or refused."""
    sender = Producer({"bootstrap.servers": address, "transactional.id": "tx", "acks": "all"})
    sender.init_transactions(60)
    sender.begin_transaction()
    sender.produce("orders", b"later", partition=1)
    sender.flush(60)
    sender.abort_transaction(60)


def start_on(node: VarveNode, etcd: EtcdServer) -> None:
    node.properties["metadata.store"] = f"etcd://{etcd.endpoint}"
    start(node)


def start(node: VarveNode) -> None:
    """Start it, and wait until it is let in and its coordinators have loaded."""
    node.start(READY_S)
    deadline = time.monotonic() + READY_S
    while not is_ready(node):
        assert time.monotonic() < deadline, node.log_tail()
        time.sleep(0.05)


def is_ready(node: VarveNode) -> bool:
    try:
        with urllib.request.urlopen(f"http://{node.admin_address}/readyz", timeout=5) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False


def refused_start(node: VarveNode) -> str:
    """The last line of a start that must end with status 1."""
    node.launch()
    process = node._process
    assert process is not None
    assert process.wait(60) == 1
    node.stop()
    return node.log_tail(1)


def test_a_single_node_becomes_the_first_broker_and_comes_back(
    node: VarveNode, etcd: EtcdServer
) -> None:
    """Topics, settings, offsets, transactions: clients see the same on either store."""
    start(node)
    fill(node.address)
    before = seen_by_clients(node.address)
    running = copy(node, etcd)
    assert running.returncode == 1
    assert "another process" in running.stderr
    assert node.stop() == 0
    first = copy(node, etcd)
    assert (first.returncode, first.stderr) == (0, "")
    assert "is the first broker of a cluster now" in first.stdout
    again = copy(node, etcd)
    assert again.returncode == 0
    assert "all was copied before" in again.stdout
    line = refused_start(node)
    assert "varve metadata copy --from" in line
    start_on(node, etcd)
    assert seen_by_clients(node.address) == before
    write_more(node.address)
    assert node.stop() == 0
    back = varve(
        "metadata",
        "copy",
        f"--from=etcd://{etcd.endpoint}",
        f"--to=sqlite:{node.data_directory}",
    )
    assert (back.returncode, back.stderr) == (0, "")
    line = refused_start(node)
    assert "was copied to node 1" in line or "is the metadata store of a node" in line
    del node.properties["metadata.store"]
    start(node)
    assert seen_by_clients(node.address) == before
    write_more(node.address)
    assert node.stop() == 0


def test_a_store_of_another_cluster_is_refused(
    node: VarveNode, etcd: EtcdServer, tmp_path: Path
) -> None:
    """Nothing of it is changed, and the node still starts alone."""
    other = VarveNode(tmp_path / "other", {**ALONE, "node.id": "7"})
    try:
        start_on(other, etcd)
        assert other.stop() == 0
    finally:
        other.kill()
    start(node)
    assert node.stop() == 0
    refused = copy(node, etcd)
    assert refused.returncode == 1
    assert "has a cluster's metadata under /varve/" in refused.stderr
    start(node)
    assert node.stop() == 0
