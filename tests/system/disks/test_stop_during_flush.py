"""A stop while a flush is under way: what becomes of that decides what the directory says."""

import asyncio
import os
import threading
from pathlib import Path

from tests.system.conftest import StartNode
from tests.system.disks.gated_disk import GatedDisk


async def test_a_flush_that_fails_while_the_broker_stops_leaves_no_clean_directory(
    start_node: StartNode, tmp_path: Path
) -> None:
    """The stop flushed beside it, which succeeded: the next start trusted what is not there."""
    disk = GatedDisk(fails_first=True)
    node = await start_node(log_dirs=(str(tmp_path / "data"),), filesystem=disk)
    client = await node.client()
    await client.create_topic("t", **{"flush.ms": 1})
    await client.produce("t", b"x")
    await asyncio.to_thread(disk.waiting.wait)
    # By a thread: a stop that does not wait for it may hold the loop.
    threading.Timer(1.0, disk.gate.set).start()
    await node.stop()
    names = os.listdir(tmp_path / "data")
    assert ".kafka_cleanshutdown" not in names
    assert ".disk-failed" in names
