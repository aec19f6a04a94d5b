"""What a node was in the bucket's claim outlives it."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from broker.remote.incarnation_file import CLUSTER_FILE_NAME, IncarnationFile
from storage.errors import DiskError
from tests.fakes.filesystem import FakeFilesystem
from tiered.errors import RemoteStorageError

T = TypeVar("T")


async def run_here(function: Callable[[], T], /) -> T:
    return function()


async def test_the_last_ones_are_kept() -> None:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    memory = IncarnationFile(filesystem, "/d/s", run_here)
    assert await memory.load() == []
    assert not await memory.has_claimed()
    await memory.save(["", "a"])
    assert await memory.load() == ["a"]
    await memory.save(["a", "b"])
    assert await IncarnationFile(filesystem, "/d/s", run_here).load() == ["a", "b"]
    assert await memory.has_claimed()


async def test_a_disk_that_refuses_is_told() -> None:
    class Refusing(FakeFilesystem):
        def exists(self, path: str) -> bool:
            raise DiskError("cannot look", path, 5)

    memory = IncarnationFile(Refusing(), "/d/s", run_here)
    with pytest.raises(RemoteStorageError):
        await memory.load()
    with pytest.raises(RemoteStorageError):
        await memory.save(["a"])


async def test_a_cluster_s_is_a_file_of_its_own() -> None:
    """A single node that comes from a cluster has no claim, and has to be told."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    await IncarnationFile(filesystem, "/d/s", run_here, CLUSTER_FILE_NAME).save(["cluster"])
    assert await IncarnationFile(filesystem, "/d/s", run_here).load() == []
