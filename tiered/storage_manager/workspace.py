"""Workspaces: memory that copies and downloads reuse, so that none is allocated per chunk.

A workspace is three rooms, each as large as the largest request so far, lent to one call at a time.
A pool lends at most so many at once, and further callers wait, first come, first served; of those
not lent it keeps a few, with at most `IDLE_BYTES_MAX` in each.

A caller that gives one back must be sure that no thread still writes to it (see `disk_threads`).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

ROOMS: Final = 3
ROOM_BYTES_MAX: Final = 256 * 1024 * 1024
"""Largest chunk that is copied or read; Aiven's plugin allows up to a gigabyte."""

IDLE_MAX: Final = 4
IDLE_BYTES_MAX: Final = 64 * 1024 * 1024


class Workspace:
    """Three rooms of memory."""

    __slots__ = ("_rooms",)

    def __init__(self) -> None:
        self._rooms = [bytearray() for _ in range(ROOMS)]

    def room(self, number: int, size: int) -> memoryview:
        """The first `size` bytes of a room; what was in it may be lost.

        Raises:
            ValueError: More than ROOM_BYTES_MAX: a manifest from elsewhere, or settings gone wrong.
        """
        if size > ROOM_BYTES_MAX:
            raise ValueError(f"a chunk or index of {size} bytes, more than {ROOM_BYTES_MAX}")
        if len(self._rooms[number]) < size:
            self._rooms[number] = bytearray(size)
        return memoryview(self._rooms[number])[:size]

    @property
    def size(self) -> int:
        """Bytes of all rooms."""
        return sum(len(room) for room in self._rooms)


class WorkspacePool:
    """See the module.

    Attributes:
        name: For metrics.
        maximum: Most that are lent at a time.
        lent: Now.
        waiting: Pieces of work that wait for one.
    """

    def __init__(self, name: str, maximum: int) -> None:
        self.name = name
        self.maximum = maximum
        self.lent = 0
        self.waiting = 0
        self._free = asyncio.Semaphore(maximum)
        self._idle: list[Workspace] = []

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Workspace]:
        """A workspace until the block ends."""
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.lent += 1
        workspace = self._idle.pop() if self._idle else Workspace()
        try:
            yield workspace
        finally:
            self.lent -= 1
            if len(self._idle) < IDLE_MAX and workspace.size <= IDLE_BYTES_MAX:
                self._idle.append(workspace)
            self._free.release()

    def as_dict(self) -> dict[str, int]:
        """For metrics; `idle_bytes` is memory that is not in use now."""
        return {
            "maximum": self.maximum,
            "lent": self.lent,
            "waiting": self.waiting,
            "idle_bytes": sum(workspace.size for workspace in self._idle),
        }
