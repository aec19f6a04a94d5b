"""The incarnations this node has had in the bucket's claim: a small file of its disk.

    <log directory>/varve-tier-incarnation     one a line, the last one last; two while one is new
    <log directory>/varve-tier-claimed         the same of a broker of a cluster: the cluster's

See `tiered.maintenance.bucket_ownership`.
"""

import os

from storage.environment.filesystem import Filesystem
from storage.errors import StorageError
from tiered.errors import RemoteStorageError
from tiered.metadata.snapshot_store import RunBlocking

FILE_NAME = "varve-tier-incarnation"
CLUSTER_FILE_NAME = "varve-tier-claimed"


class IncarnationFile:
    """`tiered.maintenance.bucket_ownership.IncarnationMemory` on this node's disk."""

    def __init__(
        self, filesystem: Filesystem, directory: str, run: RunBlocking, name: str = FILE_NAME
    ) -> None:
        """`directory` is made when there is something to keep."""
        self._filesystem = filesystem
        self._directory = directory
        self._path = f"{directory}/{name}"
        self._run = run

    async def load(self) -> list[str]:
        """See IncarnationMemory."""

        def read() -> list[str]:
            if not self._filesystem.exists(self._path):
                return []
            return self._filesystem.read_bytes(self._path).decode(errors="replace").split()

        try:
            return await self._run(read)
        except StorageError as error:
            raise RemoteStorageError(f"{self._path}: {error}") from error

    async def save(self, incarnations: list[str]) -> None:
        """See IncarnationMemory."""

        def write() -> None:
            if not self._filesystem.exists(self._directory):
                self._filesystem.mkdir(self._directory)
                self._filesystem.sync_directory(os.path.dirname(self._directory))
            text = "".join(f"{one}\n" for one in incarnations if one)
            self._filesystem.replace_bytes(self._path, text.encode())

        try:
            await self._run(write)
        except StorageError as error:
            raise RemoteStorageError(f"{self._path}: {error}") from error

    async def has_claimed(self) -> bool:
        """See IncarnationMemory."""
        return bool(await self.load())
