"""The note of a member: written whole, read back, and none where it is damaged."""

import errno
import os
import shutil
from dataclasses import replace
from os.path import join
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.checkpoints import member_note
from storage.checkpoints.log_directory import LOCK_FILE
from storage.checkpoints.member_note import (
    MEMBER_FILE,
    MemberNote,
    decode_member_note,
    encode_member_note,
    member_notes,
    read_member_note,
    write_member_note,
)
from storage.environment.local_filesystem import LocalFilesystem
from storage.errors import DiskError
from tests.fakes.filesystem import FakeFilesystem

NOTE = MemberNote("b6b0-1", 7, 12)


@given(
    st.builds(
        MemberNote,
        st.text(max_size=9),
        st.integers(-1, 1 << 63),
        st.integers(0),
        st.booleans(),
        st.lists(st.integers(0)).map(tuple),
        st.text(max_size=9),
        st.text(max_size=9),
        st.integers(0),
    )
)
def test_a_note_comes_back_as_it_was(note: MemberNote) -> None:
    assert decode_member_note(encode_member_note(note)) == note


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"7", b"{}", b'{"v":2}', b'{"v":1,"boot":"x"}', b"\xff"]
)
def test_a_damaged_one_is_none(data: bytes) -> None:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.replace_bytes(f"/d/{MEMBER_FILE}", data)
    assert read_member_note(filesystem, "/d") is None


def test_it_is_on_disk_once_written() -> None:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.sync_directory("/")
    assert read_member_note(filesystem, "/d") is None
    write_member_note(filesystem, "/d", NOTE)
    filesystem.crash()
    assert read_member_note(filesystem, "/d") == NOTE


def test_what_was_put_back_into_the_directory_is_not_in_its_place(tmp_path: Path) -> None:
    """By hand, or by a program that replaces what differs: the note is another file than it was."""
    filesystem, here = LocalFilesystem(), str(tmp_path / "here")
    filesystem.mkdir(here)
    filesystem.lock(join(here, LOCK_FILE)).release()

    def is_in_its_place() -> bool:
        note = read_member_note(filesystem, here)
        assert note is not None
        return member_note.is_in_its_place(filesystem, here, note)

    note = replace(NOTE, place=filesystem.identity(here))
    write_member_note(filesystem, here, note)
    assert is_in_its_place()
    copied = shutil.copy2(join(here, MEMBER_FILE), tmp_path)
    write_member_note(filesystem, here, note)
    assert is_in_its_place()
    os.replace(copied, join(here, MEMBER_FILE))
    assert not is_in_its_place()
    write_member_note(filesystem, here, note)
    assert is_in_its_place()
    shutil.copy2(join(here, LOCK_FILE), tmp_path / "lock")
    os.replace(tmp_path / "lock", join(here, LOCK_FILE))
    assert not is_in_its_place()
    earlier = encode_member_note(note)
    filesystem.replace_bytes(join(here, MEMBER_FILE), earlier)
    assert is_in_its_place(), "an earlier release has noted none"


def test_an_older_copy_that_is_written_over_a_note_is_not_in_its_place(tmp_path: Path) -> None:
    """As by `cp -a`: into the same file, whose inode may be the one that the copy names."""
    filesystem, here = LocalFilesystem(), str(tmp_path)
    filesystem.lock(join(here, LOCK_FILE)).release()
    note = replace(NOTE, place=filesystem.identity(here))
    for later in range(1, 9):
        write_member_note(filesystem, here, note)
        copied = filesystem.read_bytes(join(here, MEMBER_FILE))
        for _ in range(later):
            write_member_note(filesystem, here, note)
        (tmp_path / MEMBER_FILE).write_bytes(copied)
        found = read_member_note(filesystem, here)
        assert found == note
        assert not member_note.is_in_its_place(filesystem, here, found)


def test_a_note_of_a_release_that_knew_no_generations_is_in_its_place(tmp_path: Path) -> None:
    filesystem, here = LocalFilesystem(), str(tmp_path)
    filesystem.lock(join(here, LOCK_FILE)).release()
    path = tmp_path / MEMBER_FILE
    path.touch()
    place = filesystem.identity(here)
    inodes = [
        ":".join(place.split(":")[:1]) + f":{one.stat().st_ino}"
        for one in (path, tmp_path / LOCK_FILE)
    ]
    note = replace(NOTE, place=place, files=" ".join(inodes))
    path.write_bytes(encode_member_note(note))
    assert member_note.is_in_its_place(filesystem, here, note)


def test_a_note_without_room_leaves_the_one_before() -> None:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    write_member_note(filesystem, "/d", NOTE)
    filesystem.fail("write", errno.ENOSPC)
    with pytest.raises(DiskError):
        write_member_note(filesystem, "/d", replace(NOTE, revision=13))
    assert read_member_note(filesystem, "/d") == NOTE
    assert not filesystem.exists(f"/d/{MEMBER_FILE}.tmp")


def test_notes_are_those_of_each_directory_that_has_one() -> None:
    filesystem = FakeFilesystem()
    for number, directory in enumerate(("/a", "/b", "/c")):
        filesystem.mkdir(directory)
        if number:
            write_member_note(filesystem, directory, MemberNote("", 1, 10 * number))
    found = member_notes(filesystem, ["/a", "/b", "/c"])
    assert {path: note.revision for path, note in found.items()} == {"/b": 10, "/c": 20}


def test_a_note_of_an_earlier_release_names_no_brokers() -> None:
    assert decode_member_note(b'{"v":1,"boot":"","epoch":1,"revision":2,"failed":false}') == (
        MemberNote("", 1, 2)
    )
