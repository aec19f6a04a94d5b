"""Waiting on a timer that is passed in, so that a simulation's time counts."""

import asyncio

from broker.runtime.timer import Timer


async def pause(timer: Timer, duration_ms: float) -> None:
    """Wait; who is cancelled leaves no timer behind."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end() -> None:
        if not over.done():
            over.set_result(None)

    handle = timer.call_later_ms(duration_ms, end)
    try:
        await over
    finally:
        handle.cancel()
