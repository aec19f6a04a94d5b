"""Threads for the disk: results come back to the loop, errors come out, nothing is unbounded."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator

import pytest

from broker.runtime.disk import Disk, Disks
from storage.errors import DiskError


@pytest.fixture
async def disk() -> AsyncIterator[Disk]:
    made = Disk(2)
    yield made
    made.close()


async def test_calls_run_in_another_thread(disk: Disk) -> None:
    """With their arguments; the result comes out."""

    def act(first: int, *, second: int) -> tuple[int, int]:
        return first + second, threading.get_ident()

    total, thread = await disk.run(act, 1, second=2)
    assert total == 3
    assert thread != threading.get_ident()


async def test_errors_come_out(disk: Disk) -> None:
    def fail() -> None:
        raise DiskError("cannot write", "/data")

    with pytest.raises(DiskError, match="cannot write: /data"):
        await disk.run(fail)
    assert disk.running == 0


async def test_no_more_threads_than_told(disk: Disk) -> None:
    """The third waits until one of two is free."""
    gate = threading.Event()
    running = threading.Semaphore(0)

    def work() -> None:
        running.release()
        assert gate.wait(60)

    tasks = [asyncio.create_task(disk.run(work)) for _ in range(3)]
    await asyncio.sleep(0)
    assert running.acquire(timeout=30)
    assert running.acquire(timeout=30)
    assert not running.acquire(timeout=0.05)
    assert disk.running == 3
    gate.set()
    await asyncio.gather(*tasks)
    assert (disk.running, disk.started) == (0, 3)


async def test_submitted_calls_end_on_the_loop(disk: Disk) -> None:
    """`on_done` may touch what the loop owns."""
    ended: asyncio.Future[tuple[object, object, int, int]] = asyncio.Future()
    disk.submit(
        threading.get_ident,
        lambda result, error: ended.set_result(
            (result, error, threading.get_ident(), disk.running)
        ),
    )
    assert disk.running == 1
    result, error, thread, running = await asyncio.wait_for(ended, 30)
    assert result != thread == threading.get_ident()
    assert error is None
    assert running == 0


async def test_submitted_calls_hand_their_error_over(disk: Disk) -> None:
    ended: asyncio.Future[tuple[object, object]] = asyncio.Future()
    failure = DiskError("cannot sync", "/data")

    def fail() -> None:
        raise failure

    disk.submit(fail, lambda result, error: ended.set_result((result, error)))
    assert await asyncio.wait_for(ended, 30) == (None, failure)


async def test_a_call_that_failed_keeps_nothing_open() -> None:
    """The error's traceback names the file that was read: it ends with the error."""
    disk = Disk(1)
    ended = asyncio.Event()

    class OpenFile:
        def read(self) -> None:
            raise DiskError("cannot read", "/data")

    file = OpenFile()
    known = weakref.ref(file)
    gc.disable()
    try:
        disk.submit(file.read, lambda _result, _error: ended.set())
        del file
        await asyncio.wait_for(ended.wait(), 30)
        # The only thread has let go of the call before it takes the next one.
        await asyncio.wait_for(disk.run(lambda: None), 30)
        assert known() is None
    finally:
        gc.enable()
        disk.close()


def test_results_for_a_closed_loop_are_dropped() -> None:
    """A flush that outlives the loop ends quietly, and its thread with it."""
    gate = threading.Event()
    told: list[object] = []

    async def submit() -> Disk:
        disk = Disk(1)
        disk.submit(lambda: gate.wait(60), lambda result, _error: told.append(result))
        return disk

    disk = asyncio.run(submit())
    gate.set()
    disk.close()
    assert told == []


async def test_close_waits_for_what_runs_and_refuses_what_comes() -> None:
    disk = Disk(1)
    done = threading.Event()
    begun = threading.Event()

    def work() -> None:
        begun.set()
        assert not done.wait(0.05)
        done.set()

    task = asyncio.create_task(disk.run(work))
    await asyncio.to_thread(begun.wait, 5)
    disk.close()
    assert done.is_set()
    with pytest.raises(RuntimeError):
        await disk.run(work)
    await task


async def test_each_log_directory_has_threads_of_its_own() -> None:
    """A disk that hangs keeps no call about another waiting."""
    disks = Disks(1, ["/slow", "/quick"])
    gate = threading.Event()
    try:
        hanging = asyncio.create_task(disks.of("/slow/t-0").run(gate.wait, 60))
        assert await asyncio.wait_for(disks.of("/quick/t-1/0.log").run(lambda: "read"), 30)
        assert await asyncio.wait_for(disks.run(lambda: "elsewhere"), 30)
        assert not hanging.done()
        gate.set()
        assert await hanging
    finally:
        gate.set()
        disks.close()


def test_the_pool_of_a_path_is_its_log_directorys() -> None:
    disks = Disks(1, ["/data/a", "/data/b"])
    pools = disks.pools()
    assert disks.of("/data/a") is disks.of("/data/a/t-0") is disks.of("/data/a/t-0/0.log")
    assert disks.of("/data/a") is pools["/data/a"] is not pools["/data/b"]
    assert disks.of("/cache/chunk") is disks.of("") is disks
    assert pools["/data/a"].of("/data/b") is pools["/data/a"]
    disks.close()
