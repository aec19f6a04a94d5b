"""A replica changes its log directory (AlterReplicaLogDirs) while its partition is reassigned.

Four brokers with two log directories each. Whichever ends first, every acknowledged record is
there, and nothing is left where no replica is: neither a log nor a copy.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.harness.brokers import UNTIL_S, ClusterHarness

RECORDS = 40
SIZE = 64 * 1024


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path, brokers=4, log_dirs=2) as cluster:
        yield cluster


def folders(cluster: ClusterHarness, node_id: int) -> list[tuple[int, str]]:
    """Number of the log directory and name of each folder that the partition has at a broker.

    Without those that are deleted after `log.segment.delete.delay.ms`.
    """
    return [
        (number, path.name)
        for number, directory in enumerate(cluster.nodes[node_id].log_dirs)
        for path in sorted(directory.glob("t-0*"))
        if not path.name.endswith("-delete")
    ]


def replicas(cluster: ClusterHarness) -> tuple[int, ...] | None:
    """Where the partition is, all in sync; None while it is on its way."""
    images = [one.controller.image for one in cluster.running if one.controller is not None]
    partition = max(images, key=lambda image: image.revision).partition("t", 0)
    assert partition is not None
    is_done = not partition.is_reassigning and set(partition.isr) == set(partition.replicas)
    return partition.replicas if is_done else None


async def reassign(cluster: ClusterHarness, *wanted: int) -> None:
    client = await cluster.client(1)
    partition = ReassignablePartition(partition_index=0, replicas=list(wanted))
    answer = await client.call(
        AlterPartitionReassignmentsRequest(
            timeout_ms=10_000, topics=[ReassignableTopic(name="t", partitions=[partition])]
        )
    )
    assert answer.error_code == 0
    assert answer.responses[0].partitions[0].error_code == 0


async def move(cluster: ClusterHarness, node_id: int, number: int) -> ErrorCode:
    """Into the log directory of this number."""
    client = await cluster.client(node_id)
    answer = await client.call(
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=str(cluster.nodes[node_id].log_dirs[number]),
                    topics=[AlterReplicaLogDirTopic(name="t", partitions=[0])],
                )
            ]
        )
    )
    return ErrorCode(answer.results[0].partitions[0].error_code)


async def with_topic(cluster: ClusterHarness, *wanted: int) -> None:
    """A partition on these brokers, with records."""
    await cluster.create_topic("t", partitions=1, replicas=len(wanted), min_insync_replicas=1)
    await reassign(cluster, *wanted)
    await cluster.until(lambda: replicas(cluster) == wanted)
    await produce(cluster, range(RECORDS))


async def produce(cluster: ClusterHarness, numbers: range) -> None:
    """acks=all, each again until it is acknowledged."""
    for number in numbers:
        while True:
            client = await cluster.client(await cluster.leading("t"))
            value = b"%06d" % number + b"x" * SIZE
            answer = await client.try_produce("t", [(None, value)], acks=-1)
            if answer.error_code == ErrorCode.NONE:
                break
            await asyncio.sleep(0.01)


async def check(cluster: ClusterHarness, *wanted: int, count: int) -> None:
    await cluster.until(lambda: replicas(cluster) == wanted)
    await cluster.until(lambda: cluster.replicas_equal("t", among=wanted))
    client = await cluster.client(await cluster.leading("t"))
    found = [int(bytes(one.value or b"")[:6]) for one in await client.read_all("t")]
    assert list(dict.fromkeys(found)) == list(range(count))
    gone = set(cluster.nodes) - set(wanted)
    await cluster.until(lambda: not any(folders(cluster, node) for node in gone))


def place_of(cluster: ClusterHarness, node_id: int) -> int:
    ((number, _),) = folders(cluster, node_id)
    return number


@pytest.mark.parametrize("which", [0, 1], ids=["leader", "follower"])
async def test_a_replica_that_is_copied_and_removed_leaves_nothing(
    cluster: ClusterHarness, which: int
) -> None:
    """The copy goes with the log."""
    await with_topic(cluster, 1, 2)
    node = (1, 2)[which]
    other = 3 - node
    to = 1 - place_of(cluster, node)
    code, _ = await asyncio.gather(move(cluster, node, to), reassign(cluster, other, 3))
    assert code in (ErrorCode.NONE, ErrorCode.REPLICA_NOT_AVAILABLE)
    await produce(cluster, range(RECORDS, RECORDS + 10))
    await check(cluster, other, 3, count=RECORDS + 10)


@pytest.mark.parametrize("which", [0, 1], ids=["leader", "follower"])
async def test_a_replica_that_stays_is_moved_while_another_is_replaced(
    cluster: ClusterHarness, which: int
) -> None:
    """Both come to their end, and the record names the directory."""
    await with_topic(cluster, 1, 2)
    node = (1, 2)[which]
    other = 3 - node
    to = 1 - place_of(cluster, node)
    code, _ = await asyncio.gather(move(cluster, node, to), reassign(cluster, node, 4))
    assert code is ErrorCode.NONE
    await produce(cluster, range(RECORDS, RECORDS + 10))
    await cluster.until(lambda: folders(cluster, node) == [(to, "t-0")])
    await check(cluster, node, 4, count=RECORDS + 10)
    assert not folders(cluster, other)


async def test_a_replica_that_catches_up_is_moved(cluster: ClusterHarness) -> None:
    """As kafka-reassign-partitions does with log_dirs: as soon as the new replica is there."""
    await with_topic(cluster, 1, 2)
    await reassign(cluster, 1, 3)
    code = ErrorCode.REPLICA_NOT_AVAILABLE
    to = 1
    async with asyncio.timeout(UNTIL_S):
        while code is ErrorCode.REPLICA_NOT_AVAILABLE:
            code = await move(cluster, 3, to)
    assert code is ErrorCode.NONE
    await produce(cluster, range(RECORDS, RECORDS + 10))
    await cluster.until(lambda: folders(cluster, 3) == [(to, "t-0")])
    await check(cluster, 1, 3, count=RECORDS + 10)


@pytest.mark.parametrize("to", [0, 1])
async def test_a_new_replica_begins_where_it_was_asked_for(
    cluster: ClusterHarness, to: int
) -> None:
    """Refused before the replica is there, and remembered until it is."""
    await with_topic(cluster, 1, 2)
    assert await move(cluster, 3, to) is ErrorCode.REPLICA_NOT_AVAILABLE
    await reassign(cluster, 1, 3)
    await check(cluster, 1, 3, count=RECORDS)
    assert folders(cluster, 3) == [(to, "t-0")]
    assert await move(cluster, 3, to) is ErrorCode.NONE


async def test_a_cancelled_reassignment_ends_the_copy_of_what_it_had_added(
    cluster: ClusterHarness,
) -> None:
    """The replica goes, its copy with it."""
    await with_topic(cluster, 1, 2)
    await reassign(cluster, 1, 3)
    code = ErrorCode.REPLICA_NOT_AVAILABLE
    async with asyncio.timeout(UNTIL_S):
        while code is ErrorCode.REPLICA_NOT_AVAILABLE:
            code = await move(cluster, 3, 1)
            if replicas(cluster) == (1, 3):
                break
    await reassign(cluster, 1, 2)
    await check(cluster, 1, 2, count=RECORDS)
