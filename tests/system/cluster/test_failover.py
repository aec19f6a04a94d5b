"""A leader dies under acks=all: another goes on, nothing is lost, and afterwards all are equal."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.records.builder import build_batch
from tests.fakes.network.client import RefusedError, produce_request
from tests.harness.brokers import UNTIL_S, ClusterHarness

NOT_NOW = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
}
"""Refusals before anything was written, after which a producer tries again."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path) as cluster:
        yield cluster


def isr(cluster: ClusterHarness, topic: str, partition: int = 0) -> set[int]:
    """As the newest image says."""
    images = [one.controller.image for one in cluster.running if one.controller is not None]
    found = max(images, key=lambda image: image.revision).partition(topic, partition)
    assert found is not None
    return set(found.isr)


def is_under_min_isr(cluster: ClusterHarness, leader: int, topic: str) -> bool:
    """Whether a broker leads the first partition, and refuses acks=all for lack of replicas."""
    partition = cluster.broker(leader).replicas.leader_of(topic, 0)
    return partition is not None and partition.is_under_min_isr


async def produce(cluster: ClusterHarness, topic: str, *values: bytes) -> list[int]:
    """Write records one after the other with acks=all, to the leader there is; their offsets."""
    offsets = []
    for value in values:
        while True:
            client = await cluster.client(await cluster.leading(topic))
            answer = await client.try_produce(topic, [(None, value)])
            if answer.error_code == 0:
                offsets.append(answer.base_offset)
                break
            assert ErrorCode(answer.error_code) in NOT_NOW, ErrorCode(answer.error_code)
            await cluster.until(lambda: True)
    return offsets


async def read(cluster: ClusterHarness, topic: str) -> list[bytes | None]:
    """All committed records, from the leader there is; one that was just elected is waited for."""
    async with asyncio.timeout(UNTIL_S):
        while True:
            client = await cluster.client(await cluster.leading(topic))
            try:
                return [record.value for record in await client.read_all(topic)]
            except RefusedError as error:
                if error.code not in {*NOT_NOW, ErrorCode.OFFSET_NOT_AVAILABLE}:
                    raise
                await asyncio.sleep(0.01)


async def test_a_killed_leader_costs_no_record_and_comes_back_in_sync(
    cluster: ClusterHarness,
) -> None:
    """RF 3, min ISR 2: the first landing's sentence, in one process."""
    await cluster.create_topic("t", replicas=3, min_insync_replicas=2)
    before = [b"before %d" % number for number in range(20)]
    assert await produce(cluster, "t", *before) == list(range(20))
    await cluster.until(lambda: cluster.replicas_equal("t"))
    leader = await cluster.leading("t")
    await cluster.kill(leader)
    await cluster.until(lambda: cluster.leader_of("t") not in (leader, -1))
    after = [b"after %d" % number for number in range(20)]
    assert await produce(cluster, "t", *after) == list(range(20, 40))
    assert isr(cluster, "t") == {1, 2, 3} - {leader}
    assert await read(cluster, "t") == before + after
    await cluster.restart(leader)
    await cluster.until(lambda: isr(cluster, "t") == {1, 2, 3})
    await cluster.until(lambda: cluster.replicas_equal("t"))
    assert await produce(cluster, "t", b"with all") == [40]
    assert await read(cluster, "t") == [*before, *after, b"with all"]


async def test_one_leader_after_the_other_may_die(cluster: ClusterHarness) -> None:
    """Each comes back before the next dies; every acknowledged record is there, once."""
    await cluster.create_topic("t", replicas=3, min_insync_replicas=2)
    written: list[bytes] = []
    for round_number in range(3):
        values = [b"%d of round %d" % (number, round_number) for number in range(10)]
        await produce(cluster, "t", *values)
        written += values
        leader = await cluster.leading("t")
        await cluster.kill(leader)
        value = b"without %d" % leader
        await produce(cluster, "t", value)
        written.append(value)
        await cluster.restart(leader)
        await cluster.until(lambda: isr(cluster, "t") == {1, 2, 3})
    await cluster.until(lambda: cluster.replicas_equal("t"))
    assert await read(cluster, "t") == written


async def test_with_two_of_three_dead_nothing_is_acknowledged(cluster: ClusterHarness) -> None:
    """Below min ISR a Produce with acks=all is refused before it is written."""
    await cluster.create_topic("t", replicas=3, min_insync_replicas=2)
    await produce(cluster, "t", b"a")
    leader = await cluster.leading("t")
    others = sorted({1, 2, 3} - {leader})
    for node_id in others:
        await cluster.kill(node_id)
    await cluster.until(lambda: isr(cluster, "t") == {leader})
    # The leader takes the ISR over after the image.
    await cluster.until(lambda: is_under_min_isr(cluster, leader, "t"))
    client = await cluster.client(leader)
    answer = await client.try_produce("t", [(None, b"b")])
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    for node_id in others:
        await cluster.restart(node_id)
    await cluster.until(lambda: isr(cluster, "t") == {1, 2, 3})
    await produce(cluster, "t", b"c")
    assert await read(cluster, "t") == [b"a", b"c"]
    await cluster.until(lambda: cluster.replicas_equal("t"))


async def test_a_refused_client_is_sent_to_the_leader(cluster: ClusterHarness) -> None:
    """By a Produce and a Fetch alike, with the address on the client's own listener (KIP-951)."""
    await cluster.create_topic("t", replicas=3)
    leader = await cluster.leading("t")
    client = await cluster.client(min({1, 2, 3} - {leader}))
    data = build_batch([(None, b"v", (), 1_700_000_000_000)])
    refused = await client.call(produce_request("t", 0, data))
    (answer,) = refused.responses[0].partition_responses
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == leader
    found = {one.node_id: one.port for one in refused.node_endpoints}
    assert found == {leader: cluster.nodes[leader].port}


async def test_deleted_records_are_gone_from_every_replica_when_it_is_answered(
    cluster: ClusterHarness,
) -> None:
    """Then also whoever is elected next does not have them."""
    await cluster.create_topic("t", replicas=3)
    await produce(cluster, "t", *(b"%d" % number for number in range(10)))
    client = await cluster.client(await cluster.leading("t"))
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=7)]
            )
        ],
        timeout_ms=20_000,
    )
    (answer,) = (await client.call(request)).topics[0].partitions
    assert (answer.error_code, answer.low_watermark) == (0, 7)
    starts = []
    for broker in cluster.running:
        partition = broker.replicas.replica_of("t", 0)
        assert partition is not None
        starts.append(partition.log.log_start_offset)
    assert starts == [7, 7, 7]
