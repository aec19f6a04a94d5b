"""AlterReplicaLogDirs: partitions change their directory while they are written to and read."""

import asyncio
import os
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from storage.errors import StorageError
from storage.manager.log_copy import LogCopy
from tests.fakes.network.client import Client
from tests.fakes.storage.failing_disk import FailingDisk
from tests.system.conftest import StartNode, until
from tests.system.disks.test_directories import placed


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "a"), str(tmp_path / "b")


async def move(client: Client, path: str, *partitions: tuple[str, int]) -> list[int]:
    """The codes, in the order of the partitions."""
    topics = [AlterReplicaLogDirTopic(name=name, partitions=[index]) for name, index in partitions]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    answer = await client.call(request)
    codes = {
        (topic.topic_name, one.partition_index): one.error_code
        for topic in answer.results
        for one in topic.partitions
    }
    return [codes[partition] for partition in partitions]


async def futures(client: Client) -> dict[tuple[str, int], str]:
    answer = await client.call(DescribeLogDirsRequest(topics=None))
    return {
        (topic.name, partition.partition_index): result.log_dir
        for result in answer.results
        for topic in result.topics
        for partition in topic.partitions
        if partition.is_future_key
    }


async def produce(client: Client, topic: str, value: bytes, partition: int = 0) -> int:
    """As clients do: what is worth another try is tried again."""
    while True:
        answer = await client.try_produce(topic, [(None, value)], partition=partition)
        if answer.error_code == ErrorCode.NONE:
            return int(answer.base_offset)
        assert ErrorCode(answer.error_code).retriable
        await asyncio.sleep(0.01)


async def until_in(client: Client, partition: tuple[str, int], path: str) -> None:
    async def is_there() -> bool:
        return (await placed(client)).get(partition) == path and not await futures(client)

    await until(is_there)


def folders(path: str) -> set[str]:
    return {name for name in os.listdir(path) if os.path.isdir(f"{path}/{name}")}


async def test_a_partition_moves_while_it_is_written_to(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """Every record that was acknowledged is there, in order, at its offset; so after a restart."""
    node = await start_node(log_dirs=dirs)
    client, writer = await node.client(), await node.client()
    await client.create_topic("t", 1, segment_bytes=1_048_576, file_delete_delay_ms=0)
    here = (await placed(client))["t", 0]
    there = dirs[1 - dirs.index(here)]
    sent: dict[int, bytes] = {}

    async def write(count: int) -> None:
        for _ in range(count):
            value = b"%d" % len(sent) + b"." * 50_000
            sent[await produce(writer, "t", value)] = value

    await write(60)
    await client.delete_records("t", 5)
    writing = asyncio.create_task(write(120))
    assert await move(client, there, ("t", 0)) == [0]
    await until_in(client, ("t", 0), there)
    await writing
    await until(lambda: not any(name.startswith("t-0") for name in folders(here)))
    assert "t-0" in folders(there)
    expected = [value for offset, value in sorted(sent.items()) if offset >= 5]
    assert sorted(sent) == list(range(180))
    assert [record.value for record in await client.read_all("t")] == expected
    await node.stop()
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    assert (await placed(client))["t", 0] == there
    assert [record.value for record in await client.read_all("t")] == expected
    assert await client.produce("t", b"more") == 180


async def test_refusals_are_kafkas(start_node: StartNode, dirs: tuple[str, str]) -> None:
    disk = FailingDisk()
    node = await start_node(log_dirs=dirs, filesystem=disk)
    client = await node.client()
    await client.create_topic("t", 2)
    await client.create_topic("n" * 220, 1)
    places = await placed(client)
    assert await move(client, "/nowhere", ("t", 0)) == [ErrorCode.LOG_DIR_NOT_FOUND]
    assert await move(client, dirs[0], ("none", 0), ("n" * 220, 0)) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    gone = next(index for (name, index), path in places.items() if name == "t" and path == dirs[1])
    disk.break_directory(dirs[1])
    await client.try_produce("t", [(None, b"x")], partition=gone)
    await until(lambda: bool(node.broker.log_manager.offline_directories))
    assert await move(client, dirs[1], ("t", 1 - gone)) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert await move(client, dirs[0], ("t", gone)) == [ErrorCode.KAFKA_STORAGE_ERROR]


async def test_a_move_is_shown_and_may_be_called_off(
    start_node: StartNode, dirs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a move to where the partition is; nothing is left of the copy."""
    copied = LogCopy.copy
    held = True

    def slow(self: LogCopy, *args: object) -> int:
        done = copied(self, *args)  # type: ignore[arg-type]  # what the original takes
        return 1 << 30 if held else done

    monkeypatch.setattr(LogCopy, "copy", slow)
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    await client.create_topic("t", 1)
    await client.produce("t", b"kept")
    here = (await placed(client))["t", 0]
    there = dirs[1 - dirs.index(here)]
    assert await move(client, there, ("t", 0)) == [0]

    async def is_shown() -> bool:
        return await futures(client) == {("t", 0): there}

    await until(is_shown)
    assert await move(client, there, ("t", 0)) == [0]
    assert await move(client, here, ("t", 0)) == [0]
    await until(lambda: not any(name.startswith("t-0") for name in folders(there)))
    assert await futures(client) == {}
    assert (await placed(client))["t", 0] == here
    # A topic that is deleted while it moves leaves nothing, either.
    assert await move(client, there, ("t", 0)) == [0]
    await until(is_shown)
    await client.delete_topic("t")
    await until(lambda: not any(name.startswith("t-0") for name in folders(there)))
    # Nor does a stop wait for a copy that has no end.
    await client.create_topic("u", 1)
    place = (await placed(client))["u", 0]
    await move(client, dirs[1 - dirs.index(place)], ("u", 0))
    await node.stop()
    assert folders(dirs[1 - dirs.index(place)]) == set()


@pytest.mark.parametrize("where", ["finish", "swap"])
async def test_a_move_that_fails_leaves_the_partition_where_it_was(
    start_node: StartNode, dirs: tuple[str, str], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Also when it fails in the moment in which nobody is served."""
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    await client.create_topic("t", 1)
    await client.produce("t", b"kept")
    here = (await placed(client))["t", 0]
    there = dirs[1 - dirs.index(here)]

    def fail(*_: object) -> None:
        raise StorageError("not now")

    with monkeypatch.context() as patch:
        if where == "finish":
            patch.setattr(LogCopy, "finish", fail)
        else:
            patch.setattr(node.broker.log_manager.moves, "swap", fail)
        assert await move(client, there, ("t", 0)) == [0]
        assert node.broker.hosted is not None
        mover = node.broker.hosted.log_mover
        await until(lambda: not mover._moves)
    assert await produce(client, "t", b"more") == 1
    assert (await placed(client))["t", 0] == here
    assert not any(name.startswith("t-0") for name in folders(there))
    assert await move(client, there, ("t", 0)) == [0]
    await until_in(client, ("t", 0), there)
    assert [record.value for record in await client.read_all("t")] == [b"kept", b"more"]


async def test_groups_and_transactions_move_with_their_partitions(
    start_node: StartNode, dirs: tuple[str, str]
) -> None:
    """Their coordinators read them again."""
    node = await start_node(log_dirs=dirs, offsets_topic_num_partitions=1)
    client = await node.client()
    await client.create_topic("t", 1)
    await client.commit("g", "t", {0: 7})
    here = (await placed(client))["__consumer_offsets", 0]
    there = dirs[1 - dirs.index(here)]
    assert await move(client, there, ("__consumer_offsets", 0)) == [0]
    await until_in(client, ("__consumer_offsets", 0), there)

    async def is_back() -> bool:
        return await client.try_committed("g", "t") == (0, 7)

    await until(is_back)
