"""Total deadline of a call, and retries within it."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, TypeVar

from storage.environment.randomness import Randomness
from tiered.errors import StoreTimeoutError, StoreUnavailableError
from tiered.object_store.base import StoreDeadlines

T = TypeVar("T")

DEADLINE_UNIT_BYTES: Final = 64 * 1024 * 1024

BACKOFF_FIRST_MS: Final = 50
BACKOFF_MAX_MS: Final = 2_000


class NotRetriedError(StoreUnavailableError):
    """Worth another try some time, but not within this call: the same would come back at once."""


def total_ms(deadlines: StoreDeadlines, size: int = 0) -> int:
    """The whole call's time: it is granted again for every started 64 MiB."""
    return deadlines.total_ms * max(1, -(-size // DEADLINE_UNIT_BYTES))


class Deadline:
    """`async with Deadline(...)`: what is inside ends in time, or StoreTimeoutError is raised.

    The clock can be stopped while the work waits for its caller: a copy that is held back by a
    quota is not a store that does not answer.
    """

    __slots__ = ("_doing", "_left_s", "_loop", "_timeout", "_total_ms")

    def __init__(self, total: int, doing: str) -> None:
        self._total_ms = total
        self._doing = doing
        self._left_s = total / 1000
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(self._left_s)

    async def __aenter__(self) -> "Deadline":
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise StoreTimeoutError(
                f"{self._doing}: not done within {self._total_ms} ms"
            ) from error

    def pause(self) -> None:
        """Stop the clock."""
        when = self._timeout.when()
        if when is not None and not self._timeout.expired():
            self._left_s = when - self._loop.time()
            self._timeout.reschedule(None)

    def resume(self) -> None:
        """Let the clock go on."""
        if self._timeout.when() is None and not self._timeout.expired():
            self._timeout.reschedule(self._loop.time() + self._left_s)


class Retry:
    """Retries of idempotent calls: at most `attempts`, with exponential backoff.

    Waiting is 50 ms, doubled up to 2 s, of which a random half is left out, so that many callers
    do not come back at one moment. The caller's Deadline bounds it all.
    """

    __slots__ = ("_attempts", "_randomness", "_sleep")

    def __init__(
        self,
        attempts: int,
        randomness: Randomness,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._attempts = max(1, attempts)
        self._randomness = randomness
        self._sleep = sleep

    async def run(self, work: Callable[[], Awaitable[T]], again: Callable[[], None]) -> T:
        """The result of the first attempt that works, or the last one's error.

        Args:
            work: One attempt. Only StoreUnavailableError is tried again.
            again: Called before each further attempt, to count it.
        """
        for attempt in range(1, self._attempts + 1):
            try:
                return await work()
            except NotRetriedError:
                raise
            except StoreUnavailableError:
                if attempt == self._attempts:
                    raise
            wait_ms = min(BACKOFF_FIRST_MS << (attempt - 1), BACKOFF_MAX_MS)
            await self._sleep((wait_ms - self._randomness.below(wait_ms // 2 + 1)) / 1000)
            again()
        raise AssertionError("the last attempt returns or raises")
