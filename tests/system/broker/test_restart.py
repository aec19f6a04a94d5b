"""What a broker knows after a restart: everything it has acknowledged."""

import asyncio
import shutil
import threading
from pathlib import Path
from posixpath import join

import pytest

from bench.node import VarveNode
from broker.runtime.startup_errors import StartupError
from config.listeners import Listener
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from storage.checkpoints.clean_shutdown import CLEAN_SHUTDOWN_FILE
from storage.checkpoints.reserve import RESERVE_FILE
from storage.checkpoints.store_note import STORE_FILE
from storage.environment.local_filesystem import LocalFile
from tests.fakes.network.client import EARLIEST, Client, RefusedError, http_get, produce_request
from tests.fakes.storage.failing_disk import FailingDisk, FailingFile
from tests.system.conftest import Connect, Metrics, Node, StartNode, until
from tests.system.disks.gated_disk import GatedDisk

VALUES = [b"%d" % number for number in range(20)]
DELETED = 5


async def fill(client: Client) -> tuple[int, int]:
    """Topics, settings, records, committed offsets; returns a producer id and its epoch."""
    await client.create_topic("one", 2, max_message_bytes=4242)
    await client.create_topic("two")
    await client.alter_topic("two", retention_ms=123_456_789)
    for value in VALUES:
        await client.produce("one", value, partition=1, acks=1)
    await client.delete_records("one", DELETED, partition=1)
    await client.commit("readers", "one", {0: 0, 1: 7})
    producer_id, epoch = await client.init_producer_id()
    await client.produce(
        "two", b"once", producer_id=producer_id, producer_epoch=epoch, base_sequence=0
    )
    return producer_id, epoch


async def check(client: Client, ids: dict[str, object], producer: tuple[int, int]) -> None:
    """All of `fill` is there, but for what it has deleted, and goes on where it was."""
    found = {topic.name: topic.topic_id for topic in (await client.metadata("one", "two")).topics}
    assert found == ids
    assert (await client.topic_configs("one"))["max.message.bytes"] == "4242"
    assert (await client.topic_configs("two"))["retention.ms"] == "123456789"
    records = await client.read_all("one", partition=1)
    assert [(r.offset, r.value) for r in records] == list(enumerate(VALUES))[DELETED:]
    assert await client.offset("one", EARLIEST, partition=1) == DELETED
    assert await client.committed("readers", "one", 1) == 7
    assert await client.committed("readers", "one", 0) == 0
    producer_id, epoch = producer
    again = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": 0}
    assert await client.produce("two", b"once", **again) == 0, "a retry was written twice"
    assert await client.offset("two") == 1
    new_id, _ = await client.init_producer_id()
    assert new_id > producer_id, "producer ids repeat"
    assert await client.produce("one", b"next", partition=1) == len(VALUES)


async def ids_of(client: Client) -> dict[str, object]:
    return {t.name: t.topic_id for t in (await client.metadata("one", "two")).topics}


@pytest.mark.quick
async def test_clean_restart_brings_everything_back(start_node: StartNode, tmp_path: Path) -> None:
    """And nothing is recovered: the marker says that there is no need, and is used once."""
    marker = tmp_path / "data" / CLEAN_SHUTDOWN_FILE
    first = await start_node()
    client = await first.client()
    producer = await fill(client)
    ids = await ids_of(client)
    assert not marker.exists()
    await first.stop()
    assert marker.exists()
    second = await start_node()
    assert not marker.exists()
    metrics = await second.metrics()
    assert metrics.of("varve_recovery_bytes", state="total") == 0
    assert metrics.of("varve_recovery_partitions", state="total") == 6
    await check(await second.client(), ids, producer)


@pytest.mark.quick
async def test_kill_9_loses_nothing_acknowledged(tmp_path: Path, connect: Connect) -> None:
    """The page cache outlives the process: what was acknowledged is there after recovery."""
    settings = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
    node = VarveNode(tmp_path, settings)
    node.start()
    try:
        client = await connect(node.host, node.port)
        producer = await fill(client)
        ids = await ids_of(client)
        node.kill()
        assert not (node.data_directory / CLEAN_SHUTDOWN_FILE).exists()
        node.start()
        await until(lambda: page_is(node.admin_address, "/readyz", 200))
        client = await connect(node.host, node.port)
        await check(client, ids, producer)
        assert "recovering after an unclean shutdown" in node.log_path.read_text()
        metrics = Metrics.parse((await http_get(node.admin_address, "/metrics"))[1])
        assert metrics.of("varve_recovery_bytes", state="total") > 0
        assert metrics.of("varve_recovery_bytes", state="done") == metrics.of(
            "varve_recovery_bytes", state="total"
        )
    finally:
        code = node.stop()
    assert code == 0
    assert (node.data_directory / CLEAN_SHUTDOWN_FILE).exists()
    assert "Traceback" not in node.log_path.read_text()


async def page_is(address: str, path: str, status: int) -> bool:
    return (await http_get(address, path))[0] == status


async def is_recovering(node: Node, what: str) -> bool:
    status, body = await node.page("/readyz")
    assert status == 503, body
    return body.split(",")[0] == what


class SlowFile(FailingFile):
    """Reading a log file waits for the gate."""

    __slots__ = ()

    def read_into(self, buffer: memoryview, position: int) -> int:
        assert isinstance(self._disk, SlowDisk)
        if self._disk.slow_part in self.path and self.path.endswith(".log"):
            assert self._disk.gate.wait(60)
        return super().read_into(buffer, position)

    def read_at(self, size: int, position: int) -> bytes:
        assert isinstance(self._disk, SlowDisk)
        if self._disk.slow_part in self.path and self.path.endswith(".log"):
            assert self._disk.gate.wait(60)
        return super().read_at(size, position)


class SlowDisk(FailingDisk):
    """Recovery of partitions whose path has `slow_part` stops until `gate` is set."""

    __slots__ = ("gate", "slow_part")

    def __init__(self, slow_part: str) -> None:
        super().__init__()
        self.slow_part = slow_part
        self.gate = threading.Event()

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        fd = plain.detach()
        return SlowFile(path, fd, self)


async def test_recovered_partitions_serve_while_others_recover(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """Not ready, progress visible; a partition in recovery is worth another try, not an error."""
    client = await node.client()
    await client.create_topic("fast")
    await client.create_topic("slow")
    await client.produce("fast", b"f")
    await client.produce("slow", b"s")
    # What kill -9 leaves: the files as they are.
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    disk = SlowDisk("/slow-0/")
    second = await start_node(
        filesystem=disk, log_dirs=(join(str(tmp_path), "copy"),), wait_until_ready=False
    )
    try:
        client = await second.client()
        await until(lambda: served(client, "fast"))
        # It serves first and is counted then.
        await until(lambda: is_recovering(second, "recovering 1 of 2 partitions"))
        assert (await second.page("/healthz"))[0] == 200
        assert [r.value for r in await client.read_all("fast")] == [b"f"]
        refused = await client.try_produce("slow", [(None, b"x")])
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await client.fetch("slow", 0)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        metrics = await second.metrics()
        assert metrics.of("kafka_server_replicamanager_offlinereplicacount") == 1
        assert metrics.of("varve_recovery_partitions", state="done") == 1
    finally:
        disk.gate.set()
    await second.ready()
    assert [r.value for r in await client.read_all("slow")] == [b"s"]
    metrics = await second.metrics()
    assert metrics.of("kafka_server_replicamanager_offlinereplicacount") == 0
    assert metrics.of("varve_recovery_partitions", state="done") == 2


async def served(client: Client, topic: str) -> bool:
    try:
        await client.offset(topic)
    except RefusedError as error:
        if error.code.retriable:
            return False
        raise
    return True


async def test_topics_change_while_they_recover(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """Deleted, made anew, reconfigured: what the client was told holds once the log is open."""
    client = await node.client()
    topics = [f"slow{number}" for number in range(3)]
    for topic in topics:
        await client.create_topic(topic)
        await client.produce(topic, b"old")
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    disk = SlowDisk("/slow")
    second = await start_node(
        filesystem=disk, log_dirs=(str(tmp_path / "copy"),), wait_until_ready=False
    )
    try:
        client = await second.client()
        await client.delete_topic("slow0")
        await client.delete_topic("slow1")
        new_id = await client.create_topic("slow1")
        await client.alter_topic("slow2", max_message_bytes=500)
        code = (await client.try_produce("slow1", [(None, b"early")])).error_code
        assert ErrorCode(code).retriable
    finally:
        disk.gate.set()
    await second.ready()
    assert await client.produce("slow1", b"new") == 0
    assert [r.value for r in await client.read_all("slow1")] == [b"new"]
    assert (await client.metadata("slow1")).topics[0].topic_id == new_id
    refused = await client.try_produce("slow2", [(None, b"x" * 600)])
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert await client.produce("slow2", b"small") == 1
    gone = (await client.metadata("slow0")).topics[0]
    assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    names = {path.name for path in (tmp_path / "copy").glob("slow*-0")}
    assert names == {"slow1-0", "slow2-0"}


async def test_a_stop_during_recovery_marks_nothing_clean(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """It does not wait for the recovery to end either: the next start does that."""
    client = await node.client()
    await client.create_topic("slow")
    await client.produce("slow", b"s")
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    disk = SlowDisk("/slow-0/")
    second = await start_node(
        filesystem=disk, log_dirs=(str(tmp_path / "copy"),), wait_until_ready=False
    )
    threading.Timer(0.1, disk.gate.set).start()
    await second.stop()
    assert not (tmp_path / "copy" / CLEAN_SHUTDOWN_FILE).exists()
    third = await start_node(log_dirs=(str(tmp_path / "copy"),))
    assert [r.value for r in await (await third.client()).read_all("slow")] == [b"s"]


async def test_a_stop_waits_for_the_flush_that_writes_wait_for(
    start_node: StartNode, tmp_path: Path
) -> None:
    """They are acknowledged: an error would make the producer send them again."""
    disk = GatedDisk()
    node = await start_node(filesystem=disk)
    try:
        client, other = await node.client(), await node.client()
        await client.create_topic("t", flush_messages=1)
        batches = [build_batch([(None, b"%d" % n, (), 1)]) for n in range(2)]
        first = client.send(produce_request("t", 0, batches[0]))
        await until(disk.waiting.is_set)
        second = other.send(produce_request("t", 0, batches[1]))
        await until(lambda: node.broker.replicas.delayed_produce.parked == 2)
        stopping = asyncio.create_task(node.stop())
        await asyncio.sleep(0.05)
        assert not first.done()
    finally:
        disk.gate.set()
    for offset, answer in enumerate((first, second)):
        (response,) = (await asyncio.wait_for(answer, 30)).responses[0].partition_responses
        assert (response.error_code, response.base_offset) == (0, offset)
    await stopping
    assert (tmp_path / "data" / CLEAN_SHUTDOWN_FILE).exists()


async def test_a_start_that_fails_leaves_the_disk_as_it_was(
    start_node: StartNode, node: Node, tmp_path: Path
) -> None:
    """Above all it must not mark clean what nobody has looked at, nor forget checkpoints."""
    client = await node.client()
    await client.create_topic("t")
    await client.produce("t", b"a", b"b")
    await client.delete_records("t", 1)
    node.broker.log_manager.checkpoints.write()
    # What kill -9 leaves.
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    # Room held back for a full disk is nobody's data: each start takes it, each stop gives it up.
    (tmp_path / "copy" / RESERVE_FILE).unlink()
    before = contents(tmp_path / "copy")
    taken = (Listener("PLAINTEXT", "127.0.0.1", node.port),)
    with pytest.raises(StartupError, match="in use"):
        await start_node(log_dirs=(str(tmp_path / "copy"),), listeners=taken)
    assert contents(tmp_path / "copy") == before
    again = await start_node(log_dirs=(str(tmp_path / "copy"),))
    assert (await again.metrics()).of("varve_recovery_bytes", state="total") > 0
    client = await again.client()
    assert [(r.offset, r.value) for r in await client.read_all("t")] == [(1, b"b")]


def contents(directory: Path) -> dict[str, bytes]:
    """Every file but the metadata store's own, and the note of how far that has come."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and "sqlite" not in path.name and path.name != STORE_FILE
    }


@pytest.mark.parametrize("name", ["stray-topic-0", "stray-topic-7"])
async def test_directories_of_no_topic_are_set_aside(
    start_node: StartNode, tmp_path: Path, name: str
) -> None:
    """Nothing is served of them and nothing is destroyed; a topic of that name starts empty."""
    first = await start_node()
    client = await first.client()
    await client.create_topic("t")
    await client.produce("t", b"kept")
    await first.stop()
    shutil.copytree(tmp_path / "data" / "t-0", tmp_path / "data" / name)
    second = await start_node()
    assert not (tmp_path / "data" / name).exists()
    (aside,) = (tmp_path / "data").glob(f"{name}*-stray")
    assert (aside / f"{0:020}.log").stat().st_size > 0
    client = await second.client()
    await client.create_topic("stray-topic", 8)
    assert await client.offset("stray-topic", partition=int(name[-1])) == 0
    assert [r.value for r in await client.read_all("t")] == [b"kept"]
