"""What a watch's reader gets: changes in order, bounded, then the end."""

import asyncio

import pytest

from broker.controller.store.metadata_store import Changes, CompactedError, Event, EventKind
from broker.controller.store.watch_queue import WatchQueue


def changes(revision: int, events: int) -> Changes:
    event = Event(EventKind.DELETE, "k", revision, None, None)
    return Changes(revision, (event,) * events)


async def test_what_does_not_fit_is_refused_until_something_was_read() -> None:
    queue = WatchQueue(3)
    assert queue.put(changes(2, 2))
    assert not queue.put(changes(3, 2))
    assert (await queue.get()).revision == 2
    assert queue.put(changes(3, 3))


async def test_progress_that_is_not_read_does_not_grow() -> None:
    queue = WatchQueue(3)
    queue.put(changes(2, 1))
    for revision in range(3, 100):
        assert queue.put(Changes(revision, ()))
    assert [(await queue.get()).revision for _ in range(2)] == [2, 99]


async def test_a_failure_comes_behind_what_is_queued_and_stays() -> None:
    queue = WatchQueue(3)
    queue.put(changes(2, 1))
    queue.fail(CompactedError(5))
    assert queue.is_over
    assert (await queue.get()).revision == 2
    for _ in range(2):
        with pytest.raises(CompactedError):
            await queue.get()


async def test_a_close_ends_a_reader_that_waits() -> None:
    queue = WatchQueue(3)
    waiting = asyncio.ensure_future(anext(Reader(queue), None))
    await asyncio.sleep(0)
    queue.close()
    assert await asyncio.wait_for(waiting, 30) is None


class Reader:
    def __init__(self, queue: WatchQueue) -> None:
        self._queue = queue

    def __aiter__(self) -> "Reader":
        return self

    async def __anext__(self) -> Changes:
        return await self._queue.get()
