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
    # It takes in what is written behind the write.
    await cluster.until(lambda: partition.log.log_end_offset == 51)


async def test_killed_leader_loses_nothing_and_comes_back_as_a_follower(
    cluster: ClusterHarness,
) -> None:
    """The others elect another; what was acknowledged is there, on all three in the end."""
    await cluster.create_topic("orders", partitions=1, replicas=3, min_insync_replicas=2)
    first = await cluster.leading("orders")
    client = await cluster.client(first)
    for number in range(20):
        await client.produce("orders", b"first-%d" % number, acks=-1)
    await cluster.kill(first)
    await cluster.until(lambda: cluster.leader_of("orders") not in (first, -1))
    second = await cluster.leading("orders")
    client = await cluster.client(second)
    for number in range(20):
        await client.produce("orders", b"second-%d" % number, acks=-1)
    await cluster.restart(first)
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    records = await client.read_all("orders")
    assert [record.value for record in records] == [
        *(b"first-%d" % number for number in range(20)),
        *(b"second-%d" % number for number in range(20)),
    ]


async def test_deposed_leader_cuts_what_it_wrote_alone(cluster: ClusterHarness) -> None:
    """Records that no follower had fetched were never committed: another leader wrote others."""
    await cluster.create_topic("orders", partitions=1, replicas=3, min_insync_replicas=2)
    first = await cluster.leading("orders")
    client = await cluster.client(first)
    await client.produce("orders", b"shared", acks=-1)
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    partition = cluster.broker(first).replicas.replica_of("orders", 0)
    assert partition is not None
    # As if it had been cut off with them: they are in its log alone.
    epoch = partition.leader_epoch
    for broker in cluster.running:
        other = broker.replicas.replica_of("orders", 0)
        assert other is not None
        if other is not partition:
            cluster.fetchers(broker.settings.node_id).unfollow(other)
    for number in range(5):
        await client.produce("orders", b"alone-%d" % number, acks=1)
    assert partition.log.log_end_offset == 6
    await cluster.kill(first)
    await cluster.until(lambda: cluster.leader_of("orders") not in (first, -1))
    second = await cluster.leading("orders")
    client = await cluster.client(second)
    await client.produce("orders", b"other", acks=-1)
    await cluster.restart(first)
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    assert [record.value for record in await client.read_all("orders")] == [b"shared", b"other"]
    back = cluster.broker(first).replicas.replica_of("orders", 0)
    assert back is not None
    assert back.leader_epoch > epoch
    assert cluster.fetchers(first).stats.truncations >= 1
