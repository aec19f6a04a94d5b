"""The loop's timers as a `Timer`."""

import asyncio

from tiered.worker.loop_timer import LoopTimer


async def test_calls_back_once_in_order_and_not_when_cancelled() -> None:
    timer = LoopTimer()
    order: list[int] = []
    done = asyncio.Event()
    timer.call_later_ms(4, done.set)
    timer.call_later_ms(2, lambda: order.append(2))
    timer.call_later_ms(-5, lambda: order.append(1))
    timer.call_later_ms(1, lambda: order.append(9)).cancel()
    await done.wait()
    assert order == [1, 2]
