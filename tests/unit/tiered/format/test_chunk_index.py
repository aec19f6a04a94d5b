import base64
import json
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiered.format.chunk_index import (
    Chunk,
    ChunkIndex,
    FixedChunkIndex,
    VariableChunkIndex,
    chunk_index_from_json,
    decode_sizes,
    encode_sizes,
)

SIZES = st.integers(0, 2**31 - 1)


def chunks(index: ChunkIndex) -> list[Chunk]:
    return [index.chunk(number) for number in range(index.count)]


@given(st.lists(SIZES, max_size=300))
def test_sizes_come_back(sizes: list[int]) -> None:
    """Of any spread, and of none, one or two."""
    assert decode_sizes(encode_sizes(sizes)) == sizes


@given(st.binary(max_size=60))
def test_decode_takes_any_bytes(data: bytes) -> None:
    """They come out of a bucket."""
    try:
        sizes = decode_sizes(data)
    except ValueError:
        return
    assert len(sizes) <= len(data)


@pytest.mark.parametrize(
    ("sizes", "data"),
    [
        ([], pack(">i", 0)),
        ([7], pack(">ii", 1, 7)),
        ([10, 20, 30], pack(">iibbbi", 3, 10, 1, 0, 10, 30)),
        ([300, 5, 5, 1], pack(">iibHHHi", 4, 5, 2, 295, 0, 0, 1)),
    ],
)
def test_sizes_are_packed_as_by_aiven(sizes: list[int], data: bytes) -> None:
    """Its codec leaves out base and width for a single chunk, and uses a byte at least."""
    assert encode_sizes(sizes) == data


def test_json_is_aivens() -> None:
    """The very texts of its own tests (ChunkIndexSerializationTest.java)."""
    fixed = (
        '{"type":"fixed","originalChunkSize":100,"originalFileSize":250,'
        '"transformedChunkSize":110,"finalTransformedChunkSize":30}'
    )
    variable = (
        '{"type":"variable","originalChunkSize":100,"originalFileSize":250,'
        '"transformedChunks":"KLUv/SAPeQAAAAAAAwAAAAoBAAoAAAAe"}'
    )
    for index, text in (
        (FixedChunkIndex(100, 250, 110, 30), fixed),
        (VariableChunkIndex(100, 250, [10, 20, 30]), variable),
    ):
        assert json.dumps(index.to_json(), separators=(",", ":")) == text
        assert chunks(chunk_index_from_json(json.loads(text))) == chunks(index)
    assert chunks(FixedChunkIndex(100, 250, 110, 30)) == [
        (0, 0, 100, 0, 110),
        (1, 100, 100, 110, 110),
        (2, 200, 50, 220, 30),
    ]


@given(
    chunk_size=st.integers(1, 50),
    file_size=st.integers(0, 2000),
    overhead=st.integers(0, 28),
    position=st.integers(-5, 2100),
)
def test_chunks_tile_both_files(
    chunk_size: int, file_size: int, overhead: int, position: int
) -> None:
    """No byte of the log is in two chunks or none, whichever kind of index it is."""
    sizes = [min(chunk_size, file_size - at) + overhead for at in range(0, file_size, chunk_size)]
    last = sizes[-1] if sizes else 0
    fixed = FixedChunkIndex(chunk_size, file_size, chunk_size + overhead, last)
    variable = VariableChunkIndex(chunk_size, file_size, sizes)
    assert chunks(fixed) == chunks(variable)
    assert fixed.stored_file_size == variable.stored_file_size == sum(sizes)
    original = stored = 0
    for chunk in chunks(variable):
        assert (chunk.original_position, chunk.stored_position) == (original, stored)
        original += chunk.original_size
        stored += chunk.stored_size
    assert original == file_size
    if 0 <= position < file_size:
        held = fixed.chunk(fixed.number_at(position))
        assert held.original_position <= position < held.original_position + held.original_size
    else:
        with pytest.raises(IndexError):
            fixed.number_at(position)


@pytest.mark.parametrize("number", [-1, 3])
def test_no_such_chunk(number: int) -> None:
    """A negative number does not count from the end."""
    for index in (FixedChunkIndex(100, 250, 110, 30), VariableChunkIndex(100, 250, [1, 2, 3])):
        with pytest.raises(IndexError):
            index.chunk(number)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "other"),
        ("originalChunkSize", 0),
        ("originalChunkSize", True),
        ("originalChunkSize", 1.5),
        ("originalFileSize", -1),
        ("originalFileSize", 2**31),
        ("transformedChunks", "%%%"),
        ("transformedChunks", base64.b64encode(b"no frame").decode()),
        ("transformedChunks", None),
        ("originalFileSize", 1000),
    ],
)
def test_malformed_json_is_refused(field: str, value: object) -> None:
    """None of it may become a wrong range, or a great allocation."""
    fields = VariableChunkIndex(100, 250, [10, 20, 30]).to_json() | {field: value}
    with pytest.raises((ValueError, TypeError)):
        chunk_index_from_json(fields)


def test_number_of_chunks_is_bounded() -> None:
    """A forged index of 2**31 chunks would take the memory away."""
    with pytest.raises(ValueError, match="chunks are more than"):
        FixedChunkIndex(1, 2**31 - 1, 1, 1)
