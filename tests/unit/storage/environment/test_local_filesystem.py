"""The disk: one set of rules for the real one and the fake, and what only one of them does."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from native.modules import ROOT
from storage.environment.descriptors import DescriptorShares
from storage.environment.filesystem import DirEntry, Filesystem
from storage.environment.local_filesystem import LocalFile, LocalFilesystem, describe_missing
from storage.errors import DiskError, LockedDirectoryError
from tests.fakes.filesystem import KEEP_ALL, Event, FakeFilesystem, PowerCut

Disk = tuple[Filesystem, str]


@pytest.fixture(params=["local", "fake"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "local":
        return LocalFilesystem(), str(tmp_path)
    fake = FakeFilesystem()
    fake.mkdir("/disk")
    return fake, "/disk"


def test_what_is_written_is_read(disk: Disk) -> None:
    """At any position, from one buffer or several, with zeros in the gaps."""
    filesystem, root = disk
    file = filesystem.open(f"{root}/a", create=True)
    file.write_at(b"hello", 2)
    file.write_at([bytearray(b"one"), memoryview(b"two"), b""], 10)
    assert file.read_at(100, 0) == b"\0\0hello\0\0\0onetwo"
    assert file.read_at(3, 13) == b"two"
    assert file.read_at(10, 16) == b""
    assert file.size() == 16
    buffer = bytearray(20)
    assert file.read_into(memoryview(buffer), 10) == 6
    assert buffer[:6] == b"onetwo"


def test_writing_back_leaves_everything_as_it_is(disk: Disk) -> None:
    """It is no sync: nothing is promised, and the fake still forgets."""
    filesystem, root = disk
    file = filesystem.open(f"{root}/a", create=True)
    file.write_at(b"x" * 10_000, 0)
    assert file.write_back(0, 10_000) in (True, False)
    assert file.read_at(10_000, 0) == b"x" * 10_000
    if isinstance(filesystem, FakeFilesystem):
        assert not filesystem.after_crash().exists(f"{root}/a")


def test_truncate_and_allocate_change_the_size(disk: Disk) -> None:
    """Both fill with zeros; allocating never cuts."""
    filesystem, root = disk
    file = filesystem.open(f"{root}/a", create=True)
    file.write_at(b"12345", 0)
    file.truncate(3)
    assert file.read_at(9, 0) == b"123"
    file.allocate(6)
    assert file.read_at(9, 0) == b"123\0\0\0"
    file.allocate(2)
    assert file.size() == 6


def test_a_missing_file_is_a_disk_error(disk: Disk) -> None:
    """With the path and the errno of the operating system."""
    filesystem, root = disk
    for call in (filesystem.open, filesystem.unlink, filesystem.read_bytes, filesystem.file_size):
        with pytest.raises(DiskError) as caught:
            call(f"{root}/none")
        assert caught.value.errno == errno.ENOENT
        assert caught.value.path == f"{root}/none"
    with pytest.raises(DiskError):
        filesystem.rename(f"{root}/none", f"{root}/other")
    with pytest.raises(DiskError):
        filesystem.list_directory(f"{root}/none")
    filesystem.unlink(f"{root}/none", missing_ok=True)
    filesystem.rmtree(f"{root}/none")
    assert not filesystem.exists(f"{root}/none")


def test_an_open_file_survives_rename_and_unlink(disk: Disk) -> None:
    """A slice on its way to a socket stays readable."""
    filesystem, root = disk
    file = filesystem.open(f"{root}/a", create=True)
    file.write_at(b"data", 0)
    filesystem.rename(f"{root}/a", f"{root}/b")
    assert filesystem.read_bytes(f"{root}/b") == b"data"
    filesystem.unlink(f"{root}/b")
    assert file.read_at(4, 0) == b"data"
    file.close()
    file.close()


def test_a_link_takes_no_name_that_is_taken(disk: Disk) -> None:
    """Of several that want one name, exactly one gets it: that is what a link is used for."""
    filesystem, root = disk
    filesystem.replace_bytes(f"{root}/mine", b"mine")
    filesystem.replace_bytes(f"{root}/other", b"other")
    filesystem.link(f"{root}/mine", f"{root}/name")
    with pytest.raises(DiskError) as refused:
        filesystem.link(f"{root}/other", f"{root}/name")
    assert refused.value.errno == errno.EEXIST
    filesystem.unlink(f"{root}/mine")
    assert filesystem.read_bytes(f"{root}/name") == b"mine"


def test_folders_are_made_listed_and_removed(disk: Disk) -> None:
    """Parents come along; sizes are those of the files."""
    filesystem, root = disk
    filesystem.mkdir(f"{root}/x/y")
    filesystem.mkdir(f"{root}/x/y")
    filesystem.replace_bytes(f"{root}/x/f", b"1234")
    filesystem.sync_directory(f"{root}/x")
    assert sorted(filesystem.list_directory(f"{root}/x")) == [
        DirEntry("f", False, 4),
        DirEntry("y", True, 0),
    ]
    assert filesystem.file_size(f"{root}/x/f") == 4
    filesystem.rename(f"{root}/x", f"{root}/z")
    assert filesystem.exists(f"{root}/z/y")
    filesystem.rmtree(f"{root}/z")
    assert not filesystem.exists(f"{root}/z")


def test_only_an_empty_folder_is_removed(disk: Disk) -> None:
    """Asking and removing are one step, so a file made meanwhile keeps its folder."""
    filesystem, root = disk
    filesystem.mkdir(f"{root}/x/y")
    assert not filesystem.remove_empty_directory(f"{root}/x")
    assert filesystem.remove_empty_directory(f"{root}/x/y")
    assert filesystem.remove_empty_directory(f"{root}/x/y")
    assert filesystem.remove_empty_directory(f"{root}/x")
    assert not filesystem.exists(f"{root}/x")
    filesystem.replace_bytes(f"{root}/f", b"")
    with pytest.raises(DiskError):
        filesystem.remove_empty_directory(f"{root}/f")


def test_replace_leaves_no_temporary_file(disk: Disk) -> None:
    """The old content is replaced whole."""
    filesystem, root = disk
    filesystem.replace_bytes(f"{root}/f", b"a longer one")
    filesystem.replace_bytes(f"{root}/f", b"short")
    assert filesystem.read_bytes(f"{root}/f") == b"short"
    assert [entry.name for entry in filesystem.list_directory(root)] == ["f"]


def test_a_lock_is_taken_once(disk: Disk) -> None:
    """A second broker on the same directory is refused until the first lets go."""
    filesystem, root = disk
    lock = filesystem.lock(f"{root}/.lock")
    with pytest.raises(LockedDirectoryError):
        filesystem.lock(f"{root}/.lock")
    lock.release()
    lock.release()
    filesystem.lock(f"{root}/.lock").release()


def test_a_lock_with_its_folder_outlives_its_file(disk: Disk) -> None:
    """A file that was removed lets no second broker in. Another file beside it is another claim."""
    filesystem, root = disk
    lock = filesystem.lock(f"{root}/.lock", with_folder=True)
    other = filesystem.lock(f"{root}/other.lock")
    filesystem.unlink(f"{root}/.lock")
    with pytest.raises(LockedDirectoryError):
        filesystem.lock(f"{root}/.lock", with_folder=True)
    lock.release()
    filesystem.lock(f"{root}/.lock", with_folder=True).release()
    with pytest.raises(LockedDirectoryError):
        filesystem.lock(f"{root}/other.lock")
    other.release()


def test_a_file_syncs_and_has_a_time(disk: Disk) -> None:
    """Nothing to see without a crash, but it must not fail."""
    filesystem, root = disk
    file = filesystem.open(f"{root}/a", create=True)
    file.sync()
    assert filesystem.mtime_ms(f"{root}/a") >= 0
    assert filesystem.identity(root) != filesystem.identity(f"{root}/a")
    with pytest.raises(DiskError):
        filesystem.identity(f"{root}/none")
    volume = filesystem.volume(root)
    assert 0 < volume.free_bytes <= volume.total_bytes


def test_a_copy_of_a_directory_is_another_one(tmp_path: Path) -> None:
    filesystem = LocalFilesystem()
    filesystem.mkdir(f"{tmp_path}/a")
    identity = filesystem.identity(f"{tmp_path}/a")
    filesystem.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    assert filesystem.identity(f"{tmp_path}/b") == identity
    shutil.copytree(f"{tmp_path}/b", f"{tmp_path}/a")
    assert filesystem.identity(f"{tmp_path}/a") != identity


def test_a_file_is_no_other_that_had_its_inode(tmp_path: Path) -> None:
    """A disk gives the inode of a file that is gone to the next one."""
    filesystem, path = LocalFilesystem(), f"{tmp_path}/a"
    identities = set()
    for _ in range(20):
        filesystem.replace_bytes(path, b"")
        identities.add(filesystem.identity(path))
        filesystem.unlink(path)
    assert len(identities) == 20


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    """ENOSPC comes through; /dev/full is always full."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full on this system")
    with pytest.raises(DiskError) as caught:
        LocalFilesystem().open("/dev/full").write_at(b"x", 0)
    assert caught.value.errno == errno.ENOSPC


def test_dropping_the_last_reference_closes(tmp_path: Path) -> None:
    """No descriptor is left behind."""
    filesystem = LocalFilesystem()
    file = filesystem.open(str(tmp_path / "a"), create=True)
    fd = file.fileno()
    os.fstat(fd)
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operating system may take less than it was given."""
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data)[:3], at))
    file = LocalFilesystem().open(str(tmp_path / "a"), create=True)
    file.write_at(memoryview(b"0123456789"), 0)
    assert file.read_at(20, 0) == b"0123456789"


def test_a_readonly_file_is_not_written(tmp_path: Path) -> None:
    """The operating system refuses."""
    filesystem = LocalFilesystem()
    filesystem.replace_bytes(str(tmp_path / "a"), b"x")
    with pytest.raises(DiskError):
        filesystem.open(str(tmp_path / "a"), readonly=True).write_at(b"y", 0)


def test_linux_lacks_nothing() -> None:
    """Elsewhere there is a sentence for each thing."""
    if hasattr(os, "fdatasync"):
        assert describe_missing() == ()
    else:
        assert describe_missing()


def test_a_limit_of_files_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that gets there fails like a disk: nothing else would name the cause."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 20, resource.RLIM_INFINITY))
    assert describe_missing()[-1].startswith("files of 8388608 bytes at most (ulimit -f): ")


# -- the fake alone --------------------------------------------------------------------------


def _fresh() -> FakeFilesystem:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.sync_directory("/")
    return filesystem


def test_a_crash_takes_what_was_not_synced() -> None:
    """Contents by the file's sync, names by the folder's."""
    filesystem = _fresh()
    file = filesystem.open("/d/a", create=True)
    file.write_at(b"kept", 0)
    file.sync()
    filesystem.sync_directory("/d")
    file.write_at(b"lost", 4)
    filesystem.open("/d/b", create=True).sync()
    filesystem.crash()
    assert filesystem.peek("/d/a") == b"kept"
    assert not filesystem.exists("/d/b")


def test_a_rename_is_not_durable_before_the_folder_is() -> None:
    """The old name comes back, with the contents that were synced."""
    filesystem = _fresh()
    filesystem.replace_bytes("/d/a", b"1")
    filesystem.rename("/d/a", "/d/b")
    copy = filesystem.after_crash()
    assert copy.exists("/d/a")
    assert not copy.exists("/d/b")
    filesystem.sync_directory("/d")
    assert filesystem.after_crash().peek("/d/b") == b"1"


def test_a_killed_process_loses_nothing() -> None:
    """The page cache belongs to the machine."""
    filesystem = _fresh()
    filesystem.open("/d/a", create=True).write_at(b"x", 0)
    filesystem.crash(KEEP_ALL)
    assert filesystem.peek("/d/a") == b"x"


def test_a_power_cut_after_a_kill_loses_what_no_process_has_synced() -> None:
    """Pages outlive their process, not the machine; names as well."""
    filesystem = _fresh()
    filesystem.replace_bytes("/d/a", b"1")
    filesystem.open("/d/a").write_at(b"2", 0)
    filesystem.open("/d/b", create=True).sync()
    filesystem.rename("/d/a", "/d/c")
    filesystem.crash(KEEP_ALL)
    filesystem.crash(KEEP_ALL)
    assert filesystem.peek("/d/c") == b"2"
    filesystem.open("/d/c").write_at(b"3", 1)
    cut = filesystem.after_crash()
    assert cut.peek("/d/a") == b"1"
    assert not cut.exists("/d/b")
    assert not cut.exists("/d/c")
    some = [filesystem.after_crash(Random(seed)) for seed in range(100)]
    assert {b"1", b"2", b"23"} <= {
        disk.peek(path) for disk in some for path in ("/d/a", "/d/c") if disk.exists(path)
    }
    filesystem.open("/d/c").sync()
    filesystem.sync_directory("/d")
    assert filesystem.after_crash().peek("/d/c") == b"23"


def test_a_random_crash_keeps_a_part() -> None:
    """Over many crashes every kind of result comes up."""
    filesystem = _fresh()
    file = filesystem.open("/d/a", create=True)
    file.sync()
    filesystem.sync_directory("/d")
    file.write_at(b"11", 0)
    file.write_at(b"22", 2)
    found = {filesystem.after_crash(Random(seed)).peek("/d/a") for seed in range(200)}
    assert {b"", b"1", b"11", b"112", b"1122", b"\0\x0022"} <= found


@pytest.mark.parametrize("kind", ["write", "sync", "rename", "unlink", "open", "read", "truncate"])
def test_injected_errors_come_once(kind: str) -> None:
    """The call fails as the disk would, the next one works."""
    filesystem = _fresh()
    filesystem.replace_bytes("/d/a", b"1")
    file = filesystem.open("/d/a")
    calls: dict[str, Callable[[], object]] = {
        "write": lambda: file.write_at(b"2", 0),
        "sync": file.sync,
        "rename": lambda: filesystem.rename("/d/a", "/d/a"),
        "unlink": lambda: filesystem.unlink("/d/none", missing_ok=True),
        "open": lambda: filesystem.open("/d/a"),
        "read": lambda: file.read_at(1, 0),
        "truncate": lambda: file.truncate(1),
    }
    filesystem.fail(kind, errno.ENOSPC, path="/d", skip=1)
    calls[kind]()
    with pytest.raises(DiskError) as caught:
        calls[kind]()
    assert caught.value.errno == errno.ENOSPC
    calls[kind]()


def test_the_disk_stops_after_so_many_changes() -> None:
    """And stays stopped, until the crash that follows."""
    filesystem = _fresh()
    filesystem.stop_after = filesystem.changes + 1
    file = filesystem.open("/d/a", create=True)
    for _ in range(2):
        with pytest.raises(PowerCut):
            file.write_at(b"x", 0)
    filesystem.crash(KEEP_ALL)
    filesystem.open("/d/a").write_at(b"x", 0)


def test_every_change_is_told() -> None:
    """In order, so that a test can look at the disk after each."""
    filesystem = _fresh()
    seen: list[Event] = []
    filesystem.observer = seen.append
    filesystem.replace_bytes("/d/a", b"1")
    assert [event.kind for event in seen] == [
        "create", "truncate", "write", "sync", "rename", "sync_directory",
    ]  # fmt: skip


def few_files(pooled: int, files: int) -> LocalFilesystem:
    return LocalFilesystem(shares=DescriptorShares(1_000, files, pooled, 1))


class Holder:
    """What a segment is to the pool."""

    def __init__(self, filesystem: LocalFilesystem, path: str) -> None:
        self.used = False
        self.file: LocalFile | None = filesystem.open(path, create=True)
        filesystem.open_files.admit(self)

    def release(self) -> None:
        self.file = None


def test_files_that_readers_keep_open_are_bounded(tmp_path: Path) -> None:
    """What a slow reader holds is not in the pool any more; the broker's own files are opened."""
    filesystem = few_files(2, 4)
    holders = [Holder(filesystem, f"{tmp_path}/{name}") for name in "abcd"]
    kept = [filesystem.open(f"{tmp_path}/{name}") for name in "abcd"]
    assert len(filesystem.descriptors) >= 4
    with pytest.raises(DiskError) as refused:
        filesystem.open(f"{tmp_path}/a", spare=True)
    assert refused.value.is_descriptor_limit
    assert filesystem.open(f"{tmp_path}/e", create=True).size() == 0
    assert all(holder.file is None for holder in holders)
    kept.clear()
    assert filesystem.open(f"{tmp_path}/a", spare=True).size() == 0
    assert filesystem.descriptors == set()


@pytest.mark.parametrize("what", ["open", "sync_directory", "read_bytes", "list", "lock", "rmtree"])
def test_without_descriptors_the_pool_lets_go(tmp_path: Path, what: str) -> None:
    """Every call that needs one for a moment; all other descriptors of the process are in use."""
    filesystem = few_files(40, 1_000)
    (tmp_path / "folder").mkdir()
    for number in range(40):
        Holder(filesystem, f"{tmp_path}/{number}")
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: filesystem.open(f"{tmp_path}/0"),
        "sync_directory": lambda: filesystem.sync_directory(str(tmp_path)),
        "read_bytes": lambda: filesystem.read_bytes(f"{tmp_path}/0"),
        "list": lambda: filesystem.list_directory(str(tmp_path)),
        "lock": lambda: filesystem.lock(f"{tmp_path}/.lock"),
        "rmtree": lambda: filesystem.rmtree(f"{tmp_path}/folder"),
    }
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(0)
        calls[what]()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert filesystem.open_files.evicted > 0


def test_without_descriptors_and_without_a_pool_the_error_says_so(tmp_path: Path) -> None:
    filesystem = few_files(2, 1_000)
    filesystem.open(f"{tmp_path}/a", create=True).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        with pytest.raises(DiskError) as refused:
            filesystem.open(f"{tmp_path}/a")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert refused.value.is_descriptor_limit


def test_a_file_that_is_open_at_the_end_does_not_change_how_a_process_ends(tmp_path: Path) -> None:
    """Held by a cycle, it is let go when names of modules are gone already."""
    program = (
        "import sys\n"
        "from native.loader import prefer_compiled\n"
        "prefer_compiled()\n"
        "from storage.environment.local_filesystem import LocalFilesystem\n"
        "held = [LocalFilesystem().open(sys.argv[1], create=True)]\n"
        "held.append(held)\n"
        "sys.exit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"{tmp_path}/a"], cwd=ROOT, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, b"")


def test_a_descriptor_that_was_given_away_stays_open(tmp_path: Path) -> None:
    filesystem = LocalFilesystem()
    file = filesystem.open(f"{tmp_path}/a", create=True)
    fd = file.detach()
    file.close()
    del file
    other = LocalFile(f"{tmp_path}/a", fd)
    other.write_at(b"here", 0)
    assert other.read_at(10, 0) == b"here"
    assert not filesystem.descriptors
    other.close()
