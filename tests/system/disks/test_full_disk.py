"""A disk that is really full: refused records, and nothing else lost, until there is room again.

Needs the right to mount a small file system; as another user these tests are skipped.
"""

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path

import pytest

from bench.node import VarveNode
from protocol.error_codes import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.fakes.network.client import Client, RefusedError, http_get
from tests.system.conftest import until

SIZE_MIB = 24
VALUE = b"v" * 64 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    path = tmp_path / "disk"
    path.mkdir()
    options = f"size={SIZE_MIB}m"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture
def varve(tmp_path: Path, small_disk: Path) -> Iterator[VarveNode]:
    """Its only log directory, with the metadata store, is on the small disk."""
    node = VarveNode(
        tmp_path,
        {
            "log.dirs": str(small_disk / "data"),
            "log.segment.bytes": str(1 << 20),
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "offsets.topic.segment.bytes": str(1 << 20),
            "log.retention.check.interval.ms": "500",
            "log.initial.task.delay.ms": "500",
            "log.segment.delete.delay.ms": "100",
        },
    )
    node.start()
    yield node
    if node.is_running:
        node.stop()


async def fill(client: Client, topic: str = "t") -> int:
    """Write until the disk is full; how many records were acknowledged."""
    for count in range(1_000):
        answer = await client.try_produce(topic, [(None, VALUE)])
        if answer.error_code:
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            return count
    raise AssertionError("the disk is larger than it should be")


async def takes_records(client: Client, topic: str) -> bool:
    answer = await client.try_produce(topic, [(None, b"again")])
    assert answer.error_code in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
    return not answer.error_code


async def takes_commits(client: Client) -> bool:
    try:
        await client.commit("g", "t", {0: 1})
    except RefusedError as error:
        if not error.code.retriable:
            raise
        return False
    return True


async def init_producer(client: Client) -> int:
    """The error of a new epoch for a transactional id: the coordinator writes it down."""
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"])
    (found,) = (await client.call(find)).coordinators
    if found.error_code:
        return int(found.error_code)
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    return int((await client.call(request)).error_code)


async def has_producer(client: Client) -> bool:
    code = ErrorCode(await init_producer(client))
    assert code is ErrorCode.NONE or code.retriable
    return code is ErrorCode.NONE


async def works(change: Awaitable[object]) -> bool:
    """The metadata store may find no room before the reserve is given up: worth another try."""
    try:
        await change
    except RefusedError as error:
        if error.code is not ErrorCode.REQUEST_TIMED_OUT:
            raise
        return False
    return True


def log_of(node: VarveNode) -> str:
    text = node.log_path.read_text()
    assert "Traceback" not in text, text[text.index("Traceback") :][:4000]
    return text


async def test_a_full_disk_is_read_and_deleted_from_and_written_to_again(varve: VarveNode) -> None:
    async with await Client.connect(varve.host, varve.port) as client:
        await client.create_topic("other")
        await client.create_topic("t")
        await client.produce("other", b"first")
        await client.commit("g", "t", {0: 0})
        await until(lambda: has_producer(client))
        count = await fill(client)
        assert count > 100

        # Refused at once, on every partition of the directory, also those that have room in a page.
        begin = time.monotonic()
        for _ in range(50):
            answer = await client.try_produce("other", [(None, b"v")])
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert time.monotonic() - begin < 20
        status, text = await http_get(varve.admin_address, "/readyz")
        assert status == 200
        assert "directory-full" in text
        _, metrics = await http_get(varve.admin_address, "/metrics")
        assert 'varve_alerts{kind="directory-full"} 1.0' in metrics

        # What is there is read; a commit is worth another try; topics are not half made.
        read = await client.read_all("t")
        assert [record.value for record in read] == [VALUE] * count
        assert [record.value for record in await client.read_all("other")] == [b"first"]
        with pytest.raises(RefusedError) as refused:
            await client.commit("g", "t", {0: 1})
        assert refused.value.code.retriable
        assert await client.committed("g", "t") == 0
        assert ErrorCode(await init_producer(client)).retriable
        response = await client.call(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)],
                timeout_ms=5_000,
            )
        )
        assert response.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR

        # Room comes back by what an operator does, which has to be written down, too.
        await client.delete_records("t", count - 10)
        await until(lambda: takes_records(client, "other"))
        await client.create_topic("new")
        await client.produce("new", b"v")
        await until(lambda: takes_commits(client))
        await until(lambda: has_producer(client))
        status, text = await http_get(varve.admin_address, "/readyz")
        assert (status, text) == (200, "ready\n")
        assert len(await client.read_all("t")) == 10

        # Once more, and settings and deletion give room as well.
        await fill(client)
        await until(lambda: works(client.alter_topic("t", **{"retention.bytes": 0})))
        await until(lambda: takes_records(client, "other"))
        await fill(client)
        await until(lambda: works(client.delete_topic("t")))
        await until(lambda: takes_records(client, "new"))
    assert varve.stop() == 0
    assert "log directory offline" not in log_of(varve)


@pytest.mark.parametrize("clean", [False, True])
async def test_a_start_on_a_full_disk(varve: VarveNode, small_disk: Path, clean: bool) -> None:
    """After a stop, or a crash: everything acknowledged is served, and deleting helps."""
    async with await Client.connect(varve.host, varve.port) as client:
        await client.create_topic("t")
        await client.create_topic("other")
        await client.produce("other", b"first")
        count = 100
        for _ in range(count):
            await client.produce("t", VALUE)
    if clean:
        assert varve.stop() == 0
    else:
        varve.kill()
    # Somebody else takes what is left, but for what a file system of its own would have for names.
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        size = 1 << 20
        while size >= 4_096:
            try:
                if file.write(bytes(size)) < size:
                    size //= 2
            except OSError:
                size //= 2
    with filler.open("r+b") as file:
        file.truncate(max(filler.stat().st_size - 256 * 1024, 0))
    varve.start()
    async with await Client.connect(varve.host, varve.port) as client:
        await until(lambda: is_ready(varve))
        await until(lambda: is_served(client, "t"))
        assert [record.value for record in await client.read_all("t")] == [VALUE] * count
        assert [record.value for record in await client.read_all("other")] == [b"first"]
        await fill(client)
        filler.unlink()
        await until(lambda: takes_records(client, "other"))
        assert await client.offset("t") >= count
    assert varve.stop() == 0
    assert "log directory offline" not in log_of(varve)


async def is_ready(varve: VarveNode) -> bool:
    return (await http_get(varve.admin_address, "/readyz"))[0] == 200


async def is_served(client: Client, topic: str) -> bool:
    """Logs that need room to be recovered take the reserve, or wait."""
    with contextlib.suppress(RefusedError):
        await client.offset(topic)
        return True
    return False


async def test_group_commit_and_full_disk(varve: VarveNode, small_disk: Path) -> None:
    """With `flush.messages=1`: what was acknowledged before is there after a kill -9."""
    async with await Client.connect(varve.host, varve.port) as client:
        await client.create_topic("t", **{"flush.messages": 1})
        clients = [await Client.connect(varve.host, varve.port) for _ in range(4)]
        counts = await asyncio.gather(*(fill(one) for one in clients))
        for one in clients:
            await one.close()
    varve.kill()
    varve.start()
    async with await Client.connect(varve.host, varve.port) as client:
        await until(lambda: is_ready(varve))
        await until(lambda: is_served(client, "t"))
        records = await client.read_all("t")
        assert len(records) == sum(counts)
        await client.delete_records("t", len(records))
        await until(lambda: takes_records(client, "t"))
    assert varve.stop() == 0
    log_of(varve)


async def test_what_is_copied_to_the_bucket_makes_room_by_itself(
    tmp_path: Path, small_disk: Path
) -> None:
    """Twice what the disk holds: it is full now and then, segments leave for the bucket, all stays.

    Copying is written down in a topic on the same full disk: that is what the reserve is for.
    """
    (tmp_path / "objects").mkdir()
    node = VarveNode(
        tmp_path,
        {
            "log.dirs": str(small_disk / "data"),
            "remote.log.storage.system.enable": "true",
            "rsm.config.storage.root": str(tmp_path / "objects"),
            "remote.log.manager.task.interval.ms": "100",
            "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
            "tier.index.cache.path": str(tmp_path / "indexes"),
            "rsm.config.fetch.chunk.cache.path": str(tmp_path / "chunks"),
            "log.retention.check.interval.ms": "200",
            "log.initial.task.delay.ms": "200",
        },
    )
    node.start()
    try:
        async with await Client.connect(node.host, node.port) as client:
            await client.create_topic(
                "t",
                partitions=1,
                **{
                    "remote.storage.enable": "true",
                    "segment.bytes": str(1 << 20),
                    "local.retention.bytes": "1",
                    "file.delete.delay.ms": "0",
                },
            )
            written = refused = 0
            deadline = time.monotonic() + 120
            # Where copying keeps up for once, it goes on until it does not.
            while written < 2 * SIZE_MIB * 16 or (not refused and time.monotonic() < deadline):
                answer = await client.try_produce("t", [(None, VALUE)])
                if answer.error_code:
                    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                    assert time.monotonic() < deadline, "there was no room again"
                    refused += 1
                    await asyncio.sleep(0.2)
                else:
                    written += 1
            assert len(await client.read_all("t")) == written
    finally:
        status = node.stop()
    assert status == 0
    assert refused
    log_of(node)
