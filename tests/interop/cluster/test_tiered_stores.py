"""The metadata store is lost, or copied, while segments are in remote storage: none is removed.

The bucket is a directory. `varve cluster recover-metadata` and `varve metadata copy` on real
processes; what was copied is read from offset 0 afterwards.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cluster.kinds import VarveCluster
from bench.node import VarveNode
from tests.harness.etcd import etcd_or_skip
from tests.interop.cluster.test_metadata_copy import copy, etcd, start, start_on
from tests.interop.cluster.test_metadata_recovery import kill_all, recover, server, start_all
from tests.interop.cluster.tiered import (
    TIERED_BROKER,
    collect,
    create_tiered,
    files,
    is_copied,
    numbers,
    set_again,
    wait_until,
    write,
)

__all__ = ["etcd"]

RECORDS = 20


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    return tmp_path / "bucket"


@pytest.fixture
def cluster(tmp_path: Path, bucket: Path) -> Iterator[VarveCluster]:
    etcd_or_skip()
    cluster = VarveCluster(tmp_path, {**TIERED_BROKER, "rsm.config.storage.root": str(bucket)})
    cluster.start()
    yield cluster
    cluster.close()


@pytest.fixture
def node(tmp_path: Path, bucket: Path) -> Iterator[VarveNode]:
    node = VarveNode(tmp_path / "node", {**TIERED_BROKER, "rsm.config.storage.root": str(bucket)})
    yield node
    node.kill()


def test_a_recovered_cluster_has_its_bucket_as_before(cluster: VarveCluster, bucket: Path) -> None:
    """The bucket is its own; nothing of it is removed, missing or unknown, and copying goes on."""
    nodes = [node for node in cluster.nodes.values() if isinstance(node, VarveNode)]
    create_tiered(cluster.bootstrap, "t", 3)
    cluster.wait_until_in_sync(["t"])
    write(cluster.bootstrap, "t", 0, RECORDS)
    wait_until("t is copied", nodes, lambda: any(is_copied(one, "t", RECORDS) for one in nodes))
    copied = files(bucket)
    kill_all(cluster)
    store = server(cluster)
    store.kill()
    shutil.rmtree(store.data)
    store.start()
    done = recover(cluster, "--execute")
    assert (done.returncode, done.stderr) == (0, "")
    start_all(cluster)
    cluster.wait_until_in_sync()
    assert numbers(cluster.bootstrap, "t", RECORDS) == list(range(RECORDS))
    report = collect(nodes)
    assert (report["isOurs"], report["lost"]) == (True, [])
    assert (report["missingSegments"], report["unknownCopies"]) == (0, 0)
    assert files(bucket) >= copied
    assert set_again(cluster.bootstrap, "t")["remote.storage.enable"] == "true"
    write(cluster.bootstrap, "t", RECORDS, RECORDS)
    wait_until("more is", nodes, lambda: any(is_copied(one, "t", 2 * RECORDS) for one in nodes))
    assert numbers(cluster.bootstrap, "t", 2 * RECORDS) == list(range(2 * RECORDS))
    assert files(bucket) > copied


def test_a_copied_store_keeps_the_bucket_and_a_clone_does_not_get_it(
    node: VarveNode, etcd: object, bucket: Path, tmp_path: Path
) -> None:
    """The node on etcd goes on with its bucket; a clone of its directory removes nothing there."""
    start(node)
    create_tiered(node.address, "t", 1)
    write(node.address, "t", 0, RECORDS)
    wait_until("t is copied", [node], lambda: is_copied(node, "t", RECORDS))
    assert node.stop() == 0
    copied = files(bucket)
    clone = VarveNode(tmp_path / "clone", node.properties)
    shutil.copytree(node.data_directory, clone.data_directory)
    assert copy(node, etcd).returncode == 0  # type: ignore[arg-type]  # the fixture's server
    start_on(node, etcd)  # type: ignore[arg-type]  # likewise
    assert numbers(node.address, "t", RECORDS) == list(range(RECORDS))
    report = collect([node])
    assert (report["isOurs"], report["missingSegments"], report["unknownCopies"]) == (True, 0, 0)
    assert files(bucket) >= copied
    write(node.address, "t", RECORDS, RECORDS)
    wait_until("more is copied", [node], lambda: is_copied(node, "t", 2 * RECORDS))
    kept = files(bucket)
    try:
        start(clone)
        assert numbers(clone.address, "t", RECORDS) == list(range(RECORDS))
        refused = collect([clone])
        assert (refused["isOurs"], refused["removedObjects"]) == (False, 0)
        assert "tier-not-ours" in clone.log_tail(40)
    finally:
        clone.kill()
    assert files(bucket) >= kept
    assert numbers(node.address, "t", 2 * RECORDS) == list(range(2 * RECORDS))
