"""A log directory whose every call takes a second: who writes to another one does not notice.

The loop's longest pause is measured, and that no call about the slow directory was made on it.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from tests.fakes.storage.slow_disk import SlowDisk
from tests.system.conftest import StartNode
from tests.system.disks.test_directories import placed
from tests.system.disks.test_slow_reads import LONG_S, QUIET, Slow, topics_of, watched_loop

pytestmark = pytest.mark.measures

RECORDS = 12
SIZE = 50_000


@pytest.fixture
async def slow(start_node: StartNode, tmp_path: Path) -> AsyncIterator[Slow]:
    """A topic on each directory; started anew, so nothing is known of their segments' ends."""
    dirs = (str(tmp_path / "first"), str(tmp_path / "second"))
    first = await start_node(log_dirs=dirs, **QUIET)
    client = await first.client()
    for name in ("a", "b"):
        await client.create_topic(name, **{"segment.bytes": 1 << 20, "retention.ms": -1})
        for at in range(RECORDS):
            await client.produce(name, b"%d" % at + bytes(SIZE))
    assert set((await placed(client)).values()) == set(dirs), "one topic on each"
    await first.stop()
    disk = SlowDisk(LONG_S)
    node = await start_node(log_dirs=dirs, filesystem=disk, **QUIET)
    yield Slow(node, disk, dirs[1])
    disk.heal()


async def test_producers_to_a_slow_directory_hold_up_nobody(slow: Slow) -> None:
    """Small batches and large ones, over a roll; all are written in the end, in order."""
    node, disk, directory = slow
    client = await node.client()
    topic, other = await topics_of(slow, client)
    producers = [await node.client(f"producer-{at}") for at in range(6)]
    disk.slow(directory)
    async with watched_loop() as pause:
        writes = [
            asyncio.create_task(
                producer.try_produce(
                    topic, [(None, b"%d" % at + bytes(300_000 if at % 2 else 100))]
                )
            )
            for at, producer in enumerate(producers)
        ]
        slowest_s = 0.0
        for at in range(60):
            begin = time.monotonic()
            await client.metadata(topic, other)
            assert await client.produce(other, b"x") == RECORDS + at
            slowest_s = max(slowest_s, time.monotonic() - begin)
            await asyncio.sleep(0.02)
        assert not any(write.done() for write in writes)
        metrics = await node.metrics()
        assert metrics.of("varve_directory_writes_are_slow", directory=directory) == 1
        assert metrics.of("varve_directory_writer_queued_bytes", directory=directory) > 900_000
        disk.delay_s = 0.01
        answers = await asyncio.gather(*writes)
    assert disk.on_loop == []
    assert pause.longest_s < 0.9 * LONG_S
    assert slowest_s < 0.9 * LONG_S
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    offsets = {answer.base_offset: at for at, answer in enumerate(answers)}
    assert sorted(offsets) == list(range(RECORDS, RECORDS + 6))
    disk.heal()
    for record in (await client.read_all(topic))[RECORDS:]:
        assert record.value is not None
        assert record.value.startswith(b"%d\0" % offsets[record.offset])


async def test_a_quick_directory_that_becomes_slow_holds_the_loop_up_once(slow: Slow) -> None:
    """Nobody can know before; from the first such write on its thread does them."""
    node, disk, directory = slow
    client = await node.client()
    topic, _ = await topics_of(slow, client)
    for at in range(20):
        assert await client.produce(topic, b"q") == RECORDS + at
    metrics = await node.metrics()
    assert metrics.of("varve_directory_writes_are_slow", directory=directory) == 0
    disk.delay_s = 0.3
    disk.slow(directory)
    for _ in range(3):
        await client.produce(topic, b"s")
    metrics = await node.metrics()
    assert metrics.of("varve_directory_writes_are_slow", directory=directory) == 1
    assert [kind for kind, _ in disk.on_loop].count("write") == 1
