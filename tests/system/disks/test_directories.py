"""Several `log.dirs`: where partitions go, and what is left when a disk fails."""

import asyncio
import logging
from collections import Counter
from pathlib import Path

import pytest

from broker import app
from broker.broker import Broker
from broker.runtime.startup_errors import StartupError
from config.broker import BrokerConfig
from config.load import LoadedConfig
from protocol.error_codes import ErrorCode
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.records.batch import crc32c
from protocol.records.builder import build_batch
from tests.fakes.network.client import Client
from tests.fakes.storage.failing_disk import FailingDisk
from tests.system.conftest import SETTINGS, Node, StartNode, until

STORAGE = {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER}


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[str, str]:
    """The first holds the metadata store."""
    return str(tmp_path / "first"), str(tmp_path / "second")


async def placed(client: Client) -> dict[tuple[str, int], str]:
    """Which partition is in which directory."""
    answer = await client.call(DescribeLogDirsRequest(topics=None))
    return {
        (topic.name, partition.partition_index): result.log_dir
        for result in answer.results
        for topic in result.topics
        for partition in topic.partitions
    }


async def leaderless(client: Client, topic: str) -> list[int]:
    """Partitions without a leader, as Metadata and DescribeTopicPartitions both say."""
    metadata = await client.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    asked = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)])
    described = await client.call(asked)
    found = [one for one in metadata.topics[0].partitions if one.leader_id < 0]
    assert all(one.offline_replicas == one.replica_nodes for one in found)
    indexes = [one.partition_index for one in found]
    same = [one.partition_index for one in described.topics[0].partitions if one.leader_id < 0]
    assert indexes == same
    return indexes


async def uncoordinated(node: Node) -> set[str]:
    """Partitions that /readyz names because nobody coordinates what they hold."""
    _, text = await node.page("/readyz")
    words = [line.split(": ") for line in text.splitlines()]
    return {subject for kind, subject, *_ in words[1:] if kind == "coordinator-unavailable"}


async def test_new_partitions_go_where_the_fewest_are(
    start_node: StartNode, tmp_path: Path, dirs: tuple[str, str]
) -> None:
    """Also when one directory is new: it fills up before the others get more."""
    first = await start_node(log_dirs=dirs)
    client = await first.client()
    await client.create_topic("even", 4)
    assert Counter((await placed(client)).values()) == {dirs[0]: 2, dirs[1]: 2}
    await first.stop()
    third = str(tmp_path / "third")
    second = await start_node(log_dirs=(*dirs, third))
    client = await second.client()
    await client.create_topic("more", 2)
    assert Counter((await placed(client)).values()) == {dirs[0]: 2, dirs[1]: 2, third: 2}
    await client.create_topic("rest", 3)
    assert Counter((await placed(client)).values()) == {dirs[0]: 3, dirs[1]: 3, third: 3}
    for index in range(4):
        assert await client.produce("even", b"v", partition=index) == 0


@pytest.mark.parametrize("kind", ["write", "sync"])
async def test_one_failed_directory_leaves_the_others(
    start_node: StartNode, dirs: tuple[str, str], kind: str
) -> None:
    """Its partitions refuse with an error worth a retry; the rest produce and consume."""
    disk = FailingDisk()
    node = await start_node(filesystem=disk, log_dirs=dirs)
    client = await node.client()
    await client.create_topic("t", 4, flush_messages=1)
    places = await placed(client)
    bad = [index for (_, index), path in places.items() if path == dirs[1]]
    good = [index for (_, index), path in places.items() if path == dirs[0]]
    for index in range(4):
        await client.produce("t", b"before", partition=index)
    parked = client.start_fetch("t", 1, partition=bad[0], max_wait_ms=60_000)
    other = await node.client()
    disk.break_directory(dirs[1], kind)

    refused = await other.try_produce("t", [(None, b"lost")], partition=bad[0])
    assert refused.error_code in STORAGE
    assert ErrorCode(refused.error_code).retriable
    assert refused.base_offset == -1
    # Who waits for more from there is told, not left to wait.
    waited = await asyncio.wait_for(parked, 30)
    assert waited.responses[0].partitions[0].error_code in STORAGE
    for index in bad:
        assert (await other.try_produce("t", [(None, b"x")], partition=index)).error_code in STORAGE
        assert (await other.fetch("t", 0, partition=index)).error in STORAGE
    for index in good:
        assert await other.produce("t", b"after", partition=index) == 1
        values = [record.value for record in await other.read_all("t", partition=index)]
        assert values == [b"before", b"after"]

    # Producers without keys pass over them, and tools name them.
    assert await leaderless(other, "t") == bad

    metrics = await node.metrics()
    assert metrics.of("kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert metrics.of("kafka_server_replicamanager_offlinereplicacount") == len(bad)
    assert metrics.of("varve_alerts", kind="directory-offline") == 1
    status, text = await node.page("/readyz")
    assert status == 200
    assert text.startswith(f"ready\ndirectory-offline: {dirs[1]}: I/O error")
    codes = {
        r.log_dir: r.error_code
        for r in (await other.call(DescribeLogDirsRequest(topics=None))).results
    }
    assert codes[dirs[1]] == ErrorCode.KAFKA_STORAGE_ERROR
    assert codes[dirs[0]] == ErrorCode.NONE
    # New topics go to what is left; topics with partitions on the failed disk can be deleted.
    await other.create_topic("new", 2)
    assert {path for (topic, _), path in (await placed(other)).items() if topic == "new"} == {
        dirs[0]
    }
    await other.delete_topic("t")
    assert not node.broker.failed.done()


async def test_topics_of_a_failed_directory_can_be_made_anew(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """Deleted and created again, all partitions are on the disks that are left."""
    disk = FailingDisk()
    node = await start_node(filesystem=disk, log_dirs=dirs)
    client = await node.client()
    await client.create_topic("t", 4)
    places = await placed(client)
    disk.break_directory(dirs[1])
    bad = next(index for (_, index), path in places.items() if path == dirs[1])
    assert (await client.try_produce("t", [(None, b"x")], partition=bad)).error_code in STORAGE
    await client.delete_topic("t")
    await client.create_topic("t", 4)
    for index in range(4):
        assert await client.produce("t", b"anew", partition=index) == 0


async def test_what_the_failed_disk_had_is_back_after_repair(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """Records acknowledged before the failure are there; the directory was not marked clean."""
    disk = FailingDisk()
    node = await start_node(filesystem=disk, log_dirs=dirs)
    client = await node.client()
    await client.create_topic("t", 2)
    for index in range(2):
        await client.produce("t", b"kept", partition=index)
    bad = next(index for (_, index), path in (await placed(client)).items() if path == dirs[1])
    disk.break_directory(dirs[1])
    refused = await client.try_produce("t", [(None, b"lost")], partition=bad)
    assert refused.error_code in STORAGE
    await node.stop()
    assert (Path(dirs[0]) / ".kafka_cleanshutdown").exists()
    assert not (Path(dirs[1]) / ".kafka_cleanshutdown").exists()
    repaired = await start_node(log_dirs=dirs)
    client = await repaired.client()
    for index in range(2):
        values = [record.value for record in await client.read_all("t", partition=index)]
        assert values == [b"kept"]
        assert await client.produce("t", b"more", partition=index) == 1


async def test_groups_whose_offsets_were_on_the_failed_disk_move_away(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """Their coordinator says that it is none; groups on the other disk go on."""
    disk = FailingDisk()
    node = await start_node(filesystem=disk, log_dirs=dirs, offsets_topic_num_partitions=2)
    client = await node.client()
    await client.create_topic("t", 2)
    groups = {}
    for number in range(20):
        group = f"group-{number}"
        await client.commit(group, "t", {0: number})
        assert node.broker.groups is not None
        groups[group] = node.broker.groups.partition_for(group)
    places = await placed(client)
    bad = {i for (topic, i), path in places.items() if topic.startswith("__") and path == dirs[1]}
    assert len(bad) == 1
    disk.break_directory(dirs[1])
    index = next(i for (topic, i), path in places.items() if topic == "t" and path == dirs[1])
    assert (await client.try_produce("t", [(None, b"x")], partition=index)).error_code in STORAGE
    await until(lambda: bool(node.broker.log_manager.offline_directories))
    for number, (group, partition) in enumerate(groups.items()):
        code, offset = await client.try_committed(group, "t")
        if partition in bad:
            assert code in {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
        else:
            assert (code, offset) == (0, number)
    (lost,) = bad
    assert await uncoordinated(node) == {f"__consumer_offsets-{lost}"}
    assert (await node.metrics()).of("varve_group_coordinator_unavailable_partitions") == 1
    await node.stop()
    # Nor does a start change anything, until the disk is back.
    again = await start_node(filesystem=disk, log_dirs=dirs, offsets_topic_num_partitions=2)
    assert await uncoordinated(again) == {f"__consumer_offsets-{lost}"}
    await again.stop()
    mended = await start_node(log_dirs=dirs, offsets_topic_num_partitions=2)
    assert await uncoordinated(mended) == set()
    client = await mended.client()
    for number, group in enumerate(groups):
        assert await client.try_committed(group, "t") == (0, number)


@pytest.mark.parametrize(
    ("topic", "metric"),
    [
        ("__consumer_offsets", "varve_group_coordinator_unavailable_partitions"),
        ("__transaction_state", "varve_transaction_coordinator_unavailable_partitions"),
        ("__share_group_state", "varve_share_coordinator_unavailable_partitions"),
    ],
)
async def test_a_coordinators_partition_that_cannot_be_read_is_told(
    start_node: StartNode, tmp_path: Path, topic: str, metric: str
) -> None:
    """It is served, but what lies in it is no state: the operator hears of it until it is gone."""
    settings = {
        "transaction_state_log_num_partitions": 1,
        "offsets_topic_num_partitions": 1,
        "share_coordinator_state_topic_num_partitions": 1,
    }
    node = await start_node(**settings)
    assert node.broker.controller is not None
    await node.broker.controller.ensure_internal_topic(topic)
    await node.stop()
    # A batch that is whole, of a compression that nobody can undo.
    batch = build_batch([(b"k", b"v", (), 0)])
    batch[22] = 4
    batch[61:] = b"\xff" * (len(batch) - 61)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    path = tmp_path / "data" / f"{topic}-0" / "00000000000000000000.log"
    path.write_bytes(bytes(batch))
    (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
    again = await start_node(**settings)
    assert await uncoordinated(again) == {f"{topic}-0"}
    assert (await again.metrics()).of(metric) == 1
    assert (await again.page("/readyz"))[0] == 200
    client = await again.client()
    await client.delete_topic(topic)
    assert await uncoordinated(again) == set()
    assert (await again.metrics()).of(metric) == 0


async def test_a_directory_that_does_not_work_at_the_start(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """The others serve."""
    disk = FailingDisk()
    disk.break_directory(dirs[1])
    node = await start_node(filesystem=disk, log_dirs=dirs)
    client = await node.client()
    await client.create_topic("t", 2)
    assert set((await placed(client)).values()) == {dirs[0]}
    assert (await node.metrics()).of("kafka_log_logmanager_offlinelogdirectorycount") == 1


async def test_what_an_absent_disk_holds_is_not_made_anew(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """Empty logs elsewhere would look as if the records had never been; they come back with it."""
    first = await start_node(log_dirs=dirs)
    client = await first.client()
    await client.create_topic("t", 4)
    for index in range(4):
        await client.produce("t", b"kept", partition=index)
    bad = [index for (_, index), path in (await placed(client)).items() if path == dirs[1]]
    await first.stop()

    disk = FailingDisk()
    disk.break_directory(dirs[1])
    second = await start_node(filesystem=disk, log_dirs=dirs)
    client = await second.client()
    for index in bad:
        assert (
            await client.try_produce("t", [(None, b"x")], partition=index)
        ).error_code in STORAGE
    assert await leaderless(client, "t") == bad
    # Neither by the topic growing; the new partitions are where there is a disk.
    grown = CreatePartitionsTopic(name="t", count=6, assignments=None)
    answer = await client.call(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000))
    assert answer.results[0].error_code == 0
    for index in (4, 5):
        assert await client.produce("t", b"kept", partition=index) == 0
    for index in bad:
        assert (await client.fetch("t", 0, partition=index)).error in STORAGE
    assert (await second.metrics()).of("kafka_server_replicamanager_offlinereplicacount") == 2
    await second.stop()

    third = await start_node(log_dirs=dirs)
    client = await third.client()
    for index in range(6):
        values = [record.value for record in await client.read_all("t", partition=index)]
        assert values == [b"kept"], index
    assert await leaderless(client, "t") == []


@pytest.mark.parametrize("kind", ["mkdir", "write"])
async def test_the_first_disk_must_work_at_the_start(
    start_node: StartNode, dirs: tuple[str, str], kind: str
) -> None:
    """It holds the metadata store: better no start than one on half of a disk."""
    disk = FailingDisk()
    disk.break_directory(dirs[0], kind)
    with pytest.raises(StartupError, match=dirs[0]):
        await start_node(filesystem=disk, log_dirs=dirs)
    # Nothing is left locked.
    await start_node(log_dirs=dirs)


async def test_losing_the_metadata_store_ends_the_broker(
    dirs: tuple[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first directory holds it. Exit 1, and the last line says which disk."""
    disk = FailingDisk()
    brokers: list[Broker] = []

    def make(settings: BrokerConfig, **_: object) -> Broker:
        brokers.append(Broker(settings, filesystem=disk))
        return brokers[0]

    monkeypatch.setattr(app, "Broker", make)
    settings = BrokerConfig().replace(**{**SETTINGS, "log_dirs": dirs})
    with caplog.at_level(logging.ERROR):
        running = asyncio.create_task(app.serve(LoadedConfig(settings, (), ())))
        await until(lambda: bool(brokers) and brokers[0].ready)
        client = await Client.connect("127.0.0.1", brokers[0].addresses[0][2])
        await client.create_topic("t", 2)
        places = await placed(client)
        index = next(i for (_, i), path in places.items() if path == dirs[0])
        disk.break_directory(dirs[0])
        refused = await client.try_produce("t", [(None, b"x")], partition=index)
        assert refused.error_code in STORAGE
        assert await asyncio.wait_for(running, 15) == app.EXIT_FAILED
    await client.close()
    assert dirs[0] in caplog.messages[-1]
    assert "metadata store" in caplog.messages[-1]
    assert not (Path(dirs[0]) / ".kafka_cleanshutdown").exists()
