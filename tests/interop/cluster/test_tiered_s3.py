"""Three brokers, etcd, and an S3 server: segments are copied, expire, and outlive their leaders.

The server is one that `.ci/s3-servers` builds; without it the test is skipped, and says so.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.cluster.kinds import VarveCluster
from bench.node import VarveNode
from bench.s3_server import broker_settings, is_built, running_s3_server
from tests.fakes.s3.moto_server import make_bucket, s3_settings
from tests.harness.etcd import etcd_or_skip
from tests.interop.cluster.tiered import (
    TIERED_BROKER,
    collect,
    create_tiered,
    files,
    is_copied,
    numbers,
    row,
    wait_until,
    write,
)

SERVER = "versitygw"
KILLS = 2
SENT = 20
KEPT_BYTES = 6 << 20


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The server's address, and the directory where objects lie."""
    if not is_built(SERVER):
        pytest.skip(f"{SERVER} is not built: .ci/s3-servers")
    kept = tmp_path / "s3"
    with running_s3_server(SERVER, kept) as server:
        asyncio.run(make_bucket(s3_settings(server.url, "tier")))
        yield server.url, kept


@pytest.fixture
def cluster(tmp_path: Path, bucket: tuple[str, Path]) -> Iterator[VarveCluster]:
    etcd_or_skip()
    cluster = VarveCluster(tmp_path, {**TIERED_BROKER, **broker_settings(bucket[0], "tier")})
    cluster.start()
    yield cluster
    cluster.close()


def varves(cluster: VarveCluster) -> list[VarveNode]:
    return [node for node in cluster.nodes.values() if isinstance(node, VarveNode)]


def wait_until_copied(cluster: VarveCluster, topic: str, count: int) -> None:
    nodes = varves(cluster)
    wait_until(f"{topic} is copied", nodes, lambda: any(is_copied(n, topic, count) for n in nodes))


def test_leaders_die_and_the_bucket_is_what_the_metadata_says(
    cluster: VarveCluster, bucket: tuple[str, Path]
) -> None:
    """Nothing orphaned, nothing missing, every record from 0; then all but the newest expires."""
    create_tiered(cluster.bootstrap, "t", 3)
    create_tiered(cluster.bootstrap, "short", 3, **{"retention.bytes": str(KEPT_BYTES)})
    cluster.wait_until_in_sync(["t", "short"])
    sent = 0
    for _ in range(KILLS):
        for topic in ("t", "short"):
            write(cluster.bootstrap, topic, sent, SENT)
        leader = cluster.leader_of("t")
        cluster.kill(leader)
        for topic in ("t", "short"):
            write(cluster.bootstrap, topic, sent + SENT, SENT)
        sent += 2 * SENT
        cluster.restart(leader)
        cluster.wait_for_all()
        cluster.wait_until_in_sync(["t", "short"])
        wait_until_copied(cluster, "t", sent)
        wait_until_copied(cluster, "short", sent)
        assert numbers(cluster.bootstrap, "t", sent) == list(range(sent))
    rows = {
        topic: next(shown for node in varves(cluster) if (shown := row(node, topic)))
        for topic in ("t", "short")
    }
    start = rows["short"]["logStart"]
    assert 0 < start < rows["short"]["localLogStart"]
    assert numbers(cluster.bootstrap, "short", sent - start, start) == list(range(start, sent))
    wait_until(
        "bucket and metadata agree",
        varves(cluster),
        lambda: is_agreed(collect(varves(cluster)), cluster, bucket[1]),
    )


def is_agreed(report: dict[str, Any], cluster: VarveCluster, bucket: Path) -> bool:
    """Of a pass of garbage collection: nothing is missing or unknown, and nothing else is there."""
    shown = [row(node, topic) for node in varves(cluster) for topic in ("t", "short")]
    segments = sum(one["remoteSegments"] for one in shown if one is not None)
    return (
        report["isOurs"]
        and not report["missingSegments"]
        and not report["unknownCopies"]
        and not report["hiddenObjects"]
        and len([one for one in shown if one is not None]) == len({"t", "short"})
        and len(files(bucket)) == 3 * segments
    )
