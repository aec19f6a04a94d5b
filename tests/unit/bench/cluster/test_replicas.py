"""Replicas are equal batch by batch, wherever their segments end."""

from pathlib import Path

import pytest

from bench import wire
from bench.cluster.cluster import Cluster
from bench.cluster.replicas import batches, difference
from bench.node import OwnedNode


def batch(offset: int, epoch: int, value: bytes = b"x") -> bytes:
    """A batch of one record, as a leader of that epoch has it in its log."""
    made = bytearray(wire.record_batch([value], timestamp_ms=1))
    made[:8] = offset.to_bytes(8, "big")
    made[12:16] = epoch.to_bytes(4, "big")
    return bytes(made)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster({n: OwnedNode(tmp_path / f"{n}") for n in (1, 2)})


def keep(cluster: Cluster, node_id: int, *segments: list[bytes]) -> None:
    """Write a replica of t-0, a file for each list of batches."""
    directory = cluster.nodes[node_id].data_directory / "t-0"
    directory.mkdir(parents=True)
    for number, segment in enumerate(segments):
        (directory / f"{number:020}.log").write_bytes(b"".join(segment))


def test_segments_may_end_elsewhere(cluster: Cluster) -> None:
    keep(cluster, 1, [batch(0, 0), batch(1, 0)], [batch(2, 1)])
    keep(cluster, 2, [batch(0, 0)], [batch(1, 0), batch(2, 1)])
    assert difference(cluster, "t", 0) is None


def test_records_that_one_has_deleted_are_no_difference(cluster: Cluster) -> None:
    keep(cluster, 1, [batch(0, 0), batch(1, 0)])
    keep(cluster, 2, [batch(1, 0)])
    assert difference(cluster, "t", 0) is None


def test_a_missing_end_is_found(cluster: Cluster) -> None:
    keep(cluster, 1, [batch(0, 0), batch(1, 0)])
    keep(cluster, 2, [batch(0, 0)])
    found = difference(cluster, "t", 0)
    assert found is not None
    assert found.startswith("t-0 differs at offset 1: 1: ")
    assert found.endswith("2: nothing")


def test_another_epoch_or_other_bytes_are_found(cluster: Cluster) -> None:
    keep(cluster, 1, [batch(0, 0)])
    keep(cluster, 2, [batch(0, 3)])
    found = difference(cluster, "t", 0)
    assert found is not None
    assert "of epoch 0, 2: " in found
    assert found.endswith("of epoch 3")


def test_a_torn_end_is_left_out() -> None:
    """Where a broker is still writing."""
    whole = batch(0, 0)
    assert list(batches(whole + batch(1, 0)[:-1])) == [0]
    assert list(batches(whole + bytes(100))) == [0]
