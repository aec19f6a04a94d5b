"""`varve tier restore` on directories; tests/system starts a broker on what it makes."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.tier import tier
from tests.fakes.kafka.library_clients import FakeCluster
from tests.unit.cli.commands import Shell
from tests.unit.cli.tier.test_tier_offline import Type, fill

FEW = ("--set", "rlmm.config.remote.log.metadata.topic.num.partitions=2")


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Any:
    return Shell(tier, FakeCluster().admin, capsys)


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """A bucket of two segments, and where to."""
    root = str(tmp_path / "store")
    fill(tmp_path, "--root", root)
    return ["restore", "--root", root, "--log-dirs", str(tmp_path / "new"), *FEW]


def claim(tmp_path: Path) -> Path:
    return tmp_path / "store" / "varve-cluster.json"


def test_an_empty_node_gets_what_the_bucket_holds(
    shell: Type, options: list[str], tmp_path: Path
) -> None:
    """And the bucket is claimed for it; a second run is refused."""
    done = shell(*options)
    assert done.status == 0
    assert done.err == ""
    assert done.cells[1][:4] == ["orders.eu-west-3", "1000", "1040", "2"]
    assert "restored 1 topic, 1 partition, 2 segments" in done.out
    assert (tmp_path / "new" / "orders.eu-west-3" / f"{1040:020d}.log").exists()
    assert (tmp_path / "new" / ".kafka_cleanshutdown").exists()
    assert "cluster.id=cluster-1" in (tmp_path / "new" / "meta.properties").read_text()
    assert json.loads(claim(tmp_path).read_bytes())["clusterId"] == "cluster-1"
    again = shell(*options)
    assert again.status == 1
    assert "is not empty" in again.err


def test_a_dry_run_changes_nothing(shell: Type, options: list[str], tmp_path: Path) -> None:
    """Neither here nor there."""
    done = shell(*options, "--dry-run", "--json").document
    assert (done["done"], done["clusterId"]) == (False, "cluster-1")
    (topic,) = done["topics"]
    assert topic["partitions"][0]["end"] == 1040
    assert not (tmp_path / "new").exists()
    assert not claim(tmp_path).exists()
    assert "nothing was done" in shell(*options, "--dry-run").out


def test_a_claimed_bucket_is_taken_only_when_told(
    shell: Type, options: list[str], tmp_path: Path
) -> None:
    """Two clusters would remove each other's segments."""
    claim(tmp_path).write_text('{"version": 1, "clusterId": "other"}')
    refused = shell(*options)
    assert refused.status == 1
    assert "claimed by cluster other, not cluster-1" in refused.err
    assert shell(*options, "--take-ownership").status == 0
    assert json.loads(claim(tmp_path).read_bytes())["clusterId"] == "cluster-1"


def test_the_cluster_may_be_a_new_one(shell: Type, options: list[str], tmp_path: Path) -> None:
    """When it is named."""
    assert shell(*options, "--set", "cluster.id=4L6g3nShT-eMCtK--X86sw").status == 0
    assert json.loads(claim(tmp_path).read_bytes())["clusterId"] == "4L6g3nShT-eMCtK--X86sw"


def test_options_that_make_no_sense_are_refused(
    shell: Type, options: list[str], tmp_path: Path
) -> None:
    """Before anything is done."""
    assert shell("restore").status == 2
    nothing = shell(*options, "--topic", "other")
    assert nothing.status == 1
    assert "nothing to restore" in nothing.err
    assert not list((tmp_path / "new").iterdir())


def test_problems_are_told(shell: Type, options: list[str], tmp_path: Path) -> None:
    """And the rest is restored; the status says that it is not all."""
    sorted((tmp_path / "store").glob("**/*.log"))[0].unlink()
    done = shell(*options, "--topic", "orders.eu-west", "--topic", "other")
    assert done.status == 1
    assert done.cells[1][:4] == ["orders.eu-west-3", "1020", "1040", "1"]
    assert "is missing, its manifest says" in done.err
    assert "topic other is not in the bucket" in done.err
