"""A note that is there, is not, is damaged, or that the disk does not give."""

import pytest
from typing_extensions import override

from storage.checkpoints.note_file import read_note
from storage.errors import DiskError
from tests.fakes.filesystem import FakeFilesystem


class Refusing(FakeFilesystem):
    """A disk that names files and reads none."""

    @override
    def read_bytes(self, path: str) -> bytes:
        raise DiskError("input/output error", path)


def decode(data: bytes) -> str | None:
    return data.decode() if data.isalpha() else None


def read(filesystem: FakeFilesystem, data: bytes | None) -> str | None:
    filesystem.mkdir("/d")
    if data is not None:
        filesystem.replace_bytes("/d/note", data)
    return read_note(filesystem, "/d/note", "a note", decode)


@pytest.mark.parametrize(
    ("data", "note", "logged"),
    [(b"ok", "ok", 0), (None, None, 0), (b"17", None, 1)],
)
def test_what_is_damaged_counts_as_none(
    caplog: pytest.LogCaptureFixture, data: bytes | None, note: str | None, logged: int
) -> None:
    assert read(FakeFilesystem(), data) == note
    assert [line.message for line in caplog.records] == [
        "a note does not parse file=/d/note"
    ] * logged


def test_so_does_what_the_disk_does_not_give(caplog: pytest.LogCaptureFixture) -> None:
    assert read(Refusing(), b"ok") is None
    (line,) = caplog.records
    assert line.message.startswith("a note cannot be read file=/d/note error=")
