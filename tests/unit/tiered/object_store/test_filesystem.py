"""The store in a directory: threads, cancelling, closing."""

import asyncio
import errno
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.fakes.executor import InlineExecutor
from tests.fakes.filesystem import FakeFilesystem
from tiered.errors import RemoteStorageError, StoreDeniedError, StoreUnavailableError
from tiered.object_store.base import Buffer
from tiered.object_store.filesystem import PAGE_MAX, FilesystemObjectStore


def make(
    filesystem: FakeFilesystem | None = None, *, key_prefix: str = ""
) -> tuple[FakeFilesystem, FilesystemObjectStore]:
    filesystem = filesystem or FakeFilesystem(ManualClock())
    store = FilesystemObjectStore(
        filesystem,
        "/objects",
        ManualClock(),
        SeededRandomness(1),
        key_prefix=key_prefix,
        executor=InlineExecutor(),
    )
    return filesystem, store


class GatedFilesystem(LocalFilesystem):
    """Opening a file for reading waits for the test."""

    __slots__ = ("entered", "gate")

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.gate = threading.Event()

    def open(self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False):  # type: ignore[no-untyped-def]  # as its parent
        if readonly:
            self.entered.set()
            assert self.gate.wait(60)
        return super().open(path, create=create, readonly=readonly, spare=spare)


async def test_a_cancelled_read_ends_only_when_its_memory_is_free(tmp_path: Path) -> None:
    """Else a late thread would write into what holds another object by then."""
    disk = GatedFilesystem()
    with ThreadPoolExecutor(1) as executor:
        store = FilesystemObjectStore(
            disk, str(tmp_path / "o"), SystemClock(), SeededRandomness(1), executor=executor
        )
        await store.put("a", b"12345")
        buffer = bytearray(5)
        task = asyncio.create_task(store.get_range("a", 0, 5, memoryview(buffer)))
        await asyncio.to_thread(disk.entered.wait, 10)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not task.done()
        assert bytes(buffer) == bytes(5)
        disk.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bytes(buffer) == b"12345"
        assert store.statistics.by_call["get_range"].errors["cancelled"] == 1


async def test_the_loop_runs_while_the_disk_works(tmp_path: Path) -> None:
    disk = GatedFilesystem()
    store = FilesystemObjectStore(disk, str(tmp_path / "o"), SystemClock(), SeededRandomness(1))
    await store.put("a", b"12345")
    task = asyncio.create_task(store.get("a", max_bytes=5))
    await asyncio.to_thread(disk.entered.wait, 10)
    await store.put("b", b"meanwhile")
    assert not task.done()
    disk.gate.set()
    assert await task == b"12345"
    await store.close()


async def test_a_failed_put_leaves_no_file() -> None:
    filesystem, store = make()
    for kind in ("write", "sync", "rename"):
        filesystem.fail(kind, errno.ENOSPC)
        with pytest.raises(StoreUnavailableError):
            await store.put("a/b", b"12345")
        assert filesystem.list_directory("/objects") == []
    filesystem.fail("create", errno.EROFS)
    with pytest.raises(StoreDeniedError):
        await store.put("a/b", b"12345")
    assert filesystem.descriptors == 0


async def test_a_failed_stream_leaves_no_file() -> None:
    filesystem, store = make()

    async def parts() -> AsyncIterator[Buffer]:
        yield b"12"
        yield b"34"

    for kind in ("write", "sync", "rename"):
        filesystem.fail(kind, errno.EIO, skip=1 if kind == "write" else 0)
        with pytest.raises(StoreUnavailableError):
            await store.put_stream("a/b", parts(), 4)
        assert filesystem.list_directory("/objects") == []
    assert filesystem.descriptors == 0


async def test_an_upload_that_a_dead_process_left_is_told_and_removed() -> None:
    filesystem, store = make(key_prefix="tier/")
    left = f"/objects/tier/t/0/x.log.{'a' * 32}.unfinished"
    filesystem.mkdir("/objects/tier/t/0")
    filesystem.poke(left, b"half")
    await store.put("t/0/y.log", b"")
    (upload,) = await store.list_uploads("t/")
    assert (upload.key, upload.upload_id) == ("t/0/x.log", "a" * 32)
    assert await store.list_uploads("u") == []
    assert [info.key for info in (await store.list("")).objects] == ["t/0/y.log"]
    await store.abort_upload(upload)
    await store.abort_upload(upload)
    assert not filesystem.exists(left)
    assert await store.list_uploads("") == []


async def test_a_stream_whose_file_was_aborted_by_a_scrubber_fails() -> None:
    _, store = make()

    async def parts() -> AsyncIterator[Buffer]:
        yield b"12"
        for upload in await store.list_uploads(""):
            await store.abort_upload(upload)
        yield b"34"

    with pytest.raises(StoreUnavailableError):
        await store.put_stream("a/b", parts(), 4)
    assert (await store.list("")).objects == []


async def test_a_page_has_no_more_than_a_thousand() -> None:
    filesystem, store = make()
    for number in range(PAGE_MAX + 1):
        filesystem.poke(f"/objects/{number:05}", b"")
    page = await store.list("", limit=5000)
    assert len(page.objects) == PAGE_MAX
    last = await store.list("", continuation=page.continuation, limit=5000)
    assert [info.key for info in last.objects] == [f"{PAGE_MAX:05}"]
    assert last.continuation is None


async def test_nothing_is_done_after_close() -> None:
    _, store = make()
    await store.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.put("a", b"")


async def test_a_stream_under_way_while_the_store_closes_leaves_no_file() -> None:
    filesystem, store = make()

    async def parts() -> AsyncIterator[Buffer]:
        yield b"12"
        await store.close()
        yield b"34"

    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.put_stream("a", parts(), 4)
    assert filesystem.list_directory("/objects") == []


def test_a_root_that_cannot_be_made_is_told() -> None:
    filesystem = FakeFilesystem(ManualClock())
    filesystem.fail("mkdir", errno.EACCES)
    with pytest.raises(StoreDeniedError, match="/objects"):
        make(filesystem)
    filesystem.poke("/file", b"")
    with pytest.raises(RemoteStorageError):
        FilesystemObjectStore(filesystem, "/file/x", ManualClock(), SeededRandomness(1))


def test_the_name_tells_where_it_is() -> None:
    assert make(key_prefix="tier/")[1].name == "file:///objects/tier/"
