"""Read modes of a look-up in a log's files: blocking, or only what is in the page cache.

In a thread a look-up waits (`WAITING`). On the event loop it must not, whatever the disk is like:
there it takes what the page cache holds, and where that does not do it raises `WouldBlockError`,
which carries the call that a thread is to make:

    loop    reader.read(offset, reads=NOWAIT) ──WouldBlockError──> park, hand `work` to a thread
    thread                                                      work() waits for the disk
    loop    reads = CachedReads(); reads.keep(key, result); reader.read(offset, reads=reads) ...

The look-up starts over each time, and gets one missing piece further: what was read is kept here
until its end, so that it finishes also where memory is so short that pages are evicted as fast as
they are read. Nothing a thread runs changes the log; the loop does, with what the thread has read.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeVar, cast

from typing_extensions import override

from storage.environment.filesystem import File
from storage.errors import StorageError
from storage.index.batch_scan import Readable

T = TypeVar("T")


class WouldBlockError(StorageError):
    """A look-up on the loop needs what is not in memory; never returned to a client.

    Attributes:
        key: Names what is missing; equal keys are one call.
        work: Gets it. Waits for the disk, touches nothing but files, may raise `StorageError`.
    """

    def __init__(self, key: Hashable, work: Callable[[], object]) -> None:
        super().__init__("would wait for the disk")
        self.key = key
        self.work = work


class Reads:
    """Reads that wait for the disk: for threads, and where no other request could be served."""

    __slots__ = ()

    def call(self, _key: Hashable, work: Callable[[], T]) -> T:
        """What `work` returns."""
        return work()

    def of(self, file: File) -> Readable:
        """The file, to be read in this way."""
        return file

    def forget(self, key: Hashable) -> None:
        """What `key` brought is out of date."""


class CachedReads(Reads):
    """Reads that never wait: from the page cache, or from what threads have brought.

    Used by one look-up. `NOWAIT` is the one that has nothing yet and keeps nothing.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[object, StorageError | None]] = {}

    def keep(self, key: Hashable, result: object, error: StorageError | None = None) -> None:
        """Take what a thread got for a `WouldBlockError`: a result, or what it raised.

        The error's traceback goes: its frames would keep open files until the collector comes.
        """
        self._kept[key] = (result, None if error is None else error.with_traceback(None))

    def clear(self) -> None:
        """The look-up is over: release what was kept."""
        self._kept.clear()

    @override
    def call(self, key: Hashable, work: Callable[[], T]) -> T:
        """What was kept under `key`.

        Raises:
            WouldBlockError: Nothing was.
            StorageError: The thread got this error.
        """
        found = self._kept.get(key)
        if found is None:
            raise WouldBlockError(key, work)
        result, error = found
        if error is not None:
            raise _again(error)
        return cast("T", result)

    @override
    def of(self, file: File) -> Readable:
        """The file, of which only what is in memory is read."""
        return _CachedFile(file, self)

    @override
    def forget(self, key: Hashable) -> None:
        """What `key` brought is out of date."""
        self._kept.pop(key, None)


def _again(error: StorageError) -> StorageError:
    """The same error, to be raised: the kept one's traceback would refer to what keeps it.

    And with that to the files which the look-up has opened, until the collector comes.
    """
    same = type(error).__new__(type(error))
    same.args = error.args
    same.__dict__.update(error.__dict__)
    return same


class _CachedFile:
    """A file on the loop."""

    __slots__ = ("_file", "_reads")

    def __init__(self, file: File, reads: CachedReads) -> None:
        self._file = file
        self._reads = reads

    def read_at(self, size: int, position: int) -> bytes | bytearray:
        """As `File.read_at`; WouldBlockError where the disk would have to be waited for."""
        file = self._file
        data = file.read_cached(size, position)
        if data is None:
            return self._reads.call((file, size, position), partial(file.read_at, size, position))
        return data


WAITING: Final = Reads()
NOWAIT: Final = CachedReads()
"""Of the first attempt: nothing has been read yet. Nothing is kept in it."""
