"""Bytes of one object, asked for ahead and waited for in order, into the caller's memory.

    begin(A) ── begin(B) ── A.wait() ── begin(C) ── B.wait() ── ...
       └───────── B under way ───────────────────────┘

Objects that are files of this machine are read when they are waited for, in the caller's thread:
the kernel reads ahead by itself, and a change of threads would cost more than it gives. Mapping
them would save one copy within the processor's cache, and cost a fault a page and the process when
the file is truncated. All other objects come through the loop of a `StoreThread`, while the
caller decodes what it has.

The memory is the source's from `begin` until `wait` has ended.
"""

from concurrent.futures import Future
from typing import Protocol

from pipeline.read.bytes.store_thread import StoreThread
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.object_store.base import ObjectStore
from tiered.object_store.directory_tree import is_missing, storage_error
from tiered.storage_manager.read import get_whole_range


class PendingBytes(Protocol):
    """A range that was begun."""

    def wait(self) -> None:
        """Until the memory is filled.

        Raises:
            ObjectNotFoundError: There is no such object.
            CorruptRemoteDataError: It is shorter than it was when it was stored.
            RemoteStorageError: The store cannot give it, after its deadlines and retries.
        """
        ...

    def cancel(self) -> None:
        """Cancelled; the memory may be written to for a while."""
        ...


class ByteSource(Protocol):
    """See the module.

    Attributes:
        is_local: Reading ahead is of no use.
    """

    is_local: bool

    def begin(self, position: int, into: memoryview) -> PendingBytes:
        """Ask for `len(into)` bytes from `position`."""
        ...


class StoreBytes:
    """An object of a store, by its loop."""

    is_local = False

    def __init__(self, thread: StoreThread, store: ObjectStore, key: str, size: int) -> None:
        """`size` is what was stored, by the manifest."""
        self._thread = thread
        self._store = store
        self._key = key
        self._size = size

    def begin(self, position: int, into: memoryview) -> PendingBytes:
        """Under way from now on."""
        call = get_whole_range(self._store, self._key, position, into, self._size)
        return _StoreRange(self._thread.start(call))


class _StoreRange:
    __slots__ = ("_future",)

    def __init__(self, future: "Future[None]") -> None:
        self._future = future

    def wait(self) -> None:
        self._future.result()

    def cancel(self) -> None:
        self._future.cancel()


class FileBytes:
    """An object that is a file of this machine."""

    is_local = True

    def __init__(self, filesystem: Filesystem, path: str, key: str, size: int) -> None:
        """`size` is what was stored, by the manifest.

        Raises:
            ObjectNotFoundError: There is no such file.
            RemoteStorageError: It cannot be opened.
        """
        self._key = key
        self._size = size
        try:
            self._file = filesystem.open(path, readonly=True)
        except DiskError as error:
            if is_missing(error):
                raise ObjectNotFoundError(key) from error
            raise storage_error(error) from error

    def begin(self, position: int, into: memoryview) -> PendingBytes:
        """Read when it is waited for."""
        return _FileRange(self, position, into)

    def read(self, position: int, into: memoryview) -> None:
        """One `preadv`; errors as of `PendingBytes.wait`."""
        try:
            count = self._file.read_into(into, position)
        except DiskError as error:
            raise storage_error(error) from error
        if count < len(into):
            problem = f"the object has {position + count} bytes, {self._size} were stored"
            raise CorruptRemoteDataError(self._key, position + count, problem)


class _FileRange:
    __slots__ = ("_file", "_into", "_position")

    def __init__(self, file: FileBytes, position: int, into: memoryview) -> None:
        self._file = file
        self._position = position
        self._into = into

    def wait(self) -> None:
        self._file.read(self._position, self._into)

    def cancel(self) -> None:
        pass
