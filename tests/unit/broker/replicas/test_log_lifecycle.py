"""The logs follow the cluster's image: at a start, and with every change."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.controller.controller import Controller
from broker.controller.images.metadata_records import ConfigResource, ResourceType
from broker.controller.topics.topics import NewPartitions, NewTopic
from broker.membership.membership import SoleMembership
from broker.replicas import log_lifecycle
from broker.replicas.log_lifecycle import LogLifecycle
from broker.replicas.replica_manager import ReplicaManager
from broker.replicas.role_reconciler import NoFetchers, RoleReconciler
from broker.runtime.disk import Disk
from protocol.error_codes import ErrorCode
from storage.environment.environment import Environment
from storage.environment.filesystem import DirEntry
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.controller import open_controller
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.broker.role_listener import RoleListenerOfTests
from tests.fakes.clock import ManualClock
from tests.fakes.storage.failing_disk import FailingDisk
from tests.fakes.timer import ManualTimer
from tests.unit.broker.world import batch

NOW_MS = 1_700_000_000_000


class Node:
    """Controller, logs and partitions; no network."""

    def __init__(self, directories: list[Path], controller: Controller) -> None:
        clock = ManualClock()
        self.controller = controller
        self.filesystem = FailingDisk()
        self.pool = Disk(2)
        self.logs = LogManager(
            Environment.without_loop(
                filesystem=self.filesystem, clock=clock, randomness=SeededRandomness(1)
            ),
            [str(path) for path in directories],
        )
        self.logs.startup.open_directories()
        self.logs.startup.claim(controller.image.cluster_id, 1)
        self.replicas = ReplicaManager(
            clock=clock,
            timer=ManualTimer(clock),
            disk=self.pool,
            loop=asyncio.get_running_loop(),
        )
        self.listener = RoleListenerOfTests()
        self.served = self.listener.elected
        self.roles = RoleReconciler(
            controller.settings.node_id,
            image=lambda: controller.image,
            membership=SoleMembership(controller.settings.node_id, controller.advertise),
            replicas=self.replicas,
            listener=self.listener,
            fetchers=NoFetchers(),
            call_soon=asyncio.get_running_loop().call_soon,
            clock=clock,
        )
        self.lifecycle = LogLifecycle(
            controller=controller,
            log_manager=self.logs,
            replicas=self.replicas,
            roles=self.roles,
            disk=self.pool,
        )
        controller.subscribe_now(self.roles.apply)
        controller.subscribe(self.lifecycle.apply)

    async def start(self) -> None:
        await self.lifecycle.load(2)

    def log(self, topic: str, index: int = 0) -> Log:
        partition = self.replicas.replica_of(topic, index)
        assert partition is not None, f"{topic}-{index} is not served"
        return partition.log

    def append(self, topic: str, index: int = 0) -> int:
        """Write a record; returns its offset."""
        partition = self.replicas.replica_of(topic, index)
        assert partition is not None
        return partition.append(memoryview(batch(b"v")), NOW_MS).first_offset

    async def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        settings = [(key.replace("_", "."), value) for key, value in configs.items()]
        (result,) = await self.controller.create_topics(
            [NewTopic(name, partitions, 1, configs=settings)]
        )
        assert result.error is ErrorCode.NONE

    async def delete(self, name: str) -> None:
        await self.controller.delete_topics([self.controller.image.topics[name].topic_id])

    async def alter(self, kind: ResourceType, name: str, **configs: str) -> None:
        resource = ConfigResource(kind, name)
        settings: dict[str, Any] = {k.replace("_", "."): v for k, v in configs.items()}
        results = await self.controller.alter_configs({resource: settings})
        assert results[resource].error is ErrorCode.NONE

    def close(self) -> None:
        self.logs.shutdown()
        self.pool.close()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def nodes(tmp_path: Path, store: MemoryStore) -> AsyncIterator[Any]:
    """Make a node on some directories, over the same metadata; the one before is stopped."""
    made: list[Node] = []

    async def make(*directories: str) -> Node:
        if made:
            made.pop().close()
        paths = [tmp_path / name for name in directories or ("data",)]
        made.append(
            Node(paths, await open_controller(store, remote_log_storage_system_enable=True))
        )
        return made[-1]

    yield make
    for node in made:
        node.close()


@pytest.fixture
async def node(nodes: Any) -> Node:
    """Started, with nothing in it."""
    made: Node = await nodes()
    await made.start()
    return made


async def test_a_created_topic_can_be_written_when_it_is_answered(node: Node) -> None:
    """And whoever wants to know of partitions that serve is told."""
    await node.create("t", 2)
    assert [node.append("t", index) for index in (0, 1)] == [0, 0]
    assert node.served == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert node.log("t").topic_id == node.controller.image.topics["t"].topic_id


async def test_more_partitions_leave_the_others_alone(node: Node) -> None:
    await node.create("t", 1)
    before = node.replicas.replica_of("t", 0)
    await node.controller.create_partitions([NewPartitions("t", 3)])
    assert node.replicas.replica_of("t", 0) is before
    assert [node.append("t", index) for index in range(3)] == [0, 0, 0]
    assert len(node.served) == 3


async def test_settings_reach_the_logs_of_their_topic(node: Node) -> None:
    """All its partitions; other topics keep the very same object."""
    await node.create("t", 2, retention_ms="1000")
    await node.create("other")
    other = node.log("other").config
    assert node.log("t").config.retention_ms == 1000
    await node.alter(ResourceType.TOPIC, "t", retention_ms="2000")
    assert [node.log("t", index).config.retention_ms for index in (0, 1)] == [2000, 2000]
    assert node.log("other").config is other


async def test_defaults_of_the_broker_reach_all_that_have_no_own(node: Node) -> None:
    await node.create("own", retention_ms="1000")
    await node.create("none")
    await node.alter(ResourceType.BROKER, "", log_retention_ms="5000", min_insync_replicas="1")
    assert node.log("own").config.retention_ms == 1000
    assert node.log("none").config.retention_ms == 5000
    await node.create("new")
    assert node.log("new").config.retention_ms == 5000


async def test_a_deleted_topic_leaves_the_directory(node: Node, tmp_path: Path) -> None:
    await node.create("t", 2)
    await node.create("kept")
    await node.delete("t")
    assert node.replicas.replica_of("t", 0) is None
    assert node.logs.get(TopicPartition("t", 0)) is None
    names = {path.name.split(".")[0] for path in (tmp_path / "data").glob("*-[0-9]*")}
    assert names == {"t-0", "t-1", "kept-0"}
    assert all(path.name.endswith("-delete") for path in (tmp_path / "data").glob("t-*"))
    await node.create("t")
    assert node.append("t") == 0


async def test_a_topic_whose_logs_cannot_be_deleted_does_not_keep_the_others(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are deleted in the metadata: the names of the others are free."""
    for name in ("bad", "good"):
        await node.create(name)
    delete_all = node.logs.deletion.delete_all

    def refuse(partitions: list[TopicPartition]) -> int:
        if partitions[0].topic == "bad":
            raise TimeoutError("it does not stop")
        return delete_all(partitions)

    monkeypatch.setattr(node.logs.deletion, "delete_all", refuse)
    topics = node.controller.image.topics
    await node.controller.delete_topics([topics[name].topic_id for name in ("bad", "good")])
    assert node.logs.get(TopicPartition("good", 0)) is None
    await node.create("good")
    assert node.append("good") == 0


async def test_logs_are_back_after_a_start(node: Node, nodes: Any) -> None:
    """Under their ids, with their settings and records."""
    await node.create("t", 3, retention_ms="1000")
    for index in range(3):
        node.append("t", index)
    again: Node = await nodes()
    assert again.replicas.partition_count == 0
    await again.start()
    assert sorted(again.served) == [TopicPartition("t", index) for index in range(3)]
    assert [again.append("t", index) for index in range(3)] == [1, 1, 1]
    assert again.log("t", 2).config.retention_ms == 1000
    assert again.replicas.names_by_id == {again.log("t").topic_id.bytes: "t"}


async def test_logs_that_were_never_made_are_made_at_the_start(
    node: Node, nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the commit of the metadata and the directories."""

    async def crash(*_: object) -> None:
        return

    monkeypatch.setattr(node.lifecycle, "_create_missing", crash)
    await node.create("t", 2)
    assert node.replicas.replica_of("t", 0) is None
    again: Node = await nodes()
    await again.start()
    assert [again.append("t", index) for index in range(2)] == [0, 0]


async def test_logs_without_a_topic_are_set_aside(
    node: Node, nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the deletion's commit and its directories; also of an older namesake."""
    await node.create("gone")
    await node.create("again")
    node.append("again")

    async def crash(*_: object) -> None:
        return

    monkeypatch.setattr(node.lifecycle, "_delete", crash)
    monkeypatch.setattr(node.lifecycle, "_create_missing", crash)
    await node.delete("gone")
    await node.delete("again")
    await node.create("again")
    second: Node = await nodes()
    await second.start()
    assert second.served == [TopicPartition("again", 0)]
    assert second.append("again") == 0
    aside = {p.name.split(".")[0] for p in (tmp_path / "data").glob("*-stray")}
    assert aside == {"gone-0", "again-0"}


async def test_a_directory_that_refuses_does_not_keep_the_others_from_serving(
    nodes: Any, tmp_path: Path
) -> None:
    """The topic is created; what could go elsewhere is elsewhere, the rest is missing."""
    node: Node = await nodes("one", "two")
    await node.start()
    node.filesystem.break_directory(str(tmp_path / "two"))
    await node.create("t", 6)
    await node.create("u", 2)
    served = {tp for tp in node.served if tp.topic == "t"}
    assert len(served) >= 3
    assert [node.append("u", index) for index in range(2)] == [0, 0]
    assert all(str(tmp_path / "one") in node.log("u", index).directory for index in range(2))


async def test_many_logs_are_created_in_slices(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop takes over some before the next are made."""
    monkeypatch.setattr(log_lifecycle, "CREATED_PER_CALL", 4)
    before = node.pool.started
    await node.create("t", 10)
    assert node.pool.started - before == 3
    assert node.replicas.partition_count == 10


async def test_a_log_that_is_gone_begins_anew_in_another_leader_epoch(
    nodes: Any, tmp_path: Path
) -> None:
    """Else what remote storage has of the lost one would be taken for the records that come now."""
    first = await nodes()
    await first.start()
    await first.create("t", 3, remote_storage_enable="true")
    await first.create("plain", 1)
    for index in range(3):
        first.append("t", index)
    first.close()
    for name in ("t-1", "plain-0"):
        shutil.rmtree(tmp_path / "data" / name)
    second = await nodes()
    await second.start()
    epochs = [p.leader_epoch for p in second.controller.image.topics["t"].partitions]
    assert epochs == [0, 1, 0]
    assert [second.append("t", index) for index in range(3)] == [1, 0, 1]
    assert second.log("t", 1).leader_epochs.entries() == [(1, 0)]
    assert second.log("t", 0).leader_epochs.entries() == [(0, 0)]
    # Nothing can be confused where there is no remote storage.
    assert second.controller.image.topics["plain"].partitions[0].leader_epoch == 0
    third = await nodes()
    await third.start()
    epochs = [p.leader_epoch for p in third.controller.image.topics["t"].partitions]
    assert epochs == [0, 1, 0]
    assert third.append("t", 1) == 1


async def test_a_log_that_is_gone_is_not_made_anew_when_its_epoch_cannot_be_raised(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await nodes()
    await first.start()
    await first.create("t", 1, remote_storage_enable="true")
    first.close()
    shutil.rmtree(tmp_path / "data" / "t-0")
    second = await nodes()

    async def refused(_lost: object) -> set[UUID]:
        return set()

    monkeypatch.setattr(second.controller, "begin_epochs", refused)
    await second.start()
    assert second.replicas.replica_of("t", 0) is None


async def test_a_topic_that_is_created_while_a_start_lists_the_folders_is_no_stray(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder was there before its topic was known to who lists: it was set aside."""
    node: Node = await nodes()
    listing, gate = threading.Event(), threading.Event()
    list_directory = FailingDisk.list_directory

    def gated(disk: FailingDisk, path: str) -> list[DirEntry]:
        listing.set()
        assert gate.wait(30)
        return list_directory(disk, path)

    monkeypatch.setattr(FailingDisk, "list_directory", gated)
    start = asyncio.create_task(node.start())
    assert await asyncio.to_thread(listing.wait, 30)
    creation = asyncio.create_task(node.create("t"))
    # As long as it takes to make a folder, if nobody waits for who lists.
    await asyncio.wait([creation], timeout=0.2)
    gate.set()
    await creation
    assert node.append("t") == 0
    await start
    assert node.append("t") == 1
    entries = node.filesystem.list_directory(str(tmp_path / "data"))
    assert [entry.name for entry in entries if entry.is_directory] == ["t-0"]
