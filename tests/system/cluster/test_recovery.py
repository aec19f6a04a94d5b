"""All brokers end at once: clean where they have kept what they had, else from the longest log.

A machine that was started again has another boot id, and its logs are cut: the page cache is lost.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.membership.last_run import BOOT_ID_FILE
from protocol.error_codes import ErrorCode
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from storage.environment.local_filesystem import LocalFilesystem
from tests.harness.brokers import ClusterHarness
from tests.system.cluster.test_failover import is_under_min_isr

RECORDS = 30
UNCLEAN = 1


class BootDisk(LocalFilesystem):
    """The machine's disks, on a machine that can be started again."""

    __slots__ = ("boot",)

    def __init__(self) -> None:
        super().__init__()
        self.boot = b"first"

    def exists(self, path: str) -> bool:
        return path == BOOT_ID_FILE or super().exists(path)

    def read_bytes(self, path: str) -> bytes:
        return self.boot if path == BOOT_ID_FILE else super().read_bytes(path)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    cluster = ClusterHarness(tmp_path)
    for node in cluster.nodes.values():
        node.filesystem = BootDisk()
    async with cluster:
        yield cluster


def record(cluster: ClusterHarness, topic: str = "orders") -> PartitionImage:
    images = [one.controller.image for one in cluster.running if one.controller is not None]
    found = max(images, key=lambda image: image.revision).partition(topic, 0)
    assert found is not None
    return found


def is_out_of_isr(cluster: ClusterHarness, node_id: int) -> bool:
    return node_id not in record(cluster).isr


def unclean_elections(cluster: ClusterHarness) -> int:
    """By all that run."""
    return sum(b.side.control.active.unclean_elections for b in cluster.running if b.side)


async def produce(cluster: ClusterHarness, *values: bytes) -> None:
    """acks=all, and on all three disks."""
    client = await cluster.client(await cluster.leading("orders"))
    for value in values:
        await client.produce("orders", value, acks=-1)
    await cluster.until(lambda: cluster.replicas_equal("orders"))


async def read(cluster: ClusterHarness) -> list[bytes | None]:
    leader = await cluster.leading("orders")

    def is_committed() -> bool:
        partition = cluster.broker(leader).replicas.leader_of("orders", 0)
        return partition is not None and (
            partition.log.high_watermark == partition.log.log_end_offset
        )

    # A new leader does not answer before.
    await cluster.until(is_committed)
    client = await cluster.client(leader)
    return [one.value for one in await client.read_all("orders")]


async def kill_all(cluster: ClusterHarness) -> None:
    await asyncio.gather(*(cluster.kill(node_id) for node_id in cluster.nodes))


def lose_power(cluster: ClusterHarness, node_id: int, *, keep: int, topic: str = "orders") -> None:
    """Another boot, and only a part of the log was on the disk: that of `keep` records."""
    disk = cluster.nodes[node_id].filesystem
    assert isinstance(disk, BootDisk)
    disk.boot = b"second"
    (path,) = sorted((cluster.nodes[node_id].directory / f"{topic}-0").glob("*.log"))
    size = path.stat().st_size
    os.truncate(path, size * keep // RECORDS)


def values(count: int = RECORDS) -> list[bytes]:
    return [b"%03d" % number for number in range(count)]


async def with_topic(cluster: ClusterHarness, strategy: str = "Balanced") -> None:
    await cluster.create_topic(
        "orders", replicas=3, min_insync_replicas=2, unclean_recovery_strategy=strategy
    )
    await produce(cluster, *values())


async def test_a_cluster_killed_at_once_has_lost_nothing(cluster: ClusterHarness) -> None:
    """The same boot: clean elections, every record, nobody asked."""
    await with_topic(cluster)
    await kill_all(cluster)
    await asyncio.gather(*(cluster.restart(node_id) for node_id in cluster.nodes))
    await cluster.leading("orders")
    assert not record(cluster).is_recovering
    assert await read(cluster) == values()
    assert unclean_elections(cluster) == 0
    await cluster.until(lambda: len(record(cluster).isr) == 3)
    await cluster.until(lambda: cluster.replicas_equal("orders"))


@pytest.mark.parametrize("longest", [1, 2, 3])
async def test_after_a_loss_of_power_the_longest_log_leads(
    cluster: ClusterHarness, longest: int
) -> None:
    """Whoever led last, and whoever is back first: it is waited for."""
    await with_topic(cluster)
    await kill_all(cluster)
    for node_id in cluster.nodes:
        lose_power(cluster, node_id, keep=RECORDS if node_id == longest else 10 * node_id - 5)
    others = [node_id for node_id in cluster.nodes if node_id != longest]
    for node_id in others:
        await cluster.restart(node_id)
    await cluster.until(lambda: cluster.let_in() >= set(others))
    await cluster.until(lambda: record(cluster).leader == NO_LEADER)
    await asyncio.sleep(0.5)
    assert record(cluster).leader == NO_LEADER
    await cluster.restart(longest)
    assert await cluster.leading("orders") == longest
    assert await read(cluster) == values()
    # Counted when the store has answered, which may be after its image.
    await cluster.until(lambda: unclean_elections(cluster) == 1)
    await cluster.until(lambda: len(record(cluster).isr) == 3)
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    await produce(cluster, b"after")
    assert await read(cluster) == [*values(), b"after"]


async def test_the_last_replica_standing_that_loses_its_disk_is_not_followed(
    cluster: ClusterHarness,
) -> None:
    """KIP-966: the sole member of the ISR comes back empty; one that is eligible leads instead."""
    await with_topic(cluster)
    leader = await cluster.leading("orders")
    others = [node_id for node_id in cluster.nodes if node_id != leader]
    for node_id in others:
        await cluster.kill(node_id, revoke=True)
        await cluster.until(partial(is_out_of_isr, cluster, node_id))
    assert record(cluster).isr == (leader,)
    assert record(cluster).elr
    # The leader takes the ISR over after the image.
    await cluster.until(lambda: is_under_min_isr(cluster, leader, "orders"))
    client = await cluster.client(leader)
    refused = await client.try_produce("orders", [(None, b"lost")], acks=-1)
    assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    eligible = record(cluster).elr[0]
    await cluster.kill(leader, revoke=True)
    lose_power(cluster, leader, keep=0)
    await cluster.restart(leader)
    await cluster.until(lambda: leader in cluster.let_in())
    await cluster.until(lambda: record(cluster).leader == NO_LEADER)
    await asyncio.sleep(0.5)
    assert record(cluster).leader == NO_LEADER
    await cluster.restart(eligible)
    assert await cluster.leading("orders") == eligible
    assert await read(cluster) == values()
    await cluster.until(lambda: leader in record(cluster).isr)


async def test_the_last_in_sync_that_returns_with_less_follows_a_longer_log(
    cluster: ClusterHarness,
) -> None:
    """min.insync.replicas 1: the others were out of sync, and still have more than it has kept."""
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=1)
    await produce(cluster, *values())
    last = await cluster.leading("orders")
    others = [node_id for node_id in cluster.nodes if node_id != last]
    for node_id in others:
        await cluster.kill(node_id, revoke=True)
        await cluster.until(partial(is_out_of_isr, cluster, node_id))
    assert (record(cluster).isr, record(cluster).elr) == ((last,), ())
    await cluster.kill(last, revoke=True)
    lose_power(cluster, last, keep=5)
    for node_id in others:
        await cluster.restart(node_id)
    await cluster.until(lambda: cluster.let_in() >= set(others))
    await cluster.until(lambda: record(cluster).leader == NO_LEADER)
    await asyncio.sleep(0.5)
    assert record(cluster).leader == NO_LEADER
    await cluster.restart(last)
    assert await cluster.leading("orders") in others
    assert await read(cluster) == values()
    await cluster.until(lambda: len(record(cluster).isr) == 3)
    await cluster.until(lambda: cluster.replicas_equal("orders"))


async def test_an_aggressive_recovery_takes_what_there_is(cluster: ClusterHarness) -> None:
    """The longest of those that are back; what only others had is cut when they return."""
    await with_topic(cluster, "Aggressive")
    await kill_all(cluster)
    lose_power(cluster, 1, keep=10)
    lose_power(cluster, 2, keep=20)
    lose_power(cluster, 3, keep=RECORDS)
    await asyncio.gather(cluster.restart(1), cluster.restart(2))
    await cluster.until(lambda: cluster.let_in() == {1, 2})
    leader = await cluster.leading("orders")
    found = await read(cluster)
    assert found == values(20 if leader == 2 else 10)
    await cluster.restart(3)
    await cluster.until(lambda: len(record(cluster).isr) == 3)
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    assert await read(cluster) == found


async def test_without_a_strategy_an_administrator_decides(cluster: ClusterHarness) -> None:
    """ElectLeaders of type unclean; before that nobody leads, however long all are back."""
    await with_topic(cluster, "None")
    await kill_all(cluster)
    for node_id in cluster.nodes:
        lose_power(cluster, node_id, keep=10)
    await asyncio.gather(*(cluster.restart(node_id) for node_id in cluster.nodes))
    await cluster.until(lambda: cluster.let_in() == {1, 2, 3})
    await asyncio.sleep(1.0)
    assert record(cluster).leader == NO_LEADER
    client = await cluster.client(1)
    answer = await client.call(
        ElectLeadersRequest(
            election_type=UNCLEAN,
            topic_partitions=[TopicPartitions(topic="orders", partitions=[0])],
            timeout_ms=10_000,
        )
    )
    assert answer.error_code == 0
    await cluster.leading("orders")
    assert record(cluster).is_recovering or len(record(cluster).isr) > 1
    assert await read(cluster) == values(10)


async def test_consumers_can_tell_that_records_were_cut(cluster: ClusterHarness) -> None:
    """KIP-320: the end of the epoch in which it read is before where it stands; Fetch says so."""
    await with_topic(cluster, "Aggressive")
    before = record(cluster)
    await kill_all(cluster)
    for node_id in cluster.nodes:
        lose_power(cluster, node_id, keep=10)
    await asyncio.gather(*(cluster.restart(node_id) for node_id in cluster.nodes))
    leader = await cluster.leading("orders")
    client = await cluster.client(leader)
    leading = cluster.broker(leader).replicas.leader_of("orders", 0)
    assert leading is not None
    epoch = leading.leader_epoch
    asked = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic="orders",
                partitions=[
                    OffsetForLeaderPartition(
                        partition=0, current_leader_epoch=epoch, leader_epoch=before.leader_epoch
                    )
                ],
            )
        ],
    )
    (topic,) = (await client.call(asked)).topics
    assert topic.partitions[0].error_code == 0
    assert topic.partitions[0].end_offset == 10
    controller = cluster.running[0].controller
    assert controller is not None
    topic_id = controller.image.topics["orders"].topic_id
    fetch = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic="orders",
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=0,
                        current_leader_epoch=epoch,
                        fetch_offset=RECORDS,
                        last_fetched_epoch=before.leader_epoch,
                        partition_max_bytes=1 << 20,
                    )
                ],
            )
        ],
    )
    answer = await client.call(fetch)
    diverging = answer.responses[0].partitions[0].diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (before.leader_epoch, 10)


async def test_a_log_that_is_gone_costs_its_broker_the_eligibility(cluster: ClusterHarness) -> None:
    """The directory is here, on the same boot, and the partition's folder is not in it."""
    await with_topic(cluster)
    leader = await cluster.leading("orders")
    first, second = (node_id for node_id in cluster.nodes if node_id != leader)
    for node_id in (first, second):
        await cluster.kill(node_id, revoke=True)
        await cluster.until(partial(is_out_of_isr, cluster, node_id))
    assert record(cluster).elr == (second,)
    await cluster.kill(leader, revoke=True)
    shutil.rmtree(cluster.nodes[second].directory / "orders-0")
    await cluster.restart(second)
    await cluster.until(lambda: second in cluster.let_in())
    await cluster.until(lambda: record(cluster).leader == NO_LEADER)
    await asyncio.sleep(0.5)
    assert record(cluster).leader == NO_LEADER
    assert second not in record(cluster).elr
    await cluster.restart(leader)
    assert await cluster.leading("orders") == leader
    assert await read(cluster) == values()
    await cluster.until(lambda: second in record(cluster).isr)
    await cluster.until(lambda: cluster.replicas_equal("orders", among=(leader, second)))


async def test_a_topic_of_the_same_name_takes_over_no_records(cluster: ClusterHarness) -> None:
    """Created while a broker was away, whose replica does not say which topic it is of."""
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=2)
    leader = await cluster.leading("orders")
    client = await cluster.client(leader)
    for number in range(6):
        await client.produce("orders", b"old %d" % number, acks=-1)
    await cluster.until(lambda: cluster.replicas_equal("orders"))
    away = next(node_id for node_id in cluster.nodes if node_id != leader)
    await cluster.kill(away, revoke=True)
    await cluster.until(lambda: away not in cluster.let_in())
    await client.delete_topic("orders")
    await cluster.create_topic("orders", replicas=3, min_insync_replicas=2)
    client = await cluster.client(await cluster.leading("orders"))
    for number in range(4):
        await client.produce("orders", b"new %d" % number, acks=-1)
    (log_dir,) = cluster.nodes[away].log_dirs
    (log_dir / "orders-0" / "partition.metadata").unlink()
    await cluster.restart(away)
    controller = cluster.running[0].controller
    assert controller is not None
    await cluster.until(lambda: away in controller.image.topics["orders"].partitions[0].isr)
    assert cluster.replicas_equal("orders")
    assert [path.name[:8] for path in log_dir.glob("*-stray")] == ["orders-0"]
