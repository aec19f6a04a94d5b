"""A chunk that is read where it lies, and what happens when that place changes."""

import json
import os
from pathlib import Path
from uuid import UUID

import pytest

from protocol.records.batch import crc32c
from storage.environment.local_filesystem import LocalFilesystem
from storage.errors import DiskError
from tiered.cache.cached_chunk import CachedChunk
from tiered.format.chunk_file import ChunkFile, ChunkKey, chunk_path, open_checked, scan_folder
from tiered.format.chunk_reference import Reference, ReferencedChunk, open_reference

CHUNK = b"the chunk"
OBJECT = b"before " + CHUNK + b" after"
KEY = ChunkKey(UUID("ab" + 30 * "0"), 3)
NAME = ChunkFile(KEY, len(CHUNK), crc32c(CHUNK), is_reference=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An object, and a reference to the chunk in it."""
    target = tmp_path / "object.log"
    target.write_bytes(OBJECT)
    found = target.stat()
    path = Path(chunk_path(str(tmp_path), NAME))
    path.parent.mkdir()
    path.write_bytes(Reference(str(target), 7, found.st_size, found.st_mtime_ns).encode())
    return path


def flip(path: Path, position: int) -> None:
    """Change one byte, as a broken disk or a careless hand would."""
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_it_is_read_from_the_object(place: Path) -> None:
    chunk = open_reference(LocalFilesystem(), str(place), len(CHUNK))
    assert chunk.read_at(3, 4) == b"chu"
    assert chunk.read_at(99, 4) == b"chunk"
    assert chunk.crc() == crc32c(CHUNK)
    slice_ = chunk.slice(4, 5)
    assert os.pread(slice_.file.fileno(), slice_.length, slice_.position) == b"chunk"


def test_a_removed_object_is_readable_to_who_holds_it(place: Path, tmp_path: Path) -> None:
    chunk = open_reference(LocalFilesystem(), str(place), len(CHUNK))
    (tmp_path / "object.log").unlink()
    assert chunk.is_current()
    assert chunk.read_at(9, 0) == CHUNK
    with pytest.raises(DiskError):
        open_reference(LocalFilesystem(), str(place), len(CHUNK))


def test_a_changed_object_is_not_the_one_that_was_compared(place: Path, tmp_path: Path) -> None:
    """Whoever has it open notices as well, before the next byte is sent."""
    cached = CachedChunk(LocalFilesystem(), str(place), NAME)
    assert isinstance(cached.file, ReferencedChunk)
    flip(tmp_path / "object.log", 9)
    with pytest.raises(DiskError):
        _ = cached.file
    cached.release()
    with pytest.raises(DiskError):
        _ = cached.file


def test_after_a_restart_it_is_compared_again(place: Path, tmp_path: Path) -> None:
    """Its bytes, not only size and time, which somebody may have set back."""
    folder = str(place.parent)
    assert scan_folder(LocalFilesystem(), folder, "mine") == [NAME]
    assert open_checked(LocalFilesystem(), str(place), NAME) is not None
    target = tmp_path / "object.log"
    before = target.stat()
    flip(target, 9)
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert open_checked(LocalFilesystem(), str(place), NAME) is None
    assert not place.exists()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"path": 1}', "\xff", "null"])
def test_what_is_no_reference_is_dropped(place: Path, text: str) -> None:
    place.write_text(text, encoding="latin-1")
    assert open_checked(LocalFilesystem(), str(place), NAME) is None


def test_its_content_is_plain_json(place: Path, tmp_path: Path) -> None:
    fields = json.loads(place.read_text())
    assert fields["path"] == str(tmp_path / "object.log")
    assert fields["position"] == 7
