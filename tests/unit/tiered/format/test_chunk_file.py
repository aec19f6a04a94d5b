"""Chunks as files: their names, and what is made of a directory."""

import errno
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import crc32c
from tests.fakes.filesystem import FakeFilesystem
from tiered.format.chunk_file import (
    ChunkFile,
    ChunkKey,
    chunk_path,
    folder_of,
    list_folders,
    open_checked,
    parse_name,
    part_path,
    remove,
    scan_folder,
    settle,
)

KEY = ChunkKey(UUID("ab" + 30 * "0"), 3)


def _write(filesystem: FakeFilesystem, path: str, data: bytes) -> None:
    filesystem.mkdir(path.rpartition("/")[0])
    file = filesystem.open(path, create=True)
    file.truncate(0)
    file.write_at(data, 0)
    file.close()


def _file(data: bytes, key: ChunkKey = KEY) -> ChunkFile:
    return ChunkFile(key, len(data), crc32c(data))


@given(
    st.uuids(),
    st.integers(0, 999_999_999),
    st.integers(0, 1 << 31),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_a_name_tells_all(
    segment: UUID, chunk: int, length: int, crc: int, reference: bool
) -> None:
    file = ChunkFile(ChunkKey(segment, chunk), length, crc, reference)
    path = chunk_path("/c", file)
    assert path.startswith(folder_of("/c", file.key) + "/")
    assert parse_name(path.rpartition("/")[2]) == file


@given(st.text(max_size=60))
def test_other_names_are_none_of_ours(name: str) -> None:
    assert parse_name(name) is None or name.count(".") == 3


def test_unfinished_names_are_none_of_ours() -> None:
    assert parse_name(part_path("/c", KEY, "token").rpartition("/")[2]) is None


def test_a_folder_is_read_and_tidied() -> None:
    filesystem = FakeFilesystem()
    whole, short = _file(b"abc"), ChunkFile(ChunkKey(KEY.segment, 4), 9, 0)
    _write(filesystem, chunk_path("/c", whole), b"abc")
    _write(filesystem, chunk_path("/c", short), b"abc")
    _write(filesystem, part_path("/c", KEY, "old"), b"a")
    _write(filesystem, part_path("/c", KEY, "mine"), b"a")
    _write(filesystem, part_path("/c", KEY, "mine") + ".tmp", b"a")
    _write(filesystem, part_path("/c", KEY, "old-3") + ".tmp", b"a")
    _write(filesystem, chunk_path("/c", whole) + ".ref.tmp", b"a")
    filesystem.mkdir("/c/ab/folder")
    assert list_folders(filesystem, "/c") == ["ab"]
    assert scan_folder(filesystem, "/c/ab", "mine") == [whole]
    names = {entry.name for entry in filesystem.list_directory("/c/ab")}
    assert len(names) == 4
    assert not any(".old." in name for name in names)


def test_what_has_another_name_is_left_alone() -> None:
    """Two hex digits may be the name of anybody's folder."""
    filesystem = FakeFilesystem()
    hex_ = KEY.segment.hex
    strangers = {
        *("00000000000000000000.log", "letters.tmp", "x.part", f"{hex_}.part", f"{hex_}.0.part"),
        *(f"{hex_}.log", f"{hex_}.0.3.abcdef01.txt", "varve-metadata.sqlite"),
    }
    for name in strangers:
        _write(filesystem, f"/c/ab/{name}", b"precious")
    assert scan_folder(filesystem, "/c/ab", "mine") == []
    assert {entry.name for entry in filesystem.list_directory("/c/ab")} == strangers


def test_what_is_missing_is_made_or_empty() -> None:
    filesystem = FakeFilesystem()
    assert list_folders(filesystem, "/c") == []
    assert filesystem.exists("/c")
    assert scan_folder(filesystem, "/c/00", "mine") == []


def test_a_chunk_settles_under_its_name() -> None:
    filesystem = FakeFilesystem()
    part, path = part_path("/c", KEY, "mine"), chunk_path("/c", _file(b"abc"))
    _write(filesystem, part, b"abc")
    file = settle(filesystem, part, path, _file(b"abc"))
    assert file.read_at(3, 0) == b"abc"
    assert not filesystem.exists(part)


def test_only_a_whole_file_is_opened() -> None:
    filesystem = FakeFilesystem()
    data = bytes(range(256)) * 10
    path = chunk_path("/c", _file(data))
    for damaged in (data, data[:-1], data + b"x", b"\xff" + data[1:], b""):
        _write(filesystem, path, damaged)
        file = open_checked(filesystem, path, _file(data))
        assert (file is not None) == (damaged == data)
        assert filesystem.exists(path) == (damaged == data)
    assert open_checked(filesystem, path, _file(b"x")) is None, "it is missing"


def test_a_file_that_cannot_be_read_is_given_up() -> None:
    filesystem = FakeFilesystem()
    path = chunk_path("/c", _file(b"abc"))
    _write(filesystem, path, b"abc")
    filesystem.fail("read", errno.EIO)
    assert open_checked(filesystem, path, _file(b"abc")) is None


def test_removing_may_fail() -> None:
    filesystem = FakeFilesystem()
    _write(filesystem, "/c/x", b"abc")
    filesystem.fail("unlink", errno.EIO)
    assert not remove(filesystem, "/c/x")
    assert remove(filesystem, "/c/x")
    assert remove(filesystem, "/c/x")
