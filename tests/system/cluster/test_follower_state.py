"""What a follower knows beside the records: producers, log starts, what is on disk."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from storage.log.log import Log
from tests.harness.brokers import ClusterHarness


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path) as cluster:
        yield cluster


def log_of(cluster: ClusterHarness, node_id: int, topic: str = "orders") -> Log:
    partition = cluster.broker(node_id).replicas.replica_of(topic, 0)
    assert partition is not None
    return partition.log


def ends_at(cluster: ClusterHarness, node_id: int, offset: int) -> bool:
    """Whether a replica's log is open, and ends there."""
    partition = cluster.broker(node_id).replicas.replica_of("orders", 0)
    return partition is not None and partition.log.log_end_offset == offset


async def test_retry_at_the_next_leader_is_a_duplicate(cluster: ClusterHarness) -> None:
    """Sequences come with the batches: a producer that never got its answer sends again."""
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=2)
    first = await cluster.leading("orders")
    client = await cluster.client(first)
    batch = {"producer_id": 7, "producer_epoch": 0}
    for sequence in range(3):
        answer = await client.try_produce(
            "orders", [(None, b"%d" % sequence)], base_sequence=sequence, **batch
        )
        assert answer.error_code == ErrorCode.NONE
    await cluster.kill(first, revoke=True)
    await cluster.until(lambda: cluster.leader_of("orders") not in (first, -1))
    client = await cluster.client(await cluster.leading("orders"))
    again = await client.try_produce("orders", [(None, b"2")], base_sequence=2, **batch)
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 2)
    gap = await client.try_produce("orders", [(None, b"9")], base_sequence=9, **batch)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [record.value for record in await client.read_all("orders")] == [b"0", b"1", b"2"]


async def test_deleted_records_are_deleted_everywhere(cluster: ClusterHarness) -> None:
    """Followers' log starts follow the leader's, into the middle of a batch as well."""
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=2)
    leader = await cluster.leading("orders")
    client = await cluster.client(leader)
    await client.produce("orders", b"a", b"b", b"c", acks=-1)
    await cluster.until(lambda: log_of(cluster, leader).high_watermark == 3)
    assert await client.delete_records("orders", 2) == 2
    await cluster.until(
        lambda: {log_of(cluster, node_id).log_start_offset for node_id in cluster.nodes} == {2}
    )


async def test_empty_replica_begins_where_records_were_deleted(cluster: ClusterHarness) -> None:
    """The first batch it gets begins before the leader's log start."""
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=1)
    leader = await cluster.leading("orders")
    away = next(node_id for node_id in cluster.nodes if node_id != leader)
    await cluster.kill(away, revoke=True)
    client = await cluster.client(leader)
    await client.produce("orders", b"a", b"b", b"c", acks=1)
    await client.produce("orders", b"d", acks=1)
    await cluster.until(lambda: log_of(cluster, leader).high_watermark == 4)
    log_of(cluster, leader).delete_records(2)
    await cluster.restart(away)
    await cluster.until(lambda: ends_at(cluster, away, 4))
    await cluster.until(lambda: log_of(cluster, away).log_start_offset == 2)
    assert cluster.replicas_equal("orders")


async def test_replica_behind_the_leaders_log_start_begins_there(cluster: ClusterHarness) -> None:
    """What it lacks was deleted while it was away: it begins anew, and lacks nothing that is."""
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=1, segment_bytes=1 << 20)
    leader = await cluster.leading("orders")
    client = await cluster.client(leader)
    await client.produce("orders", b"shared", acks=-1)
    away = next(node_id for node_id in cluster.nodes if node_id != leader)
    await cluster.kill(away, revoke=True)
    for number in range(8):
        await client.produce("orders", b"%d" % number * 600_000, acks=1)
    log = log_of(cluster, leader)
    await cluster.until(lambda: log.high_watermark == 9)
    log.delete_records(6)
    log.retention.delete_old_segments()
    await cluster.restart(away)
    await cluster.until(lambda: ends_at(cluster, away, 9))
    assert log_of(cluster, away).log_start_offset == 6
    assert cluster.fetchers(away).stats.truncations >= 1


async def test_flush_messages_means_on_the_followers_disks_too(tmp_path: Path) -> None:
    """acks=all is answered when every replica of the ISR has synced the records."""
    async with ClusterHarness(tmp_path) as cluster:
        await cluster.create_topic("orders", replicas=3, min_insync_replicas=3, flush_messages=1)
        client = await cluster.client(await cluster.leading("orders"))
        for number in range(5):
            answer = await client.try_produce("orders", [(None, b"%d" % number)], acks=-1)
            assert answer.error_code == ErrorCode.NONE
            for node_id in cluster.nodes:
                assert log_of(cluster, node_id).recovery_point == number + 1
