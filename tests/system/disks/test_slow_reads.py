"""One of two log directories takes its time for every call; the other one's clients do not notice.

The loop's longest pause is measured: with a call of the slow directory on the loop it would be that
call's time at least.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.fakes.network.client import Client, Read
from tests.fakes.storage.slow_disk import SlowDisk
from tests.system.conftest import Node, StartNode, until
from tests.system.disks.test_directories import placed
from tests.system.hostile.probe import RunDelay

pytestmark = pytest.mark.measures

RECORDS = 64
SIZE = 50_000
DELAY_S = 0.4
LONG_S = 3.0
READ_KINDS = ("open", "read", "size", "stat")
# What is not under test here sleeps.
QUIET = {
    "log_initial_task_delay_ms": 3_600_000,
    "log_retention_check_interval_ms": 3_600_000,
    "log_flush_offset_checkpoint_interval_ms": 3_600_000,
    "log_cleaner_backoff_ms": 3_600_000,
}


class Slow(NamedTuple):
    """A broker with a topic on each directory, 64 records each, in several segments."""

    node: Node
    disk: SlowDisk
    slow_directory: str


@pytest.fixture
async def slow(start_node: StartNode, tmp_path: Path) -> AsyncIterator[Slow]:
    """Started anew over its files, so that nothing was read of them; not slow yet."""
    dirs = (str(tmp_path / "first"), str(tmp_path / "second"))
    first = await start_node(log_dirs=dirs, **QUIET)
    client = await first.client()
    for name in ("a", "b"):
        await client.create_topic(
            name, **{"segment.bytes": 1 << 20, "index.interval.bytes": 100_000, "retention.ms": -1}
        )
        for at in range(RECORDS):
            await client.produce(name, b"%d" % at + bytes(SIZE))
    by_directory = {directory: topic for (topic, _), directory in (await placed(client)).items()}
    assert set(by_directory) == set(dirs), "one topic on each"
    await first.stop()
    disk = SlowDisk(DELAY_S)
    node = await start_node(log_dirs=dirs, filesystem=disk, **QUIET)
    # The metadata store is in the first one.
    yield Slow(node, disk, dirs[1])
    disk.heal()


async def topics_of(slow: Slow, client: Client) -> tuple[str, str]:
    """(the one on the slow directory, the other)."""
    where = await placed(client)
    names = {directory: topic for (topic, _), directory in where.items()}
    other = next(topic for directory, topic in names.items() if directory != slow.slow_directory)
    return names[slow.slow_directory], other


class Pause:
    """The loop's longest pause, without the time that it waited for a processor."""

    longest_s = 0.0


@asynccontextmanager
async def watched_loop() -> AsyncIterator[Pause]:
    pause = Pause()
    starved = RunDelay(os.getpid())

    async def watch() -> None:
        before = time.monotonic() - starved.ms() / 1000
        while True:
            await asyncio.sleep(0.002)
            now = time.monotonic() - starved.ms() / 1000
            pause.longest_s = max(pause.longest_s, now - before)
            before = now

    task = asyncio.create_task(watch())
    try:
        yield pause
    finally:
        task.cancel()
        await asyncio.wait([task])
        starved.close()


def on_loop(disk: SlowDisk) -> list[tuple[str, str]]:
    return [call for call in disk.on_loop if call[0] in READ_KINDS]


async def first_record(client: Client, topic: str, offset: int) -> Read:
    return await client.fetch(topic, offset, max_bytes=2 * SIZE)


async def test_cold_readers_of_a_slow_directory_hold_up_nobody(slow: Slow) -> None:
    """Sixteen of them, each somewhere else; they get what they asked for in the end."""
    node, disk, directory = slow
    client = await node.client()
    topic, other = await topics_of(slow, client)
    readers = [await node.client(f"reader-{at}") for at in range(16)]
    disk.delay_s = LONG_S
    disk.slow(directory)
    async with watched_loop() as pause:
        reads = [
            asyncio.create_task(first_record(reader, topic, 3 * at))
            for at, reader in enumerate(readers)
        ]
        slowest_s = 0.0
        for at in range(40):
            begin = time.monotonic()
            await client.metadata(topic, other)
            assert (await client.fetch(other, at, max_bytes=2 * SIZE)).records[0].offset == at
            assert await client.produce(other, b"x") == RECORDS + at
            slowest_s = max(slowest_s, time.monotonic() - begin)
        metrics = await node.metrics()
        assert metrics.of("varve_cold_reads", state="waiting") > 0
        assert metrics.of("varve_cold_reads", state="running") >= 1
        disk.delay_s = 0.01
        found = await asyncio.gather(*reads)
    assert on_loop(disk) == []
    assert disk.calls > 16
    assert pause.longest_s < 0.9 * LONG_S
    assert slowest_s < 0.9 * LONG_S
    assert [read.records[0].offset for read in found] == [3 * at for at in range(16)]
    assert {read.error for read in found} == {ErrorCode.NONE}


async def test_all_of_a_slow_directory_can_be_read(slow: Slow) -> None:
    """From begin to end, over segment borders, by a consumer and by one that reads committed."""
    node, disk, directory = slow
    client = await node.client()
    topic, _ = await topics_of(slow, client)
    disk.delay_s = 0.001
    disk.slow(directory)
    records = await client.read_all(topic)
    assert [record.offset for record in records] == list(range(RECORDS))
    assert all(r.value == b"%d" % r.offset + bytes(SIZE) for r in records)
    assert on_loop(disk) == []


async def test_records_of_other_partitions_are_held_back_for_half_a_second(slow: Slow) -> None:
    """Then they go out alone, and the slow partition's turn comes with a later request."""
    node, disk, directory = slow
    client = await node.client()
    topic, other = await topics_of(slow, client)
    disk.slow(directory)

    async def both(offset: int) -> dict[str, Any]:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2 * SIZE)
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=name, partitions=[wanted]) for name in (topic, other)],
        )
        answer = await asyncio.wait_for(client.call(request, 12), 60)
        return {part.topic: part.partitions[0] for part in answer.responses}

    begin = time.monotonic()
    answer = await both(5)
    assert 0.45 < time.monotonic() - begin < 15
    assert answer[other].records
    assert not answer[topic].records
    assert answer[topic].error_code == 0
    # Each request finds what was read for the ones before it.
    for _ in range(20):
        if (await both(5))[topic].records:
            break
    else:
        pytest.fail("a disk slower than clients are patient is never read")
    assert on_loop(disk) == []


async def test_a_reader_that_leaves_takes_its_reads_along(slow: Slow) -> None:
    """What waits for a thread is given up; only what threads have begun goes on."""
    node, disk, directory = slow
    client = await node.client()
    topic, _ = await topics_of(slow, client)
    readers = [await node.client(f"reader-{at}") for at in range(8)]
    disk.slow(directory)
    cold = node.broker.replicas.cold_reads
    for at, reader in enumerate(readers):
        reader.start_fetch(topic, 8 * at, max_bytes=2 * SIZE).cancel()
    await until(lambda: cold.waiting >= 1)
    parked = node.broker.replicas.delayed_cold_fetch
    assert parked.parked == len(readers)
    for reader in readers:
        await reader.close()
    await until(lambda: parked.parked == 0)
    assert cold.waiting == 0
    await until(lambda: cold.running == 0)
    disk.heal()
    assert (await first_record(client, topic, 9)).records[0].offset == 9


async def test_a_topic_that_is_deleted_answers_its_readers(slow: Slow) -> None:
    node, disk, directory = slow
    client = await node.client()
    topic, _ = await topics_of(slow, client)
    reader = await node.client("reader")
    disk.slow(directory)
    read = asyncio.create_task(first_record(reader, topic, 20))
    await until(lambda: node.broker.replicas.delayed_cold_fetch.parked == 1)
    disk.delay_s = 0.001
    await client.delete_topic(topic)
    assert (await asyncio.wait_for(read, 60)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_coordinators_load_from_a_slow_directory_in_threads(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Groups whose partition lies there are loading meanwhile; everybody else is served."""
    dirs = (str(tmp_path / "first"), str(tmp_path / "second"))
    settings = {"offsets_topic_num_partitions": 4, **QUIET}
    first = await start_node(log_dirs=dirs, **settings)
    client = await first.client()
    await client.create_topic("t")
    groups = [f"group-{at}" for at in range(12)]
    for at, group in enumerate(groups):
        await client.find_coordinator(group)
        await client.commit(group, "t", {0: at})
    await first.stop()
    disk = SlowDisk(0.02)
    disk.slow(dirs[1])
    node = await start_node(log_dirs=dirs, filesystem=disk, **settings)
    client = await node.client()
    for at, group in enumerate(groups):
        await client.find_coordinator(group)
        assert await client.committed(group, "t") == at
    assert [call for call in on_loop(disk) if "__consumer_offsets" in call[1]] == []
    disk.heal()
