"""How the last run ended: only what is certain counts as nothing lost."""

from dataclasses import replace

import pytest

from broker.controller.images.broker_records import LastRun
from broker.membership.last_run import BOOT_ID_FILE, boot_id, last_run, past_epochs
from storage.checkpoints.clean_shutdown import write_clean_shutdown
from storage.checkpoints.member_note import MEMBER_FILE, MemberNote, write_member_note
from tests.fakes.filesystem import FakeFilesystem

EPOCH = 7
DIRECTORIES = ("/a", "/b")


def machine(boot: str = "one") -> FakeFilesystem:
    filesystem = FakeFilesystem()
    for directory in DIRECTORIES:
        filesystem.mkdir(directory)
    if boot:
        filesystem.mkdir("/proc/sys/kernel/random")
        filesystem.replace_bytes(BOOT_ID_FILE, boot.encode() + b"\n")
    return filesystem


NOTE = MemberNote("one", EPOCH, 9)


def note(filesystem: FakeFilesystem, written: MemberNote = NOTE) -> None:
    for directory in DIRECTORIES:
        write_member_note(filesystem, directory, written)


def ended(filesystem: FakeFilesystem) -> LastRun:
    return last_run(filesystem, DIRECTORIES, EPOCH)


def test_markers_of_this_epoch_are_a_clean_end_and_stay() -> None:
    filesystem = machine()
    for directory in DIRECTORIES:
        write_clean_shutdown(filesystem, directory, EPOCH)
    assert ended(filesystem) is LastRun.CLEAN
    assert ended(filesystem) is LastRun.CLEAN


def test_one_directory_without_a_marker_is_no_clean_end() -> None:
    filesystem = machine()
    write_clean_shutdown(filesystem, "/a", EPOCH)
    assert ended(filesystem) is LastRun.UNKNOWN


def test_markers_of_another_life_are_no_clean_end() -> None:
    """A directory that was set aside cleanly, and brought back after a later life."""
    filesystem = machine()
    for directory in DIRECTORIES:
        write_clean_shutdown(filesystem, directory, EPOCH - 1)
    assert ended(filesystem) is LastRun.UNKNOWN


def test_a_kill_while_the_machine_runs_is_known() -> None:
    filesystem = machine()
    note(filesystem)
    assert ended(filesystem) is LastRun.SAME_BOOT


@pytest.mark.parametrize(
    "written",
    [
        replace(NOTE, boot="another"),
        replace(NOTE, boot=""),
        replace(NOTE, epoch=EPOCH + 1),
        replace(NOTE, failed=True),
    ],
)
def test_what_may_have_lost_something_is_unknown(written: MemberNote) -> None:
    """Another boot or machine, another life, a disk that had refused."""
    filesystem = machine()
    note(filesystem, written)
    assert ended(filesystem) is LastRun.UNKNOWN


def test_a_copy_of_a_directory_may_be_older_than_what_it_replaces() -> None:
    filesystem = machine()
    note(filesystem, replace(NOTE, place="/a"))
    assert ended(filesystem) is LastRun.UNKNOWN
    for directory in DIRECTORIES:
        write_member_note(filesystem, directory, replace(NOTE, place=directory))
    assert ended(filesystem) is LastRun.SAME_BOOT


def test_lives_on_these_very_directories_are_over() -> None:
    """They are locked; what has a copy of them, or has them on another machine, may live."""
    filesystem = machine()
    assert past_epochs(filesystem, DIRECTORIES) == set()
    write_member_note(filesystem, "/a", replace(NOTE, place="/a", failed=True))
    assert past_epochs(filesystem, DIRECTORIES) == {EPOCH}
    filesystem.identities["/a"] = "a copy"
    assert past_epochs(filesystem, DIRECTORIES) == set()
    write_member_note(filesystem, "/a", replace(NOTE, place="a copy", boot="another"))
    assert past_epochs(filesystem, DIRECTORIES) == set()


def test_a_life_that_has_ended_cleanly_is_over_wherever_its_directory_is() -> None:
    filesystem = machine()
    write_clean_shutdown(filesystem, "/b", EPOCH)
    assert past_epochs(filesystem, DIRECTORIES) == {EPOCH}


def test_one_directory_without_a_note_is_unknown() -> None:
    filesystem = machine()
    note(filesystem)
    filesystem.unlink(f"/b/{MEMBER_FILE}")
    assert ended(filesystem) is LastRun.UNKNOWN


def test_without_a_boot_id_nothing_is_the_same_boot() -> None:
    filesystem = machine(boot="")
    note(filesystem, replace(NOTE, boot=""))
    assert boot_id(filesystem) == ""
    assert ended(filesystem) is LastRun.UNKNOWN


def test_nothing_is_known_of_no_directories() -> None:
    assert last_run(machine(), [], EPOCH) is LastRun.UNKNOWN
