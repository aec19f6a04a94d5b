"""Three brokers in one process: killed without a clean stop, they come back with what they had."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.controller.store.metadata_store import Put
from tests.harness.brokers import ClusterHarness


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path) as cluster:
        yield cluster


async def test_brokers_share_topics_and_serve_their_partitions(cluster: ClusterHarness) -> None:
    await cluster.create_topic("orders", partitions=3, replicas=1)
    leaders = {await cluster.leading("orders", index) for index in range(3)}
    assert leaders == {1, 2, 3}
    for index in range(3):
        client = await cluster.client(cluster.leader_of("orders", index))
        assert await client.produce("orders", b"a", b"b", partition=index) == 0
        records = await client.read_all("orders", partition=index)
        assert [record.value for record in records] == [b"a", b"b"]


async def test_a_killed_broker_comes_back_with_what_it_had(cluster: ClusterHarness) -> None:
    """Its lease ends by itself, its directory is not marked clean, its records are there."""
    await cluster.create_topic("orders", partitions=3, replicas=1)
    leader = await cluster.leading("orders")
    client = await cluster.client(leader)
    await client.produce("orders", b"kept")
    before = cluster.log_bytes(leader, "orders")
    await cluster.kill(leader)
    assert cluster.log_bytes(leader, "orders") == before
    await cluster.until(lambda: cluster.is_out(leader))
    again = await cluster.restart(leader)
    await cluster.until(lambda: again.ready and cluster.let_in() == {1, 2, 3})
    assert await cluster.leading("orders") == leader
    client = await cluster.client(leader)
    assert [record.value for record in await client.read_all("orders")] == [b"kept"]


async def test_the_store_goes_on_when_a_broker_dies_that_has_just_written(
    cluster: ClusterHarness,
) -> None:
    """Its write is in the queue of all, and the store's writer was about to begin."""
    node = cluster.nodes[2]
    written = node.begin(node.store.txn(then=[Put("of-2", b"v")]))
    await asyncio.sleep(0)
    await cluster.kill(2)
    assert written.cancelled()
    await asyncio.wait_for(cluster.store.txn(then=[Put("of-another", b"v")]), 30)
    assert {"of-2", "of-another"} <= set(cluster.store.disk.items)


async def test_a_broker_cut_from_the_store_loses_its_lease_and_is_back(
    cluster: ClusterHarness,
) -> None:
    cluster.cut_from_store(2)
    await cluster.until(lambda: "live/2" not in cluster.store.disk.items)
    cluster.heal()
    await cluster.until(lambda: cluster.let_in() == {1, 2, 3})
