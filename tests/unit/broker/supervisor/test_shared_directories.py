"""Directories that several brokers share: nothing in them is begun anew because it is missing."""

import errno

import pytest

from broker.controller.store.unix.store_host import STORE_FILE
from broker.runtime.startup_errors import StartupError
from broker.supervisor.shared_directories import SharedDirectories
from storage.checkpoints.brokers_note import BROKERS_FILE, read_brokers_note, write_brokers_note
from tests.fakes.filesystem import FakeFilesystem

STORE = "/a/varve-store"


def shared(disk: FakeFilesystem, *paths: str, store: str = STORE) -> SharedDirectories:
    return SharedDirectories(disk, paths or ("/a",), store)


def begin(disk: FakeFilesystem, node_ids: range, *paths: str) -> None:
    """A first start, and its end."""
    directories = shared(disk, *paths)
    directories.lock()
    directories.check(node_ids)
    disk.mkdir(STORE)
    disk.replace_bytes(f"{STORE}/{STORE_FILE}", b"store")
    directories.prepare(node_ids)
    directories.unlock()


def refused(disk: FakeFilesystem, node_ids: range, *paths: str) -> str:
    """What a start is refused with; nothing is changed by it."""
    directories = shared(disk, *paths)
    directories.lock()
    before = disk.changes
    with pytest.raises(StartupError) as caught:
        directories.check(node_ids)
    assert disk.changes == before
    directories.unlock()
    return str(caught.value)


@pytest.fixture
def disk() -> FakeFilesystem:
    return FakeFilesystem()


def test_a_first_start_makes_what_the_note_names(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3), "/a", "/b")
    disk.crash()
    for path in ("/a", "/b"):
        assert read_brokers_note(disk, path) == (1, 2)
        assert disk.exists(f"{path}/broker-1")
        assert disk.exists(f"{path}/broker-2")


def test_wherever_a_first_start_dies_the_next_goes_on(disk: FakeFilesystem) -> None:
    copies: list[FakeFilesystem] = []
    disk.observer = lambda _event: copies.append(disk.after_crash())
    begin(disk, range(1, 3), "/a", "/b")
    assert len(copies) > 8
    for copy in copies:
        begin(copy, range(1, 3), "/a", "/b")
        assert read_brokers_note(copy, "/b") == (1, 2)


def test_more_brokers_join(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3))
    begin(disk, range(1, 5))
    assert read_brokers_note(disk, "/a") == (1, 2, 3, 4)
    assert disk.exists("/a/broker-4")


def test_directories_in_another_order_are_told_where_the_store_is(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3), "/a", "/b")
    directories = shared(disk, "/b", "/a", store="/b/varve-store")
    directories.lock()
    before = disk.changes
    with pytest.raises(StartupError, match=r"is in /a/varve-store, .* name /a first in log\.dirs"):
        directories.check(range(1, 3))
    # Nor is an empty store served beside it, for a recovery that nothing calls for.
    with pytest.raises(StartupError, match="is in /a/varve-store"):
        directories.check_place_of_store()
    assert disk.changes == before


def test_fewer_brokers_are_refused(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 5))
    said = refused(disk, range(1, 3))
    assert "leaves out 3, 4" in said
    assert "--brokers 4" in said
    assert "remove-broker" in said


def test_other_node_ids_are_refused(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3))
    assert "node.id=1 and --brokers 2" in refused(disk, range(2, 4))


def test_a_broker_that_was_taken_out_of_the_note_may_be_left_out(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 4))
    write_brokers_note(disk, "/a", [1, 2])
    begin(disk, range(1, 3))
    assert read_brokers_note(disk, "/a") == (1, 2)


def test_a_missing_folder_is_not_begun_anew(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3), "/a", "/b")
    disk.rmtree("/b/broker-2")
    assert "/b/broker-2 is not there" in refused(disk, range(1, 3), "/a", "/b")
    # On the operator's word that it is lost.
    disk.mkdir("/b/broker-2")
    begin(disk, range(1, 3), "/a", "/b")


def test_a_new_disk_gets_a_folder_for_each(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3), "/a")
    begin(disk, range(1, 3), "/a", "/b")
    assert disk.exists("/b/broker-2")


def test_a_missing_store_is_not_begun_anew(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3))
    disk.rmtree(STORE)
    said = refused(disk, range(1, 3))
    assert STORE in said
    assert "recover-metadata" in said
    # An etcd was named instead: whether it is theirs is the brokers' to find out.
    directories = shared(disk, store="")
    directories.check(range(1, 3))


def test_a_missing_note_is_not_written_anew(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3))
    disk.replace_bytes("/a/broker-2/meta.properties", b"node.id=2\n")
    disk.unlink(f"/a/{BROKERS_FILE}")
    said = refused(disk, range(1, 3))
    assert "data of broker 2" in said
    assert '{"v":1,"node.ids":[1,2]}' in said


def test_a_note_that_does_not_parse_is_refused(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3))
    disk.replace_bytes(f"/a/{BROKERS_FILE}", b"{")
    assert "does not parse" in refused(disk, range(1, 3))


@pytest.mark.parametrize("name", ["meta.properties", "varve-metadata.sqlite", "t-0", "broker-7"])
def test_a_single_brokers_directory_stays_as_it_is(disk: FakeFilesystem, name: str) -> None:
    """Partition 7 of a topic called `broker` is no folder of a broker."""
    disk.mkdir("/a")
    if name.endswith(("-0", "-7")):
        disk.mkdir(f"/a/{name}")
        disk.replace_bytes(f"/a/{name}/00000000000000000000.log", b"")
    else:
        disk.replace_bytes(f"/a/{name}", b"x")
    said = refused(disk, range(1, 3))
    assert f"(it has {name})" in said
    assert "varve metadata copy" in said


def test_one_process_at_a_time(disk: FakeFilesystem) -> None:
    first, second = shared(disk, "/b", "/a"), shared(disk, "/c", "/a")
    first.lock()
    with pytest.raises(StartupError, match="/a"):
        second.lock()
    first.unlock()
    # The second had let go of what it had already.
    third = shared(disk, "/c", "/a")
    third.lock()


def test_a_disk_that_refuses_is_a_sentence(disk: FakeFilesystem) -> None:
    disk.fail("mkdir", errno.EROFS, path="/a")
    with pytest.raises(StartupError, match="/a"):
        shared(disk).lock()


def test_a_disk_that_fails_keeps_no_broker_from_its_others(disk: FakeFilesystem) -> None:
    """Each broker takes its folder there offline by itself, as a single one does."""
    begin(disk, range(1, 3), "/a", "/b")
    disk.fail("open", errno.EROFS, path="/b/.lock", times=9)
    begin(disk, range(1, 3), "/a", "/b")
    disk.heal()
    disk.fail("read", errno.EIO, path="/b/", times=9)
    begin(disk, range(1, 4), "/a", "/b")
    assert read_brokers_note(disk, "/a") == (1, 2, 3)
    disk.heal()
    # Its next start with all disks makes up for what it has missed.
    begin(disk, range(1, 4), "/a", "/b")
    assert read_brokers_note(disk, "/b") == (1, 2, 3)
    assert disk.exists("/b/broker-3")


def test_a_disk_that_fails_is_refused_where_the_store_lies(disk: FakeFilesystem) -> None:
    begin(disk, range(1, 3), "/a", "/b")
    disk.fail("open", errno.EROFS, path="/a/.lock")
    with pytest.raises(StartupError, match="/a"):
        shared(disk, "/a", "/b").lock()


def test_a_disk_that_fails_is_refused_at_a_first_start(disk: FakeFilesystem) -> None:
    """Without a note nobody knows whether brokers have run on it."""
    disk.fail("mkdir", errno.EROFS, path="/b", times=9)
    assert "/b" in refused(disk, range(1, 3), "/a", "/b")


def test_a_full_disk_is_no_failed_one(disk: FakeFilesystem) -> None:
    """Its directory would be taken for a new one by brokers, once there is room, without a note."""
    begin(disk, range(1, 3), "/a")
    disk.fail("mkdir", errno.ENOSPC, path="/b")
    with pytest.raises(StartupError, match="/b"):
        shared(disk, "/a", "/b").lock()
