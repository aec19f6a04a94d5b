"""Consumers that read from a follower in their rack (KIP-392), on three brokers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.replicas.partition import Partition
from config.sections.replication import RACK_AWARE_SELECTOR
from protocol.error_codes import ErrorCode
from tests.fakes.network.client import read_of
from tests.harness.brokers import UNTIL_S, ClusterHarness
from tests.harness.cluster_client import ClusterClient

RACKS = ("a", "b", "c")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(
        tmp_path, racks=RACKS, replica_selector_class=RACK_AWARE_SELECTOR
    ) as cluster:
        yield cluster


def replica(cluster: ClusterHarness, node_id: int, topic: str = "orders") -> Partition:
    partition = cluster.broker(node_id).replicas.replica_of(topic, 0)
    assert partition is not None
    return partition


async def produced(cluster: ClusterHarness, topic: str = "orders") -> tuple[int, int]:
    """A topic with three records that every replica has, and sees as committed: leader, other."""
    await cluster.create_topic(topic, replicas=3, min_insync_replicas=2)
    leader = await cluster.leading(topic)
    client = await cluster.client(leader)
    for value in (b"a", b"b", b"c"):
        await client.produce(topic, value)
    await cluster.until(
        lambda: all(replica(cluster, n, topic).log.high_watermark == 3 for n in cluster.nodes)
    )
    return leader, next(node_id for node_id in cluster.nodes if node_id != leader)


async def test_a_leader_sends_a_client_to_its_rack_and_records_come_there(
    cluster: ClusterHarness,
) -> None:
    leader, other = await produced(cluster)
    at_leader, at_other = await cluster.client(leader), await cluster.client(other)
    sent = await at_leader.fetch("orders", 0, rack=RACKS[other - 1], max_wait_ms=5_000)
    assert (sent.error, sent.preferred, sent.records) == (ErrorCode.NONE, other, [])
    there = await at_other.fetch("orders", 0, rack=RACKS[other - 1])
    assert there.preferred == -1
    assert [record.value for record in there.records] == [b"a", b"b", b"c"]
    for rack in ("", "elsewhere", RACKS[leader - 1]):
        read = await at_leader.fetch("orders", 0, rack=rack)
        assert (read.preferred, len(read.records)) == (-1, 3)


async def test_a_fetch_at_a_follower_waits_for_the_next_record(cluster: ClusterHarness) -> None:
    leader, other = await produced(cluster)
    waiting = (await cluster.client(other)).start_fetch("orders", 3, max_wait_ms=20_000)
    await (await cluster.client(leader)).produce("orders", b"d")
    read = read_of(await asyncio.wait_for(waiting, UNTIL_S))
    assert [record.value for record in read.records] == [b"d"]
    assert read.high_watermark == 4


async def test_read_committed_at_a_follower_ends_at_its_last_stable_offset(
    cluster: ClusterHarness,
) -> None:
    """An open transaction holds it back; of an aborted one the client hears."""
    _, other = await produced(cluster)
    client = ClusterClient(cluster)
    producer = await client.producer("mover")
    await producer.send("orders", 0, b"aborted")
    at_other = await cluster.client(other)
    await cluster.until(lambda: replica(cluster, other).log.high_watermark == 4)
    read = await at_other.fetch("orders", 0, isolation_level=1)
    assert [record.offset for record in read.records] == [0, 1, 2]
    assert len((await at_other.fetch("orders", 0)).records) == 4
    await producer.end(commit=False)
    await cluster.until(lambda: replica(cluster, other).log.last_stable_offset == 5)
    answer = await at_other.start_fetch("orders", 0, isolation_level=1)
    found = answer.responses[0].partitions[0]
    assert (found.last_stable_offset, found.error_code) == (5, 0)
    assert [one.first_offset for one in found.aborted_transactions] == [3]


async def test_a_dead_follower_is_named_no_longer(cluster: ClusterHarness) -> None:
    leader, other = await produced(cluster)
    client = await cluster.client(leader)
    rack = RACKS[other - 1]
    assert (await client.fetch("orders", 0, rack=rack)).preferred == other
    await cluster.kill(other, revoke=True)
    await cluster.until(lambda: cluster.is_out(other))
    read = await client.fetch("orders", 0, rack=rack)
    assert (read.preferred, len(read.records)) == (-1, 3)
    await cluster.restart(other)

    async def is_named_again() -> bool:
        return (await client.fetch("orders", 0, rack=rack)).preferred == other

    async with asyncio.timeout(UNTIL_S):
        while not await is_named_again():  # noqa: ASYNC110  any state of the brokers
            await asyncio.sleep(0.05)


async def test_a_follower_reads_on_when_the_leader_dies(cluster: ClusterHarness) -> None:
    """It leads, or follows the next leader; clients hear of it by the epoch."""
    leader, other = await produced(cluster)
    at_other = await cluster.client(other)
    epoch = replica(cluster, other).leader_epoch
    waiting = at_other.start_fetch("orders", 3, max_wait_ms=20_000, leader_epoch=epoch)
    await cluster.kill(leader, revoke=True)
    read = read_of(await asyncio.wait_for(waiting, UNTIL_S))
    assert read.error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    following = await cluster.leading("orders")
    await (await cluster.client(following)).produce("orders", b"d")
    await cluster.until(lambda: replica(cluster, other).log.high_watermark == 4)
    read = await at_other.fetch("orders", 0)
    assert [record.value for record in read.records] == [b"a", b"b", b"c", b"d"]
