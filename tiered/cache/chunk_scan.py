"""Scan of the chunk cache's directory at a start, and removal of its files later.

Folders are read one after the other in a thread. A read that needs a chunk before that waits for
the one folder it would be in, which is then read out of order, and to its end also when no reader
waits any more: the files of a folder that was half read would be neither found nor evicted.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from storage.environment.filesystem import Filesystem
from storage.environment.off_loop import Run
from storage.errors import DiskError
from tiered.format.chunk_file import ChunkFile, list_folders, remove, scan_folder

_log = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Files removed in one call of a thread."""


class ChunkScan:
    """Reads the directory, once.

    Attributes:
        done: All of it has been read.
    """

    __slots__ = (
        "_directory",
        "_filesystem",
        "_folders",
        "_found",
        "_on_done",
        "_run",
        "_task",
        "_token",
        "done",
    )

    def __init__(
        self,
        directory: str,
        token: str,
        filesystem: Filesystem,
        run: Run,
        found: Callable[[ChunkFile], None],
        on_done: Callable[[], None],
    ) -> None:
        """Touch nothing yet.

        Args:
            directory: Of the cache.
            token: In the names of files that this process is writing: they are left alone.
            filesystem: Where it is.
            run: For what may wait for the disk.
            found: Called for each chunk.
            on_done: Called at the end.
        """
        self._directory = directory
        self._token = token
        self._filesystem = filesystem
        self._run = run
        self._found = found
        self._on_done = on_done
        # Folders that were read, or are being read.
        self._folders: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self.done = False

    def start(self) -> None:
        """Begin to read all of it."""
        self._task = asyncio.get_running_loop().create_task(self._all())

    async def wait(self) -> None:
        """Until all of it has been read."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Stop."""
        tasks = [*self._folders.values()]
        if self._task is not None:
            tasks.append(self._task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _all(self) -> None:
        try:
            folders = await self._run(list_folders, self._filesystem, self._directory)
            for name in folders:
                await self.folder(f"{self._directory}/{name}")
        except DiskError as error:
            _log.warning("chunk cache: cannot be read, starting empty: %s", error)
        self.done = True
        self._folders.clear()
        self._on_done()

    async def folder(self, path: str) -> None:
        """Read one folder, or wait until the read under way is done."""
        reading = self._folders.get(path)
        if reading is None:
            reading = asyncio.get_running_loop().create_task(self._read(path))
            self._folders[path] = reading
        await asyncio.shield(reading)

    async def _read(self, path: str) -> None:
        try:
            for file in await self._run(scan_folder, self._filesystem, path, self._token):
                self._found(file)
        except DiskError as error:
            _log.warning("chunk cache: ignoring a folder that cannot be read: %s", error)


class FileRemover:
    """Removes files in a thread, as they come.

    Attributes:
        errors: Files that could not be removed.
    """

    __slots__ = ("_doomed", "_filesystem", "_run", "_spare", "_task", "errors")

    def __init__(self, filesystem: Filesystem, run: Run, spare: Callable[[str], bool]) -> None:
        """Have nothing to do yet; `spare` says which files are wanted again meanwhile."""
        self._filesystem = filesystem
        self._run = run
        self._spare = spare
        self._doomed: list[str] = []
        self._task: asyncio.Task[None] | None = None
        self.errors = 0

    def remove(self, path: str) -> None:
        """Soon; a missing file is fine."""
        self._doomed.append(path)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._remove_all())

    async def wait(self) -> None:
        """Until what there is to remove is removed."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Until all is removed."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _remove_all(self) -> None:
        while self._doomed:
            # A few at a time: what is wanted again meanwhile is looked for before each time.
            paths, self._doomed = self._doomed[:AT_ONCE], self._doomed[AT_ONCE:]
            doomed = [path for path in paths if not self._spare(path)]
            if doomed:
                self.errors += await self._run(self._remove_now, doomed)
        self._task = None

    def _remove_now(self, paths: Sequence[str]) -> int:
        """How many could not be removed."""
        return sum(not remove(self._filesystem, path) for path in paths)
