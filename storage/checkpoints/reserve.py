"""The reserve of a log directory: disk space that is held back until the disk is full.

An empty file of a few MiB whose blocks are allocated. When the disk is full it is released, which
leaves a few KiB for what keeps a full node running and frees space: checkpoints, the metadata
store, `__remote_log_metadata`. Appends are refused until it could be allocated again with as much
space beside it.

    HELD ──disk full──> release ──> RELEASED ──try_take: room for twice its size──> HELD
                                        └──────── no room ────────┘

A clean stop removes it; after a crash the file that is left is used again.
"""

import contextlib
from posixpath import join
from typing import Final

from storage.environment.filesystem import Filesystem
from storage.errors import DiskError

RESERVE_FILE: Final = ".reserve"

RESERVE_BYTES: Final = 16 << 20
"""Unless the disk is small."""

DISK_SHARE: Final = 64
"""At most one part in so many of the disk is held back."""

PROBED_MIN: Final = 1 << 20
"""Bytes that must be there before appends go on, however small the reserve is."""

FILES_MIN: Final = 64
"""Files for which the disk must have inodes before appends go on: a roll makes up to five."""


class Reserve:
    """The reserve of one directory. Every call but `needed_bytes` may wait for the disk.

    Attributes:
        size: Its bytes; 0: none is wanted, though free space is checked all the same.
        is_held: It was taken and not released.
    """

    def __init__(self, directory: str, filesystem: Filesystem, size: int) -> None:
        self._path = join(directory, RESERVE_FILE)
        self._directory = directory
        self._filesystem = filesystem
        self.size = size
        self.is_held = False

    @property
    def needed_bytes(self) -> int:
        """Free bytes without which `try_take` does not succeed."""
        return max(2 * self.size, PROBED_MIN)

    def hold(self) -> None:
        """Take it at a start, whatever is left beside it.

        Raises:
            DiskError: There is no room for it; it is not held.
        """
        if self.size:
            self.size = min(
                self.size, self._filesystem.volume(self._directory).total_bytes // DISK_SHARE
            )
            self._take(self.size)

    def try_take(self) -> bool:
        """Take it again, if there is as much room beside it; whether there was."""
        try:
            volume = self._filesystem.volume(self._directory)
            if volume.free_bytes < self.needed_bytes:
                return False
            if volume.free_files is not None and volume.free_files < FILES_MIN:
                return False
            # Twice the size is really allocated: the volume does not report a quota.
            self._take(self.needed_bytes)
        except DiskError:
            self.give_up()
            return False
        return True

    def _take(self, size: int) -> None:
        file = self._filesystem.open(self._path, create=True)
        try:
            file.allocate(size)
            file.truncate(self.size)
        except DiskError:
            self.give_up()
            raise
        finally:
            file.close()
        self.is_held = True
        if not self.size:
            self.give_up()

    def give_up(self) -> None:
        """Give its room back. A disk that refuses has more to be said of by others."""
        self.is_held = False
        with contextlib.suppress(DiskError):
            self._filesystem.unlink(self._path, missing_ok=True)
