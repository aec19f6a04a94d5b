"""Objects as files below one directory: the blocking half of the filesystem store.

    root/<key>                                          an object, whole
    root/<key>.<32 hex digits>.unfinished               an object that is being written

An object appears by a rename, after its contents are on the disk; then every folder from its own
up to the root is synced, since any of them may have been made just now, by this call or by another
one that has not synced it yet. Folders that deleting leaves empty are removed one by one, each in
one step that fails when something is inside; a put whose folder vanishes before its file is there
makes it again.

A file and a folder cannot have one name: unlike S3, `a` and `a/b` do not go together.

Kafka allows topics of 249 characters, which with the topic's id is more than a file system's 255
bytes. So a part of 200 characters or more is two names, of which the first ends in a character that
no key has (`SPLIT`), and the second is `NOTHING` if nothing is left:

    key    <200 characters><more>/0/x.log
    path   <200 characters>SPLIT/<more>/0/x.log

All keys that share 200 characters of a part are then below one folder, so that walking the folders
in the order of the keys they stand for is walking the keys in order.
"""

import errno
import re
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from storage.environment.filesystem import File, Filesystem
from storage.errors import DiskError
from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.object_store.base import Buffer, ObjectInfo, PendingUpload
from tiered.object_store.keys import KEY_BYTES_MAX, UnusableKeyError, check_key, check_prefix

NAME_BYTES_MAX: Final = 255
"""Longest name of a file or folder on Linux's and macOS's file systems."""

SPLIT_CHARACTERS: Final = 200
SPLIT: Final = "\x1f"
NOTHING: Final = "\x1e"

UNFINISHED: Final = re.compile(r"(?P<name>.+)\.(?P<upload_id>[0-9a-f]{32})\.unfinished")

UNFINISHED_EXTRA_BYTES: Final = len(".") + 32 + len(".unfinished")

WRITE_BYTES: Final = 128 * 1024
"""Most bytes of one write. The kernel need not leave a system call for another process: one of
4 MiB, into memory it had to find first, kept a broker on the same CPU waiting for up to 6 ms."""

FOLDER_ATTEMPTS: Final = 100
"""Against folders that are removed as fast as they are made; then the put fails."""

_MISSING: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG))
_DENIED: Final = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))
_NEVER: Final = frozenset((errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG))


def is_missing(error: DiskError) -> bool:
    """Whether the disk says that there is no such file."""
    return error.errno in _MISSING


def storage_error(error: DiskError) -> RemoteStorageError:
    """What a caller of the store sees of a disk error that is not a missing object."""
    if error.errno in _DENIED:
        return StoreDeniedError(str(error))
    if error.errno == errno.ETIMEDOUT:
        return StoreTimeoutError(str(error))
    if error.errno in _NEVER:
        return RemoteStorageError(str(error))
    return StoreUnavailableError(str(error))


class UnfinishedObject:
    """A file under its unfinished name; made, written and ended by one `DirectoryTree`.

    Attributes:
        size: Bytes written so far.
    """

    __slots__ = ("file", "folder", "path", "size", "target")

    def __init__(self, file: File, path: str, target: str, folder: str) -> None:
        self.file = file
        self.path = path
        self.target = target
        self.folder = folder
        self.size = 0

    def write(self, data: Buffer) -> None:
        """Append, in pieces of `WRITE_BYTES`."""
        view = memoryview(data)
        for begin in range(0, len(view), WRITE_BYTES):
            piece = view[begin : begin + WRITE_BYTES]
            self.file.write_at(piece, self.size)
            self.size += len(piece)


class DirectoryTree:
    """See the module. Every method blocks; several threads may call at once.

    All raise UnusableKeyError for keys that would leave the root or that the disk cannot hold,
    and DiskError, which the caller maps to its own.
    """

    def __init__(self, filesystem: Filesystem, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        self._filesystem = filesystem
        self._base = self.root if self.root.endswith("/") else self.root + "/"

    def prepare(self) -> None:
        """Make the root, durably, if it is not there."""
        made = []
        path = self.root
        while path not in ("", "/", ".") and not self._filesystem.exists(path):
            made.append(path)
            path = _folder_of(path)
        self._filesystem.mkdir(self.root)
        for path in made:
            self._filesystem.sync_directory(_folder_of(path) or ".")

    def path(self, key: str) -> str:
        """Where an object is or would be."""
        check_key(key)
        *folders, name = _names(key)
        if len(name.encode()) > NAME_BYTES_MAX - UNFINISHED_EXTRA_BYTES or any(
            len(folder.encode()) > NAME_BYTES_MAX for folder in folders
        ):
            raise UnusableKeyError(key, "a file system cannot hold a name that long")
        if UNFINISHED.fullmatch(name):
            raise UnusableKeyError(key, "it has the form of an unfinished object's")
        return self._base + "/".join((*folders, name))

    # -- writing -----------------------------------------------------------------------------

    def begin(self, key: str, upload_id: str) -> UnfinishedObject:
        """Make an empty file, and its folder, under an unfinished name."""
        target = self.path(key)
        folder = _folder_of(target)
        path = f"{target}.{upload_id}.unfinished"
        if not self._filesystem.exists(self.root):
            # A disk that is not mounted: its mount point is not the place to write to.
            raise DiskError("the object store's directory is not there", self.root, errno.ENODEV)
        for attempt in range(FOLDER_ATTEMPTS):
            try:
                self._filesystem.mkdir(folder)
                file = self._filesystem.open(path, create=True)
            except DiskError as error:
                # A delete removed the empty folder meanwhile: behind the mkdir (ENOENT), or
                # between its EEXIST and its check whether that is a folder (EEXIST). A file
                # in the folder's place is EEXIST each time, and raised in the end.
                passing = error.errno in (errno.ENOENT, errno.EEXIST)
                if not passing or attempt + 1 == FOLDER_ATTEMPTS:
                    raise
                continue
            return UnfinishedObject(file, path, target, folder)
        raise AssertionError("the last attempt raises")

    def commit(self, unfinished: UnfinishedObject) -> None:
        """Let the object appear, durably."""
        unfinished.file.sync()
        unfinished.file.close()
        self._filesystem.rename(unfinished.path, unfinished.target)
        folder = unfinished.folder
        while True:
            self._filesystem.sync_directory(folder)
            if folder == self.root:
                return
            folder = _folder_of(folder)

    def discard(self, unfinished: UnfinishedObject) -> None:
        """Remove what `begin` made, as far as the disk lets us."""
        unfinished.file.close()
        try:
            self._filesystem.unlink(unfinished.path, missing_ok=True)
        except DiskError:
            return
        self._remove_empty(unfinished.folder)

    def abort(self, key: str, upload_id: str) -> None:
        """Remove an abandoned unfinished file; a missing one is fine."""
        target = self.path(key)
        path = f"{target}.{upload_id}.unfinished"
        if not UNFINISHED.fullmatch(path.rpartition("/")[2]):
            return
        self._unlink(path)
        self._remove_empty(_folder_of(target))

    # -- reading -----------------------------------------------------------------------------

    def open(self, key: str) -> File:
        """The object's file, which stays readable whatever happens to its name.

        Raises:
            ObjectNotFoundError: No such object.
        """
        try:
            return self._filesystem.open(self.path(key), readonly=True)
        except DiskError as error:
            if is_missing(error):
                raise ObjectNotFoundError(key) from None
            raise

    def read_into(self, key: str, position: int, view: memoryview) -> int:
        """Fill `view`; returns how much was filled, less only at the object's end."""
        file = self.open(key)
        try:
            return file.read_into(view, position)
        except DiskError as error:
            if error.errno == errno.EISDIR:
                raise ObjectNotFoundError(key) from None
            raise
        finally:
            file.close()

    def read(self, key: str, max_bytes: int) -> bytes | None:
        """A whole object, None when it is larger than `max_bytes`."""
        file = self.open(key)
        try:
            # A folder has a size, but no bytes: reading distinguishes the two.
            first = file.read_at(1, 0)
            size = file.size()
            if size > max_bytes:
                return None
            return file.read_at(size, 0) if size > 1 else first[:size]
        except DiskError as error:
            if error.errno == errno.EISDIR:
                raise ObjectNotFoundError(key) from None
            raise
        finally:
            file.close()

    def info(self, key: str) -> ObjectInfo | None:
        """Size and time of an object."""
        try:
            file = self.open(key)
        except ObjectNotFoundError:
            return None
        try:
            # A folder can be opened and has a size, but no first byte.
            file.read_at(1, 0)
            return ObjectInfo(key, file.size(), self._filesystem.mtime_ms(file.path))
        except DiskError as error:
            if is_missing(error):
                return None
            raise
        finally:
            file.close()

    def modified_ms(self, key: str) -> int:
        """Time of the last write of a key that `walk` has listed; DiskError when it is gone."""
        return self._filesystem.mtime_ms(self._base + "/".join(_names(key)))

    # -- deleting ----------------------------------------------------------------------------

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects, durably, and folders that are empty then."""
        paths = [self.path(key) for key in keys]
        folders = {_folder_of(path) for path in paths if self._unlink(path)}
        for folder in sorted(folders, reverse=True):
            try:
                self._filesystem.sync_directory(folder)
            except DiskError as error:
                if not is_missing(error):
                    raise
            self._remove_empty(folder)

    def _unlink(self, path: str) -> bool:
        """Whether the path could name a file."""
        try:
            self._filesystem.unlink(path, missing_ok=True)
        except DiskError as error:
            # ENOTDIR: a part of the path is a file. EISDIR, EPERM: the path is a folder.
            if not is_missing(error) and not self._is_folder(path):
                raise
            return False
        return True

    def _is_folder(self, path: str) -> bool:
        try:
            self._filesystem.list_directory(path)
        except DiskError:
            return False
        return True

    def _remove_empty(self, folder: str) -> None:
        while folder != self.root and folder.startswith(self._base):
            try:
                if not self._filesystem.remove_empty_directory(folder):
                    return
            except DiskError:
                # An empty folder is harmless: a mount point, or not ours to remove.
                return
            folder = _folder_of(folder)

    # -- listing -----------------------------------------------------------------------------

    def walk(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        """(key, size) of objects that begin with `prefix` and are above `after`, in key order."""
        for key, size, unfinished, _ in self._files(prefix, after):
            if unfinished is None:
                yield key, size

    def walk_folder(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        """As `walk`, but what is below a further folder is listed as that folder, of size 0."""
        for key, size, unfinished, _ in self._files(prefix, after, by_folder=True):
            if unfinished is None:
                yield key, size

    def unfinished(self, prefix: str) -> Iterator[PendingUpload]:
        """Files that are being written, or were; the time is that of the last write."""
        for key, _, upload_id, path in self._files(prefix, ""):
            if upload_id is None:
                continue
            try:
                modified_ms = self._filesystem.mtime_ms(path)
            except DiskError as error:
                if not is_missing(error):
                    raise
                continue
            yield PendingUpload(key, upload_id, modified_ms)

    def _files(self, prefix: str, after: str, *, by_folder: bool = False) -> Iterator["_Found"]:
        check_prefix(prefix)
        if not self._filesystem.exists(self.root):
            raise DiskError("the object store's directory is not there", self.root, errno.ENODEV)
        folder, slash, _ = prefix.rpartition("/")
        path = self._base + ("/".join(_names(folder)) + "/" if slash else "")
        yield from self._files_below(path, folder + slash, prefix, after, by_folder)

    def _files_below(
        self, path: str, base: str, prefix: str, after: str, by_folder: bool
    ) -> Iterator["_Found"]:
        """`path` ends in `/`; `base` is what keys begin with whose files are below it.

        Python orders text as UTF-8's bytes are ordered.
        """
        try:
            entries = self._filesystem.list_directory(path)
        except DiskError as error:
            if is_missing(error):
                return
            raise
        found = []
        for entry in entries:
            match = None if entry.is_directory else UNFINISHED.fullmatch(entry.name)
            name = match["name"] if match else entry.name
            key = base + ("" if name == NOTHING else name)
            if entry.is_directory:
                key = key[: -len(SPLIT)] if name.endswith(SPLIT) else key + "/"
            if not _usable(key):
                continue
            if entry.is_directory:
                wanted = key.startswith(prefix) or prefix.startswith(key)
                ahead = key > after or after.startswith(key)
            else:
                wanted = key.startswith(prefix)
                ahead = key > after
            if wanted and ahead:
                found.append((key, entry, match["upload_id"] if match else None))
        for key, entry, upload_id in sorted(found, key=itemgetter(0)):
            if not entry.is_directory:
                yield _Found(key, entry.size, upload_id, path + entry.name)
                continue
            below = f"{path}{entry.name}/"
            if by_folder and key.endswith("/") and len(key) > len(prefix):
                if key > after and self._has_objects(below, key):
                    yield _Found(key, 0, None, below)
            else:
                yield from self._files_below(below, key, prefix, after, by_folder)

    def _has_objects(self, path: str, base: str) -> bool:
        """Whether anything is there; a folder that deleting left empty, or an upload, is not."""
        return any(
            found.upload_id is None for found in self._files_below(path, base, base, "", False)
        )


class _Found(NamedTuple):
    """A file, or a folder in place of its files; `upload_id` is None for a whole object."""

    key: str
    size: int
    upload_id: str | None
    path: str


def _names(key: str) -> list[str]:
    """The names of folders and file that stand for a key, or for the folders of one."""
    names = []
    for part in key.split("/"):
        if len(part) < SPLIT_CHARACTERS:
            names.append(part)
        else:
            names += [part[:SPLIT_CHARACTERS] + SPLIT, part[SPLIT_CHARACTERS:] or NOTHING]
    return names


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else "")


def _usable(key: str) -> bool:
    """Whether a file that is there could have come from here."""
    try:
        check_prefix(key)
    except UnusableKeyError:
        return False
    return len(key) <= KEY_BYTES_MAX
