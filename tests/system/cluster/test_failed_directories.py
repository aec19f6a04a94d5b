"""A log directory of a member fails: others lead what lay there, and the broker lives on (KIP-858).

Two directories on each broker; the disk under one of them is broken by an injected file system.
"""

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.controller.images.cluster_image import ClusterImage
from protocol.error_codes import ErrorCode
from storage.checkpoints.log_directory import LogDirectory
from tests.fakes.storage.failing_disk import FailingDisk
from tests.harness.brokers import UNTIL_S, ClusterHarness

PARTITIONS = 6

GAP_S = 15.0
"""Longer than any machine is busy with the failover, shorter than a replica may lag."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    cluster = ClusterHarness(tmp_path, log_dirs=2)
    for node in cluster.nodes.values():
        node.filesystem = FailingDisk()
    async with cluster:
        yield cluster


def disk_of(cluster: ClusterHarness, node_id: int) -> FailingDisk:
    disk = cluster.nodes[node_id].filesystem
    assert isinstance(disk, FailingDisk)
    return disk


def image_of(cluster: ClusterHarness) -> ClusterImage:
    controller = cluster.running[0].controller
    assert controller is not None
    return controller.image


def directory_of(cluster: ClusterHarness, node_id: int, index: int) -> LogDirectory:
    """The directory that a replica lies in."""
    broker = cluster.broker(node_id)
    partition = broker.replicas.replica_of("orders", index)
    assert partition is not None
    found = broker.log_manager.directory_of(partition.log)
    assert found is not None
    return found


def are_all_placed(cluster: ClusterHarness) -> bool:
    """Whether the image names the log directory of each replica."""
    partitions = image_of(cluster).topics["orders"].partitions
    return all(
        partition.directory_on(node) is not None
        for partition in partitions
        for node in partition.replicas
    )


def are_all_led_without(cluster: ClusterHarness, node_id: int, lost: set[int]) -> bool:
    partitions = image_of(cluster).topics["orders"].partitions
    return all(
        partition.leader not in (-1, node_id) and node_id not in partition.isr
        for partition in partitions
        if partition.index in lost
    ) and all(
        cluster.leads(partition.leader, "orders", partition.index) for partition in partitions
    )


async def produce_to_all(
    cluster: ClusterHarness, acked: dict[int, list[bytes]], stop: asyncio.Event
) -> float:
    """acks=all to every partition, again until it is acknowledged; the longest gap, in seconds."""
    loop = asyncio.get_running_loop()
    clients = {node: await cluster.client(node) for node in cluster.nodes}
    longest, number = 0.0, 0
    while not stop.is_set():
        for index in range(PARTITIONS):
            value = b"%d-%d" % (index, number)
            began = loop.time()
            while True:
                leader = cluster.leader_of("orders", index)
                if leader in clients:
                    answer = await clients[leader].try_produce(
                        "orders", [(None, value)], partition=index, acks=-1, timeout_ms=1_000
                    )
                    if answer.error_code == ErrorCode.NONE:
                        break
                await asyncio.sleep(0.01)
            longest = max(longest, loop.time() - began)
            acked[index].append(value)
        number += 1
        await asyncio.sleep(0.002)
    return longest


async def values_of(cluster: ClusterHarness, index: int) -> list[bytes | None]:
    client = await cluster.client(await cluster.leading("orders", index))
    return [record.value for record in await client.read_all("orders", partition=index)]


@pytest.mark.parametrize("kind", ["write", "sync"])
@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
async def test_producers_go_on_when_a_directory_fails(
    cluster: ClusterHarness, kind: str, which: int
) -> None:
    """Of the leader of some partitions and the follower of others; nothing is lost.

    Also when it is the first directory, with the broker's own notes.
    """
    await cluster.create_topic(
        "orders", partitions=PARTITIONS, replicas=3, min_insync_replicas=2, flush_messages=1
    )
    for index in range(PARTITIONS):
        await cluster.leading("orders", index)
    await cluster.until(lambda: are_all_placed(cluster))
    failing = str(cluster.nodes[1].log_dirs[which])
    lost = {index for index in range(PARTITIONS) if directory_of(cluster, 1, index).path == failing}
    assert 0 < len(lost) < PARTITIONS
    acked: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    stop = asyncio.Event()
    producing = asyncio.create_task(produce_to_all(cluster, acked, stop))
    await cluster.until(lambda: len(acked[0]) > 20)
    disk_of(cluster, 1).break_directory(failing, kind)
    await cluster.until(lambda: are_all_led_without(cluster, 1, lost))
    done = len(acked[0])
    await cluster.until(lambda: len(acked[0]) > done + 20)
    stop.set()
    assert await producing < GAP_S
    assert not cluster.broker(1).failed.done()
    assert cluster.let_in() == {1, 2, 3}
    for index, values in acked.items():
        found = await values_of(cluster, index)
        # A batch whose answer was lost is sent again by this producer, which is not idempotent.
        assert list(dict.fromkeys(found)) == values
    kept = set(range(PARTITIONS)) - lost
    await cluster.until(
        lambda: all(1 in image_of(cluster).topics["orders"].partitions[index].isr for index in kept)
    )


async def test_a_directory_that_comes_back_is_led_from_again(cluster: ClusterHarness) -> None:
    """After a start: its logs are cut where they differ, catch up, and may lead."""
    await cluster.create_topic(
        "orders", partitions=PARTITIONS, replicas=3, min_insync_replicas=2, flush_messages=1
    )
    await cluster.until(lambda: are_all_placed(cluster))
    failing = str(cluster.nodes[1].log_dirs[0])
    lost = {index for index in range(PARTITIONS) if directory_of(cluster, 1, index).path == failing}
    disk = disk_of(cluster, 1)
    disk.break_directory(failing, "write")
    for index in range(PARTITIONS):
        client = await cluster.client(await cluster.leading("orders", index))
        await client.try_produce("orders", [(None, b"a")], partition=index, acks=1)
    await cluster.until(lambda: are_all_led_without(cluster, 1, lost))
    for index in range(PARTITIONS):
        client = await cluster.client(await cluster.leading("orders", index))
        await client.produce("orders", b"b", partition=index, acks=-1)
    other = await cluster.client(2)

    async def offline() -> dict[int, list[int]]:
        (topic,) = (await other.metadata("orders")).topics
        return {one.partition_index: one.offline_replicas for one in topic.partitions}

    wanted = {index: [1] if index in lost else [] for index in range(PARTITIONS)}
    async with asyncio.timeout(UNTIL_S):
        # Another broker's image may be older.
        while await offline() != wanted:  # noqa: ASYNC110  any state of the brokers
            await asyncio.sleep(0.01)
    await cluster.stop(1)
    disk.broken.clear()
    await cluster.restart(1)
    await cluster.until(
        lambda: all(len(p.isr) == 3 for p in image_of(cluster).topics["orders"].partitions)
    )
    await cluster.until(
        lambda: all(cluster.replicas_equal("orders", index) for index in range(PARTITIONS))
    )
    assert {
        index for index in range(PARTITIONS) if directory_of(cluster, 1, index).path == failing
    } == lost


async def test_a_disk_that_is_not_mounted_is_not_begun_anew(cluster: ClusterHarness) -> None:
    """An empty folder in its place is left unused; its replicas are offline until it is back."""
    await cluster.create_topic("orders", partitions=PARTITIONS, replicas=3, min_insync_replicas=2)
    await cluster.until(lambda: are_all_placed(cluster))
    for index in range(PARTITIONS):
        client = await cluster.client(await cluster.leading("orders", index))
        await client.produce("orders", b"a", partition=index, acks=-1)
    mounted = cluster.nodes[1].log_dirs[1]
    lost = {
        index for index in range(PARTITIONS) if directory_of(cluster, 1, index).path == str(mounted)
    }
    await cluster.stop(1)
    away = mounted.with_name("away")
    mounted.rename(away)
    mounted.mkdir()
    await cluster.restart(1)
    await cluster.until(lambda: cluster.let_in() == {1, 2, 3})
    kept = set(range(PARTITIONS)) - lost
    await cluster.until(
        lambda: all(1 in image_of(cluster).topics["orders"].partitions[i].isr for i in kept)
    )
    assert not list(mounted.glob("orders-*"))
    broker = cluster.broker(1)
    assert all(broker.replicas.replica_of("orders", index) is None for index in lost)
    assert all(1 not in image_of(cluster).topics["orders"].partitions[index].isr for index in lost)
    await cluster.stop(1)
    for left in mounted.iterdir():
        left.unlink()
    mounted.rmdir()
    away.rename(mounted)
    await cluster.restart(1)
    await cluster.until(
        lambda: all(len(p.isr) == 3 for p in image_of(cluster).topics["orders"].partitions)
    )


async def test_a_last_copy_on_a_disk_that_is_not_mounted_is_waited_for(
    cluster: ClusterHarness,
) -> None:
    """One replica: nobody else has its records, so an empty log never leads in its place."""
    await cluster.create_topic("orders", partitions=PARTITIONS, replicas=1)
    await cluster.until(lambda: are_all_placed(cluster))
    own = [p.index for p in image_of(cluster).topics["orders"].partitions if p.replicas == (1,)]
    assert own
    client = await cluster.client(1)
    for index in own:
        assert await cluster.leading("orders", index) == 1
        await client.produce("orders", b"a", partition=index)
    await cluster.stop(1)
    node = cluster.nodes[1]
    for mounted in node.log_dirs:
        mounted.rename(mounted.with_name(mounted.name + "-away"))
        mounted.mkdir()
    await cluster.restart(1)
    await cluster.until(lambda: cluster.let_in() == {1, 2, 3})
    partitions = image_of(cluster).topics["orders"].partitions
    assert all(partitions[index].leader == -1 for index in own)
    await cluster.stop(1)
    for mounted in node.log_dirs:
        shutil.rmtree(mounted)
        mounted.with_name(mounted.name + "-away").rename(mounted)
    await cluster.restart(1)
    for index in own:
        assert await cluster.leading("orders", index) == 1
        assert await values_of(cluster, index) == [b"a"]


async def test_a_machine_that_was_replaced_begins_empty_and_follows(
    cluster: ClusterHarness,
) -> None:
    """All directories are new, and leaders are elsewhere: every replica is made again."""
    await cluster.create_topic("orders", partitions=PARTITIONS, replicas=3, min_insync_replicas=2)
    await cluster.until(lambda: are_all_placed(cluster))
    for index in range(PARTITIONS):
        client = await cluster.client(await cluster.leading("orders", index))
        await client.produce("orders", b"a", partition=index, acks=-1)
    await cluster.kill(1, revoke=True)
    for log_dir in cluster.nodes[1].log_dirs:
        shutil.rmtree(log_dir)
    await cluster.restart(1)
    await cluster.until(
        lambda: all(len(p.isr) == 3 for p in image_of(cluster).topics["orders"].partitions)
    )
    # The first image may still have the ISR of before.
    await cluster.until(
        lambda: all(cluster.replicas_equal("orders", index) for index in range(PARTITIONS))
    )


async def test_a_broker_without_any_directory_stops(cluster: ClusterHarness) -> None:
    """As Kafka's does; its partitions have other leaders."""
    await cluster.create_topic(
        "orders", partitions=PARTITIONS, replicas=3, min_insync_replicas=2, flush_messages=1
    )
    await cluster.until(lambda: are_all_placed(cluster))
    disk = disk_of(cluster, 1)
    for log_dir in cluster.nodes[1].log_dirs:
        disk.break_directory(str(log_dir))
    for index in range(PARTITIONS):
        client = await cluster.client(await cluster.leading("orders", index))
        await client.try_produce("orders", [(None, b"a")], partition=index, acks=1)
    await cluster.until(cluster.broker(1).failed.done)
    assert cluster.broker(1).failed.result() == "every log directory is offline"


async def test_producers_go_on_when_a_directory_is_full(cluster: ClusterHarness) -> None:
    """Others lead meanwhile; with room again it is in sync again, without a start."""
    await cluster.create_topic("orders", partitions=PARTITIONS, replicas=3, min_insync_replicas=2)
    await cluster.until(lambda: are_all_placed(cluster))
    failing = str(cluster.nodes[1].log_dirs[1])
    lost = {index for index in range(PARTITIONS) if directory_of(cluster, 1, index).path == failing}
    acked: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    stop = asyncio.Event()
    producing = asyncio.create_task(produce_to_all(cluster, acked, stop))
    await cluster.until(lambda: len(acked[0]) > 20)
    disk = disk_of(cluster, 1)
    disk.code = errno.ENOSPC
    disk.break_directory(failing, "write", "create")
    await cluster.until(lambda: are_all_led_without(cluster, 1, lost))
    done = len(acked[0])
    await cluster.until(lambda: len(acked[0]) > done + 20)
    assert not cluster.broker(1).log_manager.offline_directories
    disk.broken.clear()
    await cluster.until(
        lambda: all(len(p.isr) == 3 for p in image_of(cluster).topics["orders"].partitions)
    )
    stop.set()
    assert await producing < GAP_S
    for index, values in acked.items():
        assert list(dict.fromkeys(await values_of(cluster, index))) == values
