import asyncio
import threading
from collections.abc import Iterator

import pytest

from pipeline.read.bytes.store_thread import StoreThread


@pytest.fixture
def thread() -> Iterator[StoreThread]:
    thread = StoreThread()
    yield thread
    thread.close()


def test_calls_run_in_one_thread_that_is_not_the_callers(thread: StoreThread) -> None:
    async def name() -> str:
        return threading.current_thread().name

    assert {thread.run(name()), thread.start(name()).result()} == {"varve-store"}
    assert threading.current_thread().name != "varve-store"


def test_an_error_reaches_who_waits(thread: StoreThread) -> None:
    async def fail() -> None:
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here"):
        thread.run(fail())


def test_calls_go_on_side_by_side(thread: StoreThread) -> None:
    """The first waits for the second."""
    told = thread.start(_event())
    event = told.result()

    async def wait() -> str:
        await event.wait()
        return "told"

    async def tell() -> None:
        event.set()

    waiting = thread.start(wait())
    thread.run(tell())
    assert waiting.result() == "told"


async def _event() -> asyncio.Event:
    return asyncio.Event()


def test_a_cancelled_call_ends(thread: StoreThread) -> None:
    ended = threading.Event()
    begun = threading.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    started = thread.start(hang())
    assert begun.wait(10)
    started.cancel()
    assert ended.wait(10)


def test_closing_ends_what_is_under_way() -> None:
    thread = StoreThread()
    begun, ended = threading.Event(), threading.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    thread.start(hang())
    assert begun.wait(10)
    assert thread.is_alive
    thread.close()
    assert ended.is_set()
    assert not thread.is_alive
    thread.close()


def test_it_needs_no_uvloop() -> None:
    thread = StoreThread(asyncio.new_event_loop)

    async def answer() -> int:
        return 42

    assert thread.run(answer()) == 42
    thread.close()
