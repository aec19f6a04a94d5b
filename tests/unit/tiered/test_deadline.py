"""What takes too long is cancelled; who else cancels is not mistaken for it."""

import asyncio

import pytest

from tests.fakes.timer import ManualTimer
from tiered.deadline import BYTES_PER_CALL, CallDeadlines, Deadline, call_deadline_ms, sleep_ms
from tiered.errors import StoreTimeoutError


async def _hang(timer: ManualTimer, ended: list[str]) -> None:
    async with Deadline(timer, 100, "it"):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")


async def test_ends_what_hangs() -> None:
    timer, ended = ManualTimer(), []  # type: ignore[var-annotated]  # texts
    task = asyncio.ensure_future(_hang(timer, ended))
    await asyncio.sleep(0)
    timer.advance(99)
    await asyncio.sleep(0)
    assert not task.done()
    timer.advance(1)
    with pytest.raises(StoreTimeoutError, match="it: not finished after 100 ms"):
        await task
    assert ended == ["cancelled"]
    assert task.cancelling() == 0


async def test_a_cancellation_from_outside_stays_one() -> None:
    timer, ended = ManualTimer(), []  # type: ignore[var-annotated]  # texts
    task = asyncio.ensure_future(_hang(timer, ended))
    await asyncio.sleep(0)
    timer.advance(100)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_disarms_when_the_block_ends() -> None:
    timer = ManualTimer()
    async with Deadline(timer, 100, "it"):
        assert timer.pending == 1
    assert timer.pending == 0
    with pytest.raises(KeyError):
        async with Deadline(timer, 100, "it"):
            raise KeyError
    assert timer.pending == 0


async def test_sleep_wakes_up_and_can_be_cancelled() -> None:
    timer = ManualTimer()
    task = asyncio.ensure_future(sleep_ms(timer, 50))
    await asyncio.sleep(0)
    timer.advance(50)
    await task
    task = asyncio.ensure_future(sleep_ms(timer, 50))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert timer.pending == 0


def test_a_call_gets_its_time_once_per_64_mib() -> None:
    assert call_deadline_ms(10, 3) == 30
    assert call_deadline_ms(10, 3, 1) == 40
    assert call_deadline_ms(10, 0, (64 << 20) + 1) == 20


async def test_a_call_that_moves_more_bytes_may_take_longer() -> None:
    timer = ManualTimer()
    deadlines = CallDeadlines(timer, 100)

    async def work() -> None:
        async with deadlines.of(2, "it", size=BYTES_PER_CALL + 1, extra_ms=50):
            await asyncio.Event().wait()

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    timer.advance(449)
    await asyncio.sleep(0)
    assert not task.done()
    timer.advance(1)
    with pytest.raises(StoreTimeoutError, match="it: not finished after 450 ms"):
        await task
