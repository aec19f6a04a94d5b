"""A stop while a flush is under way: what becomes of that decides what the directory says."""

import asyncio
import os
import threading
from pathlib import Path

from storage.environment.local_filesystem import LocalFile
from storage.errors import SyncFailedError
from tests.fakes.storage.failing_disk import FailingDisk, FailingFile
from tests.system.conftest import StartNode


class _Failing(FailingFile):
    """A log file whose first sync takes long and fails; then the kernel has nothing to tell."""

    __slots__ = ()

    def sync(self) -> None:
        disk = self._disk
        assert isinstance(disk, FailsOnce)
        if self.path.endswith(".log") and "/t-0/" in self.path and not disk.waiting.is_set():
            disk.waiting.set()
            assert disk.gate.wait(60)
            raise SyncFailedError("cannot sync (Input/output error)", self.path, 5)
        super().sync()


class FailsOnce(FailingDisk):
    """The first flush of t-0 fails when `gate` is set; `waiting` tells that it has begun."""

    __slots__ = ("gate", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.waiting = threading.Event()

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        return _Failing(path, plain.detach(), self)


async def test_a_flush_that_fails_while_the_broker_stops_leaves_no_clean_directory(
    start_node: StartNode, tmp_path: Path
) -> None:
    """The stop flushed beside it, which succeeded: the next start trusted what is not there."""
    disk = FailsOnce()
    node = await start_node(log_dirs=(str(tmp_path / "data"),), filesystem=disk)
    client = await node.client()
    await client.create_topic("t", **{"flush.ms": 1})
    await client.produce("t", b"x")
    await asyncio.to_thread(disk.waiting.wait)
    asyncio.get_running_loop().call_later(5.0, disk.gate.set)
    await node.stop()
    names = os.listdir(tmp_path / "data")
    assert ".kafka_cleanshutdown" not in names
    assert ".disk-failed" in names
