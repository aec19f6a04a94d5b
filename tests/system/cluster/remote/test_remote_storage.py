"""Remote storage shared by three brokers: leaders change, and bucket and metadata agree."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.fakes.network.client import Client
from tests.harness.brokers import ClusterHarness
from tests.system.cluster.test_failover import isr, produce, read
from tiered.maintenance import verifier
from tiered.metadata.partitioner import metadata_partition
from tiered.metadata.topic_based_manager import TopicMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition
from tiered.tasks.partition_deletion import RemoteDeletion

REMOTE: dict[str, Any] = {
    "remote_log_storage_system_enable": True,
    "remote_log_manager_task_interval_ms": 50,
    "rlmm_config_remote_log_metadata_topic_num_partitions": 3,
    "log_retention_check_interval_ms": 100,
    "log_initial_task_delay_ms": 100,
    "tier_gc_grace_ms": 0,
    "tier_worker": "inline",
}
TIERED: dict[str, Any] = {
    "remote_storage_enable": "true",
    "min_insync_replicas": 2,
    "segment_bytes": 1 << 20,
    "local_retention_bytes": 1,
    "file_delete_delay_ms": 0,
}
VALUE = b"x" * 250_000
NO_EVENT = b"no event"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    root = str(tmp_path / "bucket")
    async with ClusterHarness(tmp_path, **REMOTE, rsm_config_storage_root=root) as cluster:
        yield cluster


def values(count: int, first: int = 0) -> list[bytes]:
    """Distinct, four to a segment."""
    return [b"%08d" % number + VALUE for number in range(first, first + count)]


def objects(cluster: ClusterHarness) -> set[str]:
    """Names of segments' objects in the bucket, without their folders."""
    return {
        name
        for _, _, names in os.walk(cluster.directory / "bucket")
        for name in names
        if name.endswith((".log", ".indexes", ".rsm-manifest"))
    }


def metadata_of(cluster: ClusterHarness, node_id: int) -> TopicMetadataManager:
    remote = cluster.broker(node_id).remote
    assert remote is not None
    assert remote.metadata is not None
    return remote.metadata


def segments(
    cluster: ClusterHarness, node_id: int, topic: str = "t"
) -> list[RemoteLogSegmentMetadata]:
    """What a broker knows of the first partition; empty while it knows nothing."""
    controller = cluster.broker(node_id).controller
    assert controller is not None
    image = controller.image.topics[topic]
    partition = TopicIdPartition(image.topic_id, topic, 0)
    metadata = metadata_of(cluster, node_id)
    return list(metadata.segments(partition)) if metadata.is_ready(partition) else []


def is_copied(cluster: ClusterHarness, leader: int, topic: str = "t") -> bool:
    """Whether the leader has copied all closed segments, and what is known of each is final."""
    partition = cluster.broker(leader).replicas.leader_of(topic, 0)
    if partition is None:
        return False
    log = partition.log
    known = segments(cluster, leader, topic)
    return (
        bool(known)
        and all(one.state is SegmentState.COPY_SEGMENT_FINISHED for one in known)
        and log.highest_remote_offset + 1 >= log.segment_facts()[-1].base_offset
    )


async def steward(cluster: ClusterHarness) -> int:
    return await cluster.leading("__remote_log_metadata", 0)


def stewards_of(cluster: ClusterHarness) -> set[int]:
    """Brokers that take themselves for it."""
    ids = {broker.settings.node_id for broker in cluster.running}
    return {node_id for node_id in ids if metadata_of(cluster, node_id).is_steward}


async def expect_bucket_is_metadata(cluster: ClusterHarness, topic: str = "t") -> None:
    """I14: after garbage collection nothing is orphaned, nothing missing."""
    leader = await cluster.leading(topic)
    await cluster.until(lambda: is_copied(cluster, leader, topic))
    home = await steward(cluster)
    manager = cluster.broker(home).remote.manager  # type: ignore[union-attr]  # it has started
    assert manager is not None
    ids = {str(one.id) for one in segments(cluster, leader, topic)}
    # Who collects may have heard of less than the leader.
    await cluster.until(lambda: {str(one.id) for one in segments(cluster, home, topic)} == ids)
    await asyncio.sleep(0.01)
    report = await manager.collect_garbage()
    assert report.missing_segments == 0, report
    assert report.unknown_copies == 0, report
    assert report.hidden_objects == 0, report
    assert len(objects(cluster)) == 3 * len(ids), (objects(cluster), ids)


async def test_every_broker_learns_what_the_leader_has_copied(cluster: ClusterHarness) -> None:
    """Three replicas of the metadata, too; local segments go on followers as on the leader."""
    await cluster.create_topic("t", replicas=3, **TIERED)
    sent = values(20)
    await produce(cluster, "t", *sent)
    leader = await cluster.leading("t")
    await cluster.until(lambda: is_copied(cluster, leader))
    copied = {one.id for one in segments(cluster, leader)}
    for node_id in cluster.nodes:
        await cluster.until(lambda: {one.id for one in segments(cluster, node_id)} == copied)  # noqa: B023  the loop waits for it
        log = cluster.broker(node_id).replicas.log_of("t", 0)
        assert log is not None
        await cluster.until(lambda: log.local_log_start_offset > 0)  # noqa: B023  the loop waits for it
    image = cluster.broker(leader).controller.image  # type: ignore[union-attr]  # it has started
    for partition in image.topics["__remote_log_metadata"].partitions:
        assert len(partition.replicas) == 3
    assert await read(cluster, "t") == sent
    await expect_bucket_is_metadata(cluster)


async def test_a_killed_leader_costs_nothing_of_remote_storage(cluster: ClusterHarness) -> None:
    """Each broker is killed once while it leads; then all is read from the first offset on."""
    await cluster.create_topic("t", replicas=3, **{**TIERED, "local_retention_bytes": 5 << 20})
    sent = values(30)
    await produce(cluster, "t", *sent)
    for _ in range(3):
        await cluster.until(lambda: isr(cluster, "t") == set(cluster.nodes))
        leader = await cluster.leading("t")
        await cluster.kill(leader, revoke=True)
        more = values(8, len(sent))
        sent += more
        await produce(cluster, "t", *more)
        await cluster.restart(leader)
        await cluster.until(lambda: cluster.let_in() == set(cluster.nodes))
    assert await read(cluster, "t") == sent
    await expect_bucket_is_metadata(cluster)


async def delete_topic(cluster: ClusterHarness, topic: str) -> None:
    client = await cluster.client(cluster.running[0].settings.node_id)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=30_000)
    (result,) = (await client.call(request)).responses
    assert result.error_code == 0, result


def metadata_leader(cluster: ClusterHarness, topic: str) -> int:
    """Which broker sees the deletion of a topic's first partition through."""
    controller = cluster.running[0].controller
    assert controller is not None
    image = controller.image
    partition = TopicIdPartition(image.topics[topic].topic_id, topic, 0)
    count = len(image.topics["__remote_log_metadata"].partitions)
    return cluster.leader_of("__remote_log_metadata", metadata_partition(partition, count))


@pytest.mark.parametrize("dies", [False, True])
async def test_a_deleted_topics_objects_go_once_and_for_all(
    cluster: ClusterHarness, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """Also when the broker dies that has begun with it: its metadata partition's next leader."""
    await cluster.create_topic("t", replicas=3, **TIERED)
    await produce(cluster, "t", *values(12))
    leader = await cluster.leading("t")
    await cluster.until(lambda: is_copied(cluster, leader))
    assert objects(cluster)
    worker = metadata_leader(cluster, "t")
    if dies:
        # What it is at when it dies: it has published that it begins, and removed nothing.
        manager = cluster.broker(worker).remote.manager  # type: ignore[union-attr]  # it has started
        assert manager is not None

        dying, remove = manager._roles._deletion, RemoteDeletion._remove_segments

        async def remove_or_hang(self: RemoteDeletion, partition: TopicIdPartition) -> None:
            if self is dying:
                await asyncio.Event().wait()
            await remove(self, partition)

        monkeypatch.setattr(RemoteDeletion, "_remove_segments", remove_or_hang)
    await delete_topic(cluster, "t")
    if dies:
        deletions = metadata_of(cluster, worker).deletions
        await cluster.until(lambda: len(deletions()) == 1)
        await cluster.kill(worker, revoke=True)
    await cluster.until(lambda: not objects(cluster))
    for broker in cluster.running:
        metadata = metadata_of(cluster, broker.settings.node_id)
        await cluster.until(lambda: not metadata.deletions())  # noqa: B023  the loop waits for it


async def test_the_leader_of_the_metadata_may_die_while_segments_are_copied(
    cluster: ClusterHarness,
) -> None:
    """Events are there once, whichever broker has them in the end; copying goes on."""
    topic = {**TIERED, "local_retention_bytes": 100 << 20}
    await cluster.create_topic("t", replicas=3, **topic)
    sent = values(4)
    await produce(cluster, "t", *sent)
    for _ in range(3):
        await cluster.until(
            lambda: (
                isr(cluster, "t") == set(cluster.nodes)
                and isr(cluster, "__remote_log_metadata") == set(cluster.nodes)
            )
        )
        worker = metadata_leader(cluster, "t")
        more = values(12, len(sent))
        sent += more
        await produce(cluster, "t", *more)
        await cluster.kill(worker, revoke=True)
        await cluster.restart(worker)
        await cluster.until(lambda: cluster.let_in() == set(cluster.nodes))
    assert await read(cluster, "t") == sent
    await expect_bucket_is_metadata(cluster)


async def test_the_metadata_waits_for_as_many_brokers_as_it_is_to_have(tmp_path: Path) -> None:
    """Made with fewer replicas it would stay so for ever."""
    settings = {**REMOTE, "rsm_config_storage_root": str(tmp_path / "bucket")}
    async with ClusterHarness(tmp_path, brokers=2, **settings) as cluster:
        await cluster.create_topic("t", replicas=2, **{**TIERED, "min_insync_replicas": 1})
        await produce(cluster, "t", *values(8))
        await asyncio.sleep(0.5)
        controller = cluster.broker(1).controller
        assert controller is not None
        assert "__remote_log_metadata" not in controller.image.topics
        assert not objects(cluster)
        log = cluster.broker(await cluster.leading("t")).replicas.log_of("t", 0)
        assert log is not None
        assert log.local_log_start_offset == 0, "what is not copied stays"


async def test_a_bucket_of_another_cluster_loses_nothing(tmp_path: Path) -> None:
    root = str(tmp_path / "bucket")
    ours: dict[str, Any] = {**REMOTE, "rsm_config_storage_root": root}
    async with ClusterHarness(tmp_path / "first", **ours) as first:
        await first.create_topic("t", replicas=3, **TIERED)
        await produce(first, "t", *values(12))
        leader = await first.leading("t")
        await first.until(lambda: is_copied(first, leader))
        before = set((tmp_path / "bucket").rglob("*.log"))
        async with ClusterHarness(tmp_path / "second", **ours) as second:
            await second.create_topic("t", replicas=3, **TIERED)
            await produce(second, "t", *values(12))
            node_id = await steward(second)
            manager = second.broker(node_id).remote.manager  # type: ignore[union-attr]  # it has started
            assert manager is not None
            report = await manager.collect_garbage()
            assert not report.is_ours
            await delete_topic(second, "t")
            await asyncio.sleep(0.5)
        assert before <= set((tmp_path / "bucket").rglob("*.log"))
        assert await read(first, "t") == values(12)


@pytest.mark.parametrize("snapshots", ["local", "bucket"])
async def test_metadata_is_whole_after_restarts_of_one_and_of_all(
    tmp_path: Path, snapshots: str
) -> None:
    """A replica's high watermark is older than its snapshots then: nothing is lost all the same."""
    settings = {
        **REMOTE,
        "rsm_config_storage_root": str(tmp_path / "bucket"),
        "tier_metadata_snapshots": snapshots,
    }
    async with ClusterHarness(tmp_path, **settings) as cluster:
        await cluster.create_topic("t", replicas=3, **TIERED)
        sent = values(12)
        await produce(cluster, "t", *sent)
        leader = await cluster.leading("t")
        await cluster.until(lambda: is_copied(cluster, leader))
        for node_id in cluster.nodes:
            await cluster.stop(node_id)
            await cluster.restart(node_id)
            await cluster.until(lambda: cluster.let_in() == set(cluster.nodes))
            more = values(4, len(sent))
            sent += more
            await produce(cluster, "t", *more)
        for node_id in cluster.nodes:
            await cluster.kill(node_id)
        for node_id in cluster.nodes:
            await cluster.restart(node_id)
        await cluster.until(lambda: cluster.let_in() == set(cluster.nodes))
        assert await read(cluster, "t") == sent
        await expect_bucket_is_metadata(cluster)
        for node_id in cluster.nodes:
            assert list(metadata_of(cluster, node_id).losses()) == []


async def test_a_broker_without_a_replica_of_the_metadata_reads_it_from_the_leader(
    tmp_path: Path,
) -> None:
    """In a large cluster most brokers have none."""
    settings = {
        **REMOTE,
        "rsm_config_storage_root": str(tmp_path / "bucket"),
        "rlmm_config_remote_log_metadata_topic_num_partitions": 1,
        "rlmm_config_remote_log_metadata_topic_replication_factor": 1,
    }
    async with ClusterHarness(tmp_path, **settings) as cluster:
        await cluster.create_topic("t", replicas=3, **TIERED)
        sent = values(12)
        await produce(cluster, "t", *sent)
        leader = await cluster.leading("t")
        await cluster.until(lambda: is_copied(cluster, leader))
        (home,) = {await cluster.leading("__remote_log_metadata")}
        for node_id in set(cluster.nodes) - {home}:
            assert cluster.broker(node_id).replicas.replica_of("__remote_log_metadata", 0) is None
        copied = {one.id for one in segments(cluster, leader)}
        for node_id in cluster.nodes:
            await cluster.until(lambda: {one.id for one in segments(cluster, node_id)} == copied)  # noqa: B023  the loop waits for it
        if leader == home:
            # Then one that reads it from afar leads: it publishes from there, too.
            await cluster.stop(leader)
            await cluster.restart(leader)
            leader = await cluster.leading("t")
        more = values(12, len(sent))
        sent += more
        await produce(cluster, "t", *more)
        await cluster.until(lambda: is_copied(cluster, leader))
        assert await read(cluster, "t") == sent
        await expect_bucket_is_metadata(cluster)


async def test_each_segment_is_verified_once_a_round_whoever_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaders of partitions and of the metadata die meanwhile; the round goes on at the next."""
    monkeypatch.setattr(verifier, "SAVE_MS", 0.0)
    settings = {
        **REMOTE,
        "rsm_config_storage_root": str(tmp_path / "bucket"),
        "tier_verify_bytes_per_second": 1 << 40,
    }
    async with ClusterHarness(tmp_path, **settings) as cluster:
        topics = ["a", "b", "c"]
        for topic in topics:
            await cluster.create_topic(topic, replicas=2, **{**TIERED, "min_insync_replicas": 1})
            await produce(cluster, topic, *values(16))
        for topic in topics:
            leader = await cluster.leading(topic)
            await cluster.until(lambda: is_copied(cluster, leader, topic))  # noqa: B023  the loop waits for it
        wanted = {
            one.id
            for topic in topics
            for one in segments(cluster, await cluster.leading(topic), topic)
        }
        assert len(wanted) >= 9
        read_again: list[UUID] = []
        verify = verifier.Verifier.verify

        async def note(self: verifier.Verifier, segment: RemoteLogSegmentMetadata) -> Any:
            read_again.append(segment.id)
            faults = await verify(self, segment)
            assert not faults
            return faults

        monkeypatch.setattr(verifier.Verifier, "verify", note)
        stewards = set()
        while len(read_again) < 2 * len(wanted):
            node_id = await steward(cluster)
            metadata = metadata_of(cluster, node_id)
            # It hears of its election and of another's after the broker that leads.
            await cluster.until(
                lambda: (
                    metadata.is_complete  # noqa: B023  the loop waits for it
                    and stewards_of(cluster) == {node_id}  # noqa: B023  likewise
                )
            )
            for broker in cluster.running:
                manager = broker.remote.manager  # type: ignore[union-attr]  # it has started
                assert manager is not None
                count = len(read_again)
                if manager._chores.may_verify():
                    await manager.verifier.run_once()
                    stewards.add(broker.settings.node_id)
                assert (len(read_again) > count) == (broker.settings.node_id == node_id)
            if len(read_again) % 6 == 3:
                await cluster.kill(node_id, revoke=True)
                await steward(cluster)
                await cluster.restart(node_id)
                await cluster.until(
                    lambda: (
                        cluster.let_in() == set(cluster.nodes)
                        and isr(cluster, "__remote_log_metadata") == set(cluster.nodes)
                    )
                )
        assert len(stewards) > 1
        assert sorted(read_again[: len(wanted)]) == sorted(wanted)
        assert sorted(read_again[len(wanted) :]) == sorted(wanted)


async def test_a_client_named_as_a_broker_writes_no_metadata(cluster: ClusterHarness) -> None:
    """INVALID_TOPIC_EXCEPTION on the listener that it shares with brokers; nothing is written."""
    await cluster.create_topic("t", replicas=3, **TIERED)
    await produce(cluster, "t", *values(8))
    leader = await cluster.leading("t")
    await cluster.until(lambda: is_copied(cluster, leader))
    home = await steward(cluster)
    other = next(node_id for node_id in cluster.nodes if node_id != home)
    epoch = cluster.broker(home).controller.image.brokers[other].epoch  # type: ignore[union-attr]  # it has started
    for name, code in (
        (f"broker-{other}", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (f"broker-{other}-{epoch - 1}", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__admin_client", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (f"broker-{other}-{epoch}", ErrorCode.NONE),
    ):
        before = await written_by_hand(cluster, home)
        assert await write_metadata(cluster, home, name) is code, name
        assert await written_by_hand(cluster, home) == before + (code is ErrorCode.NONE)


async def test_a_fenced_broker_writes_no_metadata(cluster: ClusterHarness) -> None:
    """It was cut off and replaced; what it meant to say before is refused until it is back."""
    await cluster.create_topic("t", replicas=3, **TIERED)
    await produce(cluster, "t", *values(8))
    leader = await cluster.leading("t")
    await cluster.until(lambda: is_copied(cluster, leader))
    home = await steward(cluster)
    other = next(node_id for node_id in cluster.nodes if node_id != home)
    controller = cluster.broker(home).controller
    assert controller is not None
    epoch = controller.image.brokers[other].epoch
    name = f"broker-{other}-{epoch}"
    cluster.cut_from_store(other)
    await cluster.until(lambda: controller.image.brokers[other].is_fenced)
    assert await steward(cluster) == home
    refused = await write_metadata(cluster, home, name)
    assert refused is ErrorCode.INVALID_TOPIC_EXCEPTION
    cluster.heal()
    await cluster.until(lambda: cluster.let_in() == set(cluster.nodes))


async def written_by_hand(cluster: ClusterHarness, home: int) -> int:
    """How many such records there are, among what brokers write."""
    client = await cluster.client(home)
    found = await client.read_all("__remote_log_metadata")
    return sum(record.value == NO_EVENT for record in found)


async def write_metadata(cluster: ClusterHarness, home: int, client_id: str) -> ErrorCode:
    """What the leader of the first metadata partition answers to a record that is no event."""
    async with await Client.connect("127.0.0.1", cluster.nodes[home].port, client_id) as client:
        data = PartitionProduceData(
            index=0, records=bytearray(build_batch([(None, NO_EVENT, (), 0)]))
        )
        topic = TopicProduceData(name="__remote_log_metadata", partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        answer = await client.call(request, 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)
