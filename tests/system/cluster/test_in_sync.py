"""In-sync replicas: killed ones leave, returned ones join, nothing acknowledged is lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from tests.fakes.network.client import produce_request
from tests.harness.brokers import ClusterHarness
from tests.system.cluster.test_failover import is_under_min_isr


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path) as cluster:
        yield cluster


def isr(cluster: ClusterHarness, topic: str) -> set[int]:
    """As every broker's image has it; empty while they differ."""
    found: list[tuple[int, ...]] = []
    for broker in cluster.running:
        assert broker.controller is not None
        partition = broker.controller.image.partition(topic, 0)
        found.append(() if partition is None else tuple(sorted(partition.isr)))
    return set(found[0]) if len(set(found)) == 1 else set()


async def write(cluster: ClusterHarness, leader: int, first: int, count: int) -> None:
    # The leader takes the ISR over after the image.
    await cluster.until(lambda: not is_under_min_isr(cluster, leader, "orders"))
    client = await cluster.client(leader)
    for number in range(first, first + count):
        answer = await client.try_produce("orders", [(None, b"%d" % number)])
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        assert answer.base_offset == number


async def test_a_killed_leader_returns_as_a_follower_in_sync(cluster: ClusterHarness) -> None:
    """acks=all goes on with those that are left; afterwards all replicas are equal."""
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=2)
    first = await cluster.leading("orders")
    await write(cluster, first, 0, 20)
    await cluster.kill(first)
    await cluster.until(lambda: cluster.leader_of("orders") not in (first, -1))
    second = await cluster.leading("orders")
    await cluster.until(lambda: isr(cluster, "orders") == {1, 2, 3} - {first})
    await write(cluster, second, 20, 20)
    await cluster.restart(first)
    await cluster.until(lambda: isr(cluster, "orders") == {1, 2, 3})
    await write(cluster, await cluster.leading("orders"), 40, 20)
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    client = await cluster.client(await cluster.leading("orders"))
    records = await client.read_all("orders")
    assert [record.value for record in records] == [b"%d" % number for number in range(60)]


async def test_below_min_insync_replicas_acks_all_is_refused(cluster: ClusterHarness) -> None:
    """acks=1 is not; consumers see nothing that could be lost."""
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=2)
    leader = await cluster.leading("orders")
    await write(cluster, leader, 0, 5)
    others = [node_id for node_id in cluster.nodes if node_id != leader]
    client = await cluster.client(leader)
    # Sent while all are in sync, and read by the leader when the others are dead.
    data = build_batch([(None, b"5", (), 1_700_000_000_000)])
    waiting = client.send(produce_request("orders", 0, data, timeout_ms=50_000))
    await asyncio.gather(*(cluster.kill(node_id) for node_id in others))
    (appended,) = (await waiting).responses[0].partition_responses
    assert appended.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    refused = await client.try_produce("orders", [(None, b"x")])
    assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    alone = await client.try_produce("orders", [(None, b"6")], acks=1)
    assert (alone.error_code, alone.base_offset) == (ErrorCode.NONE, 6)
    assert [record.value for record in await client.read_all("orders")] == [
        b"%d" % number for number in range(5)
    ]
    for node_id in others:
        await cluster.restart(node_id)
    await cluster.until(lambda: isr(cluster, "orders") == {1, 2, 3})
    await write(cluster, await cluster.leading("orders"), 7, 1)
    client = await cluster.client(await cluster.leading("orders"))
    assert len(await client.read_all("orders")) == 8
