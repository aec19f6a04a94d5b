"""A pause ends when the timer says so, and leaves nothing behind."""

import asyncio

import pytest

from broker.runtime.pauses import pause
from tests.fakes.timer import ManualTimer


async def test_it_lasts_as_long_as_the_timer_says() -> None:
    timer = ManualTimer()
    task = asyncio.ensure_future(pause(timer, 100))
    await asyncio.sleep(0)
    timer.advance(99)
    await asyncio.sleep(0)
    assert not task.done()
    timer.advance(1)
    await asyncio.wait_for(task, 30)


async def test_one_that_is_cancelled_leaves_no_timer() -> None:
    timer = ManualTimer()
    task = asyncio.ensure_future(pause(timer, 100))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert timer.pending == 0
