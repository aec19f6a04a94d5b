"""Replicas that move to other brokers while their partitions serve."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

from broker.controller.images.metadata_records import ResourceType
from broker.controller.images.partition_image import PartitionImage
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.harness.brokers import UNTIL_S, ClusterHarness
from tests.harness.cluster_client import ClusterClient


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path, brokers=5) as cluster:
        try:
            yield cluster
        finally:
            await Writer.stop_all()


def partition(cluster: ClusterHarness, topic: str = "t", index: int = 0) -> PartitionImage:
    """As the newest image of a running broker has it."""
    images = [b.controller.image for b in cluster.running if b.controller is not None]
    found = max(images, key=lambda image: image.revision).partition(topic, index)
    assert found is not None
    return found


async def reassign(
    cluster: ClusterHarness, *replicas: int, topic: str = "t", index: int = 0
) -> ErrorCode:
    """To these; to none: cancel. Sent to a broker that is the controller or is not."""
    running = sorted(node.node_id for node in cluster.nodes.values() if node.is_running)
    client = await cluster.client(running[-1])
    one = ReassignablePartition(
        partition_index=index, replicas=list(replicas) if replicas else None
    )
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[one])]
    )
    answer = await client.call(request, 1)
    assert answer.error_code == 0
    return ErrorCode(answer.responses[0].partitions[0].error_code)


def folders(cluster: ClusterHarness, node_id: int, name: str = "t-0") -> list[str]:
    """What there is of a partition in a broker's directory."""
    return sorted(path.name for path in cluster.nodes[node_id].directory.glob(f"{name}*"))


async def make(cluster: ClusterHarness, *replicas: int, topic: str = "t") -> None:
    """A topic whose partition is placed there, with some records."""
    assert cluster.running[0].controller is not None
    await cluster.create_topic(topic, partitions=1, replicas=len(replicas), min_insync_replicas=2)
    await reassign(cluster, *replicas, topic=topic)
    await cluster.until(lambda: is_at(cluster, *replicas, topic=topic))


def is_at(cluster: ClusterHarness, *replicas: int, topic: str = "t") -> bool:
    """Whether the replicas are there, all in sync, and one of them leads."""
    one = partition(cluster, topic)
    return (
        one.replicas == replicas
        and not one.is_reassigning
        and set(one.isr) == set(replicas)
        and cluster.leads(one.leader, topic)
    )


class Writer:
    """Writes numbers with acks=all as long as it runs, retried like a client's."""

    running: ClassVar[set["Writer"]] = set()

    def __init__(self, cluster: ClusterHarness) -> None:
        self._client = ClusterClient(cluster)
        self._task = asyncio.create_task(self._write())
        self.written: list[int] = []
        self.running.add(self)
        self._is_stopped = False

    @classmethod
    async def stop_all(cls) -> None:
        """However a test ends: nothing is to write on."""
        while cls.running:
            await cls.running.pop().stop()

    async def _write(self) -> None:
        number = 0
        # A cancel may be lost in a `wait_for` whose answer has just come.
        while not self._is_stopped:

            async def attempt(number: int = number) -> None:
                client = await self._client.at(await self._client.leader("t", 0))
                await client.produce("t", b"%06d" % number + b"x" * 2000)

            await self._client.retry(attempt)
            self.written.append(number)
            number += 1

    async def reach(self, count: int) -> None:
        """Wait until so many more are acknowledged."""
        goal = len(self.written) + count
        async with asyncio.timeout(UNTIL_S):
            while len(self.written) < goal:
                assert not self._task.done(), self._task
                await asyncio.sleep(0.005)

    async def stop(self) -> None:
        self._is_stopped = True
        self._task.cancel()
        await asyncio.wait([self._task])


async def check_all_there(cluster: ClusterHarness, writer: Writer) -> None:
    """Every acknowledged record is there; the replicas are equal; nobody else has any."""
    await writer.stop()
    one = partition(cluster)
    await cluster.until(lambda: cluster.replicas_equal("t", among=one.replicas))
    client = await cluster.client(await cluster.leading("t"))
    found = [int(bytes(record.value or b"")[:6]) for record in await client.read_all("t")]
    assert set(writer.written) <= set(found)
    assert sorted(set(found)) == list(dict.fromkeys(found))
    others = set(cluster.nodes) - set(one.replicas)
    await cluster.until(lambda: all("t-0" not in folders(cluster, node) for node in others))


@pytest.mark.quick
async def test_all_replicas_move_under_load(cluster: ClusterHarness) -> None:
    """Also the leader's; their logs are deleted where they were."""
    await make(cluster, 1, 2)
    writer = Writer(cluster)
    await writer.reach(50)
    assert await reassign(cluster, 3, 4) is ErrorCode.NONE
    await cluster.until(lambda: is_at(cluster, 3, 4))
    await writer.reach(50)
    await check_all_there(cluster, writer)


@pytest.mark.parametrize("victim", ["leader", "added", "controller"])
async def test_replicas_move_while_a_broker_is_killed(cluster: ClusterHarness, victim: str) -> None:
    """What it held up goes on when it is back, or when another controller is there."""
    await make(cluster, 1, 2)
    writer = Writer(cluster)
    await writer.reach(50)
    image = cluster.broker(1).controller.image  # type: ignore[union-attr]  # started
    node_id = {
        "leader": partition(cluster).leader,
        "added": 4,
        "controller": image.controller_id,
    }[victim]
    assert await reassign(cluster, 3, 4) is ErrorCode.NONE
    await cluster.kill(node_id)
    await cluster.until(lambda: is_out(cluster, node_id))
    one = partition(cluster)
    if one.is_reassigning or node_id not in one.replicas:
        # Else the move was quicker than the kill, and one of two replicas is too few for acks=all.
        await writer.reach(50)
    await cluster.restart(node_id)
    await cluster.until(lambda: is_at(cluster, 3, 4))
    await writer.reach(20)
    await check_all_there(cluster, writer)


def is_out(cluster: ClusterHarness, node_id: int) -> bool:
    """Whether the controller has taken a killed broker out."""
    images = [b.controller.image for b in cluster.running if b.controller is not None]
    return max(images, key=lambda image: image.revision).brokers[node_id].is_fenced


async def test_cancelled_while_the_added_broker_is_away(cluster: ClusterHarness) -> None:
    """The replicas are those of before; what the new one had begun is deleted when it is back."""
    await make(cluster, 1, 2)
    writer = Writer(cluster)
    await writer.reach(20)
    await cluster.stop(4)
    assert await reassign(cluster, 3, 4) is ErrorCode.NONE
    await cluster.until(lambda: 3 in partition(cluster).isr)
    assert partition(cluster).is_reassigning
    assert await reassign(cluster) is ErrorCode.NONE
    assert partition(cluster).replicas in ((1, 2), (2, 1))
    await cluster.restart(4)
    await writer.reach(20)
    await check_all_there(cluster, writer)


async def test_a_replica_that_left_and_comes_back_begins_anew(cluster: ClusterHarness) -> None:
    """Again and again, under load: its old log is never taken for the new one."""
    await make(cluster, 1, 2)
    writer = Writer(cluster)
    for _ in range(3):
        await reassign(cluster, 1, 3)
        await cluster.until(lambda: is_at(cluster, 1, 3))
        await reassign(cluster, 1, 2)
        await writer.reach(10)
        await cluster.until(lambda: is_at(cluster, 1, 2))
    await check_all_there(cluster, writer)


async def test_a_replica_that_moved_away_while_its_broker_was_down_is_deleted(
    cluster: ClusterHarness,
) -> None:
    """The partition's record says that others have it; a log it says nothing of is set aside."""
    await make(cluster, 1, 2, 5)
    await make(cluster, 1, 2, 5, topic="gone")
    writer = Writer(cluster)
    await writer.reach(20)
    await cluster.stop(5)
    assert await reassign(cluster, 1, 2, 3) is ErrorCode.NONE
    await cluster.until(lambda: is_at(cluster, 1, 2, 3))
    await (await cluster.client(1)).delete_topic("gone")
    await cluster.restart(5)
    await cluster.until(lambda: 5 in cluster.let_in())
    await cluster.until(
        lambda: [name.rpartition("-")[2] for name in folders(cluster, 5, "gone-0")] == ["stray"]
    )
    await check_all_there(cluster, writer)
    # And it may come back.
    await reassign(cluster, 1, 2, 3, 5)
    await cluster.until(lambda: is_at(cluster, 1, 2, 3, 5))


async def test_one_replica_becomes_three_and_serves_meanwhile(cluster: ClusterHarness) -> None:
    """Although min.insync.replicas is two."""
    await make(cluster, 1)
    await cluster.stop(3)
    writer = Writer(cluster)
    await writer.reach(20)
    assert await reassign(cluster, 1, 2, 3) is ErrorCode.NONE
    await writer.reach(20)
    await cluster.restart(3)
    await cluster.until(lambda: is_at(cluster, 1, 2, 3))
    await writer.reach(20)
    await check_all_there(cluster, writer)


async def test_internal_topics_move_too(cluster: ClusterHarness) -> None:
    """A group's offsets are where its partition is led."""
    client = ClusterClient(cluster)
    await make(cluster, 1, 2)
    await client.commit("g", "t", {0: 7})
    for index in range(2):
        one = partition(cluster, "__consumer_offsets", index)
        wanted = tuple(sorted(set(cluster.nodes) - set(one.replicas)))
        replicas = (*wanted, one.replicas[0])
        assert (
            await reassign(cluster, *replicas, topic="__consumer_offsets", index=index)
            is ErrorCode.NONE
        )
        await cluster.until(
            lambda index=index: (  # type: ignore[misc]  # its own of each turn
                not partition(cluster, "__consumer_offsets", index).is_reassigning
            )
        )
    assert await client.committed("g", "t") == 7
    await client.commit("g", "t", {0: 8})
    assert await client.committed("g", "t") == 8


async def test_a_topic_deleted_while_it_moves_leaves_nothing(cluster: ClusterHarness) -> None:
    await make(cluster, 1, 2)
    await cluster.stop(4)
    await reassign(cluster, 3, 4)
    await (await cluster.client(1)).delete_topic("t")
    await cluster.until(lambda: all("t-0" not in folders(cluster, node) for node in cluster.nodes))
    await cluster.restart(4)
    await cluster.until(lambda: 4 in cluster.let_in())
    assert all(name.endswith("-delete") for name in folders(cluster, 4))


async def set_config(
    cluster: ClusterHarness, kind: ResourceType, name: str, **configs: str | None
) -> None:
    """Set what is a text, delete what is None."""
    resource = AlterConfigsResource(
        resource_type=int(kind),
        resource_name=name,
        configs=[
            AlterableConfig(
                name=key.replace("_", "."), value=value, config_operation=int(value is None)
            )
            for key, value in configs.items()
        ],
    )
    client = await cluster.client(int(name) if kind is ResourceType.BROKER else 1)
    answer = await client.call(IncrementalAlterConfigsRequest(resources=[resource]))
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


RATE = 1_000_000
RECORDS, RECORD_BYTES = 100, 500_000
"""At that rate they take twice as long as is waited for what is not held back."""
WITHOUT_RATE_S = RECORDS * RECORD_BYTES / RATE / 2


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_throttled_replica_catches_up_slowly_and_the_others_do_not_notice(
    cluster: ClusterHarness, side: str
) -> None:
    """As kafka-reassign-partitions sets it; without the rate it is there at once."""
    await make(cluster, 1, 2)
    client = await cluster.client(await cluster.leading("t"))
    for _ in range(RECORDS):
        await client.produce("t", b"x" * RECORD_BYTES)
    leader = await cluster.leading("t")
    throttled = f"0:{leader}" if side == "leader" else "0:3"
    limited = leader if side == "leader" else 3
    rate = {f"{side}_replication_throttled_rate": str(RATE)}
    await set_config(cluster, ResourceType.BROKER, str(limited), **rate)
    await set_config(
        cluster, ResourceType.TOPIC, "t", **{f"{side}_replication_throttled_replicas": throttled}
    )
    hosted = cluster.broker(limited).hosted
    assert hosted is not None
    quotas = hosted.quotas
    await cluster.until(lambda: quotas[side == "follower"].is_limited)
    began = cluster.loop.time()
    assert await reassign(cluster, 1, 2, 3) is ErrorCode.NONE
    size = 0
    while size < 3 * RATE:
        size = len(cluster.log_bytes(3, "t"))
        # Measured after the size: however long this machine pauses, it had that time.
        assert size <= RATE * (cluster.loop.time() - began + 2.0)
        await asyncio.sleep(0.05)
    assert partition(cluster).is_reassigning
    assert quotas[side == "follower"].held_back > 0
    # In sync, they are as fast as ever.
    await client.produce("t", b"x" * 100_000)
    await set_config(cluster, ResourceType.BROKER, str(limited), **dict.fromkeys(rate))
    await cluster.until(lambda: is_at(cluster, 1, 2, 3), timeout_s=WITHOUT_RATE_S)
    added = cluster.broker(3).replicas.stats["t"]
    assert added.reassignment_bytes_in >= RECORDS * RECORD_BYTES
    assert (
        cluster.broker(leader).replicas.stats["t"].reassignment_bytes_out >= RECORDS * RECORD_BYTES
    )
