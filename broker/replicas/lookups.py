"""Look-ups by time that are under way: bounded, and none of them holds a worker.

A look-up may wait for remote storage, which may hang. It is a task of its own; when the client
disconnects, the router cancels it.

Source of the limits: Kafka, DelayedRemoteListOffsets; KIP-1075.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

T = TypeVar("T")

LOOKUPS_MAX = 1_000


class Lookups:
    """See the module.

    Attributes:
        timeout_ms: `remote.list.offsets.request.timeout.ms`; may be changed at any time.
        expired: Partitions that timed out (Kafka: DelayedRemoteListOffsetsMetrics).
        refused: Requests beyond `LOOKUPS_MAX`.
    """

    __slots__ = ("_tasks", "capacity", "expired", "refused", "timeout_ms")

    def __init__(self, *, capacity: int = LOOKUPS_MAX, timeout_ms: float = 30_000.0) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.capacity = capacity
        self.timeout_ms = timeout_ms
        self.expired = 0
        self.refused = 0

    def set_timeout(self, timeout_ms: float) -> None:
        """Change `timeout_ms`, for look-ups that begin from now on."""
        self.timeout_ms = timeout_ms

    @property
    def running(self) -> int:
        """Requests under way."""
        return len(self._tasks)

    def start(self, lookup: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run it as a task.

        Raises:
            ApiError: REQUEST_TIMED_OUT: too many are under way; the client retries later.
        """
        if len(self._tasks) >= self.capacity:
            self.refused += 1
            lookup.close()
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
        task = asyncio.get_running_loop().create_task(lookup)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """Cancel all look-ups under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
