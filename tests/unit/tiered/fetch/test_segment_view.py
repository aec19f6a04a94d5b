"""A remote segment through its chunks."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.records.batch import HEADER_SIZE
from storage.environment.filesystem import File
from storage.errors import CorruptFileError
from tests.fakes.filesystem import FakeFile, FakeFilesystem
from tiered.fetch.segment_view import ChunkMissingError, SegmentView
from tiered.format.manifest_layout import SegmentLayout

LOG = bytes(range(256)) * 4


class _Indexes:
    def __init__(self, chunk_bytes: int) -> None:
        self.layout = SegmentLayout(chunk_bytes, len(LOG))


class _Segment:
    path = "segment"

    def __init__(self, chunk_bytes: int) -> None:
        self.indexes = _Indexes(chunk_bytes)


def _view(chunk_bytes: int, *missing: int) -> SegmentView:
    filesystem = FakeFilesystem()
    files: dict[int, File] = {}
    for chunk in range(-(-len(LOG) // chunk_bytes)):
        files[chunk] = filesystem.open(str(chunk), create=True)
        files[chunk].write_at(LOG[chunk * chunk_bytes : (chunk + 1) * chunk_bytes], 0)
    segment: Any = _Segment(chunk_bytes)
    return SegmentView(segment, lambda chunk: None if chunk in missing else files.get(chunk))


@example(32, len(LOG), 0)
@given(st.integers(20, 300), st.integers(0, len(LOG)), st.integers(0, len(LOG)))
def test_slices_and_reads_give_the_log(chunk_bytes: int, position: int, size: int) -> None:
    view = _view(chunk_bytes)
    end = min(position + size, len(LOG))
    assert view.cached_end(position, end) == end
    slices = view.slices(position, end)
    assert b"".join(s.file.read_at(s.length, s.position) for s in slices) == LOG[position:end]
    assert view.read_whole(end - position, position) == LOG[position:end]
    data = view.read_at(size, position)
    assert LOG[position:end].startswith(data)
    assert len(data) >= min(HEADER_SIZE, end - position)


def test_what_is_missing_is_named() -> None:
    view = _view(100, 3, 5)
    assert view.cached_end(50, 1000) == 300
    assert view.cached_end(310, 1000) == 310
    assert view.missing(50, 1000) == [3, 5]
    assert view.missing(0, 300) == []
    with pytest.raises(ChunkMissingError) as missing:
        view.read_at(HEADER_SIZE, 280)
    assert (missing.value.chunk, missing.value.position) == (3, 280)
    assert len(view.read_at(4096, 230)) == 70, "what is here is enough"
    with pytest.raises(ChunkMissingError) as missing:
        view.read_whole(300, 230)
    assert (missing.value.chunk, missing.value.position) == (3, 230)


def test_chunks_are_held_from_first_use() -> None:
    found: list[int] = []
    view = _view(100)
    find = view._find
    assert find is not None
    view._find = lambda chunk: found.append(chunk) or find(chunk)  # type: ignore[func-returns-value]  # append gives None
    view.read_at(10, 0)
    view.read_at(10, 50)
    assert found == [0]


def test_a_file_that_was_cut_is_damage() -> None:
    view = _view(100)
    file = view.file(1)
    assert isinstance(file, FakeFile)
    file.truncate(50)
    with pytest.raises(CorruptFileError):
        view.read_at(HEADER_SIZE, 130)


def test_without_a_cache_only_what_is_held_counts() -> None:
    segment: Any = _Segment(100)
    view = SegmentView(segment, None)
    with pytest.raises(ChunkMissingError):
        view.read_at(10, 0)
