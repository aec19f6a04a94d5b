"""An object store that is a directory: the embedded default, and any shared file system.

Durable and atomic as `tiered.object_store.directory_tree` says. Disk calls run in a few threads.
The threads are this store's bound: once begun, a disk call cannot be cancelled, since it reads into
or writes from the caller's memory. So a cancelled call ends when its disk call does (a few
milliseconds on a disk that works), and a disk that hangs hangs its callers, as it hangs the log;
`StoreDeadlines` are for networks.
"""

import asyncio
from collections.abc import AsyncIterable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import islice
from typing import Final, ParamSpec, TypeVar

from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.errors import DiskError
from tiered.errors import ObjectNotFoundError, RemoteStorageError, StoreUnavailableError
from tiered.object_store.base import Buffer, ObjectInfo, ObjectPage, PendingUpload
from tiered.object_store.directory_tree import (
    DirectoryTree,
    UnfinishedObject,
    is_missing,
    storage_error,
)
from tiered.object_store.keys import check_key, check_prefix
from tiered.object_store.moved_bytes import moved
from tiered.object_store.statistics import StoreStatistics

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 8
"""Disk calls at a time. More than a disk does at once helps only those that wait for fsync."""

PAGE_MAX: Final = 1000


class FilesystemObjectStore:
    """`ObjectStore` in a directory; see the module."""

    def __init__(
        self,
        filesystem: Filesystem,
        root: str,
        clock: Clock,
        randomness: Randomness,
        *,
        key_prefix: str = "",
        executor: Executor | None = None,
    ) -> None:
        """Make the root if it is missing.

        Args:
            filesystem: The disk.
            root: Directory of the objects.
            clock: For the counters.
            randomness: For names of unfinished objects.
            key_prefix: In front of every key, as it is.
            executor: Runs disk calls; of its own with `THREADS` threads if None.

        Raises:
            RemoteStorageError: The root cannot be made.
        """
        self.name = f"file://{root.rstrip('/')}/{key_prefix}"
        self.statistics = StoreStatistics(clock)
        self._tree = DirectoryTree(filesystem, root)
        self._randomness = randomness
        self._key_prefix = key_prefix
        self._own_executor = executor is None
        self._executor = executor or ThreadPoolExecutor(THREADS, "object-store")
        self._closed = False
        try:
            self._tree.prepare()
        except DiskError as error:
            raise storage_error(error) from error

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do it in a thread; never returns before the thread is done with it."""
        if self._closed:
            raise StoreUnavailableError(f"{self.name} is closed")
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._executor, lambda: call(*args, **kwargs))
        try:
            return await asyncio.shield(done)
        except DiskError as error:
            raise storage_error(error) from error
        except ObjectNotFoundError as error:
            raise ObjectNotFoundError(error.key.removeprefix(self._key_prefix)) from None
        except asyncio.CancelledError:
            while not done.done():
                try:
                    await asyncio.wait([done])
                except asyncio.CancelledError:
                    continue
            if not done.cancelled():
                done.exception()
            raise

    def _full(self, key: str) -> str:
        return self._key_prefix + check_key(key)

    async def put(self, key: str, data: Buffer) -> None:
        """Write, sync, rename, sync folders."""
        with self.statistics.measure("put", len(data)):
            await self._run(self._put, self._full(key), data)

    def _put(self, key: str, data: Buffer) -> None:
        unfinished = self._tree.begin(key, self._randomness.uuid4().hex)
        try:
            unfinished.write(data)
            self._tree.commit(unfinished)
        except DiskError:
            self._tree.discard(unfinished)
            raise

    async def put_stream(self, key: str, parts: AsyncIterable[Buffer], size: int) -> None:
        """As `put`, part by part."""
        with self.statistics.measure("put_stream", size):
            upload_id = self._randomness.uuid4().hex
            unfinished: UnfinishedObject | None = None

            def begin() -> None:
                # Kept from within the thread: a cancelled call must still find it.
                nonlocal unfinished
                unfinished = self._tree.begin(self._full(key), upload_id)

            try:
                await self._run(begin)
                assert unfinished is not None
                async for part in parts:
                    if unfinished.size + len(part) > size:
                        raise ValueError(f"{key}: more than the {size} bytes promised came")
                    await self._run(unfinished.write, part)
                    moved(len(part))
                if unfinished.size != size:
                    raise ValueError(f"{key}: {unfinished.size} bytes came, {size} were promised")
                await self._run(self._tree.commit, unfinished)
            except BaseException:
                if unfinished is not None:
                    await self._discard(unfinished)
                raise

    async def _discard(self, unfinished: UnfinishedObject) -> None:
        if self._closed:
            # There may be no threads any more; this is one unlink, and no request is served now.
            self._tree.discard(unfinished)
        else:
            await asyncio.shield(self._run(self._tree.discard, unfinished))

    async def get(self, key: str, *, max_bytes: int) -> bytes:
        """Read a file whole."""
        with self.statistics.measure("get") as counters:
            data = await self._run(self._tree.read, self._full(key), max_bytes)
            if data is None:
                raise RemoteStorageError(f"{key} is larger than {max_bytes} bytes")
            counters.bytes += len(data)
            return data

    async def get_range(self, key: str, position: int, length: int, into: memoryview) -> None:
        """One `preadv` into the caller's memory."""
        with self.statistics.measure("get_range", length):
            read = await self._run(self._tree.read_into, self._full(key), position, into[:length])
            if read < length:
                raise StoreUnavailableError(
                    f"{key} has {read} of {length} bytes from {position}: the file is too short"
                )

    def local_path(self, key: str) -> str | None:
        """Objects are files here."""
        return self._tree.path(self._full(key))

    async def head(self, key: str) -> ObjectInfo | None:
        """Size and time of a file."""
        with self.statistics.measure("head"):
            found = await self._run(self._tree.info, self._full(key))
            return None if found is None else found._replace(key=key)

    async def delete(self, keys: Sequence[str]) -> None:
        """Unlink, and remove folders that are empty then."""
        with self.statistics.measure("delete"):
            await self._run(self._tree.remove, [self._full(key) for key in keys])

    async def list(
        self,
        prefix: str,
        *,
        after: str = "",
        folders: bool = False,
        continuation: str | None = None,
        limit: int = PAGE_MAX,
    ) -> ObjectPage:
        """Walk the tree in key order; a continuation is the page's last key or folder."""
        with self.statistics.measure("list"):
            check_prefix(after)
            return await self._run(
                self._page,
                prefix,
                after if continuation is None else continuation,
                folders,
                max(1, min(limit, PAGE_MAX)),
            )

    def _page(self, prefix: str, after: str, by_folder: bool, limit: int) -> ObjectPage:
        cut = len(self._key_prefix)
        full_prefix = self._key_prefix + check_prefix(prefix)
        full_after = self._key_prefix + after if after else ""
        walk = self._tree.walk_folder if by_folder else self._tree.walk
        found = list(islice(walk(full_prefix, full_after), limit + 1))
        objects = []
        folders = []
        for key, size in found[:limit]:
            if key.endswith("/"):
                folders.append(key[cut:])
                continue
            try:
                modified_ms = self._tree.modified_ms(key)
            except DiskError as error:
                if not is_missing(error):
                    raise
                continue
            objects.append(ObjectInfo(key[cut:], size, modified_ms))
        continuation = found[limit - 1][0][cut:] if len(found) > limit else None
        return ObjectPage(objects, continuation, folders)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        """Files under unfinished names; `started_ms` is the time of the last write."""
        with self.statistics.measure("list_uploads"):
            return await self._run(self._uploads, prefix)

    def _uploads(self, prefix: str) -> Sequence[PendingUpload]:
        cut = len(self._key_prefix)
        found = self._tree.unfinished(self._key_prefix + check_prefix(prefix))
        return [upload._replace(key=upload.key[cut:]) for upload in found]

    async def abort_upload(self, upload: PendingUpload) -> None:
        """Remove such a file; a writer under way will fail to rename it."""
        with self.statistics.measure("abort_upload"):
            await self._run(self._tree.abort, self._full(upload.key), upload.upload_id)

    async def close(self) -> None:
        """Calls under way come to their end; later ones fail."""
        self._closed = True
        if self._own_executor:
            self._executor.shutdown(wait=False)
