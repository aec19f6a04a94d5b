"""A closed segment's file is cut while its broker is down: the other replicas have the records."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from storage.environment.alerts import AlertKind
from tests.harness.brokers import ClusterHarness

COUNT = 14
VALUE = b"v" * 100_000
SEGMENT_BYTES = 1 << 20


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path) as cluster:
        yield cluster


async def cut_on_leader(
    cluster: ClusterHarness, replicas: int, *, within_a_batch: bool = True
) -> int:
    """A topic of two segments; its leader's first is cut within, or before, its fifth batch.

    Returns:
        Who that is.
    """
    await cluster.create_topic(
        "orders", replicas=replicas, min_insync_replicas=1, segment_bytes=SEGMENT_BYTES
    )
    leader = await cluster.leading("orders")
    client = await cluster.client(leader)
    for number in range(COUNT):
        answer = await client.try_produce("orders", [(None, b"%d" % number + VALUE)], acks=-1)
        assert answer.error_code == ErrorCode.NONE
    await cluster.stop(leader)
    (log_dir,) = cluster.nodes[leader].log_dirs
    path = log_dir / "orders-0" / f"{0:020}.log"
    with path.open("r+b") as file:
        end = 0
        for _ in range(4):
            file.seek(end + 8)
            end += 12 + int.from_bytes(file.read(4), "big")
        file.truncate(end + 50_000 if within_a_batch else end)
    return leader


def alerts(cluster: ClusterHarness, node_id: int) -> list[str]:
    return [
        one.subject
        for one in cluster.broker(node_id).log_manager.alerts.all()
        if one.kind is AlertKind.SEGMENT_CUT
    ]


async def read_until(cluster: ClusterHarness, node_id: int, code: ErrorCode) -> None:
    """Read at offset 5, again and again, until that is the answer."""
    client = await cluster.client(node_id)
    while True:
        if (await client.fetch("orders", 5)).error == code:
            return
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("within_a_batch", [True, False])
async def test_a_leader_gets_back_what_its_segment_lost(
    cluster: ClusterHarness, within_a_batch: bool
) -> None:
    """As soon as another replica is there; until then it is refused, never left out."""
    leader = await cut_on_leader(cluster, replicas=2, within_a_batch=within_a_batch)
    other = await cluster.leading("orders")
    await cluster.restart(leader)
    controller = cluster.broker(other).controller
    assert controller is not None
    await cluster.until(lambda: leader in controller.image.topics["orders"].partitions[0].isr)
    await cluster.stop(other)
    await cluster.until(lambda: cluster.leads(leader, "orders"))
    await read_until(cluster, leader, ErrorCode.KAFKA_STORAGE_ERROR)
    assert alerts(cluster, leader) == ["orders-0"]
    await cluster.restart(other)
    await read_until(cluster, leader, ErrorCode.NONE)
    assert cluster.leader_of("orders") == leader
    assert alerts(cluster, leader) == []
    client = await cluster.client(leader)
    values = [record.value for record in await client.read_all("orders")]
    assert values == [b"%d" % number + VALUE for number in range(COUNT)]
    assert cluster.replicas_equal("orders", among=[leader, other])


async def test_a_follower_gets_it_from_the_leader(cluster: ClusterHarness) -> None:
    """When a consumer reads at it."""
    follower = await cut_on_leader(cluster, replicas=3)
    await cluster.restart(follower)
    leader = await cluster.leading("orders")
    assert leader != follower
    await read_until(cluster, follower, ErrorCode.NONE)
    assert cluster.replicas_equal("orders")


async def test_an_only_replica_keeps_what_is_left(cluster: ClusterHarness) -> None:
    leader = await cut_on_leader(cluster, replicas=1)
    before = cluster.log_bytes(leader, "orders")
    await cluster.restart(leader)
    await cluster.until(lambda: cluster.leads(leader, "orders"))
    await read_until(cluster, leader, ErrorCode.KAFKA_STORAGE_ERROR)
    client = await cluster.client(leader)
    assert len((await client.fetch("orders", 0)).records) >= 1
    assert (await client.fetch("orders", COUNT - 1)).error == ErrorCode.NONE
    assert cluster.log_bytes(leader, "orders") == before
    assert alerts(cluster, leader) == ["orders-0"]
