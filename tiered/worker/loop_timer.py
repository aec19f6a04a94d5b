"""The event loop's own timers as a `Timer`: in the tier process few are armed at a time."""

import asyncio
from collections.abc import Callable


class LoopTimer:
    """`storage.environment.timer.Timer` on the running loop."""

    __slots__ = ("_loop",)

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Run `callback` once, `delay_ms` from now."""
        return self._loop.call_later(max(delay_ms, 0.0) / 1000, callback)
