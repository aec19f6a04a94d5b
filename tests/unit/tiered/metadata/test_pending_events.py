"""Who waits for an event to be read back gets its fate, in whatever order things happen."""

import asyncio

import pytest

from tests.fakes.timer import ManualTimer
from tiered.errors import InvalidTransitionError, RemoteStorageError
from tiered.metadata.pending_events import PendingEvents


async def waiting(read_back: PendingEvents, offset: int) -> "asyncio.Future[None]":
    task = asyncio.ensure_future(read_back.expect(offset))
    await asyncio.sleep(0)
    return task


async def test_applied() -> None:
    timer = ManualTimer()
    read_back = PendingEvents(timer, 100)
    read_back.begin()
    task = await waiting(read_back, 5)
    read_back.applied(4)
    await asyncio.sleep(0)
    assert not task.done()
    read_back.applied(5)
    await task
    read_back.check(5)
    read_back.end()
    assert timer.pending == 0


async def test_refused_before_the_writer_knows_the_offset() -> None:
    read_back = PendingEvents(ManualTimer(), 100)
    read_back.begin()
    read_back.begin()
    read_back.refused(7, InvalidTransitionError("late"))
    read_back.applied(7)
    read_back.end()
    read_back.check(6)
    with pytest.raises(InvalidTransitionError, match="late"):
        read_back.check(7)


async def test_refusals_are_forgotten_when_nobody_can_ask() -> None:
    read_back = PendingEvents(ManualTimer(), 100)
    read_back.refused(1, InvalidTransitionError("nobody tells anything"))
    read_back.begin()
    read_back.check(1)
    read_back.refused(2, InvalidTransitionError("of somebody else"))
    read_back.end()
    read_back.begin()
    read_back.check(2)


async def test_time_is_up() -> None:
    timer = ManualTimer()
    read_back = PendingEvents(timer, 100)
    task = await waiting(read_back, 5)
    timer.advance(100)
    with pytest.raises(RemoteStorageError, match="not read back within 100 ms"):
        await task
    read_back.applied(5)


async def test_nothing_more_is_read_back() -> None:
    read_back = PendingEvents(ManualTimer(), 100)
    task = await waiting(read_back, 5)
    read_back.close()
    with pytest.raises(RemoteStorageError):
        await task
