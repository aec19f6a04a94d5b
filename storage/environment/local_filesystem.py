"""The disks of the machine: `Filesystem` by calls to the operating system, and by nothing else.

Only this module asks the operating system about files. Linux has what a log wants; what another
system lacks is named by `describe_missing`.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import shutil
import stat
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar, cast

from typing_extensions import override

from native.subclasses import mypyc_attr
from storage.environment import page_cache, quick_reads
from storage.environment.descriptors import DescriptorShares, descriptor_limit, share_out
from storage.environment.filesystem import Buffer, DirEntry, Volume
from storage.environment.open_descriptor import OpenDescriptor
from storage.environment.second_chance_pool import SecondChancePool
from storage.errors import DESCRIPTOR_LIMIT, DiskError, LockedDirectoryError, SyncFailedError

T = TypeVar("T")

EVICTED_AT_ONCE = 16
"""Files that the pool lets go of when descriptors are short; opening one again costs some 10 us."""

LOADED_INDEX_BYTES_MAX = 64 * 1024 * 1024
"""Memory for index files that were read in; a full 1 GiB segment has 2 MiB of offset index."""

IOV_MAX = 1024
"""Most buffers one `pwritev` takes on Linux and macOS."""


def _fail(error: OSError, path: str, doing: str) -> NoReturn:
    raise DiskError(f"cannot {doing} ({error.strerror or error})", path, error.errno) from error


def _fail_sync(error: OSError, path: str, doing: str) -> NoReturn:
    text = f"cannot {doing} ({error.strerror or error})"
    raise SyncFailedError(text, path, error.errno) from error


# fdatasync leaves out what a reader does not need (times) and is missing on macOS, where fsync only
# reaches the drive's cache: `describe_missing` says so at start.
_datasync = getattr(os, "fdatasync", os.fsync)

# A name of this module's own: that of another is looked up at each call.
_read_cached: Final = quick_reads.read_cached


def _find_sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """The C library's, of which Python knows nothing; None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    found.restype = ctypes.c_int
    return cast("Callable[[int, int, int, int], int]", found)


_sync_file_range = _find_sync_file_range()
_WRITE_AND_WAIT = 7
"""SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER."""


_GET_VERSION = 0x80087601
"""FS_IOC_GETVERSION of <linux/fs.h>, where a C long has 64 bits."""


def _generation(path: str) -> int:
    """Which of the files it is that have had this inode, one after the other; 0: not known.

    Ext4, XFS and Btrfs say so. Tmpfs and Btrfs never give an inode to a second file.
    """
    if not sys.platform.startswith("linux"):
        return 0
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        answer = fcntl.ioctl(fd, _GET_VERSION, bytes(8))
    except OSError:
        return 0
    finally:
        os.close(fd)
    return int.from_bytes(answer[:4], sys.byteorder)


def describe_missing() -> tuple[str, ...]:
    """What this platform lacks of what a log wants; one sentence each, for the start banner."""
    missing = []
    if not hasattr(os, "fdatasync"):
        missing.append("no fdatasync: fsync is used, which may stop at the drive's cache")
    if not hasattr(os, "posix_fallocate"):
        missing.append("no posix_fallocate: preallocate reserves a length, not blocks")
    if _sync_file_range is None:
        missing.append("no sync_file_range: a slow disk is noticed when it holds the broker up")
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY:
        missing.append(
            f"files of {limit} bytes at most (ulimit -f): a log directory goes offline when a "
            "segment, or what is kept in reserve for a full disk, does not fit"
        )
    return tuple(missing)


@mypyc_attr(allow_interpreted_subclasses=True)
class LocalFile:
    """A descriptor of the operating system."""

    __slots__ = ("_descriptor", "_fd", "_has_nowait", "is_short", "path")

    def __init__(self, path: str, fd: int, held: set[int] | None = None) -> None:
        """`held`: the descriptors of all open files; this one's is in it until it is closed."""
        self.path = path
        self.is_short = False
        self._fd = fd
        self._descriptor = OpenDescriptor(fd, set() if held is None else held, os.close)
        self._has_nowait = quick_reads.has_nowait

    @override
    def __repr__(self) -> str:
        return f"LocalFile({self.path!r}, fd={self._fd})"

    def fileno(self) -> int:
        """The descriptor; -1 once closed."""
        return self._fd

    def write_at(self, data: Buffer | Sequence[Buffer], position: int) -> None:
        """Write all of it; a short write is continued, not reported."""
        try:
            if isinstance(data, (list, tuple)):
                self._write_vector(data, position)
                return
            buffer = cast("Buffer", data)
            size = len(buffer)
            written = os.pwrite(self._fd, buffer, position)
            while written < size:
                written += os.pwrite(self._fd, memoryview(buffer)[written:], position + written)
        except OSError as error:
            _fail(error, self.path, "write")

    def _write_vector(self, buffers: Sequence[Buffer], position: int) -> None:
        views = [memoryview(buffer) for buffer in buffers]
        while views:
            written = os.pwritev(self._fd, views[:IOV_MAX], position)
            position += written
            while views and written >= len(views[0]):
                written -= len(views.pop(0))
            if views and written:
                views[0] = views[0][written:]

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        try:
            data = os.pread(self._fd, size, position)
            if len(data) == size or not data:
                return data
            # Linux returns at most 2 GiB a call, and a signal may cut a read short.
            parts = [data]
            done = len(data)
            while done < size:
                data = os.pread(self._fd, size - done, position + done)
                if not data:
                    break
                parts.append(data)
                done += len(data)
            return b"".join(parts)
        except OSError as error:
            _fail(error, self.path, "read")

    def read_cached(self, size: int, position: int) -> bytes | bytearray | None:
        """What is in the page cache; waits where a file system lacks `RWF_NOWAIT` (EOPNOTSUPP)."""
        if not self._has_nowait:
            return self.read_at(size, position)
        try:
            return _read_cached(self._fd, size, position)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                _fail(error, self.path, "read")
            self._has_nowait = False
            return self.read_at(size, position)

    def is_cached(self, position: int, length: int) -> bool:
        """As far as the kernel says (`storage.environment.page_cache`)."""
        return page_cache.is_cached(self._fd, position, length)

    def warm(self, position: int, length: int) -> None:
        """Read the range and drop it."""
        try:
            page_cache.read_in(self._fd, position, length)
        except OSError as error:
            _fail(error, self.path, "read")

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer`; less only at the end of the file."""
        done = 0
        try:
            while done < len(buffer):
                count = os.preadv(self._fd, [buffer[done:]], position + done)
                if count == 0:
                    break
                done += count
        except OSError as error:
            _fail(error, self.path, "read")
        return done

    def truncate(self, size: int) -> None:
        """Cut or extend to `size` bytes."""
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            _fail(error, self.path, "truncate")

    def size(self) -> int:
        """Bytes in the file."""
        try:
            return os.fstat(self._fd).st_size
        except OSError as error:
            _fail(error, self.path, "stat")

    def stamp(self) -> tuple[int, int]:
        """Size and time of the last change."""
        try:
            found = os.fstat(self._fd)
        except OSError as error:
            _fail(error, self.path, "stat")
        return found.st_size, found.st_mtime_ns

    def sync(self) -> None:
        """Block until contents and size are on the disk."""
        try:
            _datasync(self._fd)
        except OSError as error:
            _fail_sync(error, self.path, "sync")

    def write_back(self, position: int, size: int) -> bool:
        """Block until the disk has taken the range."""
        if _sync_file_range is None:
            return False
        if _sync_file_range(self._fd, position, size, _WRITE_AND_WAIT) == 0:
            return True
        code = ctypes.get_errno()
        if code in (errno.ENOSYS, errno.EINVAL, errno.ESPIPE, errno.EBADF):
            return False
        # The kernel reports a failed write once for each open file: `sync` would find nothing.
        _fail_sync(OSError(code, os.strerror(code)), self.path, "write back")

    def allocate(self, size: int) -> None:
        """Reserve blocks where the platform can; elsewhere only the length."""
        try:
            if sys.platform != "darwin":
                try:
                    os.posix_fallocate(self._fd, 0, size)
                    return
                except OSError as error:
                    if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                        raise
            if os.fstat(self._fd).st_size < size:
                os.ftruncate(self._fd, size)
        except OSError as error:
            _fail(error, self.path, "allocate")

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        self._fd = -1
        self._descriptor.close()

    def detach(self) -> int:
        """Close this file but not its descriptor, which the caller has from now on."""
        self._fd = -1
        return self._descriptor.detach()


class LocalLock:
    """An `flock` on files: goes with the process, whatever way the process ends."""

    __slots__ = ("_fds",)

    def __init__(self, fds: list[int]) -> None:
        self._fds = fds

    def add(self, fd: int) -> None:
        """Hold another descriptor with it."""
        self._fds.append(fd)

    def release(self) -> None:
        """Give it up; a second call does nothing."""
        while self._fds:
            with contextlib.suppress(OSError):
                os.close(self._fds.pop())


@mypyc_attr(allow_interpreted_subclasses=True)
class LocalFilesystem:
    """The machine's disks."""

    __slots__ = ("descriptors", "files_max", "loaded_indexes", "open_files")

    def __init__(
        self,
        *,
        shares: DescriptorShares | None = None,
        loaded_index_bytes_max: int = LOADED_INDEX_BYTES_MAX,
    ) -> None:
        """Open nothing yet.

        Args:
            shares: How many files may be open; default: by the limit that holds now.
            loaded_index_bytes_max: Memory for index files.
        """
        shares = shares or share_out(descriptor_limit())
        self.files_max = shares.files
        # Of all open files, also those that only a slice on its way to a socket keeps open. Adding
        # and discarding are one step each for the interpreter, in whatever thread.
        self.descriptors: set[int] = set()
        self.open_files = SecondChancePool("open segment files", shares.pooled)
        self.loaded_indexes = SecondChancePool("loaded index bytes", loaded_index_bytes_max)

    @property
    def open_count(self) -> int:
        """Files that are open, in the pool or not."""
        return len(self.descriptors)

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        """Open, for reading and writing unless `readonly`; `spare` as in `Filesystem`."""
        if len(self.descriptors) >= self.files_max:
            self.open_files.evict(EVICTED_AT_ONCE)
            if spare and len(self.descriptors) >= self.files_max:
                raise DiskError(
                    f"cannot open ({self.files_max} log files are open, which is their share of "
                    "the descriptors)",
                    path,
                    errno.EMFILE,
                )
        flags = os.O_CLOEXEC | (os.O_RDONLY if readonly else os.O_RDWR)
        if create:
            flags |= os.O_CREAT
        try:
            return LocalFile(path, self._open(path, flags), self.descriptors)
        except OSError as error:
            _fail(error, path, "open")

    def _open(self, path: str, flags: int) -> int:
        """`os.open`; without a descriptor left the pool lets go of files until there is one.

        Raises:
            OSError: Of the last attempt.
        """
        return self._with_descriptor(lambda: os.open(path, flags, 0o644))

    def _with_descriptor(self, call: Callable[[], T]) -> T:
        while True:
            try:
                return call()
            except OSError as error:
                # Files that a slice keeps open stay so: it takes more than one attempt.
                if error.errno not in DESCRIPTOR_LIMIT or not self.open_files.evict(
                    EVICTED_AT_ONCE
                ):
                    raise

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces `target`."""
        try:
            os.replace(source, target)
        except OSError as error:
            _fail(error, source, f"rename to {target}")

    def link(self, source: str, target: str) -> None:
        """Give a file a second name that nothing has yet."""
        try:
            os.link(source, target)
        except OSError as error:
            _fail(error, source, f"link as {target}")

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        """Remove a name."""
        try:
            os.unlink(path)
        except FileNotFoundError as error:
            if not missing_ok:
                _fail(error, path, "unlink")
        except OSError as error:
            _fail(error, path, "unlink")

    def mkdir(self, path: str) -> None:
        """Create a folder and its missing parents."""
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            _fail(error, path, "create folder")

    def rmtree(self, path: str) -> None:
        """Remove a folder and all below."""
        try:
            self._with_descriptor(lambda: shutil.rmtree(path))
        except FileNotFoundError:
            return
        except OSError as error:
            _fail(error, path, "remove folder")

    def remove_empty_directory(self, path: str) -> bool:
        """Remove a folder if nothing is in it: one step for the system, so nothing can slip in."""
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            _fail(error, path, "remove folder")
        return True

    def list_directory(self, path: str) -> list[DirEntry]:
        """What is in a folder; a file that vanishes meanwhile is left out."""
        entries = []
        try:
            with self._with_descriptor(lambda: os.scandir(path)) as found:
                for entry in found:
                    try:
                        is_directory = entry.is_dir()
                        size = 0 if is_directory else entry.stat().st_size
                    except FileNotFoundError:
                        continue
                    entries.append(DirEntry(entry.name, is_directory, size))
        except OSError as error:
            _fail(error, path, "list")
        return entries

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            _fail(error, path, "stat")
        return True

    def file_size(self, path: str) -> int:
        """Bytes in a file."""
        try:
            return os.stat(path).st_size
        except OSError as error:
            _fail(error, path, "stat")

    def sync_directory(self, path: str) -> None:
        """Block until the folder's names are on the disk."""
        try:
            fd = self._open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            _fail(error, path, "open folder")
        try:
            os.fsync(fd)
        except OSError as error:
            _fail_sync(error, path, "sync folder")
        finally:
            os.close(fd)

    def read_bytes(self, path: str) -> bytes:
        """A whole small file."""
        try:
            with self._with_descriptor(lambda: open(path, "rb")) as file:
                return file.read()
        except OSError as error:
            _fail(error, path, "read")

    def replace_bytes(self, path: str, data: Buffer) -> None:
        """Old or new after a crash, never half."""
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        try:
            file.truncate(0)
            file.write_at(data, 0)
            file.sync()
        except DiskError:
            # On a full disk it would take room for nothing.
            with contextlib.suppress(DiskError):
                self.unlink(temporary, missing_ok=True)
            raise
        finally:
            file.close()
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path) or ".")

    def lock(self, path: str, *, with_folder: bool = False) -> LocalLock:
        """Claim `path` with `flock`, its folder likewise where the disk can: NFS cannot."""
        lock = LocalLock([self._claim(path, os.O_RDWR | os.O_CREAT)])
        if with_folder:
            try:
                lock.add(self._claim(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY))
            except LockedDirectoryError:
                lock.release()
                raise
            except DiskError:
                # The claim of the file has to do.
                pass
        return lock

    def _claim(self, path: str, flags: int) -> int:
        """A descriptor with the `flock` of `path`."""
        try:
            fd = self._open(path, flags | os.O_CLOEXEC)
        except OSError as error:
            _fail(error, path, "open")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise LockedDirectoryError(f"another process holds {path}") from error
            _fail(error, path, "lock")
        return fd

    def mtime_ms(self, path: str) -> int:
        """Last modification."""
        try:
            return os.stat(path).st_mtime_ns // 1_000_000
        except OSError as error:
            _fail(error, path, "stat")

    def identity(self, path: str) -> str:
        """`device:inode`, of a file `device:inode:generation` where the disk has these."""
        try:
            found = os.stat(path)
            generation = _generation(path) if stat.S_ISREG(found.st_mode) else 0
        except OSError as error:
            _fail(error, path, "stat")
        identity = f"{found.st_dev}:{found.st_ino}"
        return f"{identity}:{generation}" if generation else identity

    def volume(self, path: str) -> Volume:
        """The disk that holds `path`."""
        try:
            found = os.statvfs(path)
        except OSError as error:
            _fail(error, path, "stat disk")
        return Volume(
            found.f_blocks * found.f_frsize,
            found.f_bavail * found.f_frsize,
            found.f_favail if found.f_files else None,
        )
