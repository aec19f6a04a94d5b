"""Budget: a bounded amount that callers take shares of, first come first served.

One class for slots (shares of 1) and for bytes of buffers (shares of what a call may hold). No
caller overtakes: a large share at the head of the queue would never be served otherwise.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tiered.errors import QueueFullError


class Budget:
    """See the module.

    Args:
        name: For messages and metrics.
        size: The whole of it.
        waiting_max: Callers that may wait for a share.
    """

    def __init__(self, name: str, size: int, *, waiting_max: int) -> None:
        assert size > 0
        self.name = name
        self.size = size
        self.waiting_max = waiting_max
        self.taken = 0
        self.taken_max = 0
        self.waited = 0
        self.refused = 0
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        """Callers that wait for a share now."""
        return len(self._waiters)

    async def take(self, share: int) -> int:
        """Wait for a share; returns what to `give_back`.

        A share above the whole counts as the whole: it runs alone.

        Raises:
            QueueFullError: Enough wait already.
        """
        share = min(max(share, 0), self.size)
        if not self._waiters and self.taken + share <= self.size:
            self._grant(share)
            return share
        if len(self._waiters) >= self.waiting_max:
            self.refused += 1
            raise QueueFullError(f"{self.waiting_max} calls wait for {self.name} already")
        self.waited += 1
        waiter = asyncio.get_running_loop().create_future()
        entry = (share, waiter)
        self._waiters.append(entry)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give_back(share)
            else:
                self._waiters.remove(entry)
                self._wake()
            raise
        return share

    def give_back(self, share: int) -> None:
        """Return what `take` gave."""
        self.taken -= share
        assert self.taken >= 0
        self._wake()

    @asynccontextmanager
    async def share(self, share: int) -> AsyncIterator[None]:
        """Take, and give back on leaving."""
        taken = await self.take(share)
        try:
            yield
        finally:
            self.give_back(taken)

    def _grant(self, share: int) -> None:
        self.taken += share
        self.taken_max = max(self.taken_max, self.taken)

    def _wake(self) -> None:
        waiters = self._waiters
        while waiters and self.taken + waiters[0][0] <= self.size:
            share, waiter = waiters.popleft()
            # A waiter that is cancelled is still in the queue until its caller runs.
            if waiter.done():
                waiters.appendleft((share, waiter))
                return
            self._grant(share)
            waiter.set_result(None)

    def statistics(self) -> Mapping[str, int]:
        """Counters; `waited` and `refused` only grow."""
        return {
            "size": self.size,
            "taken": self.taken,
            "taken_max": self.taken_max,
            "waiting": self.waiting,
            "waited": self.waited,
            "refused": self.refused,
        }
