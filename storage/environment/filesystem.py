"""Filesystem: the few disk calls of the broker, passed in as a dependency.

Only this module makes the operating system's file calls. Everything above it takes a
`Filesystem`, so that a test can lose what was not synced, stop after the n-th write, or answer "no
space left".

What is durable, and when (the strictest reading of POSIX, which the fake enforces):

    contents of a file     after `File.sync`
    a name                 after `Filesystem.sync_directory` of the folder that holds it: creating,
                           renaming and unlinking are changes of the folder, not of the file

Every `OSError` leaves here as `DiskError` with the path and the errno.

An open `File` closes its descriptor when the last reference to it goes. A `FileSlice` on its way
to a socket therefore keeps its bytes readable after the segment was deleted or dropped from the
pool of open files.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from storage.environment.second_chance_pool import SecondChancePool

Buffer: TypeAlias = bytes | bytearray | memoryview
"""What can be written. A memoryview must be contiguous bytes."""


class DirEntry(NamedTuple):
    """One name in a folder."""

    name: str
    is_directory: bool
    size: int


class Volume(NamedTuple):
    """A disk: all its bytes, and what an unprivileged process may still write of it."""

    total_bytes: int
    free_bytes: int
    free_files: int | None = None
    """Files and folders that it has inodes for; None: as many as there is room for."""


class File(Protocol):
    """An open file. Positions and sizes are in bytes from its start."""

    path: str
    """Where it was opened; a later rename does not change it. For messages only."""

    is_short: bool
    """It ended within what was to be sent of it. Set by the sender, cleared by the file's owner."""

    def fileno(self) -> int:
        """The descriptor, for `sendfile`; valid while this object lives."""
        ...

    def write_at(self, data: Buffer | Sequence[Buffer], position: int) -> None:
        """Write all of `data` (or of a list of buffers, in order) or raise `DiskError`."""
        ...

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        ...

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        """As `read_at` if that need not wait for the disk, else None.

        Waits after all where the system lacks such a read (`describe_missing`, some file systems).
        """
        ...

    def is_cached(self, position: int, length: int) -> bool:
        """Whether a read of the range would not wait for the disk (true if that is unknown)."""
        ...

    def warm(self, position: int, length: int) -> None:
        """Bring a range into the page cache; waits for the disk."""
        ...

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer`; returns how much was filled, less only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut or, with zeros, extend to `size`."""
        ...

    def size(self) -> int:
        """Bytes in the file now."""
        ...

    def stamp(self) -> tuple[int, int]:
        """(bytes, last change in nanoseconds since 1970): other contents have another stamp."""
        ...

    def sync(self) -> None:
        """Contents and size are on the disk when this returns (`fdatasync`)."""
        ...

    def write_back(self, position: int, size: int) -> bool:
        """Have the disk take what was written there, without a promise; wait until it has.

        So that dirty pages do not pile up until the kernel throttles writers.

        Returns:
            Whether the system can do that (Linux: `sync_file_range`); else nothing was done.

        Raises:
            SyncFailedError: As of `sync`, which will not report it a second time.
        """
        ...

    def allocate(self, size: int) -> None:
        """Reserve blocks so that the file is `size` bytes long, new bytes being zero."""
        ...

    def close(self) -> None:
        """Close the descriptor now. Only for a file without any other holder."""
        ...


class Lock(Protocol):
    """An exclusive lock on a path, held until released or until the process ends."""

    def release(self) -> None:
        """Give it up; a second call does nothing."""
        ...


class Filesystem(Protocol):
    """The disk. Paths are absolute, or relative to the working directory."""

    open_files: SecondChancePool
    """Segments that hold their file open."""

    loaded_indexes: SecondChancePool
    """Index files held in memory; the weight is bytes."""

    @property
    def open_count(self) -> int:
        """Files that are open, in the pool or not."""
        ...

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> File:
        """Open an existing file, or create an empty one when `create` and it is missing.

        With `spare` only if the files' share of the descriptors is not used up: for what a client
        asks for and may keep from being closed. Else DiskError says EMFILE.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces `target`. Durable after `sync_directory` of the folder."""
        ...

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, atomically; DiskError with EEXIST when `target` is there."""
        ...

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        """Remove a name; open files stay readable."""
        ...

    def mkdir(self, path: str) -> None:
        """Create a folder and its missing parents; one that exists is fine."""
        ...

    def rmtree(self, path: str) -> None:
        """Remove a folder and all below; a missing one is fine."""
        ...

    def remove_empty_directory(self, path: str) -> bool:
        """Remove a folder if nothing is in it; whether it is gone (a missing one is)."""
        ...

    def list_directory(self, path: str) -> list[DirEntry]:
        """What is in a folder, in no order."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""
        ...

    def file_size(self, path: str) -> int:
        """Bytes in a file that need not be open."""
        ...

    def sync_directory(self, path: str) -> None:
        """Names in this folder are on the disk when this returns."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """A whole small file."""
        ...

    def replace_bytes(self, path: str, data: Buffer) -> None:
        """Replace a small file so that after a crash it is either the old or the new one.

        Writes `<path>.tmp`, syncs it, renames it, syncs the folder.
        """
        ...

    def lock(self, path: str, *, with_folder: bool = False) -> Lock:
        """Claim a file for as long as the process lives.

        Args:
            path: Of the file; created when missing.
            with_folder: Claim its folder, too, where the disk can: the claim then holds on when
                somebody removes the file.

        Raises:
            LockedDirectoryError: It is taken.
            DiskError: The disk refused.
        """
        ...

    def mtime_ms(self, path: str) -> int:
        """Last modification, milliseconds since 1970 UTC."""
        ...

    def identity(self, path: str) -> str:
        """Of a file or folder: it stays when renamed, and a copy has another.

        `device:inode`; where a file's inode may have been another's, `device:inode:generation`.
        """
        ...

    def volume(self, path: str) -> Volume:
        """The disk that holds `path`."""
        ...
