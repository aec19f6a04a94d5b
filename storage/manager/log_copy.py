"""Copy of a log in another log directory, made while the log serves (KIP-113).

    <log.dir>/<topic>-<partition>.<id>-future/     the copy, until it takes the log's place

    copy, again and again    of the segments what the log vouches for: it is never changed again
    finish                   the log is closed: the rest, and all other files; all is on disk

Nothing may compact the log meanwhile: then segments would change below what was copied.

Source: Kafka, ReplicaAlterLogDirsThread.scala; there the copy is filled by fetches.
"""

import errno
from collections.abc import Callable, Iterable
from posixpath import join
from typing import Final, NamedTuple

from storage.environment.filesystem import Filesystem
from storage.errors import DiskError, StorageError
from storage.segment.set_aside import number_of
from storage.types.log_files import LOG_SUFFIX, log_file_name, parse_log_file_name

PIECE_BYTES: Final = 128 * 1024
"""Copied by one call: a larger one would hold a processor for as long as it takes."""

_TEMPORARY: Final = ".tmp"


Throttled = Callable[[int, Callable[[], None]], None]
"""Called with the bytes copied; waits if they were too many, calling the second now and then."""


def unthrottled(_size: int, _check_wanted: Callable[[], None]) -> None:
    """Never waits."""


class CopyCancelledError(StorageError):
    """The copy is no longer wanted."""


class SegmentSize(NamedTuple):
    """A segment and how many of its bytes the log vouches for."""

    base_offset: int
    size_bytes: int


class LogCopy:
    """One copy; see the module. Its methods block for disks and belong in a thread.

    Attributes:
        source: The log's directory.
        target: The copy's.
        end_offset: The copy holds all below it.
        size_bytes: Of segments, in the copy.
        cancelled: May be set in any thread: what runs soon raises CopyCancelledError.
        is_log_closed: The log was closed cleanly, to be copied to its end.
    """

    def __init__(
        self, filesystem: Filesystem, source: str, target: str, throttle: Throttled = unthrottled
    ) -> None:
        """Nothing is copied yet; `throttle` is called with each piece, and may wait."""
        self.source = source
        self.target = target
        self.end_offset = 0
        self.cancelled = False
        self.is_log_closed = False
        self._filesystem = filesystem
        self._throttle = throttle
        self._copied: dict[str, int] = {}

    @property
    def size_bytes(self) -> int:
        """Bytes of segments in the copy."""
        return sum(list(self._copied.values()))

    def copy(self, segments: Iterable[SegmentSize], end_offset: int) -> int:
        """Copy what segments have; returns how many bytes were missing.

        Args:
            segments: All of the log, as its owner sees them.
            end_offset: The log's end when they were listed.

        Raises:
            CopyCancelledError: See `cancelled`.
            DiskError: A disk refused.
        """
        sizes = {log_file_name(one.base_offset, LOG_SUFFIX): one.size_bytes for one in segments}
        for name in self._copied.keys() - sizes.keys():
            self._forget(name)
        copied = sum(self._extend(name, size) for name, size in sizes.items())
        self.end_offset = end_offset
        return copied

    def hurry(self) -> None:
        """Ignore cancellation and the throttle for what is left to copy."""
        self.cancelled = False
        self._throttle = unthrottled

    def finish(self) -> None:
        """Make the copy whole: the log is closed, and all of it is on disk.

        Raises:
            CopyCancelledError: See `cancelled`.
            DiskError: A disk refused.
        """
        wanted = set()
        for entry in self._filesystem.list_directory(self.source):
            name = parse_log_file_name(entry.name)
            is_going = name is not None and name.stage
            if entry.is_directory and number_of(entry.name) is not None:
                self._copy_set_aside(entry.name)
                wanted.add(entry.name)
            if entry.is_directory or is_going or entry.name.endswith(_TEMPORARY):
                continue
            wanted.add(entry.name)
            if (
                name is None
                or name.kind != LOG_SUFFIX
                or self._copied.get(entry.name, 0) > entry.size
            ):
                self._forget(entry.name)
            self._extend(entry.name, entry.size)
        for entry in self._filesystem.list_directory(self.target):
            if entry.name not in wanted:
                self._filesystem.unlink(join(self.target, entry.name))
        self._filesystem.sync_directory(self.target)

    def _copy_set_aside(self, folder: str) -> None:
        """Segments that a recovery has set aside go where their partition goes."""
        self._filesystem.mkdir(join(self.target, folder))
        for entry in self._filesystem.list_directory(join(self.source, folder)):
            if not entry.is_directory:
                self._forget(f"{folder}/{entry.name}")
                self._extend(f"{folder}/{entry.name}", entry.size)
        self._filesystem.sync_directory(join(self.target, folder))

    def _extend(self, name: str, size: int) -> int:
        """Copy a file from where its copy ends up to `size`; on disk when this returns."""
        start = self._copied.get(name, 0)
        if name in self._copied and start == size:
            return 0
        try:
            source = self._filesystem.open(join(self.source, name), readonly=True)
        except DiskError as error:
            if error.errno == errno.ENOENT:
                # Retention has taken it meanwhile.
                return 0
            raise
        target = self._filesystem.open(join(self.target, name), create=True)
        try:
            target.truncate(start)
            position = start
            while position < size:
                self._check_wanted()
                piece = source.read_at(min(PIECE_BYTES, size - position), position)
                if not piece:
                    # Shorter than was said: what is not there is copied when it is.
                    break
                target.write_at(piece, position)
                position += len(piece)
                self._throttle(len(piece), self._check_wanted)
            target.sync()
        finally:
            target.close()
            source.close()
        self._copied[name] = position
        return position - start

    def _check_wanted(self) -> None:
        if self.cancelled:
            raise CopyCancelledError(f"copy of {self.source} cancelled")

    def _forget(self, name: str) -> None:
        self._copied.pop(name, None)
        self._filesystem.unlink(join(self.target, name), missing_ok=True)
