import asyncio
import threading

import pytest

from tiered.errors import TierProcessError
from tiered.storage_manager.disk_threads import DiskThreads


async def test_a_call_runs_elsewhere() -> None:
    """And gives what it gives, or raises what it raises."""
    threads = DiskThreads(2)
    assert await threads.run(threading.get_ident) != threading.get_ident()
    assert await threads.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 7, 0)
    threads.close()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("cancels", [1, 3])
async def test_a_cancelled_caller_waits_for_its_thread(fails: bool, cancels: int) -> None:
    """However often it is cancelled: the thread works in its memory."""
    threads = DiskThreads(1)
    begun, release = threading.Event(), threading.Event()
    done = []

    def work() -> None:
        begun.set()
        release.wait(60)
        done.append(True)
        if fails:
            raise OSError("nobody hears this")

    task = asyncio.create_task(threads.run(work))
    await asyncio.sleep(0)
    assert begun.wait(60)
    for _ in range(cancels):
        task.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [True]
    threads.close()


async def test_after_the_end_nothing_begins() -> None:
    """What comes late is told so."""
    threads = DiskThreads(1)
    threads.close()
    with pytest.raises(TierProcessError, match="closed"):
        await threads.run(int)
