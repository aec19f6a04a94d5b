"""Two releases side by side: broker by broker from one to the next, then the level is raised.

The older release is this one without `varve.version`, which is how it registers and what it reads;
`VARVE_OLDER_SOURCE` names a folder with the source of a real one.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typing_extensions import override

from bench.cluster.kinds import VarveCluster
from bench.node import VarveNode
from tests.harness.etcd import etcd_or_skip

SPREAD = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
OLDER_SOURCE = os.environ.get("VARVE_OLDER_SOURCE", "")
WITHOUT_LEVEL = """
import sys
from types import MappingProxyType
from broker.controller.images import features
for name in ("SUPPORTED", "INITIAL"):
    known = {k: v for k, v in getattr(features, name).items() if k != features.VARVE_VERSION}
    setattr(features, name, MappingProxyType(known))
from cli.main import main
sys.exit(main(sys.argv[1:]))
"""
PROPERTIES = {"offsets.topic.num.partitions": "2", "broker.session.timeout.ms": "2000"}


class ReleasedNode(VarveNode):
    """`varve serve` of the older release until `is_new`."""

    is_new = False

    @override
    def command(self) -> list[str]:
        program, *words = super().command()
        if self.is_new:
            return [program, *words]
        if OLDER_SOURCE:
            return ["env", f"--chdir={OLDER_SOURCE}", sys.executable, "-m", "cli.main", *words]
        return [sys.executable, "-c", WITHOUT_LEVEL, *words]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[VarveCluster]:
    etcd_or_skip()
    cluster = VarveCluster(tmp_path, PROPERTIES)
    for node_id, node in cluster.nodes.items():
        released = ReleasedNode(tmp_path / str(node_id), node.properties)
        released.name = node.name
        cluster.nodes[node_id] = released
    cluster.start()
    yield cluster
    cluster.close()


def upgrade(cluster: VarveCluster) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).parent / "varve")
    command = [program, "features", "--bootstrap-server", cluster.bootstrap]
    return subprocess.run(
        [*command, "upgrade", "varve.version=1"], capture_output=True, text=True, timeout=120
    )


def write(cluster: VarveCluster, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(count):
        producer.produce("t", b"%d" % number, partition=number % len(SPREAD))
    assert producer.flush(60) == 0


def test_broker_by_broker_and_then_the_level(cluster: VarveCluster) -> None:
    """At each step records are written to all partitions; the level waits for the last broker."""
    cluster.create_topic("t", SPREAD)
    write(cluster, 300)
    for node_id, node in cluster.nodes.items():
        early = upgrade(cluster) if node_id > 1 else None
        assert early is None or early.returncode == 1, early
        assert isinstance(node, ReleasedNode)
        assert node.stop() == 0
        node.is_new = True
        node.launch()
        cluster.wait_for_all()
        cluster.wait_until_in_sync(["t"])
        write(cluster, 300)
    done = upgrade(cluster)
    assert done.returncode == 0, done.stderr
    write(cluster, 300)
    late = cluster.nodes[3]
    assert isinstance(late, ReleasedNode)
    assert late.stop() == 0
    late.is_new = False
    late.launch()
    process = late._process  # its exit code, which `stop` would make SIGTERM's
    assert process is not None
    assert process.wait(60) == 1
    late.stop()
    assert "feature varve.version at level 1; this release supports 0 to 0" in late.log_tail(1)
    late.is_new = True
    late.launch()
    cluster.wait_for_all()
    cluster.wait_until_in_sync(["t"])
