"""Packets that are really lost, between servers in network namespaces of their own.

Proxies, which other tests have, end connections on both sides; here TCP itself sends again and
gives up. Every record that was acknowledged is read afterwards, once and in order, from replicas
that are equal (`bench.failover` judges that, and fails).
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cluster.failover import FAULTS
from bench.cluster.namespaces import why_not
from bench.node import REPOSITORY
from tests.harness.etcd import etcd_or_skip

CUT = (
    "leader unplugged",
    "nothing leaves leader",
    "nothing reaches leader",
    "leader cut off from store",
    "leader, follower cut off",
)
LAG_TIME_MAX_S = 30.0
"""`replica.lag.time.max.ms`: so long records waited for a follower that hears nothing."""


def test_every_cut_is_lived_through(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    etcd_or_skip()
    numbers = [n for n, fault in enumerate(FAULTS) if fault.name in CUT]
    assert len(numbers) == len(CUT)
    output = tmp_path / "gaps.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.failover", "--namespaces", "--brokers", "varve"),
            *("--faults", ",".join(map(str, numbers)), "--count", "1", "--etcd-members", "1"),
            *("--output", str(output), "--directory", str(tmp_path)),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    gaps = json.loads(output.read_text())["gaps_s"]["varve"]
    assert sorted(gaps) == sorted(CUT)
    assert all(gap < LAG_TIME_MAX_S for (gap,) in gaps.values()), gaps
