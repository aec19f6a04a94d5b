"""After a kill or a power cut: what consumers are told, when duties begin, how a stop goes."""

import asyncio
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from storage.checkpoints.checkpoint_files import RECOVERY_POINT_CHECKPOINT, decode_offsets
from storage.checkpoints.clean_shutdown import CLEAN_SHUTDOWN_FILE
from storage.environment.local_filesystem import LocalFile
from storage.log.log import Log
from storage.types.topic_partition import TopicPartition
from tests.code_path import python_only
from tests.fakes.network.client import LATEST, Client
from tests.fakes.storage.failing_disk import FailingDisk, FailingFile
from tests.system.conftest import Node, StartNode, until

LOG_NAME = f"{0:020}.log"


async def leader_epoch(client: Client, topic: str, partition: int = 0) -> int:
    (found,) = (await client.metadata(topic)).topics
    (one,) = [p for p in found.partitions if p.partition_index == partition]
    epoch: int = one.leader_epoch
    return epoch


async def end_of_epoch(client: Client, topic: str, epoch: int, *, current: int = -1) -> Any:
    partition = OffsetForLeaderPartition(
        partition=0, current_leader_epoch=current, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[partition])]
    )
    return (await client.call(request)).topics[0].partitions[0]


async def fetch_after(
    client: Client, topic: str, offset: int, *, last_fetched: int, current: int
) -> Any:
    wanted = FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        current_leader_epoch=current,
        last_fetched_epoch=last_fetched,
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    return (await client.call(request, 12)).responses[0].partitions[0]


def cut(path: Path, count: int) -> None:
    """Leave `count` batches of a segment, all of one size, as a power cut may."""
    size = path.stat().st_size
    os.truncate(path, size // 100 * count + 7)


async def killed(node: Node, tmp_path: Path, name: str = "copy") -> Path:
    """A copy of the directory as kill -9 leaves it."""
    source = Path(node.broker.local.log_dirs[0])
    target = tmp_path / name
    # What is about to be renamed may be gone before it is copied.
    unnamed = shutil.ignore_patterns("*.tmp")
    await asyncio.to_thread(shutil.copytree, source, target, ignore=unnamed)
    return target


async def test_a_consumer_beyond_what_a_power_cut_left_is_told(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """At 100, the log is cut to 60, 80 more are written: it learns that its epoch ended at 60."""
    client = await node.client()
    await client.create_topic("t")
    for _ in range(100):
        await client.produce("t", b"v")
    before = await leader_epoch(client, "t")
    copy = await killed(node, tmp_path)
    cut(copy / "t-0" / LOG_NAME, 60)
    second = await start_node(log_dirs=(str(copy),))
    client = await second.client()
    assert await client.offset("t") == 60
    for _ in range(80):
        await client.produce("t", b"new")
    after = await leader_epoch(client, "t")
    assert after > before
    fenced = await fetch_after(client, "t", 100, last_fetched=before, current=before)
    assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
    fenced = await end_of_epoch(client, "t", before, current=before)
    assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
    told = await end_of_epoch(client, "t", before, current=after)
    assert (told.error_code, told.leader_epoch, told.end_offset) == (0, before, 60)
    diverged = await fetch_after(client, "t", 100, last_fetched=before, current=after)
    assert diverged.error_code == 0
    assert diverged.diverging_epoch.epoch == before
    assert diverged.diverging_epoch.end_offset == 60
    went_on = await fetch_after(client, "t", 60, last_fetched=before, current=after)
    assert went_on.error_code == 0
    assert went_on.records
    wanted = ListOffsetsPartition(partition_index=0, current_leader_epoch=before, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[wanted])]
    )
    answer = (await client.call(request)).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_log_of_which_nothing_is_left_is_told_of_too(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """Also when the power took the partition's whole folder."""
    client = await node.client()
    for topic in ("empty", "gone"):
        await client.create_topic(topic)
        for _ in range(5):
            await client.produce(topic, b"v")
    copy = await killed(node, tmp_path)
    os.truncate(copy / "empty-0" / LOG_NAME, 0)
    shutil.rmtree(copy / "gone-0")
    second = await start_node(log_dirs=(str(copy),))
    client = await second.client()
    for topic in ("empty", "gone"):
        for _ in range(9):
            await client.produce(topic, b"new")
        told = await end_of_epoch(client, topic, 0, current=await leader_epoch(client, topic))
        assert (told.error_code, told.end_offset) == (0, 0), topic


async def test_each_unclean_start_begins_an_epoch_and_a_clean_one_none(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """Where nothing was cut as well: what the page cache lost cannot be told from what it had."""
    client = await node.client()
    await client.create_topic("t")
    epochs = [await leader_epoch(client, "t")]
    ends = []
    for number in range(4):
        await client.produce("t", b"v")
        copy = await killed(node, tmp_path, f"copy-{number}")
        await node.stop()
        node = await start_node(log_dirs=(str(copy),))
        client = await node.client()
        epochs.append(await leader_epoch(client, "t"))
        ends.append(await client.offset("t"))
    assert epochs == sorted(set(epochs))
    for epoch, end in zip(epochs, ends, strict=False):
        assert (await end_of_epoch(client, "t", epoch)).end_offset == end
    await node.stop()
    node = await start_node(log_dirs=node.broker.local.log_dirs)
    client = await node.client()
    assert await leader_epoch(client, "t") == epochs[-1]
    assert [r.value for r in await client.read_all("t")] == [b"v"] * 4


async def test_a_log_closed_cleanly_that_lost_its_end_begins_an_epoch(
    start_node: StartNode, node: Node
) -> None:
    """The marker was wrong about it; the others stay in their epoch."""
    client = await node.client()
    for topic in ("t", "u"):
        await client.create_topic(topic)
        for _ in range(100):
            await client.produce(topic, b"v")
    await node.stop()
    cut(Path(node.broker.local.log_dirs[0]) / "t-0" / LOG_NAME, 60)
    second = await start_node()
    client = await second.client()
    await client.produce("t", b"new")
    told = await end_of_epoch(client, "t", 0, current=1)
    assert (told.error_code, told.end_offset) == (0, 60)
    assert await leader_epoch(client, "u") == 0


async def test_a_store_that_refuses_keeps_no_partition_from_serving(
    start_node: StartNode, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said that consumers would not notice; the next start sees to it, however this ends."""
    client = await node.client()
    await client.create_topic("t")
    await client.produce("t", b"v")
    copy = await killed(node, tmp_path)

    async def refused(_self: object, _lost: object) -> set[object]:
        return set()

    with monkeypatch.context() as patched:
        patched.setattr("broker.controller.controller.Controller.begin_epochs", refused)
        second = await start_node(log_dirs=(str(copy),))
        client = await second.client()
        assert await client.produce("t", b"v") == 1
        assert "leader-epoch-stale" in (await second.page("/readyz"))[1]
        assert await leader_epoch(client, "t") == 0
        await second.stop()
    third = await start_node(log_dirs=(str(copy),))
    client = await third.client()
    assert await leader_epoch(client, "t") == 1
    assert (await end_of_epoch(client, "t", 0, current=1)).end_offset == 2
    assert "leader-epoch-stale" not in (await third.page("/readyz"))[1]
    await third.stop()
    fourth = await start_node(log_dirs=(str(copy),))
    assert await leader_epoch(await fourth.client(), "t") == 1


class SlowFile(FailingFile):
    """Each read of a log while it is recovered waits for a pass, unless the gate is open."""

    __slots__ = ()

    def read_into(self, buffer: memoryview, position: int) -> int:
        disk = self._disk
        assert isinstance(disk, SlowDisk)
        if disk.slow_part in self.path and self.path.endswith(".log"):
            disk.reads += 1
            disk.reading.set()
            if not disk.gate.is_set():
                assert disk.passes.acquire(timeout=60)
        return super().read_into(buffer, position)


class SlowDisk(FailingDisk):
    """A disk on which some partitions are recovered a read at a time, as the test lets it."""

    __slots__ = ("gate", "passes", "reading", "reads", "slow_part")

    def __init__(self, slow_part: str) -> None:
        super().__init__()
        self.slow_part = slow_part
        self.gate = threading.Event()
        self.passes = threading.Semaphore(0)
        self.reading = threading.Event()
        self.reads = 0

    def open_gate(self) -> None:
        """Nobody waits any more."""
        self.gate.set()
        self.passes.release(100)

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        fd = plain.detach()
        return SlowFile(path, fd, self)


async def test_duties_begin_with_the_first_partition_that_serves(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """Another may recover for long: what serves is flushed and checkpointed meanwhile."""
    client = await node.client()
    await client.create_topic("fast", flush_ms=50)
    await client.create_topic("slow")
    await client.produce("fast", b"f")
    await client.produce("slow", b"s", b"s")
    await client.delete_records("slow", 1)
    node.broker.log_manager.checkpoints.write()
    copy = await killed(node, tmp_path)
    disk = SlowDisk("/slow-0/")
    second = await start_node(
        filesystem=disk,
        log_dirs=(str(copy),),
        wait_until_ready=False,
        log_flush_offset_checkpoint_interval_ms=50,
        log_flush_start_offset_checkpoint_interval_ms=50,
    )
    try:
        client = await second.client()
        await until(lambda: second.broker.log_manager.get(TopicPartition("fast", 0)) is not None)
        await until(lambda: second.broker.replicas.replica_of("fast", 0) is not None)
        await client.produce("fast", b"f")

        def is_checkpointed() -> bool:
            path = copy / RECOVERY_POINT_CHECKPOINT
            offsets = decode_offsets(path.read_bytes(), str(path))
            return offsets.get(TopicPartition("fast", 0)) == 2

        await until(is_checkpointed)
        assert not second.broker.ready
        # What is still recovering keeps what was known of it.
        starts = copy / "log-start-offset-checkpoint"
        assert decode_offsets(starts.read_bytes(), "")[TopicPartition("slow", 0)] == 1
    finally:
        disk.open_gate()
    await second.ready()
    assert [r.offset for r in await client.read_all("slow")] == [1]


async def test_a_stop_ends_a_recovery_soon_and_the_next_start_goes_on(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """Between segments and inside one; nothing is marked clean, nothing is lost."""
    client = await node.client()
    await client.create_topic("slow", segment_bytes=1 << 20)
    for _ in range(12):
        await client.produce("slow", os.urandom(300_000))
    copy = await killed(node, tmp_path)
    (copy / RECOVERY_POINT_CHECKPOINT).unlink(missing_ok=True)
    disk = SlowDisk("/slow-0/")
    second = await start_node(filesystem=disk, log_dirs=(str(copy),), wait_until_ready=False)
    for _ in range(2):
        await asyncio.to_thread(disk.reading.wait, 60)
        disk.reading.clear()
        disk.passes.release()
    await asyncio.to_thread(disk.reading.wait, 60)
    stopping = asyncio.create_task(second.stop())
    await until(lambda: second.broker.log_manager.progress.is_stopped)
    disk.open_gate()
    await asyncio.wait_for(stopping, 30)
    assert disk.reads < 8
    assert not (copy / CLEAN_SHUTDOWN_FILE).exists()
    path = copy / RECOVERY_POINT_CHECKPOINT
    kept = decode_offsets(path.read_bytes(), str(path)).get(TopicPartition("slow", 0), 0)
    assert kept > 0
    third = await start_node(log_dirs=(str(copy),))
    assert third.broker.log_manager.progress.bytes_total < 12 * 300_000
    client = await third.client()
    assert len(await client.read_all("slow")) == 12


@python_only
async def test_one_log_that_cannot_be_opened_takes_one_partition_offline(
    start_node: StartNode, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the error: the others serve, it is said which, and nothing of it is touched."""
    client = await node.client()
    for topic in ("bad", "good"):
        await client.create_topic(topic)
        await client.produce(topic, b"v")
    await client.delete_records("bad", 1)
    node.broker.log_manager.checkpoints.write()
    copy = await killed(node, tmp_path)
    before = (copy / "bad-0" / LOG_NAME).read_bytes()
    opened = Log.open.__func__  # type: ignore[attr-defined]  # the function under the class method

    def open_or_fail(cls: type[Log], directory: str, *args: Any, **options: Any) -> Log:
        if directory.endswith("/bad-0"):
            raise IndexError("nobody has thought of this")
        log: Log = opened(cls, directory, *args, **options)
        return log

    with monkeypatch.context() as patched:
        patched.setattr(Log, "open", classmethod(open_or_fail))
        second = await start_node(log_dirs=(str(copy),))
        client = await second.client()
        assert await client.produce("good", b"v") == 1
        refused = await client.try_produce("bad", [(None, b"x")])
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await client.fetch("bad", 0)).error is ErrorCode.KAFKA_STORAGE_ERROR
        text = (await second.page("/readyz"))[1]
        assert "partition-offline: bad-0" in text
        assert (copy / "bad-0" / LOG_NAME).read_bytes() == before
        await second.stop()
    third = await start_node(log_dirs=(str(copy),))
    client = await third.client()
    assert await client.offset("bad") == 1
    assert await client.read_all("bad") == []
    assert "partition-offline" not in (await third.page("/readyz"))[1]


@python_only
async def test_a_topic_whose_log_cannot_be_opened_can_be_deleted_and_made_anew(
    start_node: StartNode, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files leave, and the alert."""
    client = await node.client()
    await client.create_topic("bad")
    await client.produce("bad", b"v")
    copy = await killed(node, tmp_path)
    opened = Log.open.__func__  # type: ignore[attr-defined]  # the function under the class method
    failing = True

    def open_or_fail(cls: type[Log], directory: str, *args: Any, **options: Any) -> Log:
        if failing and directory.endswith("/bad-0"):
            raise IndexError("nobody has thought of this")
        log: Log = opened(cls, directory, *args, **options)
        return log

    monkeypatch.setattr(Log, "open", classmethod(open_or_fail))
    second = await start_node(log_dirs=(str(copy),))
    failing = False
    client = await second.client()
    await client.delete_topic("bad")
    assert "partition-offline" not in (await second.page("/readyz"))[1]
    await client.create_topic("bad")
    assert await client.produce("bad", b"new") == 0
