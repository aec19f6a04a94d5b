"""The chunk cache's directory: read once, in the background; files removed later."""

import asyncio
import errno
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from tests.fakes.filesystem import FakeFilesystem
from tests.unit.tiered.fetch.remote_history import run_here, settle
from tiered.cache.chunk_scan import ChunkScan, FileRemover
from tiered.format.chunk_file import ChunkFile, ChunkKey, chunk_path

T = TypeVar("T")


class _World:
    """Three folders with a chunk each; threads work only while the gate is open."""

    def __init__(self) -> None:
        self.filesystem = FakeFilesystem()
        self.files = [
            ChunkFile(ChunkKey(UUID(f"{folder}{30 * '0'}"), 0), 3, 0)
            for folder in ("00", "ab", "ff")
        ]
        for file in self.files:
            path = chunk_path("/c", file)
            self.filesystem.mkdir(path.rpartition("/")[0])
            self.filesystem.open(path, create=True).write_at(b"abc", 0)
        self.gate = asyncio.Event()
        self.calls: list[str] = []
        self.found: list[ChunkFile] = []
        self.ended: list[int] = []
        self.scan = ChunkScan(
            "/c", "mine", self.filesystem, self.run, self.found.append, lambda: self.ended.append(1)
        )

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        self.calls.append(str(args[1]))
        await self.gate.wait()
        return await run_here(function, *args)


async def test_all_folders_are_read() -> None:
    world = _World()
    world.gate.set()
    world.scan.start()
    await world.scan.wait()
    assert sorted(world.found) == sorted(world.files)
    assert world.scan.done
    assert world.ended == [1]


async def test_a_folder_may_be_read_out_of_turn_and_only_once() -> None:
    world = _World()
    first = asyncio.create_task(world.scan.folder("/c/ff"))
    second = asyncio.create_task(world.scan.folder("/c/ff"))
    await settle()
    assert world.calls == ["/c/ff"]
    assert not first.done()
    world.gate.set()
    await first
    await second
    assert world.found == [world.files[2]]
    world.scan.start()
    await world.scan.wait()
    assert world.calls.count("/c/ff") == 1
    assert sorted(world.found) == sorted(world.files)


async def test_who_waits_for_a_folder_may_leave_and_it_is_read_all_the_same() -> None:
    """Else its files would be nobody's: not found, not counted, not evicted."""
    world = _World()
    first = asyncio.create_task(world.scan.folder("/c/ff"))
    second = asyncio.create_task(world.scan.folder("/c/ff"))
    await settle()
    first.cancel()
    await settle()
    assert first.cancelled()
    assert not second.done()
    world.gate.set()
    await second
    assert world.found == [world.files[2]]
    world.scan.start()
    await world.scan.wait()
    assert sorted(world.found) == sorted(world.files)


async def test_closing_stops_a_folder_that_is_being_read() -> None:
    world = _World()
    waiting = asyncio.create_task(world.scan.folder("/c/ff"))
    await settle()
    await world.scan.close()
    await asyncio.gather(waiting, return_exceptions=True)
    assert world.found == []


async def test_a_folder_that_cannot_be_read_is_left_out() -> None:
    world = _World()
    world.gate.set()
    world.filesystem.fail("list", errno.EIO, path="/c/ab")
    world.scan.start()
    await world.scan.wait()
    assert sorted(world.found) == [world.files[0], world.files[2]]
    assert world.scan.done


async def test_closing_stops_it() -> None:
    world = _World()
    world.scan.start()
    await settle()
    await world.scan.close()
    assert not world.scan.done
    assert world.found == []


async def test_nothing_to_wait_for_before_it_begins() -> None:
    world = _World()
    await world.scan.wait()
    await world.scan.close()
    assert world.calls == []


async def test_files_are_removed_unless_they_are_wanted_again() -> None:
    filesystem = FakeFilesystem()
    for name in ("/a", "/b", "/c"):
        filesystem.open(name, create=True)
    remover = FileRemover(filesystem, run_here, lambda path: path == "/b")
    filesystem.fail("unlink", errno.EIO, path="/c")
    for name in ("/a", "/b", "/c", "/missing"):
        remover.remove(name)
    await remover.close()
    assert [filesystem.exists(name) for name in ("/a", "/b", "/c")] == [False, True, True]
    assert remover.errors == 1
    await remover.close()
