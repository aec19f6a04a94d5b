"""The note of a single node's store: written whole, read back, none where it is damaged."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.checkpoints.store_note import (
    STORE_FILE,
    StoreNote,
    decode_store_note,
    encode_store_note,
    read_store_note,
    remove_store_note,
    write_store_note,
)
from tests.fakes.filesystem import FakeFilesystem

NOTE = StoreNote(UUID(int=5), 12)


@given(st.builds(StoreNote, st.uuids(), st.integers(0, 1 << 63)))
def test_a_note_comes_back_as_it_was(note: StoreNote) -> None:
    assert decode_store_note(encode_store_note(note)) == note


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"7", b"{}", b'{"v":2}', b'{"v":1,"store":"x","revision":1}', b"\xff"]
)
def test_a_damaged_one_is_none(data: bytes) -> None:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.replace_bytes(f"/d/{STORE_FILE}", data)
    assert read_store_note(filesystem, "/d") is None


def test_it_is_on_disk_once_written_and_gone_once_removed() -> None:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.sync_directory("/")
    assert read_store_note(filesystem, "/d") is None
    write_store_note(filesystem, "/d", NOTE)
    filesystem.crash()
    assert read_store_note(filesystem, "/d") == NOTE
    remove_store_note(filesystem, "/d")
    remove_store_note(filesystem, "/d")
    assert read_store_note(filesystem, "/d") is None
