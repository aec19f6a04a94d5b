"""A table's files in a directory, on a disk or a shared file system.

<root>/<key>                                   a file, whole
<root>/<folders of key>/.<name>.<32 hex>.tmp   a file that is being written: hidden from Spark
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.stores.table_store import StoredFile
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.errors import DiskError

_MISSING: Final = frozenset((errno.ENOENT, errno.ENOTDIR))

SUFFIX: Final = ".tmp"


class DirectoryStore:
    """`TableStore` in a directory; see the module."""

    def __init__(self, root: str, filesystem: Filesystem, randomness: Randomness) -> None:
        """`root` is an absolute path; it is made with the first file."""
        self.root = root.rstrip("/")
        self.uri = f"file://{self.root}"
        self._filesystem = filesystem
        self._randomness = randomness

    def _path(self, key: str) -> str:
        return f"{self.root}/{key}"

    def scratch_path(self, key: str) -> str:
        """Beside where it will be: a rename must not cross file systems."""
        folder, _, name = self._path(key).rpartition("/")
        with _translated_errors():
            self._filesystem.mkdir(folder)
        return f"{folder}/.{name}.{self._randomness.uuid4().hex}{SUFFIX}"

    def publish(self, path: str, key: str) -> int:
        """Sync, rename, sync folders."""
        target = self._path(key)
        with _translated_errors():
            file = self._filesystem.open(path)
            try:
                size = file.size()
                file.sync()
            finally:
                file.close()
            self._filesystem.rename(path, target)
            self._sync_folders(target)
        return size

    def discard(self, path: str) -> None:
        """Unlink."""
        with _translated_errors():
            self._filesystem.unlink(path, missing_ok=True)

    def put(self, key: str, data: bytes) -> None:
        """Write beside, sync, rename."""
        scratch = self._write(key, data)
        self.publish(scratch, key)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write beside, sync, link: fails where the name is taken."""
        target = self._path(key)
        scratch = self._write(key, data)
        with _translated_errors():
            try:
                file = self._filesystem.open(scratch)
                try:
                    file.sync()
                finally:
                    file.close()
                self._filesystem.link(scratch, target)
            except DiskError as error:
                if error.errno != errno.EEXIST:
                    raise
                return self.get(key) == data
            finally:
                self._filesystem.unlink(scratch, missing_ok=True)
            self._sync_folders(target)
        return True

    def _write(self, key: str, data: bytes) -> str:
        scratch = self.scratch_path(key)
        with _translated_errors():
            try:
                file = self._filesystem.open(scratch, create=True)
                try:
                    file.write_at(data, 0)
                finally:
                    file.close()
            except DiskError:
                # On a full disk each attempt would leave one more.
                with suppress(DiskError):
                    self._filesystem.unlink(scratch, missing_ok=True)
                raise
        return scratch

    def _sync_folders(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        while True:
            self._filesystem.sync_directory(folder)
            if folder == self.root:
                return
            folder = folder.rpartition("/")[0]

    def get(self, key: str) -> bytes | None:
        """Read it whole."""
        with _translated_errors():
            try:
                return self._filesystem.read_bytes(self._path(key))
            except DiskError as error:
                if error.errno in _MISSING:
                    return None
                raise

    def read(self, key: str, start: int, length: int) -> bytes | None:
        """One read; a file that is replaced meanwhile is the old one or the new one."""
        with _translated_errors():
            try:
                file = self._filesystem.open(self._path(key))
            except DiskError as error:
                if error.errno in _MISSING:
                    return None
                raise
            try:
                return file.read_at(length, start)
            finally:
                file.close()

    @contextmanager
    def local(self, key: str) -> Iterator[str | None]:
        """The file itself."""
        path = self._path(key)
        yield None if self.size(key) is None else path

    def size(self, key: str) -> int | None:
        """Of the file."""
        with _translated_errors():
            try:
                return self._filesystem.file_size(self._path(key))
            except DiskError as error:
                if error.errno in _MISSING:
                    return None
                raise

    def list(self, prefix: str, *, after: str = "") -> Iterator[StoredFile]:
        """Walk the folders that can hold such keys, in the order of keys."""
        folder = prefix.rpartition("/")[0]
        with _translated_errors():
            for key, size in self._walk(folder):
                if key.startswith(prefix) and key > after:
                    yield from self._stored(key, size)

    def scratch_files(self) -> Iterator[StoredFile]:
        """Files that were begun and neither published nor discarded."""
        with _translated_errors():
            for key, size in self._walk("", scratch=True):
                yield from self._stored(key, size)

    def _stored(self, key: str, size: int) -> Iterator[StoredFile]:
        """One, or none where it has just gone."""
        try:
            yield StoredFile(key, size, self._filesystem.mtime_ms(self._path(key)))
        except DiskError as error:
            if error.errno not in _MISSING:
                raise

    def _walk(self, folder: str, *, scratch: bool = False) -> Iterator[tuple[str, int]]:
        try:
            entries = self._filesystem.list_directory(self._path(folder).rstrip("/"))
        except DiskError as error:
            if error.errno in _MISSING:
                return
            raise
        base = f"{folder}/" if folder else ""
        for entry in sorted(entries, key=lambda e: f"{e.name}/" if e.is_directory else e.name):
            if entry.is_directory:
                yield from self._walk(base + entry.name, scratch=scratch)
            elif _is_scratch(entry.name) == scratch:
                yield base + entry.name, entry.size

    def delete(self, keys: Sequence[str]) -> None:
        """Unlink one by one; folders stay."""
        with _translated_errors():
            for key in keys:
                self._filesystem.unlink(self._path(key), missing_ok=True)


def _is_scratch(name: str) -> bool:
    return name.startswith(".") and name.endswith(SUFFIX)


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except DiskError as error:
        raise TableUnavailableError(str(error)) from error
