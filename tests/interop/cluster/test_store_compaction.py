"""A broker that was cut off from etcd while its history was compacted reads all of it, once.

Afterwards its image is that of the others: the metric says so.
"""

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.cluster.kinds import VarveCluster
from bench.cluster.network import STORE
from bench.etcd_server import EtcdServer
from bench.node import VarveNode
from broker.controller.store.etcd.watcher import SILENCE_MS
from tests.harness.etcd import etcd_or_skip

PROPERTIES = {"broker.session.timeout.ms": "2000"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[VarveCluster]:
    etcd_or_skip()
    cluster = VarveCluster(tmp_path, PROPERTIES, links=True)
    cluster.start()
    yield cluster
    cluster.close()


def metric(cluster: VarveCluster, node_id: int, name: str) -> float:
    node = cluster.nodes[node_id]
    assert isinstance(node, VarveNode)
    with urllib.request.urlopen(f"http://{node.admin_address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def images(cluster: VarveCluster) -> set[tuple[float, float]]:
    return {
        (
            metric(cluster, node_id, "varve_metadata_image_revision"),
            metric(cluster, node_id, "varve_metadata_image_hash"),
        )
        for node_id in cluster.nodes
    }


def compact(cluster: VarveCluster) -> None:
    """All of etcd's history, by its JSON gateway, which only tests use."""
    assert isinstance(cluster.etcd, EtcdServer)
    url = f"http://{cluster.etcd.endpoint}/v3/kv/"
    with urllib.request.urlopen(f"{url}range", b'{"key": "AA=="}', timeout=10) as answer:
        revision = json.loads(answer.read())["header"]["revision"]
    body = json.dumps({"revision": revision, "physical": True}).encode()
    with urllib.request.urlopen(f"{url}compaction", body, timeout=10) as answer:
        answer.read()


def test_who_was_behind_the_compaction_lists_again(cluster: VarveCluster) -> None:
    # Not the controller, which clients would go on asking until another is elected.
    behind = next(node_id for node_id in cluster.nodes if node_id != cluster.controller_id())
    others = [node_id for node_id in cluster.nodes if node_id != behind]
    cluster.linked.cut(behind, STORE)
    # Its watch is given up: else what it has missed is on its way already, and only late.
    time.sleep(1.5 * SILENCE_MS / 1000)
    addresses = ",".join(cluster.nodes[node_id].address for node_id in others)
    admin = AdminClient({"bootstrap.servers": addresses})
    for number in range(20):
        create(admin, f"t{number}", others)
    compact(cluster)
    create(admin, "last", others)
    cluster.heal()
    cluster.wait_for_all()
    log = cluster.nodes[behind].log_path
    cluster.wait_until("it lists again", lambda: "changes are compacted" in log.read_text())
    names = {f"t{number}" for number in range(20)} | {"last"}

    def shows_all() -> bool:
        shown = cluster.state_at(cluster.nodes[behind]).partitions
        return {partition.topic for partition in shown} >= names

    cluster.wait_until("it shows all topics", shows_all)
    cluster.wait_until("images are equal", lambda: len(images(cluster)) == 1)


def create(admin: AdminClient, name: str, replicas: list[int]) -> None:
    topic = NewTopic(name, 1, replica_assignment=[replicas])
    admin.create_topics([topic], request_timeout=20)[name].result(30)
