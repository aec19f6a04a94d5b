"""Retention in a directory whose every call takes its time: the loop does not wait for it."""

from pathlib import Path

import pytest

from tests.system.conftest import until
from tests.system.disks.test_slow_reads import SIZE, Slow, slow, topics_of, watched_loop

pytestmark = pytest.mark.measures

DELAY_S = 0.5

__all__ = ["slow"]


def files(directory: str, topic: str, suffix: str) -> int:
    return len(list(Path(directory, f"{topic}-0").glob(f"*{suffix}")))


async def test_retention_in_a_slow_directory_holds_up_nobody(slow: Slow) -> None:
    """Segments leave the log, and their files get other names in the directory's thread."""
    node, disk, directory = slow
    client = await node.client()
    topic, other = await topics_of(slow, client)
    await client.alter_topic(topic, **{"retention.bytes": 10 * SIZE, "file.delete.delay.ms": 0})
    partition = node.broker.replicas.replica_of(topic, 0)
    assert partition is not None
    segments = files(directory, topic, ".log")
    assert segments > 2
    assert node.broker.background is not None
    disk.delay_s = DELAY_S
    disk.slow(directory)
    async with watched_loop() as pause:
        await node.broker.background._retention()
        await until(lambda: files(directory, topic, ".deleted") > 0)
        for _ in range(20):
            await client.metadata(other)
        await partition.idle()
    assert disk.on_loop == []
    assert pause.longest_s < 0.9 * DELAY_S
    disk.heal()
    left = len(partition.log.segment_facts())
    assert files(directory, topic, ".log") == left < segments
    assert files(directory, topic, ".log.deleted") == segments - left
    first = partition.log.log_start_offset
    assert first > 0
    assert (await client.fetch(topic, first, max_bytes=2 * SIZE)).records[0].offset == first
