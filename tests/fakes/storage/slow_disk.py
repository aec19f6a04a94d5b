"""The machine's disk, of which some directories take their time, as a dying or throttled one does.

    disk.slow(path)             every call below `path` blocks its thread for `delay_s`
    disk.on_loop                such calls that were made by the thread which made the disk

A slow directory has nothing in the page cache: reads that must not wait find nothing.
"""

import threading
import time
from collections.abc import Sequence

from storage.environment.filesystem import Buffer, DirEntry, Volume
from storage.environment.local_filesystem import LocalFile, LocalFilesystem


class SlowFile(LocalFile):
    """A file whose calls wait while its directory is slow."""

    __slots__ = ("_disk",)

    def __init__(self, path: str, fd: int, disk: "SlowDisk") -> None:
        super().__init__(path, fd)
        self._disk = disk

    def write_at(self, data: Buffer | Sequence[Buffer], position: int) -> None:
        self._disk.wait("write", self.path)
        super().write_at(data, position)

    def read_at(self, size: int, position: int) -> bytes:
        self._disk.wait("read", self.path)
        return super().read_at(size, position)

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        if self._disk.is_slow(self.path):
            return None
        return super().read_cached(size, position)

    def is_cached(self, position: int, length: int) -> bool:
        return not self._disk.is_slow(self.path) and super().is_cached(position, length)

    def warm(self, position: int, length: int) -> None:
        self._disk.wait("read", self.path)
        super().warm(position, length)

    def read_into(self, buffer: memoryview, position: int) -> int:
        self._disk.wait("read", self.path)
        return super().read_into(buffer, position)

    def truncate(self, size: int) -> None:
        self._disk.wait("truncate", self.path)
        super().truncate(size)

    def size(self) -> int:
        self._disk.wait("size", self.path)
        return super().size()

    def sync(self) -> None:
        self._disk.wait("sync", self.path)
        super().sync()

    def allocate(self, size: int) -> None:
        self._disk.wait("allocate", self.path)
        super().allocate(size)


class SlowDisk(LocalFilesystem):
    """See the module.

    Attributes:
        delay_s: What a call on a slow directory takes.
        on_loop: (kind, path) of such calls by the thread that made this.
        calls: How many there were by other threads.
    """

    __slots__ = ("_loop", "_slow", "calls", "delay_s", "on_loop")

    def __init__(self, delay_s: float = 1.0) -> None:
        super().__init__()
        self.delay_s = delay_s
        self.on_loop: list[tuple[str, str]] = []
        self.calls = 0
        self._slow: set[str] = set()
        self._loop = threading.get_ident()

    def slow(self, path: str) -> None:
        """From now on."""
        self._slow.add(path)

    def heal(self) -> None:
        """All are fast again."""
        self._slow.clear()

    def is_slow(self, path: str) -> bool:
        return any(path == slow or path.startswith(slow + "/") for slow in self._slow)

    def wait(self, kind: str, path: str) -> None:
        """Take the time that the path's directory takes."""
        if not self.is_slow(path):
            return
        if threading.get_ident() == self._loop:
            self.on_loop.append((kind, path))
        else:
            self.calls += 1
        time.sleep(self.delay_s)

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        self.wait("open", path)
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        # The descriptor changes hands: the plain object must not close it.
        fd = plain.detach()
        return SlowFile(path, fd, self)

    def rename(self, source: str, target: str) -> None:
        self.wait("rename", source)
        super().rename(source, target)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        self.wait("unlink", path)
        super().unlink(path, missing_ok=missing_ok)

    def mkdir(self, path: str) -> None:
        self.wait("mkdir", path)
        super().mkdir(path)

    def rmtree(self, path: str) -> None:
        self.wait("rmtree", path)
        super().rmtree(path)

    def list_directory(self, path: str) -> list[DirEntry]:
        self.wait("list", path)
        return super().list_directory(path)

    def exists(self, path: str) -> bool:
        self.wait("stat", path)
        return super().exists(path)

    def file_size(self, path: str) -> int:
        self.wait("stat", path)
        return super().file_size(path)

    def mtime_ms(self, path: str) -> int:
        self.wait("stat", path)
        return super().mtime_ms(path)

    def sync_directory(self, path: str) -> None:
        self.wait("sync", path)
        super().sync_directory(path)

    def read_bytes(self, path: str) -> bytes:
        self.wait("read", path)
        return super().read_bytes(path)

    def identity(self, path: str) -> str:
        self.wait("stat", path)
        return super().identity(path)

    def volume(self, path: str) -> Volume:
        self.wait("stat", path)
        return super().volume(path)
