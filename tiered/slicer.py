"""Time slicing of long work on the event loop: at most one slice per loop iteration.

`asyncio.sleep(0)` yields too, but to every task: fifty readers that each work for two
milliseconds between two sleeps keep all others waiting for a hundred.

    A: work ─ pause ─────────────────── work ─ pause ...
    B:               work ─ pause ──────────────────── work ...
       one iteration ───> others ─> one iteration ───>
"""

import asyncio
from collections import deque
from collections.abc import Iterator

STEPS_PER_SLICE = 200
"""Events or segments that are worked on before a pause: one to two milliseconds."""


class Slicer:
    """See the module; shared by all tasks that work on the same loop for the same purpose."""

    __slots__ = ("_left", "_scheduled", "_waiting")

    def __init__(self) -> None:
        # Steps until a pause, of all together.
        self._left = STEPS_PER_SLICE
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def worked(self, steps: int) -> None:
        """So much was done since the last call: perhaps it is time for a pause."""
        self._left -= steps
        if self._left <= 0:
            await self.pause()

    async def pause(self) -> None:
        """Yield to the loop, and to tasks that have waited longer.

        Long work calls it first: many tasks may begin in the same loop iteration.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append(future)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._next)
        await future

    def _next(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                self._left = STEPS_PER_SLICE
                future.set_result(None)
                break
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._next)

    async def go_through(self, steps: Iterator[None]) -> None:
        """Do all `steps`, `STEPS_PER_SLICE` in a row."""
        for done, _ in enumerate(steps, 1):
            if done % 16 == 0:
                await self.worked(16)
