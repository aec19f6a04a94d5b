"""Stores of snapshots of `__remote_log_metadata`: a local directory, or the bucket.

    <directory>/<metadata partition>/<topic id>-<next offset, 20 digits>.snapshot
    __remote_log_metadata/<cluster id>/<metadata partition>/<topic id>-<next offset>.snapshot

    <directory>/partitions, __remote_log_metadata/<cluster id>/partitions
                                        how many metadata partitions there were at first

Beside them lies `lost`, a sentence, while events of that metadata partition are known to be lost:
the topic goes on and shows nothing of it after the next start.

Two are kept of each metadata partition: should the newer one prove damaged, the older one and a
longer stretch of the topic do as well. Those beyond a newly written one are removed too: they are
of a history that the topic does not have (any more), and would otherwise stay the newest for good.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from posixpath import dirname
from typing import Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from storage.environment.filesystem import Filesystem
from storage.errors import StorageError
from storage.types.uuid_text import format_uuid
from tiered.errors import ObjectNotFoundError, RemoteStorageError
from tiered.tier import Tier

SNAPSHOTS_KEPT: Final = 2
SNAPSHOT_BYTES_MAX: Final = 60 * 1024 * 1024
"""Largest snapshot that is written; `Tier.get_object` gives at most 64 MiB."""

BUCKET_FOLDER: Final = "__remote_log_metadata"
"""First part of the keys, which no topic's objects have: those go on with `-` and a topic id."""

LOST_NAME: Final = "lost"
COUNT_NAME: Final = "partitions"
LOST_BYTES_MAX: Final = 4096
"""Of the sentence; what is longer was not written here."""

_NAME: Final = re.compile(r"(?P<topic_id>[A-Za-z0-9_-]{22})-(?P<offset>[0-9]{20})\.snapshot")

T = TypeVar("T")


class RunBlocking(Protocol):
    """Calls a function in a thread: `broker.runtime.disk.Disk.run`."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]:
        """Its result, or its exception."""
        ...


class SnapshotName(NamedTuple):
    """Which snapshot of a metadata partition."""

    topic_id: str
    next_offset: int

    @classmethod
    def of(cls, topic_id: UUID, next_offset: int) -> "SnapshotName":
        """The name of a new one."""
        return cls(format_uuid(topic_id), next_offset)

    @classmethod
    def parse(cls, text: str) -> "SnapshotName | None":
        """What `file_name` wrote; None: it is something else."""
        match = _NAME.fullmatch(text)
        return None if match is None else cls(match["topic_id"], int(match["offset"]))

    @property
    def file_name(self) -> str:
        """Last part of its path or key."""
        return f"{self.topic_id}-{self.next_offset:020d}.snapshot"


class SnapshotStore(Protocol):
    """See the module. Raises RemoteStorageError, whatever kind of store it is.

    Attributes:
        is_shared: All brokers of the cluster have the same.
    """

    is_shared: bool

    async def names(self, partition: int) -> Sequence[SnapshotName]:
        """What there is of a metadata partition, the newest first; also of other topic ids."""
        ...

    async def read(self, partition: int, name: SnapshotName) -> bytes:
        """One snapshot; ObjectNotFoundError when it has gone."""
        ...

    async def write(self, partition: int, name: SnapshotName, data: bytes) -> None:
        """Keep one, whole or not at all, and remove those that are not needed any more."""
        ...

    async def partition_count(self) -> int | None:
        """How many metadata partitions there were at first; None: that was never kept."""
        ...

    async def set_partition_count(self, count: int) -> None:
        """Keep that, on disk when this returns."""
        ...

    async def lost(self, partition: int) -> str:
        """What is known to be lost of a metadata partition; empty: nothing."""
        ...

    async def set_lost(self, partition: int, text: str) -> None:
        """Keep that sentence, on disk when this returns; empty: forget it."""
        ...


def _newest_first(names: Iterable[SnapshotName]) -> list[SnapshotName]:
    return sorted(names, key=lambda name: name.next_offset, reverse=True)


def _not_needed(names: Sequence[SnapshotName], written: SnapshotName) -> list[SnapshotName]:
    """All but the one just written and those right before it, of the same topic."""
    before = [
        name
        for name in _newest_first(names)
        if name.topic_id == written.topic_id and name.next_offset < written.next_offset
    ]
    kept = {written, *before[: SNAPSHOTS_KEPT - 1]}
    return [name for name in names if name not in kept]


def _count(data: bytes) -> int:
    """Raises RemoteStorageError: it is no number."""
    text = data[:LOST_BYTES_MAX].decode(errors="replace").strip()
    if not (text.isascii() and text.isdecimal()):
        raise RemoteStorageError(f"the number of metadata partitions at first is {text[:40]!r}")
    return int(text)


def _sentence(data: bytes) -> str:
    """What was kept; a file that is empty or odd says as much: something is lost."""
    text = data[:LOST_BYTES_MAX].decode(errors="replace").strip()
    return text or "events of __remote_log_metadata are lost"


class LocalSnapshotStore:
    """Snapshots in a directory of this machine."""

    __slots__ = ("_directory", "_filesystem", "_run", "is_shared")

    def __init__(self, filesystem: Filesystem, directory: str, run: RunBlocking) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._run = run
        self.is_shared = False

    async def names(self, partition: int) -> Sequence[SnapshotName]:
        """See SnapshotStore."""
        return _newest_first(await self._call(lambda: self._list(partition)))

    async def read(self, partition: int, name: SnapshotName) -> bytes:
        """See SnapshotStore."""
        path = self._path(partition, name)

        def read() -> bytes:
            if not self._filesystem.exists(path):
                raise ObjectNotFoundError(path)
            return self._filesystem.read_bytes(path)

        return await self._call(read)

    async def write(self, partition: int, name: SnapshotName, data: bytes) -> None:
        """See SnapshotStore."""

        def write() -> None:
            self._make_folder(partition)
            self._filesystem.replace_bytes(self._path(partition, name), data)
            for old in _not_needed(self._list(partition), name):
                self._filesystem.unlink(self._path(partition, old), missing_ok=True)

        await self._call(write)

    async def partition_count(self) -> int | None:
        """See SnapshotStore."""
        path = f"{self._directory}/{COUNT_NAME}"

        def read() -> int | None:
            if not self._filesystem.exists(path):
                return None
            return _count(self._filesystem.read_bytes(path))

        return await self._call(read)

    async def set_partition_count(self, count: int) -> None:
        """See SnapshotStore."""

        def write() -> None:
            if not self._filesystem.exists(self._directory):
                self._filesystem.mkdir(self._directory)
                self._filesystem.sync_directory(dirname(self._directory))
            path = f"{self._directory}/{COUNT_NAME}"
            data = f"{count}\n".encode()
            if not self._filesystem.exists(path) or self._filesystem.read_bytes(path) != data:
                self._filesystem.replace_bytes(path, data)

        await self._call(write)

    async def lost(self, partition: int) -> str:
        """See SnapshotStore."""
        path = f"{self._folder(partition)}/{LOST_NAME}"

        def read() -> str:
            if not self._filesystem.exists(path):
                return ""
            return _sentence(self._filesystem.read_bytes(path))

        return await self._call(read)

    async def set_lost(self, partition: int, text: str) -> None:
        """See SnapshotStore."""
        path = f"{self._folder(partition)}/{LOST_NAME}"

        def write() -> None:
            if text:
                self._make_folder(partition)
                self._filesystem.replace_bytes(path, text.encode())
            elif self._filesystem.exists(path):
                self._filesystem.unlink(path, missing_ok=True)
                self._filesystem.sync_directory(self._folder(partition))

        await self._call(write)

    def _make_folder(self, partition: int) -> None:
        folder = self._folder(partition)
        if not self._filesystem.exists(folder):
            self._filesystem.mkdir(folder)
            self._filesystem.sync_directory(self._directory)

    def _list(self, partition: int) -> list[SnapshotName]:
        folder = self._folder(partition)
        if not self._filesystem.exists(folder):
            return []
        found = (SnapshotName.parse(e.name) for e in self._filesystem.list_directory(folder))
        return [name for name in found if name is not None]

    def _folder(self, partition: int) -> str:
        return f"{self._directory}/{partition}"

    def _path(self, partition: int, name: SnapshotName) -> str:
        return f"{self._folder(partition)}/{name.file_name}"

    async def _call(self, function: Callable[[], T]) -> T:
        try:
            return await self._run(function)
        except StorageError as error:
            raise RemoteStorageError(f"snapshots in {self._directory}: {error}") from error


class BucketSnapshotStore:
    """Snapshots in the bucket: a broker whose disk is lost has them still."""

    __slots__ = ("_cluster_id", "_tier", "is_shared")

    def __init__(self, tier: Tier, cluster_id: str) -> None:
        self._tier = tier
        self._cluster_id = cluster_id
        self.is_shared = True

    async def names(self, partition: int) -> Sequence[SnapshotName]:
        """See SnapshotStore."""
        folder = self._folder(partition)
        # A name may come twice when the listing changes between its pages.
        names: set[SnapshotName] = set()
        continuation: str | None = None
        while True:
            page = await self._tier.list_objects(folder, continuation)
            found = (SnapshotName.parse(entry.key[len(folder) :]) for entry in page.objects)
            names.update(name for name in found if name is not None)
            continuation = page.continuation
            if continuation is None:
                return _newest_first(names)

    async def read(self, partition: int, name: SnapshotName) -> bytes:
        """See SnapshotStore."""
        return await self._tier.get_object(self._folder(partition) + name.file_name)

    async def write(self, partition: int, name: SnapshotName, data: bytes) -> None:
        """See SnapshotStore."""
        folder = self._folder(partition)
        await self._tier.put_object(folder + name.file_name, data)
        old = _not_needed(await self.names(partition), name)
        if old:
            await self._tier.delete_objects([folder + name.file_name for name in old])

    async def partition_count(self) -> int | None:
        """See SnapshotStore."""
        try:
            return _count(await self._tier.get_object(self._count_key))
        except ObjectNotFoundError:
            return None

    async def set_partition_count(self, count: int) -> None:
        """See SnapshotStore."""
        await self._tier.put_object(self._count_key, f"{count}\n".encode())

    async def lost(self, partition: int) -> str:
        """See SnapshotStore."""
        try:
            return _sentence(await self._tier.get_object(self._folder(partition) + LOST_NAME))
        except ObjectNotFoundError:
            return ""

    async def set_lost(self, partition: int, text: str) -> None:
        """See SnapshotStore."""
        key = self._folder(partition) + LOST_NAME
        if text:
            await self._tier.put_object(key, text.encode())
        else:
            await self._tier.delete_objects([key])

    @property
    def _count_key(self) -> str:
        return f"{BUCKET_FOLDER}/{self._cluster_id}/{COUNT_NAME}"

    def _folder(self, partition: int) -> str:
        return f"{BUCKET_FOLDER}/{self._cluster_id}/{partition}/"
