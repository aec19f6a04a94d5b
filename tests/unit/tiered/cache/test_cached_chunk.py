"""A chunk's descriptor is one of a bounded pool."""

from uuid import UUID

import pytest

from storage.errors import DiskError
from tests.fakes.filesystem import FakeFilesystem
from tiered.cache.cached_chunk import CachedChunk
from tiered.format.chunk_file import ChunkFile, ChunkKey


def _chunk(filesystem: FakeFilesystem, number: int) -> CachedChunk:
    path = f"/{number}"
    filesystem.open(path, create=True).write_at(b"abc", 0)
    return CachedChunk(filesystem, path, ChunkFile(ChunkKey(UUID(int=1), number), 3, 0))


def test_files_are_opened_when_used_and_closed_by_the_pool() -> None:
    filesystem = FakeFilesystem(open_files_max=2)
    chunks = [_chunk(filesystem, number) for number in range(5)]
    assert filesystem.descriptors == 0
    held = chunks[0].file
    for chunk in chunks:
        assert chunk.file.read_at(3, 0) == b"abc"
    assert filesystem.descriptors == 3, "two of the pool, and the one that is held"
    assert held.read_at(3, 0) == b"abc"
    assert chunks[0].file.read_at(3, 0) == b"abc"


def test_an_open_file_is_used_again() -> None:
    filesystem = FakeFilesystem()
    chunk = _chunk(filesystem, 0)
    assert chunk.file is chunk.file
    chunk.used = False
    assert chunk.file.read_at(9, 0) == b"abc"
    assert chunk.used


def test_a_file_that_is_gone_is_an_error() -> None:
    filesystem = FakeFilesystem()
    chunk = _chunk(filesystem, 0)
    filesystem.unlink("/0")
    with pytest.raises(DiskError):
        _ = chunk.file
