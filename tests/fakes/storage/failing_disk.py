"""The machine's disk, of which parts break when the test says so."""

import errno
import os
import threading
from collections.abc import Sequence

from storage.environment.filesystem import Buffer
from storage.environment.local_filesystem import LocalFile, LocalFilesystem
from storage.errors import DiskError, SyncFailedError


class FailingFile(LocalFile):
    """A file that looks before each change whether its disk still works."""

    __slots__ = ("_disk",)

    def __init__(self, path: str, fd: int, disk: "FailingDisk") -> None:
        super().__init__(path, fd, disk.descriptors)
        self._disk = disk

    def write_at(self, data: Buffer | Sequence[Buffer], position: int) -> None:
        self._disk.check("write", self.path)
        super().write_at(data, position)

    def truncate(self, size: int) -> None:
        self._disk.check("truncate", self.path)
        super().truncate(size)

    def sync(self) -> None:
        self._disk.check("sync", self.path)
        super().sync()
        self._disk.synced.append(self.path)


class FailingDisk(LocalFilesystem):
    """`LocalFilesystem` whose directories in `broken` refuse every change.

    `hold` lets calls of a kind below a path wait until `release`; `held` is set by the first.
    """

    __slots__ = ("_held", "_released", "broken", "code", "held", "kinds", "refusals", "synced")

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.code = errno.EIO
        self.kinds: frozenset[str] | None = None
        self.refusals: list[tuple[str, str]] = []
        self.synced: list[str] = []
        self.held = threading.Event()
        self._held: tuple[str, str] | None = None
        self._released = threading.Event()

    def hold(self, kind: str, path: str) -> None:
        """From now on calls of this kind below `path` wait."""
        self._held = kind, path

    def release(self) -> None:
        """They wait no longer."""
        self._held = None
        self._released.set()

    def break_directory(self, path: str, *kinds: str) -> None:
        """From now on changes below `path` fail: all kinds, or those named."""
        self.kinds = frozenset(kinds) or None
        self.broken.add(path)

    def check(self, kind: str, path: str) -> None:
        """Raise if the path's disk is broken."""
        if self._held is not None and kind == self._held[0] and path.startswith(self._held[1]):
            self.held.set()
            self._released.wait()
        if self.kinds is not None and kind not in self.kinds:
            return
        if any(path == broken or path.startswith(broken + "/") for broken in self.broken):
            self.refusals.append((kind, path))
            failure = SyncFailedError if kind == "sync" else DiskError
            raise failure(f"cannot {kind} ({os.strerror(self.code)})", path, self.code)

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        if create:
            self.check("create", path)
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        # The descriptor changes hands: the plain object must not close it.
        fd = plain.detach()
        return FailingFile(path, fd, self)

    def mkdir(self, path: str) -> None:
        self.check("mkdir", path)
        super().mkdir(path)

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        super().rename(source, target)

    def sync_directory(self, path: str) -> None:
        self.check("sync", path)
        super().sync_directory(path)
