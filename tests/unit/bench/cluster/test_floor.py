"""The floor that rows are compared with moves the bytes that they do."""

from pathlib import Path

from bench.cluster.floor import replication_floor


def test_batches_go_through_a_leader_to_two_followers(tmp_path: Path) -> None:
    """And nothing of them stays."""
    floor = replication_floor(tmp_path, batches=8)
    assert floor.mb_per_s > 0
    assert floor.cpu_s_per_gb > 0
    assert not list(tmp_path.iterdir())
