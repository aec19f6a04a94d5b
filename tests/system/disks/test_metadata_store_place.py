"""Which directories are ours: the metadata store is found, or the start is refused."""

import asyncio
import errno
import os
import shutil
import sqlite3
from functools import partial
from pathlib import Path
from uuid import UUID, uuid5

import pytest
from typing_extensions import override

from broker.broker import Broker
from broker.runtime.startup_errors import StartupError
from cli.main import main
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.init_producer_id import InitProducerIdRequest
from storage.checkpoints.meta_properties import META_PROPERTIES, read_meta_properties
from storage.checkpoints.partition_metadata import PARTITION_METADATA, encode_partition_metadata
from storage.environment.filesystem import Buffer
from storage.environment.local_filesystem import LocalFilesystem
from storage.errors import DiskError
from tests.fakes.network.client import Client
from tests.system.conftest import Node, StartNode, until
from tests.unit.broker.controller.images.test_kafka_metadata import config_record, write

STORE = "varve-metadata.sqlite"
META = (
    b"#\n#Fri Nov 20 12:00:00 UTC 2026\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\nversion=1\n"
)


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "first"), str(tmp_path / "second")


def move(source: str | Path, target: str | Path) -> None:
    Path(source).rename(target)


def remove(*parts: str) -> None:
    Path(*parts).unlink()


def stores_below(path: Path) -> list[Path]:
    return list(path.glob(f"*/{STORE}*"))


def meta_text(path: str) -> str:
    return (Path(path) / META_PROPERTIES).read_text()


def without_store_key(path: str) -> None:
    """As a release before the key left it."""
    file = Path(path) / META_PROPERTIES
    lines = [line for line in file.read_text().splitlines() if "varve.metadata.store" not in line]
    file.write_text("\n".join(lines) + "\n")


async def filled(start_node: StartNode, dirs: tuple[str, ...]) -> Node:
    """A node with a topic that keeps everything, on all directories."""
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    await client.create_topic("t", 4, retention_ms=-1)
    for index in range(4):
        await client.produce("t", b"kept", partition=index)
    return node


async def check(node: Node) -> None:
    client = await node.client()
    for index in range(4):
        values = [record.value for record in await client.read_all("t", partition=index)]
        assert values == [b"kept"]
    assert (await overrides(client, "t"))["retention.ms"] == "-1"


async def overrides(client: Client, topic: str) -> dict[str, str | None]:
    """What is set on the topic itself."""
    resource = DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=None
    )
    answer = await client.call(DescribeConfigsRequest(resources=[resource]))
    return {c.name: c.value for c in answer.results[0].configs if c.config_source == 1}


def kafka_partition(log_dir: Path, name: str) -> None:
    """A partition's folder as a released Kafka leaves it, with nothing in it."""
    (log_dir / name).mkdir(parents=True)
    topic_id = uuid5(UUID(int=0), name.rpartition("-")[0])
    (log_dir / name / PARTITION_METADATA).write_bytes(encode_partition_metadata(topic_id))
    (log_dir / META_PROPERTIES).write_bytes(META)


@pytest.mark.parametrize("order", ["permuted", "new in front", "new behind"])
async def test_the_store_is_found_wherever_it_lies(
    start_node: StartNode, tmp_path: Path, dirs: tuple[str, str], order: str
) -> None:
    """The order of `log.dirs` is no fact about the data."""
    node = await filled(start_node, dirs)
    cluster_id = node.broker.cluster_id
    await node.stop()
    new = str(tmp_path / "new")
    changed = {
        "permuted": (dirs[1], dirs[0]),
        "new in front": (new, *dirs),
        "new behind": (*dirs, new),
    }[order]
    node = await start_node(log_dirs=changed)
    assert node.broker.cluster_id == cluster_id
    await check(node)
    assert {path.parent for path in stores_below(tmp_path)} == {Path(dirs[0])}


async def test_a_copy_without_the_last_block_of_producer_ids_is_refused(
    start_node: StartNode, tmp_path: Path, dirs: tuple[str, str]
) -> None:
    """It would give them out twice; who has one of another's gets answers to the other's batches.

    No image shows the blocks, and nothing else is changed by many runs of a node.
    """
    node = await filled(start_node, dirs)
    await node.stop()
    shutil.copy(Path(dirs[0], STORE), tmp_path / "copy")
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    answer = await client.call(InitProducerIdRequest(transactional_id=None))
    assert answer.error_code == 0
    await node.stop()
    shutil.copy(Path(dirs[0], STORE), tmp_path / "newest")
    shutil.copy(tmp_path / "copy", Path(dirs[0], STORE))
    with pytest.raises(StartupError, match="it is an older copy"):
        await start_node(log_dirs=dirs)
    shutil.copy(tmp_path / "newest", Path(dirs[0], STORE))
    await check(await start_node(log_dirs=dirs))


async def test_directories_name_their_store(start_node: StartNode, dirs: tuple[str, str]) -> None:
    node = await filled(start_node, dirs)
    await node.stop()
    lines = {
        line for one in dirs for line in meta_text(one).splitlines() if "metadata.store" in line
    }
    assert len(lines) == 1
    assert all("varve.metadata.store=" in meta_text(one) for one in dirs)


@pytest.mark.parametrize("named", [True, False])
async def test_a_lost_store_refuses_the_start(
    start_node: StartNode, tmp_path: Path, dirs: tuple[str, str], named: bool
) -> None:
    """A new one would give every topic default settings, and retention would empty them."""
    node = await filled(start_node, dirs)
    await node.stop()
    move(f"{dirs[0]}/{STORE}", tmp_path / "saved")
    if not named:
        for one in dirs:
            without_store_key(one)
    for order in (dirs, (dirs[1], dirs[0])):
        with pytest.raises(StartupError, match=r"metadata store.*varve dirs adopt") as refused:
            await start_node(log_dirs=order)
        assert dirs[1] in str(refused.value)
    # Nothing was made anew, and with the file back everything is there.
    assert stores_below(tmp_path) == []
    move(tmp_path / "saved", f"{dirs[1]}/{STORE}")
    await check(await start_node(log_dirs=dirs))


async def test_the_disk_with_the_store_is_not_mounted(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """An empty folder stands in its place."""
    node = await filled(start_node, dirs)
    await node.stop()
    move(dirs[0], dirs[0] + ".away")
    os.mkdir(dirs[0])
    with pytest.raises(StartupError, match="metadata store"):
        await start_node(log_dirs=dirs)
    assert os.listdir(dirs[0]) == [".lock"]
    shutil.rmtree(dirs[0])
    move(dirs[0] + ".away", dirs[0])
    await check(await start_node(log_dirs=dirs))


async def test_two_stores_refuse_the_start(start_node: StartNode, dirs: tuple[str, str]) -> None:
    """Whichever were taken, it might be the wrong one."""
    node = await filled(start_node, dirs)
    await node.stop()
    shutil.copy(Path(dirs[0], STORE), dirs[1])
    with pytest.raises(StartupError) as refused:
        await start_node(log_dirs=dirs)
    assert f"{dirs[0]}/{STORE}" in str(refused.value)
    assert f"{dirs[1]}/{STORE}" in str(refused.value)
    assert "1 topic" in str(refused.value)
    remove(dirs[1], STORE)
    await check(await start_node(log_dirs=dirs))


async def test_a_store_of_another_node_is_refused(
    start_node: StartNode, tmp_path: Path, dirs: tuple[str, str]
) -> None:
    """Also if it is of the same cluster and node id: a node that was copied, or begun twice."""
    await (await filled(start_node, dirs)).stop()
    meta = read_meta_properties(LocalFilesystem(), f"{dirs[0]}/{META_PROPERTIES}")
    assert meta is not None
    other = str(tmp_path / "other")
    await (await start_node(log_dirs=(other,), cluster_id=meta.cluster_id)).stop()
    shutil.copy(Path(dirs[0], STORE), tmp_path / "saved")
    shutil.copy(Path(other, STORE), dirs[0])
    with pytest.raises(StartupError, match="belong to another metadata store"):
        await start_node(log_dirs=dirs)
    shutil.copy(tmp_path / "saved", Path(dirs[0], STORE))
    # Nor is a directory of that other node taken in.
    remove(other, STORE)
    with pytest.raises(StartupError, match=other):
        await start_node(log_dirs=(*dirs, other))
    await check(await start_node(log_dirs=dirs))


async def test_an_empty_file_is_no_store(start_node: StartNode, dirs: tuple[str, str]) -> None:
    """SQLite would take it for a new one."""
    await (await filled(start_node, dirs)).stop()
    (Path(dirs[0]) / STORE).write_bytes(b"")
    with pytest.raises(StartupError, match="empty"):
        await start_node(log_dirs=dirs)


async def test_directories_of_a_release_before_are_upgraded(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """They lie beside their store, which says it."""
    await (await filled(start_node, dirs)).stop()
    with sqlite3.connect(Path(dirs[0], STORE)) as connection:
        for prefix in (b"store", b"directories/"):
            connection.execute(
                "DELETE FROM keys WHERE key >= ? AND key < ?", (prefix, prefix + b"~")
            )
    connection.close()
    for one in dirs:
        without_store_key(one)
    await check(await start_node(log_dirs=dirs))
    assert all("varve.metadata.store=" in meta_text(one) for one in dirs)


# -- directories that a released Kafka wrote --


async def test_kafkas_settings_under_metadata_log_dir(
    start_node: StartNode, tmp_path: Path
) -> None:
    """As many KRaft configurations have it; the store is made beside them."""
    data, metadata = tmp_path / "data", tmp_path / "metadata"
    kafka_partition(data, "events-0")
    metadata.mkdir()
    write(metadata, config_record(2, "events", "retention.ms", "-1"))
    node = await start_node(log_dirs=(str(data),), metadata_log_dir=str(metadata))
    client = await node.client()
    assert (await overrides(client, "events"))["retention.ms"] == "-1"
    assert (metadata / STORE).exists()
    assert not list(metadata.glob("events*"))
    await node.stop()
    # Without the setting it would be a new node: the directory says that it is none.
    with pytest.raises(StartupError, match="metadata store"):
        await start_node(log_dirs=(str(data),))
    await start_node(log_dirs=(str(data),), metadata_log_dir=str(metadata))


@pytest.mark.parametrize("zookeeper", [None, "zk1:2181"])
async def test_kafkas_directories_without_their_settings_are_refused(
    start_node: StartNode, tmp_path: Path, zookeeper: str | None
) -> None:
    data = tmp_path / "data"
    kafka_partition(data, "events-0")
    if zookeeper:
        (data / META_PROPERTIES).write_bytes(b"#\n#x\nbroker.id=1\nversion=0\n")
    with pytest.raises(StartupError, match="varve dirs adopt") as refused:
        await start_node(log_dirs=(str(data),), zookeeper_connect=zookeeper)
    assert ("ZooKeeper" in str(refused.value)) == bool(zookeeper)
    assert "metadata.log.dir" in str(refused.value)
    assert not (data / STORE).exists()


async def test_partitions_without_any_owner_are_not_taken_for_an_empty_directory(
    start_node: StartNode, tmp_path: Path
) -> None:
    """They would be set aside as belonging to nobody."""
    kafka_partition(tmp_path / "data", "events-0")
    (tmp_path / "data" / META_PROPERTIES).unlink()
    with pytest.raises(StartupError, match="varve dirs adopt"):
        await start_node(log_dirs=(str(tmp_path / "data"),))
    assert (tmp_path / "data" / "events-0").exists()


# -- `varve dirs adopt` --


def adopt(*dirs: str, **settings: str) -> int:
    words = [f"--set={key.replace('_', '.')}={value}" for key, value in settings.items()]
    return main(["dirs", "adopt", f"--set=log.dirs={','.join(dirs)}", *words])


async def test_a_kafkas_topics_without_settings_lose_nothing(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Neither time nor size nor compaction takes a record, until somebody says that it may."""
    data = tmp_path / "data"
    for name in ("events-0", "__consumer_offsets-0"):
        kafka_partition(data, name)
    with pytest.raises(StartupError):
        await start_node(log_dirs=(str(data),))
    assert await asyncio.to_thread(adopt, str(data)) == 0
    node = await start_node(
        log_dirs=(str(data),),
        log_retention_ms=1,
        log_retention_bytes=1,
        log_cleanup_policy=("delete", "compact"),
    )
    assert node.broker.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg"
    client = await node.client()
    assert await overrides(client, "events") == {
        "cleanup.policy": "delete",
        "retention.bytes": "-1",
        "retention.ms": "-1",
    }
    assert (await overrides(client, "__consumer_offsets"))["cleanup.policy"] == "compact"
    await client.alter_topic("events", retention_ms=5)
    assert (await overrides(client, "events"))["retention.ms"] == "5"


async def test_a_lost_store_is_made_anew_by_command(
    start_node: StartNode, dirs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Records and offsets are those from before and stay; no producer id is given out twice."""
    node = await filled(start_node, dirs)
    client = await node.client()
    cluster_id = node.broker.cluster_id
    first_id, _ = await client.init_producer_id()
    assert await asyncio.to_thread(adopt, *dirs) == 1
    assert "another" in capsys.readouterr().err
    await node.stop()
    assert await asyncio.to_thread(adopt, *dirs) == 1
    assert "nothing to adopt" in capsys.readouterr().err
    remove(dirs[0], STORE)
    assert await asyncio.to_thread(adopt, *dirs) == 0
    node = await start_node(log_dirs=dirs, log_retention_ms=1)
    assert node.broker.cluster_id == cluster_id
    await check(node)
    client = await node.client()
    assert (await client.init_producer_id())[0] > first_id + 1_000_000


async def test_what_kafka_said_long_ago_is_not_believed(
    start_node: StartNode, tmp_path: Path
) -> None:
    """A store that is lost may have known better than the metadata log from before."""
    data = tmp_path / "data"
    kafka_partition(data, "events-0")
    write(data, config_record(2, "events", "retention.ms", "7"))
    node = await start_node(log_dirs=(str(data),))
    client = await node.client()
    assert (await overrides(client, "events"))["retention.ms"] == "7"
    await client.alter_topic("events", retention_ms=-1)
    await node.stop()
    (data / STORE).unlink()
    with pytest.raises(StartupError):
        await start_node(log_dirs=(str(data),))
    assert await asyncio.to_thread(adopt, str(data)) == 0
    node = await start_node(log_dirs=(str(data),))
    assert (await overrides(await node.client(), "events"))["retention.ms"] == "-1"


# -- a first start that dies --


class DyingDisk(LocalFilesystem):
    """Stops before the n-th change, as a process that is killed would."""

    __slots__ = ("left",)

    def __init__(self, changes: int) -> None:
        super().__init__()
        self.left = changes

    def _change(self, path: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise DiskError("killed", path, errno.EIO)

    @override
    def mkdir(self, path: str) -> None:
        self._change(path)
        super().mkdir(path)

    @override
    def rename(self, source: str, target: str) -> None:
        self._change(source)
        super().rename(source, target)

    @override
    def sync_directory(self, path: str) -> None:
        self._change(path)
        super().sync_directory(path)

    @override
    def replace_bytes(self, path: str, data: Buffer) -> None:
        self._change(path)
        super().replace_bytes(path, data)


def is_decided(broker: Broker) -> bool:
    """A start that has begun has come to its end."""
    return broker.ready or broker.failed.done()


@pytest.mark.parametrize("kafka", [False, True])
async def test_a_first_start_may_die_anywhere(
    start_node: StartNode, tmp_path: Path, kafka: bool
) -> None:
    """Between the store and the directories that name it, and between two of those."""
    died = 0
    for changes in range(40):
        dirs = tuple(str(tmp_path / f"{changes}-{name}") for name in "ab")
        if kafka:
            for index, one in enumerate(dirs):
                kafka_partition(Path(one), f"events-{index}")
            write(Path(dirs[1]), config_record(2, "events", "retention.ms", "-1"))
        disk = DyingDisk(changes)
        try:
            broken = await start_node(log_dirs=dirs, filesystem=disk, wait_until_ready=False)
            # Directories also get their first checkpoint, when the start is as good as over.
            await until(partial(is_decided, broken.broker))
            died += broken.broker.failed.done()
            broken.broker._fail("killed")
            await broken.stop()
        except StartupError:
            died += 1
        node = await start_node(log_dirs=dirs)
        client = await node.client()
        if kafka:
            assert (await overrides(client, "events"))["retention.ms"] == "-1"
            assert node.broker.log_manager.stray == []
        else:
            await client.create_topic("t", 2)
        await node.stop()
        if disk.left >= 0:
            break
    assert died >= 4
    assert disk.left >= 0
