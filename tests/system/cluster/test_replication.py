"""Followers hold what their leaders hold, byte for byte, whatever has happened to them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from tests.harness.brokers import ClusterHarness


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path) as cluster:
        yield cluster


@pytest.mark.quick
async def test_followers_hold_what_the_leader_holds(cluster: ClusterHarness) -> None:
    """Every record, at its offset; acks=all is answered when they do."""
    await cluster.create_topic("orders", partitions=3, replicas=3)
    for index in range(3):
        client = await cluster.client(await cluster.leading("orders", index))
        for number in range(20):
            answer = await client.try_produce(
                "orders", [(None, b"%d" % number)], partition=index, acks=-1
            )
            assert answer.error_code == ErrorCode.NONE
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    for broker in cluster.running:
        for index in range(3):
            partition = broker.replicas.replica_of("orders", index)
            assert partition is not None
            assert partition.log.log_end_offset == 20


async def test_killed_follower_catches_up(cluster: ClusterHarness) -> None:
    """With what was written while it was away."""
    await cluster.create_topic("orders", partitions=1, replicas=3)
    leader = await cluster.leading("orders")
    client = await cluster.client(leader)
    await client.produce("orders", b"before", acks=-1)
    follower = next(node_id for node_id in cluster.nodes if node_id != leader)
    await cluster.kill(follower)
    for number in range(50):
        await client.produce("orders", b"%d" % number * 1000, acks=1)
    await cluster.restart(follower)
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    partition = cluster.broker(follower).replicas.replica_of("orders", 0)
    assert partition is not None
    assert partition.log.log_end_offset == 51
