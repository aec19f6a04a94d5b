"""The note of a directory that several brokers share."""

import pytest

from storage.checkpoints.brokers_note import (
    BROKERS_FILE,
    broker_folder,
    encode_brokers_note,
    read_brokers_note,
    write_brokers_note,
)
from storage.errors import CorruptFileError
from tests.fakes.filesystem import FakeFilesystem


@pytest.fixture
def disk() -> FakeFilesystem:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.sync_directory("/")
    return filesystem


def test_what_is_written_is_read_and_survives_a_power_cut(disk: FakeFilesystem) -> None:
    """In ascending order, whatever the order was."""
    assert read_brokers_note(disk, "/d") is None
    write_brokers_note(disk, "/d", [12, 3])
    disk.crash()
    assert read_brokers_note(disk, "/d") == (3, 12)
    assert disk.read_bytes(f"/d/{BROKERS_FILE}") == b'{"v":1,"node.ids":[3,12]}\n'


def test_folders_are_named_by_node_id() -> None:
    assert broker_folder(12) == "broker-12"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[1]",
        b"{}",
        b'{"v":2,"node.ids":[1]}',
        b'{"v":1,"node.ids":[]}',
        b'{"v":1,"node.ids":["1"]}',
        b'{"v":1,"node.ids":[-1]}',
        b'{"v":1,"node.ids":[true]}',
        b'{"v":1,"node.ids":7}',
        encode_brokers_note([1, 2])[:-4],
        b"\xff",
    ],
)
def test_a_note_that_cannot_be_read_is_no_missing_one(disk: FakeFilesystem, text: bytes) -> None:
    disk.replace_bytes(f"/d/{BROKERS_FILE}", text)
    with pytest.raises(CorruptFileError, match=BROKERS_FILE):
        read_brokers_note(disk, "/d")
