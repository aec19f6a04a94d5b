"""Transactions whose coordinator, partitions and group are on different brokers."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from broker.controller.images.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from protocol.error_codes import ErrorCode
from protocol.messages.end_txn import EndTxnRequest
from tests.harness.brokers import ClusterHarness
from tests.harness.cluster_client import GROUP, TRANSACTION, ClusterClient

BROKERS = (1, 2, 3)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(
        tmp_path, offsets_topic_num_partitions=6, transaction_state_log_num_partitions=6
    ) as cluster:
        yield cluster


async def key_at(client: ClusterClient, kind: int, node_id: int) -> str:
    """A group or transactional id whose coordinator a broker is."""
    for number in range(1_000):
        key = f"key-{number}"
        if await client.retry(partial(client.coordinator, kind, key)) == node_id:
            return key
    raise AssertionError(f"broker {node_id} coordinates nothing")


@pytest.mark.parametrize("commit", [True, False])
async def test_every_half_on_every_broker(cluster: ClusterHarness, commit: bool) -> None:
    """The coordinator on each broker in turn, partitions on all, the group on another."""
    await cluster.create_topic("t", partitions=3, replicas=1)
    await cluster.create_topic("in", replicas=1)
    client = ClusterClient(cluster)
    assert {await client.leader("t", index) for index in range(3)} == set(BROKERS)
    for node_id in BROKERS:
        transactional_id = await key_at(client, TRANSACTION, node_id)
        group = await key_at(client, GROUP, BROKERS[node_id % 3])
        producer = await client.producer(transactional_id)
        before = [await client.stable_offset("t", index) for index in range(3)]
        for index in range(3):
            await producer.send("t", index, b"a")
        await producer.commit_offsets(group, "in", {0: 10 + node_id})
        assert [await client.stable_offset("t", index) for index in range(3)] == before
        await producer.end(commit=commit)
        assert await client.committed(group, "in") == (10 + node_id if commit else -1)
        for index in range(3):
            await cluster.until(partial(is_stable, cluster, index, before[index] + 2))
        # The next one of the same producer, in the epoch that the last one's end has given it.
        await producer.send("t", 0, b"b")
        await producer.end(commit=True)
        # Its marker is written behind the answer.
        await cluster.until(partial(is_stable, cluster, 0, before[0] + 4))


async def test_the_end_of_no_transaction_is_refused_by_who_is_certain(tmp_path: Path) -> None:
    """Followers confirm the coordinator by their fetches, also where there is nothing to fetch."""
    async with ClusterHarness(
        tmp_path,
        transaction_state_log_num_partitions=1,
        transaction_state_log_replication_factor=3,
    ) as cluster:
        client = ClusterClient(cluster)
        producer = await client.producer("nothing-begun")
        images = [one.controller.image for one in cluster.running if one.controller is not None]
        partition = images[0].partition(TRANSACTION_STATE, 0)
        assert partition is not None
        assert len(partition.isr) == 3
        request = EndTxnRequest(
            transactional_id="nothing-begun",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=True,
        )
        codes: list[ErrorCode] = []
        while ErrorCode.INVALID_TXN_STATE not in codes and len(codes) < 60:
            answer = await client.coordinated(TRANSACTION, "nothing-begun", request, version=5)
            codes.append(ErrorCode(answer.error_code))
            await asyncio.sleep(0.05)
        assert codes[-1] is ErrorCode.INVALID_TXN_STATE, codes
        assert set(codes[:-1]) == {ErrorCode.NOT_COORDINATOR}


def is_stable(cluster: ClusterHarness, index: int, end: int) -> bool:
    """Whether the last stable offset is that."""
    leader = cluster.broker(cluster.leader_of("t", index))
    partition = leader.replicas.leader_of("t", index)
    return partition is not None and partition.log.last_stable_offset == end


async def test_internal_topics_are_spread(cluster: ClusterHarness) -> None:
    client = ClusterClient(cluster)
    for kind, topic in ((GROUP, CONSUMER_OFFSETS), (TRANSACTION, TRANSACTION_STATE)):
        await client.retry(partial(client.coordinator, kind, "any"))
        assert {cluster.leader_of(topic, index) for index in range(6)} == set(BROKERS)
