"""A disk in memory that forgets what was not synced.

Contents become durable by `File.sync`, names by `Filesystem.sync_directory`: the strictest reading
of POSIX. `crash` and `after_crash` then keep what a power cut would keep.

    fs = FakeFilesystem()
    fs.observer = lambda event: ...      called after each change, e.g. to take `after_crash`
    fs.stop_after = 17                   the 18th change raises PowerCut, and so does all after it
    fs.fail("write", errno.ENOSPC, path=".log")   the next matching call raises DiskError
    fs.crash()                           un-synced contents and names are gone
    fs.crash(Random(7))                  some un-synced changes survive, some of them torn
    fs.crash(KEEP_ALL)                   the process died, the machine did not: kill -9; what was
                                         not synced is there, and a later power cut still loses it
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from storage.environment.filesystem import Buffer, DirEntry, Volume
from storage.environment.second_chance_pool import SecondChancePool
from storage.errors import DiskError, LockedDirectoryError, SyncFailedError
from tests.fakes.clock import ManualClock

SECTOR_BYTES: Final = 512
"""What a disk writes whole or not at all."""

KEEP_ALL: Final = "all"
"""For `crash`: everything written survives, as when only the process dies."""

Keep = Random | str | None


class PowerCut(Exception):
    """The disk has stopped: nothing of the run continues. Not a StorageError on purpose."""


class Event(NamedTuple):
    """One change of the disk, in order of `number` (from 1)."""

    number: int
    kind: str
    path: str


class _Fault:
    def __init__(self, kind: str, code: int, path: str, skip: int, times: int) -> None:
        self.kind = kind
        self.code = code
        self.path = path
        self.skip = skip
        self.times = times


class _Inode:
    """Contents now, contents on the platter, and the changes between the two."""

    __slots__ = ("data", "durable", "mtime_ms", "number", "pending")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.pending: list[tuple[int, bytes] | int] = []
        self.mtime_ms = 0
        self.number = 0

    def write(self, data: bytes, position: int) -> None:
        end = position + len(data)
        if len(self.data) < position:
            self.data.extend(bytes(position - len(self.data)))
        self.data[position:end] = data
        self.pending.append((position, data))

    def truncate(self, size: int) -> None:
        _truncate(self.data, size)
        self.pending.append(size)

    def sync(self) -> None:
        if self.pending:
            self.durable = bytes(self.data)
            self.pending.clear()

    def survive(self, keep: Keep) -> "_Inode":
        """What a restart finds, as an inode of the same number: fully durable, unless all was kept.

        A kernel that keeps the pages of a dead process still has to write them.
        """
        found = _Inode()
        found.mtime_ms = self.mtime_ms
        found.number = self.number
        if isinstance(keep, str):
            found.data = bytearray(self.data)
            found.durable = self.durable
            found.pending = list(self.pending)
            return found
        found.data = bytearray(self.durable) if keep is None else self._some(keep)
        found.durable = bytes(found.data)
        return found

    def _some(self, random: Random) -> bytearray:
        data = bytearray(self.durable)
        for change in self.pending:
            if random.random() < 0.35:
                continue
            if isinstance(change, int):
                _truncate(data, change)
                continue
            position, written = change
            if random.random() < 0.3:
                size = random.randrange(len(written) + 1)
                if position == 0:
                    # A sector is the old one or the new one: a small file that is written anew is
                    # torn behind its former end alone.
                    size = max(size, min(len(data), SECTOR_BYTES))
                written = written[:size]
            if len(data) < position:
                data.extend(bytes(position - len(data)))
            data[position : position + len(written)] = written
        return data


def _truncate(data: bytearray, size: int) -> None:
    if size <= len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))


class _Directory:
    """Names now, names on the platter, and each state between the two."""

    __slots__ = ("durable", "entries", "history")

    def __init__(self) -> None:
        self.entries: dict[str, _Inode | _Directory] = {}
        self.durable: dict[str, _Inode | _Directory] = {}
        self.history: list[dict[str, _Inode | _Directory]] = []

    def changed(self) -> None:
        self.history.append(dict(self.entries))

    def sync(self) -> None:
        self.durable = dict(self.entries)
        self.history.clear()

    def survive(self, keep: Keep, seen: dict[int, "_Inode | _Directory"]) -> "_Directory":
        """What a restart finds; `seen`: by identity, what was already carried over."""
        if isinstance(keep, str):
            return self._copy(seen)
        names = self.durable if keep is None else keep.choice([self.durable, *self.history])
        found = _Directory()
        for name, entry in names.items():
            if isinstance(entry, _Directory):
                found.entries[name] = entry.survive(keep, seen)
            else:
                found.entries[name] = _carried(entry, keep, seen)
        found.durable = dict(found.entries)
        return found

    def _copy(self, seen: dict[int, "_Inode | _Directory"]) -> "_Directory":
        """As it is: names now, on the platter, and between the two."""
        found = _Directory()
        seen[id(self)] = found

        def carry(names: dict[str, _Inode | _Directory]) -> dict[str, _Inode | _Directory]:
            return {name: _carried(entry, KEEP_ALL, seen) for name, entry in names.items()}

        found.entries = carry(self.entries)
        found.durable = carry(self.durable)
        found.history = [carry(names) for names in self.history]
        return found


def _carried(
    entry: _Inode | _Directory, keep: Keep, seen: dict[int, "_Inode | _Directory"]
) -> _Inode | _Directory:
    """What a restart finds of a file or a folder, once for all of its names."""
    if id(entry) not in seen:
        seen[id(entry)] = (
            entry.survive(keep) if isinstance(entry, _Inode) else entry.survive(keep, seen)
        )
    return seen[id(entry)]


class FakeFile:
    """An open file of `FakeFilesystem`; stays readable after unlink, as on Linux."""

    def __init__(
        self, filesystem: "FakeFilesystem", path: str, inode: _Inode, readonly: bool
    ) -> None:
        self.path = path
        self.is_short = False
        self._filesystem = filesystem
        self._inode = inode
        self._readonly = readonly
        self.closed = False
        filesystem.descriptors += 1

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int:
        return -1

    def _check(self) -> None:
        if self.closed:
            raise AssertionError(f"{self.path} is used after close")

    def write_at(self, data: Buffer | Sequence[Buffer], position: int) -> None:
        self._check()
        assert not self._readonly, f"{self.path} was opened for reading"
        if isinstance(data, (bytes, bytearray, memoryview)):
            whole = bytes(data)
        else:
            whole = b"".join(bytes(piece) for piece in data)
        try:
            self._filesystem.before("write", self.path)
        except DiskError:
            if self._filesystem.tear_failed_writes:
                self._inode.write(whole[: len(whole) // 2], position)
            raise
        self._inode.write(whole, position)
        self._inode.mtime_ms = self._filesystem.now_ms()
        self._filesystem.after("write", self.path)

    def read_at(self, size: int, position: int) -> bytes:
        self._check()
        self._filesystem.before("read", self.path)
        self._filesystem.reads += 1
        return bytes(memoryview(self._inode.data)[position : position + size])

    def read_cached(self, size: int, position: int) -> bytes | None:
        if self._filesystem.is_cold(self.path):
            return None
        return self.read_at(size, position)

    def is_cached(self, position: int, length: int) -> bool:
        self._check()
        return not self._filesystem.is_cold(self.path)

    def warm(self, position: int, length: int) -> None:
        self.read_at(length, position)

    def read_into(self, buffer: memoryview, position: int) -> int:
        data = self.read_at(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def truncate(self, size: int) -> None:
        self._check()
        self._filesystem.before("truncate", self.path)
        self._inode.truncate(size)
        self._filesystem.after("truncate", self.path)

    def size(self) -> int:
        self._check()
        return len(self._inode.data)

    def stamp(self) -> tuple[int, int]:
        self._check()
        return len(self._inode.data), self._inode.mtime_ms * 1_000_000

    def sync(self) -> None:
        self._check()
        try:
            self._filesystem.before("sync", self.path)
        except SyncFailedError:
            if self._filesystem.forgets_failed_writes:
                self._inode.pending.clear()
            raise
        self._inode.sync()
        self._filesystem.after("sync", self.path)

    def write_back(self, position: int, size: int) -> bool:
        self._check()
        return False

    def allocate(self, size: int) -> None:
        self._check()
        self._filesystem.before("allocate", self.path)
        if size > len(self._inode.data):
            self._inode.truncate(size)
        self._filesystem.after("allocate", self.path)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._filesystem.descriptors -= 1


class FakeLock:
    def __init__(self, filesystem: "FakeFilesystem", paths: tuple[str, ...]) -> None:
        self._filesystem = filesystem
        self._paths = paths

    def release(self) -> None:
        self._filesystem.locks.difference_update(self._paths)


class FakeFilesystem:
    """`storage.environment.filesystem.Filesystem` in memory, with crashes and faults."""

    def __init__(self, clock: ManualClock | None = None, *, open_files_max: int = 64) -> None:
        self.clock = clock
        self.open_files = SecondChancePool("open segment files", open_files_max)
        self.loaded_indexes = SecondChancePool("loaded index bytes", 1 << 20)
        self.root = _Directory()
        self.locks: set[str] = set()
        # What `identity` says of a path; by default the path, so that a copy is one that is set.
        self.identities: dict[str, str] = {}
        self._numbered = 0
        self.events: list[Event] = []
        self.observer: Callable[[Event], None] | None = None
        self.stop_after: int | None = None
        self.tear_failed_writes = False
        # A failed sync leaves pages that pass for written, as Linux does: the next one succeeds.
        self.forgets_failed_writes = False
        self.descriptors = 0
        self.opens = 0
        self.reads = 0
        self.free = 1 << 40
        self.free_files: int | None = None
        # Whether a file's pages are not in memory.
        self.is_cold: Callable[[str], bool] = lambda _path: False
        self._count = 0
        self._faults: list[_Fault] = []

    @property
    def open_count(self) -> int:
        return self.descriptors

    def now_ms(self) -> int:
        return self.clock.now_ms() if self.clock is not None else 0

    # -- faults, crashes ---------------------------------------------------------------------

    def fail(
        self, kind: str, code: int = errno.EIO, *, path: str = "", skip: int = 0, times: int = 1
    ) -> None:
        """Let calls of `kind` whose path contains `path` raise, after `skip` of them, so often.

        Kinds: write, read, truncate, sync, allocate, open, "open spare", create, rename, unlink,
        mkdir, rmtree, rmdir, list, sync_directory.
        """
        self._faults.append(_Fault(kind, code, path, skip, times))

    def heal(self) -> None:
        """Forget the faults that are still to come."""
        self._faults.clear()

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[None]:
        """While it is entered no call fails, and no change counts: a test looks at the disk."""
        faults, self._faults = self._faults, []
        stop_after, self.stop_after = self.stop_after, None
        count = self._count
        try:
            yield
        finally:
            self._faults, self.stop_after, self._count = faults, stop_after, count

    @property
    def is_sound(self) -> bool:
        """No call is to fail, and no change is to be the last."""
        return not self._faults and self.stop_after is None

    def before(self, kind: str, path: str) -> None:
        if self.stop_after is not None and self._count >= self.stop_after:
            raise PowerCut(f"stopped before {kind} {path}")
        for fault in self._faults:
            if fault.kind == kind and fault.path in path:
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                if fault.times <= 0:
                    self._faults.remove(fault)
                failure = SyncFailedError if kind in ("sync", "sync_directory") else DiskError
                raise failure(
                    f"injected {kind} error ({os.strerror(fault.code)})", path, fault.code
                )

    def after(self, kind: str, path: str) -> None:
        self._count += 1
        event = Event(self._count, kind, path)
        if self.observer is not None:
            self.observer(event)
        else:
            self.events.append(event)

    @property
    def changes(self) -> int:
        """Changes so far: what `stop_after` counts."""
        return self._count

    def after_crash(self, keep: Keep = None) -> "FakeFilesystem":
        """A new disk with what this one would hold after a crash now; this one goes on."""
        found = FakeFilesystem(self.clock)
        found.root = self.root.survive(keep, {})
        found._numbered = self._numbered
        found.identities = dict(self.identities)
        return found

    def crash(self, keep: Keep = None) -> None:
        """Lose what was not synced, drop locks, faults and the stop."""
        self.root = self.root.survive(keep, {})
        self.locks.clear()
        self._faults.clear()
        self.stop_after = None

    # -- paths -------------------------------------------------------------------------------

    def _missing(self, path: str, doing: str) -> DiskError:
        return DiskError(f"cannot {doing} (No such file or directory)", path, errno.ENOENT)

    def _find(self, path: str) -> "_Inode | _Directory | None":
        found: _Inode | _Directory = self.root
        for name in path.split("/"):
            if name in ("", "."):
                continue
            if not isinstance(found, _Directory) or name not in found.entries:
                return None
            found = found.entries[name]
        return found

    def _parent(self, path: str, doing: str) -> tuple[_Directory, str]:
        parent = self._find(os.path.dirname(path))
        if not isinstance(parent, _Directory):
            raise self._missing(path, doing)
        return parent, os.path.basename(path)

    def _file(self, path: str, doing: str) -> _Inode:
        found = self._find(path)
        if not isinstance(found, _Inode):
            raise self._missing(path, doing)
        return found

    # -- Filesystem --------------------------------------------------------------------------

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> FakeFile:
        if spare:
            self.before("open spare", path)
        self.before("open", path)
        self.opens += 1
        parent, name = self._parent(path, "open")
        entry = parent.entries.get(name)
        if isinstance(entry, _Directory):
            raise DiskError("cannot open (Is a directory)", path, errno.EISDIR)
        if entry is None:
            if not create:
                raise self._missing(path, "open")
            self.before("create", path)
            entry = _Inode()
            entry.mtime_ms = self.now_ms()
            parent.entries[name] = entry
            parent.changed()
            self.after("create", path)
        return FakeFile(self, path, entry, readonly)

    def rename(self, source: str, target: str) -> None:
        self.before("rename", source)
        from_parent, from_name = self._parent(source, "rename")
        to_parent, to_name = self._parent(target, "rename")
        if from_name not in from_parent.entries:
            raise self._missing(source, "rename")
        to_parent.entries[to_name] = from_parent.entries.pop(from_name)
        from_parent.changed()
        if to_parent is not from_parent:
            to_parent.changed()
        self.after("rename", source)

    def link(self, source: str, target: str) -> None:
        self.before("link", target)
        inode = self._file(source, "link")
        parent, name = self._parent(target, "link")
        if name in parent.entries:
            raise DiskError("cannot link (File exists)", target, errno.EEXIST)
        parent.entries[name] = inode
        parent.changed()
        self.after("link", target)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        self.before("unlink", path)
        parent = self._find(os.path.dirname(path))
        name = os.path.basename(path)
        if not isinstance(parent, _Directory) or name not in parent.entries:
            if missing_ok:
                return
            raise self._missing(path, "unlink")
        if isinstance(parent.entries[name], _Directory):
            raise DiskError("cannot unlink (Is a directory)", path, errno.EISDIR)
        del parent.entries[name]
        parent.changed()
        self.after("unlink", path)

    def mkdir(self, path: str) -> None:
        self.before("mkdir", path)
        found = self.root
        made = False
        for name in path.split("/"):
            if name in ("", "."):
                continue
            entry = found.entries.get(name)
            if entry is None:
                entry = _Directory()
                found.entries[name] = entry
                found.changed()
                made = True
            if not isinstance(entry, _Directory):
                raise DiskError("cannot create folder (File exists)", path, errno.EEXIST)
            found = entry
        if made:
            self.after("mkdir", path)

    def rmtree(self, path: str) -> None:
        self.before("rmtree", path)
        parent = self._find(os.path.dirname(path))
        name = os.path.basename(path)
        if isinstance(parent, _Directory) and name in parent.entries:
            del parent.entries[name]
            parent.changed()
            self.after("rmtree", path)

    def remove_empty_directory(self, path: str) -> bool:
        self.before("rmdir", path)
        parent = self._find(os.path.dirname(path))
        name = os.path.basename(path)
        if not isinstance(parent, _Directory) or name not in parent.entries:
            return True
        entry = parent.entries[name]
        if not isinstance(entry, _Directory):
            raise DiskError("cannot remove folder (Not a directory)", path, errno.ENOTDIR)
        if entry.entries:
            return False
        del parent.entries[name]
        parent.changed()
        self.after("rmdir", path)
        return True

    def list_directory(self, path: str) -> list[DirEntry]:
        self.before("list", path)
        found = self._find(path)
        if not isinstance(found, _Directory):
            raise self._missing(path, "list")
        return [
            DirEntry(name, True, 0)
            if isinstance(entry, _Directory)
            else DirEntry(name, False, len(entry.data))
            for name, entry in found.entries.items()
        ]

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def file_size(self, path: str) -> int:
        return len(self._file(path, "stat").data)

    def sync_directory(self, path: str) -> None:
        self.before("sync_directory", path)
        found = self._find(path)
        if not isinstance(found, _Directory):
            raise self._missing(path, "sync folder")
        found.sync()
        self.after("sync_directory", path)

    def read_bytes(self, path: str) -> bytes:
        self.before("read", path)
        return bytes(self._file(path, "read").data)

    def replace_bytes(self, path: str, data: Buffer) -> None:
        file = self.open(path + ".tmp", create=True)
        try:
            file.truncate(0)
            file.write_at(data, 0)
            file.sync()
        except DiskError:
            with contextlib.suppress(DiskError):
                self.unlink(path + ".tmp", missing_ok=True)
            raise
        file.close()
        self.rename(path + ".tmp", path)
        self.sync_directory(os.path.dirname(path))

    def lock(self, path: str, *, with_folder: bool = False) -> FakeLock:
        held = path in self.locks and self._find(path) is not None
        paths = (path, os.path.dirname(path)) if with_folder else (path,)
        if held or not self.locks.isdisjoint(paths[1:]):
            raise LockedDirectoryError(f"another process holds {path}")
        self.open(path, create=True).close()
        self.locks.update(paths)
        return FakeLock(self, paths)

    def mtime_ms(self, path: str) -> int:
        found = self._find(path)
        if found is None:
            raise self._missing(path, "stat")
        return found.mtime_ms if isinstance(found, _Inode) else 0

    def identity(self, path: str) -> str:
        found = self._find(path)
        if found is None:
            raise self._missing(path, "stat")
        if not isinstance(found, _Inode):
            return self.identities.get(path, path)
        if not found.number:
            self._numbered += 1
            found.number = self._numbered
        return str(found.number)

    def volume(self, path: str) -> Volume:
        return Volume(2 * self.free, self.free, self.free_files)

    # -- for tests: the disk from outside ----------------------------------------------------

    def peek(self, path: str) -> bytes:
        """Contents, without passing faults."""
        return bytes(self._file(path, "peek").data)

    def poke(self, path: str, data: bytes) -> None:
        """Set contents durably, as damage or a foreign tool would; creates a missing file."""
        parent, name = self._parent(path, "poke")
        inode = _Inode()
        inode.data = bytearray(data)
        inode.durable = bytes(data)
        parent.entries[name] = inode
        parent.durable[name] = inode

    def remove(self, path: str) -> None:
        """Take a file away durably."""
        parent, name = self._parent(path, "remove")
        parent.entries.pop(name, None)
        parent.durable.pop(name, None)
