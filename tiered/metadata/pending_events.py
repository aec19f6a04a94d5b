"""Pending metadata events: published, and not read back yet (read your writes).

    append ──offset──> expect ──> waits ──applied──> fine
                                    │       └─────── refused: its error is raised
                                    └──time is up──> RemoteStorageError

An event may have been read back before its writer learns the offset: so refusals are remembered
while any event is pending.
"""

import asyncio

from storage.environment.timer import Timer
from tiered.errors import RemoteStorageError, TieredError

REFUSALS_MAX = 10_000
"""Refused events that are remembered until no event is pending."""


class PendingEvents:
    """See the module; of one metadata partition.

    Attributes:
        pending: Events that are on their way.
    """

    __slots__ = ("_max_ms", "_refusals", "_timer", "_waiting", "pending")

    def __init__(self, timer: Timer, max_ms: int) -> None:
        self.pending = 0
        self._timer = timer
        self._max_ms = max_ms
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._refusals: dict[int, TieredError] = {}

    def begin(self) -> None:
        """An event is going to be written."""
        self.pending += 1

    def end(self) -> None:
        """Its writer has learned the outcome, or was cancelled."""
        self.pending -= 1
        if not self.pending:
            self._refusals.clear()

    async def expect(self, offset: int) -> None:
        """Wait for `applied`.

        Raises:
            RemoteStorageError: It did not come in time, or will not come: the broker stops.
        """
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[offset] = future
        handle = self._timer.call_later_ms(self._max_ms, lambda: _answer(future, read=False))
        try:
            if not await future:
                raise RemoteStorageError(
                    f"metadata event {offset} was written, but not read back within "
                    f"{self._max_ms} ms"
                )
        finally:
            handle.cancel()
            self._waiting.pop(offset, None)

    def check(self, offset: int) -> None:
        """Raise what `refused` was called with; the event has been read back."""
        refusal = self._refusals.pop(offset, None)
        if refusal is not None:
            raise refusal

    def refused(self, offset: int, error: TieredError) -> None:
        """An event changes nothing, and that is why; `applied` follows."""
        if self.pending and len(self._refusals) < REFUSALS_MAX:
            self._refusals[offset] = error

    def applied(self, offset: int) -> None:
        """An event has been read back."""
        if self._waiting:
            future = self._waiting.get(offset)
            if future is not None:
                _answer(future, read=True)

    def close(self) -> None:
        """Nothing more is read back."""
        for future in self._waiting.values():
            _answer(future, read=False)


def _answer(future: "asyncio.Future[bool]", *, read: bool) -> None:
    if not future.done():
        future.set_result(read)
